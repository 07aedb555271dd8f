"""Deliberate defects in a copy of the lowering of instructions: executing what it makes catches every one."""

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import INPUT, PROGRAMS, source
from test_mutants import Mutant, mutated_pass
from xdsl.utils.exceptions import VerifyException

from deplo.interpreter import ProgramError, execute

LOWERING = ("lower-to-cuda", "kernel.cuda_instructions")
BULK = ("bulk pipeline",)

MUTANTS = {
    "an operation forgets its condition": Mutant(
        *LOWERING,
        "n: getattr(op, n)",
        'n: None if n == "condition" else getattr(op, n)',
        ("pipeline",),
    ),
    "every index is the first one of an operation": Mutant(
        *LOWERING,
        "_offset(op, index)\n",
        'op.properties[index.map], operands["indices"]\n',
        ("pipeline",),
    ),
    "an offset is one element on": Mutant(
        *LOWERING,
        "[flat_offset(memory, exprs, ranges)]",
        "[flat_offset(memory, exprs, ranges) + 1]",
        ("pipeline", "vectors"),
    ),
    "a box goes to the first slot": Mutant(
        *LOWERING,
        "[flat_offset(memory, exprs, ranges)]",
        "[flat_offset(memory, exprs, ranges) * 0]",
        BULK,
    ),
    "barriers and bytes are one more": Mutant(
        *LOWERING,
        "    said.pop(",
        "    for key in {'number'} & said.keys():\n"
        "        said[key] = type(said[key])(said[key].value.data + 1, i64)\n"
        "    said.pop(",
        BULK,
    ),
    "waits for barriers are left out": Mutant(
        "lower-to-cuda",
        "kernel.lower_to_cuda",
        "        Rewriter.insert_op(new,",
        "        if 'wait' not in op.name:\n            Rewriter.insert_op(new,",
        ("zeros", *BULK),
    ),
    "barriers and parities are one on": Mutant(
        *LOWERING,
        "[nonnegative(simplify(expr, ranges), ranges) for",
        "[(nonnegative(simplify(expr, ranges), ranges) + 1) % 2 for",
        BULK,
    ),
    "coordinates from the innermost out": Mutant(
        *LOWERING,
        "ranges) for expr in exprs]\n",
        "ranges) for expr in exprs][::-1]\n",
        BULK,
    ),
    "a vector is stored in reverse": Mutant(
        *LOWERING,
        "n: getattr(op, n)",
        'n: getattr(op, n)[::-1] if n == "values" else getattr(op, n)',
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
