"""Large results lie on huge pages where the system has them; all others are left as they are."""

import re
from pathlib import Path

import pytest
import torch

import deplo
from deplo.runtime import arrays
from deplo.runtime.huge_pages import LARGE_BYTES, whole_pages

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")

ROW = LARGE_BYTES // 4 // 1024


def _is_advised(address: int) -> bool:
    """Whether the mapping that holds an address is marked for huge pages."""
    here = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            here = int(found[1], 16) <= address < int(found[2], 16)
        elif here and line.startswith("VmFlags:"):
            return "hg" in line.split()
    raise AssertionError(f"nothing is mapped at {address:#x}")


@pytest.mark.skipif(not ENABLED.exists(), reason="the system has no huge pages")
@pytest.mark.parametrize(("rows", "calls"), [(1024, 1), (1027, 8)])
def test_large_results_ask_for_huge_pages(rows, calls) -> None:
    x = torch.randn(rows, ROW)
    program = deplo.compile(lambda x: x * 2 + 1, (x,), target="cpu")
    for _ in range(calls):  # after a few they are prepared, and results are made another way
        y = program(x)
    assert torch.equal(y, x * 2 + 1)
    assert _is_advised(y.data_ptr() + y.nbytes // 2)


def test_smaller_results_ask_for_nothing(monkeypatch) -> None:
    # The mapping under a small result says nothing: malloc's heap may be marked for what lay there before.
    asked = []
    monkeypatch.setattr(arrays, "ask_for_huge_pages", lambda *block: asked.append(block))
    program = deplo.compile(lambda x: x * 2 + 1, (torch.randn(256, ROW),), target="cpu")
    for _ in range(8):
        program(torch.randn(256, ROW))
    assert not asked
    deplo.compile(lambda x: x * 2 + 1, (torch.randn(1024, ROW),), target="cpu")(
        torch.randn(1024, ROW)
    )
    assert asked


def test_results_that_are_held_stay_as_they_are() -> None:
    x = torch.randn(1025, ROW)
    program = deplo.compile(lambda x: x + 1, (x,), target="cpu")
    held = [program(x + n) for n in range(6)]
    views = [held.pop(2)[7:9], held.pop(0).numpy()[1000:]]
    for n in range(10, 14):
        program(x + n)
    assert torch.equal(views[0], (x + 2 + 1)[7:9])
    assert torch.equal(torch.from_numpy(views[1]), (x + 0 + 1)[1000:])
    assert all(torch.equal(y, x + n + 1) for y, n in zip(held, (1, 3, 4, 5), strict=True))


@pytest.mark.parametrize(
    ("block", "pages"),
    [
        ((0, 8), (0, 8)),
        ((1, 8), (8, 0)),
        ((1, 16), (8, 8)),
        ((7, 3), (8, 0)),
        ((8, 15), (8, 8)),
        ((3, 0), (8, 0)),
    ],
)
def test_only_whole_pages_inside_of_a_block_are_asked_for(block, pages) -> None:
    assert whole_pages(*block, page=8) == pages
