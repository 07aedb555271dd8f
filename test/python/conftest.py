"""What the Python tests share: running the console scripts as a user would, and how many cases are tried.

Hypothesis tries the same examples each time, so that a commit passes or fails for good;
`pytest --hypothesis-profile=explore` tries new ones, `=whole` and `=many` more of the same. Of a test that is
marked `sample(n)`, `n` of its cases are run, always the same; `pytest --all-cases` (`make test-all`) runs
all, as do those who name a test.
"""

import gc
import os
import random
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["DEPLO_CACHE"] = "0"  # what is tested is compiled now
os.environ["TORCH_DYNAMO_RUN_GC_AFTER_COMPILE"] = "0"  # see pytest_collection_finish

settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("whole", derandomize=True, deadline=None, max_examples=400)
settings.register_profile("many", derandomize=True, deadline=None, max_examples=5000)
settings.register_profile("explore", deadline=None)
settings.load_profile("repeat")

ROOT = Path(__file__).resolve().parents[2]
"""The checkout, which is also the package."""


def examples(count: int) -> settings:
    """Hypothesis tries `count` examples, and as many times more as the profile tries more than usual."""
    return settings(max_examples=count * settings.default.max_examples // 100)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all-cases", action="store_true", help="run all cases of all tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the sample of its test's cases."""
    named = config.option.keyword or any("::" in argument for argument in config.args)
    if named or config.getoption("all_cases"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: set[pytest.Item] = set()
    for test, each in cases.items():
        marker = each[0].get_closest_marker("sample")
        assert marker is not None
        (count,) = marker.args
        chosen = random.Random(test).sample(each, min(count, len(each)))
        left.update(set(each).difference(chosen))
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Look for garbage rarely, and not among all that was imported: that takes a twentieth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(500_000, 10, 5)


@dataclass(frozen=True)
class Finished:
    """A process that ended."""

    returncode: int
    stdout: str
    stderr: str


def script(name: str) -> str:
    """The path of a console script installed with the Python that runs the tests."""
    return str(Path(sysconfig.get_path("scripts")) / name)


@pytest.fixture(autouse=True)
def same_random_numbers() -> None:
    """Random tensors are the same each time, for the same reason as Hypothesis' examples.

    Only of the CPU: `torch.manual_seed` writes the stack down for each kind of device that is not in use.
    """
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def guards_without_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo does not empty the caches of the CPU to measure its guards: that takes 20 ms for each graph."""
    guards = sys.modules.get("torch._dynamo.guards")
    if guards is not None:
        monkeypatch.setattr(guards, "profile_guard_manager", lambda *_: 0.0, raising=False)


@contextmanager
def kernel_threads(count: int) -> Generator[None]:
    """Kernels run on `count` threads, as many as PyTorch's operators."""
    import torch

    from deplo.runtime.threads import thread_count

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        assert thread_count() == count
        yield
    finally:
        torch.set_num_threads(before)


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def deplo_opt(tmp_path: Path) -> Callable[..., Finished]:
    """Run `deplo-opt` in a temporary directory, within 1 GB of memory beside its own stack."""

    def limit() -> None:
        space = (1 << 30) + (256 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (space, space))

    def run(*args: str, text: str | bytes = b"", timeout: float = 60) -> Finished:
        done = subprocess.run(
            [script("deplo-opt"), *args],
            input=text.encode() if isinstance(text, str) else text,
            capture_output=True,
            timeout=timeout,
            cwd=tmp_path,
            preexec_fn=limit,
            check=False,
        )
        decoded = (s.decode("utf-8", "replace") for s in (done.stdout, done.stderr))
        return Finished(done.returncode, *decoded)

    return run


@pytest.fixture
def python() -> Callable[[str], Finished]:
    """Run a Python program in a fresh interpreter outside the checkout."""

    def run(code: str, cwd: Path | None = None) -> Finished:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=cwd or Path("/"),
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache for compiled code and tunings that is empty, and gone after the test."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("DEPLO_CACHE", "1")
    monkeypatch.setenv("DEPLO_CACHE_DIR", str(tmp_path))
    return tmp_path
