"""The machine code of kernels, and from which line of their CUDA C++ or LLVM IR each instruction came.

Both compilers are told the lines of their text, as for debuggers: NVRTC by an option, LLVM by locations
behind the instructions. That changes no instruction; where it would, instructions have no lines.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from ..errors import DeploError, MissingEnvironmentError
from ..machine.targets import Target
from ..runtime.jit import assembly
from ..runtime.nvrtc import LINE_INFO, compile_all
from ..runtime.threads import thread_count
from .stages import Stage
from .texts import Text, joined

PACKAGE = "nvidia-cuda-nvdisasm"


def machine_code(stage: Stage, target: Target) -> Stage:
    """The machine code of the kernels of the last stage of a program.

    Raises MissingEnvironmentError where what makes or reads it is missing.
    """
    sources = {
        name: stage.text.lines[part.start : part.stop]
        for name, (part,) in stage.text.parts.items()
    }
    if target.is_gpu:
        tool = disassembler()
        cubins = compile_all(["\n".join(s) + "\n" for s in sources.values()], target.name, LINE_INFO)
        with ThreadPoolExecutor(thread_count()) as pool:
            made = list(pool.map(lambda cubin: _sass(tool, cubin.code), cubins))
    else:
        made = [_assembled(source, target) for source in sources.values()]
    texts = {name: Text(lines) for name, (lines, _) in zip(sources, made, strict=True)}
    text = joined(texts)
    origins: list[list[int]] = [[] for _ in text.lines]
    for name, (_, lines) in zip(sources, made, strict=True):
        begin, shift = text.parts[name][0].start, stage.text.parts[name][0].start
        for number, line in lines.items():
            origins[begin + number] = [shift + line]
    return Stage("sass" if target.is_gpu else "asm", text, origins)


Code = tuple[list[str], dict[int, int]]
"""Lines of machine code, and the line of the source that some of them came from."""

# --------------------------------------------------------------------------- GPUs

_INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(.*\S)\s*;")
_SOURCE_LINE = re.compile(r'//## File ".*", line (\d+)')
_LABEL = re.compile(r"(\.L_\w+):")


def disassembler() -> str:
    """Where NVIDIA's disassembler is. Raises MissingEnvironmentError where it is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    own = (Path(str(file.locate())) for file in files if file.name == "nvdisasm")
    path = next((str(each) for each in own if each.exists()), None)
    if found := path or shutil.which("nvdisasm"):
        return found
    raise MissingEnvironmentError(
        "reading the machine code of a GPU needs NVIDIA's disassembler: pip install 'deplo[sass]'"
    )


def _sass(tool: str, cubin: bytes) -> Code:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, "-g", "-c", file.name], capture_output=True, text=True)
    if done.returncode:
        raise DeploError(f"nvdisasm does not read a kernel: {done.stderr.strip()}")
    lines: list[str] = []
    came: dict[int, int] = {}
    line = None
    for text in done.stdout.splitlines():
        if (match := _SOURCE_LINE.search(text)) is not None:
            line = int(match[1]) - 1
        elif (match := _INSTRUCTION.search(text)) is not None:
            if line is not None:
                came[len(lines)] = line
            lines.append(f"  {match[1]}  {match[2]}")
        elif (match := _LABEL.match(text)) is not None:
            lines.append(f"{match[1]}:")
    kept = _without_padding(lines)
    return kept, {number: line for number, line in came.items() if number < len(kept)}


def _without_padding(lines: list[str]) -> list[str]:
    """Instructions without those behind the last jump, which nothing reaches."""
    end = len(lines)
    while end and (lines[end - 1].endswith(" NOP") or lines[end - 1].endswith(":")):
        end -= 1
    return lines[:end]


# --------------------------------------------------------------------------- CPUs

_PLACE = re.compile(r"\t\.loc\t1 (\d+)")
_DATA = ("\t.long", "\t.quad", "\t.short", "\t.byte", "\t.zero")
"""Directives that lay down constants."""

_SCOPE = """
!llvm.dbg.cu = !{!9000}
!llvm.module.flags = !{!9002}
!9000 = distinct !DICompileUnit(language: DW_LANG_C99, file: !9001, emissionKind: LineTablesOnly)
!9001 = !DIFile(filename: "kernel.ll", directory: "")
!9002 = !{i32 2, !"Debug Info Version", i32 3}
!9003 = distinct !DISubprogram(name: "k", file: !9001, type: !9004, unit: !9000, spFlags: DISPFlagDefinition)
!9004 = !DISubroutineType(types: !{})
"""
"""What LLVM is told of a text whose lines it is told; nodes of kernels have smaller numbers."""


def _assembled(source: Sequence[str], target: Target) -> Code:
    core = () if target.name == "cpu" or target.cpu is None else target.cpu.for_llvm
    lines = [line for line in _assembly(source, core) if _is_shown(line)]
    numbers = [number for number, line in enumerate(lines) if _is_instruction(line)]
    placed = _placed_instructions(_assembly(_with_places(source), core))
    came: dict[int, int] = {}
    if [lines[number] for number in numbers] == [line for line, _ in placed]:
        came = {n: place for n, (_, place) in zip(numbers, placed, strict=True) if place is not None}
    return [line.expandtabs(2) for line in lines], came


def _assembly(source: Sequence[str], core: Sequence[str]) -> list[str]:
    return assembly("\n".join(source) + "\n", *core).splitlines()


def _is_instruction(line: str) -> bool:
    return line.startswith("\t") and not line.startswith(("\t.", "\t#"))


def _is_shown(line: str) -> bool:
    """Whether a line is an instruction, the place of a jump, or a constant."""
    return bool(line.strip()) and (not line.startswith(("\t.", "\t#")) or line.startswith(_DATA))


def _with_places(source: Sequence[str]) -> list[str]:
    """LLVM IR that says of each instruction of its last function, the kernel, on which line it stands."""
    begin = max(number for number, line in enumerate(source) if line.startswith("define "))
    end = source.index("}", begin)
    head = source[begin].removesuffix("{") + "!dbg !9003 {"
    body = [
        f"{line}, !dbg !DILocation(line: {number + 1}, scope: !9003)"
        if line.startswith("  ") and " = phi " not in line
        else line
        for number, line in enumerate(source[begin + 1 : end], begin + 1)
    ]
    return [*source[:begin], head, *body, *source[end:], *_SCOPE.splitlines()]


def _placed_instructions(lines: Sequence[str]) -> list[tuple[str, int | None]]:
    """The instructions of an assembly, each with its line of the source, if it has one."""
    found: list[tuple[str, int | None]] = []
    place = None
    for line in lines:
        if (match := _PLACE.match(line)) is not None:
            place = int(match[1]) - 1 if int(match[1]) else None
        elif _is_instruction(line):
            found.append((line, place))
    return found
