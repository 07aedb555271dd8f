"""Gradients through factorizations whose factors depend on the strides of the matrix."""

import pytest
import torch
from torch import linalg

import deplo

pytestmark = pytest.mark.filterwarnings("ignore::deplo.FallbackWarning")

FUNCTIONS = {
    "det": linalg.det,
    "slogdet": lambda x: linalg.slogdet(x)[1],
    "det of a transpose": lambda x: linalg.det(x.mT),
    "slogdet of a transpose": lambda x: linalg.slogdet(x.mT)[1],
    "slogdet of a product": lambda x: linalg.slogdet((x @ x.mT).mT + x)[1],
    "solve": lambda x: linalg.solve(x, torch.ones(4, 2)).square(),
}

LAYOUTS = {
    "row-major": lambda x: x.clone(),
    "column-major": lambda x: x.mT.clone().mT,
    "a part of memory": lambda x: torch.cat([x, x], -1)[..., :4],
    "batches last": lambda x: x.permute(1, 2, 0).clone().permute(2, 0, 1),
}


def made(layout):
    """Two matrices with rows to swap, of small condition, by which gradients grow what sums round."""
    torch.manual_seed(0)
    return LAYOUTS[layout](torch.randn(2, 4, 4) / 8 + torch.eye(4)[[1, 2, 0, 3]])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_gradient_reads_the_factors_of_what_eager_factors(name, layout):
    torch._dynamo.reset()
    x, twin = made(layout).requires_grad_(), made(layout).requires_grad_()
    found = torch.compile(FUNCTIONS[name], backend="deplo")(x)
    wanted = FUNCTIONS[name](twin)
    torch.testing.assert_close(found, wanted)
    found.sum().backward()
    wanted.sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["det", "det of a transpose"])
def test_a_program_that_computes_its_gradient(name, layout):
    gradient = torch.func.grad(lambda x: FUNCTIONS[name](x).sum())
    x = made(layout)
    program = deplo.compile(gradient, (x,), fallback="eager")
    torch.testing.assert_close(program(x), gradient(x))
