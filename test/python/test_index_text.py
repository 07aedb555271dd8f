"""The text of an index expression is the text of what reading it gives, and keeps the value."""

from io import StringIO

from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineExpr,
    AffineSet,
)
from xdsl.parser import Parser
from xdsl.utils.base_printer import BasePrinter

from deplo.index.affine import binary
from deplo.index.text import index_text, parse_constraint, parse_index_expr, print_condition

DIMS = [AffineExpr.dimension(i) for i in range(3)]
SIZES = [AffineExpr.symbol(i) for i in range(2)]
POINTS = st.tuples(
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.integers(1, 5), min_size=2, max_size=2),
)


def expressions():
    """Expressions as passes build them, folded or not, with sizes."""
    leaves = st.one_of(st.sampled_from(DIMS + SIZES), constants(-4, 5))

    def extend(inner):
        kinds = [
            (AffineBinaryOpKind.Add, inner),
            (AffineBinaryOpKind.Mul, constants(-3, 3)),
            (AffineBinaryOpKind.FloorDiv, constants(1, 4)),
            (AffineBinaryOpKind.Mod, constants(1, 4)),
        ]
        built = [
            st.builds(build, st.just(kind), inner, right)
            for kind, right in kinds
            for build in (binary, AffineBinaryOpExpr)
        ]
        return st.one_of(built)

    return st.recursive(leaves, extend, max_leaves=8)


def constants(low, high):
    return st.integers(low, high).map(AffineExpr.constant)


def read(text, parse):
    parser = Parser(Context(), text)

    def dim():
        start = parser.pos
        name = parser.parse_optional_identifier()
        if name is not None and name.startswith("d"):
            return AffineExpr.dimension(int(name[1:]))
        parser._resume_from(start)
        return None

    return parse(parser, dim)


def condition_text(expr):
    stream = StringIO()
    printer = BasePrinter(stream)
    at_least_zero = AffineConstraintExpr(AffineConstraintKind.ge, expr, AffineExpr.constant(0))
    condition = AffineSet(3, 2, (at_least_zero,))
    print_condition(printer, condition, lambda i: printer.print_string(f"d{i}"), ", ")
    return stream.getvalue()


def test_constants_of_a_sum_are_added_up():
    inner = AffineBinaryOpExpr(AffineBinaryOpKind.Add, DIMS[0], AffineExpr.constant(2))
    outer = AffineBinaryOpExpr(AffineBinaryOpKind.Add, inner, AffineExpr.constant(-1))
    assert index_text(outer) == "d0 + 1"


@examples(300)
@given(expressions(), POINTS)
def test_expression_is_printed_as_it_is_read(expr, point):
    text = index_text(expr)
    again = read(text, parse_index_expr)
    assert index_text(again) == text
    assert again.eval(*point) == expr.eval(*point)


@examples(300)
@given(expressions(), POINTS)
def test_condition_is_printed_as_it_is_read(expr, point):
    text = condition_text(expr)
    again = read(text, parse_constraint)
    assert condition_text(again) == text
    assert (again.eval(*point) >= 0) == (expr.eval(*point) >= 0)
