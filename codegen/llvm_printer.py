"""LLVM's own text of functions in the `llvm` dialect: a line for each operation.

    llvm.func @k(%x: !llvm.ptr {llvm.noalias}, %n: i64) {
      llvm.br ^bb1(%zero : i64)
    ^bb1(%i: i64):
      %c = llvm.icmp "slt" %i, %n : i64
      ...

becomes

    define void @"k"(ptr noalias %x, i64 %n) {
    entry:
      br label %b
    b:
      %i = phi i64 [ 0, %entry ], [ %next, %b.1 ]
      %c = icmp slt i64 %i, %n
      ...

Names are the program's own, if they are asked for: what is compiled has none, so that equal kernels of two
programs are one text. A block's arguments are what its predecessors' branches hand over, as LLVM's `phi` says
it. Printing decides nothing; what LLVM is told besides, `Notes` holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xdsl.dialects import llvm
from xdsl.ir import Block, Operation, SSAValue

from ..errors import DeploError
from .llvm_operations import PRINTED, Scope, declaration, number_text, symbol, type_text
from .math_library import is_in_library, link

GROUP = "!0"
"""The node that names independent accesses."""


@dataclass(frozen=True)
class Notes:
    """What LLVM is told of a function besides its operations.

    `attributes` are the function's own. `loops` has options of loops by the jump back to their beginning,
    each the inside of a metadata node. Accesses that are `independent` are of the group that such options
    may name.
    """

    attributes: Sequence[str] = ()
    loops: Mapping[Operation, Sequence[str]] = field(default_factory=dict[Operation, Sequence[str]])
    independent: AbstractSet[Operation] = frozenset()


def llvm_text(
    functions: Sequence[tuple[llvm.FuncOp, Notes]],
    *,
    named: bool = True,
    comments: Mapping[Operation, str] | None = None,
) -> str:
    """The text of a module of functions, defined or declared, and of what they call.

    That is declared, or is defined if it is of the library of elementary functions. Values have the program's
    names, or none; `comments` end the lines of operations.

    Raises DeploError for what has no text here.
    """
    module = _Module(named, comments or {})
    own = {function.sym_name.data: (function, notes) for function, notes in functions}
    parts = [module.function(*each) for name, each in own.items() if not is_in_library(name)]
    linked = link(module.called)
    called = {**linked.declarations, **module.called}
    declared = [text for n, text in called.items() if n not in own and not is_in_library(n)]
    return "\n".join([*declared, "", *linked.definitions, *parts, *module.metadata(), ""])


def loop_option(name: str, value: str) -> str:
    """The inside of a metadata node that says an option of a loop."""
    return f'!"llvm.loop.{name}", {value}'


def edges(terminator: Operation | None) -> list[tuple[Block, Sequence[SSAValue]]]:
    """The blocks that an operation may go on with, and the values that each gets."""
    match terminator:
        case llvm.BrOp():
            return [(terminator.successor, terminator.arguments)]
        case llvm.CondBrOp():
            then, otherwise = terminator.successors
            _, *given = terminator.operands
            count = len(then.args)
            return [(then, given[:count]), (otherwise, given[count:])]
        case _:
            return []


class _Module:
    """Prints functions, and remembers what belongs to all of them."""

    def __init__(self, named: bool, comments: Mapping[Operation, str]) -> None:
        self.named = named
        self.comments = comments
        self.called: dict[str, str] = {}
        """The declarations of what is called, by name."""
        self.nodes: list[str] = []
        """Nodes of metadata, after the one that names independent accesses."""

    def function(self, function: llvm.FuncOp, notes: Notes) -> str:
        name, type = function.sym_name.data, function.function_type
        if not function.body.blocks:
            return declaration(name, type_text(type.output), [type_text(t) for t in type.inputs])
        return _Function(self, function, notes).text()

    def node(self, inside: str) -> str:
        self.nodes.append(inside)
        return f"!{len(self.nodes)}"

    def metadata(self) -> Iterator[str]:
        if self.nodes:
            yield f"{GROUP} = distinct !{{}}"
        for number, inside in enumerate(self.nodes, 1):
            yield f"!{number} = {inside}"


class _Function:
    """Prints one function."""

    def __init__(self, module: _Module, function: llvm.FuncOp, notes: Notes):
        self.module = module
        self.function = function
        self.notes = notes
        self.scope = Scope(module.called)
        self._taken: dict[str, int] = {}

    def text(self) -> str:
        entry, *others = self.function.body.blocks
        arguments = ", ".join(map(self._argument, range(len(entry.args))))
        self._name_all()
        lines = [self._head(arguments), f"{self.scope.labels[entry]}:", *self._operations(entry)]
        jumps = self._jumps()
        for block in others:
            lines.append(f"{self.scope.labels[block]}:")
            lines += self._phis(block, jumps.get(block, ()))
            lines += self._operations(block)
        return "\n".join([*lines, "}", ""])

    def _head(self, arguments: str) -> str:
        result = type_text(self.function.function_type.output)
        attributes = "".join(f"{each} " for each in self.notes.attributes)
        return f"define {result} {symbol(self.function.sym_name.data)}({arguments}) {attributes}{{"

    def _argument(self, number: int) -> str:
        value = self.function.body.blocks[0].args[number]
        said = self.function.arg_attrs.data[number].data if self.function.arg_attrs else {}
        if unknown := set(said) - {"llvm.noalias"}:
            raise DeploError(f"the argument attribute {min(unknown)} has no text in LLVM IR here")
        self.scope.names[value] = self._fresh(value.name_hint)
        return f"{type_text(value.type)} {'noalias ' if said else ''}{self.scope.names[value]}"

    def _fresh(self, hint: str | None, otherwise: str = "v") -> str:
        """A name that is free, of the hint if there is one; values and blocks share theirs."""
        base = hint or otherwise if self.module.named else otherwise
        if base[0].isdigit():
            base = f"{otherwise}{base}"
        while True:
            count = self._taken.get(base, 0)
            self._taken[base] = count + 1
            if not count:
                return f"%{base}"
            base = f"{base}.{count}"

    def _name_all(self) -> None:
        for number, block in enumerate(self.function.body.blocks):
            self.scope.labels[block] = self._fresh(block.name_hint, "b" if number else "entry")[1:]
        for block in self.function.body.blocks:
            for value in block.args:
                if value not in self.scope.names:
                    self.scope.names[value] = self._fresh(value.name_hint)
            for op in block.ops:
                for value in op.results:
                    self.scope.names[value] = self._named(op, value)

    def _named(self, op: Operation, value: SSAValue) -> str:
        if isinstance(op, llvm.ConstantOp):
            return number_text(op.value)
        return "undef" if isinstance(op, llvm.UndefOp) else self._fresh(value.name_hint)

    def _jumps(self) -> dict[Block, list[tuple[str, Sequence[SSAValue]]]]:
        """Where each block is reached from, and what it is handed over there."""
        jumps: dict[Block, list[tuple[str, Sequence[SSAValue]]]] = {}
        for block in self.function.body.blocks:
            for target, values in edges(block.last_op):
                jumps.setdefault(target, []).append((self.scope.labels[block], values))
        return jumps

    def _phis(self, block: Block, jumps: Sequence[tuple[str, Sequence[SSAValue]]]) -> Iterator[str]:
        for position, argument in enumerate(block.args):
            incoming = ", ".join(
                f"[ {self.scope.names[values[position]]}, %{label} ]" for label, values in jumps
            )
            yield f"  {self.scope.names[argument]} = phi {type_text(argument.type)} {incoming}"

    def _operations(self, block: Block) -> Iterator[str]:
        for op in block.ops:
            if isinstance(op, llvm.ConstantOp | llvm.UndefOp):
                continue
            printed = PRINTED.get(type(op))
            if printed is None:
                raise DeploError(f"{op.name} has no text in LLVM IR here")
            text = printed(self.scope, op)
            result = f"{self.scope.names[op.results[0]]} = " if op.results else ""
            yield f"  {result}{text}{self._note(op)}{self.module.comments.get(op, '')}"

    def _note(self, op: Operation) -> str:
        if op in self.notes.independent:
            return f", !llvm.access.group {GROUP}"
        if options := self.notes.loops.get(op):
            told = [self.module.node(f"!{{{option}}}") for option in options]
            # What names a loop is a node that holds itself.
            inside = ", ".join([f"!{len(self.module.nodes) + 1}", *told])
            return f", !llvm.loop {self.module.node(f'distinct !{{{inside}}}')}"
        return ""
