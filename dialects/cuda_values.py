"""Values and types of the `cuda` dialect that others are made of: pointers, numbers, indices and tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    i1,
)
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .index import (
    AffineIndex,
    Conditions,
    affine_map,
    condition,
    normalize_operands,
    verify_operand_count,
)
from .scalars import verify_bits
from .syntax import parse_scalar, print_scalar, resolve_scalar, scalar_attr

INDEX = IndexType()
"""Index values; `int` or `long long`, as the function that they stand in says."""

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
"""Symbols that may reach C++ text."""

RESERVED = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const
    constexpr const_cast continue decltype default delete do double dynamic_cast else enum explicit
    export extern false float for friend goto if inline int long mutable namespace new noexcept not
    not_eq nullptr operator or or_eq private protected public register reinterpret_cast return short
    signed sizeof static static_assert static_cast struct switch template this thread_local throw true
    try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
    main TensorMap atomicAdd threadIdx blockIdx blockDim gridDim warpSize""".split()
)
"""Words that are not free for a name in CUDA C++."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """A pointer to global or shared memory: `!cuda.ptr<f32>`, `!cuda.ptr<f32, const>`."""

    name = "cuda.ptr"

    element: Attribute
    read_only: IntegerAttr

    def __init__(self, element: Attribute, *, read_only: bool = False):
        super().__init__(element, IntegerAttr(int(read_only), i1))

    @property
    def is_read_only(self) -> bool:
        """Whether the pointer is to const."""
        return bool(self.read_only.value.data)

    def verify(self) -> None:
        verify_bits(self.element)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            if self.is_read_only:
                printer.print_string(", const")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            read_only = parser.parse_optional_punctuation(",") is not None
            if read_only:
                parser.parse_keyword("const")
        return (element, IntegerAttr(int(read_only), i1))


# --------------------------------------------------------------------------- values


@irdl_op_definition
class ThreadIdxOp(IRDLOperation):
    """`threadIdx.x`: `%t = cuda.thread_idx`."""

    name = "cuda.thread_idx"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class BlockIdxOp(IRDLOperation):
    """`blockIdx.x`: `%b = cuda.block_idx`."""

    name = "cuda.block_idx"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class LiteralOp(IRDLOperation):
    """A literal, written where it is used: `%c = cuda.literal 0.5 : f32`."""

    name = "cuda.literal"

    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, value: float | bool, type: Attribute):
        super().__init__(properties={"value": scalar_attr(value, type)}, result_types=[type])

    def verify_(self) -> None:
        verify_bits(self.result.type)
        if self.value.type != self.result.type:
            raise VerifyException(f"value is {self.value.type}, result {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_scalar(printer, self.value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> LiteralOp:
        value, pos = parse_scalar(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type = parser.parse_type()
        return cls.create(
            properties={"value": resolve_scalar(parser, value, pos, type)},
            result_types=[type],
            attributes=attributes,
        )


@irdl_op_definition
class IndexOp(IRDLOperation):
    """Index arithmetic: `%row = cuda.index [%b floordiv 74]` is `const int row = b / 74;`.

    Dividends are never negative, so C++ `/` and `%` are floor division and its remainder.
    """

    name = "cuda.index"

    operands_ = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(INDEX)

    traits = traits_def(Pure())
    custom_directives = (AffineIndex,)
    assembly_format = "custom<AffineIndex>($operands_, $map) attr-dict"

    def __init__(self, expr: AffineExpr, operands: Sequence[SSAValue]):
        exprs, operands = normalize_operands([expr], operands)
        super().__init__(
            operands=[operands],
            properties={"map": AffineMapAttr(affine_map(len(operands), exprs))},
            result_types=[INDEX],
        )

    def verify_(self) -> None:
        verify_operand_count(self.map.data, self.operands_)
        if len(self.map.data.results) != 1:
            raise VerifyException(f"expected one expression, got {len(self.map.data.results)}")


@irdl_op_definition
class TestOp(IRDLOperation):
    """Whether all conditions hold: `%in = cuda.test [%i < 4, %j >= 1]`."""

    name = "cuda.test"

    operands_ = var_operand_def(IndexType)
    set = prop_def(AffineSetAttr)
    result = result_def(i1)

    traits = traits_def(Pure())
    custom_directives = (Conditions,)
    assembly_format = "custom<Conditions>($operands_, $set) attr-dict"

    def __init__(self, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]):
        exprs, operands = normalize_operands(exprs, operands)
        super().__init__(
            operands=[operands],
            properties={"set": AffineSetAttr(condition(len(operands), exprs))},
            result_types=[i1],
        )

    def verify_(self) -> None:
        verify_operand_count(self.set.data, self.operands_)
        if not self.set.data.constraints:
            raise VerifyException("needs at least one condition")
