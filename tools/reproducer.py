"""Reproducers: everything needed to see a failure again.

A *reproducer file* is a program whose first line holds the pipeline that fails on it:

    // configuration: --pass-pipeline='builtin.module(tileify,blockify-launch{target="sm_90a"})'

`deplo-opt --run-reproducer FILE` runs it. For an internal error `write_directory` writes a
directory `deplo-repro-<hash>/` with `input.mlir` (such a file), `env.json`, `cmd.txt` and
`traceback.txt`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import sys
import tempfile
import traceback
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import UsageError

_CONFIGURATION = re.compile(r"\A\s*// configuration: --pass-pipeline='([^'\n]*)'")
_PACKAGES = ("deplo", "xdsl", "numpy", "llvmlite", "torch")
INPUT_NAME = "input.mlir"


def reproducer_text(program: str, pipeline: str) -> str:
    """A reproducer file: `program` under the line that names `pipeline`."""
    return f"// configuration: --pass-pipeline='{pipeline}'\n{program.rstrip()}\n"


def pipeline_of(text: str, name: str) -> str:
    """The pipeline that the reproducer `text`, read from `name`, asks for."""
    if (match := _CONFIGURATION.match(text)) is None:
        raise UsageError(
            f"{name} is not a reproducer: its first line must be "
            "// configuration: --pass-pipeline='...'"
        )
    return match[1]


def write_directory(
    program: str,
    pipeline: str,
    error: BaseException,
    parent: Path | None = None,
) -> Path:
    """Write a reproducer directory below `parent` (default: here, else a temporary place)."""
    files = {
        INPUT_NAME: reproducer_text(program, pipeline),
        "env.json": json.dumps(environment(), indent=2) + "\n",
        "cmd.txt": shlex.join(sys.argv) + "\n",
        "traceback.txt": "".join(traceback.format_exception(error)),
    }
    digest = hashlib.sha256(files[INPUT_NAME].encode("utf-8", "replace")).hexdigest()[:12]
    name = f"deplo-repro-{digest}"
    try:
        return _write(files, (parent or Path.cwd()) / name)
    except OSError:
        return _write(files, Path(tempfile.mkdtemp(prefix="deplo-")) / name)


def environment() -> dict[str, str]:
    """Versions and machine, as far as they can be known without importing anything heavy."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _write(files: dict[str, str], directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8", errors="replace")
    return directory
