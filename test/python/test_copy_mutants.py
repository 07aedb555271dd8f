"""Deliberate defects in a copy of the lowering of copies: executing what it makes catches every one."""

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import INPUT, PROGRAMS, source
from test_mutants import Mutant, mutated_pass
from xdsl.utils.exceptions import VerifyException

from deplo.interpreter import ProgramError, execute

COPIES = ("lower-to-cuda", "kernel.cuda_copies")
BULK = ("bulk pipeline",)

MUTANTS = {
    "every copy is of one element": Mutant(
        *COPIES, "op.vector.value.data * storage_bytes", "storage_bytes", ("pipeline",)
    ),
    "a copy forgets its condition": Mutant(
        *COPIES,
        "None if op.condition is None else state.values[op.condition]",
        "None",
        ("pipeline",),
    ),
    "a copy reads where it writes": Mutant(
        *COPIES,
        "state.address(op.source, op.source_map.data.results, op.source_indices)",
        "state.address(op.destination, op.map.data.results, op.indices)",
        ("pipeline",),
    ),
    "a wait leaves one group more": Mutant(
        *COPIES,
        "cuda.CpAsyncWaitOp(op.pending.value.data)",
        "cuda.CpAsyncWaitOp(op.pending.value.data + 1)",
        ("pipeline",),
    ),
    "nothing is committed": Mutant(
        *COPIES, "state.simple(op, cuda.CpAsyncCommitOp())", "None", ("pipeline",)
    ),
    "waits are left out": Mutant(
        *COPIES,
        "    state.simple(op, cuda.CpAsyncWaitOp(",
        "    repr(cuda.CpAsyncWaitOp(",
        ("zeros",),
    ),
    "a barrier of one arrival more": Mutant(
        *COPIES,
        "cuda.MbarrierInitOp(state.values[op.barriers], index, op.number.value.data)",
        "cuda.MbarrierInitOp(state.values[op.barriers], index, op.number.value.data + 1)",
        BULK,
    ),
    "half of the bytes are expected": Mutant(
        *COPIES,
        "cuda.MbarrierExpectTxOp(state.values[op.barriers], index, op.number.value.data)",
        "cuda.MbarrierExpectTxOp(state.values[op.barriers], index, op.number.value.data // 2)",
        BULK,
    ),
    "the parity is the number of the barrier": Mutant(
        *COPIES,
        "parity = state.index_of(op.parity, op.parity_indices)",
        "parity = index",
        BULK,
    ),
    "barriers that begin with the other parity": Mutant(
        *COPIES,
        "parity = state.index_of(op.parity, op.parity_indices)",
        "parity = state.index_of(op.parity, op.parity_indices)\n"
        "    parity = ([(parity[0][0] + 1) % 2], parity[1])",
        BULK,
    ),
    "fences are left out": Mutant(
        *COPIES, "state.simple(op, cuda.FenceProxyAsyncOp())", "None", BULK
    ),
    "waits for barriers are left out": Mutant(
        *COPIES,
        "    state.simple(op, cuda.MbarrierWaitOp(",
        "    repr(cuda.MbarrierWaitOp(",
        BULK,
    ),
    "coordinates from the innermost out": Mutant(
        *COPIES,
        "        state.index_of(op.box_map, op.box_indices),",
        "        (lambda i: (i[0][::-1], i[1]))(state.index_of(op.box_map, op.box_indices)),",
        BULK,
    ),
    "a box completes on the first barrier": Mutant(
        *COPIES,
        "state.index_of(op.barrier_map, op.barrier_indices)",
        "([AffineExpr.constant(0)], ())",
        BULK,
    ),
    "a box goes to the first slot": Mutant(
        *COPIES,
        "        ([offset], operands),\n        state",
        "        ([AffineExpr.constant(0)], ()),\n        state",
        BULK,
    ),
    "a vector is stored in reverse": Mutant(
        *COPIES, "for v in op.values]", "for v in op.values[::-1]]", ("vectors",)
    ),
    "a vector is stored one element on": Mutant(
        *COPIES,
        "VectorStoreOp(values, pointer, ([offset]",
        "VectorStoreOp(values, pointer, ([offset + 1]",
        ("vectors",),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    victim = mutated_pass(mutant)
    for program in (PROGRAMS[program] for program in mutant.programs):
        module = parse(source(program.body, program.box))
        try:
            victim.apply(make_context(), module)
            module.verify()
            result = execute(module, [INPUT])[0]
        except (ProgramError, VerifyException):
            return
        if not np.array_equal(result, program.right()):
            return
    pytest.fail(f"{name}: survives on {', '.join(mutant.programs)}")
