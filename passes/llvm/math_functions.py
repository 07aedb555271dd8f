"""Which function an operation of `math` calls: one of the library `codegen/math`, or one of the C library.

Those of the library are named after the C library's, with a variant and the type: `deplo_exp_f32`,
`deplo_exp_ldexp_f32` for a CPU that multiplies by a power of two in one fast instruction,
`deplo_exp_nonpositive_f32` for an exponent that `relax-maxima` has proven to be at most 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, math
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from .kernel_loops import function_of
from .math_builder import MathBuilder
from .relax_maxima import AT_MOST_ZERO

_C_NAMES: dict[type[Operation], str] = {
    math.AcosOp: "acos",
    math.AcoshOp: "acosh",
    math.AsinOp: "asin",
    math.AsinhOp: "asinh",
    math.AtanOp: "atan",
    math.AtanhOp: "atanh",
    math.Atan2Op: "atan2",
    math.CbrtOp: "cbrt",
    math.CosOp: "cos",
    math.CoshOp: "cosh",
    math.ErfOp: "erf",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.LogOp: "log",
    math.Log10Op: "log10",
    math.Log1pOp: "log1p",
    math.Log2Op: "log2",
    math.PowFOp: "pow",
    math.RoundOp: "round",
    math.SinOp: "sin",
    math.SinhOp: "sinh",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
}
"""The C library's name of each function for f64; that for f32 ends in `f`."""

_OF_BOTH = frozenset(("erf", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "tanh"))
_OF_F32 = _OF_BOTH | frozenset(
    "acos acosh asin asinh atan atanh atan2 cbrt cosh pow sinh".split(),
)
"""What the library has, by the C library's name."""


def library_name(function: str, type: Attribute, variant: str = "") -> str:
    """The library's name of a function of f32 or f64."""
    assert isinstance(type, Float32Type | Float64Type)
    return f"deplo_{function}{variant and '_'}{variant}_{type}"


def name_of(op: Operation, *, scales: bool) -> str | None:
    """The function that stands for an operation on f32 or f64; None if there is none.

    `scales` says whether the CPU multiplies by a power of two in one fast instruction.
    """
    name, type = _C_NAMES.get(op.__class__), op.results[0].type if op.results else None
    if name is None or not isinstance(type, Float32Type | Float64Type):
        return None
    is_f32 = isinstance(type, Float32Type)
    if name not in (_OF_F32 if is_f32 else _OF_BOTH):
        return f"{name}f" if is_f32 else name
    if is_added_to_one(op):
        return library_name(name, type, "plus_one")
    if is_f32 and AT_MOST_ZERO in op.attributes:
        return library_name(name, type, "nonpositive")
    return library_name(name, type, "ldexp" if scales and name in ("exp", "exp2") else "")


def is_added_to_one(op: Operation) -> bool:
    """Whether `op` is erf or tanh of f32 and every use of it adds 1, as in GELU and the normal distribution.

    The sum of 1 and a rounded erf(x) loses the digits below the last one of 1: at x = -3.9, all of them.
    """
    if not isinstance(op, math.ErfOp | math.TanhOp) or not isinstance(op.result.type, Float32Type):
        return False
    uses = list(op.result.uses)
    return bool(uses) and all(_adds_one(use.operation) for use in uses)


def _adds_one(user: Operation) -> bool:
    return isinstance(user, arith.AddfOp) and any(
        isinstance(value.owner, arith.ConstantOp)
        and isinstance(value.owner.value, FloatAttr)
        and value.owner.value.value.data == 1.0
        for value in user.operands
    )


def call_in_place(op: Operation, name: str) -> SSAValue:
    """Insert the call that stands for `op`; where `op` is only added to 1, for the sums, which are erased."""
    (result,) = op.results
    called = call(op, name, op.operands, result.type)
    if is_added_to_one(op):
        for total in [use.operation for use in result.uses]:
            total.results[0].replace_all_uses_with(called)
            total.detach()
            total.erase()
    return called


def call(before: Operation, name: str, arguments: Sequence[SSAValue], result: Attribute) -> SSAValue:
    """Insert a call of a function, declared in the module, in front of an operation."""
    caller = function_of(before)
    module = caller.parent_op()
    assert isinstance(module, ModuleOp)
    if not any(isinstance(f, func.FuncOp) and f.sym_name.data == name for f in module.ops):
        external = func.FuncOp.external(name, [value.type for value in arguments], [result])
        module.body.block.insert_op_before(external, caller)
    return MathBuilder(before).insert(func.CallOp(name, list(arguments), [result]))
