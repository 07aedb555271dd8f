"""Reproducers: everything needed to see a failure again.

A *reproducer file* is a program whose first line holds the pipeline that fails on it:

    // configuration: --pass-pipeline='builtin.module(tileify,blockify-launch{target="sm_90a"})'

with ` --check-each-pass` behind it where a pass changes what the program computes. `deplo repro FILE` and
`deplo-opt --run-reproducer FILE` run it. For an internal error `write_directory` writes a directory
`deplo-repro-<hash>/` with `input.mlir` (such a file), `env.json`, `cmd.txt` and `traceback.txt`.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shlex
import shutil
import sys
import tempfile
import traceback
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import MismatchError, UsageError

CHECK = "--check-each-pass"
_CONFIGURATION = re.compile(r"\A\s*// configuration: --pass-pipeline='([^'\n]*)'([^\n]*)\n?")
_PACKAGES = ("deplo", "xdsl", "numpy", "llvmlite", "torch")
INPUT_NAME = "input.mlir"
ENVIRONMENT_NAME = "env.json"


@dataclass(frozen=True)
class Reproducer:
    """A program and the pipeline that fails on it."""

    program: str
    pipeline: str
    check: bool = False
    """Whether it fails by computing something else."""

    @property
    def text(self) -> str:
        """The reproducer file."""
        check = f" {CHECK}" if self.check else ""
        return (
            f"// configuration: --pass-pipeline='{self.pipeline}'{check}\n{self.program.rstrip()}\n"
        )


def read_reproducer(text: str, name: str) -> Reproducer:
    """The reproducer that `text` says, read from `name`; UsageError if it is none."""
    if (match := _CONFIGURATION.match(text)) is None:
        raise UsageError(
            f"{name} is not a reproducer: its first line must be "
            "// configuration: --pass-pipeline='...'"
        )
    return Reproducer(text[match.end() :], match[1], match[2].split() == [CHECK])


def load_reproducer(path: Path) -> Reproducer:
    """The reproducer in a file or directory. Raises UsageError if there is none."""
    file = file_of(path)
    try:
        return read_reproducer(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error


def file_of(path: Path) -> Path:
    """The reproducer file that `path` names, itself or in a directory."""
    return path / INPUT_NAME if path.is_dir() else path


def of_mismatch(error: MismatchError) -> Reproducer:
    """What shows again that passes changed what a program computes."""
    return Reproducer(error.program, f"builtin.module({','.join(error.passes)})", check=True)


def write_directory(
    reproducer: Reproducer, error: BaseException, parent: Path | None = None
) -> Path:
    """Write a reproducer directory below `parent` (default: here, else a temporary place), all or nothing."""
    files = {
        INPUT_NAME: reproducer.text,
        ENVIRONMENT_NAME: json.dumps(environment(), indent=2) + "\n",
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
    made = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    try:
        for name, text in files.items():
            (made / name).write_text(text, encoding="utf-8", errors="replace")
        made.chmod(0o755)
        if directory.exists():  # the same failure again
            shutil.rmtree(directory)
        made.rename(directory)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return directory
