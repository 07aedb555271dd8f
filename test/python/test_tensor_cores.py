"""Products of matrices by warps: what PTX says of `mma.sync`, and what programs that use it compute."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ir_programs import parse
from xdsl.dialects.builtin import ModuleOp

from deplo import interpreter
from deplo.analysis.verify import verify_module
from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects import kernel
from deplo.dialects.tile_mma import MmaOp
from deplo.errors import UsageError
from deplo.passes.decisions import recording
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context
from deplo.tools.check_each_pass import PassChecker

LANES = np.arange(32)
GROUP, LANE = LANES // 4, LANES % 4

A_PLACES = [(GROUP + 8 * (i % 4 // 2), LANE * 2 + i % 2 + 8 * (i // 4)) for i in range(8)]
"""Row and column of elements a0 to a7 of each lane (PTX ISA, "Matrix Fragments for mma.m16n8k16")."""

B_PLACES = [(LANE * 2 + i % 2 + 8 * (i // 2), GROUP) for i in range(4)]
"""The same of b0 to b3."""

C_PLACES = [(GROUP + 8 * (i // 2), LANE * 2 + i % 2) for i in range(4)]
"""The same of c0 to c3, and of the results."""


def one_product(element: str) -> str:
    """A kernel of one warp that stores its four results; each lane's elements are its own columns of %x."""
    loads = "\n".join(f"%v{i} = loop.load %x[{i}, %t] : memref<12x32x{element}>" for i in range(12))
    sums = "\n".join(f"%c{i} = loop.load %c[{i}, %t] : memref<4x32xf32>" for i in range(4))
    stores = "\n".join(f"loop.store %d{i}, %y[{i}, %t] : memref<4x32xf32>" for i in range(4))
    rows = ", ".join(f"%v{i}" for i in range(8))
    columns = ", ".join(f"%v{i}" for i in range(8, 12))
    arguments = f"memref<12x32x{element}>, memref<4x32xf32>, memref<4x32xf32>"
    return f"""
kernel.func @k(%x: memref<12x32x{element}>, %c: memref<4x32xf32>, %y: memref<4x32xf32>)
  blocks(1) threads(32) {{
%t = kernel.thread_id
{loads}
{sums}
%d0, %d1, %d2, %d3 = kernel.mma ({rows}) by ({columns}) plus (%c0, %c1, %c2, %c3) : {element}
{stores}
}}
func.func @main(%x: memref<12x32x{element}>, %c: memref<4x32xf32>) -> memref<4x32xf32> {{
  %y = kernel.alloc : memref<4x32xf32>
  kernel.launch @k(%x, %c, %y) blocks(1) threads(32) : {arguments}
  func.return %y : memref<4x32xf32>
}}"""


def lowered(text: str) -> ModuleOp:
    """A kernel in C++ constructs."""
    module = parse(text)
    for each in make_pipeline("kernel-to-cuda", "sm_80"):
        each.apply(make_context(), module)
    return module


@pytest.mark.parametrize("element", ["bf16", "f16"])
def test_the_registers_of_the_instruction_hold_what_ptx_says(element: str) -> None:
    """Matrices whose elements lie as PTX has them in the printed registers give their product."""
    module = lowered(one_product(element))
    (line,) = [x for x in cuda_source(module).splitlines() if "mma.sync" in x]
    assert f"m16n8k16.row.col.f32.{element}.{element}.f32" in line
    pairs = re.findall(r'"r"\(\(unsigned\)v(\d+) \| \(unsigned\)v(\d+) << 16\)', line)
    numbers = [int(n) for pair in pairs for n in pair]
    assert sorted(numbers) == list(range(12))

    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-8, 9, s).astype(np.float32) for s in ((16, 16), (16, 8), (16, 8)))
    x = np.zeros((12, 32), np.float16 if element == "f16" else np.float32)
    for number, place in zip(numbers[:8], A_PLACES, strict=True):
        x[number] = a[place]
    for number, place in zip(numbers[8:], B_PLACES, strict=True):
        x[number] = b[place]
    sums = np.stack([c[place] for place in C_PLACES])
    expected = np.stack([(a @ b + c)[place] for place in C_PLACES])
    for form in (parse(one_product(element)), module):
        (got,) = interpreter.execute(form, [x, sums])
        np.testing.assert_array_equal(got, expected)


WORD_A_PLACES = [(GROUP + 8 * (i % 2), LANE + 4 * (i // 2)) for i in range(4)]
"""Row and column of elements a0 to a3 of each lane (PTX ISA, "Matrix Fragments for mma.m16n8k8", .tf32)."""

WORD_B_PLACES = [(LANE + 4 * i, GROUP) for i in range(2)]
"""The same of b0 and b1."""


def test_the_registers_of_both_instructions_of_tf32_hold_what_ptx_says() -> None:
    """The matrices of 8 positions that the two instructions have, one after the other, give their product."""
    module = lowered(one_product("tf32"))
    lines = [x for x in cuda_source(module).splitlines() if "mma.sync" in x]
    assert len(lines) == 2
    assert all("m16n8k8.row.col.f32.tf32.tf32.f32" in x for x in lines)
    numbers = [[int(n) for n in re.findall(r'"r"\(v(\d+)\)', line)] for line in lines]
    assert sorted([*numbers[0], *numbers[1]]) == list(range(12))

    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-999, 999, s).astype(np.float32) for s in ((16, 16), (16, 8), (16, 8)))
    x = np.zeros((12, 32), np.float32)
    for half, listed in enumerate(numbers):
        for number, (row, column) in zip(listed[:4], WORD_A_PLACES, strict=True):
            x[number] = a[row, column + 8 * half]
        for number, (row, column) in zip(listed[4:], WORD_B_PLACES, strict=True):
            x[number] = b[row + 8 * half, column]
    sums = np.stack([c[place] for place in C_PLACES])
    expected = np.stack([(a @ b + c)[place] for place in C_PLACES])
    for form in (parse(one_product("tf32")), module):
        (got,) = interpreter.execute(form, [x, sums])
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0, 1.0),
        (-0.0, -0.0),
        (1 + 2**-11, 1 + 2**-10),  # ties go away from zero
        (-1 - 2**-11, -1 - 2**-10),
        (1 + 2**-11 - 2**-23, 1.0),
        (2**-149, 0.0),
        (2.0**-136, 2.0**-136),
        ((2 - 2**-23) * 2.0**127, np.inf),
        (-np.inf, -np.inf),
        (np.nan, np.nan),
    ],
)
def test_tf32_rounds_as_the_instruction_does(value: float, rounded: float) -> None:
    text = """
func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %short = tensor_ir.cast %x : tensor<1xf32> to tensor<1xtf32>
  %y = tensor_ir.cast %short : tensor<1xtf32> to tensor<1xf32>
  func.return %y : tensor<1xf32>
}"""
    (got,) = interpreter.execute(parse(text), [np.array([value], np.float32)])
    np.testing.assert_array_equal(got, np.array([rounded], np.float32))
    assert np.signbit(got[0]) == np.signbit(rounded)


def product(m: object, n: int, k: int, element: str, *, transposed: bool) -> str:
    """x @ w + b of short floats, added up in f32; or with the transpose of w. In memory tf32 is f32."""
    if element == "tf32":
        text = product(m, n, k, "bf16", transposed=transposed)
        for name in "pq":
            read = f"= arith.extf %{name} : bf16 to f32"
            rounded = f"= arith.extf %{name}_short : tf32 to f32"
            text = text.replace(read, rounded)
        short = [f"%{name}_short = arith.truncf %{name} : f32 to tf32" for name in "pq"]
        text = text.replace("%f = ", f"{short[0]}\n{short[1]}\n%f = ")
        text = re.sub(r"%e = .*|%u = .*", "", text).replace("bf16", "f32")
        return text.replace("%s, %e", "%s, %c").replace("%u, %out", "%t, %out")
    rows = m if isinstance(m, int) else "?"
    dynamic = "" if isinstance(m, int) else f", #sym.extents<{m}>"
    sizes = "" if isinstance(m, int) else 'attributes {sym.sizes = [#sym.size<"rows", 1, 4096>]}'
    weight, index = (f"{n}x{k}", "%j, %k") if transposed else (f"{k}x{n}", "%k, %j")
    types = [f"{rows}x{k}x{element}{dynamic}", f"{weight}x{element}", f"{n}x{element}"]
    types.append(f"{rows}x{n}x{element}{dynamic}")
    (x, w, b, y), (xm, wm, bm, ym) = (
        [f"{kind}<{type}>" for type in types] for kind in ("tensor", "memref")
    )
    return f"""
func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {sizes} {{
  %y = loop.kernel @linear(%x, %w, %b) : ({x}, {w}, {b}) -> {y} {{
  ^bb0(%x: {xm}, %w: {wm}, %b: {bm}, %out: {ym}):
    loop.for %i = 0 to {m} {{
      loop.for %j = 0 to {n} {{
        %s = loop.for %k = 0 to {k} reduce(add) -> f32 {{
          %p = loop.load %x[%i, %k] : {xm}
          %q = loop.load %w[{index}] : {wm}
          %f = arith.extf %p : {element} to f32
          %g = arith.extf %q : {element} to f32
          %r = arith.mulf %f, %g : f32
          loop.yield %r : f32
        }}
        %c = loop.load %b[%j] : {bm}
        %e = arith.extf %c : {element} to f32
        %t = arith.addf %s, %e : f32
        %u = arith.truncf %t : f32 to {element}
        loop.store %u, %out[%i, %j] : {ym}
      }}
    }}
  }}
  func.return %y : {y}
}}"""


SCHEDULES = {
    "model": "",
    "one warp": "mma=1,BM=16,BN=32,FM=2,FN=8,SK=1",
    "warps": "mma=1,BM=128,BN=16,BK=16,FM=4,FN=4,SK=1",
    "split": "mma=1,BM=32,BN=64,BK=64,FM=2,FN=16,SK=3,transport=cp_async,stages=3",
    "engine": "mma=1,BM=32,BN=64,BK=32,FM=4,FN=16,transport=tma,stages=2",
    "threads": "mma=1,BM=64,BN=32,BK=16,FM=8,FN=8,transport=sync,stages=1",
}

CASES = [(16, 8, 64), (33, 40, 70), (100, 129, 96), (7, 130, 257), (257, 31, 16), (64, 256, 200)]


def checked(text: str, target: str, schedule: str) -> int:
    """Raise if what a product becomes computes something else; gives how many `tile.mma` it had."""
    module = parse(text)
    checker = PassChecker(lambda told: None)
    checker.begin(module)
    found = 0
    for each in make_pipeline("loop-to-cuda", target, schedule):
        each.apply(make_context(), module)
        if each.name == "tensor-cores":
            found = sum(isinstance(op, MmaOp) for op in module.walk())
    verify_module(module)
    checker.after_pass(each, module)
    assert checker.checked == 1
    return found


@pytest.mark.sample(18)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("m", "n", "k"), CASES)
@pytest.mark.parametrize("transposed", [True, False], ids=["x @ w.T", "x @ w"])
def test_a_product_of_any_size(m: int, n: int, k: int, transposed: bool, schedule: str) -> None:
    element = ("bf16", "f16", "tf32")[(m + n + k) % 3]
    target = "sm_80" if schedule == "split" else "sm_90a"
    text = product(m, n, k, element, transposed=transposed)
    found = checked(text, target, SCHEDULES[schedule])
    assert found > 0 or schedule == "model"


@pytest.mark.parametrize("m", [1, 16, 65])
def test_a_product_of_dynamic_rows(m: int) -> None:
    module = parse(product("s0", 40, 48, "bf16", transposed=True))
    for each in make_pipeline("loop-to-cuda", "sm_90a", "mma=1,BM=32,BN=32,BK=32,FM=2,FN=8"):
        each.apply(make_context(), module)
    assert any(isinstance(op, kernel.MmaOp) for op in module.walk())
    rng = np.random.default_rng(m)
    x, w, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, 48), (40, 48), (40,)))
    (got,) = interpreter.execute(module, [x, w, b])
    expected = x @ w.T + b
    np.testing.assert_allclose(got, expected, rtol=2**-8)


@pytest.mark.parametrize("element", ["bf16", "tf32"])
def test_infinities_and_nan_stay_in_their_rows_and_columns(element: str) -> None:
    module = parse(product(16, 16, 40, element, transposed=True))
    for each in make_pipeline("loop-to-cuda", "sm_90a", "mma=1,BM=16,BN=16,BK=32,FM=2,FN=4"):
        each.apply(make_context(), module)
    assert any(isinstance(op, kernel.MmaOp) for op in module.walk())
    x, w = np.ones((16, 40), np.float32), np.ones((16, 40), np.float32)
    x[3, 39], x[5, 0], w[7, 20] = np.inf, np.nan, -np.inf
    (got,) = interpreter.execute(module, [x, w, np.zeros(16, np.float32)])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, x @ w.T)


def test_what_is_no_product_of_halves_uses_no_tensor_cores() -> None:
    text = product(64, 64, 64, "bf16", transposed=True).replace("bf16", "f32")
    text = "\n".join(
        line for line in text.splitlines() if "extf" not in line and "truncf" not in line
    )
    text = (
        text.replace("%f, %g", "%p, %q").replace("%s, %e", "%s, %c").replace("%u, %out", "%t, %out")
    )
    module = parse(text)
    with recording() as decisions:
        for each in make_pipeline("loop-to-tile", "sm_90a", "mma=1"):
            each.apply(make_context(), module)
    (declined,) = [str(d) for d in decisions if d.pass_name == "schedule" and not d.fired]
    assert declined == (
        "schedule: linear: declined: it is no sum of products of bf16, f16 or tf32, "
        "or there are no tensor cores"
    )


def test_a_tile_that_warps_cannot_share_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"^schedule: for mma, threads compute 2 rows and 2 columns at once.* 3 by"
    ):
        make_pipeline("loop-to-tile", "sm_90a", "mma=1,FM=3")
    with pytest.raises(UsageError, match=r"^schedule: mma is 0, 1 or 2, not '3'"):
        make_pipeline("loop-to-tile", "sm_90a", "mma=3")
