"""Operations that compare everything with everything: how much of that is accepted.

Done so they need no order between threads and give the same result every run, but take the square of what
PyTorch's ways take. So where PyTorch may run parts of a program, it is given what it does in less than half
the time; and nowhere is accepted what would take many seconds.
What a target does in order (`analysis/orders.py`) is not asked here.
"""

from __future__ import annotations

from ...analysis.orders import Work
from .lowering import Lowering, Refusal

MOST_COMPARISONS = 1 << 32
"""More would take many seconds."""

WORTH_IT = 2.0
"""PyTorch is to be so many times as fast: a call of it also keeps its neighbours from being fused."""

CALL_SECONDS = 20e-6


def check_comparisons(e: Lowering, what: str, work: Work, pytorch_seconds: float) -> None:
    """Raise Refusal if comparisons are too many for `what`, which takes PyTorch so long without the call."""
    comparisons = work.comparisons
    factor = work.seconds / (pytorch_seconds + CALL_SECONDS)
    if e.may_call and factor > WORTH_IT:
        raise Refusal(
            f"{what} that takes {comparisons:.1e} comparisons, about {factor:.0f} times PyTorch's time"
        )
    if comparisons > MOST_COMPARISONS:
        raise Refusal(
            f"{what} that takes {comparisons:.1e} comparisons, more than {MOST_COMPARISONS:.1e}"
        )
