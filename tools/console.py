"""What every console script needs around its `main`: a deep stack, quiet pipes, an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

RECURSION_LIMIT = 20_000
"""Frames; enough for IR nested as deeply as the parser allows."""
STACK_BYTES = 256 << 20
"""Address space, not memory: only the part in use is ever backed."""


def run_console(main: Callable[[Sequence[str]], int]) -> None:
    """Run `main` on the command line's arguments and exit with its code.

    A reader that closes the pipe ends the process quietly, as it does any Unix tool.
    """
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    code = _on_deep_stack(lambda: main(sys.argv[1:]))
    try:
        sys.stdout.flush()
    except OSError as error:
        sys.stderr.write(f"error: cannot write the output: {error.strerror}\n")
        code = 1
    sys.stderr.flush()
    os._exit(code) if threading.active_count() > 1 else sys.exit(code)


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
