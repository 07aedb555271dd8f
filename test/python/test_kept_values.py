"""Rows with several results: what waits in one of them is read before that one is written."""

import pytest
import torch
import torch.nn.functional as F
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import deplo

FUNCTIONS = {
    "exp": torch.exp,
    "sin": torch.sin,
    "tanh": torch.tanh,
    "product": lambda v: v * v,
}
"""What a sweep computes of an element, to be computed again where a result is stored."""
FOLDS = {"sum": torch.sum, "amax": torch.amax}

RESULT = st.tuples(
    st.sampled_from(list(FUNCTIONS)),
    st.integers(0, 1),
    st.sampled_from(list(FOLDS)),
    st.booleans(),
)
"""The function, the factor of its argument, what folds its row, and whether it reads the fold before."""


@examples(20)
@given(st.lists(RESULT, min_size=2, max_size=4), st.integers(1, 9))
def test_several_results_of_a_row(results, columns):
    def program(v, columns_of, *factors):
        v = v + columns_of.mT
        made, folded = [], v
        for name, which, fold, other in results:
            value = FUNCTIONS[name](v * factors[which])
            own = FOLDS[fold](value, -1, keepdim=True)
            made.append(value - factors[which] * (folded if other else own))
            folded = own
        return made

    shapes = [(3, columns), (columns, 3), (3, columns), (3, columns)]
    args = tuple(torch.rand(shape) for shape in shapes)
    exact = program(*(each.double() for each in args))
    compiled = deplo.compile(program, args, target="cpu")
    for found, expected in zip(compiled(*args), exact, strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


ATTENTION = {
    "plain": {},
    "scaled": {"scale": 0.3},
    "causal": {"is_causal": True},
    "masked": {"attn_mask": torch.arange(16.0).view(4, 4).sin()},
}


@pytest.mark.parametrize("other", ["scaled", "causal", "masked"])
def test_gradients_of_two_attentions_to_the_same_keys(other):
    def program(*given):
        return sum(
            F.scaled_dot_product_attention(*given, **ATTENTION[n]) for n in ("plain", other)
        ).sum()

    def gradients(run):
        given = [each.detach().requires_grad_() for each in tensors]
        run(*given).backward()
        return [each.grad for each in given]

    tensors = [torch.randn(2, 4, 8) for _ in range(3)]
    compiled = torch.compile(program, backend="deplo")
    torch.testing.assert_close(gradients(compiled), gradients(program))
