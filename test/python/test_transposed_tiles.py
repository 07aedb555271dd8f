"""What a GPU reads down its columns, blocks copy in tiles: fewer sectors, no lanes that meet in a bank."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pytest
import torch
from ir_programs import make_context, parse
from kernel_programs import cubin
from xdsl.dialects.builtin import ModuleOp

import deplo
from deplo.analysis.transposes import find_tile
from deplo.dialects.kernel import WARP
from deplo.dialects.tile import LaunchOp
from deplo.interpreter import AccessRow, access_rows, execute
from deplo.machine.targets import TARGETS, get_target
from deplo.passes.pipelines import make_pipeline
from deplo.passes.tile.tileify import TileifyPass

PASS = "stage-transposes"


@dataclass(frozen=True)
class Case:
    """A program, its inputs, and sectors for the points of a warp without tiles and with them."""

    program: Callable[..., torch.Tensor]
    inputs: tuple[torch.Tensor, ...]
    before: int
    after: int


def _floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def _whole(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(torch.tensor(shape).prod().item()).reshape(shape).to(dtype)


CASES = {
    "matrix": Case(lambda x: x.T.contiguous() * 2, (_floats(288, 512),), 36, 8),
    "sum": Case(lambda x, y: x.T.contiguous() + y, (_floats(288, 512), _floats(512, 288)), 40, 12),
    "batch": Case(lambda x: x.transpose(1, 2).contiguous(), (_floats(3, 288, 192),), 36, 8),
    "channels last": Case(
        lambda x: x.permute(0, 2, 3, 1).contiguous(), (_floats(8, 64, 12, 32),), 36, 8
    ),
    "channels first": Case(
        lambda x: x.permute(0, 3, 1, 2).contiguous(), (_floats(8, 12, 32, 64),), 36, 8
    ),
    "three channels": Case(
        lambda x: x.permute(0, 3, 1, 2).contiguous(), (_floats(8, 56, 56, 3),), 16, 8
    ),
    "all axes": Case(
        lambda x: x.permute(3, 2, 1, 0).contiguous(), (_floats(16, 24, 16, 32),), 36, 8
    ),
    "f16": Case(lambda x: x.T.contiguous(), (_floats(1024, 1024, dtype=torch.float16),), 34, 4),
    "bf16 to f32": Case(
        lambda x: x.T.contiguous().float(), (_floats(512, 512, dtype=torch.bfloat16),), 36, 6
    ),
    "f64": Case(lambda x: x.T.contiguous(), (_floats(512, 512, dtype=torch.float64),), 40, 16),
    "i64": Case(lambda x: x.T.contiguous(), (_whole(512, 512, dtype=torch.int64),), 40, 16),
    "u8": Case(lambda x: x.T.contiguous(), (_whole(512, 512, dtype=torch.uint8),), 33, 2),
    "bool": Case(lambda x: x.T.contiguous(), (_whole(512, 512, dtype=torch.bool),), 33, 2),
}


def lowered(case: Case, skipped: str = "") -> ModuleOp:
    """The CUDA form of a case's program, one pass left out."""
    module = parse(deplo.compile(case.program, case.inputs, target="sm_90a").ir("torch"))
    for each in make_pipeline("torch-to-cuda", "sm_90a"):
        if each.name != skipped:
            each.apply(make_context(), module)
    return module


def counted(case: Case, skipped: str = "") -> list[AccessRow]:
    """What the machine counts of a case's accesses."""
    inputs = [x.float().numpy() if x.dtype == torch.bfloat16 else x.numpy() for x in case.inputs]
    return access_rows(lowered(case, skipped), inputs)


def sectors(case: Case, rows: list[AccessRow]) -> float:
    """Sectors for as many elements of the result as a warp has lanes."""
    count = sum(row.requests * row.cost for row in rows if row.space == "global")
    return count * WARP / case.program(*case.inputs).numel()


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_tiles_save_sectors_and_lanes_meet_in_no_bank(name: str) -> None:
    case = CASES[name]
    plain, tiled = counted(case, PASS), counted(case)
    assert sectors(case, plain) == pytest.approx(case.before, rel=0.05)
    assert sectors(case, tiled) == pytest.approx(case.after, rel=0.05)
    assert {row.space for row in plain} == {"global"}
    shared = [row for row in tiled if row.space == "shared"]
    reads = [row.cost for row in shared if row.operation == "loop.load"]
    assert max(reads) < 1.1
    assert max(row.worst for row in shared) <= 2  # rows that are half as long as a warp's copies


LENGTHS = (1, 2, 3, 5, 8, 13, 16, 17, 31, 32, 33)
DTYPES = (torch.float32, torch.float16, torch.float64, torch.int64, torch.uint8)


@pytest.mark.parametrize("seed", range(24))
def test_tiles_of_any_size_give_what_pytorch_gives(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine of one processor, so that few elements are enough for tiles."""
    monkeypatch.setitem(TARGETS, "sm_90a", replace(get_target("sm_90a"), processors=1))
    random = Random(seed)
    shape = [random.choice(LENGTHS) for _ in range(random.choice((2, 3, 4)))]
    order = random.sample(range(len(shape)), len(shape))
    x = _whole(*shape, dtype=random.choice(DTYPES))
    y = x.permute(order).contiguous()

    def program(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        turned = a.permute(order).contiguous() + b
        return torch.cat([turned, a.flip(order[0]).permute(order)])

    (found,) = execute(lowered(Case(program, (x, y), 0, 0)), [x.numpy(), y.numpy()])
    right = program(x, y)
    in_memory = right.as_strided((right.numel(),), (1,))
    assert np.array_equal(found.reshape(-1), in_memory.numpy())


def test_a_tile_leaves_room_for_those_of_other_blocks() -> None:
    case = CASES["matrix"]
    module = parse(deplo.compile(case.program, case.inputs, target="sm_90a").ir("loop"))
    TileifyPass().apply(make_context(), module)
    (launch,) = [op for op in module.walk() if isinstance(op, LaunchOp)]
    target = get_target("sm_90a")
    found = [find_tile(launch, replace(target, shared_bytes=n)) for n in (16384, 16383, 1024)]
    assert [tile if isinstance(tile, str) else tile.sizes for tile in found] == [
        (32, 32),
        (16, 16),
        "4 blocks have no room for their slabs",
    ]


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("name", ["sum", "three channels", "f16", "bool"])
def test_tiles_do_not_spill(name: str, architecture: str) -> None:
    (usage,) = cubin(lowered(CASES[name]), architecture).usage.values()
    assert usage.spill_stores + usage.spill_loads == 0
