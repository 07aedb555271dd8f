"""What a program says of its dynamic sizes: their names, which values are allowed, and what to reckon with.

    func.func @main(%x: tensor<?x64xf32, #sym.extents<s0>>)
        attributes {sym.sizes = [#sym.size<"seq", 2, 4096, hint = 32>]}

A size is at least 1 and less than 2**31. Extents are compared within what is allowed (`allowing`). The hint
is the size decisions reckon with; it never changes a result.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

MAX_SIZE = 2**31 - 1
"""The largest size a symbol may have."""

DEFAULT_HINT = 64
"""The size that decisions reckon with where a program gives no example."""

SIZES = "sym.sizes"
"""The attribute of `@main` that holds a `#sym.size` for each symbol."""


@irdl_attr_definition
class SizeAttr(ParametrizedAttribute):
    """What a symbol of `@main` stands for: its name, smallest and largest value, and a hint.

    `#sym.size<"seq", 2, 4096, hint = 32>`; without a largest value `#sym.size<"seq", 1, none>`. A size that
    a call of PyTorch finds in its data may be 0 as well. Passes reckon with sizes from 1 on all the same:
    for 0 the program is compiled apart.
    """

    name = "sym.size"

    label: StringAttr
    minimum: IntAttr
    maximum: IntAttr | NoneAttr
    hint: IntAttr

    def __init__(
        self, label: str, minimum: int = 1, maximum: int | None = None, hint: int = DEFAULT_HINT
    ):
        limit = NoneAttr() if maximum is None else IntAttr(maximum)
        super().__init__(StringAttr(label), IntAttr(minimum), limit, IntAttr(hint))

    @property
    def least(self) -> int:
        """The smallest value that passes reckon with."""
        return max(1, self.minimum.data)

    @property
    def largest(self) -> int:
        """The largest value that is allowed."""
        return MAX_SIZE if isinstance(self.maximum, NoneAttr) else self.maximum.data

    def with_hint(self, hint: int) -> SizeAttr:
        """The same size with another hint."""
        return SizeAttr.new([self.label, self.minimum, self.maximum, IntAttr(hint)])

    def verify(self) -> None:
        if not (0 <= self.minimum.data <= self.largest <= MAX_SIZE and self.largest):
            raise VerifyException(
                f"size {self.label} must allow sizes from 0 to {MAX_SIZE}, got "
                f"{self.minimum.data} to {self.largest}"
            )
        if self.hint.data < 1:
            raise VerifyException(f"the hint of {self.label} must be positive")

    def print_parameters(self, printer: Printer) -> None:
        limit = "none" if isinstance(self.maximum, NoneAttr) else str(self.maximum.data)
        with printer.in_angle_brackets():
            printer.print_attribute(self.label)
            printer.print_string(f", {self.minimum.data}, {limit}")
            if self.hint.data != DEFAULT_HINT:
                printer.print_string(f", hint = {self.hint.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            label = parser.parse_str_literal()
            parser.parse_punctuation(",")
            minimum = parser.parse_integer(allow_boolean=False)
            parser.parse_punctuation(",")
            maximum: Attribute = NoneAttr()
            if not parser.parse_optional_keyword("none"):
                maximum = IntAttr(parser.parse_integer(allow_boolean=False))
            hint = DEFAULT_HINT
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword("hint")
                parser.parse_punctuation("=")
                hint = parser.parse_integer(allow_boolean=False)
        return StringAttr(label), IntAttr(minimum), maximum, IntAttr(hint)


_ALLOWED: ContextVar[tuple[SizeAttr, ...]] = ContextVar("allowed sizes", default=())


@contextmanager
def allowing(sizes: Sequence[SizeAttr]) -> Generator[None]:
    """Let comparisons reckon with `sizes[i]`, what symbol `i` stands for."""
    token = _ALLOWED.set(tuple(sizes))
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def allowed_now() -> tuple[SizeAttr, ...]:
    """What `allowing` says here: of symbol `i` the `i`-th; nothing of those behind."""
    return _ALLOWED.get()


def allowed_at(op: Operation) -> tuple[SizeAttr, ...]:
    """What the module that `op` stands in says of its symbols; without a module, what is allowed now."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    if not top.regions:
        return allowed_now()
    functions = [f for region in top.regions for block in region.blocks for f in block.ops]
    for function in functions:
        if isinstance(said := function.attributes.get(SIZES), ArrayAttr):
            return tuple(size for size in said if isinstance(size, SizeAttr))
    return ()
