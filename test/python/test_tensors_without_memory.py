"""Arguments whose memory is not what operators read: made plain where that has one meaning, else refused."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.masked import masked_tensor

import deplo
from deplo.runtime.calls import _is_fresh

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.arange(3.0)


class Wrapper(torch.Tensor):
    """A tensor without memory that runs operators on another one."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*[a.inner if isinstance(a, Wrapper) else a for a in args], **(kwargs or {}))


class Doubling(torch.Tensor):
    """A tensor whose products are doubled."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        return result + result if func is torch.Tensor.mul else result


class Named(torch.Tensor):
    """A tensor of another class, and nothing else."""


REFUSED = {
    "wrapper": lambda: Wrapper(X),
    "function": lambda: X.as_subclass(Doubling),
    "masked": lambda: masked_tensor(X, X > 0),
    "fake": lambda: FakeTensorMode().from_tensor(X),
    "meta": lambda: X.to("meta"),
    "sparse": lambda: X.to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(X, 1.0, 0, torch.qint8),
    "jagged": lambda: torch.nested.nested_tensor([X], layout=torch.jagged),
    "unknown shape": torch.nn.UninitializedParameter,
}

PLAIN = {
    "zeros": lambda: torch._efficientzerotensor(3),
    "negative": lambda: torch._neg_view(X),
    "conjugate": lambda: torch.complex(X, X).conj().imag,
    "parameter": lambda: torch.nn.Parameter(X),
    "named": lambda: X.as_subclass(Named),
}

PROGRAMS = {
    "static": lambda: deplo.compile(lambda x: x * 2, (X,)),
    "dynamic": lambda: deplo.compile(
        lambda x: x * 2, (X,), dynamic_shapes=({0: torch.export.Dim("n")},)
    ),
    "two results": lambda: deplo.compile(lambda x: (x * 2, x + 1), (X,)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments_of_a_program(name):
    program = PROGRAMS[name]()
    for _ in range(8):  # also where a call is prepared
        for make in REFUSED.values():
            with pytest.raises(deplo.UsageError, match="argument 'x'"):
                program(make())
        for make in PLAIN.values():
            result = program(make())
            torch.testing.assert_close(
                result[0] if isinstance(result, tuple) else result,
                (make() * 2).as_subclass(type(X)),
            )
        program(X)


def test_a_nested_tensor_is_refused():
    with pytest.raises(deplo.UsageError, match="a nested tensor"):
        PROGRAMS["static"]()(torch.nested.nested_tensor([X]))


def test_inside_of_vmap_a_program_is_refused():
    program = PROGRAMS["static"]()
    with pytest.raises(deplo.UsageError, match=r"transform of torch\.func"):
        torch.vmap(program)(X[None])


class Scale(torch.nn.Module):
    """A product with a buffer."""

    def __init__(self, weight):
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x):
        return x * self.weight


@pytest.mark.parametrize("name", PLAIN)
def test_buffers_of_a_program(name):
    module = Scale(PLAIN[name]().detach())
    torch.testing.assert_close(deplo.compile(module, (X,))(X), X * (0 + module.weight))


@pytest.mark.parametrize("name", ["wrapper", "function", "masked", "jagged"])
def test_tensors_with_operators_of_their_own_are_not_compiled(name):
    for program, args, what in (
        (torch.relu, (REFUSED[name](),), r"input \[0\]"),
        (Scale(REFUSED[name]()), (X,), "buffer 'weight'"),
        (lambda x: x["y"] + 1, ({"y": REFUSED[name]()},), r"input \[0\]\['y'\]"),
    ):
        with pytest.raises(deplo.UnsupportedOpError, match=what):
            deplo.compile(program, args)


STEPS = {
    "sgn": lambda x: x.sgn(),
    "sign": lambda x: x.sign(),
    "round": lambda x: x.round(),
    "ceil": lambda x: x.ceil(),
    "floor": lambda x: x.floor(),
    "trunc": lambda x: x.trunc(),
    "sgn, and more": lambda x: x.sgn() * x.exp(),
    "sgn of a view": lambda x: x.sgn().masked_fill(x > 0.3, -1.0)[..., ::2],
}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", STEPS)
def test_gradients_that_are_zero_tensors(name, dynamic):
    """PyTorch's gradient of a step is a tensor without memory; deplo's is a kernel's."""
    compiled = torch.compile(
        STEPS[name], backend="deplo", dynamic=dynamic, options={"fallback": "error"}
    )
    for size in (5, 4) if dynamic else (5,):
        x = torch.linspace(-2, 2, 6 * size).view(size, 6)
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        result, expected = compiled(ours), STEPS[name](theirs)
        torch.testing.assert_close(result, expected)
        result.sum().backward()
        expected.sum().backward()
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad, torch.zeros(size, 6) + theirs.grad)


def test_a_call_may_give_a_zero_tensor():
    """What PyTorch computes of a plan's calls may have no memory, either."""
    assert not _is_fresh(torch._efficientzerotensor(3), [])
