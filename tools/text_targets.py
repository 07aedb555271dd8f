"""What `-t` writes: the operations that each text target needs, and the pipeline that makes them."""

from __future__ import annotations

from argparse import ArgumentTypeError
from importlib import import_module

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.target import Target

from ..dialects.inside import ops_in
from ..errors import DeploError
from ..machine.targets import TARGETS
from ..passes.levels import LEVELS, furthest, levels_in, way
from ..passes.pipelines import PIPELINES

_LEVELS = {"cuda": "cuda", "c": "mlir", "llvm": "llvm"}
"""Text target -> the level that it writes, and how the pipelines end that make it."""

_PREFIXES = {
    "arm-asm": "arm",
    "csl": "csl.",
    "riscv-asm": "riscv",
    "wat": "wasm.",
    "wgsl": "gpu.",
    "x86-asm": "x86",
}
"""Text target of xDSL -> how the names of the operations begin that it writes."""


def llvm_target() -> type[Target]:
    """The class of `-t llvm`."""
    return import_module(".llvm_target", __package__).LlvmTarget


def text_target(asked: str) -> str:
    """What `-t` is given. Raises ArgumentTypeError for a machine but `cpu`, which `--run` takes."""
    if asked in TARGETS and asked != "cpu":
        raise ArgumentTypeError(no_text(asked))
    return asked


def no_text(machine: str) -> str:
    """Why a machine is nothing to write: it is an option of passes."""
    end = "cuda" if TARGETS[machine].is_gpu else "llvm"
    return (
        f"{machine} is a machine, and -t says what to write (mlir, cuda, llvm, c, ...); passes take the "
        f"machine as their option: -p 'loop-to-{end}{{target={machine}}}' -t {end}"
    )


def check_written(target: str, module: ModuleOp) -> None:
    """Raise DeploError unless `module` holds what the text target `target` writes."""
    if (prefix := _PREFIXES.get(target)) is not None:
        if not any(op.name.startswith(prefix) for op in ops_in(module)):
            dialect = prefix.strip(".")
            raise DeploError(f"-t {target} writes operations of {dialect}, and the program has none")
    elif (level := _LEVELS.get(target)) is not None:
        present = levels_in(module)
        at = furthest(present)
        if at != level and (at is not None or "host" not in present):
            raise DeploError(f"-t {target} needs {LEVELS[level].mark}, and {_remedy(target, at)}")


def _remedy(target: str, at: str | None) -> str:
    """What a program on the level `at` is, and the pipeline that makes what `target` writes of it."""
    if at is None or at == "mlir":
        return "the program has none"
    level, here = _LEVELS[target], f"this is {LEVELS[at].name}"
    named = f"{at.removesuffix('_ir')}-to-{level}"
    if (steps := named if named in PIPELINES else way({at}, level)) is None:
        return f"{here}: start from Loop IR, with loop-to-{level}"
    return f"{here}: run {steps} first"
