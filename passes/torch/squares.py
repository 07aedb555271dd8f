"""Operations that compare everything with everything: how much of that is accepted.

Done so they need no order between threads and give the same result every run, but take the square of what
PyTorch's ways take. So where PyTorch may run parts of a program, it is given what it does in less than half
the time; and nowhere is accepted what would take many seconds.

The figures are rough: two cores of an AMD Zen 5, PyTorch 2.13.
"""

from __future__ import annotations

from .lowering import Lowering, Refusal

MOST_COMPARISONS = 1 << 32
"""More would take many seconds."""

WORTH_IT = 2.0
"""PyTorch is to be so many times as fast: a call of it also keeps its neighbours from being fused."""

CALL_SECONDS = 20e-6


def check_comparisons(
    e: Lowering, what: str, comparisons: int, seconds: float, pytorch_seconds: float
) -> None:
    """Raise Refusal if that many comparisons are too many for `what`.

    `seconds` and `pytorch_seconds` are what the operation takes here, and there without the call itself.
    """
    factor = seconds / (pytorch_seconds + CALL_SECONDS)
    if e.may_call and factor > WORTH_IT:
        raise Refusal(
            f"{what} that takes {comparisons:.1e} comparisons, about {factor:.0f} times PyTorch's time"
        )
    if comparisons > MOST_COMPARISONS:
        raise Refusal(
            f"{what} that takes {comparisons:.1e} comparisons, more than {MOST_COMPARISONS:.1e}"
        )
