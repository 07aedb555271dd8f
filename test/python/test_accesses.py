"""Bank conflicts and sectors per request, counted while a kernel is executed."""

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import INPUT, PROGRAMS, Program
from row_programs import COLUMNS, inputs, source
from test_matmul_schedules import SCHEDULES, product
from xdsl.dialects.builtin import ModuleOp

from deplo import interpreter
from deplo.analysis.bank_conflicts import conflict_degree, slab_shape
from deplo.analysis.coalescing import access_costs
from deplo.dialects.loop import LoadOp
from deplo.dialects.tile import LaunchOp, StageOp, enclosing_launch
from deplo.interpreter import AccessRow, access_rows
from deplo.passes.pipelines import make_pipeline
from deplo.passes.tile.schedule import SchedulePass

RESULT = """
%zero = arith.constant 0.0 : f32
loop.store %zero, %y[%b * 64 + %t] : memref<128xf32>
"""


def rows_of(body: str, level: str = "kernel") -> dict[str, AccessRow]:
    """The rows of a kernel's accesses, by memory; each is accessed by one operation."""
    program = Program(body + RESULT, np.array)
    module = program.cuda_module() if level == "cuda" else program.kernel_module()
    return {row.memory: row for row in access_rows(module, [INPUT])}


def store(where: str, rows: int, pitch: int, type: str = "f32", zero: str = "0.0") -> AccessRow:
    """What 32 threads do that store to shared memory."""
    memref = f'memref<{rows}x{pitch}x{type}, "shared">'
    body = f"""
%s = kernel.shared : {memref}
%z = arith.constant {zero} : {type}
%first = loop.test[%t < 32, %b < 1]
scf.if %first {{
  loop.store %z, %s[{where}] : {memref}
}}"""
    return rows_of(body)["s"]


@pytest.mark.parametrize(
    ("where", "rows", "pitch", "type", "turns"),
    [
        ("0, %t", 1, 32, "f32", 1),  # a row
        ("0, 31 - %t", 1, 32, "f32", 1),
        ("0, %t * 2", 1, 64, "f32", 2),
        ("0, %t * 4", 1, 128, "f32", 4),
        ("%t, 0", 32, 32, "f32", 32),  # a column: one bank
        ("%t, 0", 32, 33, "f32", 1),  # padded
        ("%t, 0", 32, 36, "f32", 4),
        ("%t, 0", 32, 16, "f32", 16),
        ("0, %t", 1, 32, "i16", 1),  # two threads share a word
        ("%t, 0", 32, 64, "i16", 32),
        ("0, %t", 1, 32, "f64", 1),  # half a warp at a time
        ("%t, 0", 32, 16, "f64", 16),
    ],
)
def test_turns_of_a_request(where: str, rows: int, pitch: int, type: str, turns: int) -> None:
    row = store(where, rows, pitch, type, "0" if type == "i16" else "0.0")
    assert (row.space, row.worst, row.cost, row.least) == ("shared", turns, turns, 1)
    assert row.requests == (2 if type == "f64" else 1)


def test_threads_that_read_one_word_share_it() -> None:
    body = """
%s = kernel.shared : memref<64xf32, "shared">
%z = arith.constant 0.0 : f32
loop.store %z, %s[%t] : memref<64xf32, "shared">
kernel.barrier
%v = loop.load %s[3] : memref<64xf32, "shared">
"""
    module = Program(body + RESULT, np.array).kernel_module()
    load = next(row for row in access_rows(module, [INPUT]) if row.operation == "loop.load")
    assert (load.requests, load.worst) == (4, 1)


@pytest.mark.parametrize(
    ("where", "sectors"),
    [
        ("%b, %t", 4),  # 32 threads of 4 bytes
        ("%b, %t + 1", 5),
        ("%b, %t * 4", 16),
        ("%b, 7", 1),
        ("%t mod 8, 0", 8),
    ],
)
def test_sectors_of_a_request(where: str, sectors: int) -> None:
    row = rows_of(f"%v = loop.load %x[{where}] : memref<8x256xf32>")["x"]
    assert (row.space, row.requests, row.worst, row.cost) == ("global", 4, sectors, sectors)


def test_what_the_bytes_need_is_told_beside_it() -> None:
    assert rows_of("%v = loop.load %x[%b, %t * 4] : memref<8x256xf32>")["x"].least == 4
    wide = "%v, %w, %p, %q = kernel.vector_load %x[%b, %t * 4] : memref<8x256xf32> -> f32, f32, f32, f32"
    row = rows_of(wide)["x"]
    assert (row.cost, row.least) == (16, 16)


@pytest.mark.parametrize("level", ["kernel", "cuda"])
def test_copies_and_vectors_are_counted(level: str) -> None:
    program = PROGRAMS["pipeline"]
    module = program.cuda_module() if level == "cuda" else program.kernel_module()
    rows = {(row.operation.split(".")[1], row.memory): row for row in access_rows(module, [INPUT])}
    copy = "async_copy"
    assert rows[(copy, "s")].worst == rows[(copy, "s")].cost == 1
    assert rows[("load", "s")].worst == 1
    assert rows[(copy, "x")].cost == rows[(copy, "x")].least == 16
    assert "k.mlir" in rows[("load", "s")].location


def test_nothing_is_counted_unasked() -> None:
    history = interpreter.History()
    interpreter.execute(PROGRAMS["pipeline"].kernel_module(), [INPUT], history)
    assert history.accesses is None


@pytest.mark.parametrize("transposed", [True, False], ids=["x @ w.T", "x @ w"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "skipped", [(), ("pad-smem", "split-inner-for-swizzle")], ids=["laid out", "as it comes"]
)
def test_the_machine_counts_the_conflicts_that_the_analysis_predicts(
    skipped: tuple[str, ...], schedule: str, transposed: bool
) -> None:
    module = parse(product(64, 64, 64, transposed=transposed))
    predicted: dict[str, list[int]] = {}
    for each in make_pipeline("loop-to-cuda", "sm_90a"):
        if isinstance(each, SchedulePass):
            each = SchedulePass(target="sm_90a", **SCHEDULES[schedule])
        if each.name == "materialize-tile":
            predicted = predictions(module)
        # what is foreseen is each load's own
        if each.name not in (*skipped, "merge-accesses", "roll-registers"):
            each.apply(make_context(), module)
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in ((64, 64), (64, 64), (64,))]
    counted: dict[str, list[int]] = {}
    for row in access_rows(module, inputs):
        if row.space == "shared" and row.operation == "loop.load":
            counted.setdefault(row.memory, []).append(row.worst)
    assert len(predicted) == 2
    assert not skipped or schedule == "small" or max(map(max, predicted.values())) > 1
    assert {slab: sorted(turns) for slab, turns in counted.items()} == predicted


def predictions(module: ModuleOp) -> dict[str, list[int]]:
    """The turns of each load of each slab, as `analysis/bank_conflicts.py` has them."""
    found: dict[str, list[int]] = {}
    for stage in (op for op in module.walk() if isinstance(op, StageOp)):
        launch = enclosing_launch(stage)
        pad = 0 if stage.pad is None else stage.pad.value.data
        loads = [use.operation for use in stage.slab.uses]
        found[stage.slab.name_hint or ""] = sorted(
            conflict_degree(load, launch, slab_shape(load, pad), stage.swizzle_bytes)
            for load in loads
            if isinstance(load, LoadOp)
        )
    return found


@pytest.mark.parametrize(
    ("text", "n", "rows", "sectors"),
    [
        (source("softmax", 2048), 2048, 5, {("x", 16), ("y", 16)}),  # vectors of a warp: 512 bytes
        (source("pointwise", 128), 128, 5, {("x", 4), ("w", 4), ("y", 4)}),
        (COLUMNS.format(k=100, n=64), 64, 100, {("x", 4), ("y", 4)}),
    ],
    ids=["rows", "elements", "columns"],
)
def test_the_index_maps_say_what_the_machine_counts(
    text: str, n: int, rows: int, sectors: set[tuple[str, int]]
) -> None:
    module, context = parse(text), make_context()
    foreseen: set[tuple[str, int]] = set()
    for each in make_pipeline("loop-to-cuda", "sm_90a"):
        if each.name == "materialize-tile":
            launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
            costs = [cost for launch in launches for cost in access_costs(launch)]
            assert all(cost.least <= cost.cost for cost in costs)
            foreseen = {(c.memory, c.cost) for c in costs if c.space == "global"}
        each.apply(context, module)
    arguments = inputs(n, rows)[: len(module.ops.last.function_type.inputs)]  # pyright: ignore
    counted = access_rows(module, arguments)
    assert foreseen == sectors
    assert {(r.memory, r.worst) for r in counted if r.space == "global"} == sectors


def test_a_column_of_rows_takes_a_sector_for_each_lane() -> None:
    text = source("pointwise", 64).replace("%x[%i, %j]", "%x[%j mod 5, %i]")
    module, context = parse(text), make_context()
    for each in make_pipeline("loop-to-tile", "sm_90a"):
        each.apply(context, module)
    (launch,) = [op for op in module.walk() if isinstance(op, LaunchOp)]
    (cost,) = [c for c in access_costs(launch) if c.memory == "x"]
    assert (cost.cost, cost.least) == (5, 1)
