"""The dynamic sizes of a plan: extents as expressions over them, and what a call's shapes say they are.

In a plan's JSON form an extent is a number or the text of an expression in Python's syntax over the plan's
sizes, `s0` the first:

    {"shape": ["s0", "(s1 + 3) // 4", 64]}
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from ..errors import UsageError

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


@dataclass(frozen=True)
class Expression:
    """An extent that depends on sizes."""

    text: str

    def __str__(self) -> str:
        return self.text

    def evaluate(self, sizes: Sequence[int]) -> int:
        """Its value where size `i` is `sizes[i]`."""
        return _compiled(self.text)(sizes)

    def named(self, names: Sequence[str]) -> str:
        """Its text with the sizes' own names."""
        return re.sub(r"\bs(\d+)\b", lambda found: names[int(found[1])], self.text)


Extent: TypeAlias = int | Expression


def read_extent(data: Any) -> Extent:
    """An extent from its JSON form. Raises ValueError if it is none."""
    if isinstance(data, int):
        return data
    if not isinstance(data, str):
        raise ValueError(f"not an extent: {data!r}")
    try:
        _compiled(data)({number: 1 << 20 for number in sizes_in(Expression(data))})
    except (SyntaxError, ArithmeticError) as error:
        raise ValueError(f"not an extent: {data!r}") from error
    return Expression(data)


def evaluate(extent: Extent, sizes: Sequence[int]) -> int:
    """The extent where size `i` is `sizes[i]`."""
    return extent.evaluate(sizes) if isinstance(extent, Expression) else extent


def static(extent: Extent) -> int:
    """An extent of a plan whose sizes are known."""
    assert isinstance(extent, int), "the plan's sizes are not known yet: see Plan.at"
    return extent


def evaluator(
    lists: Sequence[Sequence[Extent]],
) -> Callable[[Sequence[int]], tuple[tuple[int, ...], ...]]:
    """What computes lists of extents from sizes, all at once."""
    tuples: list[ast.expr] = [ast.Tuple([_tree(e) for e in each], ast.Load()) for each in lists]
    return _function(ast.Tuple(tuples, ast.Load()))


@cache
def _compiled(text: str) -> Callable[[Sequence[int] | Mapping[int, int]], int]:
    """What computes an expression from sizes. Raises ValueError for what is no arithmetic of them."""
    return _function(_tree(Expression(text)))


def _tree(extent: Extent) -> ast.expr:
    if isinstance(extent, int):
        return ast.Constant(extent)
    return _checked(ast.parse(extent.text, mode="eval").body)


def _function(body: ast.expr) -> Callable[[Any], Any]:
    """A function of sizes, from an expression that is checked."""
    arguments = ast.arguments([], [ast.arg("sizes")], None, [], [], None, [])
    tree = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    made: Callable[[Any], Any] = eval(compile(tree, "<sizes>", "eval"), {"__builtins__": {}})
    return made


def _checked(node: ast.expr) -> ast.expr:
    """An expression that consists of nothing but sums, products and quotients, of sizes by their numbers."""
    match node:
        case ast.Constant(value=int()):
            return node
        case ast.Name(id=name) if re.fullmatch(r"s\d+", name):
            number = ast.Constant(int(name[1:]))
            return ast.Subscript(ast.Name("sizes", ast.Load()), number, ast.Load())
        case ast.UnaryOp(op=ast.USub() as op, operand=operand):
            return ast.UnaryOp(op, _checked(operand))
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            return ast.BinOp(_checked(left), op, _checked(right))
        case _:
            raise ValueError(f"not an extent: {ast.unparse(node)}")


def sizes_in(extent: Extent) -> set[int]:
    """The numbers of the sizes that an extent depends on."""
    if isinstance(extent, int):
        return set()
    return {int(number) for number in re.findall(r"\bs(\d+)\b", extent.text)}


class EmptySize(Exception):
    """A size was found to be 0: the program must run as compiled for that, on what calls gave so far."""

    def __init__(self, number: int, given: Sequence[Sequence[Any]]):
        super().__init__(f"size {number} is 0")
        self.number = number
        self.given = given


@dataclass(frozen=True)
class Size:
    """A size of the program: the axis of an argument, or of what a call gives, that says it; its limits.

    The extent of the axis is `scale * size + offset`.
    """

    name: str
    minimum: int
    maximum: int
    axis: int
    argument: int | None = None
    buffer: int | None = None
    """The buffer that the call gives, if no argument says the size."""
    scale: int = 1
    offset: int = 0

    def of(self, shapes: Sequence[Sequence[int]], arguments: Sequence[str]) -> int:
        """Its value where arguments have `shapes`. Raises UsageError if it is not allowed."""
        assert self.argument is not None
        shape, argument = shapes[self.argument], arguments[self.argument]
        if self.axis >= len(shape):
            raise UsageError(
                f"argument '{argument}': expected an axis {self.axis}, whose extent is '{self.name}', got "
                f"shape {list(shape)}"
            )
        if (value := self.at(shape[self.axis])) is None:
            raise UsageError(
                f"argument '{argument}', axis {self.axis}: {self._wanted}, got {shape[self.axis]}; "
                "compile the program for other sizes"
            )
        return value

    def found(self, shape: Sequence[int]) -> int:
        """Its value where the call gave an array of `shape`. Raises UsageError if it is not allowed."""
        if (value := self.at(shape[self.axis])) is None:
            raise UsageError(f"{self._wanted}, PyTorch found {shape[self.axis]}")
        return value

    def at(self, extent: int) -> int | None:
        """Its value where its axis has `extent`; None if that is not allowed."""
        value, rest = divmod(extent - self.offset, self.scale)
        return value if rest == 0 and self.minimum <= value <= self.maximum else None

    def check(self, value: int) -> None:
        """Raise UsageError for a value that is not allowed."""
        if not hasattr(value, "__index__"):
            raise UsageError(f"'{self.name}' must be an integer {self._limits}, got {value!r}")
        if not self.minimum <= value <= self.maximum:
            raise UsageError(
                f"'{self.name}' must be {self._limits}, got {value}; compile the program for other sizes"
            )

    @property
    def _wanted(self) -> str:
        """What its axis must be."""
        if (self.scale, self.offset) == (1, 0):
            return f"'{self.name}' must be {self._limits}"
        plus = f" {'-' if self.offset < 0 else '+'} {abs(self.offset)}" if self.offset else ""
        return f"must be {self.scale} * n{plus}, where n, '{self.name}', is {self._limits}"

    @property
    def _limits(self) -> str:
        most = f" to {self.maximum}" if self.maximum < 2**31 - 1 else ""
        return f"from {self.minimum}{most}" if most else f"at least {self.minimum}"
