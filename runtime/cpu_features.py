"""Which instructions machine code needs, and whether this CPU has them, told without LLVM.

Features have LLVM's names, without `-`, `.` and `_`. Linux has other names for some.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

LINUX = {
    "sse3": "pni",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahflm",
    "pclmul": "pclmulqdq",
    "rdrnd": "rdrand",
    "prfchw": "3dnowprefetch",
    "sha": "shani",
    "64bit": "lm",
    "crc32": "sse42",
    "neon": "asimd",
    "fparmv8": "fp",
    "lse": "atomics",
    "rdm": "asimdrdm",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
}
"""LLVM's name of a feature -> that in /proc/cpuinfo, where they differ (arch/x86/include/asm/cpufeatures.h,
Documentation/arch/arm64/elf_hwcaps.rst)."""


def machine() -> str:
    """LLVM's name of this machine's architecture."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def missing(features: Iterable[str]) -> list[str]:
    """Those of LLVM's features that this CPU does not say it has."""
    return sorted(each for each in features if plain(LINUX.get(plain(each), each)) not in _flags())


def plain(name: str) -> str:
    """A feature's name without what LLVM and Linux do not agree on."""
    return re.sub("[-._]", "", name.lower())


@cache
def _flags() -> frozenset[str]:
    """What Linux says of this CPU's first core."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(map(plain, found[1].split())) if found else frozenset()
