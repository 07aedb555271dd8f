"""What eager refuses is refused, by an error that is of eager's class: at compile time, or by what runs.

Every error input of PyTorch's operator database is tried through `deplo.compile` and `torch.compile`, and
every operator with tensors of each dtype that its table leaves out. What `torch.compile(backend="aot_eager")`
accepts, too, is accepted by PyTorch's own tracing, before a backend sees it.
"""

import logging
import operator
import pickle
import random

import pytest
import torch
from opinfo import full_name
from torch.nn import functional as F
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import UsageError, also

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
)


def by_compile(program, args, kwargs):
    return deplo.compile(program, args, kwargs, target="cpu", fallback="eager")(*args, **kwargs)


def by_backend(program, args, kwargs, backend="deplo"):
    torch._dynamo.reset()
    with torch.no_grad():
        return torch.compile(program, backend=backend)(*args, **kwargs)


ENTRIES = pytest.mark.parametrize("run", [by_compile, by_backend])


def error_of(run, program, args, kwargs):
    """What a run raises, on inputs of its own; None if it gives a result."""
    args, kwargs = pytree.tree_map_only(
        torch.Tensor, lambda t: t.detach().clone(), (args, dict(kwargs))
    )
    try:
        run(program, args, kwargs)
    except Exception as error:
        return error
    return None


def check_refused(run, program, args, kwargs):
    """If eager refuses a call, a run does, by eager's class, or one that says that it is not supported."""
    eager = error_of(lambda f, args, kwargs: f(*args, **kwargs), program, args, kwargs)
    if eager is None:
        return
    error = error_of(run, program, args, kwargs)
    if error is None:
        accepted = error_of(lambda *call: by_backend(*call, "aot_eager"), program, args, kwargs)
        assert accepted is None, f"eager refuses it: {type(eager).__name__}: {eager}"
    elif run is by_compile and not isinstance(error, deplo.UnsupportedOpError):
        assert isinstance(error, type(eager)), (error, eager)
    else:  # Dynamo's own errors are RuntimeErrors, and some that tracing lets through
        traced = error_of(lambda *call: by_backend(*call, "aot_eager"), program, args, kwargs)
        known = (type(eager), type(traced), RuntimeError, deplo.UnsupportedOpError)
        assert isinstance(error, known), error


def is_on_cpu(op):
    return op.supports_dtype(torch.float32, "cpu")


@pytest.mark.sample(16)
@ENTRIES
@pytest.mark.parametrize(
    "op", [op for op in op_db if op.error_inputs_func and is_on_cpu(op)], ids=full_name
)
def test_error_inputs_of_an_operator_are_refused(op, run):
    for case in op.error_inputs("cpu"):
        sample = case.sample_input
        check_refused(
            run, lambda *a, **k: op.op(*a, **k), (sample.input, *sample.args), sample.kwargs
        )


def of_dtype(sample, source, dtype):
    """The arguments of a sample, with another dtype in the place of its own."""

    def cast(value):
        if isinstance(value, torch.Tensor) and value.dtype == source:
            return value.detach().to(dtype)
        return dtype if value is source else value

    return pytree.tree_map(cast, ((sample.input, *sample.args), dict(sample.kwargs)))


@pytest.mark.sample(16)
@ENTRIES
@pytest.mark.parametrize("op", op_db, ids=full_name)
def test_dtypes_that_an_operator_does_not_take_are_refused(op, run):
    taken = op.supported_dtypes("cpu")
    source = next((dtype for dtype in DTYPES if dtype in taken), None)
    if source is None:
        return
    random.seed(0)
    try:
        sample = next(iter(op.sample_inputs("cpu", source)))
    except (ImportError, RuntimeError, StopIteration):  # the database's own
        return
    for dtype in DTYPES:
        if dtype not in taken:
            args, kwargs = of_dtype(sample, source, dtype)
            check_refused(run, lambda *a, **k: op.op(*a, **k), args, kwargs)


X = torch.rand(3, 4)


def at(*index):
    return torch.tensor(index)


OF_VALUES = {
    "gather": (lambda x, i: x.gather(0, i[:, None]), [at(3), at(-1)]),
    "take": (lambda x, i: x.take(i), [at(12), at(-13)]),
    "index_select": (lambda x, i: x.index_select(0, i), [at(3), at(-1)]),
    "index": (lambda x, i: x[i], [at(3), at(-4)]),
    "embedding": (lambda x, i: F.embedding(i, x), [at(3), at(-1)]),
    "scatter": (lambda x, i: x.scatter(0, i[:, None], 1.0), [at(3), at(-1)]),
    "scatter_add": (lambda x, i: x.scatter_add(0, i[:, None], x), [at(3), at(-1)]),
    "index_copy": (lambda x, i: x.index_copy(0, i, x[:1]), [at(3), at(-1)]),
    "index_add": (lambda x, i: x.index_add(0, i, x[:1]), [at(3), at(-1)]),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), [at(3), at(-4)]),
    "index_reduce": (lambda x, i: x.index_reduce(0, i, x[:1], "prod"), [at(3), at(-1)]),
    "index_put": (lambda x, i: x.index_put((i,), x[:1]), [at(3), at(-4)]),
    "put": (lambda x, i: x.put(i, x[0, :1]), [at(12), at(-13)]),
    "binary_cross_entropy": (F.binary_cross_entropy, [X + 1, X - 1, X * torch.nan]),
    "its target": (lambda x, t: F.binary_cross_entropy(t, x), [X + 1, X - 1]),
    "cross_entropy": (F.cross_entropy, [at(0, 1, 4), at(0, 1, -1)]),
    "multi_margin_loss": (F.multi_margin_loss, [at(0, 1, 4), at(0, 1, -1)]),
    "one_hot": (lambda x, i: F.one_hot(i, 3), [at(3), at(-1)]),
    "floor_divide": (lambda x, i: at(1) // i, [at(0)]),
    "remainder": (lambda x, i: at(1) % i, [at(0)]),
    "multinomial": (lambda x, p: torch.multinomial(p, 2), [X - 2, X * 0]),
    "bincount": (lambda x, i: torch.bincount(i), [at(-1)]),
    "repeat_interleave": (lambda x, i: x.repeat_interleave(i, 0), [at(1, -1, 1)]),
}
"""For each check of values, a program and second inputs that eager refuses."""


@pytest.mark.sample(12)
@ENTRIES
@pytest.mark.parametrize("name", OF_VALUES)
def test_values_that_eager_refuses_are_refused(name, run):
    program, refused = OF_VALUES[name]
    for value in refused:
        assert error_of(lambda f, args, _: f(*args), program, (X, value), {}) is not None
        check_refused(run, program, (X, value), {})


@ENTRIES
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_probabilities_that_eager_takes_are_taken(shape, run):
    value, target = torch.rand(shape).round(), torch.rand(shape)
    for reduction in ("none", "mean", "sum"):
        kwargs = {"reduction": reduction}
        eager = F.binary_cross_entropy(value, target, **kwargs)
        ours = run(F.binary_cross_entropy, (value, target), kwargs)
        torch.testing.assert_close(ours, eager, equal_nan=True)


BEYOND = {
    torch.uint8: (-1, -255),
    torch.int8: (200, 300),
    torch.int32: (2**32 + 5,),
}
"""Integers beyond the range of a dtype."""


@ENTRIES
@pytest.mark.sample(20)
@pytest.mark.parametrize(
    "program",
    [
        *(torch.add, torch.mul, torch.rsub, torch.gt, torch.eq, torch.remainder, torch.bitwise_and),
        *(torch.full_like, torch.clamp_min, torch.clamp_max, torch.pow),
        *(operator.lshift, operator.rshift),
        lambda x, n: x.add(x, alpha=n),
        lambda x, n: torch.where(x > 0, n, x),
        lambda x, n: x.masked_fill(x > 0, n),
        lambda x, n: x.scatter(0, torch.tensor([1]), n),
        lambda x, n: torch.full((2,), n, dtype=x.dtype) + x[:2],
        lambda x, n: F.pad(x, (1, 1), value=n),
    ],
)
def test_numbers_beyond_the_range_of_integers_wrap_or_are_refused_as_in_eager(program, run):
    for dtype, numbers in BEYOND.items():
        x = torch.tensor([-3, 0, 5]).to(dtype)
        for number in numbers:
            check_refused(run, program, (x, number), {})
            try:
                expected = program(x, number)
            except RuntimeError:
                continue
            assert torch.equal(run(program, (x, number), {}), expected), (dtype, number)


@ENTRIES
def test_nothing_is_asked_where_sizes_are_only_smaller(run):
    """Of a depthwise convolution there are fewer channels when PyTorch is asked, but as many groups."""
    program = torch.nn.Conv2d(64, 64, 3, groups=64)
    x = torch.randn(1, 64, 20, 20)
    torch.testing.assert_close(run(program, (x,), {}), program(x), rtol=1e-4, atol=1e-5)


def test_asking_draws_no_random_numbers():
    program = deplo.compile(lambda x: torch.bernoulli(x), (X,), fallback="eager")
    torch.manual_seed(1)
    deplo.compile(lambda x: torch.bernoulli(x) + 1, (X[:2],), fallback="eager")
    ours = program(X)
    torch.manual_seed(1)
    assert torch.equal(ours, torch.bernoulli(X))


class _Raised(ValueError):
    def __init__(self, first, second):
        super().__init__(first)


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        (IndexError, IndexError),
        (KeyError, LookupError),
        (torch.linalg.LinAlgError, RuntimeError),
        (UnicodeDecodeError, ValueError),
        (_Raised, ValueError),
        (Exception, UsageError),
    ],
)
def test_an_error_of_two_classes(raised, caught):
    error = also(UsageError, raised)("what\nwhere")
    for kind in (caught, UsageError):
        with pytest.raises(kind):
            raise error
    assert str(error) == "what\nwhere"
    assert type(pickle.loads(pickle.dumps(error))) is type(error)
    assert (type(error).__name__, error.exit_code) == ("UsageError", 2)


def test_asking_writes_no_log(monkeypatch):
    """The parts of the split add up to more than the few elements that PyTorch is asked about."""
    records = []
    monkeypatch.setattr(logging.Logger, "handle", lambda _, record: records.append(record))
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: [part * 2 for part in x.split([7, 9, 8])], backend="deplo")
    torch.testing.assert_close(compiled(torch.ones(24)), [torch.full((n,), 2.0) for n in (7, 9, 8)])
    assert not [record for record in records if record.levelname == "ERROR"]


def test_a_scalar_is_refused_after_its_layout_was_asked_for():
    """PyTorch's `layout` of a traced tensor hands out what it wraps, which has no memory to be read."""
    with pytest.raises(deplo.UsageError, match="floating point"):
        deplo.compile(lambda x: torch.masked.norm(x, 2.0), (torch.tensor(True),), target="cpu")
