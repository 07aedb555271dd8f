"""The copy engine and its barriers: correct kernels run, and each way to get them wrong is found."""

import re

import numpy as np
import pytest
from ir_programs import parse
from kernel_programs import INITIALISE, INPUT, PROGRAMS, Program, source, swizzled_source

from deplo.analysis.plan import build_plan
from deplo.codegen.cuda_printer import kernel_texts
from deplo.errors import DeploError
from deplo.interpreter import execute
from deplo.interpreter.simt import MachineFault

LEVELS = ["kernel", "cuda"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("width", [32, 64, 128])
def test_a_swizzled_box_lies_as_the_driver_documents(width: int, level: str) -> None:
    """In line n of 128 bytes, unit u of 16 bytes is found in place u xor n mod (width / 16)."""
    columns = width // 4
    box = np.zeros((8, columns), np.float32)
    box[:7, : columns - 4] = INPUT[1:, 260 - columns :]  # what is outside of the tensor is zeros
    units = box.reshape(-1, 8, 4)
    lying = np.zeros_like(units)
    for line in range(len(units)):
        for unit in range(8):
            lying[line, unit ^ line % (width // 16)] = units[line, unit]
    expected = np.resize(lying.reshape(-1), 128)
    program = Program(swizzled_source(width), np.array, f"8x{columns}xf32, swizzle {width}")
    np.testing.assert_array_equal(program.run(level), expected)


BOX = "1x32xf32"
TO = f'!kernel.tensor_map<{BOX}> to memref<2x32xf32, "shared">'
SLAB = '%s = kernel.shared align 128 : memref<2x32xf32, "shared">\n'
EXPECT = "kernel.mbarrier_expect_bytes %full[0], 128\n"
COPY = f"kernel.bulk_copy %x[%b, 0] to %s[0, 0] barrier %full[0] : {TO}\n"
WAIT = "kernel.mbarrier_wait %full[0] parity[0]\n"
READ = '%v = loop.load %s[0, %t mod 32] : memref<2x32xf32, "shared">\n'
BARRIER = "kernel.barrier\n"
FENCE = "kernel.fence\n"
ZERO = "%z = arith.constant 0.0 : f32\n"
FILL = 'loop.store %z, %s[%t floordiv 32, %t mod 32] : memref<2x32xf32, "shared">\n'
START = SLAB + INITIALISE


def once(body: str) -> str:
    """What one thread does."""
    return f"scf.if %one {{\n{body}}}\n"


FAULTS = {
    "read before the wait": (
        START + once(EXPECT + COPY) + READ + WAIT,
        "loop.load",
        "may still fill: phase 0 of its mbarrier is not complete",
    ),
    "a wait for the parity of the phase before": (
        START + once(EXPECT + COPY) + WAIT.replace("[0]\n", "[1]\n") + READ,
        "loop.load",
        "may still fill: phase 0 of its mbarrier is not complete",
    ),
    "a wait for a phase after the last": (
        START + once(EXPECT + COPY) + WAIT + WAIT.replace("[0]\n", "[1] {second}\n"),
        "{second}",
        "waits for ever: phase 1 of the mbarrier, of parity 1, lacks 1 of 1 arrivals",
    ),
    "nobody expects the bytes": (
        START + once(COPY) + WAIT,
        "kernel.mbarrier_wait",
        "waits for ever: phase 0 of the mbarrier, of parity 0, lacks 1 of 1 arrivals",
    ),
    "more bytes expected than come": (
        START + once(EXPECT.replace("128", "256") + COPY) + WAIT,
        "kernel.mbarrier_wait",
        "waits for ever: phase 0 of the mbarrier, of parity 0, lacks 128 bytes, and no copy is on",
    ),
    "fewer bytes expected than come": (
        START + once(EXPECT.replace("128", "64") + COPY) + WAIT,
        "kernel.mbarrier_wait",
        "waits for ever: phase 0 of the mbarrier, of parity 0, gets 64 bytes more than were expected",
    ),
    "a parity that there is not": (
        START + once(EXPECT + COPY) + WAIT.replace("parity[0]", "parity[%t mod 3]"),
        "kernel.mbarrier_wait",
        "waits for parity 0, 1, 2; parities are 0 and 1",
    ),
    "only one thread waits": (
        START + once(EXPECT + COPY + WAIT) + READ,
        "loop.load",
        "reads an element of s that a bulk copy filled, without waiting for its mbarrier",
    ),
    "no fence after the initialisation": (
        START.replace("  kernel.fence\n", "") + once(EXPECT + COPY) + WAIT,
        "kernel.bulk_copy",
        "completes on an mbarrier initialised without a fence since",
    ),
    "no barrier after the initialisation": (
        START.replace("kernel.barrier // initialised\n", "") + once(EXPECT + COPY) + WAIT,
        "kernel.mbarrier_wait",
        "races: uses an mbarrier another thread initialised",
    ),
    "no initialisation": (
        START + "%other = kernel.mbarriers 1\n" + once(EXPECT.replace("%full", "%other")),
        "kernel.mbarrier_expect_bytes",
        "uses an mbarrier that is not initialised",
    ),
    "an initialisation too many": (
        START + once("kernel.mbarrier_init %full[1], 1 {second}\n"),
        "{second}",
        "initialises an mbarrier that is initialised already",
    ),
    "every thread initialises": (
        START + "%other = kernel.mbarriers 1\nkernel.mbarrier_init %other[0], 1 {second}\n",
        "{second}",
        "races: two threads initialise one mbarrier",
    ),
    "every thread arrives": (
        START + EXPECT + once(COPY) + WAIT,
        "kernel.mbarrier_expect_bytes",
        "arrives at an mbarrier 63 times more than its phase has arrivals",
    ),
    "every thread copies": (
        START + once(EXPECT) + COPY + WAIT,
        "kernel.bulk_copy",
        "races: two threads write one element of s",
    ),
    "a barrier that there is not": (
        START + once(EXPECT.replace("[0]", "[%b + 1]")),
        "kernel.mbarrier_expect_bytes",
        "is out of bounds: index 2..2 of axis 0, whose extent is 2",
    ),
    "no fence after threads wrote": (
        ZERO + START + FILL + BARRIER + once(EXPECT + COPY) + WAIT,
        "kernel.bulk_copy",
        "fills an element of s that threads wrote without a fence since",
    ),
    "a fence before other threads wrote": (
        ZERO + START + FILL + once(FENCE) + BARRIER + once(EXPECT + COPY) + WAIT,
        "kernel.bulk_copy",
        "fills an element of s that threads wrote without a fence since",
    ),
    "no barrier after threads wrote": (
        ZERO + START + FILL + FENCE + once(EXPECT + COPY) + WAIT,
        "kernel.bulk_copy",
        "races: writes an element of s another thread wrote",
    ),
    "no barrier after threads read": (
        START
        + once(EXPECT + COPY)
        + WAIT
        + READ
        + once(EXPECT + COPY)
        + WAIT.replace("[0]\n", "[1]\n"),
        "kernel.bulk_copy",
        "races: writes an element of s another thread read",
    ),
    "a copy over a copy": (
        START + once(EXPECT + COPY + COPY.replace(" :", " {second} :")) + WAIT,
        "{second}",
        "copies to an element of s that the copy at",
    ),
    "a box that does not fit": (
        START + once(EXPECT + COPY.replace("%s[0, 0]", "%s[%b + 1, 0]")),
        "kernel.bulk_copy",
        "is out of bounds",
    ),
    "never waited for": (
        START + once(EXPECT + COPY),
        "kernel.bulk_copy",
        "is on its way when the kernel ends: phase 0 of its mbarrier is not complete",
    ),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_reported_at_its_operation(name: str, level: str) -> None:
    body, marked, message = FAULTS[name]
    with pytest.raises(MachineFault) as caught:
        Program(body, np.array, BOX).run(level)
    said = str(caught.value).replace('"', "")
    line = max(n for n, text in enumerate(source(body, BOX).splitlines(), 1) if marked in text)
    assert message in said
    assert said.startswith(f"loc(k.mlir:{line}:")


MUTANTS = {
    "parity flipped": ("parity[%k floordiv 2 mod 2]", "parity[(%k floordiv 2 + 1) mod 2]", "fill"),
    "parity of the slot": ("parity[%k floordiv 2 mod 2]", "parity[%k mod 2]", "may still fill"),
    "parity never changes": ("parity[%k floordiv 2 mod 2]", "parity[0]", "may still fill"),
    "barrier of the other slot": ("_wait %full[%k mod 2]", "_wait %full[(%k + 1) mod 2]", "fill"),
    "no wait": ("  kernel.mbarrier_wait %full[%k mod 2] parity[%k floordiv 2 mod 2]\n", "", "fill"),
    "half of the bytes": ("%full[0], 1024", "%full[0], 512", "512 bytes more than were expected"),
    "twice the bytes": ("mod 2], 1024", "mod 2], 2048", "lacks 1024 bytes"),
    "bytes for the other slot": ("bytes %full[(%k + 1) mod 2]", "bytes %full[%k mod 2]", "arriv"),
    "two arrivals": ("init %full[1], 1", "init %full[1], 2", "lacks 1 of 2 arrivals"),
    "no initialisation": ("  kernel.mbarrier_init %full[1], 1\n", "", "is not initialised"),
    "no fence": ("  kernel.fence\n", "", "without a fence since"),
    "no barrier after the initialisation": (
        "kernel.barrier // initialised\n",
        "",
        "another thread",
    ),
    "no barrier before the next copy": ("  kernel.barrier // free\n", "", "another thread read"),
    "one slot": ("%s[(%k + 1) mod 2, 0]", "%s[0, 0]", "may still fill|another thread"),
    "every thread copies": ("[%k < 3, %t < 1]", "[%k < 3]", "times more than its phase"),
    "a copy too many": ("[%k < 3, %t < 1]", "[%k < 4, %t < 1]", "when the kernel ends"),
    "a copy too few": ("[%k < 3, %t < 1]", "[%k < 2, %t < 1]", "lacks 1 of 1 arrivals"),
    "the same row again": ("%x[%b * 4 + %k + 1, 0]", "%x[%b * 4 + %k, 0]", None),
    "a row shifted": ("%x[%b * 4 + %k + 1, 0]", "%x[%b * 4 + %k + 1, 1]", None),
}
"""Defects of the pipeline, each with what is said of it; None where only the numbers are wrong."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, level: str) -> None:
    old, new, message = MUTANTS[name]
    program = PROGRAMS["bulk pipeline"]
    assert program.body.count(old) == 1
    mutant = program.body.replace(old, new)
    if message is None:
        assert not np.array_equal(program.run(level, mutant), program.right())
        return
    with pytest.raises(MachineFault, match=message):
        program.run(level, mutant)


MISALIGNED = """
cuda.func @k(%x: !kernel.tensor_map<1x32xf32>, %y: memref<1xf32>) blocks(1) threads(1) index(i32) {
  %s = kernel.shared align 128 : memref<64xf32, "shared">
  %full = kernel.mbarriers 1
  kernel.mbarrier_init %full[0], 1
  kernel.fence
  kernel.bulk_copy %x[0, 0] to %s[16] barrier %full[0]
    : !kernel.tensor_map<1x32xf32> to memref<64xf32, "shared">
}
func.func @main(%x: memref<8x256xf32>) -> memref<1xf32> {
  %y = kernel.alloc : memref<1xf32>
  %map = kernel.tensor_map %x : memref<8x256xf32> to !kernel.tensor_map<1x32xf32>
  kernel.launch @k(%map, %y) blocks(1) threads(1) : !kernel.tensor_map<1x32xf32>, memref<1xf32>
  func.return %y : memref<1xf32>
}
"""


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        ("16", "is misaligned: offset 64 of s, in bytes, is no multiple of 128"),
        ("32", "is on its way when the kernel ends"),
        ("64", "is out of bounds: index 64..64 of axis 0, whose extent is 64"),
    ],
)
def test_where_a_box_is_put_is_checked(offset: str, message: str) -> None:
    module = parse(MISALIGNED.replace("%s[16]", f"%s[{offset}]"))
    with pytest.raises(MachineFault, match=re.escape(message)):
        execute(module, [INPUT])


def test_an_architecture_without_a_copy_engine_is_refused() -> None:
    module = PROGRAMS["bulk pipeline"].cuda_module()
    with pytest.raises(DeploError, match=r"'kernel.fence' at .* needs sm_90 or later"):
        build_plan(module, "sm_80", kernel_texts(module))
