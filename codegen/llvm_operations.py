"""The operations of the `llvm` dialect as LLVM's own text has them, a row each: `PRINTED`."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..errors import DeploError


@dataclass
class Scope:
    """What the operations of a function are printed with."""

    called: dict[str, str]
    """The declarations of the functions that are called, by name."""
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """What stands for each value: a name, or a constant."""
    labels: dict[Block, str] = field(default_factory=dict[Block, str])

    def declare(self, name: str, result: str, arguments: Sequence[str]) -> None:
        """Note that a function of such types is called."""
        self.called.setdefault(name, declaration(name, result, arguments))


def declaration(name: str, result: str, arguments: Sequence[str]) -> str:
    """A function of such types, defined elsewhere."""
    return f"declare {result} {symbol(name)}({', '.join(arguments)})"


def symbol(name: str) -> str:
    """The name of a function as LLVM's text has it: bytes that its quotes cannot hold are hexadecimal."""
    plain = (byte in range(0x20, 0x7F) and byte not in b'"\\' for byte in name.encode())
    text = (chr(b) if held else f"\\{b:02X}" for b, held in zip(name.encode(), plain, strict=True))
    return f'@"{"".join(text)}"'


@lru_cache(1024)
def type_text(type: Attribute) -> str:
    """A type. Raises DeploError for one that no kernel has."""
    match type:
        case IntegerType(width=width):
            return f"i{width.data}"
        case Float16Type():
            return "half"
        case Float32Type():
            return "float"
        case Float64Type():
            return "double"
        case llvm.LLVMPointerType():
            return "ptr"
        case llvm.LLVMVoidType():
            return "void"
        case VectorType():
            return f"<{type.element_count()} x {type_text(type.element_type)}>"
        case _:
            raise DeploError(f"a value of {type} has no text in LLVM IR here")


_LONG = 1e6
"""Whole floats below are written as decimals."""


def number_text(value: Attribute) -> str:
    """A constant. Raises DeploError for one that no kernel has."""
    match value:
        case IntegerAttr():
            return str(value.value.data)
        case FloatAttr(type=Float16Type() | Float32Type() | Float64Type() as type):
            code = {Float16Type: "e", Float32Type: "f"}.get(cast(Any, type.__class__), "d")
            (rounded,) = struct.unpack(code, struct.pack(code, value.value.data))
            if rounded.is_integer() and abs(rounded) < _LONG:
                return f"{rounded:.1f}"
            # LLVM takes decimals that are exact alone; in hexadecimal, a number of any type as 64 bits.
            return f"0x{struct.unpack('Q', struct.pack('d', rounded))[0]:016x}"
        case _:
            raise DeploError(f"the constant {value} has no text in LLVM IR here")


def _typed(to: Scope, value: SSAValue) -> str:
    """A value behind its type."""
    return f"{type_text(value.type)} {to.names[value]}"


def _listed(to: Scope, values: Sequence[SSAValue]) -> str:
    return ", ".join([_typed(to, value) for value in values])


def _binary(to: Scope, op: Operation, word: str) -> str:
    left, right = op.operands
    return f"{word} {_typed(to, left)}, {to.names[right]}"


def _called(
    to: Scope, op: Operation, name: str, arguments: Sequence[SSAValue], flags: str = ""
) -> str:
    result = type_text(op.results[0].type) if op.results else "void"
    to.declare(name, result, [type_text(value.type) for value in arguments])
    return f"call {flags}{result} {symbol(name)}({_listed(to, arguments)})"


def _integer(word: str) -> Callable[[Scope, Any], str]:
    def printed(to: Scope, op: Any) -> str:
        flags = op.properties.get("overflowFlags")
        return _binary(to, op, f"{word} {_overflow(flags.value.data)}" if flags else word)

    return printed


@lru_cache
def _overflow(code: int) -> str:
    words = [flag.value for flag in llvm.OverflowAttr.from_int(code).data]
    return "".join(f"{word} " for word in sorted(words) if word != "none").rstrip()


def _fast_math(flags: llvm.FastMathAttr) -> str:
    return "".join(f"{word} " for word in sorted(flag.value for flag in flags.data))


def _float(word: str) -> Callable[[Scope, Any], str]:
    return lambda to, op: _binary(to, op, f"{word} {_fast_math(op.fastmathFlags)}".rstrip())


def _cast(word: str) -> Callable[[Scope, Any], str]:
    return lambda to, op: f"{word} {_typed(to, op.operands[0])} to {type_text(op.results[0].type)}"


def _compare_integers(to: Scope, op: llvm.ICmpOp) -> str:
    return _binary(to, op, f"icmp {llvm.ICmpPredicateFlag.from_int(op.predicate.value.data).value}")


def _compare_floats(to: Scope, op: llvm.FCmpOp) -> str:
    return _binary(to, op, f"fcmp {llvm.FCmpPredicateFlag.from_int(op.predicate.value.data).value}")


def _aligned(op: llvm.LoadOp | llvm.StoreOp | llvm.AllocaOp) -> str:
    ordering = op.properties.get("ordering")
    atomic = isinstance(ordering, IntegerAttr) and ordering.value.data != 0
    if atomic or {"volatile_", "nontemporal"} & set(op.properties):
        raise DeploError(f"{op.name}: an access of a special kind has no text in LLVM IR here")
    return f", align {op.alignment.value.data}" if op.alignment else ""


def _load(to: Scope, op: llvm.LoadOp) -> str:
    return f"load {type_text(op.results[0].type)}, {_typed(to, op.ptr)}{_aligned(op)}"


def _store(to: Scope, op: llvm.StoreOp) -> str:
    return f"store {_typed(to, op.value)}, {_typed(to, op.ptr)}{_aligned(op)}"


def _address(to: Scope, op: llvm.GEPOp) -> str:
    base, *given = op.operands
    left = iter(given)
    indices = [
        _typed(to, next(left)) if number == llvm.GEP_USE_SSA_VAL else f"i32 {number}"
        for number in _constant_indices(op.properties["rawConstantIndices"])
    ]
    where = "inbounds " if "inbounds" in op.properties else ""
    element = type_text(op.properties["elem_type"])
    return f"getelementptr {where}{element}, {', '.join([_typed(to, base), *indices])}"


@lru_cache(64)
def _constant_indices(indices: Any) -> Sequence[int]:
    return indices.get_values()


def _call(to: Scope, op: llvm.CallOp) -> str:
    assert op.callee is not None
    return _called(to, op, op.callee.root_reference.data, op.args, _fast_math(op.fastmathFlags))


def _inline_assembly(to: Scope, op: llvm.InlineAsmOp) -> str:
    result = type_text(op.results[0].type) if op.results else "void"
    effects = "sideeffect " if op.has_side_effects is not None else ""
    text = f'asm {effects}"{op.asm_string.data}", "{op.constraints.data}"'
    return f"call {result} {text}({_listed(to, op.operands)})"


def _fma(to: Scope, op: llvm.FMAOp) -> str:
    type = op.res.type
    lanes = f"v{type.element_count()}" if isinstance(type, VectorType) else ""
    element = cast(Any, type).element_type if isinstance(type, VectorType) else type
    return _called(to, op, f"llvm.fma.{lanes}f{element.bitwidth}", op.operands)


def _insert_element(to: Scope, op: llvm.InsertElementOp) -> str:
    return f"insertelement {_listed(to, op.operands)}"


def _shuffle(to: Scope, op: llvm.ShuffleVectorOp) -> str:
    return f"shufflevector {_typed(to, op.v1)}, {_typed(to, op.v2)}, {_mask(op.mask)}"


@lru_cache(1024)
def _mask(mask: Any) -> str:
    lanes = mask.get_values()
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _select(to: Scope, op: llvm.SelectOp) -> str:
    return f"select {_listed(to, op.operands)}"


def _branch(to: Scope, op: llvm.BrOp) -> str:
    return f"br label %{to.labels[op.successor]}"


def _conditional_branch(to: Scope, op: llvm.CondBrOp) -> str:
    targets = ", ".join(f"label %{to.labels[block]}" for block in op.successors)
    return f"br {_typed(to, op.cond)}, {targets}"


def _return(to: Scope, op: llvm.ReturnOp) -> str:
    return f"ret {_typed(to, op.operands[0])}" if op.operands else "ret void"


PRINTED: dict[type[Operation], Callable[[Scope, Any], str]] = {
    llvm.AddOp: _integer("add"),
    llvm.SubOp: _integer("sub"),
    llvm.MulOp: _integer("mul"),
    llvm.ShlOp: _integer("shl"),
    llvm.SDivOp: _integer("sdiv"),
    llvm.UDivOp: _integer("udiv"),
    llvm.SRemOp: _integer("srem"),
    llvm.URemOp: _integer("urem"),
    llvm.AndOp: _integer("and"),
    llvm.OrOp: _integer("or"),
    llvm.XOrOp: _integer("xor"),
    llvm.LShrOp: _integer("lshr"),
    llvm.AShrOp: _integer("ashr"),
    llvm.FAddOp: _float("fadd"),
    llvm.FSubOp: _float("fsub"),
    llvm.FMulOp: _float("fmul"),
    llvm.FDivOp: _float("fdiv"),
    llvm.FNegOp: lambda to, op: f"fneg {_fast_math(op.fastmathFlags)}{_typed(to, op.arg)}",
    llvm.ICmpOp: _compare_integers,
    llvm.FCmpOp: _compare_floats,
    llvm.TruncOp: _cast("trunc"),
    llvm.ZExtOp: _cast("zext"),
    llvm.SExtOp: _cast("sext"),
    llvm.PtrToIntOp: _cast("ptrtoint"),
    llvm.BitcastOp: _cast("bitcast"),
    llvm.FPExtOp: _cast("fpext"),
    llvm.FPTruncOp: _cast("fptrunc"),
    llvm.SIToFPOp: _cast("sitofp"),
    llvm.LoadOp: _load,
    llvm.StoreOp: _store,
    llvm.GEPOp: _address,
    llvm.AllocaOp: lambda to, op: (
        f"alloca {type_text(op.elem_type)}, {_typed(to, op.size)}{_aligned(op)}"
    ),
    llvm.CallOp: _call,
    llvm.CallIntrinsicOp: lambda to, op: _called(to, op, op.intrin.data, op.args),
    llvm.InlineAsmOp: _inline_assembly,
    llvm.FMAOp: _fma,
    llvm.SelectOp: _select,
    llvm.InsertElementOp: _insert_element,
    llvm.ShuffleVectorOp: _shuffle,
    llvm.BrOp: _branch,
    llvm.CondBrOp: _conditional_branch,
    llvm.ReturnOp: _return,
}
"""Operation class -> its text, without its result."""
