"""CUDA C++ to machine code with NVRTC, which needs no GPU; what ptxas says of registers and spills.

Default numerics: IEEE division and square root, no flush to zero, no fast-math; a multiplication and an
addition may fuse (`--fmad`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from typing import Any

from ..errors import DeploError, MissingEnvironmentError, UsageError
from .cache import cache_key, open_cache
from .threads import thread_count

FLAGS = (
    "--std=c++17",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--fmad=true",
    "--ptxas-options=-v",
    "--no-cache",
)
"""What every kernel is compiled with, besides its architecture.

The driver's own cache is left out, as what comes from there comes without what ptxas says of it.
"""

LINE_INFO = ("--generate-line-info",)
"""With these, machine code says of each instruction on which line of its source it stands."""

_ARCHITECTURE = re.compile(r"sm_(\d+)(\d)([af]?)")
_WARNING = re.compile(r"\bwarning( #[\w-]+)?\s*:|Potential Performance Loss")
_MAX_LOG_LINES = 12

MAX_THREADS = 8
"""Kernels that are compiled at once; each takes some 100 MB."""

_cubins: dict[tuple[str, str, tuple[str, ...]], Cubin] = {}


@dataclass(frozen=True)
class Usage:
    """What one kernel takes of a multiprocessor, as ptxas reports it."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True)
class Cubin:
    """Machine code for one architecture, and the resources of each kernel in it."""

    architecture: str
    code: bytes
    usage: dict[str, Usage]
    warnings: tuple[str, ...] = ()
    """What the compiler warns of, a line each."""


def compute_capability(architecture: str) -> tuple[int, int, str]:
    """`sm_90a` as (9, 0, "a"); raises UsageError if it is no architecture's name."""
    match = _ARCHITECTURE.fullmatch(architecture)
    if match is None:
        raise UsageError(f"{architecture!r} is no CUDA architecture; expected for example sm_90a")
    major, minor, suffix = match.groups()
    return int(major), int(minor), suffix


def nvrtc_version() -> str:
    """The version of the compiler. Raises MissingEnvironmentError without NVRTC."""
    return ".".join(map(str, _nvrtc().nvrtcVersion()[1:]))


def compile_cuda(source: str, architecture: str, more: tuple[str, ...] = ()) -> Cubin:
    """Compile a CUDA C++ translation unit, with `more` flags; the same text is compiled once.

    Raises DeploError with the compiler's first errors if it does not compile, and
    MissingEnvironmentError without NVRTC.
    """
    compute_capability(architecture)
    key = (architecture, source, more)
    if key not in _cubins:
        made = _kept(source, architecture, more)
        return _cubins.setdefault(key, made)  # another thread may have been faster
    return _cubins[key]


def compile_all(
    sources: Sequence[str], architecture: str, more: tuple[str, ...] = ()
) -> list[Cubin]:
    """Compile translation units as `compile_cuda` does, several at once: NVRTC leaves Python alone."""
    different = [*dict.fromkeys(sources)]
    with ThreadPoolExecutor(min(thread_count(), MAX_THREADS)) as pool:
        made = list(pool.map(lambda source: compile_cuda(source, architecture, more), different))
    cubins = dict(zip(different, made, strict=True))
    return [cubins[source] for source in sources]


def _kept(source: str, architecture: str, more: tuple[str, ...]) -> Cubin:
    """What NVRTC makes of a source, from the cache if it is there."""
    cache = open_cache()
    key = cache_key(source, architecture, nvrtc_version(), *FLAGS, *more)
    entry = cache.get("cubin", key)
    if entry is None:
        cubin = _compile(source, architecture, more)
        usage = {name: asdict(used) for name, used in cubin.usage.items()}
        head = json.dumps({"usage": usage, "warnings": cubin.warnings}).encode()
        cache.put("cubin", key, len(head).to_bytes(8, "little") + head + cubin.code)
        return cubin
    length = int.from_bytes(entry[:8], "little")
    head = json.loads(entry[8 : 8 + length])
    usage = {name: Usage(**used) for name, used in head["usage"].items()}
    return Cubin(architecture, entry[8 + length :], usage, tuple(head["warnings"]))


def ptx_of(source: str, architecture: str) -> str:
    """The PTX of a CUDA C++ translation unit, which the driver compiles for the GPU that there is.

    That of `sm_80` runs on GPUs of compute capability 8.0 and later. Raises as `compile_cuda`.
    """
    major, minor, suffix = compute_capability(architecture)
    with _compiled(source, f"compute_{major}{minor}{suffix}") as (program, _):
        return _text(program, _nvrtc().nvrtcGetPTXSize, _nvrtc().nvrtcGetPTX)


def _compile(source: str, architecture: str, more: tuple[str, ...]) -> Cubin:
    nvrtc = _nvrtc()
    with _compiled(source, architecture, more) as (program, log):
        code = bytearray(_ok(nvrtc.nvrtcGetCUBINSize(program)))
        _ok(nvrtc.nvrtcGetCUBIN(program, code))
    warnings = tuple(line for line in log.splitlines() if _WARNING.search(line))
    return Cubin(architecture, bytes(code), parse_usage(log), warnings)


@contextmanager
def _compiled(
    source: str, architecture: str, more: tuple[str, ...] = ()
) -> Generator[tuple[Any, str]]:
    """What NVRTC makes of a source, until it is forgotten, and what it says."""
    nvrtc = _nvrtc()
    program = _ok(nvrtc.nvrtcCreateProgram(source.encode(), b"deplo.cu", 0, [], []))
    try:
        flags = (f"--gpu-architecture={architecture}", *FLAGS, *more)
        options = [flag.encode() for flag in flags]
        (result,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        log = _text(program, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
        if result != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise DeploError(_failure(architecture, result.name, log))
        yield program, log
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _failure(architecture: str, code: str, log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    shown = "\n".join(lines[:_MAX_LOG_LINES])
    hidden = len(lines) - _MAX_LOG_LINES
    more = f"\n... {hidden} more lines" if hidden > 0 else ""
    return f"NVRTC does not accept a kernel for {architecture} ({code}):\n{shown}{more}"


def parse_usage(log: str) -> dict[str, Usage]:
    """Each kernel's resources from the log of `--ptxas-options=-v`."""
    usage: dict[str, Usage] = {}
    sections = re.split(r"Compiling entry function '(?=[^']+')", log)[1:]
    for section in sections:
        name = section.split("'", 1)[0]

        def number(pattern: str, text: str = section) -> int:
            match = re.search(pattern, text)
            return 0 if match is None else int(match.group(1))

        usage[name] = Usage(
            registers=number(r"Used (\d+) registers"),
            spill_stores=number(r"(\d+) bytes spill stores"),
            spill_loads=number(r"(\d+) bytes spill loads"),
            stack_bytes=number(r"(\d+) bytes stack frame"),
            shared_bytes=number(r"(\d+) bytes smem"),
        )
    return usage


def _text(program: Any, get_size: Any, get: Any) -> str:
    buffer = bytearray(_ok(get_size(program)))
    _ok(get(program, buffer))
    return bytes(buffer).rstrip(b"\0 \n").decode(errors="replace")


def _ok(answer: tuple[Any, ...]) -> Any:
    """The value of an NVRTC call; raises DeploError if it failed."""
    nvrtc = _nvrtc()
    if answer[0] != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise DeploError(f"NVRTC failed: {answer[0].name}")
    return answer[1] if len(answer) > 1 else None


@cache
def _nvrtc() -> Any:
    try:
        nvrtc: Any = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise MissingEnvironmentError(
            f"compiling for a GPU needs NVRTC: pip install 'deplo[cuda]' ({error})"
        ) from error
    return nvrtc
