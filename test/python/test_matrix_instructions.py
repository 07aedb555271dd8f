"""Rows of `machine/matrix_instructions.py`: what a row says is what is computed and what is printed."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from string import Template

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import cubin

from deplo import interpreter
from deplo.analysis import factors
from deplo.analysis.architecture import require_architecture
from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects.fragments import parse_layout
from deplo.errors import DeploError
from deplo.interpreter.execute import main_function
from deplo.interpreter.tensor_cores import evaluate_nest
from deplo.machine.matrix_instructions import MMA, WGMMA, MatrixInstruction
from deplo.passes.pipelines import make_pipeline
from deplo.passes.tile.tensor_cores import TensorCoresPass
from deplo.tools.check_each_pass import PassChecker

LANES = np.arange(32)
G, T = LANES // 4, LANES % 4
Place = Callable[[int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Shape:
    """What PTX ISA says of a shape, "Matrix Fragments": where registers a_i, b_i and c_i of each lane are."""

    extents: tuple[int, int, int]
    a: Place
    b: Place
    c: Place


def sums(i: int) -> tuple[np.ndarray, np.ndarray]:
    return G + 8 * (i // 2), T * 2 + i % 2


HALVES = Shape(
    (16, 8, 8), lambda i: (G + 8 * (i // 2), T * 2 + i % 2), lambda i: (T * 2 + i, G), sums
)
SHAPES = {
    ("bf16", "m16n8k8.row.col.f32.bf16.bf16.f32"): HALVES,
    ("f16", "m16n8k8.row.col.f32.f16.f16.f32"): HALVES,
    ("f64", "m8n8k4.row.col.f64.f64.f64.f64"): Shape(
        (8, 8, 4), lambda i: (G, T), lambda i: (T, G), lambda i: (G, T * 2 + i)
    ),
    ("i8", "m16n8k32.row.col.s32.s8.s8.s32"): Shape(
        (16, 8, 32),
        lambda i: (G + 8 * (i // 4 % 2), T * 4 + i % 4 + 16 * (i // 8)),
        lambda i: (T * 4 + i % 4 + 16 * (i // 4), G),
        sums,
    ),
}
"""Type and how the instruction is written -> its shape; test_tensor_cores.py has those that passes choose."""
TYPES = {"f64": np.float64, "i8": np.int8, "f16": np.float16} | dict.fromkeys(
    ("bf16", "tf32"), np.float32
)
SUMS = {"f64": "f64", "i8": "i32", "f16": "f32", "bf16": "f32"}


def program(element: str, counts: tuple[int, int, int]) -> str:
    """A kernel of one warp; each lane's elements are its own column of %x, its sums one of %c."""
    of_rows, of_columns, of_sums = counts
    held, total = of_rows + of_columns, SUMS[element]
    x, c = f"memref<{held}x32x{element}>", f"memref<{of_sums}x32x{total}>"
    loads = [f"%v{i} = loop.load %x[{i}, %t] : {x}" for i in range(held)]
    loads += [f"%c{i} = loop.load %c[{i}, %t] : {c}" for i in range(of_sums)]
    stores = [f"loop.store %d{i}, %y[{i}, %t] : {c}" for i in range(of_sums)]
    names = [", ".join(f"%{n}{i}" for i in range(of_sums)) for n in "cd"]
    rows, columns = (
        ", ".join(f"%v{i}" for i in numbers)
        for numbers in (range(of_rows), range(of_rows, held))
    )
    newline = "\n"
    return f"""
kernel.func @k(%x: {x}, %c: {c}, %y: {c}) blocks(1) threads(32) {{
%t = kernel.thread_id
{newline.join(loads)}
{names[1]} = kernel.mma ({rows}) by ({columns}) plus ({names[0]}) : {element}
{newline.join(stores)}
}}
func.func @main(%x: {x}, %c: {c}) -> {c} {{
  %y = kernel.alloc : {c}
  kernel.launch @k(%x, %c, %y) blocks(1) threads(32) : {x}, {c}, {c}
  func.return %y : {c}
}}"""


def lowered(text: str):
    module = parse(text)
    for each in make_pipeline("kernel-to-cuda", "sm_90a"):
        each.apply(make_context(), module)
    return module


def contraction(row: MatrixInstruction, element: str) -> str:
    """Three blocks of four warps multiply by an instruction: each thread twice its rows and its columns."""
    m, n, k = 8 * row.shape[0], 2 * row.shape[1], row.depth
    total, product = row.sum_type, "arith.muli" if row.sum_type == "i32" else "arith.mulf"
    widen = "arith.extsi" if row.sum_type == "i32" else "arith.extf"
    x, w, y = f"{3 * m}x{4 * k}x{element}", f"{n}x{4 * k}x{element}", f"{3 * m}x{n}x{total}"
    xs, ws = (f'memref<{extent}x{k}x{element}, "shared">' for extent in (m, n))
    wide = [f"%{v}w = {widen} %{v} : {element} to {total}" for v in "ab" if element != total]
    factors, newline = ", ".join(f"%{v}w" if wide else f"%{v}" for v in "ab"), "\n"
    threads = f"thread_m = {2 * row.thread_rows}, thread_n = {2 * row.thread_columns}"
    return f"""
func.func @main(%x: tensor<{x}>, %w: tensor<{w}>) -> tensor<{y}> {{
%y = loop.kernel @k(%x, %w) : (tensor<{x}>, tensor<{w}>) -> tensor<{y}> {{
^bb0(%x: memref<{x}>, %w: memref<{w}>, %y: memref<{y}>):
tile.launch (%g = 3 : block, %i = {m} : thread, %j = {n} : thread)
schedule(#tile.schedule<m = 1, n = 2, {threads}, mma = 1>) {{
%sum = loop.for %chunk = 0 to 4 reduce(add) -> {total} {{
%xs = tile.stage %x[%g * {m}, %chunk * {k}] : memref<{x}> -> {xs}
%ws = tile.stage %w[0, %chunk * {k}] : memref<{w}> -> {ws}
%part = loop.for %k = 0 to {k} reduce(add) -> {total} {{
%a = loop.load %xs[%i, %k] : {xs}
%b = loop.load %ws[%j, %k] : {ws}
{newline.join(wide)}
%p = {product} {factors} : {total}
loop.yield %p : {total}
}} attributes {{chunk}}
loop.yield %part : {total}
}}
loop.store %sum, %y[%g * {m} + %i, %j] : memref<{y}>
}}
}}
func.return %y : tensor<{y}>
}}"""


@pytest.mark.parametrize(("element", "written"), SHAPES)
def test_the_registers_hold_what_ptx_says(element: str, written: str) -> None:
    """Matrices whose elements lie as PTX has them in the printed registers give their product."""
    shape = SHAPES[element, written]
    m, n, k = shape.extents
    counts = (m * k // 32, k * n // 32, m * n // 32)
    text = program(element, counts)
    module = lowered(text)
    (line,) = [each for each in cuda_source(module).splitlines() if "mma.sync" in each]
    assert f"mma.sync.aligned.{written} " in line
    numbers = [int(number) for number in re.findall(r"\bv(\d+)\b", line)]
    assert sorted(numbers) == list(range(sum(counts[:2])))

    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-8, 9, each) for each in ((m, k), (k, n), (m, n)))
    x = np.zeros((len(numbers), 32), TYPES[element])
    for i, number in enumerate(numbers):
        of_rows = i < counts[0]
        x[number] = a[shape.a(i)] if of_rows else b[shape.b(i - counts[0])]
    total = TYPES["f64"] if element == "f64" else np.int32 if element == "i8" else np.float32
    before = np.stack([c[shape.c(i)] for i in range(counts[2])]).astype(total)
    expected = np.stack([(a @ b + c)[shape.c(i)] for i in range(counts[2])]).astype(total)
    for form in (parse(text), module):
        (got,) = interpreter.execute(form, [x, before])
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("element", "written"), SHAPES)
def test_it_is_machine_code(element: str, written: str) -> None:
    m, n, k = SHAPES[element, written].extents
    module = lowered(program(element, (m * k // 32, k * n // 32, m * n // 32)))
    (since,) = {row.since for row in MMA if row.shape == (m, n, k) and element in row.types}
    require_architecture(module, f"sm_{since}")
    with pytest.raises(DeploError, match=rf"'kernel.mma' .* needs sm_{since} or later"):
        require_architecture(module, f"sm_{since - 1}")
    assert cubin(module, "sm_90a").code


@pytest.mark.parametrize("row", [*MMA, WGMMA], ids=lambda row: f"{row.text} {row.types}")
def test_each_element_is_held_once(row: MatrixInstruction) -> None:
    """Rows and sums lie in registers; a warpgroup's columns in shared memory."""
    m, n, k = row.shape
    matrices = [(row.rows, row.held[0], (m, k)), (row.sums, row.held[2], (m, n))]
    if row is not WGMMA:
        matrices.append((row.columns, row.held[1], (k, n)))
    for layout, count, extents in matrices:
        map = parse_layout(layout)
        places = {map.eval([t, e], []) for t in range(row.threads) for e in range(count)}
        assert places == {(i, j) for i in range(extents[0]) for j in range(extents[1])}


@pytest.mark.parametrize("row", MMA, ids=lambda row: f"{row.text} {row.types}")
def test_threads_hold_what_passes_take_them_to_hold(row: MatrixInstruction) -> None:
    """Lanes of a group have the same rows, each has the same positions of rows and of its column."""
    maps = [parse_layout(layout) for layout in (row.rows, row.columns, row.sums)]
    for thread in range(row.threads):
        group, lane = divmod(thread, row.lanes)
        rows, columns, sums = (
            [map.eval([thread, e], []) for e in range(count)]
            for map, count in zip(maps, row.held, strict=True)
        )
        own = {group + number * row.groups for number in range(row.thread_rows)}
        neighbours = {lane * row.thread_columns + number for number in range(row.thread_columns)}
        assert {j for _, j in columns} == {group}
        assert {*rows} == {(i, k) for i in own for k, _ in columns}
        assert {*sums} == {(i, j) for i in own for j in neighbours}


CONTRACTIONS = [(row, element) for row in MMA for element in row.types]


@pytest.mark.parametrize(
    ("row", "element"), CONTRACTIONS, ids=lambda v: v if isinstance(v, str) else v.text
)
def test_a_contraction_becomes_the_instruction(row: MatrixInstruction, element: str) -> None:
    """Chunks of as many positions as it multiplies: no pass knows more of it than its row."""
    text = contraction(row, element)
    module = parse(text)
    TensorCoresPass().apply(make_context(), module)
    forms = [parse(text), parse(str(module))]
    for each in make_pipeline("tile-to-cuda", "sm_90a"):
        each.apply(make_context(), module)
    written = Template(row.text).substitute(type=element)
    # each thread has twice the rows and the columns, and `repeats` instructions follow each other
    assert cuda_source(module).count(written) == 4 * row.repeats
    assert cubin(module, "sm_90a").code
    rng = np.random.default_rng(0)
    types = [argument.type for argument in main_function(forms[0]).args]
    inputs = [rng.integers(-8, 9, type.get_shape()).astype(TYPES[element]) for type in types]
    expected = inputs[0].astype(np.float64) @ inputs[1].astype(np.float64).T
    for form in (*forms, module):
        np.testing.assert_array_equal(interpreter.execute(form, inputs)[0], expected)


def test_a_target_without_an_instruction_multiplies_by_another_one() -> None:
    """Instructions that a target does not have are not considered; without any, threads multiply."""
    row = next(row for row in MMA if "bf16" in row.types)
    module = parse(contraction(row, "bf16"))
    before = str(module)
    TensorCoresPass(target="sm_75").apply(make_context(), module)
    assert str(module) == before


DOUBLES = """
func.func @main(%x: tensor<40x20xf64>, %w: tensor<24x20xf64>) -> tensor<40x24xf64> {
  %y = loop.kernel @k(%x, %w) : (tensor<40x20xf64>, tensor<24x20xf64>) -> tensor<40x24xf64> {
  ^bb0(%x: memref<40x20xf64>, %w: memref<24x20xf64>, %y: memref<40x24xf64>):
    loop.for %i = 0 to 40 {
      loop.for %j = 0 to 24 {
        %s = loop.for %k = 0 to 20 reduce(add) -> f64 {
          %a = loop.load %x[%i, %k] : memref<40x20xf64>
          %b = loop.load %w[%j, %k] : memref<24x20xf64>
          %p = arith.mulf %a, %b : f64
          loop.yield %p : f64
        }
        loop.store %s, %y[%i, %j] : memref<40x24xf64>
      }
    }
  }
  func.return %y : tensor<40x24xf64>
}"""


@pytest.mark.parametrize(
    ("cost", "since", "target", "chosen"),
    [(None, 80, "sm_90a", False), (8, 80, "sm_90a", True), (8, 90, "sm_80", False)],
)
def test_a_model_multiplies_by_rows_with_a_cost_that_the_target_has(
    cost: float | None, since: int, target: str, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others are not chosen where `mma` is asked for; tails are masked, each pass leaves the same results."""
    doubles = {"cost": cost, "since": since}
    rows = [replace(row, **doubles) if "f64" in row.types else row for row in MMA]
    monkeypatch.setattr(factors, "MMA", rows)
    module = parse(DOUBLES)
    checker = PassChecker(lambda told: None)
    checker.begin(module)
    for each in make_pipeline("loop-to-cuda", target, "mma=1"):
        each.apply(make_context(), module)
        checker.after_pass(each, module)
    assert ("mma.sync" in cuda_source(module)) == chosen
    assert checker.checked


@pytest.mark.parametrize(
    ("meaning", "expected"),
    [
        ("sums[i, j] += rows[i, k] * columns[k, j]", lambda a, b: a @ b),
        ("sums[p, q] += rows[p, r] * columns[q, r]", lambda a, b: a @ b.T),
        ("sums[i, j] += rows[k, i] * columns[k, j]", lambda a, b: a.T @ b),
    ],
)
def test_a_nest_means_what_it_says(meaning: str, expected: Callable[..., np.ndarray]) -> None:
    a, b = np.arange(16.0).reshape(4, 4), np.arange(16.0, 32).reshape(4, 4)
    np.testing.assert_array_equal(evaluate_nest(meaning, a, b), expected(a, b))


@pytest.mark.parametrize(
    "meaning",
    [
        "sums[i, j] = rows[i, k] * columns[k, j]",
        "sums[i, j] += rows[i, k] * columns[j, i]",
        "sums[i, i] += rows[i, k] * columns[k, i]",
        "sums[i, j] += rows[i, k] * columns[l, j]",
    ],
)
def test_a_nest_that_is_no_product_is_refused(meaning: str) -> None:
    with pytest.raises(DeploError, match="is no"):
        evaluate_nest(meaning, np.ones((2, 2)), np.ones((2, 2)))
