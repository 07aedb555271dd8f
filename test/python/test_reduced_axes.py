"""Which axis lanes go along, and how many threads a reduction gets: counted on the schedules of a GPU."""

from collections.abc import Callable
from math import prod

import pytest
import torch
import torch.nn.functional as F
from ir_programs import parse

import deplo
from deplo.analysis.coalescing import AccessCost, access_costs
from deplo.dialects.sizes import static_extent
from deplo.dialects.tile import LaunchOp, Level
from deplo.machine.targets import get_target
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context

TARGET = "sm_90a"
FEW = get_target(TARGET).processors // 3
"""Blocks below which two thirds of the machine would have nothing to do."""


def launches(
    function: Callable[..., object], *shapes: tuple[int, ...], skipped: str = ""
) -> list[LaunchOp]:
    """The launches of a program as a GPU is to run them, without one pass."""
    arguments = tuple(torch.randn(shape) for shape in shapes)
    module = parse(deplo.compile(function, arguments, target=TARGET).ir("loop"))
    context = make_context()
    for each in make_pipeline("loop-to-tile", TARGET):
        if each.name != skipped:
            each.apply(context, module)
    return [op for op in module.walk() if isinstance(op, LaunchOp)]


def count(launch: LaunchOp, level: Level) -> int:
    return prod(static_extent(extent) for extent in launch.extents(level))


def threads(launch: LaunchOp) -> int:
    return count(launch, Level.BLOCK) * count(launch, Level.THREAD)


def loads(launch: LaunchOp) -> list[AccessCost]:
    return [c for c in access_costs(launch) if c.operation == "loop.load" and c.space == "global"]


REDUCTIONS = {
    "batch statistics": (lambda x: x.mean((0, 2, 3)), (32, 64, 28, 28)),
    "batch statistics, odd": (lambda x: x.mean((0, 2, 3)), (32, 64, 7, 7)),
    "variance": (lambda x: x.var((0, 2, 3)), (32, 64, 28, 28)),
    "around the channels": (lambda x: x.sum((0, 2)), (33, 65, 77)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_lanes_go_along_memory_in_a_sweep_over_several_axes(name: str) -> None:
    function, shape = REDUCTIONS[name]
    (before,) = launches(function, shape, skipped="flatten-sweeps")
    (after,) = launches(function, shape)
    assert threads(after) > threads(before)
    assert max(cost.cost for cost in loads(before)) >= 16
    assert all(cost.cost <= cost.least + 2 for cost in loads(after))
    assert count(after, Level.BLOCK) >= FEW


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, w: x @ w, [(1, 4096), (4096, 1024)]),
        (lambda x, w: x @ w, [(1, 4097), (4097, 1001)]),
        (lambda x: x.sum(0), [(2048, 512)]),
        (F.scaled_dot_product_attention, [(1, 12, 1, 64), (1, 12, 512, 64), (1, 12, 512, 64)]),
        (lambda x, m: F.softmax(x + m, -1), [(8, 12, 128, 128), (8, 1, 128, 128)]),
    ],
    ids=["vector by matrix", "odd", "columns", "attention of one query", "softmax with a mask"],
)
def test_a_warp_reads_whole_sectors_and_blocks_fill_the_machine(
    function: Callable[..., object], shapes: list[tuple[int, ...]]
) -> None:
    long = [launch for launch in launches(function, *shapes) if read_elements(launch) > 1 << 15]
    assert long
    for launch in long:
        assert all(cost.cost <= 2 * cost.least for cost in loads(launch))
        assert count(launch, Level.BLOCK) >= FEW


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.var(), (1 << 22,)),
        (lambda x: F.softmax(x, -1), (8, 1 << 20)),
        (lambda x: x.std((0, 2)), (3, 5, 1 << 18)),
        (lambda x: x.var(0), (1 << 17, 9)),
    ],
    ids=["variance of a tensor", "softmax", "around the channels", "columns"],
)
def test_each_sweep_over_few_long_rows_fills_the_machine(
    function: Callable[..., object], shape: tuple[int, ...]
) -> None:
    (before,) = launches(function, shape, skipped="distribute-sweeps")
    assert count(before, Level.BLOCK) <= 8
    after = [launch for launch in launches(function, shape) if read_elements(launch) > 1 << 15]
    assert len(after) >= 2
    assert all(count(launch, Level.BLOCK) >= FEW for launch in after)


def read_elements(launch: LaunchOp) -> int:
    """Elements of the largest array that a launch reads."""
    kernel = launch.parent_op()
    assert kernel is not None
    return max(prod(argument.type.get_shape()) for argument in kernel.input_args)  # pyright: ignore
