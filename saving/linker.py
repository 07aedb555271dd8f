"""Object files to one shared object, by the linker of the system: GNU's or LLVM's."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..errors import DeploError, MissingEnvironmentError
from ..runtime.cpu_features import machine

FLAGS = ("-shared", "--strip-all", "-z", "noexecstack", "-z", "relro", "--build-id=none")


def link(objects: Sequence[bytes], architecture: str) -> bytes:
    """The shared object of object files for LLVM's `architecture`, which has all their functions.

    Raises MissingEnvironmentError without a linker for it.
    """
    linker = _linker(architecture)
    with tempfile.TemporaryDirectory(prefix="deplo-link-") as directory:
        paths = [Path(directory) / f"{number}.o" for number in range(len(objects))]
        for path, code in zip(paths, objects, strict=True):
            path.write_bytes(code)
        made = Path(directory) / "code.so"
        done = subprocess.run(
            [linker, *FLAGS, "-o", made, *paths], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DeploError(f"{linker} cannot link the kernels:\n{done.stderr.strip()}")
        return made.read_bytes()


def _linker(architecture: str) -> str:
    names = [f"{architecture}-linux-gnu-ld", "ld.lld"]
    if architecture == machine():
        names.insert(0, "ld")
    for name in names:
        if (path := shutil.which(name)) is not None:
            return path
    package = "binutils" if architecture == machine() else "lld"
    raise MissingEnvironmentError(
        f"saving code for {architecture} needs one of the linkers {', '.join(names)}: install {package}"
    )
