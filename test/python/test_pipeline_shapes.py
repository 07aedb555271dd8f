"""Pipelines of every small shape: the machine accepts those that are right, and only those.

A pipeline of `rows` rows has `ahead` of them on their way in `slots` slots. It is right if row k has arrived
when it is read, and no row goes to a slot of which one that is still needed has not been read.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
from kernel_programs import CONSTANTS, INPUT, ROW, Program, in_order

from deplo.interpreter.simt import MachineFault


@dataclass(frozen=True)
class Shape:
    """`wait` is how many groups a wait leaves pending; for the engine, after how many rows parity changes."""

    rows: int
    ahead: int
    slots: int
    wait: int

    @property
    def has_room(self) -> bool:
        """Whether no slot is filled too early."""
        return self.ahead < self.slots or self.ahead == self.slots == self.rows


def body(shape: Shape, prologue: str, start: str, wait: str) -> str:
    """A kernel that starts copies with `start`, of `{row}` to `{slot}`, and waits with `wait`."""
    first = "".join(start.format(row=k, slot=k % shape.slots) for k in range(shape.ahead))
    row, slot = f"%k + {shape.ahead}", f"(%k + {shape.ahead}) mod {shape.slots}"
    return f"""{CONSTANTS}
%s = kernel.shared align 128 : memref<{shape.slots}x256xf32, "shared">
{prologue}{first}
%rows = arith.constant {shape.rows} : index
%sum = scf.for %k = %c0 to %rows step %c1 iter_args(%acc = %zero) -> (f32) {{
  %more = loop.test[%k < {shape.rows - shape.ahead}]
  scf.if %more {{
    {start.format(row=row, slot=slot)}
  }}
  {wait}
  %v = loop.load %s[%k mod {shape.slots}, %t * -1 + 255] : memref<{shape.slots}x256xf32, "shared">
  %n = arith.addf %acc, %v : f32
  kernel.barrier
  scf.yield %n : f32
}}
kernel.async_wait 0
loop.store %sum, %y[%b * 64 + %t] : memref<128xf32>
"""


def threads_copy(shape: Shape) -> Program:
    """Each thread copies four elements of a row."""
    to = f'memref<8x256xf32> to memref<{shape.slots}x256xf32, "shared">'
    start = (
        f"kernel.async_copy %x[%b * 4 + {{row}}, %t * 4] to %s[{{slot}}, %t * 4] vector 4 : {to}\n"
    )
    text = body(
        shape, "", start, f"kernel.async_commit\nkernel.async_wait {shape.wait}\nkernel.barrier"
    )
    copies = start.format(row=0, slot=0).split("%b")[0]
    lines: list[str] = []
    for line in text.splitlines():  # in front of the loop, each row is a group
        lines.append(line)
        if line.startswith(copies):
            lines.append("kernel.async_commit")
    return Program("\n".join(lines), np.array)


def engine_copies(shape: Shape) -> Program:
    """The copy engine fetches rows."""
    prologue = f"%full = kernel.mbarriers {shape.slots}\n%one = loop.test[%t < 1]\nscf.if %one {{\n"
    prologue += "".join(f"kernel.mbarrier_init %full[{i}], 1\n" for i in range(shape.slots))
    prologue += "kernel.fence\n}\nkernel.barrier\n"
    start = (
        "%one_{{n}} = loop.test[%t < 1]\n"
        "scf.if %one_{{n}} {{{{\n"
        "kernel.mbarrier_expect_bytes %full[{slot}], 1024\n"
        "kernel.bulk_copy %x[%b * 4 + {row}, 0] to %s[{slot}, 0] barrier %full[{slot}] : "
        f"{ROW.replace('2x256', f'{shape.slots}x256')}\n"
        "}}}}\n"
    )
    wait = (
        f"kernel.mbarrier_wait %full[%k mod {shape.slots}] parity[%k floordiv {shape.wait} mod 2]"
    )
    text = body(shape, prologue, start, wait)
    for number in range(text.count("%one_{n} =")):
        text = text.replace("%one_{n}", f"%one_{number}", 2)
    return Program(text.replace("{{", "{").replace("}}", "}"), np.array, "1x256xf32")


def accepted(program: Program, level: str, rows: int) -> bool:
    """Whether the machine runs a program; what it then computes must be right."""
    try:
        result = program.run(level)
    except MachineFault:
        return False
    x = INPUT.reshape(2, 4, 256)[:, :rows, ::-1][:, :, :64]
    np.testing.assert_array_equal(result.reshape(2, 64), [in_order(each) for each in x])
    return True


SHAPES = [
    Shape(rows, ahead, slots, wait)
    for rows, ahead, slots, wait in product(range(1, 5), range(1, 4), range(1, 5), range(5))
    if ahead <= rows
]


@pytest.mark.parametrize("level", ["kernel", "cuda"])
def test_copies_of_threads(level: str) -> None:
    """Of `ahead + 1` groups at row k, the oldest is that row's, so `ahead` may be pending."""
    for shape in SHAPES:
        right = shape.has_room and shape.wait <= shape.ahead
        assert accepted(threads_copy(shape), level, shape.rows) == right, shape


@pytest.mark.parametrize("level", ["kernel", "cuda"])
def test_copies_of_the_engine(level: str) -> None:
    """A slot's barrier changes parity each time the slot comes round again."""
    for shape in SHAPES:
        if shape.wait == 0:
            continue
        same = all(k // shape.wait % 2 == k // shape.slots % 2 for k in range(shape.rows))
        assert accepted(engine_copies(shape), level, shape.rows) == (shape.has_room and same), shape
