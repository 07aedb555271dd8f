"""Matrix products whose operands are copied by threads, asynchronously, or by the copy engine: one result.

The machine lets what is copied arrive as late as the waits allow, and finds who touches it earlier.
"""

import itertools

import numpy as np
import pytest
from kernel_programs import cubin
from test_matmul_schedules import check as check_linear
from test_matmul_schedules import lowered
from test_matmul_schedules import product as linear
from xdsl.dialects.builtin import ModuleOp, f32

from deplo import interpreter
from deplo.dialects import cuda, kernel
from deplo.dialects.schedule import parse_choices
from deplo.dialects.tensor_map import TensorMapType

SIZES = (1, 7, 31, 64, 100, 129)

SCHEDULES = {
    "small": "BM=8,BN=16,BK=8,FM=1,FN=2,SK=1,stages=2",
    "tall": "BM=64,BN=8,BK=16,FM=4,FN=2,SK=1,stages=3",
    "wide": "BM=16,BN=64,BK=32,FM=2,FN=8,stages=5",
    "single": "BM=32,BN=32,BK=8,FM=4,FN=4,stages=1",
}

NUMPY = {"f32": np.float32, "f16": np.float16}


def product(m: int, n: int, k: int, element: str, *, transposed: bool) -> str:
    """x @ w, or with the transpose of w, of numbers of a type, in f32."""
    x, y = f"{m}x{k}x{element}", f"{m}x{n}xf32"
    w, index = (f"{n}x{k}x{element}", "%j, %k") if transposed else (f"{k}x{n}x{element}", "%k, %j")
    wide = [f"%{v} = arith.extf %{v}h : f16 to f32" if element == "f16" else "" for v in ("p", "q")]
    p, q = ("ph", "qh") if element == "f16" else ("p", "q")
    return f"""
func.func @main(%x: tensor<{x}>, %w: tensor<{w}>) -> tensor<{y}> {{
  %y = loop.kernel @linear(%x, %w) : (tensor<{x}>, tensor<{w}>) -> tensor<{y}> {{
  ^bb0(%x: memref<{x}>, %w: memref<{w}>, %out: memref<{y}>):
    loop.for %i = 0 to {m} {{
      loop.for %j = 0 to {n} {{
        %s = loop.for %k = 0 to {k} reduce(add) -> f32 {{
          %{p} = loop.load %x[%i, %k] : memref<{x}>
          %{q} = loop.load %w[{index}] : memref<{w}>
          {wide[0]}
          {wide[1]}
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }}
        loop.store %s, %out[%i, %j] : memref<{y}>
      }}
    }}
  }}
  func.return %y : tensor<{y}>
}}"""


def check(module: ModuleOp, m: int, n: int, k: int, element: str, *, transposed: bool) -> None:
    """Raises if the kernel computes something else than numpy, races, or touches what has not arrived."""
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    x, w = (
        rng.standard_normal(shape).astype(NUMPY[element])
        for shape in ((m, k), (n, k) if transposed else (k, n))
    )
    (got,) = interpreter.execute(module, [x, w])
    exact = x.astype(np.float64) @ (w.T if transposed else w).astype(np.float64)
    assert interpreter.compare(exact.astype(np.float32), got, f32) is None


def copied(module: ModuleOp) -> dict[str, int]:
    """How many operands go by each transport that has instructions of its own."""
    ops = list(module.walk())
    sources = {op.source for op in ops if isinstance(op, kernel.AsyncCopyOp)}
    functions = [op for op in ops if isinstance(op, cuda.FuncOp)]
    maps = [a for f in functions for a in f.body.block.args if isinstance(a.type, TensorMapType)]
    return {"cp_async": len(sources), "tma": len(maps)}


def possible(transport: str, rows: tuple[int, int], item: int) -> dict[str, int]:
    """How many operands should, whose rows in memory have these lengths."""
    sizes = [row * item for row in rows]
    boxes = sum(size % 16 == 0 for size in sizes) if transport == "tma" else 0
    whole = sum(size % 4 == 0 for size in sizes) if transport != "sync" else 0
    return {"cp_async": whole - boxes, "tma": boxes}


ALL = [each for each in itertools.product(SIZES, repeat=3) if np.prod(each) >= 1 << 15]
CASES = [
    (transport, element, transposed, list(SCHEDULES)[i % 4], ALL[(i * 11 + 5) % len(ALL)])
    for i, (transport, element, transposed, _) in enumerate(
        itertools.product(("sync", "cp_async", "tma"), ("f32", "f16"), (True, False), range(4))
    )
] + [
    (transport, element, transposed, schedule, (100, 64, 64))
    for transport in ("cp_async", "tma")
    for element in ("f32", "f16")
    for transposed in (True, False)
    for schedule in SCHEDULES
]


@pytest.mark.sample(30)
@pytest.mark.parametrize(
    ("transport", "element", "transposed", "schedule", "sizes"),
    CASES,
    ids=lambda value: "x".join(map(str, value)) if isinstance(value, tuple) else str(value),
)
def test_every_transport_brings_the_operands(
    transport: str, element: str, transposed: bool, schedule: str, sizes: tuple[int, int, int]
) -> None:
    _, n, k = sizes
    text = product(*sizes, element, transposed=transposed)
    module, staged = lowered(
        text, "sm_90a", parse_choices(f"{SCHEDULES[schedule]},transport={transport}")
    )
    assert staged == 2
    rows = (k, k if transposed else n)
    assert copied(module) == possible(transport, rows, 4 if element == "f32" else 2)
    check(module, *sizes, element, transposed=transposed)


@pytest.mark.parametrize("transport", ["cp_async", "tma"])
def test_a_product_of_dynamic_rows(transport: str) -> None:
    """Rows that end anywhere: what is past the end is zeros, by a condition or by the copy engine."""
    sizes = 'attributes {sym.sizes = [#sym.size<"rows", 1, 4096>]}'
    text = linear("s0", 40, 64, transposed=True, sizes=sizes)
    module, _ = lowered(text, "sm_90a", {"transport": transport})
    assert copied(module)[transport] == 2
    for m in (1, 65):
        check_linear(module, m, 40, 64, transposed=True)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("transport", ["cp_async", "tma"])
def test_a_large_product_spills_nothing(transport: str, architecture: str) -> None:
    """Where there is no copy engine, threads copy."""
    text = product(512, 3584, 3584, "f32", transposed=True)
    module, _ = lowered(text, architecture, {"transport": transport})
    assert copied(module)["tma"] == (2 if transport == "tma" and architecture != "sm_80" else 0)
    spilled = [u.spill_stores + u.spill_loads for u in cubin(module, architecture).usage.values()]
    assert spilled
    assert not any(spilled)
