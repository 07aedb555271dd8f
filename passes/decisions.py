"""What the passes decided, and why.

Each pass calls `record` when it fires on a kernel and when it declines to, with a one-line reason.
Whoever wants to know wraps the passes in `recording`; the same records serve `--remarks`, `-vv` and
`program.report()`:

    with recording() as decisions:
        pipeline.apply(ctx, module)
    for decision in decisions:
        print(decision)   # fuse-loops: k_softmax: declined: recomputes 12 kFLOP to save 16 KiB
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from .pipeline_text import steps_text


@dataclass(frozen=True)
class Decision:
    """One choice of one pass about one kernel."""

    pass_name: str
    """The kebab-case name of the pass."""
    kernel: str
    """The kernel's symbol, or the value's name where there is no kernel yet."""
    fired: bool
    """True if the pass changed the kernel, False if it declined."""
    reason: str
    """One line in the user's words: what was done, or what stood in the way."""
    location: Attribute = UNKNOWN_LOC
    """Where the kernel comes from."""
    others: tuple[str, ...] = ()
    """Other kernels that it is about: what this one was merged into or with, was made of, or was called."""
    steps: str | None = None
    """The primitives that carried it out, as a pipeline; None where it takes more than primitives."""

    def __str__(self) -> str:
        verdict = "" if self.fired else "declined: "
        return f"{self.pass_name}: {self.kernel}: {verdict}{self.reason}"


_SINKS: ContextVar[tuple[list[Decision], ...]] = ContextVar("deplo_decision_sinks", default=())


def record(
    pass_name: str,
    kernel: str,
    fired: bool,
    reason: str,
    location: Operation | Attribute | None = None,
    others: tuple[str, ...] = (),
    steps: Sequence[ModulePass] | None = None,
) -> None:
    """Tell whoever listens what `pass_name` did about `kernel`; free when nobody does."""
    sinks = _SINKS.get()
    if not sinks:
        return
    where = location.location if isinstance(location, Operation) else location
    text = None if steps is None else steps_text(steps)
    decision = Decision(pass_name, kernel, fired, reason, where or UNKNOWN_LOC, others, text)
    for sink in sinks:
        sink.append(decision)


@contextmanager
def recording(*, alone: bool = False) -> Generator[list[Decision]]:
    """Collect the decisions made inside the `with` block; blocks around it do, too, unless it is `alone`."""
    decisions: list[Decision] = []
    token = _SINKS.set((decisions,) if alone else (*_SINKS.get(), decisions))
    try:
        yield decisions
    finally:
        _SINKS.reset(token)
