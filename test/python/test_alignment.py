"""What divides an index: never more than does, for any values, and enough for the indices of copies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_programs import parse
from xdsl.ir.affine import AffineExpr

from deplo.dialects import loop
from deplo.dialects.alignment import divisor
from deplo.interpreter.tensor_ir import evaluate_index

DIMS = [AffineExpr.dimension(i) for i in range(3)]
BODY = """
kernel.func @k(%x: memref<64xf32>) blocks(2) threads(64) {{
  %t = kernel.thread_id
  %b = kernel.block_id
  %c = arith.constant 12 : index
  %row = loop.index [%t * 6 + %b * 9]
  %i = loop.index [{}]
}}"""


def divides(text: str) -> int:
    """The divisor of an index of the operands above."""
    module = parse(BODY.format(text))
    index = [op for op in module.walk() if isinstance(op, loop.IndexOp)][-1]
    return divisor(index.map.data.results[0], index.operands_)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("%t", 1),
        ("%t * 4", 4),
        ("%t * 4 + %b * 6", 2),
        ("%t * 4 mod 64", 4),
        ("%t * 4 mod 6", 2),
        ("%t * 8 floordiv 2", 4),
        ("%t * 8 floordiv 3", 1),
        ("(%t + 1) floordiv 2 * 16", 16),
        ("%row", 3),
        ("%row * 4 + 8", 4),
        ("%c", 12),
        ("%b * 12", 12),
        ("0", 0),
        ("20", 20),
    ],
)
def test_the_divisor_of_an_index(text: str, number: int) -> None:
    assert divides(text) == number


def expressions() -> st.SearchStrategy[AffineExpr]:
    numbers = st.integers(1, 24)
    leaves = st.sampled_from(DIMS) | st.integers(-24, 24).map(AffineExpr.constant)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda p: p[0] + p[1]),
            st.tuples(inner, numbers).map(lambda p: p[0] * p[1]),
            st.tuples(inner, numbers).map(lambda p: p[0] // p[1]),
            st.tuples(inner, numbers).map(lambda p: p[0] % p[1]),
        ),
        max_leaves=6,
    )


@given(expressions(), st.lists(st.integers(-200, 200), min_size=3, max_size=3))
def test_it_divides_the_index_whatever_its_operands_are(
    expr: AffineExpr, values: list[int]
) -> None:
    module = parse(BODY.format("%t"))
    operands = [
        op.results[0] for op in module.walk() if op.name in ("kernel.thread_id", "kernel.block_id")
    ]
    number = divisor(expr, [*operands, operands[0]])
    value = int(evaluate_index(expr, [*values[:2], values[0]]))
    assert value % number == 0 if number else value == 0
