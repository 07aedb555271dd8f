"""Accesses of neighbours at once: what is wrong is found at both levels, every type has a C++ vector."""

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import PROGRAMS, Program, cubin

from deplo.interpreter import execute
from deplo.interpreter.simt import MachineFault
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass

MUTANTS = {
    "no barrier": ("kernel.barrier // filled\n", "", "another thread wrote"),
    "reads beyond the row": ("%x[%b, %t * 4]", "%x[%b, %t * 4 + 4]", "out of bounds"),
    "reads beyond the slab": (
        "%s[%t * -2 + 254]",
        "%s[%t * -2 + 256]",
        "is out of bounds: index 256..257",
    ),
    "threads write over one another": ("%s[%t * 4]", "%s[%t floordiv 2 * 4]", "two threads write"),
    "blocks write over one another": ("%y[%b * 64 + %t * 2]", "%y[%t * 2]", "two threads write"),
    "elements swapped": ("%w, %v to", "%v, %w to", None),
    "elements swapped in shared memory": ("%u, %r, %q, %p to", "%u, %q, %r, %p to", None),
}


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, level: str) -> None:
    old, new, message = MUTANTS[name]
    program = PROGRAMS["vectors"]
    assert program.body.count(old) == 1
    mutant = program.body.replace(old, new)
    if message is None:
        assert not np.array_equal(program.run(level, mutant), program.right())
        return
    if level == "cuda" and name == "reads beyond the row":  # which is the next one, in a flat array
        assert not np.array_equal(program.run(level, mutant), program.right())
        return
    with pytest.raises(MachineFault, match=message):
        program.run(level, mutant)


def test_reading_what_nobody_wrote_is_found() -> None:
    body = """
%s = kernel.shared align 8 : memref<128xf32, "shared">
%z = arith.constant 0.0 : f32
loop.store %z, %s[%t * 2] : memref<128xf32, "shared">
%v, %w = kernel.vector_load %s[%t * 2] : memref<128xf32, "shared"> -> f32, f32
"""
    with pytest.raises(MachineFault, match="that nobody has initialised"):
        Program(body, np.array).run("kernel")


MISALIGNED = """
cuda.func @k(%x: memref<64xf32>, %y: memref<8xf32>) blocks(1) threads(4) index(i32) {
  %t = kernel.thread_id
  %v, %w = kernel.vector_load %x[%t * 2 + 1] : memref<64xf32> -> f32, f32
  kernel.vector_store %v, %w to %y[%t * 2] : f32, f32 to memref<8xf32>
}
func.func @main(%x: memref<64xf32>) -> memref<8xf32> {
  %y = kernel.alloc : memref<8xf32>
  kernel.launch @k(%x, %y) blocks(1) threads(4) : memref<64xf32>, memref<8xf32>
  func.return %y : memref<8xf32>
}
"""


def test_a_misaligned_access_is_found() -> None:
    with pytest.raises(MachineFault, match="is misaligned: offset 1 of x is no multiple of 2"):
        execute(parse(MISALIGNED), [np.zeros(64, np.float32)])


TYPES = [("i1", 4), ("i8", 2), ("i8", 4), ("i16", 4), ("i32", 2), ("i32", 4), ("i64", 2)]
TYPES += [("f16", 2), ("f16", 4), ("bf16", 4), ("f32", 2), ("f32", 4), ("f64", 2)]


@pytest.mark.parametrize(("type", "width"), TYPES)
def test_every_type_has_a_vector_of_cpp(type: str, width: int) -> None:
    names = ", ".join(f"%v{i}" for i in range(width))
    types = ", ".join([type] * width)
    module = parse(f"""
kernel.func @k(%x: memref<64x{type}>, %y: memref<64x{type}>) blocks(1) threads({64 // width}) {{
  %t = kernel.thread_id
  {names} = kernel.vector_load %x[%t * {width}] : memref<64x{type}> -> {types}
  kernel.vector_store {names} to %y[%t * {width}] : {types} to memref<64x{type}>
}}""")
    LowerToCudaPass().apply(make_context(), module)
    module.verify()
    assert cubin(module, "sm_80").warnings == ()
