"""Kernels compiled in the background are what they would be else, whatever happens meanwhile."""

import subprocess
import sys
import threading
import time

import pytest
import torch

import deplo
from deplo.runtime import jit
from deplo.runtime.background import Background

SLOW = """
import os, sys, time
from deplo.runtime.background import Background
def slow(text):
    time.sleep(0.2)
    return text.encode()
background = Background(slow)
jobs = [background.begin(str(n)) for n in range(50)]
"""
"""A process in which ten seconds of work are begun."""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", SLOW + code], capture_output=True, text=True, timeout=60, check=False
    )


class Computed:
    """Computes, slowly at will, and notes where."""

    def __init__(self):
        self.threads: dict[str, list[str]] = {}
        self.go = threading.Event()
        self.go.set()

    def __call__(self, text: str) -> bytes:
        self.threads.setdefault(text, []).append(threading.current_thread().name)
        self.go.wait(30)
        if text == "wrong":
            raise ValueError("it is wrong")
        return text.upper().encode()


def test_what_was_begun_is_computed_once_and_there():
    computed = Computed()
    background = Background(computed)
    jobs = [background.begin("a"), background.begin("b"), background.begin("a")]
    assert jobs[0] is jobs[2]
    assert [background.get(text) for text in ("a", "b", "c")] == [b"A", b"B", b"C"]
    own = threading.current_thread().name
    assert computed.threads == {"a": ["deplo-llvm"], "b": ["deplo-llvm"], "c": [own]}


def test_what_nobody_holds_is_not_computed():
    computed = Computed()
    computed.go.clear()
    background = Background(computed)
    first, _ = background.begin("first"), background.begin("dropped")
    del _
    kept = background.begin("kept")
    computed.go.set()
    assert background.get("kept") == b"KEPT"
    assert "dropped" not in computed.threads
    assert first.done()
    assert kept.done()


def test_a_failure_is_told_to_whoever_asks():
    background = Background(Computed())
    job = background.begin("wrong")
    with pytest.raises(ValueError, match="it is wrong"):
        background.get("wrong")
    assert job.done()
    other = background.begin("right")
    assert background.get("right") == b"RIGHT"
    assert other.done()


def test_where_no_thread_can_be_started_it_is_computed_here(monkeypatch):
    def fail(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    computed = Computed()
    background = Background(computed)
    assert background.begin("a") is None
    assert background.get("a") == b"A"
    assert computed.threads == {"a": [threading.current_thread().name]}


def test_threads_take_turns_as_before_afterwards():
    usual = sys.getswitchinterval()
    background = Background(Computed())
    job = background.begin("a")
    background.get("a")
    deadline = time.monotonic() + 10
    while sys.getswitchinterval() != usual and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sys.getswitchinterval() == usual
    assert job.done()


def test_a_process_ends_without_what_it_has_begun():
    start = time.monotonic()
    done = run("assert background.get('0') == b'0'\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert time.monotonic() - start < 8


def test_a_forked_child_has_all_that_was_begun():
    done = run(
        "del jobs[5:]\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    good = [background.get(str(n)) for n in range(6)] == [b'%d' % n for n in range(6)]\n"
        "    os._exit(0 if good else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_kernels_of_a_program_are_compiled_once_each(monkeypatch):
    texts: list[tuple[str, str]] = []
    optimize = jit._optimize

    def noted(source: str) -> bytes:
        texts.append((threading.current_thread().name, source))
        return optimize(source)

    monkeypatch.setattr(jit, "_optimize", noted)
    monkeypatch.setenv("DEPLO_CACHE", "0")

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 3.25 + 0.0625, 1).cumsum(0)

    x = torch.randn(7, 13)
    program = deplo.compile(function, (x,), target="cpu")
    torch.testing.assert_close(program(x), function(x))
    sources = [kernel.source for kernel in program.kernels]
    compiled = [source for _, source in texts]
    assert all(compiled.count(source) == 1 for source in sources)
    assert {name for name, source in texts if source in sources} == {"deplo-llvm"}
    assert not program.compilation.begun
