"""A parser that reads floats written as hexadecimal bit patterns, as MLIR does.

xDSL reads `0x7F800000 : f32`, but takes the elements of `dense<0x7F800000> : tensor<1xf32>` for integers
and knows no hexadecimal elements of `array<f32: ...>`; its printer writes both, for infinities and NaN.
A pattern that is wider than its type, has a sign, or is a NaN that the type's Python value cannot hold
is refused.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    ComplexType,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    RankedStructure,
)
from xdsl.parser import Parser
from xdsl.parser.attribute_parser import AttrParser
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind


class _Bits(int):
    """An integer that the program writes in hexadecimal."""


class _Element(AttrParser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """An element of `dense<...>` whose type is not known yet."""

    def to_type(
        self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType
    ) -> Any:
        """The value of the element as one of `type`."""
        inner = type.element_type if isinstance(type, ComplexType) else type
        if not isinstance(inner, AnyFloat):
            return super().to_type(parser, type)
        if isinstance(type, ComplexType) and isinstance(self.value, tuple):
            return tuple(self._part(parser, part, inner) for part in self.value)
        if isinstance(self.value, _Bits):
            return _float_of(parser, self.value, inner, self.span)
        return super().to_type(parser, type)

    def _part(self, parser: AttrParser, part: float, type: AnyFloat) -> float:
        return _float_of(parser, part, type, self.span) if isinstance(part, _Bits) else float(part)


class HexFloatParser(Parser):
    """xDSL's parser with hexadecimal floats; see the module's docstring."""

    _TensorLiteralElement = _Element

    def _parse_optional_bool_int_or_float(
        self,
    ) -> tuple[bool, Span] | tuple[int, Span] | tuple[float, Span] | None:
        is_hex = self._stands_before_hex()
        found = super()._parse_optional_bool_int_or_float()
        return (_Bits(found[0]), found[1]) if found is not None and is_hex else found

    def _stands_before_hex(self) -> bool:
        """Whether the next token is a hexadecimal integer, perhaps after a minus."""
        token = self._current_token
        if token.kind == MLIRTokenKind.MINUS:
            self._consume_token(MLIRTokenKind.MINUS)
            after = self._current_token
            self._resume_from(token.span.start)
            token = after
        return token.kind == MLIRTokenKind.INTEGER_LIT and token.text.startswith("0x")

    def _parse_optional_complex(self) -> Any:
        """`(a, b)`; a pattern may stand beside a decimal float."""
        start = self._current_token.span.start
        if self.parse_optional_punctuation("(") is None:
            return None
        real, _ = self._parse_bool_int_or_float()
        self.parse_punctuation(",")
        imaginary, _ = self._parse_bool_int_or_float()
        end = self._current_token.span.end
        self.parse_punctuation(")")
        kinds = {type(part) for part in (real, imaginary)} - {_Bits}
        if len(kinds) > 1:
            self.raise_error("Complex value must be either (float, float) or (int, int)")
        return (real, imaginary), Span(start, end, self._current_token.span.input)

    def parse_optional_builtin_int_or_float_attr(self) -> IntegerAttr | FloatAttr | None:
        """A number with its type, if one stands here."""
        if not self._stands_before_hex():
            return super().parse_optional_builtin_int_or_float_attr()
        value, span = self._parse_bool_int_or_float()
        value = int(value)
        if self._current_token.text != ":":
            return IntegerAttr(value, 64)
        type = self._parse_attribute_type()
        if isinstance(type, AnyFloat):
            return FloatAttr(_float_of(self, _Bits(value), type, span), type)
        if isinstance(type, IntegerType | IndexType):
            return IntegerAttr(value, type)
        self.raise_error("Invalid type given for integer or float attribute.")

    def _parse_builtin_densearray_attr(self) -> DenseArrayBase | None:
        start = self._current_token.span.start
        self.parse_punctuation("<")
        type = self.parse_attribute()
        if not isinstance(type, AnyFloat) or self.parse_optional_punctuation(":") is None:
            self._resume_from(start)
            return super()._parse_builtin_densearray_attr()

        def element() -> float:
            value, span = self._parse_bool_int_or_float()
            if isinstance(value, _Bits):
                return _float_of(self, value, type, span)
            if not isinstance(value, float):
                self.raise_error("Expected float literal", span)
            return value

        values = self.parse_comma_separated_list(self.Delimiter.NONE, element)
        self.parse_punctuation(">", " in dense array")
        return DenseArrayBase.from_list(type, values)

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """`dense<...>`; a string of bytes begins with `0x` and holds values that can be printed."""
        start = self._current_token.span.start
        self._parse_optional_token(MLIRTokenKind.LESS)
        token = self._current_token
        self._resume_from(start)
        is_bytes = token.kind == MLIRTokenKind.STRING_LIT
        if is_bytes and not token.text.startswith('"0x'):
            self.raise_error("the bytes of a dense literal begin with 0x", token.span)
        attr = super().parse_dense_int_or_fp_elements_attr(type)
        if is_bytes:
            self._check_bytes(attr, token.span)
        return attr

    def _check_bytes(self, attr: DenseIntOrFPElementsAttr, span: Span) -> None:
        type = attr.get_element_type()
        inner: Any = type.element_type if isinstance(type, ComplexType) else type
        if isinstance(inner, IntegerType) and inner.bitwidth == 1:
            self.raise_error("write true and false: versions of MLIR differ in the bytes of i1", span)
        if not isinstance(inner, AnyFloat):
            return
        data = attr.data.data
        if inner.pack(tuple(inner.iter_unpack(data))) != data:
            self.raise_error(f"a NaN among the bytes cannot be kept as a value of {inner}", span)


def _float_of(parser: AttrParser, bits: _Bits, type: AnyFloat, span: Span) -> float:
    """The float of `type` with the pattern `bits`, written at `span`."""
    if bits < 0 or span.text.startswith("-"):
        parser.raise_error("a hexadecimal float has no minus; its first bit is the sign", span)
    if bits.bit_length() > type.bitwidth:
        parser.raise_error(f"0x{bits:X} is wider than the {type.bitwidth} bits of {type}", span)
    raw = bits.to_bytes(type.compile_time_size, "little")
    value = next(iter(type.iter_unpack(raw)))
    if (kept := type.pack((value,))) != raw:
        parser.raise_error(
            f"0x{bits:X} is a NaN that cannot be kept as a value of {type}; "
            f"write 0x{kept[::-1].hex().upper()}",
            span,
        )
    return value
