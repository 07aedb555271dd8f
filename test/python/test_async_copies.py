"""Asynchronous copies: correct kernels run at both levels, and each way to get them wrong is found."""

import re

import numpy as np
import pytest
from ir_programs import parse
from kernel_programs import PROGRAMS, Program, cubin, source

from deplo.analysis.architecture import require_architecture
from deplo.analysis.plan import build_plan
from deplo.codegen.cuda_printer import kernel_texts
from deplo.errors import DeploError
from deplo.interpreter import execute
from deplo.interpreter.simt import MachineFault

LEVELS = ["kernel", "cuda"]
COMPILED = [
    (name, sm)
    for name, program in PROGRAMS.items()
    for sm in ("sm_80", "sm_90a", "sm_120")
    if sm != "sm_80" or not program.box
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_correct_kernel_runs(name: str, level: str) -> None:
    program = PROGRAMS[name]
    np.testing.assert_array_equal(program.run(level), program.right())


COPY = 'kernel.async_copy %x[%b, %t] to %s[%t] vector 1 : memref<8x256xf32> to memref<64xf32, "shared">\n'
START = '%s = kernel.shared : memref<64xf32, "shared">\n' + COPY
COMMIT = "kernel.async_commit\n"
WAIT = "kernel.async_wait 0\n"
LOAD = '%v = loop.load %s[%t] : memref<64xf32, "shared">\n'
STORE = 'loop.store %one, %s[%t] : memref<64xf32, "shared">\n'
ONE = "%one = arith.constant 1.0 : f32\n"

FAULTS = {
    "read before the wait": (
        START + COMMIT + LOAD + WAIT,
        "loop.load",
        "reads an element of s that the copy at loc(k.mlir:6:1) may still fill: its thread has not "
        "waited for it, with 0 newer groups pending",
    ),
    "read of what was not committed": (
        START + WAIT + LOAD,
        "loop.load",
        "reads an element of s that the copy at loc(k.mlir:6:1) may still fill: its thread has not "
        "committed it",
    ),
    "write before the wait": (
        ONE + START + COMMIT + STORE + WAIT,
        "loop.store",
        "writes an element of s that the copy at loc(k.mlir:7:1) may still fill",
    ),
    "copy over a copy": (
        START + COMMIT + COPY + COMMIT + WAIT,
        "kernel.async_copy",
        "copies to an element of s that the copy at loc(k.mlir:6:1) may still fill: its thread has not "
        "waited for it, with 0 newer groups pending",
    ),
    "a wait that leaves the group pending": (
        START + COMMIT + "kernel.async_wait 1\n" + LOAD + WAIT,
        "loop.load",
        "has not waited for it",
    ),
    "read of what another thread waited for": (
        START + COMMIT + WAIT + LOAD.replace("%t]", "63 - %t]"),
        "loop.load",
        "races: reads an element of s another thread wrote",
    ),
    "a barrier before the wait is none after it": (
        START + COMMIT + "kernel.barrier\n" + WAIT + LOAD.replace("%t]", "63 - %t]"),
        "loop.load",
        "races: reads an element of s another thread wrote",
    ),
    "copy over what another thread read": (
        START
        + COMMIT
        + WAIT
        + "kernel.barrier\n"
        + LOAD.replace("%t]", "63 - %t]")
        + COPY
        + COMMIT
        + WAIT,
        "kernel.async_copy",
        "races: writes an element of s another thread read",
    ),
    "two threads copy to one element": (
        START.replace("%s[%t]", "%s[0]") + COMMIT + WAIT,
        "kernel.async_copy",
        "races: two threads write one element of s",
    ),
    "store over what is copied": (
        ONE
        + START.replace("%x[%b, %t]", "%y[%b * 64 + %t]").replace("8x256", "128")
        + "loop.store %one, %y[%b * 64 + %t] : memref<128xf32>\n"
        + COMMIT
        + WAIT,
        "loop.store",
        "writes an element of y that the copy at loc(k.mlir:7:1) may still read",
    ),
    "out of bounds at the source": (
        START.replace("%x[%b, %t]", "%x[%b + 7, %t]") + COMMIT + WAIT,
        "kernel.async_copy",
        "is out of bounds: index 8..8 of axis 0, whose extent is 8",
    ),
    "out of bounds at the destination": (
        START.replace("%s[%t]", "%s[%t + 1]") + COMMIT + WAIT,
        "kernel.async_copy",
        "is out of bounds: index 64..64 of axis 0, whose extent is 64",
    ),
    "never committed": (
        START + WAIT,
        "kernel.async_copy",
        "is on its way when the kernel ends: its thread has not committed it",
    ),
    "never waited for": (
        START + COMMIT,
        "kernel.async_copy",
        "is on its way when the kernel ends: its thread has not waited for it",
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_at_its_operation(name: str, level: str) -> None:
    body, marked, message = FAULTS[name]
    if level == "cuda":  # whose arrays are flat
        message = message.split(":")[0] if "out of bounds" in message else message
    with pytest.raises(MachineFault) as caught:
        Program(body, np.array).run(level)
    said = str(caught.value).replace('"', "")
    line = max(n for n, text in enumerate(source(body).splitlines(), 1) if marked in text)
    assert message in said
    assert said.startswith(f"loc(k.mlir:{line}:")


MISALIGNED = """
cuda.func @k(%x: memref<512xf32>, %y: memref<512xf32>) blocks(1) threads(64) index(i32) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<512xf32, "shared">
  kernel.async_copy %x[%t * 4 + 2] to %s[%t * 4] vector 4 : memref<512xf32> to memref<512xf32, "shared">
}
func.func @main(%x: memref<512xf32>) -> memref<512xf32> {
  %y = kernel.alloc : memref<512xf32>
  kernel.launch @k(%x, %y) blocks(1) threads(64) : memref<512xf32>, memref<512xf32>
  func.return %y : memref<512xf32>
}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "is misaligned: offset 2 of x is no multiple of 4"),
        ("%t * 4 + 2", "%t * 6", "is misaligned: offset 6 of x is no multiple of 4"),
        (
            "%x[%t * 4 + 2] to %s[%t * 4]",
            "%x[%t * 4] to %s[%t * 5]",
            "offset 5 of s is no multiple",
        ),
    ],
)
def test_a_misaligned_copy_is_found(old: str, new: str, message: str) -> None:
    """Kernel IR demands a proof of alignment; in CUDA form the machine looks at the offsets."""
    module = parse(MISALIGNED.replace(old, new))
    with pytest.raises(MachineFault, match=re.escape(message)):
        execute(module, [np.zeros(512, np.float32)])


MUTANTS = {
    "waits for one group less": ("async_wait 1", "async_wait 2", "has not waited for it"),
    "never waits in the loop": ("  kernel.async_wait 1\n", "", "has not waited for it"),
    "forgets to commit in the loop": ("  kernel.async_commit\n", "", "has not waited for it"),
    "forgets to commit the first row": (
        "kernel.async_commit\n%sum",
        "%sum",
        "has not waited for it",
    ),
    "no barrier after the wait": ("  kernel.barrier // filled\n", "", "another thread wrote"),
    "no barrier before the next copy": ("  kernel.barrier // free\n", "", "another thread read"),
    "waits behind the barrier": (
        "  kernel.async_wait 1\n  kernel.barrier // filled\n",
        "  kernel.barrier\n  kernel.async_wait 1\n",
        "another thread wrote",
    ),
    "one slot for both rows": ("%s[(%k + 1) mod 2,", "%s[%k mod 2,", "may still fill"),
    "reads the slot that is being filled": ("%s[%k mod 2, %t *", "%s[(%k + 1) mod 2, %t *", "fill"),
    "copies beyond the last row": (" if %more", "", "out of bounds"),
    "copies the row again": ("%b * 4 + %k + 1, %t", "%b * 4 + %k, %t", None),
    "zeros in place of the last row": ("[%k < 3]", "[%k < 2]", None),
    "half of the copies": (
        "%x[%b * 4, %t * 4] to %s[0, %t * 4] vector 4",
        "%x[%b * 4, %t * 4] to %s[0, %t * 4] vector 2",
        "initialised",
    ),
}
"""Defects of the pipeline, each with what is said of it; None where only the numbers are wrong."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, level: str) -> None:
    old, new, message = MUTANTS[name]
    program = PROGRAMS["pipeline"]
    assert program.body.count(old) == 1
    mutant = program.body.replace(old, new)
    if message is None:
        assert not np.array_equal(program.run(level, mutant), program.right())
        return
    with pytest.raises(MachineFault, match=message):
        program.run(level, mutant)


@pytest.mark.parametrize(("name", "architecture"), COMPILED)
def test_it_compiles_without_warnings(name: str, architecture: str) -> None:
    compiled = cubin(PROGRAMS[name].cuda_module(), architecture)
    assert compiled.warnings == ()
    assert (compiled.usage["k"].spill_stores, compiled.usage["k"].stack_bytes) == (0, 0)


def test_an_architecture_without_the_instruction_is_refused() -> None:
    module = PROGRAMS["pipeline"].cuda_module()
    require_architecture(module, "sm_80")
    message = r"'kernel.async_copy' at loc\(\"k.mlir\":12:1\) needs sm_80 or later, the target is sm_75"
    with pytest.raises(DeploError, match=message):
        build_plan(module, "sm_75", kernel_texts(module))
