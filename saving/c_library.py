"""A compiled program as a C library: `libmlp.so`, `mlp.h`, and an example that a plain C compiler takes.

The machine code of the kernels is LLVM's, as in a program file. Around it is C that goes through the plan:

    int mlp(const float *input, float *result_0, int64_t batch);

Parameters are in the library. Threads are those of OpenMP.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from ..errors import DeploError, MissingEnvironmentError, UsageError
from ..program import Program
from ..runtime.cpu_features import machine
from ..runtime.linked_code import texts_of
from .c_host import Host
from .c_names import check_function_name
from .machine_code import code_target, compiled
from .program_file import check_calls
from .writing import new_file

FLAGS = ("-shared", "-fPIC", "-std=c11", "-O2", "-fopenmp", "-Wall", "-Wl,-z,noexecstack", "-s")


def save_c_library(program: Program, directory: Path, name: str) -> None:
    """Write the library, its header and an example into `directory`; `name` is that of its function.

    Raises UsageError, which lists what of the program C cannot say; MissingEnvironmentError without a C
    compiler for the target.
    """
    if program.target.is_gpu:
        raise UsageError(f"{program.target.name}: a C library is for a CPU; save a program file for a GPU")
    check_function_name(name, texts_of(program.plan))
    check_calls([program])
    if any(plan.calls for plan in program.plan.whole):
        raise UsageError("a C library finds no sizes in data, and has no loops and choices that data decide")
    host = Host(program, name)
    architecture, core, more = code_target(program.target)
    compiler = _compiler(architecture)
    with tempfile.TemporaryDirectory(prefix="deplo-c-") as made_for:
        work = Path(made_for)
        header = f"{name}.h"
        texts = {"host.c": host.source(), header: host.header(), "example.c": host.example()}
        for each, text in texts.items():
            (work / each).write_text(text, encoding="utf-8")
        (work / "weights.bin").write_bytes(host.weights)
        (work / "exported").write_text(f'{{ global: "{name}"; "{name}_message"; local: *; }};\n')
        objects: list[str] = []
        for number, text in enumerate(texts_of(program.plan).values()):
            objects.append(f"{number}.o")
            (work / objects[-1]).write_bytes(compiled(text, architecture, core, more))
        made = f"lib{name}.so"
        command = [compiler, *FLAGS, "-Wl,--version-script=exported", "-o", made, "host.c", *objects]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=work)
        if done.returncode:
            raise DeploError(f"{compiler} cannot build the library:\n{done.stderr.strip()}")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            for each in (made, header, "example.c"):
                with new_file(directory / each) as place:
                    shutil.copyfile(work / each, place)
        except OSError as error:
            raise UsageError(f"cannot write to {directory}: {error.strerror or error}") from error


def _compiler(architecture: str) -> str:
    names = [f"{architecture}-linux-gnu-gcc"]
    if architecture == machine():
        names = ["cc", "gcc", "clang", *names]
    for name in names:
        if (path := shutil.which(name)) is not None:
            return path
    raise MissingEnvironmentError(
        f"a C library for {architecture} needs a C compiler, one of {', '.join(names)}"
    )
