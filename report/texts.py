"""The text of a stage, and which operations each of its lines says.

    0  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    1    %exp = tensor_ir.elementwise ... {
    2      %0 = math.exp %in : f32
    3    }                                     // the line ends what began on line 1, and says that

A `}` belongs to the operation that it ends. In CUDA an operation may have no line, as a constant that is
written where it is used: then the lines of those who use it say it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer

from ..codegen.cuda_printer import CudaPrinter
from ..codegen.llvm_sources import llvm_sources
from ..dialects import cuda

Lines = range
"""Neighbouring lines, counted from 0."""


@dataclass
class Text:
    """The lines of a text, with the operations that each line says."""

    lines: list[str]
    said: dict[int, list[Operation]] = field(default_factory=dict[int, list[Operation]])
    parts: dict[str, list[Lines]] = field(default_factory=dict[str, list[Lines]])
    """The lines of each function or kernel."""

    def first_lines(self) -> dict[Operation, int]:
        """The first line that says each operation."""
        found: dict[Operation, int] = {}
        for line in sorted(self.said):
            for op in self.said[line]:
                found.setdefault(op, line)
        return found


class _Counted(StringIO):
    """A text that knows how many lines it has."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = 0

    def write(self, text: str, /) -> int:
        self.ends += text.count("\n")
        return super().write(text)


class _MlirPrinter(Printer):
    """Notes the lines of each operation."""

    def __init__(self, stream: _Counted):
        super().__init__(stream)
        self.text = stream
        self.spans: dict[Operation, Lines] = {}

    def print_op(self, op: Operation) -> None:
        """Print one operation."""
        first = self.text.ends
        super().print_op(op)
        self.spans[op] = range(first, self.text.ends + 1)


class _CudaLines(CudaPrinter):
    """The same for C++, in which each line begins with its end of line."""

    def __init__(self, stream: _Counted):
        super().__init__(stream)
        self.text = stream
        self.spans: dict[Operation, Lines] = {}

    def statement(self, op: Operation) -> None:
        """The lines of one operation."""
        first = self.text.ends + 1
        super().statement(op)
        self.spans[op] = range(first, self.text.ends + 1)


def mlir_text(module: ModuleOp) -> Text:
    """A module in MLIR's syntax; its parts are the operations that have a symbol."""
    stream = _Counted()
    printer = _MlirPrinter(stream)
    printer.print_op(module)
    text = Text(stream.getvalue().splitlines(), _said(printer.spans))
    for op, lines in printer.spans.items():
        match op.get_attr_or_prop("sym_name"):
            case StringAttr(data=name):
                text.parts.setdefault(name, []).append(lines)
            case _:
                pass
    return text


def cuda_text(module: ModuleOp) -> Text:
    """The CUDA C++ of a module; its parts are the kernels."""
    text = Text([])
    for function in module.body.block.ops:
        if not isinstance(function, cuda.FuncOp):
            continue
        stream = _Counted()
        printer = _CudaLines(stream)
        printer.statement(function)
        source = stream.getvalue()
        lines = source.strip("\n").splitlines()
        # Kernels begin where the printer's end of line is, and stand one empty line apart.
        skipped = len(source) - len(source.lstrip("\n"))
        begin = len(text.lines) + bool(text.lines)
        shift = begin - skipped
        end = begin + len(lines)
        spans = {
            op: range(span.start + shift, min(span.stop + shift, end))
            for op, span in printer.spans.items()
        }
        text.said |= _said(spans)
        text.parts[function.sym_name.data] = [range(begin, end)]
        text.lines += [""] * (begin - len(text.lines)) + lines
    return text


_NUMBER = re.compile(r"  ; (\d+)$")


def llvm_texts(module: ModuleOp) -> dict[str, Text]:
    """The LLVM IR of each kernel of a module, with the program's names."""
    numbered = list(module.walk())
    comments = {op: f"  ; {number}" for number, op in enumerate(numbered)}
    found: dict[str, Text] = {}
    for name, source in llvm_sources(module, named=True, comments=comments).items():
        text = Text([])
        for line in source.splitlines():
            if (match := _NUMBER.search(line)) is not None:
                text.said[len(text.lines)] = [numbered[int(match[1])]]
                line = line[: match.start()]
            text.lines.append(line)
        found[name] = text
    return found


def joined(texts: Mapping[str, Text]) -> Text:
    """Texts one after the other, each a part, with an empty line between them."""
    whole = Text([])
    for name, text in texts.items():
        if whole.lines:
            whole.lines.append("")
        begin = len(whole.lines)
        whole.lines += text.lines
        whole.said |= {begin + line: ops for line, ops in text.said.items()}
        whole.parts[name] = [range(begin, len(whole.lines))]
    return whole


def _said(spans: Mapping[Operation, Lines]) -> dict[int, list[Operation]]:
    """The operations that each line says: the innermost that it is of, and those that are written in it."""
    said: dict[int, list[Operation]] = {}
    for op, lines in sorted(spans.items(), key=lambda pair: len(pair[1]), reverse=True):
        for line in lines:
            said[line] = [op]
    hidden = {op for op, lines in spans.items() if not lines}
    for line, (op,) in said.items():
        said[line] = [op, *_hidden_in(op, hidden)]
    return said


def _hidden_in(op: Operation, hidden: set[Operation]) -> Iterator[Operation]:
    """Operations without a line that an operation uses, and those that these use."""
    todo: list[SSAValue] = list(op.operands)
    seen: set[Operation] = set()
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Operation) and owner in hidden and owner not in seen:
            seen.add(owner)
            todo += owner.operands
            yield owner
