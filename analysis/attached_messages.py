"""Messages that xDSL attached to ops while an exception passed through.

`op.emit_error(text, error)` raises `error` with a note that holds the whole program; the exception
itself may have no message. The text and its op are in the frame of xDSL's `Diagnostic` that raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from xdsl.ir import Operation
from xdsl.utils.diagnostic import Diagnostic

_WRAPPERS = ("Operation does not verify: ", "Error while applying pattern: ")
"""What xDSL writes before an exception's own message."""


def attached_messages(error: BaseException) -> list[tuple[Operation, str]]:
    """Ops and the texts attached to them, innermost first, without repetitions of `error`'s own message."""
    found: list[tuple[Operation, str]] = []
    seen = {_words(each) for each in _chain(error)}
    for op, text in (pair for each in _chain(error) for pair in _attached(each)):
        for wrapper in _WRAPPERS:
            text = text.removeprefix(wrapper)
        if text and text not in seen:
            found.append((op, text))
            seen.add(text)
    return found


def message_of(error: BaseException) -> str:
    """`error`'s message on one line: its own, else the innermost attached one, else its class."""
    attached = (text for _, text in attached_messages(error))
    return _words(error) or next(attached, type(error).__name__)


def _attached(error: BaseException) -> Iterator[tuple[Operation, str]]:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        if isinstance(diagnostic := frame.f_locals.get("self"), Diagnostic):
            for op, texts in diagnostic.op_messages.items():
                yield from ((op, " ".join(text.split())) for text in texts)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """`error` and its causes."""
    while error is not None:
        yield error
        error = error.__cause__


def _words(error: BaseException) -> str:
    return " ".join(str(error).split())
