"""Wrong programs as a person writes them, at each level, and the message that refuses each.

A line that ends in `// WRONG` is the one that the message must name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wrong:
    """A program at a level, and a part of the message that refuses it."""

    level: str
    text: str
    message: str


def torch_ir(line: str) -> str:
    """A function whose one operation is wrong."""
    return f"""
func.func @main(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) -> tensor<4x8xf32> {{
  {line} // WRONG
  func.return %r : tensor<4x8xf32>
}}"""


def nest(body: str, out: str = "64xf32") -> str:
    """A kernel of one input, x of 4 times 8 elements, and one output."""
    return f"""
func.func @main(%x: tensor<4x8xf32>) -> tensor<{out}> {{
  %r = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<{out}> {{
  ^bb0(%xs: memref<4x8xf32>, %out: memref<{out}>):
    {body}
  }}
  func.return %r : tensor<{out}>
}}"""


def copy(load: str, store: str, out: str = "4x8xf32", rows: int = 4, columns: int = 8) -> str:
    """Two loops that load an element and store it."""
    return nest(
        f"""loop.for %i = 0 to {rows} {{
      loop.for %j = 0 to {columns} {{
        %v = loop.load {load} : memref<4x8xf32>{" // WRONG" if "%xs" not in load else ""}
        loop.store %v, {store} : memref<{out}>{" // WRONG" if load == "%xs[%i, %j]" else ""}
      }}
    }}""",
        out,
    )


def launch(body: str, out: str = "32xf32") -> str:
    """A launch of 4 blocks of 8 threads."""
    return nest(f"tile.launch (%b = 4 : block, %t = 8 : thread) {{\n{body}\n    }}", out)


def kernel(body: str, *, threads: int = 128, blocks: int = 1) -> str:
    """A kernel of Kernel IR that reads x and stores to y, 128 elements each, and its launch."""
    wrong = " // WRONG" if (threads, blocks) != (128, 1) else ""
    return f"""
kernel.func @k(%x: memref<128xf32>, %y: memref<128xf32>) blocks(1) threads(128) {{
  %t = kernel.thread_id
  %s = kernel.shared : memref<128xf32, "shared">
  {body}
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @k(%x, %y) blocks({blocks}) threads({threads}) : memref<128xf32>, memref<128xf32>{wrong}
  func.return %y : memref<128xf32>
}}"""


FILL = """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %s[%t] : memref<128xf32, "shared">
  """
COPY = """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %y[%t] : memref<128xf32>"""


def cuda(body: str, *, launched: int = 128) -> str:
    """The same in CUDA form."""
    wrong = " // WRONG" if launched != 128 else ""
    return f"""
cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>) blocks(1) threads(128) index(i32) {{
  %t = cuda.thread_idx
  {body}
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @k(%x, %y) blocks(1) threads({launched}) : memref<128xf32>, memref<128xf32>{wrong}
  func.return %y : memref<128xf32>
}}"""


CUDA_LOAD = "%v = cuda.load %x[%t] : !cuda.ptr<f32, const> -> f32\n  "

WRONG = {
    # ------------------------------------------------------------------ Torch IR
    "torch: a result of another shape": Wrong(
        "torch", torch_ir("%r = torch.relu %y : (tensor<8x4xf32>) -> tensor<4x8xf32>"), "tensor<8x4xf32>"
    ),
    "torch: a product of matrices that do not fit": Wrong(
        "torch",
        torch_ir("%r = torch.mm %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "8",
    ),
    "torch: an axis that is not there": Wrong(
        "torch",
        torch_ir("%r = torch.softmax %x {dim = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "2",
    ),
    "torch: a value that is not there": Wrong(
        "torch", torch_ir("%r = torch.relu %z : (tensor<4x8xf32>) -> tensor<4x8xf32>"), "%z"
    ),
    "torch: an operator that is not there": Wrong(
        "torch", torch_ir("%r = torch.rellu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>"), "torch.rellu"
    ),
    "torch: operands that do not broadcast": Wrong(
        "torch",
        torch_ir("%r = torch.add %x, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>"),
        "broadcast",
    ),
    # ------------------------------------------------------------------ Tensor IR
    "tensor: a transpose that reads outside": Wrong(
        "tensor",
        torch_ir("%r = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "index 0..7 of axis 0, whose extent is 4",
    ),
    "tensor: a shift that reads before the first element": Wrong(
        "tensor",
        torch_ir("%r = tensor_ir.index_map (i, j) -> %x[i, j - 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "index -1..6 of axis 1",
    ),
    "tensor: a condition that lets through one element too many": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.index_map (i, j) -> %x[i, j + 1] if j < 8 else 0.0 "
            ": (tensor<4x8xf32>) -> tensor<4x8xf32>"
        ),
        "axis 1, whose extent is 8",
    ),
    "tensor: too few indices": Wrong(
        "tensor",
        torch_ir("%r = tensor_ir.index_map (i, j) -> %x[i] : (tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "1 indices into rank-2",
    ),
    "tensor: a sum over an axis that is not there": Wrong(
        "tensor", torch_ir("%r = tensor_ir.reduce add(%x) over [2] : tensor<4x8xf32> -> tensor<4x8xf32>"), "2"
    ),
    "tensor: operands of several shapes": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.elementwise add(%x, %y) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>"
        ),
        "one shape",
    ),
    "tensor: a gather along an axis that is not there": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.gather %x[%y] along 2 : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>"
        ),
        "integers",
    ),
    # ------------------------------------------------------------------ Loop IR
    "loop: half of the output is stored": Wrong(
        "loop", copy("%xs[%i, %j]", "%out[%i, %j]", columns=4), "16 of 32 elements of output #0"
    ),
    "loop: all is stored to one column": Wrong(
        "loop", copy("%xs[%i, %j]", "%out[%i, 0]"), "not stored exactly once"
    ),
    "loop: each element is stored twice": Wrong(
        "loop", copy("%xs[%i, %j]", "%out[%i floordiv 2, %j]"), "not stored exactly once"
    ),
    "loop: a load beyond the last column": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      loop.for %j = 0 to 8 {
        %v = loop.load %xs[%i, %j + 1] : memref<4x8xf32> // WRONG
        loop.store %v, %out[%i, %j] : memref<4x8xf32>
      }
    }""",
            "4x8xf32",
        ),
        "index 8..8 of axis 1, whose extent is 8",
    ),
    "loop: a load of the transpose": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      loop.for %j = 0 to 8 {
        %v = loop.load %xs[%j, %i] : memref<4x8xf32> // WRONG
        loop.store %v, %out[%i, %j] : memref<4x8xf32>
      }
    }""",
            "4x8xf32",
        ),
        "index 4..7 of axis 0, whose extent is 4",
    ),
    "loop: a store outside": Wrong(
        "loop", copy("%xs[%i, %j]", "%out[%i, %j * 2]"), "of axis 1, whose extent is 8"
    ),
    "loop: a load in a reduction outside": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %v = loop.load %xs[%i, %k] : memref<4x8xf32> // WRONG
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }""",
            "4xf32",
        ),
        "index 8..8 of axis 1",
    ),
    "loop: a store under a condition": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      %in = loop.test [%i >= 1]
      scf.if %in {
        %v = loop.load %xs[%i, 0] : memref<4x8xf32>
        loop.store %v, %out[%i] : memref<4xf32> // WRONG
      }
    }""",
            "4xf32",
        ),
        "1 of 4 elements of output #0",
    ),
    "loop: a loop that ends early": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 4 {
      loop.for %j = 0 to min(4, %i + 1) {
        %v = loop.load %xs[%i, %j] : memref<4x8xf32>
        loop.store %v, %out[%i, %j] : memref<4x4xf32> // WRONG
      }
    }""",
            "4x4xf32",
        ),
        "6 of 16 elements of output #0",
    ),
    "loop: an output that is never stored": Wrong(
        "loop",
        """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %r = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> { // WRONG
  ^bb0(%xs: memref<4x8xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
    }
  }
  func.return %r : tensor<4xf32>
}""",
        "output #0 is never stored",
    ),
    "loop: a load from an output": Wrong(
        "loop",
        """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %r = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> { // WRONG
  ^bb0(%xs: memref<4x8xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %out[%i] : memref<4xf32>
      loop.store %v, %out[%i] : memref<4xf32>
    }
  }
  func.return %r : tensor<4xf32>
}""",
        "loads from an output",
    ),
    # ------------------------------------------------------------------ Tile IR
    "tile: all threads of a block store to one element": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[%b] : memref<4xf32> // WRONG""",
            "4xf32",
        ),
        "not stored exactly once",
    ),
    "tile: two blocks store to one element": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[(%b floordiv 2) * 16 + %t] : memref<32xf32> // WRONG"""
        ),
        "not stored exactly once",
    ),
    "tile: a thread too many": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t + 1] : memref<4x8xf32> // WRONG
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 8..8 of axis 1",
    ),
    "tile: a store beyond the last row": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[%b * 8 + %t + 1] : memref<32xf32> // WRONG"""
        ),
        "index 32..32 of axis 0",
    ),
    "tile: a slab that is read outside": Wrong(
        "tile",
        launch(
            """%s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1x8xf32, "shared">
      %v = loop.load %s[0, %t + 1] : memref<1x8xf32, "shared"> // WRONG
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 8..8 of axis 1",
    ),
    "tile: an array of registers that is read outside": Wrong(
        "tile",
        launch(
            """%s = loop.registers : memref<2xf32, "registers">
      loop.for %e = 0 to 3 {
        %v = loop.load %xs[%b, %t] : memref<4x8xf32>
        loop.store %v, %s[%e] : memref<2xf32, "registers"> // WRONG
      }
      %w = loop.load %s[0] : memref<2xf32, "registers">
      loop.store %w, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 2..2 of axis 0",
    ),
    "tile: a combine over a block axis": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %s = tile.combine add %v over(%b) : f32 // WRONG
      loop.store %s, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "thread axes",
    ),
    "tile: more threads than a block has": Wrong(
        "tile",
        nest(
            """tile.launch (%t = 2048 : thread) {
      %v = loop.load %xs[0, 0] : memref<4x8xf32>
      loop.store %v, %out[%t] : memref<2048xf32>
    }""",
            "2048xf32",
        ).replace("2048xf32> {", "2048xf32> { // WRONG").replace("{ // WRONG\n  %r", "{\n  %r"),
        "2048",
    ),
    # ------------------------------------------------------------------ Kernel IR
    "kernel: a neighbour's element before the barrier": Wrong(
        "kernel",
        kernel(
            FILL
            + """%w = loop.load %s[127 - %t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "races",
    ),
    "kernel: shared memory is read outside": Wrong(
        "kernel",
        kernel(
            FILL
            + """kernel.barrier
  %w = loop.load %s[128 - %t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "index 128..128 of axis 0",
    ),
    "kernel: two threads store to one element": Wrong(
        "kernel",
        kernel(
            """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %y[%t floordiv 2] : memref<128xf32> // WRONG"""
        ),
        "races: two threads write",
    ),
    "kernel: a barrier that some threads do not reach": Wrong(
        "kernel",
        kernel(
            """%in = loop.test [%t < 64]
  scf.if %in {
    kernel.barrier // WRONG
  }
  """
            + COPY
        ),
        "divergent barrier",
    ),
    "kernel: shared memory that nobody has written": Wrong(
        "kernel",
        kernel(
            """%w = loop.load %s[%t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "nobody has initialised",
    ),
    "kernel: a launch with fewer threads": Wrong("kernel", kernel(COPY, threads=64), "threads(128)"),
    "kernel: a launch of another grid": Wrong("kernel", kernel(COPY, blocks=2), "blocks(1)"),
    "kernel: a load beyond the array": Wrong(
        "kernel",
        kernel(
            """%v = loop.load %x[%t + 1] : memref<128xf32> // WRONG
  loop.store %v, %y[%t] : memref<128xf32>"""
        ),
        "index 128..128 of axis 0",
    ),
    # ------------------------------------------------------------------ CUDA IR
    "cuda: a launch with fewer threads": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "cuda.store %v, %y[%t] : f32, !cuda.ptr<f32>", launched=64),
        "threads(128)",
    ),
    "cuda: two threads store to one element": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "cuda.store %v, %y[%t floordiv 2] : f32, !cuda.ptr<f32> // WRONG"),
        "races: two threads write",
    ),
    "cuda: a store beyond the array": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "cuda.store %v, %y[%t + 1] : f32, !cuda.ptr<f32> // WRONG"),
        "out of bounds",
    ),
    "cuda: a store through a pointer to const": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "cuda.store %v, %x[%t] : f32, !cuda.ptr<f32, const> // WRONG"),
        "const",
    ),
}
