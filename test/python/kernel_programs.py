"""Programs in Kernel IR whose threads copy while they compute, and what they compute."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from ir_programs import make_context, parse
from xdsl.dialects.builtin import ModuleOp

from deplo.codegen.cuda_printer import cuda_source
from deplo.errors import MissingEnvironmentError
from deplo.interpreter import execute
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass
from deplo.runtime.nvrtc import Cubin, compile_cuda

BLOCKS, THREADS = 2, 64


def source(body: str, box: str = "") -> str:
    """A program that runs `body` on 2 blocks of 64 threads: `%x` is 8 rows of 256, `%y` is a number each.

    With a box, `%x` is a tensor map of them.
    """
    type, value = f"!kernel.tensor_map<{box}>", "%map"
    make = f"%map = kernel.tensor_map %x : memref<8x256xf32> to {type}"
    if not box:
        type, value, make = "memref<8x256xf32>", "%x", ""
    return f"""
kernel.func @k(%x: {type}, %y: memref<128xf32>) blocks({BLOCKS}) threads({THREADS}) {{
%b = kernel.block_id
%t = kernel.thread_id
{body}
}}
func.func @main(%x: memref<8x256xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  {make}
  kernel.launch @k({value}, %y) blocks({BLOCKS}) threads({THREADS}) : {type}, memref<128xf32>
  func.return %y : memref<128xf32>
}}"""


@dataclass(frozen=True)
class Program:
    """A kernel's body, and its result on 8 rows of 256 numbers, as 2 rows of 64."""

    body: str
    expected: Callable[[np.ndarray], np.ndarray]
    box: str = ""

    def run(self, level: str, body: str | None = None) -> np.ndarray:
        """What the program, or another body in its place, computes as kernel IR or in its CUDA form."""
        program = self if body is None else replace(self, body=body)
        module = (
            program.cuda_module()
            if level == "cuda"
            else parse(source(program.body, program.box), "k.mlir")
        )
        return execute(module, [INPUT])[0]

    def kernel_module(self) -> ModuleOp:
        """The program in Kernel IR."""
        return parse(source(self.body, self.box), "k.mlir")

    def cuda_module(self) -> ModuleOp:
        """The program in CUDA form."""
        module = parse(source(self.body, self.box), "k.mlir")
        LowerToCudaPass().apply(make_context(), module)
        module.verify()
        return module

    def right(self) -> np.ndarray:
        """What it should compute."""
        return self.expected(INPUT).reshape(-1)


def cubin(module: ModuleOp, architecture: str) -> Cubin:
    """The machine code of a module's kernels; skips the test where there is no NVRTC."""
    try:
        return compile_cuda(cuda_source(module), architecture)
    except MissingEnvironmentError as error:
        pytest.skip(f"no NVRTC: {error}")


INPUT = np.random.default_rng(1).standard_normal((8, 256)).astype(np.float32)

COPIED = 'memref<8x256xf32> to memref<2x256xf32, "shared">'

CONSTANTS = """
%zero = arith.constant 0.0 : f32
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c4 = arith.constant 4 : index
"""

PIPELINE = f"""{CONSTANTS}
%s = kernel.shared align 16 : memref<2x256xf32, "shared">
kernel.async_copy %x[%b * 4, %t * 4] to %s[0, %t * 4] vector 4 : {COPIED}
kernel.async_commit
%sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) {{
  %more = loop.test[%k < 3]
  kernel.async_copy %x[%b * 4 + %k + 1, %t * 4] to %s[(%k + 1) mod 2, %t * 4] vector 4 if %more : {COPIED}
  kernel.async_commit
  kernel.async_wait 1
  kernel.barrier // filled
  %v = loop.load %s[%k mod 2, %t * -1 + 255] : memref<2x256xf32, "shared">
  %n = arith.addf %acc, %v : f32
  kernel.barrier // free
  scf.yield %n : f32
}}
kernel.async_wait 0
loop.store %sum, %y[%b * 64 + %t] : memref<128xf32>
"""
"""Two slots: the next row is on its way while this one is added up."""

ZEROS = """
%s = kernel.shared align 8 : memref<128xf32, "shared">
%in = loop.test[%t < 63]
kernel.async_copy %x[%b, %t * 2 + 130] to %s[%t * 2] vector 2 if %in
  : memref<8x256xf32> to memref<128xf32, "shared">
kernel.async_commit
kernel.async_wait 0
kernel.barrier
%v = loop.load %s[%t * -1 + 127] : memref<128xf32, "shared">
loop.store %v, %y[%b * 64 + %t] : memref<128xf32>
"""
"""A row that ends: what would lie behind it is not read, and zeros take its place."""


INITIALISE = """
%full = kernel.mbarriers 2
%one = loop.test[%t < 1]
scf.if %one {
  kernel.mbarrier_init %full[0], 1
  kernel.mbarrier_init %full[1], 1
  kernel.fence
}
kernel.barrier // initialised
"""

ROW = '!kernel.tensor_map<1x256xf32> to memref<2x256xf32, "shared">'

BULK_PIPELINE = f"""{CONSTANTS}
%s = kernel.shared align 128 : memref<2x256xf32, "shared">
{INITIALISE}
scf.if %one {{
  kernel.mbarrier_expect_bytes %full[0], 1024
  kernel.bulk_copy %x[%b * 4, 0] to %s[0, 0] barrier %full[0] : {ROW}
}}
%sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) {{
  %more = loop.test[%k < 3, %t < 1]
  scf.if %more {{
    kernel.mbarrier_expect_bytes %full[(%k + 1) mod 2], 1024
    kernel.bulk_copy %x[%b * 4 + %k + 1, 0] to %s[(%k + 1) mod 2, 0] barrier %full[(%k + 1) mod 2] : {ROW}
  }}
  kernel.mbarrier_wait %full[%k mod 2] parity[%k floordiv 2 mod 2]
  %v = loop.load %s[%k mod 2, %t * -1 + 255] : memref<2x256xf32, "shared">
  %n = arith.addf %acc, %v : f32
  kernel.barrier // free
  scf.yield %n : f32
}}
loop.store %sum, %y[%b * 64 + %t] : memref<128xf32>
"""
"""The pipeline with one thread that lets the copy engine fetch the rows."""

VECTORS = """
%s = kernel.shared align 16 : memref<256xf32, "shared">
%p, %q, %r, %u = kernel.vector_load %x[%b, %t * 4] : memref<8x256xf32> -> f32, f32, f32, f32
kernel.vector_store %u, %r, %q, %p to %s[%t * 4] : f32, f32, f32, f32 to memref<256xf32, "shared">
kernel.barrier // filled
%half = loop.test[%t < 32]
scf.if %half {
  %v, %w = kernel.vector_load %s[%t * -2 + 254] : memref<256xf32, "shared"> -> f32, f32
  kernel.vector_store %w, %v to %y[%b * 64 + %t * 2] : f32, f32 to memref<128xf32>
}
"""
"""A row in fours, each turned around, through shared memory, and half of it out again in twos."""


def swizzled_source(width: int) -> str:
    """Eight rows of a box, units exchanged within `width` bytes, stored as they lie in shared memory."""
    columns = width // 4
    box = (
        f'!kernel.tensor_map<8x{columns}xf32, swizzle {width}> to memref<8x{columns}xf32, "shared">'
    )
    return f"""
%s = kernel.shared align 1024 : memref<8x{columns}xf32, "shared">
{INITIALISE}
scf.if %one {{
  kernel.mbarrier_expect_bytes %full[1], {8 * width}
  kernel.bulk_copy %x[1, {260 - columns}] to %s[0, 0] barrier %full[1] : {box}
}}
kernel.mbarrier_wait %full[1] parity[0]
%e = loop.index [(%b * 64 + %t) mod {8 * columns}]
%v = loop.load %s[%e floordiv {columns}, %e mod {columns}] : memref<8x{columns}xf32, "shared">
loop.store %v, %y[%b * 64 + %t] : memref<128xf32>
"""


def in_order(rows: np.ndarray) -> np.ndarray:
    """The sum of rows, one after the other."""
    total = np.zeros(rows.shape[1:], np.float32)
    for row in rows:
        total = total + row
    return total


PROGRAMS = {
    "pipeline": Program(
        PIPELINE,
        lambda x: np.stack([in_order(x[4 * b : 4 * b + 4, ::-1][:, :64]) for b in range(2)]),
    ),
    "zeros": Program(
        ZEROS, lambda x: np.concatenate([x[:2, 130:], np.zeros((2, 2))], axis=1)[:, ::-1][:, :64]
    ),
    "bulk pipeline": Program(
        BULK_PIPELINE,
        lambda x: np.stack([in_order(x[4 * b : 4 * b + 4, ::-1][:, :64]) for b in range(2)]),
        "1x256xf32",
    ),
    "vectors": Program(
        VECTORS,
        lambda x: (x[:2].reshape(2, 64, 4)[:, :, ::-1].reshape(2, 256)[:, ::-1])[:, :64],
    ),
}
