"""Atomic addition: threads may change one element together, and nobody else may touch it meanwhile."""

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import CONSTANTS, INPUT, Program, cubin

from deplo.interpreter import ProgramError, execute
from deplo.interpreter.simt import MachineFault
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass

LEVELS = ["kernel", "cuda"]

SUMS = f"""{CONSTANTS}
%s = kernel.shared : memref<8xf32, "shared">
%few = loop.test[%t < 8]
scf.if %few {{
  loop.store %zero, %s[%t] : memref<8xf32, "shared">
}}
kernel.barrier // zeroed
%v = loop.load %x[%b, %t] : memref<8x256xf32>
kernel.atomic_add %v, %s[%t mod 8] : f32, memref<8xf32, "shared">
kernel.barrier // added
%w = loop.load %s[%t floordiv 8] : memref<8xf32, "shared">
loop.store %w, %y[%b * 64 + %t] : memref<128xf32>
"""


@pytest.mark.parametrize("level", LEVELS)
def test_threads_add_to_one_element(level: str) -> None:
    sums = INPUT[:2, :64].reshape(2, 8, 8).sum(1)
    result = Program(SUMS, np.array).run(level)
    np.testing.assert_allclose(result, np.repeat(sums, 8, 1).reshape(-1), rtol=1e-5)


MUTANTS = {
    "no barrier before": (
        "kernel.barrier // zeroed\n",
        "",
        "adds to an element of s another thread wrote",
    ),
    "no barrier after": (
        "kernel.barrier // added\n",
        "",
        "reads an element of s another thread wrote",
    ),
    "read meanwhile": (
        "kernel.barrier // zeroed\n",
        'kernel.barrier\n%o = loop.load %s[0] : memref<8xf32, "shared">\n',
        "adds to an element of s another thread read",
    ),
    "stored meanwhile": (
        "kernel.barrier // added\n",
        'scf.if %few {\nloop.store %v, %s[%t] : memref<8xf32, "shared">\n}\nkernel.barrier\n',
        "writes an element of s another thread wrote",
    ),
    "not initialised": (
        "[%t < 8]",
        "[%t < 7]",
        "adds to an element of s that nobody has initialised",
    ),
    "out of bounds": ("%s[%t mod 8] : f32", "%s[%t mod 9] : f32", "is out of bounds"),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, level: str) -> None:
    old, new, message = MUTANTS[name]
    assert SUMS.count(old) == 1
    with pytest.raises(MachineFault, match=message):
        Program(SUMS.replace(old, new), np.array).run(level)


GLOBAL = """
kernel.func @zero(%y: memref<4xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %y[%t] : memref<4xf32>
}
kernel.func @add(%x: memref<16x4xf32>, %y: memref<4xf32>) blocks(16) threads(4) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %v = loop.load %x[%b, %t] : memref<16x4xf32>
  kernel.atomic_add %v, %y[%t] : f32, memref<4xf32>
}
kernel.func @copy(%x: memref<4xf32>, %y: memref<4xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<4xf32>
  loop.store %v, %y[%t] : memref<4xf32>
}
func.func @main(%x: memref<16x4xf32>) -> memref<4xf32> {
  %a = kernel.alloc at 0 : memref<4xf32>
  kernel.launch @zero(%a) blocks(1) threads(4) : memref<4xf32>
  kernel.launch @add(%x, %a) blocks(16) threads(4) : memref<16x4xf32>, memref<4xf32>
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @copy(%a, %y) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>
  func.return %y : memref<4xf32>
}
"""


def test_blocks_add_to_one_element_of_global_memory() -> None:
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    np.testing.assert_array_equal(execute(parse(GLOBAL), [x])[0], x.sum(0))


def test_what_is_added_to_must_be_in_its_place_of_the_arena() -> None:
    text = GLOBAL.replace("  kernel.launch @zero(%a) blocks(1) threads(4) : memref<4xf32>\n", "")
    with pytest.raises(ProgramError, match="reads %a, whose place holds nothing"):
        execute(parse(text), [np.zeros((16, 4), np.float32)])


@pytest.mark.parametrize("type", ["f32", "f64", "i32", "i64"])
def test_every_type_compiles(type: str) -> None:
    module = parse(f"""
kernel.func @k(%x: memref<64x{type}>, %y: memref<4x{type}>) blocks(1) threads(64) {{
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<64x{type}>
  kernel.atomic_add %v, %y[%t mod 4] : {type}, memref<4x{type}>
}}""")
    LowerToCudaPass().apply(make_context(), module)
    module.verify()
    assert cubin(module, "sm_80").warnings == ()
