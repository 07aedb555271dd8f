"""Which statements of code on the command line belong to the program, and which prepare its inputs.

    x = torch.randn(4)       prepares the input x: it reads no tensor
    n = x.shape[0]           prepares: it makes no tensor
    y = torch.relu(x)        is computed by the program
    y[0] = 0.0               is computed by the program: it changes what the program computed

Every statement runs once, to know what it makes.
"""

from __future__ import annotations

import ast
import dis
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch

from ..errors import UsageError

Namespace = dict[str, Any]
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Kept:
    """A statement of the program."""

    node: ast.stmt
    text: str
    """As it was written."""
    changes: bool
    """Whether it changes a tensor in place, or may: it is needed whatever it sets."""


@dataclass
class Body:
    """The statements of a program so far, and the values that they read."""

    namespace: Namespace
    lift: Callable[[ast.stmt], ast.stmt]
    """Names the tensors and modules that a statement makes."""
    run: Callable[[ast.stmt], None]
    statements: list[Kept] = field(default_factory=list[Kept])
    computed: set[str] = field(default_factory=set[str])
    """Names that statements of the program set."""
    read: dict[str, Any] = field(default_factory=dict[str, Any])
    """Names that it reads before it sets them, with their values."""
    told: list[str] = field(default_factory=list[str])
    """What is left out of the program, for people."""

    def add(self, statement: ast.stmt) -> None:
        """Run a statement, and keep it if it computes something of tensors. Raises UsageError."""
        if isinstance(statement, _DEFINITIONS):
            self._prepare(statement, {})
            return
        text, loads = ast.unparse(statement), names_read(statement)
        if not any(holds_tensor(self.namespace.get(name)) for name in loads):
            self._prepare(statement, {})
            tensors = [n for n in names_stored(statement) if holds_tensor(self.namespace.get(n))]
            if tensors and not is_factory(getattr(statement, "value", None)):
                self._tell_prepared(text, tensors)
            return
        if is_factory(getattr(statement, "value", None)):
            self._prepare(statement, {})
            return
        is_simple = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
        statement = self.lift(statement) if is_simple else statement
        before, versions = dict(self.namespace), _versions(self.namespace)
        sizes = _sizes(self.namespace)
        self.run(statement)
        changed = [name for name, version in versions.items() if version != before[name]._version]
        grown = [name for name, size in sizes.items() if size != len(before[name])]
        if any(holds_tensor(before[name]) for name in grown):
            raise UsageError(
                f"-c: `{text}` puts tensors into {grown[0]}; make it by one expression, or in a function"
            )
        if inputs := [name for name in changed if name not in self.computed]:
            self._change_inputs(text, inputs)
        elif changed or any(holds_tensor(self.namespace.get(n)) for n in names_stored(statement)):
            self.note_reads(statement, before)
            simple = isinstance(statement, ast.Assign) and not changed
            self.statements.append(Kept(statement, text, changes=not simple))
            self.computed |= names_stored(statement)
        else:
            self._check_rewritten(statement)
            self.told.append(f"left out, it makes no tensor: {text}")

    def _prepare(self, statement: ast.stmt, before: Namespace) -> None:
        self.run(statement)
        self._check_rewritten(statement)

    def _tell_prepared(self, text: str, names: Sequence[str]) -> None:
        self.told.append(f"left out, it prepares {', '.join(sorted(names))}: {text}")

    def _change_inputs(self, text: str, changed: Sequence[str]) -> None:
        """Tell that a statement prepares inputs. Raises UsageError where the program has read them."""
        if self.statements:
            raise UsageError(
                f"-c: `{text}` changes {', '.join(changed)} in place after the program has read it; "
                "compute a new tensor instead"
            )
        self._tell_prepared(text, changed)

    def _check_rewritten(self, statement: ast.stmt) -> None:
        """Raise UsageError where preparation sets a name that the program uses."""
        if again := names_stored(statement) & (self.computed | set(self.read)):
            raise UsageError(
                f"-c: `{ast.unparse(statement)}` sets {', '.join(sorted(again))} again after the program "
                "has used it; choose another name"
            )

    def note_reads(self, node: ast.AST, values: Namespace) -> None:
        """Note what a statement or expression reads that nothing before it computes."""
        for name in names_read(node):
            value = values.get(name)
            if outer := self.computed.intersection(globals_of(value)):
                raise UsageError(
                    f"-c: {name} reads {min(outer)}, which the program computes; make it an argument"
                )
            if name in values and name not in self.computed:
                self.read.setdefault(name, value)

    def needed(self, last: ast.expr) -> list[ast.stmt]:
        """The statements that `last` needs; the others are told."""
        names, kept = set(names_read(last)), list[ast.stmt]()
        for each in reversed(self.statements):
            if each.changes or names & names_stored(each.node):
                names.update(names_read(each.node))
                kept.append(each.node)
            else:
                self.told.append(f"left out, nothing reads it: {each.text}")
        return kept[::-1]

    def reads_of(self, nodes: Sequence[ast.AST]) -> dict[str, Any]:
        """What some of the statements and an expression read that they do not compute, in order."""
        computed: set[str] = set()
        found: dict[str, Any] = {}
        for node in nodes:
            for name in names_read(node):
                if name in self.read and name not in computed:
                    found.setdefault(name, self.read[name])
            computed |= names_stored(node)
        return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, as it is written; the variables of comprehensions are their own."""
    yield node
    for inner in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.comprehension) and inner is node.target):
            yield from _walk(inner)


def names_read(node: ast.AST) -> list[str]:
    """The names that a statement reads, that of `y += 1` included, each once."""
    names: dict[str, None] = {}
    for inner in _walk(node):
        if isinstance(inner, ast.AugAssign) and isinstance(inner.target, ast.Name):
            names[inner.target.id] = None
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            names[inner.id] = None
    return list(names)


def names_stored(node: ast.AST) -> set[str]:
    """The names that a statement sets."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    found = (n for n in _walk(node) if isinstance(n, ast.Name))
    return {name.id for name in found if isinstance(name.ctx, ast.Store)}


def holds_tensor(value: Any) -> bool:
    """Whether a value is a tensor or a collection with one in it."""
    match value:
        case torch.Tensor():
            return True
        case list() | tuple() | set():
            return any(map(holds_tensor, cast("list[Any]", value)))
        case dict():
            return any(map(holds_tensor, cast("dict[Any, Any]", value).values()))
        case _:
            return False


def globals_of(value: Any) -> Iterator[str]:
    """The names that a function of the code reads from outside of it."""
    if not isinstance(value, types.FunctionType):
        return
    pending = [value.__code__]
    while pending:
        code = pending.pop()
        yield from (i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL")
        pending += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def _versions(namespace: Namespace) -> dict[str, int]:
    """How often each tensor was changed in place."""
    tensors = {n: v for n, v in namespace.items() if isinstance(v, torch.Tensor)}
    return {name: value._version for name, value in tensors.items() if not value.is_inference()}


def _sizes(namespace: Namespace) -> dict[str, int]:
    """The length of each collection that statements may put tensors into."""
    return {n: len(v) for n, v in namespace.items() if isinstance(v, list | dict | set)}


CONSTRUCTORS = frozenset(
    "arange empty eye full linspace ones rand randint randn randperm tensor zeros".split()
)
"""Functions of `torch` whose results are inputs of the program."""


def is_constructor(node: ast.AST | None, names: frozenset[str] = CONSTRUCTORS) -> bool:
    """Whether an expression calls one of some functions of `torch`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "torch"
        and node.func.attr in names
    )


_FACTORIES = CONSTRUCTORS | {f"{name}_like" for name in CONSTRUCTORS}


def is_factory(node: ast.AST | None) -> bool:
    """Whether an expression makes a tensor, or a tuple of them, of the size of others at most."""
    if isinstance(node, ast.Tuple):
        return all(map(is_factory, node.elts))
    return is_constructor(node, _FACTORIES)
