"""Torch IR expects the element types that PyTorch gives: capturing a call verifies its operations."""

import itertools

import pytest
import torch

from deplo.dialects.torch import ALL_OPS
from deplo.dialects.torch_elements import RULES
from deplo.frontend.capture import capture
from deplo.frontend.dtypes import ELEMENTS

DTYPES = list(ELEMENTS)
BINARY = {
    "add": torch.add,
    "true_divide": torch.true_divide,
    "floor": lambda x, y: torch.div(x * 2, y, rounding_mode="floor"),
    "maximum": torch.maximum,
    "where": lambda x, y: torch.where(x > y, x, y),
    "cat": lambda x, y: torch.cat([x.reshape(-1), y.reshape(-1)]),
    "eq": torch.eq,
}
UNARY = {
    "exp": torch.exp,
    "sum": lambda x: x.sum(0),
    "cumprod": lambda x: x.cumprod(0),
    "any": lambda x: x.any(0),
    "sort": torch.sort,
    "max": lambda x: x.max(0),
    "times": lambda x: x * 0.5,
    "plus": lambda x: x + 2,
    "clamp": lambda x: x.clamp(0.5, 1.5),
    "masked": lambda x: torch.where(x > 0, x, 2.5),
    "full_like": lambda x: torch.full_like(x, 1),
    "full": lambda x: torch.full((3,), x.shape[0]) + torch.full((3,), 0.5),
    "arange": lambda x: torch.arange(0, 2, 0.5) + torch.arange(4),
}


@pytest.mark.sample(40)
@pytest.mark.parametrize("shapes", [((4,), (4,)), ((4,), ()), ((), (4,)), ((), ())], ids=str)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtypes", itertools.product(DTYPES, DTYPES), ids=str)
def test_two_tensors_meet_in_the_type_that_pytorch_gives(name, dtypes, shapes):
    capture(
        BINARY[name], tuple(torch.ones(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True))
    )


@pytest.mark.sample(30)
@pytest.mark.parametrize("shape", [(4,), ()], ids=str)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_tensor_gives_the_type_that_pytorch_gives(name, dtype, shape):
    if shape == () and name in ("full", "full_like"):
        shape = (1,)
    capture(UNARY[name], (torch.ones(shape, dtype=dtype),))


@pytest.mark.parametrize("name", ["exp", "times", "masked", "full", "arange"])
def test_the_default_float_may_be_f64(name):
    torch.set_default_dtype(torch.float64)
    try:
        capture(UNARY[name], (torch.ones(4, dtype=torch.int64),))
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_operation_has_a_known_rule_for_each_result():
    for op in ALL_OPS:
        rules = op.ELEMENTS.split("/")
        assert RULES.keys() >= set(rules), op.name
        assert len(rules) in (1, len(op.get_irdl_definition().results)), op.name
