"""Programs compiled for the CPU whose kernels gcc compiles, from the C that `--ir c` prints."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from deplo.codegen.c_printer import c_source
from deplo.program import Program
from deplo.runtime.plan import Plan

FLAGS = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-fopenmp")
DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}


def build(text: str, to: Path, *flags: str) -> Path:
    """What gcc makes of a C file; it must not warn."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc")
    to.with_suffix(".c").write_text(text)
    command = ["gcc", *FLAGS, *flags, "-o", str(to), str(to.with_suffix(".c")), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return to


class CompiledByGcc:
    """Runs a plan by its C form, as `runtime.cpu` does by LLVM."""

    def __init__(self, plan: Plan, text: str, directory: Path, *flags: str):
        name = f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"
        built = build(text, directory / name, "-shared", "-fPIC", *flags)
        self.results = [plan.array(ref) for ref in plan.results]
        self.program = ctypes.CDLL(str(built)).program

    def __call__(self, *arguments: torch.Tensor) -> list[torch.Tensor]:
        dense = [argument.detach().contiguous() for argument in arguments]
        made = [torch.empty(array.shape, dtype=DTYPES[array.dtype]) for array in self.results]
        self.program(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in (*dense, *made)))
        return made


def run_in_c(program: Program, directory: Path, args: Any, *flags: str) -> Any:
    """What a program for the CPU gives when gcc compiles its kernels."""
    plan = program.plan
    made = CompiledByGcc(plan, c_source(program.stage("c")), directory, *flags)
    again = Program(program.captured, program.target)
    again.__dict__["executable"] = made
    return again(*args)
