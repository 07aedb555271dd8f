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


WRONG = {
    # ------------------------------------------------------------------ Torch IR
    "torch: a result of another shape": Wrong(
        "torch",
        torch_ir("%r = torch.relu %y : (tensor<8x4xf32>) -> tensor<4x8xf32>"),
        "tensor<8x4xf32>",
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
        "torch",
        torch_ir("%r = torch.rellu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>"),
        "torch.rellu",
    ),
    "torch: operands that do not broadcast": Wrong(
        "torch",
        torch_ir("%r = torch.add %x, %y : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8xf32>"),
        "broadcast",
    ),
    # ------------------------------------------------------------------ Tensor IR
    "tensor: a transpose that reads outside": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<4x8xf32>) -> tensor<4x8xf32>"
        ),
        "index 0..7 of axis 0, whose extent is 4",
    ),
    "tensor: a shift that reads before the first element": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.index_map (i, j) -> %x[i, j - 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>"
        ),
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
        "tensor",
        torch_ir("%r = tensor_ir.reduce add(%x) over [2] : tensor<4x8xf32> -> tensor<4x8xf32>"),
        "2",
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
    "tensor: more elements than are looked at": Wrong(
        "tensor",
        torch_ir(
            "%r = tensor_ir.index_map (i, j) -> %x[(i * 3) mod 5, j] : (tensor<4x8xf32>) -> tensor<4x8xf32>"
        )
        .replace("-> tensor<4x8xf32>", "-> tensor<300000000x8xf32>")
        .replace("%r : tensor<4x8xf32>", "%r : tensor<300000000x8xf32>"),
        "not proven to be in-bounds",
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
    "loop: more iterations than memory has bytes, one of which reads outside": Wrong(
        "loop",
        nest(
            """loop.for %i = 0 to 1000000000000 {
      %v = loop.load %xs[(%i * 7) mod 5, 0] : memref<4x8xf32> // WRONG
      loop.store %v, %out[%i mod 4] : memref<4xf32>
    }""",
            "4xf32",
        ),
        "index 4..4 of axis 0",
    ),
}
