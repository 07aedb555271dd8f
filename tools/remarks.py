"""`deplo-opt --remarks`: what each pass did or declined to do, and if it did nothing, what it looked for."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..errors import counted
from ..passes.decisions import Decision
from ..passes.levels import LEVELS, count_of, levels_in, levels_of, missing
from .diagnostics import Diagnostic, Diagnostics, position_of, position_of_op
from .instrumentation import Instrument


class Remarks(Instrument):
    """Shows the decisions of each pass, or one line for a pass without a decision that changed nothing.

    Of a pass that changed no kernel of a program without operations of its level, the line says just that.
    """

    def __init__(self, diagnostics: Diagnostics, decisions: Sequence[Decision]):
        self._diagnostics = diagnostics
        self._decisions = decisions
        self._shown = 0
        self._present: frozenset[str] = frozenset()
        self._count = 0
        """The operations that the pass looks for."""
        self._text: str | None = None
        """The program as it is, if it was printed since it changed."""

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Remember the program that `each` is given."""
        self._present = levels_in(module)
        self._count = count_of(module, levels_of(each.name)[0])
        self._text = str(module) if self._text is None else self._text

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Show what `each` recorded, or why it did nothing."""
        new = self._decisions[self._shown :]
        fired = any(decision.fired for decision in new)
        before, self._text = self._text, None if fired else str(module)
        level, _ = levels_of(each.name)
        if level and not self._count and not fired:
            self._tell(f"{each.name}: {missing(level, module, self._present)}", module)
            self._shown = len(self._decisions)
        elif before == self._text and not new:
            some = f" in {counted(self._count, LEVELS[level].mark)}" if level else ""
            self._tell(f"{each.name}: changed nothing{some}", module)
        self.end()

    def end(self) -> None:
        """Show what is recorded and not shown."""
        for decision in self._decisions[self._shown :]:
            place = position_of(decision.location)
            self._diagnostics.emit(Diagnostic("remark", str(decision), place))
        self._shown = len(self._decisions)

    def _tell(self, line: str, module: ModuleOp) -> None:
        op = next(iter(module.ops), module)
        self._diagnostics.emit(Diagnostic("remark", line, position_of_op(op)))
