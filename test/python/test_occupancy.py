"""Occupancy, against numbers worked out by hand from the table of technical specifications."""

import pytest

from deplo.analysis.occupancy import occupancy
from deplo.machine.targets import get_target


@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "blocks", "limit"),
    [
        ("sm_90a", 256, 32, 0, 8, "threads"),
        ("sm_90a", 32, 16, 0, 32, "blocks"),
        ("sm_90a", 256, 255, 0, 1, "registers"),  # 8 warps of 8192 registers
        ("sm_90a", 128, 128, 0, 4, "registers"),
        ("sm_90a", 128, 129, 0, 3, "registers"),  # 129 * 32 is rounded up to 4352
        ("sm_90a", 128, 32, 100 * 1024, 2, "shared memory"),
        ("sm_80", 128, 32, 163 * 1024, 1, "shared memory"),
        ("sm_120", 256, 32, 0, 6, "threads"),
        ("sm_90a", 33, 16, 0, 32, "threads"),  # two warps
    ],
)
def test_blocks_that_a_multiprocessor_holds(target, threads, registers, shared, blocks, limit):
    held = occupancy(get_target(target), threads, registers, shared)
    assert (held.blocks, held.limit) == (blocks, limit)
    assert held.threads == blocks * threads
    assert 0 < held.share <= 1
