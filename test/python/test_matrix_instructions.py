"""Rows of `machine/matrix_instructions.py`: what a row says is what is computed and what is printed."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from ir_programs import make_context, parse
from kernel_programs import cubin

from deplo import interpreter
from deplo.analysis.architecture import require_architecture
from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects.fragments import parse_layout
from deplo.errors import DeploError
from deplo.interpreter.tensor_cores import evaluate_nest
from deplo.machine.matrix_instructions import MMA, WGMMA, MatrixInstruction
from deplo.passes.pipelines import make_pipeline

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
TYPES = {"f64": np.float64, "i8": np.int8, "f16": np.float16, "bf16": np.float32}
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
    for each in make_pipeline("kernel-to-cuda", "sm_80"):
        each.apply(make_context(), module)
    return module


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
    require_architecture(module, "sm_80")
    with pytest.raises(DeploError, match=r"'kernel.mma' .* needs sm_80 or later"):
        require_architecture(module, "sm_75")
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
