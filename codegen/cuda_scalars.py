"""CUDA C++ text of operations on scalars, as their rows in `machine/cuda_scalars.py` have it."""

from __future__ import annotations

from math import copysign, inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ..dialects.cuda_scalars import divides_by_zero
from ..machine.cuda_scalars import REGISTERS, ScalarForm
from .cuda_statements import Names
from .literals import literal_text


def scalar_text(names: Names, op: Operation, form: ScalarForm) -> str:
    """The declarations of an operation's result and of the values on the way to it."""
    fields = dict(zip("abc", map(names.name, op.operands), strict=False)) | _numbers(op)
    fields |= {"A": names.type(op.operands[0].type), "R": names.type(op.results[0].type)}
    values: list[str] = []
    lines: list[str] = []
    for number, (type, expression) in enumerate(form.steps, 1):
        text, kind = expression.format(*values, **fields), type.format(**fields)
        last = number == len(form.steps)
        values.append(names.name(op.results[0]) if last else names.fresh("v"))
        if text.startswith("asm "):
            inputs = ", ".join(_register(names, value) for value in op.operands)
            output = f'"={REGISTERS[kind]}"({values[-1]})'
            placed = last and op.results[0] in names.placed
            lines += [
                *([] if placed else [f"{kind} {values[-1]};"]),
                f'asm("{text.removeprefix("asm ")};" : {output} : {inputs});',
            ]
        else:
            left = names.declared(op.results[0], kind) if last else f"const {kind} {values[-1]}"
            lines.append(f"{left} = {text};")
    return "\n".join(lines)


def _register(names: Names, value: SSAValue) -> str:
    """A value and its register; the bits of a constant half are an int in C++, too wide for its own."""
    register = REGISTERS[names.type(value.type)]
    is_wide = register == "h" and isinstance(value.owner, arith.ConstantOp)
    return f'"{register}"({"(unsigned short)" if is_wide else ""}{names.name(value)})'


def _numbers(op: Operation) -> dict[str, str]:
    """The numbers in an operation's text that its types or operands decide."""
    match op:
        case arith.FPToSIOp(input=value, result=result):
            assert isinstance(result.type, IntegerType)
            bound = 1 << (result.type.width.data - 1)
            return {
                "low": literal_text(float(-bound), value.type),
                "high": literal_text(float(bound), value.type),
                "least": literal_text(-bound, result.type),
            }
        case arith.DivfOp() if (zero := divides_by_zero(op)) is not None:
            return {"infinity": literal_text(copysign(inf, zero), op.result.type)}
        case _:
            return {}
