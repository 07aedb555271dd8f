"""Masked stores of LLVM write the lanes of their mask and nothing else, whatever the elements were before."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

from deplo.runtime import jit

GUARD = 0xAA
WIDTHS = [(64, 32), (64, 16), (64, 8), (32, 16), (32, 8), (16, 8)]
"""Bits of an element before it is stored, and as it is stored."""
MOVES = {8: ("movb", "vpextrb"), 16: ("movw", "vpextrw"), 32: ("movl", "vmovd", "vpextrd")}
"""Bits -> instructions that store so many."""


def source(name: str, count: int, wide: int, narrow: int, lanes: set[int]) -> str:
    """A function that truncates a vector at its second argument and stores some lanes at its first."""
    mask = ", ".join(f"i1 {'true' if lane in lanes else 'false'}" for lane in range(count))
    stored, suffix = f"<{count} x i{narrow}>", f"v{count}i{narrow}.p0"
    return f"""
define void @{name}(ptr noalias %to, ptr noalias %from) "prefer-vector-width"="512" {{
  %wide = load <{count} x i{wide}>, ptr %from, align 8
  %narrow = trunc <{count} x i{wide}> %wide to {stored}
  call void @llvm.masked.store.{suffix}({stored} %narrow, ptr align 1 %to, <{count} x i1> <{mask}>)
  ret void
}}
declare void @llvm.masked.store.{suffix}({stored}, ptr, <{count} x i1>)
"""


@pytest.mark.parametrize("count", [2, 4, 8, 16, 32, 64])
@pytest.mark.parametrize(("wide", "narrow"), WIDTHS)
def test_the_lanes_of_the_mask_are_written_alone(wide: int, narrow: int, count: int) -> None:
    given = np.arange(1, count * wide // 8 + 1, dtype=np.uint8).view(f"u{wide // 8}")
    for lanes in ({0}, {1}, {count - 1}, {0, count - 1}, set(range(count // 2 + 1))):
        name = f"store_{wide}_{narrow}_{count}_{'_'.join(map(str, sorted(lanes)))}"
        address, _kept = jit.load(name, jit.compile_object(source(name, count, wide, narrow, lanes)))
        result = np.full(count * narrow // 8 + 8, GUARD, np.uint8)
        expected = result.copy()
        places = expected[:-8].view(f"u{narrow // 8}")
        for lane in lanes:
            places[lane] = given[lane].astype(places.dtype)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(
            result.ctypes.data, given.ctypes.data
        )
        np.testing.assert_array_equal(result, expected, name)


@pytest.mark.parametrize("core", ["haswell", "skylake-avx512", "sapphirerapids", "znver4", "znver5"])
@pytest.mark.parametrize(("wide", "narrow"), WIDTHS)
def test_a_lane_is_stored_by_an_instruction_of_its_size(wide: int, narrow: int, core: str) -> None:
    for lane in (0, 1):
        text = jit.assembly(source("store", 8, wide, narrow, {lane}), "x86_64", core)
        stores = re.findall(r"^\t(\w+)\t.*, \d*\(%rdi\)$", text, re.MULTILINE)
        assert len(stores) == 1, text
        assert stores[0] in MOVES[narrow], text
