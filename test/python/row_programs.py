"""Kernels over rows in Loop IR, under a schedule of one's own: softmax, a norm, and element-wise ones."""

from collections.abc import Callable, Mapping

import numpy as np
from ir_programs import parse
from xdsl.dialects.builtin import ModuleOp

from deplo.analysis.verify import verify_module
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context

ROWS = 5

SOFTMAX = """
  loop.for %i = 0 to {rows} {{
    %m = loop.for %j = 0 to {n} reduce(max) -> f32 {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      loop.yield %v : f32
    }}
    %s = loop.for %j = 0 to {n} reduce(add) -> f32 {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      loop.yield %e : f32
    }}
    loop.for %j = 0 to {n} {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      %d = arith.subf %v, %m : f32
      %e = math.exp %d : f32
      %p = arith.divf %e, %s : f32
      loop.store %p, %y[%i, %j] : memref<{rows}x{n}xf32>
    }}
  }}"""

NORM = """
  loop.for %i = 0 to {rows} {{
    %s, %q = loop.for %j = 0 to {n} reduce(add, max) -> f32, f32 {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      %vv = arith.mulf %v, %v : f32
      loop.yield %vv, %v : f32, f32
    }}
    %f = loop.load %x[%i, 0] : memref<{rows}x{n}xf32>
    %t = arith.addf %s, %q : f32
    %u = arith.addf %t, %f : f32
    loop.for %j = 0 to {n} {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      %g = loop.load %w[%j] : memref<{n}xf32>
      %a = arith.mulf %v, %g : f32
      %b = arith.subf %a, %u : f32
      loop.store %b, %y[%i, %j] : memref<{rows}x{n}xf32>
    }}
  }}"""

POINTWISE = """
  loop.for %i = 0 to {rows} {{
    loop.for %j = 0 to {n} {{
      %v = loop.load %x[%i, %j] : memref<{rows}x{n}xf32>
      %g = loop.load %w[%j] : memref<{n}xf32>
      %a = arith.mulf %v, %g : f32
      loop.store %a, %y[%i, %j] : memref<{rows}x{n}xf32>
    }}
  }}"""


def _softmax(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _norm(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return x * w - ((x * x).sum(1) + x.max(1) + x[:, 0])[:, None]


EXPECTED: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "softmax": (SOFTMAX, _softmax),
    "norm": (NORM, _norm),
    "pointwise": (POINTWISE, lambda x, w: x * w),
}
"""Name -> the kernel's body, and what it computes."""

SCHEDULES: dict[str, dict[str, dict[str, int]]] = {
    "a part of a warp": {
        "cooperative-reduce": {"lanes": 4, "rows": 8, "vector": 2},
        "blockify-launch": {"threads": 32, "vector": 2},
    },
    "a warp": {
        "cooperative-reduce": {"lanes": 32, "rows": 2, "vector": 4},
        "blockify-launch": {"threads": 64, "vector": 4},
    },
    "a block": {
        "cooperative-reduce": {"lanes": 128, "rows": 1, "vector": 1},
        "blockify-launch": {"threads": 128, "vector": 1},
    },
}
"""Name -> the options of passes."""


def source(name: str, n: int, rows: int = ROWS) -> str:
    """A program in Loop IR."""
    body = EXPECTED[name][0].format(rows=rows, n=n)
    return f"""
func.func @main(%x: tensor<{rows}x{n}xf32>, %w: tensor<{n}xf32>) -> tensor<{rows}x{n}xf32> {{
  %y = loop.kernel @k(%x, %w) : (tensor<{rows}x{n}xf32>, tensor<{n}xf32>) -> tensor<{rows}x{n}xf32> {{
  ^bb0(%x: memref<{rows}x{n}xf32>, %w: memref<{n}xf32>, %y: memref<{rows}x{n}xf32>):
{body}
  }}
  func.return %y : tensor<{rows}x{n}xf32>
}}"""


FLAT = """
func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
  %y = loop.kernel @k(%x) : (tensor<{n}xf32>) -> tensor<{n}xf32> {{
  ^bb0(%x: memref<{n}xf32>, %y: memref<{n}xf32>):
    loop.for %i = 0 to {n} {{
      %v = loop.load %x[%i] : memref<{n}xf32>
      %a = arith.mulf %v, %v : f32
      loop.store %a, %y[%i] : memref<{n}xf32>
    }}
  }}
  func.return %y : tensor<{n}xf32>
}}"""
"""Squares of numbers in one row, which may end anywhere."""

COLUMNS = """
func.func @main(%x: tensor<{k}x{n}xf32>) -> tensor<{n}xf32> {{
  %y = loop.kernel @k(%x) : (tensor<{k}x{n}xf32>) -> tensor<{n}xf32> {{
  ^bb0(%x: memref<{k}x{n}xf32>, %y: memref<{n}xf32>):
    loop.for %j = 0 to {n} {{
      %s = loop.for %k = 0 to {k} reduce(add) -> f32 {{
        %v = loop.load %x[%k, %j] : memref<{k}x{n}xf32>
        loop.yield %v : f32
      }}
      loop.store %s, %y[%j] : memref<{n}xf32>
    }}
  }}
  func.return %y : tensor<{n}xf32>
}}"""
"""The sums of columns."""


def lower(
    text: str,
    options: Mapping[str, Mapping[str, int]],
    replaced: Mapping[str, object] | None = None,
) -> ModuleOp:
    """A program in Loop IR, lowered to CUDA under a schedule; `replaced` are passes to run instead."""
    module, context = parse(text), make_context()
    for each in make_pipeline("loop-to-cuda", "sm_90a"):
        make = (replaced or {}).get(each.name, type(each))
        each = make(**(vars(each) | options.get(each.name, {})))  # pyright: ignore
        each.apply(context, module)
    verify_module(module)
    return module


def inputs(n: int, rows: int = ROWS) -> list[np.ndarray]:
    """What a program gets, the same each time."""
    rng = np.random.default_rng(n)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((rows, n), (n,))]
