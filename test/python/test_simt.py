"""The lockstep machine finds what a GPU leaves undefined, and says where; correct kernels pass."""

import re

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp

from deplo.dialects import get_all_dialects
from deplo.interpreter import ProgramError, execute
from deplo.interpreter.simt import MachineFault
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass
from deplo.tools.located_parser import LocatedParser

BLOCKS, THREADS = 2, 64

SHARED = """
%s = kernel.shared : memref<64xf32, "shared">
loop.store %v, %s[%t] : memref<64xf32, "shared">
"""
READ_NEIGHBOUR = """
%w = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
"""
STORE_RESULT = """
loop.store %w, %y[%b * 64 + %t] : memref<128xf32>
"""


def source(body: str) -> str:
    """A program that runs `body` on 2 blocks of 64 threads, `%v` being each thread's own element."""
    return f"""
kernel.func @k(%x: memref<128xf32>, %y: memref<128xf32>) blocks({BLOCKS}) threads({THREADS}) {{
%b = kernel.block_id
%t = kernel.thread_id
%v = loop.load %x[%b * 64 + %t] : memref<128xf32>
{body}
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @k(%x, %y) blocks({BLOCKS}) threads({THREADS}) : memref<128xf32>, memref<128xf32>
  func.return %y : memref<128xf32>
}}"""


def parse(body: str) -> tuple[Context, ModuleOp]:
    ctx = Context()
    for name, factory in {**get_xdsl_dialects(), **get_all_dialects()}.items():
        ctx.register_dialect(name, factory)
    module = LocatedParser(ctx, source(body), "k.mlir").parse_module()
    module.verify()
    return ctx, module


def run(body: str, level: str) -> np.ndarray:
    """The result on 0, 1, ..., 127, executed as kernel IR or as its CUDA form."""
    ctx, module = parse(body)
    if level == "cuda":
        LowerToCudaPass().apply(ctx, module)
    return execute(module, [np.arange(128, dtype=np.float32)])[0]


def line_of(body: str, marked: str) -> int:
    """The last line of the program that contains `marked`."""
    return max(n for n, line in enumerate(source(body).splitlines(), 1) if marked in line)


INSIDE_TEST = """
%few = loop.test[%t < 5]
scf.if %few {{
  {}
}}
"""

FAULTS = {
    "read of another thread's store without a barrier": (
        SHARED + READ_NEIGHBOUR + STORE_RESULT,
        "loop.load %s",
        "races: reads an element of s another thread wrote",
    ),
    "store over what another thread read": (
        SHARED
        + "kernel.barrier"
        + READ_NEIGHBOUR
        + 'loop.store %w, %s[%t] : memref<64xf32, "shared">'
        + STORE_RESULT,
        "loop.store %w, %s",
        "races: writes an element of s another thread read",
    ),
    "store over what several threads read": (
        SHARED
        + "kernel.barrier\n"
        + '%r = loop.load %s[3] : memref<64xf32, "shared">\n'
        + "%one = loop.test[%t >= 63]\n"
        + 'scf.if %one {\nloop.store %v, %s[3] : memref<64xf32, "shared">\n}\n',
        "loop.store %v, %s[3]",
        "races: writes an element of s another thread read",
    ),
    "store over what another thread read earlier and this one too": (
        SHARED
        + "kernel.barrier\n"
        + "%last = loop.test[%t >= 62]\n"
        + "%top = loop.test[%t >= 63]\n"
        + 'scf.if %top {\n%a = loop.load %s[0] : memref<64xf32, "shared">\n}\n'
        + 'scf.if %last {\n%c = loop.load %s[0] : memref<64xf32, "shared">\n}\n'
        + 'scf.if %top {\nloop.store %v, %s[0] : memref<64xf32, "shared">\n}\n',
        "loop.store %v, %s[0]",
        "races: writes an element of s another thread read",
    ),
    "two stores to one element in one instruction": (
        '%s = kernel.shared : memref<64xf32, "shared">\n'
        'loop.store %v, %s[%t floordiv 2] : memref<64xf32, "shared">',
        "loop.store %v, %s",
        "races: two threads write one element of s",
    ),
    "two stores to one element, one after the other": (
        SHARED + 'loop.store %v, %s[%t * -1 + 63] : memref<64xf32, "shared">',
        "loop.store %v, %s[%t * -1",
        "races: writes an element of s another thread wrote",
    ),
    "two blocks write one element of global memory": (
        "loop.store %v, %y[%t] : memref<128xf32>",
        "loop.store %v, %y",
        "races: two threads write one element of y",
    ),
    "global memory that another block writes": (
        "loop.store %v, %y[%b * 64 + %t] : memref<128xf32>\n"
        "kernel.barrier\n"
        "%w = loop.load %y[%b * -64 + %t * -1 + 127] : memref<128xf32>\n",
        "loop.load %y",
        "races: reads an element of y another thread wrote",
    ),
    "barrier for some threads": (
        INSIDE_TEST.format("kernel.barrier"),
        "kernel.barrier",
        "divergent barrier",
    ),
    "shuffle for some lanes": (
        INSIDE_TEST.format("%o = kernel.shuffle %v xor 1 : f32"),
        "kernel.shuffle",
        "divergent shuffle",
    ),
    "mma for some lanes": (
        INSIDE_TEST.format(
            "%h = arith.truncf %v : f32 to bf16\n"
            "%d0, %d1, %d2, %d3 = kernel.mma (%h, %h, %h, %h, %h, %h, %h, %h) by (%h, %h, %h, %h) : bf16"
        ),
        "kernel.mma",
        "divergent mma",
    ),
    "shared memory out of bounds": (
        SHARED + "kernel.barrier\n" + '%w = loop.load %s[%t + 1] : memref<64xf32, "shared">',
        "loop.load %s",
        "is out of bounds: index 64..64 of axis 0, whose extent is 64",
    ),
    "global memory out of bounds": (
        "loop.store %v, %y[%b * 64 + %t - 1] : memref<128xf32>",
        "loop.store %v, %y",
        "is out of bounds: index -1..-1 of axis 0, whose extent is 128",
    ),
    "shared memory that nobody initialised": (
        '%s = kernel.shared : memref<65xf32, "shared">\n'
        'loop.store %v, %s[%t] : memref<65xf32, "shared">\n'
        "kernel.barrier\n"
        '%w = loop.load %s[%t + 1] : memref<65xf32, "shared">',
        "loop.load %s",
        "that nobody has initialised",
    ),
}


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_at_its_operation(fault: str, level: str) -> None:
    body, marked, message = FAULTS[fault]
    if level == "cuda":  # whose arrays are flat
        message = message.split(":")[0] if "out of bounds" in message else message
    with pytest.raises(MachineFault, match=re.escape(message)) as caught:
        run(body, level)
    assert f"k.mlir:{line_of(body, marked)}:" in str(caught.value).replace('"', "")


CORRECT = {
    "a barrier between store and read": (
        SHARED + "kernel.barrier" + READ_NEIGHBOUR + STORE_RESULT,
        lambda x: x.reshape(2, 64)[:, ::-1],
    ),
    "barriers on both sides of a read": (
        SHARED
        + "kernel.barrier"
        + READ_NEIGHBOUR
        + "kernel.barrier\n"
        + 'loop.store %w, %s[%t] : memref<64xf32, "shared">\n'
        + "kernel.barrier\n"
        + '%z = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">\n'
        + "loop.store %z, %y[%b * 64 + %t] : memref<128xf32>",
        lambda x: x,
    ),
    "a thread's own element needs no barrier": (
        SHARED + '%w = loop.load %s[%t] : memref<64xf32, "shared">' + STORE_RESULT,
        lambda x: x,
    ),
    "many threads read one element": (
        SHARED
        + "kernel.barrier\n"
        + '%w = loop.load %s[3] : memref<64xf32, "shared">'
        + STORE_RESULT,
        lambda x: np.repeat(x.reshape(2, 64)[:, 3:4], 64, 1),
    ),
    "a barrier that a whole block takes and another does not": (
        "%first = loop.test[%b < 1]\n"
        "scf.if %first {\nkernel.barrier\n}\n"
        "%w = kernel.shuffle %v xor 1 : f32" + STORE_RESULT,
        lambda x: x.reshape(-1, 2)[:, ::-1],
    ),
    "a shuffle that a whole warp takes": (
        "%warp = loop.test[%t < 32]\n"
        "%w = scf.if %warp -> (f32) {\n%o = kernel.shuffle %v xor 3 : f32\nscf.yield %o : f32\n"
        "} else {\nscf.yield %v : f32\n}" + STORE_RESULT,
        lambda x: np.where(np.arange(128) % 64 < 32, np.arange(128) ^ 3, x),
    ),
    "an index that is only valid under its guard": (
        "%in = loop.test[%t < 63]\n"
        "%w = scf.if %in -> (f32) {\n%o = loop.load %x[%b * 65 + %t] : memref<128xf32>\n"
        "scf.yield %o : f32\n} else {\nscf.yield %v : f32\n}" + STORE_RESULT,
        lambda x: np.concatenate([x[:64], x[65:128], x[127:]]),
    ),
}


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_kernel_runs(name: str, level: str) -> None:
    body, expected = CORRECT[name]
    x = np.arange(128, dtype=np.float32)
    np.testing.assert_array_equal(run(body, level), expected(x).reshape(-1))


@pytest.mark.parametrize("level", ["kernel", "cuda"])
def test_a_failed_check_of_the_program_is_its_message(level: str) -> None:
    body = "%ok = loop.test[%t < 9]\n" + 'kernel.assert %ok, "index out of range: nine"'
    with pytest.raises(ProgramError, match="index out of range: nine"):
        run(body, level)
