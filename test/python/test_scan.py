"""`torch.scan` is a scan of its body, in either direction; so is its gradient."""

import warnings

import pytest
import torch
import torch._dynamo
from torch._higher_order_ops.scan import scan
from torch.export import Dim

import deplo

W = torch.linspace(-1, 1, 16).view(4, 4)


def _add(so_far, row):
    new = so_far + row
    return new, new.clone()


def _cell(h, pair):
    x, y = pair
    return torch.tanh(h @ x.mT @ y), x - h


def _states(state, row):
    """Carries two values and gives three, one of them of another shape."""
    h, count = state
    new = torch.tanh(h @ W + row)
    return (new, count + 1), (new.sum(-1), row * h, new * 2)


def _rounded(so_far, row):
    new = (so_far.float() * 0.5 + row.float()).to(so_far.dtype)
    return new, new * 2


PROGRAMS = {
    "sum": lambda x: scan(_add, x[0] * 0, x),
    "reverse": lambda x: scan(_add, x[0] * 0, x, reverse=True),
    "dim": lambda x: scan(_add, x[:, 0] * 0, x, dim=1),
    "pairs": lambda x: scan(_cell, x[0] * 0, (x, x.flip(1)), reverse=True),
    "invariant": lambda x: scan(lambda c, row: (c.clone(), c * row), x[0], x),
    "half": lambda x: scan(_rounded, x[0].bfloat16(), x.bfloat16()),
    "integers": lambda x: scan(_add, (x[0] * 9).long(), (x * 9).long()),
    "between": lambda x: scan(_add, x[0].exp(), x.sin())[1].softmax(-1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_deplo_compile(name):
    torch._dynamo.reset()
    program, x = PROGRAMS[name], torch.randn(5, 3, 4)
    compiled = deplo.compile(program, (x,), target="cpu")
    torch.testing.assert_close(compiled(x), program(x))
    assert len(compiled.plan.loops) == 1


@pytest.mark.parametrize("extents", [(1, 3), (4, 1)])
def test_one_step_and_one_row(extents):
    torch._dynamo.reset()
    program, x = PROGRAMS["pairs"], torch.randn(*extents, 4)
    torch.testing.assert_close(deplo.compile(program, (x,), target="cpu")(x), program(x))


def test_dynamic_sizes():
    torch._dynamo.reset()
    program = PROGRAMS["pairs"]
    shapes = ({0: Dim("t", min=2, max=64), 1: Dim("b", min=2, max=64)},)
    compiled = deplo.compile(program, (torch.randn(5, 3, 4),), target="cpu", dynamic_shapes=shapes)
    for extents in ((5, 3), (2, 2), (9, 7)):
        x = torch.randn(*extents, 4)
        torch.testing.assert_close(compiled(x), program(x))


def test_torch_compile_of_several_states_and_a_closed_over_tensor():
    torch._dynamo.reset()
    program, x = lambda x: scan(_states, (x[0] * 0, x.new_zeros(1)), x), torch.randn(5, 3, 4)
    compiled = torch.compile(
        program, backend="deplo", fullgraph=True, options={"fallback": "error"}
    )
    torch.testing.assert_close(compiled(x), program(x))


@pytest.mark.parametrize("name", ["reverse", "dim", "between"])
def test_torch_compile_with_gradients(name):
    torch._dynamo.reset()
    program, x = PROGRAMS[name], torch.randn(5, 3, 4, requires_grad=True)
    compiled = torch.compile(program, backend="deplo", fullgraph=True)

    def gradient(run):
        results = torch.utils._pytree.tree_leaves(run(x))
        return results, torch.autograd.grad(sum((r * r).sum() for r in results), x)

    with warnings.catch_warnings():
        warnings.simplefilter("error", deplo.FallbackWarning)
        torch.testing.assert_close(gradient(compiled), gradient(program))


def test_what_a_step_needs_of_pytorch_is_refused():
    torch._dynamo.reset()

    def program(x):
        return scan(lambda c, row: (torch.linalg.eigvalsh(c + row).diag(), row.clone()), x[0], x)

    with pytest.raises(deplo.UnsupportedOpError, match="linalg_eigh"):
        deplo.compile(program, (torch.randn(3, 4, 4),), target="cpu", fallback="eager")
