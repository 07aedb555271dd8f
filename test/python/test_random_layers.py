"""`outline-repeats` on random layers: what each copy reads from elsewhere is drawn anew."""

from __future__ import annotations

import random

import pytest
from ir_programs import parse
from xdsl.context import Context
from xdsl.dialects import func

from deplo.passes.torch.outline_repeats import OutlineRepeatsPass
from deplo.tools.check_each_pass import PassChecker

TYPE = "tensor<3xf32>"
ONE = ("tanh", "sin", "cos", "sigmoid")
TWO = ("mul", "add", "sub", "maximum")


def program(seed: int) -> str:
    """Copies of one layer: they read each other alike, and inputs or earlier results as it falls."""
    draw = random.Random(seed)
    lines: list[str] = []
    known = [f"%x{i}" for i in range(3)]
    layer = []
    for i in range(draw.randint(8, 12)):
        name = draw.choice(ONE + TWO)
        inside = [j for j in range(i) if draw.random() < 0.5]
        reads = [draw.choice([None, *inside[-3:]]) for _ in range(1 if name in ONE else 2)]
        layer.append((name, reads))
    for copy in range(draw.randint(2, 4)):
        made: list[str] = []
        for i, (name, reads) in enumerate(layer):
            few = known[-draw.randint(1, len(known)) :]
            values = [made[j] if j is not None else draw.choice(few) for j in reads]
            types = ", ".join([TYPE] * len(values))
            made.append(f"%v{copy}_{i}")
            lines.append(f"{made[-1]} = torch.{name} {', '.join(values)} : ({types}) -> {TYPE}")
        known += draw.sample(made, draw.randint(1, 3))
    inputs = ", ".join(f"{x}: {TYPE}" for x in known[:3])
    results = ", ".join(known[3:])
    types = ", ".join([TYPE] * (len(known) - 3))
    body = "\n".join(lines)
    return f"func.func @main({inputs}) -> ({types}) {{\n{body}\nfunc.return {results} : {types}\n}}"


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_calls_of_layers_compute_what_the_layers_did(first: int) -> None:
    outlined = 0
    for seed in range(first, first + 50):
        module = parse(program(seed))
        told: list[str] = []
        checker = PassChecker(told.append)
        checker.begin(module)
        passed = OutlineRepeatsPass()
        passed.apply(Context(), module)
        module.verify()
        checker.after_pass(passed, module)
        assert checker.checked == 1, told
        outlined += any(isinstance(op, func.CallOp) for op in module.walk())
    assert outlined >= 20
