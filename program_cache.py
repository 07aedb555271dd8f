"""What compiling a program gave, kept on disk: the plan, and what was decided on the way.

An entry is named by the program's Torch IR, the target and the schedule asked for, the CPU where that is the
target, and by the source of all passes: when deplo changes, its old entries are not found any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from .machine.targets import Target
from .passes.decisions import Decision
from .runtime.cache import cache_key, open_cache

ROOT = Path(__file__).resolve().parent
DECIDING = ("analysis", "codegen", "dialects", "index", "machine", "passes")
"""The rooms whose code decides what a program becomes, with `program.py` and this file."""


@dataclass(frozen=True)
class Compiled:
    """A plan as data, and the decisions that led to it."""

    plan: Mapping[str, Any]
    decisions: Sequence[Decision]


def is_used() -> bool:
    """Whether anything may be found or kept."""
    return open_cache().directory is not None


def program_key(module: ModuleOp, target: Target, schedule: str, tuned: str = "") -> str:
    """The name of the entry for a program in Torch IR; what is scheduled for this CPU holds for this CPU.

    `tuned` is a digest of what was tuned for it.
    """
    return cache_key(str(module), target.text, schedule, tuned, compiler_digest())


@cache
def compiler_digest() -> str:
    """A digest of the compiler's own source, and of xDSL's version."""
    digest = hashlib.sha256(version("xdsl").encode())
    found = (path for room in DECIDING for path in (ROOT / room).rglob("*"))
    files = [path for path in found if path.suffix in (".py", ".ll", ".txt")]
    for path in sorted([*files, *ROOT.glob("program*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def find(key: str) -> Compiled | None:
    """What was kept under a key."""
    data = open_cache().get("program", key)
    if data is None:
        return None
    entry = json.loads(data)
    decisions = [
        Decision(name, kernel, fired, reason, others=tuple(others), steps=steps)
        for name, kernel, fired, reason, others, steps in entry["decisions"]
    ]
    return Compiled(entry["plan"], decisions)


def keep(key: str, compiled: Compiled) -> None:
    """Keep what compiling gave under a key."""
    decisions = [
        [d.pass_name, d.kernel, d.fired, d.reason, d.others, d.steps] for d in compiled.decisions
    ]
    entry = {"plan": compiled.plan, "decisions": decisions}
    open_cache().put("program", key, json.dumps(entry, separators=(",", ":")).encode())
