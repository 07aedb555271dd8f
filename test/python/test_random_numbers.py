"""Random numbers are eager's: in each memory order, from both entry points, and again in backward."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing._internal import common_methods_invocations as database
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint

import deplo

pytestmark = pytest.mark.filterwarnings("ignore")

DRAWS = {
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout2d": lambda x: F.dropout2d(x, 0.5),
    "dropout after relu": lambda x: F.dropout(x.relu(), 0.5),
    "rand_like": torch.rand_like,
    "rand_like, row-major": lambda x: torch.rand_like(x, memory_format=torch.contiguous_format),
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 100),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "bernoulli_": lambda x: torch.empty_like(x).bernoulli_(x.sigmoid()),
    "normal": lambda x: torch.normal(x, x.abs() + 1),
    "normal_": lambda x: torch.empty_like(x).normal_(),
    "uniform_": lambda x: x.clone().uniform_(),
    "exponential_": lambda x: torch.empty_like(x).exponential_(),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "poisson": lambda x: torch.poisson(x.abs() * 5),
    "multinomial": lambda x: torch.multinomial(x.abs().flatten(1) + 0.1, 3),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
}

LAYOUTS = {
    "row-major": lambda: torch.randn(2, 4, 5, 6),
    "channels-last": lambda: torch.randn(2, 4, 5, 6).to(memory_format=torch.channels_last),
    "transposed": lambda: torch.randn(2, 4, 6, 5).mT,
    "permuted": lambda: torch.randn(6, 5, 4, 2).permute(3, 2, 1, 0),
    "every other": lambda: torch.randn(2, 4, 6, 10).mT[:, :, ::2],
}


def by_deplo_compile(function, *inputs):
    program = deplo.compile(function, inputs, fallback="eager")
    torch.manual_seed(3)
    return program(*inputs)


def by_torch_compile(function, *inputs, dynamic=None):
    torch._dynamo.reset()
    torch.manual_seed(3)
    return torch.compile(function, backend="deplo", dynamic=dynamic)(*inputs)


def by_torch_compile_dynamic(function, *inputs):
    return by_torch_compile(function, *inputs, dynamic=True)


WAYS = [by_deplo_compile, by_torch_compile, by_torch_compile_dynamic]


@pytest.mark.sample(16)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DRAWS)
def test_one_seed_gives_eagers_numbers(name, layout, way):
    torch.manual_seed(1)
    x = LAYOUTS[layout]()
    torch.manual_seed(3)
    expected, state = DRAWS[name](x), torch.get_rng_state()
    torch.testing.assert_close(way(DRAWS[name], x), expected)
    assert torch.equal(torch.get_rng_state(), state)


OPINFO = (
    "cauchy exponential geometric log_normal normal uniform nn.functional.fractional_max_pool2d "
    "nn.functional.fractional_max_pool3d nn.functional.rrelu "
    "nn.functional.scaled_dot_product_attention svd_lowrank pca_lowrank randn randn_like rand_like randint "
    "randint_like multinomial bernoulli nn.functional.dropout nn.functional.dropout2d "
    "nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.feature_alpha_dropout "
    "nn.functional.multi_head_attention_forward"
).split()
"""The entries of PyTorch's operator database that draw random numbers."""

ENTRIES = [op for op in database.op_db if op.name in OPINFO and op.supports_dtype(torch.float32, "cpu")]


@pytest.fixture
def unseeded(monkeypatch):
    """Let the database's entries draw from the generator as it is: they seed it otherwise."""
    monkeypatch.setattr(
        database, "wrapper_set_seed", lambda op, *args, **kwargs: op(*args, **kwargs)
    )


@pytest.mark.sample(6)
@pytest.mark.usefixtures("unseeded")
@pytest.mark.parametrize("checkpointed", [False, True], ids=["plain", "checkpointed"])
@pytest.mark.parametrize("op", ENTRIES, ids=lambda op: f"{op.name}.{op.variant_test_name}")
def test_an_operator_leaves_the_generator_as_eager_does(op, checkpointed):
    for sample in list(op.sample_inputs("cpu", torch.float32))[:3]:

        def function(*tensors, op=op, sample=sample):
            flat = iter(tensors)
            given, args, kwargs = pytree.tree_map_only(
                torch.Tensor, lambda _: next(flat), (sample.input, sample.args, sample.kwargs)
            )
            return op.op(given, *args, **kwargs)

        def run(tensors, function=function):
            if checkpointed:
                return checkpoint(function, *tensors, use_reentrant=False)
            return function(*tensors)

        leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
        tensors = [leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor)]
        for tensor in tensors if checkpointed else ():
            tensor.requires_grad_(tensor.is_floating_point())
        torch.manual_seed(3)
        try:
            expected = run(tensors)
        except (RuntimeError, TypeError, ValueError):
            continue  # a sample that eager refuses
        if checkpointed and not all(
            r.requires_grad for r in pytree.tree_leaves(expected) if isinstance(r, torch.Tensor)
        ):
            continue  # PyTorch refuses a checkpoint without gradients
        state = torch.get_rng_state()
        given = by_torch_compile(run, tensors)
        assert torch.equal(torch.get_rng_state(), state)
        if op.name not in UNDETERMINED_SIGNS:
            torch.testing.assert_close(given, expected, atol=1e-4, rtol=1e-4)


UNDETERMINED_SIGNS = {
    "svd_lowrank": "the sign of a singular vector is anything's",
    "pca_lowrank": "the same",
}
"""Entries whose values are not compared, and why."""

LAYER = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.3, batch_first=True)

def times_sine(draw):
    return lambda x: draw(x) * x.sin()


RECOMPUTED = {
    **{name: times_sine(draw) for name, draw in DRAWS.items() if name != "multinomial"},
    "several": lambda x: F.dropout(x.sin(), 0.5).cos() * torch.rand_like(x) + F.dropout(x, 0.3),
    "rand": lambda x: torch.rand(2, 4, 5, 6) * x.sin(),
    "randperm": lambda x: x[:, torch.randperm(4)].sin(),
    "gumbel": lambda x: F.gumbel_softmax(x).sin(),
    "layer": lambda x: LAYER(F.pad(x.flatten(1, 2), (0, 10))),
    "refused by deplo": lambda x: F.dropout(torch.fft.fft(x.sin()).abs(), 0.3).sin(),
}
"""Programs under activation checkpointing."""


@pytest.mark.sample(8)
@pytest.mark.parametrize("layout", ["row-major", "channels-last"])
@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
@pytest.mark.parametrize("name", RECOMPUTED)
def test_backward_draws_the_numbers_of_forward_again(name, reentrant, layout):
    def run(compiled):
        torch.manual_seed(1)
        x = LAYOUTS[layout]().requires_grad_()

        def function(x):
            return checkpoint(RECOMPUTED[name], x, use_reentrant=reentrant) * 2

        torch._dynamo.reset()
        torch.manual_seed(3)
        y = (torch.compile(function, backend="deplo") if compiled else function)(x)
        forward = torch.get_rng_state()
        (y * y).sum().backward()
        return y.detach(), x.grad, forward, torch.get_rng_state()

    torch.testing.assert_close(run(True), run(False), atol=1e-4, rtol=1e-4)
