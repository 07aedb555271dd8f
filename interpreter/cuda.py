"""What `cuda` means: the lockstep machine on C++ constructs.

The same meaning that the C++ compiler gives the printed text, and checks of what C++ leaves undefined or
means otherwise than the index syntax does: index arithmetic must fit the function's index type, a signed
sum or product must not overflow, and an index that is divided must not be negative.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    FloatAttr,
    IndexType,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
    i32,
    tf32,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineExpr

from ..dialects import cuda
from ..dialects.cuda_arithmetic import is_float_call
from ..dialects.sizes import static_extent
from .device_memory import fault
from .numpy_types import Array, convert, float_to_integer, numpy_dtype
from .scalar_ops import erf, fma
from .simt import SimtMachine
from .tensor_ir import ProgramError, evaluate_index

_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}

_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "erf": erf,
    "floor": np.floor,
    "ceil": np.ceil,
    "rint": np.rint,
    "trunc": np.trunc,
    "fabs": np.abs,
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "copysign": np.copysign,
    "fma": fma,
    "__fsub_rn": np.subtract,
    "__dsub_rn": np.subtract,
}

_PTX: dict[str, Callable[..., Array]] = {
    "max.NaN.f32": np.maximum,
    "ex2.approx.ftz.f32": np.exp2,
    "min.NaN.f32": np.minimum,
    "cvt.f32.f16": lambda x: convert(x, f32),
    "cvt.f64.f16": lambda x: convert(x, f64),
    "cvt.f32.bf16": lambda x: convert(x, f32),
    "cvt.rn.f16.f32": lambda x: convert(x, f16),
    "cvt.rn.f16.f64": lambda x: convert(x, f16),
    "cvt.rn.bf16.f32": lambda x: convert(x, bf16),
    "cvt.rna.tf32.f32": lambda x: convert(x, tf32),
    "mov.b32": lambda x: convert(x, f32),
}


def _dtype(type: Attribute) -> np.dtype[np.generic]:
    if isinstance(type, IntegerType) and type.signedness.data is Signedness.UNSIGNED:
        return np.dtype(f"u{type.width.data // 8}")
    return numpy_dtype(type)


def _overflows(operator: str, a: Array, b: Array, result: Array) -> Array:
    """Where a sum or product of signed integers differs from the exact one."""
    match operator:
        case "+":
            return ((a ^ result) & (b ^ result)) < 0
        case "-":
            return ((a ^ b) & (a ^ result)) < 0
        case _:
            safe = np.where(a == 0, 1, a).astype(a.dtype)
            minimum = np.iinfo(a.dtype).min
            return ((a != 0) & (result // safe != b)) | ((a == -1) & (b == minimum))


def _dividends(expr: AffineExpr) -> Iterator[AffineExpr]:
    """The dividends in an index expression."""
    if isinstance(expr, AffineBinaryOpExpr):
        if expr.kind in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod):
            yield expr.lhs
        yield from _dividends(expr.lhs)
        yield from _dividends(expr.rhs)


def _divide(operator: str, a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    if np.any(b == 0):  # the lowering makes every divisor safe
        raise ProgramError("a division of integers by zero reached C++")
    quotient = np.trunc(a.astype(np.longdouble) / b).astype(a.dtype)
    return quotient if operator == "/" else (a - quotient * b).astype(a.dtype)


class CudaMachine(SimtMachine):
    """Executes a `cuda.func` on blocks of a grid."""

    def __init__(
        self, function: cuda.FuncOp, blocks: Array, only: Container[Operation] | None = None
    ):
        super().__init__(blocks, function.threads.value.data, only)
        self._divided: dict[int, tuple[AffineExpr, Sequence[AffineExpr]]] = {}
        self.narrow = function.index_type == i32
        self.handlers |= {
            cuda.LiteralOp: self._set(self._literal),
            cuda.UnaryOp: self._set(self._unary),
            cuda.BinaryOp: self._set(self._binary),
            cuda.SelectOp: self._set(lambda op: np.where(*(self.values[v] for v in op.operands))),
            cuda.CallOp: self._set(self._call),
            cuda.PtxOp: self._set(self._ptx),
            cuda.CastOp: self._set(self._cast),
            cuda.VariableOp: self._variable,
            cuda.AssignOp: self._assign,
            cuda.ForOp: self._counted,
            cuda.IfOp: self._branch,
            cuda.TrapOp: self._trap,
        }

    def _set(self, compute: Callable[..., Array]) -> Callable[[Operation], None]:
        def handler(op: Operation) -> None:
            self.values[op.results[0]] = compute(op)

        return handler

    def _literal(self, op: cuda.LiteralOp) -> Array:
        value = np.asarray(op.value.value.data)
        if isinstance(op.value, FloatAttr) and isinstance(op.result.type, BFloat16Type):
            return convert(value.astype(np.float64), op.result.type)
        return value.astype(_dtype(op.result.type))

    def _fits(self, op: Operation, index: Array) -> Array:
        limit = 1 << 31
        if self.narrow and (index.min() < -limit or index.max() >= limit):
            if np.any(((index < -limit) | (index >= limit)) & self.mask):
                raise fault(op, "overflows: its index does not fit int")
        return index

    def _dividends_of(self, expr: AffineExpr) -> Sequence[AffineExpr]:
        """The dividends in an index expression, which is looked through once."""
        if (known := self._divided.get(id(expr))) is None:
            known = self._divided[id(expr)] = expr, tuple(_dividends(expr))
        return known[1]

    def _unary(self, op: cuda.UnaryOp) -> Array:
        value = self.values[op.operand]
        match op.operator.data:
            case "-":
                return np.negative(value)
            case "!":
                return np.logical_not(value)
            case _:
                return np.invert(value)

    def _binary(self, op: cuda.BinaryOp) -> Array:
        a, b = self.values[op.lhs], self.values[op.rhs]
        operator = op.operator.data
        if operator in "/%":
            return _divide(operator, a, b)
        result = _OPERATORS[operator](a, b)
        if operator in "+-*" and result.dtype.name in ("int32", "int64"):
            if np.any(_overflows(operator, a, b, result) & self.mask):
                raise fault(op, f"overflows in a signed {operator}, which C++ leaves undefined")
        return result

    def _call(self, op: cuda.CallOp) -> Array:
        name = op.callee.data
        function = _FUNCTIONS[name.removesuffix("f") if is_float_call(name) else name]
        args = [self.values[v] for v in op.arguments]
        return np.asarray(function(*args)).astype(_dtype(op.result.type))

    def _ptx(self, op: cuda.PtxOp) -> Array:
        return _PTX[op.instruction.data](*(self.values[v] for v in op.arguments))

    def _cast(self, op: cuda.CastOp) -> Array:
        value = self.values[op.input]
        dtype = _dtype(op.result.type)
        if isinstance(op.result.type, IndexType) or dtype == np.bool_:
            return value.astype(dtype)
        if value.dtype.kind == "f" and dtype.kind == "i":
            return float_to_integer(value, dtype)
        return value.astype(dtype)

    def index(self, op: Operation, expr: AffineExpr, operands: Sequence[SSAValue]) -> Array:
        """The value of an index expression, as C++ computes it."""
        dims = [self.values[v] for v in operands]
        for dividend in self._dividends_of(expr):
            if np.any((self._fits(op, evaluate_index(dividend, dims)) < 0) & self.mask):
                raise fault(op, f"divides a negative index, {dividend}: C++ rounds to zero")
        return self._fits(op, super().index(op, expr, operands))

    def _variable(self, op: cuda.VariableOp) -> None:
        if op.initial is not None:
            self.values[op.result] = self.values[op.initial]
        else:
            self.values[op.result] = np.zeros((1, 1), _dtype(op.result.type))

    def _assign(self, op: cuda.AssignOp) -> None:
        old, new = self.values[op.variable], self.values[op.value]
        whole = self.mask.shape == (1, 1) and bool(self.mask.all())
        self.values[op.variable] = new if whole else np.where(self.mask, new, old)

    def _counted(self, op: cuda.ForOp) -> None:
        outer, most = self.mask, static_extent(op.extent.data)
        end = np.asarray(most) if op.end is None else self.values[op.end]
        if np.any((end > most) & outer):
            raise fault(op, f"ends after the {most} iterations that it says")
        for index in range(most):
            self.mask = outer & (index < end)
            if not np.any(self.mask):
                break
            self.values[op.induction_var] = np.asarray(index, np.int64)
            self.run(op.body.block)
        self.mask = outer

    def _branch(self, op: cuda.IfOp) -> None:
        def arm(region_index: int) -> Callable[[], None]:
            region = op.regions[region_index]

            def run() -> None:
                if region.blocks:
                    self.run(region.block)

            return run

        self.branches(self.values[op.condition], [arm(0), arm(1)])

    def _trap(self, op: cuda.TrapOp) -> None:
        raise ProgramError("the kernel trapped: a check of the program failed")
