"""Variables of the `cuda` dialect, and its names."""

from __future__ import annotations

import re
from typing import ClassVar

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

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


@irdl_op_definition
class VariableOp(IRDLOperation):
    """A mutable local, `float acc = 0.0f;` or `float v;`: `%acc = cuda.variable %zero : f32`."""

    name = "cuda.variable"

    T: ClassVar = VarConstraint("T", AnyAttr())

    initial = opt_operand_def(T)
    result = result_def(T)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "($initial^)? attr-dict `:` type($result)"

    def __init__(self, type: Attribute, initial: SSAValue | None = None):
        super().__init__(operands=[initial], result_types=[type])


@irdl_op_definition
class AssignOp(IRDLOperation):
    """`acc = v;`: `cuda.assign %acc, %v : f32`."""

    name = "cuda.assign"

    T: ClassVar = VarConstraint("T", AnyAttr())

    variable = operand_def(T)
    value = operand_def(T)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$variable `,` $value attr-dict `:` type($value)"

    def __init__(self, variable: SSAValue, value: SSAValue):
        super().__init__(operands=[variable, value])

    def verify_(self) -> None:
        if not isinstance(self.variable.owner, VariableOp):
            raise VerifyException("assigns to a cuda.variable only")
