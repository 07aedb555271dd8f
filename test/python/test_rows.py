"""Rows of awkward lengths under several schedules, on the lockstep machine; deliberate defects are caught."""

from functools import partial

import numpy as np
import pytest
from row_programs import COLUMNS, EXPECTED, FLAT, SCHEDULES, inputs, lower, source
from test_mutants import CAUGHT, Mutant, mutated_pass
from xdsl.dialects.builtin import ModuleOp

from deplo.dialects import cuda
from deplo.interpreter import execute

SIZES = (1, 7, 31, 33, 64, 100, 129, 257, 2048)


def check(module: ModuleOp, arguments: list[np.ndarray], expected: np.ndarray) -> None:
    """Raises AssertionError for a wrong result, MachineFault for what a GPU leaves undefined."""
    (result,) = execute(module, arguments)
    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-5)


def check_rows(name: str, n: int, module: ModuleOp) -> None:
    x, w = inputs(n)
    check(module, [x, w], EXPECTED[name][1](x, w))


def check_flat(n: int, module: ModuleOp) -> None:
    x = inputs(n)[1]
    check(module, [x], x * x)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", EXPECTED)
def test_rows_of_every_length(name: str, schedule: str) -> None:
    for n in SIZES:
        check_rows(name, n, lower(source(name, n), SCHEDULES[schedule]))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_row_that_ends_anywhere(schedule: str) -> None:
    for n in SIZES:
        check_flat(n, lower(FLAT.format(n=n), SCHEDULES[schedule]))


def check_columns(k: int, n: int, module: ModuleOp) -> None:
    (x,) = inputs(n, k)[:1]
    check(module, [x], x.sum(0))


@pytest.mark.parametrize("n", [1, 5, 33, 64])
def test_columns_of_every_length(n: int) -> None:
    for k in SIZES:
        check_columns(k, n, lower(COLUMNS.format(k=k, n=n), {}))


@pytest.mark.parametrize(("k", "n"), [(40000, 1), (4099, 33)])
def test_a_long_sum_has_two_kernels(k: int, n: int) -> None:
    module = lower(COLUMNS.format(k=k, n=n), {})
    assert sum(isinstance(op, cuda.FuncOp) for op in module.ops) == 2
    check_columns(k, n, module)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_the_model_chooses_is_right_and_reads_a_row_once(name: str) -> None:
    for n in SIZES:
        module = lower(source(name, n), {})
        check_rows(name, n, module)
        (kernel,) = [op for op in module.ops if isinstance(op, cuda.FuncOp)]
        x = kernel.body.block.args[0 if kernel.body.block.args[0].name_hint == "x" else 1]
        loads = [use.operation for use in x.uses]
        assert len(loads) == (2 if name == "norm" else 1) or n < 4


cooperate = partial(
    Mutant, "cooperative-reduce", "schedule.partial_threads", through=("schedule.partial",)
)
BIND = ("blockify-launch", "schedule.bind")
KEEP = ("keep-rows", "schedule.stage")
VECTORIZE = ("vectorize-accesses", "kernel.vectorize_accesses")
PART, WARP = "a part of a warp", "a warp"

MUTANTS = {
    "rows past the last one are summed": (
        cooperate("    elif sharing.ends:", "    elif False:", ("norm",)),
        (64, PART),
    ),
    "rows past the last one are stored": (
        cooperate(
            "*sharing.inside(last, counters))\n    elif sharing",
            "[last], counters)\n    elif sharing",
            ("softmax",),
        ),
        (100, WARP),
    ),
    "what stands between the sweeps is loaded for rows past the last one": (
        cooperate("isinstance(op, LoadOp) and ends", "False", ("norm",)),
        (64, PART),
    ),
    "the tail of a row is a vector longer": (
        cooperate("extent_expr(units - 1)", "extent_expr(units)", ("softmax",)),
        (100, WARP),
    ),
    "lanes overlap": (
        cooperate(
            "element = unit if vector == 1 else unit * vector",
            "element = unit",
            ("softmax",),
        ),
        (64, PART),
    ),
    "blocks share rows": (
        Mutant(
            "cooperative-reduce",
            "schedule.split",
            "product(outer, extent_expr(by)) + inner",
            "outer + inner",
            ("norm",),
            through=("tile.blockify_launch",),
        ),
        (64, WARP),
    ),
    "a vector one element off": (
        Mutant(
            *VECTORIZE,
            "(neighbours.at(op, 0), list(op.indices)), types",
            "(neighbours.at(op, 1), list(op.indices)), types",
            ("pointwise",),
        ),
        (64, WARP),
    ),
    "the elements of a vector in another order": (
        Mutant(
            *VECTORIZE,
            "enumerate(vector.values)",
            "enumerate(list(vector.values)[::-1])",
            ("softmax",),
        ),
        (64, WARP),
    ),
    "a vector is stored before it is computed": (
        Mutant(
            *VECTORIZE,
            "InsertPoint.after(neighbours.loop)",
            "InsertPoint.before(neighbours.loop)",
            ("pointwise",),
        ),
        (64, WARP),
    ),
    "columns are combined with their neighbours": (
        Mutant(
            "materialize-tile",
            "kernel.thread_folds",
            "D0 * apart + D1 % apart",
            "D0 + D1 % apart",
            ("columns",),
        ),
        (64, WARP),
    ),
    "a part is left out": (
        Mutant(
            "split-reduce",
            "schedule.partial_blocks",
            "ForOp(parts.count, Region(body)",
            "ForOp(parts.count - 1, Region(body)",
            ("long",),
        ),
        (40000, WARP),
    ),
    "the last part goes on past the end": (
        Mutant(
            "split-reduce",
            "schedule.partial_blocks",
            "extent_expr(parts.extent - 1)",
            "extent_expr(parts.extent)",
            ("long",),
        ),
        (40003, WARP),
    ),
    "an element is kept in the place of another": (
        Mutant(
            *KEEP,
            "product(place, static_extent(loop.extent.data))",
            "product(place, 1)",
            ("softmax",),
        ),
        (2048, WARP),
    ),
    "rows are kept without their mask": (
        Mutant(
            *KEEP,
            "inside = builder.insert(TestOp(test.exprs, operands))",
            "inside = builder.insert(TestOp([ZERO], operands))",
            ("softmax",),
        ),
        (100, "a block"),
    ),
    "the tail begins one element late": (
        Mutant(
            *BIND,
            "static_extent(loop.extent.data) - 1)",
            "static_extent(loop.extent.data) - 2)",
            ("flat",),
        ),
        (31, WARP),
    ),
    "the tail ends one element late": (
        Mutant(
            *BIND,
            "mask_contributions(tail, of_loop, operands)",
            "mask_contributions(tail, [each + 1 for each in of_loop], operands)",
            ("flat",),
        ),
        (129, WARP),
    ),
    "the tail is left out": (
        Mutant(*BIND, "Block([tail, scf.YieldOp()])", "Block([scf.YieldOp()])", ("flat",)),
        (129, WARP),
    ),
}
"""A defect, and the length of a row and the schedule for which it matters."""


def run(program: str, n: int, schedule: str, replaced: dict[str, object]) -> None:
    """Lower a program with some passes replaced, and check what it computes."""
    if program == "flat":
        check_flat(n, lower(FLAT.format(n=n), SCHEDULES[schedule], replaced))
    elif program == "columns":
        check_columns(100, n, lower(COLUMNS.format(k=100, n=n), {}, replaced))
    elif program == "long":
        check_columns(n, 1, lower(COLUMNS.format(k=n, n=1), {}, replaced))
    else:
        check_rows(program, n, lower(source(program, n), SCHEDULES[schedule], replaced))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    mutant, (n, schedule) = MUTANTS[name]
    replaced = {mutant.victim: type(mutated_pass(mutant))}
    (program,) = mutant.programs
    with pytest.raises((*CAUGHT, AssertionError)):
        run(program, n, schedule, replaced)
