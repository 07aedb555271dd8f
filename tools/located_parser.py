"""A parser that knows where each op came from and survives hostile text.

Over xDSL's parser it adds: a `FileLineColLoc` on every op that has no location; errors raised by an
op's own constraints are reported at that op; floats as bit patterns wherever MLIR reads them; and
limits, so that a few bytes of text cannot take minutes or gigabytes. Whatever goes wrong becomes one
`ParseError`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from difflib import get_close_matches

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyDenseElement,
    AnyFloat,
    ComplexType,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    IndexType,
    IntAttr,
    IntegerType,
    ModuleOp,
    RankedStructure,
    StringAttr,
)
from xdsl.ir import Attribute, AttributeInvT, Operation, Region, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineBinaryOpKind, AffineExpr, AffineMap, AffineSet
from xdsl.parser import UnresolvedOperand
from xdsl.parser.affine_parser import AffineParser
from xdsl.utils.exceptions import ParseError
from xdsl.utils.lexer import Span, Token
from xdsl.utils.mlir_lexer import MLIRTokenKind

from ..analysis.attached_messages import message_of
from ..index.affine import binary, product
from .hex_floats import HexFloatParser

MAX_NESTING = 128
"""Regions, or attributes, inside one another."""
MAX_DENSE_ELEMENTS = 1 << 22
"""Elements of one `dense<...>` literal; xDSL expands splats. Larger data belongs in arguments."""
MAX_INTEGER_WIDTH = 1 << 16
"""Bits of an `iN` type; each value of the type is checked against 2**N."""
_MAX_SUGGESTIONS = 8
"""Undefined names for which a similar name is looked up."""
_LONG_INTEGER = "Exceeds the limit"
"""How Python's message begins when an integer has more digits than it converts."""


class LocatedParser(HexFloatParser):
    """Parses one module; see the module's docstring for what it adds to `xdsl.parser.Parser`."""

    def __init__(self, ctx: Context, text: str, name: str):
        self._line_starts = _line_starts(text)
        self._file = StringAttr(name)
        self._name_spans: list[Span] = []
        self._first_uses: dict[str, tuple[Span, str]] = {}
        self._region_depth = 0
        self._attribute_depth = 0
        super().__init__(ctx, text, name)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module in the text; any failure is a `ParseError`."""
        try:
            module = super().parse_module(allow_implicit_module)
        except ParseError as error:
            raise self._sharpened(error) from error
        except RecursionError as error:
            raise ParseError(self._current_token.span, "this is nested too deeply") from error
        except Exception as error:
            raise ParseError(self._current_token.span, _message(error)) from error
        if module.location == UNKNOWN_LOC:
            module.location = self._location(0)
        return module

    def parse_operation(self) -> Operation:
        """One op, with the location of its name."""
        depth = len(self._name_spans)
        try:
            op = super().parse_operation()
        except (ParseError, RecursionError):
            raise
        except Exception as error:
            named = depth < len(self._name_spans)
            span = self._name_spans[depth] if named else self._current_token.span
            raise ParseError(span, _message(error)) from error
        span = self._name_spans[depth]
        del self._name_spans[depth:]
        if op.location == UNKNOWN_LOC:
            op.location = self._location(span.start)
        return op

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._name_spans.append(self._current_token.span)
        return results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        try:
            return super()._get_op_by_name(name)
        except ParseError as error:
            raise ParseError(self._name_spans[-1], self._unknown_op(name)) from error

    def _unknown_op(self, name: str) -> str:
        dialect_name, _, _ = name.partition(".")
        dialect = self.ctx.get_optional_dialect(dialect_name)
        known = [op.name for op in dialect.operations] if dialect is not None else []
        candidates = known or sorted(self.ctx.registered_dialect_names)
        near = get_close_matches(name if known else dialect_name, candidates, n=3)
        kind = "op" if known else "dialect"
        hint = f"; did you mean the {kind} {' or '.join(repr(n) for n in near)}?" if near else ""
        return f"unknown op '{name}'{hint}"

    def resolve_operand(
        self, operand: UnresolvedOperand, type: AttributeInvT
    ) -> SSAValue[AttributeInvT]:
        """The value that `operand` names, remembering the place in case it is never defined."""
        if operand.operand_name not in self.ssa_values:
            self._note_first_use(operand)
        return super().resolve_operand(operand, type)

    def _note_first_use(self, operand: UnresolvedOperand) -> None:
        """Remember where an unknown name was met and, for the first few, which name it may mean."""
        name = operand.operand_name
        if name in self._first_uses:
            return
        few = len(self._first_uses) < _MAX_SUGGESTIONS
        near = get_close_matches(name, list(self.ssa_values), n=1) if few else []
        self._first_uses[name] = (operand.span, f"; did you mean %{near[0]}?" if near else " here")

    def parse_optional_region(
        self, arguments: Iterable[HexFloatParser.Argument] | None = None
    ) -> Region | None:
        """A region, no more than `MAX_NESTING` deep."""
        self._region_depth += 1
        if self._region_depth > MAX_NESTING:
            self.raise_error(f"regions are nested more than {MAX_NESTING} deep")
        region = super().parse_optional_region(arguments)
        self._region_depth -= 1
        return region

    def parse_optional_attribute(self) -> Attribute | None:
        """An attribute, no more than `MAX_NESTING` deep."""
        self._enter_attribute()
        attribute = super().parse_optional_attribute()
        self._attribute_depth -= 1
        return attribute

    def parse_optional_type(self) -> TypeAttribute | None:
        """A type, no more than `MAX_NESTING` deep and, if an integer, no wider than the limit."""
        self._enter_attribute()
        span = self._current_token.span
        type = super().parse_optional_type()
        if _integer_bits(type) > MAX_INTEGER_WIDTH:
            raise ParseError(span, f"integer types are limited to {MAX_INTEGER_WIDTH} bits")
        self._attribute_depth -= 1
        return type

    def _enter_attribute(self) -> None:
        self._attribute_depth += 1
        if self._attribute_depth > MAX_NESTING:
            self.raise_error(f"attributes are nested more than {MAX_NESTING} deep")

    def parse_affine_map(self) -> AffineMap:
        """A map whose expressions may multiply and divide by symbols."""
        return _SemiAffineParser(self._parser_state).parse_affine_map()

    def parse_affine_set(self) -> AffineSet:
        """A set whose expressions may multiply and divide by symbols."""
        return _SemiAffineParser(self._parser_state).parse_affine_set()

    def _parse_dense_literal_type(
        self,
    ) -> RankedStructure[IntegerType | IndexType | AnyFloat | ComplexType]:
        span = self._current_token.span
        type = super()._parse_dense_literal_type()
        self._check_dense_size(type.get_shape(), span)
        return type

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """A `dense<...>` literal of no more than `MAX_DENSE_ELEMENTS` elements."""
        if type is not None:
            self._check_dense_size(type.get_shape(), self._current_token.span)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _check_dense_size(self, shape: Iterable[int], span: Span) -> None:
        if (count := math.prod(shape)) > MAX_DENSE_ELEMENTS:
            raise ParseError(
                span,
                f"dense literal of {count} elements is over the limit of {MAX_DENSE_ELEMENTS}; "
                "pass large data as a function argument",
            )

    def _sharpened(self, error: ParseError) -> ParseError:
        """`error`, but an undefined value is reported at its use, not at the end of the file."""
        if error.msg == "Could not parse entire input!":
            at_end = self._current_token.kind == MLIRTokenKind.EOF
            message = "the input holds no program" if at_end else "an op is expected here"
            return ParseError(error.span, message)
        undefined = [name for name in self._first_uses if name in self.forward_ssa_references]
        if not undefined or not error.msg.startswith("values used but not defined"):
            return error
        span, hint = self._first_uses[undefined[0]]
        return ParseError(span, f"value %{undefined[0]} is not defined{hint}")

    def _location(self, position: int) -> FileLineColLoc:
        line = bisect_right(self._line_starts, position)
        column = position - self._line_starts[line - 1] + 1
        return FileLineColLoc(self._file, IntAttr(line), IntAttr(column))


class _SemiAffineParser(AffineParser):
    """xDSL's parser of affine expressions refuses products with and quotients by symbols."""

    def _create_binop_expr(
        self, lhs: AffineExpr, rhs: AffineExpr, binop: Token[MLIRTokenKind]
    ) -> AffineExpr:
        if binop.text == "-":
            return lhs + product(rhs, -1)
        kinds = {kind.get_token(): kind for kind in AffineBinaryOpKind}
        if binop.text not in kinds:
            raise ParseError(binop.span, f"unknown operator {binop.text}")
        return binary(kinds[binop.text], lhs, rhs)


def _integer_bits(type: Attribute | None) -> int:
    return type.bitwidth if isinstance(type, IntegerType) else 0


def _line_starts(text: str) -> list[int]:
    starts = [0]
    found = text.find("\n")
    while found >= 0:
        starts.append(found + 1)
        found = text.find("\n", found + 1)
    return starts


def _message(error: Exception) -> str:
    """What an exception from a constraint or a conversion says, as part of a diagnostic."""
    if isinstance(error, MemoryError):
        return "this needs more memory than there is"
    if isinstance(error, NotImplementedError) and not str(error):
        return "xDSL does not implement this"
    text = message_of(error)
    return "integer literal has too many digits" if text.startswith(_LONG_INTEGER) else text
