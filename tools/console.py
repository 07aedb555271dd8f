"""What every console script needs around its `main`: a deep stack, quiet pipes, an exit code."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence

from ..errors import DeploError
from ..garbage import fewer_collections

RECURSION_LIMIT = 20_000
"""Frames; enough for IR nested as deeply as the parser allows."""
STACK_BYTES = 256 << 20
"""Address space, not memory: only the part in use is ever backed."""


class _ClosedStream(io.TextIOBase):
    """Stands in for a standard stream that was closed before the start (`deplo-opt a.mlir >&-`)."""

    lost = False
    """Whether something was written, and so is lost."""

    def write(self, text: str, /) -> int:
        self.lost = self.lost or bool(text)
        return len(text)


def write_output(text: str) -> None:
    """Write to standard output, all of it. Raises DeploError if it cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _give_up_stdout()
        raise DeploError(f"cannot write the output: {error.strerror}") from error


def _give_up_stdout() -> None:
    """Let what is still in the buffer go nowhere, or Python would try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_console(main: Callable[[Sequence[str]], int]) -> None:
    """Run `main` on the command line's arguments and exit with its code.

    A reader that closes the pipe ends the process quietly, as it does any Unix tool. Output that cannot be
    written, because the disk is full or standard output is closed, is an error.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, _ClosedStream())
    warnings.formatwarning = lambda message, *_: f"warning: {message}\n"
    with fewer_collections():
        code = _on_deep_stack(lambda: main(sys.argv[1:]))
    reason = _lost_output()
    if reason is not None:
        sys.stderr.write(f"error: cannot write the output: {reason}\n")
        code = code or 1
    sys.stderr.flush()
    gc.freeze()  # or Python would look through all there is for garbage before it ends
    os._exit(code) if threading.active_count() > 1 else sys.exit(code)


def _lost_output() -> str | None:
    """Why not all of the output was written, or None."""
    if isinstance(sys.stdout, _ClosedStream):
        return "standard output is closed" if sys.stdout.lost else None
    try:
        sys.stdout.flush()
    except OSError as error:
        _give_up_stdout()
        return error.strerror
    return None


def _on_deep_stack(main: Callable[[], int]) -> int:
    codes: list[int] = []

    def target() -> None:
        try:
            codes.append(main())
        except SystemExit as leaving:  # argparse, after --help or a wrong option
            codes.append(leaving.code if isinstance(leaving.code, int) else 0)

    sys.setrecursionlimit(RECURSION_LIMIT)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    threading.stack_size(0)
    try:
        thread.join()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    return codes[0] if codes else 1
