"""A thread that compiles kernels in the background, while passes lower the next ones.

LLVM runs without Python's global lock, so that both are done at once. There is one thread, for llvmlite lets
one call of LLVM run at a time, and it ends when nothing is left to do. A job that nobody holds any more is
dropped: a program that is compiled and not run costs little. A process is forked when the thread has ended.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager

SWITCH_SECONDS = 0.0002
"""How long the thread waits for Python's global lock. LLVM is called some thirty times for a kernel, which
takes it 10 to 100 ms; Python's usual 5 ms each would double that."""

Job = Future[bytes]


class Background:
    """Computes bytes from texts, in the order in which they are begun."""

    def __init__(self, compute: Callable[[str], bytes]):
        self._compute = compute
        self._lock = threading.Lock()
        self._jobs: weakref.WeakValueDictionary[str, Job] = weakref.WeakValueDictionary()
        self._waiting: deque[tuple[str, weakref.ref[Job]]] = deque()
        self._thread: threading.Thread | None = None
        os.register_at_fork(before=self._finish)

    def begin(self, text: str) -> Job | None:
        """Begin to compute for a text; None if that is not possible, as when the process is about to end."""
        with self._lock:
            if (job := self._jobs.get(text)) is not None:
                return job
            job = self._jobs[text] = Job()
            self._waiting.append((text, weakref.ref(job)))
            if self._thread is None and not self._start():
                self._give_up()
                return None
            return job

    def get(self, text: str) -> bytes:
        """What is computed for a text: in the background, if it was begun there, else here."""
        with self._lock:
            job = self._jobs.get(text)
        if job is None:
            return self._compute(text)
        try:
            return job.result()
        except CancelledError:
            return self._compute(text)

    def _start(self) -> bool:
        if not threading.main_thread().is_alive():
            return False
        self._thread = threading.Thread(target=self._run, name="deplo-llvm")
        try:
            self._thread.start()
        except RuntimeError:  # no more threads for this process
            self._thread = None
            return False
        return True

    def _run(self) -> None:
        with frequent_switches():
            while (found := self._next()) is not None:
                text, job = found
                try:
                    job.set_result(self._compute(text))
                except BaseException as error:  # for whoever asks for the result
                    job.set_exception(error)
                del job, found

    def _next(self) -> tuple[str, Job] | None:
        """The next job that somebody holds; None ends the thread."""
        with self._lock:
            if not threading.main_thread().is_alive():
                self._give_up()
            while self._waiting:
                text, reference = self._waiting.popleft()
                if (job := reference()) is not None:
                    return text, job
            self._thread = None
            return None

    def _give_up(self) -> None:
        """Cancel what waits: whoever asks for it computes it."""
        for _, reference in self._waiting:
            if (job := reference()) is not None:
                job.cancel()
        self._waiting.clear()

    def _finish(self) -> None:
        """Wait until nothing is computed."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()


@contextmanager
def frequent_switches() -> Generator[None]:
    """Let Python's threads take turns every `SWITCH_SECONDS`."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, SWITCH_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(usual)
