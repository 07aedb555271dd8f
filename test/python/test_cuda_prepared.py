"""Calls on a GPU that are like an earlier one, with a launch that computes on the CPU what kernels would."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import pytest
import torch

from deplo.runtime.arrays import torch_library
from deplo.runtime.cuda_prepared import Launch, PreparedCall
from deplo.runtime.loops import Loop, Place
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Argument, Array, Buffer, Kernel, Ref, Step

COUNT = 8


def plan() -> Plan:
    """Two launches of `y = x + n`: into the arena, 64 bytes from its start, and into the result."""
    array = Array("f32", (COUNT,))
    x, between, y = Ref("argument", 0), Ref("buffer", 0), Ref("buffer", 1)
    return Plan(
        target="sm_90a",
        arguments=(Argument("x", "input", array),),
        buffers=(Buffer(array, 64), Buffer(array, None)),
        steps=(
            Step("add", (x, between), 1, COUNT, (2,)),
            Step("add", (between, y), 1, COUNT, (5,)),
        ),
        results=(y, x),
        arena_bytes=64 + array.nbytes,
        kernels=(Kernel("add", "", ()),),
    )


def prepared(plan: Plan, x: Any) -> PreparedCall:
    library = torch_library("cpu")
    launches = [
        Launch(n, s.kernel, "the function", 1, s.threads, 0, s.arguments, (int(str(s.sizes[0])),))
        for n, s in enumerate(plan.launches)
    ]
    fits = library.guard([x])
    assert fits is not None
    return PreparedCall(plan, launches, library, fits)


def added(kernel: str, function: Any, blocks: int, threads: int, shared: int, told: int) -> None:
    """What a launch of `add` does: its parameters are where `told` says, the size in four bytes."""
    assert (kernel, function, blocks, threads, shared) == ("add", "the function", 1, COUNT, 0)
    places = (ctypes.c_void_p * 3).from_address(told)
    source, target = (ctypes.c_void_p.from_address(p).value for p in places[:2])
    number = ctypes.c_int32.from_address(places[2]).value
    for i in range(COUNT):
        value = ctypes.c_float.from_address(source + 4 * i).value
        ctypes.c_float.from_address(target + 4 * i).value = value + number


def test_each_call_has_its_own_arrays() -> None:
    call = prepared(plan(), torch.zeros(COUNT))
    kept = []
    for start in (1.0, 10.0, 100.0):
        x = torch.full((COUNT,), start)
        assert call.fits(x)
        y, same = call.run([x], added)
        assert same is x
        kept.append(y)
    for y, start in zip(kept, (1.0, 10.0, 100.0), strict=True):
        assert torch.equal(y, torch.full((COUNT,), start + 7))


@pytest.mark.parametrize("reversed", [False, True])
def test_a_loop_moves_along_its_arrays(reversed: bool) -> None:
    """y[t] = y[t - 1] + 1, from x on: the place of the step before is x in the first turn."""
    y, before, now = Ref("buffer", 0), Ref("place", 0), Ref("place", 1)
    looped = replace(
        plan(),
        buffers=(Buffer(Array("f32", (4, COUNT)), None),),
        steps=(Step("add", (before, now), 1, COUNT, (1,)),),
        results=(y,),
        arena_bytes=0,
        loops=(Loop(0, 1, 4, reversed),),
        places=(Place(y, 0, Ref("argument", 0)), Place(y, 0)),
    )
    for start in (1.0, 10.0):
        x = torch.full((COUNT,), start)
        (result,) = prepared(looped, x).run([x], added)
        steps = result.flip(0) if reversed else result
        assert torch.equal(steps, (start + 1 + torch.arange(4.0)).unsqueeze(1).expand(4, COUNT))


def test_other_tensors_do_not_fit() -> None:
    call = prepared(plan(), torch.zeros(COUNT))
    assert not call.fits(torch.zeros(COUNT, dtype=torch.float64))
    assert not call.fits(torch.zeros(COUNT + 1))
    assert not call.fits(torch.zeros(2 * COUNT)[::2])


def test_a_tensor_where_vectors_cannot_be_read_is_left_to_others() -> None:
    call = prepared(plan(), torch.zeros(COUNT))
    x = torch.zeros(COUNT + 1)[1:]
    assert call.fits(x)
    assert call.run([x], added) is None


def test_no_arena_and_no_launches() -> None:
    whole = plan()
    empty = replace(whole, buffers=(whole.buffers[1],), steps=(), arena_bytes=0)
    empty = replace(empty, results=(Ref("argument", 0), Ref("buffer", 0)))
    x = torch.zeros(COUNT)
    same, y = prepared(empty, x).run([x], added)
    assert same is x
    assert y.shape == x.shape
