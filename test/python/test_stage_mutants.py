"""Deliberate defects in a copy of what fills slabs ahead of their use: executing the kernel finds each."""

from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from ir_programs import make_context, parse
from test_mutants import Mutant, mutated_pass
from test_transports import check, product
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from deplo.errors import DeploError
from deplo.interpreter import ProgramError, access_rows
from deplo.passes.pipelines import make_pipeline
from deplo.passes.tile.schedule import SchedulePass

THREADS = {"block_m": 8, "block_n": 8, "thread_m": 1, "thread_n": 1, "split_k": 1}


@dataclass(frozen=True)
class Product:
    """A product of this size, how it is scheduled, and the passes that it does without."""

    sizes: tuple[int, int, int]
    schedule: dict[str, int | str]
    without: tuple[str, ...] = field(default=())


PROGRAMS = {
    "asynchronous": Product(
        (20, 24, 90), {"block_k": 16, "stages": 3, "transport": "cp_async"}, ("pad-smem",)
    ),
    "in place": Product(
        (20, 24, 90), {"block_k": 8, "stages": 1, "transport": "cp_async"}, ("pipeline-k-outer",)
    ),
    "by threads": Product((20, 24, 75), {"block_k": 8, "stages": 2, "transport": "sync"}),
    "boxes": Product((20, 24, 92), {"block_k": 16, "stages": 3, "transport": "tma"}),
    "two boxes": Product((20, 24, 200), {"block_k": 64, "stages": 2, "transport": "tma"}),
    "boxes in place": Product(
        (20, 24, 92), {"block_k": 16, "stages": 2, "transport": "tma"}, ("pipeline-k-outer",)
    ),
}

MATERIALIZE = "materialize-tile"


@cache
def scheduled(name: str) -> ModuleOp:
    """A program as `materialize-tile` gets it."""
    program = PROGRAMS[name]
    module = parse(product(*program.sizes, "f32", transposed=True))
    for each in make_pipeline("loop-to-tile", "sm_90a"):
        if isinstance(each, SchedulePass):
            each = SchedulePass("sm_90a", **THREADS, **program.schedule)
        if each.name not in program.without:
            each.apply(make_context(), module)
    module.verify()
    return module


def run(name: str, materialize: ModulePass | None = None) -> None:
    """Execute a program, as a pass makes it a kernel. Raises what finds a defect."""
    module = scheduled(name).clone()
    for each in make_pipeline("tile-to-kernel", "sm_90a"):
        if materialize is not None and each.name == MATERIALIZE:
            each = materialize
        each.apply(make_context(), module)
    module.verify()
    check(module, *PROGRAMS[name].sizes, "f32", transposed=True)


def copies(old: str, new: str, *programs: str) -> Mutant:
    """A defect in `stage_copies.py`."""
    return Mutant(MATERIALIZE, "kernel.stage_copies", old, new, programs or ("asynchronous",))


def bulk(old: str, new: str, *programs: str) -> Mutant:
    """A defect in `stage_bulk.py`."""
    through = ("kernel.stage_copies",)
    found = programs or ("boxes",)
    return Mutant(MATERIALIZE, "kernel.stage_bulk", old, new, found, through=through)


MUTANTS = {
    "a wait leaves one group more": copies(
        "AsyncWaitOp(self.ahead - 1)", "AsyncWaitOp(self.ahead)"
    ),
    "no wait": copies("builder.insert(AsyncWaitOp(self.ahead - 1))", "pass"),
    "no wait in place": copies("builder.insert(AsyncWaitOp(0))", "pass", "in place"),
    "no barrier for an iteration": copies(
        "builder.insert(self._barrier())\n        self._start_if_any", "self._start_if_any"
    ),
    "no barrier for what threads copied": copies(
        "builder.insert(self._barrier())\n        self._start_if_any",
        "self._start_if_any",
        "by threads",
    ),
    "no commit": copies(
        "            builder.insert(AsyncCommitOp())\n\n    def", "            pass\n\n    def"
    ),
    "no commit in place": copies(
        "builder.insert(AsyncCommitOp())\n                builder", "builder", "in place"
    ),
    "a buffer too few": copies(
        "[chunk.number % self.buffers] if", "[chunk.number % (self.buffers - 1)] if"
    ),
    "readers are a buffer ahead": copies(
        "IndexOp(expr, chunk.counters)", "IndexOp((D0 + 1) % self.buffers, chunk.counters)"
    ),
    "copies are a chunk ahead": copies(
        "chunk.number + self.ahead,", "chunk.number + (self.ahead + 1),"
    ),
    "one chunk too few before the loop": copies("in range(self.ahead)", "in range(self.ahead - 1)"),
    "copies past the last chunk": copies(
        "_under(builder, tests, operands) if tests else builder", "builder"
    ),
    "the last chunk is not copied": copies("chunk.number * -1 + -1", "chunk.number * -1 + -2"),
    "one element past the end is read": copies(
        "index[axis] * -1 + -1, ranges", "index[axis] * -1, ranges", "by threads"
    ),
    "the last copy is zeros": copies(
        "index[axis] * -1 + -1, ranges", "index[axis] * -1 + -2, ranges"
    ),
    "a copy forgets its condition": copies(
        "body.insert(TestOp(open_, source[1])).result if open_ else None", "None"
    ),
    "a part too few": copies("count = prod(shape)", "count = prod(shape) - 1"),
    "copies overlap": copies("local[-1] * vector", "local[-1]"),
    "every chunk is the first": copies(
        "chunk.number if value is counter", "ZERO if value is counter"
    ),
    "no barrier before boxes come again": copies(
        "(self.buffers == 1 or self.bulk)", "self.buffers == 1", "boxes in place"
    ),
    "no wait for boxes": copies(
        "            self.bulk.wait(builder, chunk.number, chunk.counters)\n        builder",
        "            pass\n        builder",
        "boxes",
    ),
    "no wait for boxes in place": copies(
        "                self.bulk.wait(builder, chunk.number, chunk.counters)\n            if",
        "                pass\n            if",
        "boxes in place",
    ),
    "parity flipped": bulk("number // self.buffers % 2", "(number // self.buffers + 1) % 2"),
    "parity of the buffer": bulk("number // self.buffers % 2", "number % self.buffers % 2"),
    "parity never changes": bulk("number // self.buffers % 2", "ZERO"),
    "waits for the buffer after": bulk(
        "turn = simplify(number % self.buffers, ranges)",
        "turn = simplify((number + 1) % self.buffers, ranges)",
    ),
    "bytes of one box are expected": bulk("panels(stage)[0] * box.bytes", "box.bytes", "two boxes"),
    "no fence": bulk("    one.insert(FenceOp(machine.has_clusters))\n", ""),
    "no barrier after the phases begin": bulk(
        "    builder.insert(BarrierOp(machine.has_clusters))\n", ""
    ),
    "a barrier too few": bulk("for number in range(count)", "for number in range(count - 1)"),
    "every thread starts the copies": bulk(
        "one = _first_thread(builder, self.thread)", "one = builder"
    ),
    "the second box lies where the first does": bulk(
        "ZERO + panel if count > 1", "ZERO if count > 1", "two boxes"
    ),
    "the second box is the first again": bulk("panel * columns", "0", "two boxes"),
    "loads forget the swizzle": bulk("if stage.swizzle_bytes:", "if False:"),
    "the pattern changes with each row": bulk("LINE // stage.swizzle_bytes", "1"),
    "bits of a unit carry": bulk("% 2 * bit", "* bit"),
    "boxes complete on the first barrier": bulk(
        "            self.full,\n            ([turn], counters),\n",
        "            self.full,\n            ([ZERO], []),\n",
    ),
    "boxes go to the first buffer": bulk(
        "[*([turn] if self.buffers > 1", "[*([ZERO] if self.buffers > 1"
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    victim = mutated_pass(mutant)
    for program in mutant.programs:
        with pytest.raises((DeploError, ProgramError, VerifyException, AssertionError)):
            run(program, victim)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_passes_themselves_are_not_accused(name: str) -> None:
    run(name)


def test_the_boxes_are_swizzled() -> None:
    """Else the mutants of the swizzle would be none."""
    assert "swizzle 64" in str(scheduled("boxes"))
    assert "swizzle 128" in str(scheduled("two boxes"))
    assert np.prod(PROGRAMS["boxes"].sizes) >= 1 << 15


def shared_turns(materialize: ModulePass | None = None) -> dict[str, float]:
    """Slab -> turns that a warp takes for a load of it, beyond those it needs."""
    module = scheduled("by threads").clone()
    (materialize or make_pipeline("tile-to-kernel", "sm_90a")[0]).apply(make_context(), module)
    m, n, k = PROGRAMS["by threads"].sizes
    inputs = [np.ones((m, k), np.float32), np.ones((n, k), np.float32)]
    rows = access_rows(module, inputs)
    loads = [row for row in rows if row.space == "shared" and row.operation == "loop.load"]
    return {row.memory: row.cost - row.least for row in loads}


def test_padding_that_is_dropped_is_seen_in_the_turns_of_a_warp() -> None:
    """The result is the same without it, so the machine counts who meets in a bank."""
    dropped = copies(
        "shape, align = [*outer, row + stage.padding], None", "shape, align = [*outer, row], None"
    )
    padded, bare = shared_turns(), shared_turns(mutated_pass(dropped))
    assert set(padded) == set(bare)
    assert max(padded.values()) == 0
    assert max(bare.values()) >= 1
