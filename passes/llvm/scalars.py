"""Scalar operations of `arith`, `math`, `cf` and `func` as `llvm` operations: a row each.

`LOWERINGS` maps an operation's class to a function that inserts its `llvm` form and gives its
results. What the CPU back end expands first (`expand-math`) is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, cf, func, llvm, math
from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
    i1,
    i32,
    i64,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ...errors import DeploError
from .accesses import EMPTY, NO_FLAGS, compare, constant, convert_type, insert, place

Results = Sequence[SSAValue]
Lowering = Callable[[Builder, Operation], Results]

_INTEGER_BINARY: dict[type[Operation], type[Operation]] = {
    arith.AddiOp: llvm.AddOp,
    arith.SubiOp: llvm.SubOp,
    arith.MuliOp: llvm.MulOp,
    arith.DivSIOp: llvm.SDivOp,
    arith.DivUIOp: llvm.UDivOp,
    arith.RemSIOp: llvm.SRemOp,
    arith.RemUIOp: llvm.URemOp,
    arith.AndIOp: llvm.AndOp,
    arith.OrIOp: llvm.OrOp,
    arith.XOrIOp: llvm.XOrOp,
    arith.ShLIOp: llvm.ShlOp,
    arith.ShRUIOp: llvm.LShrOp,
    arith.ShRSIOp: llvm.AShrOp,
}

_FLOAT_BINARY: dict[type[Operation], tuple[type[llvm.AbstractFloatArithOp], bool]] = {
    arith.AddfOp: (llvm.FAddOp, True),
    arith.SubfOp: (llvm.FSubOp, False),
    arith.MulfOp: (llvm.FMulOp, True),
    arith.DivfOp: (llvm.FDivOp, False),
}
"""The `llvm` op, and whether it may be contracted with its neighbour to one fused operation.

A subtraction may not: `x * s - max(x * s)` is 0 for the largest `x`, as in PyTorch."""

_INTRINSICS: dict[type[Operation], str] = {
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
    arith.MaxSIOp: "smax",
    arith.MinSIOp: "smin",
    arith.MaxUIOp: "umax",
    arith.MinUIOp: "umin",
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.FloorOp: "floor",
    math.TruncOp: "trunc",
    math.RoundEvenOp: "roundeven",
    math.SqrtOp: "sqrt",
    math.CopySignOp: "copysign",
    math.FmaOp: "fma",
}
"""The stem of the intrinsic; its type's name follows. `maximum` and `minimum` give NaN for NaN."""

_CONTRACT = FastMathFlag.ALLOW_CONTRACT


def integer_type(type: Attribute) -> IntegerType:
    """`type`, known to be an integer type."""
    assert isinstance(type, IntegerType)
    return cast(IntegerType, type)


def type_suffix(type: Attribute) -> str:
    """How an intrinsic's name spells a type: `f32`, `i64`, `v8f32`."""
    if isinstance(type, VectorType):
        (lanes,) = type.shape
        return f"v{lanes.data}{type_suffix(type.element_type)}"
    assert isinstance(type, IntegerType | AnyFloat)
    return f"{'i' if isinstance(type, IntegerType) else 'f'}{type.bitwidth}"


def _integer_binary(builder: Builder, op: Operation) -> Results:
    flags = NO_FLAGS if type(op) in _WITH_OVERFLOW_FLAGS else EMPTY
    return [insert(builder, _INTEGER_BINARY[type(op)], op.operands, op.operands[0].type, flags)]


_WITH_OVERFLOW_FLAGS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp)


def _float_binary(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, arith.FloatingPointLikeBinaryOperation)
    target, contracts = _FLOAT_BINARY[type(op)]
    flags = _fast_math((*op.fastmath.data, *((_CONTRACT,) if contracts else ())))
    return [insert(builder, target, op.operands, op.operands[0].type, flags)]


@cache
def _fast_math(flags: tuple[FastMathFlag, ...]) -> Mapping[str, Attribute]:
    return {"fastmathFlags": llvm.FastMathAttr(flags)}


def intrinsic(builder: Builder, name: str, args: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """Insert a call of the intrinsic `name`, spelt in full."""
    op = llvm.CallIntrinsicOp.create(
        operands=args, result_types=[result], properties=_intrinsic(name, len(args))
    )
    place(builder, op)
    return op.results[0]


@lru_cache(1024)
def _intrinsic(name: str, count: int) -> Mapping[str, Attribute]:
    """The properties of a call of an intrinsic with so many arguments."""
    segments = DenseArrayBase.from_list(i32, [count, 0])
    return {**llvm.CallIntrinsicOp(name, [], []).properties, "operandSegmentSizes": segments}


def _simple_intrinsic(builder: Builder, op: Operation) -> Results:
    result = op.operands[0].type
    name = f"llvm.{_INTRINSICS[type(op)]}.{type_suffix(result)}"
    return [intrinsic(builder, name, op.operands, result)]


EXTREMA: tuple[type[arith.MaximumfOp | arith.MinimumfOp], ...] = (
    arith.MaximumfOp,
    arith.MinimumfOp,
)


def extremum_of_any_order(op: Operation) -> str | None:
    """The intrinsic of a step of a reduction whose order is the compiler's choice.

    Which of two zeros is the larger one is its choice, too: no instruction knows, so it would take several.
    """
    if not isinstance(op, EXTREMA) or FastMathFlag.REASSOC not in op.fastmath.data:
        return None
    return f"llvm.{_INTRINSICS[type(op)]}.{type_suffix(op.result.type)}"


def _extremum(builder: Builder, op: Operation) -> Results:
    if (name := extremum_of_any_order(op)) is None:
        return _simple_intrinsic(builder, op)
    assert isinstance(op, EXTREMA)
    numbers = [flag for flag in op.fastmath.data if flag is FastMathFlag.NO_NANS]
    flags = llvm.FastMathAttr((FastMathFlag.NO_SIGNED_ZEROS, *numbers))
    # An intrinsic's own operation can have no flags where it becomes LLVM's text.
    call = llvm.CallOp(name, *op.operands, return_type=op.results[0].type, fastmath=flags)
    return builder.insert(call).results


def _constant(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, arith.ConstantOp)
    value, type = op.value, convert_type(op.result.type)
    match value:
        case FloatAttr(type=BFloat16Type()):
            raise DeploError("a bf16 constant reached convert-to-llvm; run `expand-math` first")
        case IntegerAttr():
            return [constant(builder, value.value.data, integer_type(type))]
        case FloatAttr():
            return [insert(builder, llvm.ConstantOp, (), type, {"value": value})]
        case _:
            raise DeploError(f"a constant of {op.result.type} inside a kernel is not supported")


def _cmpi(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, arith.CmpiOp)
    return [insert(builder, llvm.ICmpOp, op.operands, i1, _code(op.predicate.value.data))]


@cache
def _code(predicate: int) -> Mapping[str, Attribute]:
    return {"predicate": IntegerAttr(predicate, i64)}


def _cmpf(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, arith.CmpfOp)
    code = {**_code(op.predicate.value.data), **_fast_math(())}
    return [insert(builder, llvm.FCmpOp, op.operands, i1, code)]


def _select(builder: Builder, op: Operation) -> Results:
    return [insert(builder, llvm.SelectOp, op.operands, op.operands[1].type, _fast_math(()))]


def _negf(builder: Builder, op: Operation) -> Results:
    return builder.insert(llvm.FNegOp(op.operands[0])).results


def _absi(builder: Builder, op: Operation) -> Results:
    value = op.operands[0]
    zero = constant(builder, 0, integer_type(value.type))
    negated = builder.insert(llvm.SubOp(zero, value)).res
    return builder.insert(
        llvm.SelectOp(compare(builder, value, "slt", zero), negated, value)
    ).results


def _cast(target: Callable[[SSAValue, Attribute], Operation]) -> Lowering:
    def lower(builder: Builder, op: Operation) -> Results:
        return builder.insert(target(op.operands[0], convert_type(op.results[0].type))).results

    return lower


def _index_cast(builder: Builder, op: Operation) -> Results:
    source, target = op.operands[0], integer_type(convert_type(op.results[0].type))
    width = integer_type(source.type).bitwidth
    if width == target.bitwidth:
        return [source]
    if width < target.bitwidth:
        return builder.insert(llvm.SExtOp(source, target)).results
    return builder.insert(llvm.TruncOp(source, target)).results


def _bitcast(builder: Builder, op: Operation) -> Results:
    source, target = op.operands[0], convert_type(op.results[0].type)
    if source.type == target:
        return [source]
    return builder.insert(llvm.BitcastOp(source, target)).results


def _fptosi(builder: Builder, op: Operation) -> Results:
    """A value that fits, as `expand-math` leaves it; what saturates LLVM would convert one by one."""
    source, target = op.operands[0], op.results[0].type
    whole = intrinsic(builder, f"llvm.trunc.{type_suffix(source.type)}", [source], source.type)
    name = f"llvm.lrint.{type_suffix(target)}.{type_suffix(source.type)}"
    return [intrinsic(builder, name, [whole], target)]


def _uitofp(builder: Builder, op: Operation) -> Results:
    source, target = op.operands[0], op.results[0].type
    width = integer_type(source.type).bitwidth
    if width == i64.bitwidth:
        raise DeploError("unsigned 64-bit integers do not convert to floats here")
    # A wider signed integer holds every value; small types convert fastest from 32 bits.
    wide = IntegerType(32 if width < 32 else 64)
    extended = builder.insert(llvm.ZExtOp(source, wide)).res
    return builder.insert(llvm.SIToFPOp(extended, target)).results


def _call(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, func.CallOp)
    result = op.results[0].type
    return builder.insert(
        llvm.CallOp(op.callee.root_reference.data, *op.operands, return_type=result)
    ).results


def _branch(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, cf.BranchOp)
    place(builder, llvm.BrOp.create(operands=op.operands, successors=op.successors))
    return []


def _cond_branch(builder: Builder, op: Operation) -> Results:
    assert isinstance(op, cf.ConditionalBranchOp)
    said = op.properties
    branch = llvm.CondBrOp.create(operands=op.operands, successors=op.successors, properties=said)
    place(builder, branch)
    return []


def _return(builder: Builder, op: Operation) -> Results:
    builder.insert(llvm.ReturnOp())
    return []


LOWERINGS: dict[type[Operation], Lowering] = {
    **dict.fromkeys(_INTEGER_BINARY, _integer_binary),
    **dict.fromkeys(_FLOAT_BINARY, _float_binary),
    **dict.fromkeys(_INTRINSICS, _simple_intrinsic),
    **dict.fromkeys(EXTREMA, _extremum),
    arith.ConstantOp: _constant,
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.SelectOp: _select,
    arith.NegfOp: _negf,
    math.AbsIOp: _absi,
    arith.ExtSIOp: _cast(llvm.SExtOp),
    arith.ExtUIOp: _cast(llvm.ZExtOp),
    arith.TruncIOp: _cast(llvm.TruncOp),
    arith.ExtFOp: _cast(llvm.FPExtOp),
    arith.TruncFOp: _cast(llvm.FPTruncOp),
    arith.SIToFPOp: _cast(llvm.SIToFPOp),
    arith.UIToFPOp: _uitofp,
    arith.FPToSIOp: _fptosi,
    arith.IndexCastOp: _index_cast,
    arith.BitcastOp: _bitcast,
    func.CallOp: _call,
    func.ReturnOp: _return,
    cf.BranchOp: _branch,
    cf.ConditionalBranchOp: _cond_branch,
}
"""Operation class -> how it is lowered; operands already have `llvm` types."""
