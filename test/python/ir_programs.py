"""Programs written in the IR itself: threads that work together, and indices no front end writes."""

from itertools import pairwise

from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp

from deplo.dialects import get_all_dialects
from deplo.tools.located_parser import LocatedParser


def make_context() -> Context:
    """A context that knows every dialect."""
    ctx = Context()
    for name, factory in {**get_xdsl_dialects(), **get_all_dialects()}.items():
        ctx.register_dialect(name, factory)
    return ctx


def parse(text: str, name: str = "program.mlir") -> ModuleOp:
    """The module in `text`, verified."""
    module = LocatedParser(make_context(), text, name).parse_module()
    module.verify()
    return module


def kernel(source: str, result: str, axes: str, threads: int, body: str) -> str:
    """A program of one kernel over `%in` and `%out` whose launch has `axes`."""
    return f"""
func.func @main(%x: tensor<{source}>) -> tensor<{result}> {{
  %y = loop.kernel @k(%x) : (tensor<{source}>) -> tensor<{result}> {{
  ^bb0(%in: memref<{source}>, %out: memref<{result}>):
    tile.launch ({axes}) schedule(#tile.schedule<threads = {threads}>) {{
      {body}
    }}
  }}
  func.return %y : tensor<{result}>
}}"""


def chain(lengths: list[int]) -> str:
    """A program of kernels that each read, in reverse, what the one before stored."""
    lines: list[str] = []
    for number, (source, result) in enumerate(pairwise(lengths)):
        lines.append(f"""
  %v{number + 1} = loop.kernel @k{number}(%v{number}) : (tensor<{source}xf32>) -> tensor<{result}xf32> {{
  ^bb0(%in: memref<{source}xf32>, %out: memref<{result}xf32>):
    tile.launch (%t = {result} : block) {{
      %e = loop.load %in[{source - 1} - %t] : memref<{source}xf32>
      loop.store %e, %out[%t] : memref<{result}xf32>
    }}
  }}""")
    last = len(lengths) - 1
    return f"""
func.func @main(%v0: tensor<{lengths[0]}xf32>) -> tensor<{lengths[-1]}xf32> {{{"".join(lines)}
  func.return %v{last} : tensor<{lengths[-1]}xf32>
}}"""


TILE_PROGRAMS = {
    # A row in shared memory, read in reverse, with a tail: 100 elements for 64 threads.
    "staged": kernel(
        "3x100xf32",
        "3x64xf32",
        "%r = 3 : block, %t = 64 : thread",
        64,
        """
        %xs = tile.stage %in[%r, 0] : memref<3x100xf32> -> memref<100xf32, "shared">
        %p = loop.load %xs[%t * -1 + 99] : memref<100xf32, "shared">
        loop.store %p, %out[%r, %t] : memref<3x64xf32>""",
    ),
    # A slab that is filled anew in each iteration.
    "restaged": kernel(
        "4x40xf32",
        "40xf32",
        "%t = 40 : thread",
        40,
        """
        %s = loop.for %c = 0 to 4 reduce(add) -> f32 {
          %xs = tile.stage %in[0, 0] : memref<4x40xf32> -> memref<4x40xf32, "shared">
          %p = loop.load %xs[%c, %t * -1 + 39] : memref<4x40xf32, "shared">
          loop.yield %p : f32
        }
        loop.store %s, %out[%t] : memref<40xf32>""",
    ),
    # A part of a matrix in shared memory, read transposed.
    "staged_transposed": kernel(
        "6x9xf32",
        "5x4xf32",
        "%i = 5 : thread, %j = 4 : thread",
        20,
        """
        %xs = tile.stage %in[2, 3] : memref<6x9xf32> -> memref<4x5xf32, "shared">
        %p = loop.load %xs[%j, %i] : memref<4x5xf32, "shared">
        loop.store %p, %out[%i, %j] : memref<5x4xf32>""",
    ),
    # Two warps fold their values.
    "combined": kernel(
        "3x64xf32",
        "3x64xf32",
        "%r = 3 : block, %t = 64 : thread",
        64,
        """
        %p = loop.load %in[%r, %t] : memref<3x64xf32>
        %sum = tile.combine add %p over(%t) : f32
        loop.store %sum, %out[%r, %t] : memref<3x64xf32>""",
    ),
    # Two warps fold their values in each iteration.
    "recombined": kernel(
        "4x64xf32",
        "64xf32",
        "%t = 64 : thread",
        64,
        """
        %s = loop.for %c = 0 to 4 reduce(add) -> f32 {
          %p = loop.load %in[%c, %t] : memref<4x64xf32>
          %m = tile.combine max %p over(%t) : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%t] : memref<64xf32>""",
    ),
    # Lanes fold in groups of eight; the groups are rows.
    "grouped": kernel(
        "4x8xf32",
        "4x8xf32",
        "%r = 4 : thread, %t = 8 : thread",
        32,
        """
        %p = loop.load %in[%r, %t] : memref<4x8xf32>
        %m = tile.combine min %p over(%t) : f32
        loop.store %m, %out[%r, %t] : memref<4x8xf32>""",
    ),
    # Seven threads fold, which warps cannot do, of a type that is not shuffled.
    "seven": kernel(
        "2x7xi8",
        "2x7xi8",
        "%r = 2 : thread, %t = 7 : thread",
        14,
        """
        %p = loop.load %in[%r, %t] : memref<2x7xi8>
        %m = tile.combine add %p over(%t) : i8
        loop.store %m, %out[%r, %t] : memref<2x7xi8>""",
    ),
    # Two block axes share the block's number.
    "two_block_axes": kernel(
        "2x5x3xf32",
        "2x5xf32",
        "%b = 2 : block, %i = 5 : block",
        1,
        """
        %s = loop.for %k = 0 to 3 reduce(mul) -> f32 {
          %v = loop.load %in[%b, %i, %k] : memref<2x5x3xf32>
          loop.yield %v : f32
        }
        loop.store %s, %out[%b, %i] : memref<2x5xf32>""",
    ),
    # 72 blocks, of which every third has a tail.
    "matrix_product": """
func.func @main(%x: tensor<24x37xf32>, %w: tensor<70x37xf32>) -> tensor<24x70xf32> {
  %y = loop.kernel @k(%x, %w) : (tensor<24x37xf32>, tensor<70x37xf32>) -> tensor<24x70xf32> {
  ^bb0(%a: memref<24x37xf32>, %b: memref<70x37xf32>, %out: memref<24x70xf32>):
    tile.launch (%i = 24 : block, %j = 3 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %inside = loop.test[%j * 32 + %t < 70]
      scf.if %inside {
        %s = loop.for %k = 0 to 37 reduce(add) -> f32 {
          %u = loop.load %a[%i, %k] : memref<24x37xf32>
          %v = loop.load %b[%j * 32 + %t, %k] : memref<70x37xf32>
          %p = arith.mulf %u, %v : f32
          loop.yield %p : f32
        }
        loop.store %s, %out[%i, %j * 32 + %t] : memref<24x70xf32>
      }
    }
  }
  func.return %y : tensor<24x70xf32>
}""",
    # What is left of a condition that no loop can be cut by.
    "two_conditions": kernel(
        "12xf32",
        "12xf32",
        "%b = 12 : block",
        1,
        """
        %inside = loop.test[%b * 5 mod 12 >= 2, %b * 5 mod 12 < 9]
        %v = loop.load %in[%b] : memref<12xf32>
        %zero = arith.constant 0.0 : f32
        %kept = arith.select %inside, %v, %zero : f32
        loop.store %kept, %out[%b] : memref<12xf32>""",
    ),
    # An index that a 32-bit integer cannot hold.
    "huge_index": kernel(
        "64xi64",
        "64xi64",
        "%t = 64 : thread",
        64,
        """
        %far = loop.index[%t * 67108864]
        %v = arith.index_cast %far : index to i64
        %w = loop.load %in[%t] : memref<64xi64>
        %s = arith.addi %v, %w : i64
        loop.store %s, %out[%t] : memref<64xi64>""",
    ),
    # Remainders and quotients of numbers below zero.
    "negative_dividend": kernel(
        "7x5xf32",
        "14x12xf32",
        "%i = 14 : block, %j = 12 : block",
        1,
        """
        %r = loop.index[(%i - 10) mod 7]
        %q = loop.index[(%j - 6) floordiv 3]
        %v = loop.load %in[%r, %q + 2] : memref<7x5xf32>
        loop.store %v, %out[%i, %j] : memref<14x12xf32>""",
    ),
    # Buffers of several sizes that live from one launch to the next.
    "chain": chain([64, 50, 40, 33, 20, 10]),
}
"""Name -> text."""


# --------------------------------------------------------------------------- dynamic sizes

ROWS = "tensor<?x?xf32, #sym.extents<s0, s1>>"
ROW = "tensor<?x1xf32, #sym.extents<s0>>"
IDS = "tensor<?xi64, #sym.extents<s0>>"

SOFTMAX = f"""
func.func @main(%x: {ROWS}, %ids: {IDS}) -> {ROWS} {{
  %m = tensor_ir.reduce max(%x) over [1] : {ROWS} -> {ROW}
  %b = tensor_ir.index_map (i, j) -> %m[i, 0] : ({ROW}) -> {ROWS}
  %d = tensor_ir.elementwise sub(%x, %b) : ({ROWS}, {ROWS}) -> {ROWS}
  %e = tensor_ir.elementwise exp(%d) : ({ROWS}) -> {ROWS}
  %s = tensor_ir.reduce add(%e) over [1] : {ROWS} -> {ROW}
  %c = tensor_ir.index_map (i, j) -> %s[i, 0] : ({ROW}) -> {ROWS}
  %r = tensor_ir.elementwise div(%e, %c) : ({ROWS}, {ROWS}) -> {ROWS}
  %g = tensor_ir.gather %r[%ids] along 0 : ({ROWS}, {IDS}) -> {ROWS}
  func.return %g : {ROWS}
}}"""

TOKENS = "#sym.extents<s0, s1>"
MATMUL = f"""
func.func @main(%x: tensor<?x?x48xf32, {TOKENS}>, %w: tensor<36x48xf32>)
    -> (tensor<?x?x36xf32, {TOKENS}>, tensor<?x?x1xf32, {TOKENS}>)
    attributes {{sym.sizes = [#sym.size<"batch", 1, 64, hint = 2>, #sym.size<"seq", 2, 4096, hint = 17>]}} {{
  %e = tensor_ir.elementwise exp(%x) : (tensor<?x?x48xf32, {TOKENS}>) -> tensor<?x?x48xf32, {TOKENS}>
  %s = tensor_ir.reduce add(%e) over [2] : tensor<?x?x48xf32, {TOKENS}> -> tensor<?x?x1xf32, {TOKENS}>
  %a = tensor_ir.index_map (i, j, k, l) -> %e[i, j, l] : (tensor<?x?x48xf32, {TOKENS}>)
    -> tensor<?x?x36x48xf32, {TOKENS}>
  %b = tensor_ir.index_map (i, j, k, l) -> %w[k, l] : (tensor<36x48xf32>) -> tensor<?x?x36x48xf32, {TOKENS}>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<?x?x36x48xf32, {TOKENS}>,
    tensor<?x?x36x48xf32, {TOKENS}>) -> tensor<?x?x36x48xf32, {TOKENS}>
  %m = tensor_ir.reduce add(%p) over [3] : tensor<?x?x36x48xf32, {TOKENS}> -> tensor<?x?x36x1xf32, {TOKENS}>
  %r = tensor_ir.index_map (i, j, k) -> %m[i, j, k, 0] : (tensor<?x?x36x1xf32, {TOKENS}>)
    -> tensor<?x?x36xf32, {TOKENS}>
  func.return %r, %s : tensor<?x?x36xf32, {TOKENS}>, tensor<?x?x1xf32, {TOKENS}>
}}"""

SCORES = "tensor<?x?x?xf32, #sym.extents<s0, s1, s1>>"
QUERY = "tensor<?x?x8xf32, #sym.extents<s0, s1>>"
WIDE = "tensor<?x?x?x8xf32, #sym.extents<s0, s1, s1>>"
ATTENTION = f"""
func.func @main(%q: {QUERY}, %k: {QUERY}) -> {SCORES} {{
  %a = tensor_ir.index_map (b, i, j, d) -> %q[b, i, d] : ({QUERY}) -> {WIDE}
  %c = tensor_ir.index_map (b, i, j, d) -> %k[b, j, d] : ({QUERY}) -> {WIDE}
  %p = tensor_ir.elementwise mul(%a, %c) : ({WIDE}, {WIDE}) -> {WIDE}
  %s = tensor_ir.reduce add(%p) over [3] : {WIDE} -> tensor<?x?x?x1xf32, #sym.extents<s0, s1, s1>>
  %r = tensor_ir.index_map (b, i, j) -> %s[b, i, j, 0]
    : (tensor<?x?x?x1xf32, #sym.extents<s0, s1, s1>>) -> {SCORES}
  %z = tensor_ir.index_map (b, i, j) -> %r[b, i, j] if j <= i else -1.0 : ({SCORES}) -> {SCORES}
  %e = tensor_ir.elementwise exp(%z) : ({SCORES}) -> {SCORES}
  %n = tensor_ir.reduce add(%e) over [2] : {SCORES} -> tensor<?x?x1xf32, #sym.extents<s0, s1>>
  %t = tensor_ir.index_map (b, i, j) -> %n[b, i, 0] : (tensor<?x?x1xf32, #sym.extents<s0, s1>>) -> {SCORES}
  %y = tensor_ir.elementwise div(%e, %t) : ({SCORES}, {SCORES}) -> {SCORES}
  func.return %y : {SCORES}
}}"""

WINDOWS = """
func.func @main(%x: tensor<?x8xf32, #sym.extents<s0>>)
    -> (tensor<?x2x?xf32, #sym.extents<s0 floordiv 2, s0 * 2 - 1>>, tensor<?xf32, #sym.extents<s0 * 8>>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[k floordiv 2, j + (i mod 4)]
    : (tensor<?x8xf32, #sym.extents<s0>>) -> tensor<?x2x?xf32, #sym.extents<s0 floordiv 2, s0 * 2 - 1>>
  %b = tensor_ir.index_map (i) -> %x[i mod s0, i floordiv s0]
    : (tensor<?x8xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 8>>
  %c = tensor_ir.elementwise neg(%b)
    : (tensor<?xf32, #sym.extents<s0 * 8>>) -> tensor<?xf32, #sym.extents<s0 * 8>>
  func.return %a, %c : tensor<?x2x?xf32, #sym.extents<s0 floordiv 2, s0 * 2 - 1>>,
    tensor<?xf32, #sym.extents<s0 * 8>>
}"""


def _arena_program() -> str:
    """Rows divided by the last row's sum, four times over: buffers that live one after the other."""
    lines = [f"%v0 = tensor_ir.elementwise exp(%x) : ({ROWS}) -> {ROWS}"]
    for i in range(4):
        lines += [
            f"%s{i} = tensor_ir.reduce add(%v{i}) over [1] : {ROWS} -> {ROW}",
            f"%b{i} = tensor_ir.index_map (i, j) -> %s{i}[s0 - 1, 0] : ({ROW}) -> {ROWS}",
            f"%v{i + 1} = tensor_ir.elementwise div(%v{i}, %b{i}) : ({ROWS}, {ROWS}) -> {ROWS}",
        ]
    body = "\n  ".join(lines)
    return f"func.func @main(%x: {ROWS}) -> {ROWS} {{\n  {body}\n  func.return %v4 : {ROWS}\n}}"


DYNAMIC_PROGRAMS = {
    "dynamic_softmax": SOFTMAX,
    "dynamic_product": MATMUL,
    "dynamic_attention": ATTENTION,
    "dynamic_windows": WINDOWS,
    "dynamic_arena": _arena_program(),
}
"""Tensor IR over sizes that only a call says."""
