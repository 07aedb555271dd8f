"""The levels of the IR: the operations that a program of each has, and the passes that make them.

    torch --- tensor_ir --- loop --- tile --- kernel --- cuda
                                       \\----- scf --- llvm
                                                \\----- mlir

A pass reads one level, that of its package unless `_CROSSING` says otherwise, and leaves that or the next.
From this, `deplo-opt --remarks` tells which operations a pass looked for and did not find, and which
pipeline makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation

from ..dialects.inside import ops_in
from ..dialects.schedule import KERNEL_ATTRIBUTE
from ..errors import DeploError
from . import PASSES


@dataclass(frozen=True)
class Level:
    """One IR on the way from PyTorch to machine code."""

    name: str
    """Its name in the documentation."""
    mark: str
    """The operation by which a program of this level is known."""
    source: str = ""
    """The level that it is made from."""
    pipeline: str = ""
    """The pipeline or pass that makes it, for a pass that needs no more than the mark."""
    whole: str = ""
    """The pipeline that makes it for the levels after it, where that is a longer one."""
    page: str = ""
    """The page that says what a person must write to have it."""


LEVELS = {
    "torch": Level("Torch IR", "torch operation"),
    "tensor_ir": Level("Tensor IR", "tensor_ir operation", "torch", "torch-to-tensor"),
    "loop": Level("Loop IR", "loop.kernel", "tensor_ir", "tensor-to-loop"),
    "tile": Level("Tile IR", "tile.launch", "loop", "tileify", "loop-to-tile"),
    "kernel": Level("Kernel IR", "kernel.func", "tile", "tile-to-kernel"),
    "host": Level("a host function", "kernel.alloc or kernel.launch", "tile", "tile-to-kernel"),
    "cuda": Level("CUDA IR", "cuda.func", "kernel", "kernel-to-cuda"),
    "scf": Level(
        "CPU code",
        f"`{KERNEL_ATTRIBUTE}` function",
        "tile",
        "lower-tile-to-scf",
        page="docs/passes.md",
    ),
    "llvm": Level(
        "LLVM IR", "llvm.func", "scf", "expand-math,loops-to-branches,convert-to-llvm"
    ),
    "mlir": Level("upstream MLIR", "func.func", "scf", "convert-to-mlir"),
}
"""The levels by name, in the order of the roads; a later one is further from PyTorch."""

CPU_LEVELS = ("scf", "llvm", "mlir")

_OF_PACKAGE = {"llvm": "scf", "mlir": "scf", "schedule": "tile"}
"""Package of passes -> the level that they read, if it has another name."""

_CROSSING: dict[str, tuple[str, str]] = {
    "decompose-torch": ("torch", "tensor_ir"),
    "lift-to-loops": ("tensor_ir", "loop"),
    "tileify": ("loop", "tile"),
    "split-loops": ("loop", "loop"),
    "split-sweeps": ("loop", "loop"),
    "transpose-tiles": ("loop", "loop"),
    "mark-unroll": ("loop", "loop"),
    "straighten-indices": ("loop", "loop"),
    "materialize-tile": ("tile", "kernel"),
    "group-launches": ("host", "host"),
    "assign-arena": ("host", "host"),
    "inline-calls": ("", ""),
    "lower-to-cuda": ("kernel", "cuda"),
    "lower-tile-to-scf": ("tile", "scf"),
    "expand-math": ("", ""),
    "convert-to-mlir": ("scf", "mlir"),
    "convert-to-llvm": ("scf", "llvm"),
}
"""Pass -> the levels that it reads and leaves, where its package does not say them; "" is any."""

def levels_of(name: str) -> tuple[str, str]:
    """The levels that a pass reads and leaves; "" is any."""
    if name in _CROSSING or name not in PASSES:
        return _CROSSING.get(name, ("", ""))
    package = PASSES[name].split(".")[1]
    level = _OF_PACKAGE.get(package, package)
    return level, level


def levels_in(module: ModuleOp) -> frozenset[str]:
    """The levels of which a program has operations; of one that has none, what its functions look like."""
    ops = ops_in(module)
    if found := {level for op in ops for level in _levels_of_op(op)}:
        return frozenset(found)
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks]
    if not functions:
        return frozenset()
    if not {op.name.partition(".")[0] for op in ops} <= {"builtin", "func", "tensor_ir"}:
        return frozenset({"mlir"})
    tensors = any(isinstance(t, TensorType) for f in functions for t in f.function_type.outputs)
    return frozenset({"loop" if tensors else "host"})


def require(module: ModuleOp, wanted: str, allowed: AbstractSet[str]) -> None:
    """Raise DeploError if a program has operations of other levels than `wanted` and those `allowed`."""
    present = levels_in(module)
    if others := present - allowed - {wanted}:
        if wanted not in present:
            raise DeploError(missing(wanted, module, present))
        raise DeploError(f"a {LEVELS[min(others)].mark} is left; lower all of the program together")


def _levels_of_op(op: Operation) -> Iterator[str]:
    dialect, _, kind = op.name.partition(".")
    match dialect, kind:
        case ("torch", _):
            yield "torch"
        case ("tensor_ir", _) if kind not in ("call", "scan"):
            yield "tensor_ir"
        case ("loop", "kernel"):
            yield "loop"
        case ("tile", "launch"):
            yield "tile"
        case ("kernel", _) if kind == "func":
            yield "kernel"
        case ("kernel", "alloc" | "launch" | "call" | "loop"):
            yield "host"
        case ("cuda", "func"):
            yield "cuda"
        case ("func", "func") if KERNEL_ATTRIBUTE in op.attributes:
            yield "scf"
        case ("llvm", "func"):
            yield "llvm"
        case _:
            pass


def count_of(module: ModuleOp, level: str) -> int:
    """How many operations of a level a program has."""
    return sum(level in _levels_of_op(op) for op in ops_in(module))


def furthest(present: AbstractSet[str]) -> str | None:
    """The level that a program is on: the last of those it has; None if it has none."""
    return next((name for name in reversed(LEVELS) if name in present and name != "host"), None)


def way(present: AbstractSet[str], wanted: str) -> str | None:
    """The pipeline that takes a program with the levels `present` to `wanted`, or None if there is none."""
    steps: list[str] = []
    level, cpu = wanted, wanted in CPU_LEVELS
    while level not in present or level == wanted:
        made = LEVELS[level]
        if not made.source:
            return None
        step = made.pipeline if level == wanted else made.whole or made.pipeline
        steps.append(f"{step}{{target=cpu}}" if cpu and step == "loop-to-tile" else step)
        level = made.source
    return ",".join(reversed(steps))


def missing(wanted: str, module: ModuleOp, present: AbstractSet[str]) -> str:
    """What a program lacks for a pass that reads the level `wanted`, and what makes it."""
    level = LEVELS[wanted]
    functions = [op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp)]
    lack = f"no {level.mark}" + (f" ({level.page})" if level.page else "")
    lack += f" in @{functions[0]}" if len(functions) == 1 else ""
    if (steps := way(present, wanted)) is not None:
        return f"{lack}: run {steps} first"
    at = furthest(present)
    here = f", this is {LEVELS[at].name}" if at is not None else ""
    made = "`deplo compile --ir torch` makes it of a PyTorch program"
    if level.source:
        made = f"{level.pipeline} makes it of {LEVELS[level.source].name}"
    return f"{lack}{here}; {made}"
