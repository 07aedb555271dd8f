"""Matrix products of awkward sizes, in both operand orders, under several schedules, race-free."""

import itertools

import numpy as np
import pytest
from ir_programs import parse
from xdsl.dialects import scf
from xdsl.dialects.builtin import f32
from xdsl.passes import get_pass_option_infos

from deplo import interpreter
from deplo.analysis.verify import verify_module
from deplo.dialects import cuda, kernel, loop
from deplo.dialects.loop_access import in_registers
from deplo.dialects.schedule import CHOICES
from deplo.dialects.tile import LaunchOp, StageOp
from deplo.errors import UsageError
from deplo.passes.decisions import recording
from deplo.passes.pipelines import make_pipeline
from deplo.passes.tile.schedule import SchedulePass
from deplo.program_stages import make_context

SIZES = (1, 7, 31, 64, 100, 129)

SCHEDULES = {
    "small": {"block_m": 8, "block_n": 8, "block_k": 8, "thread_m": 1, "thread_n": 1},
    "tall": {"block_m": 32, "block_n": 8, "block_k": 4, "thread_m": 4, "thread_n": 1},
    "wide": {"block_m": 16, "block_n": 64, "block_k": 16, "thread_m": 2, "thread_n": 8},
    "split": {"block_m": 16, "block_n": 16, "thread_m": 2, "thread_n": 2, "split_k": 3},
}


def product(m: object, n: object, k: object, *, transposed: bool, sizes: str = "") -> str:
    """relu(x @ w + b), or with the transpose of w; `sizes` names the dynamic extents."""

    def memory(kind: str, *shape: object) -> str:
        dynamic = [str(e) for e in shape if not isinstance(e, int)]
        extents = "".join(f"{e}x" if isinstance(e, int) else "?x" for e in shape)
        named = f", #sym.extents<{', '.join(dynamic)}>" if dynamic else ""
        return f"{kind}<{extents}f32{named}>"

    weight, index = ((n, k), "%j, %k") if transposed else ((k, n), "%k, %j")
    shapes = ((m, k), weight, (n,), (m, n))
    x, w, b, y = (memory("tensor", *shape) for shape in shapes)
    xm, wm, bm, ym = (memory("memref", *shape) for shape in shapes)
    return f"""
func.func @main(%x: {x}, %w: {w}, %b: {b}) -> {y} {sizes} {{
  %y = loop.kernel @linear(%x, %w, %b) : ({x}, {w}, {b}) -> {y} {{
  ^bb0(%x: {xm}, %w: {wm}, %b: {bm}, %out: {ym}):
    loop.for %i = 0 to {m} {{
      loop.for %j = 0 to {n} {{
        %s = loop.for %k = 0 to {k} reduce(add) -> f32 {{
          %p = loop.load %x[%i, %k] : {xm}
          %q = loop.load %w[{index}] : {wm}
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }}
        %c = loop.load %b[%j] : {bm}
        %t = arith.addf %s, %c : f32
        %z = arith.constant 0.0 : f32
        %u = arith.maximumf %t, %z : f32
        loop.store %u, %out[%i, %j] : {ym}
      }}
    }}
  }}
  func.return %y : {y}
}}"""


def lowered(text: str, target: str, choices: dict[str, int]):
    """A product after each pass to CUDA, with these choices of its schedule."""
    module = parse(text)
    for each in make_pipeline("loop-to-cuda", target):
        if isinstance(each, SchedulePass):
            each = SchedulePass(target=target, **choices)
        each.apply(make_context(), module)
        if each.name == "stage-inputs":
            staged = sum(isinstance(op, StageOp) for op in module.walk())
    verify_module(module)
    return module, staged


def check(module, m: int, n: int, k: int, *, transposed: bool) -> None:
    """Raises if the kernel computes something else than numpy, races, or reads what is not there."""
    rng = np.random.default_rng(m * 10000 + n * 100 + k)
    shapes = ((m, k), (n, k) if transposed else (k, n), (n,))
    x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    (got,) = interpreter.execute(module, [x, w, b])
    exact = x.astype(np.float64) @ (w.T if transposed else w) + b
    assert interpreter.compare(np.maximum(exact, 0).astype(np.float32), got, f32) is None


CASES = [
    (m, n, k)
    for i, (m, n, k) in enumerate(itertools.product(SIZES, repeat=3))
    if m * n * k >= 1 << 15 and i % 5 == 0
]


@pytest.mark.sample(40)
@pytest.mark.parametrize("transposed", [True, False], ids=["x @ w.T", "x @ w"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("m", "n", "k"), CASES)
def test_a_product_of_any_size(m: int, n: int, k: int, schedule: str, transposed: bool) -> None:
    text = product(m, n, k, transposed=transposed)
    module, staged = lowered(text, "sm_90a", SCHEDULES[schedule])
    assert staged == 2
    check(module, m, n, k, transposed=transposed)


@pytest.mark.parametrize("split_k", [1, 2])
@pytest.mark.parametrize(
    ("rows", "columns", "tile"),
    [(16, 1, (1, 1)), (16, 1, (2, 1)), (1, 16, (1, 1)), (1, 16, (1, 2)), (1, 1, (1, 1))],
)
def test_blocks_of_one_row_or_column(rows, columns, tile, split_k) -> None:
    sizes = {"block_m": rows, "block_n": columns, "thread_m": tile[0], "thread_n": tile[1]}
    module, _ = lowered(product(64, 64, 64, transposed=True), "sm_80", sizes | {"split_k": split_k})
    check(module, 64, 64, 64, transposed=True)


@pytest.mark.parametrize("schedule", [{}, {"split_k": 3}], ids=["whole", "split"])
@pytest.mark.parametrize("transposed", [True, False], ids=["x @ w.T", "x @ w"])
def test_a_product_of_dynamic_sizes(transposed: bool, schedule: dict[str, int]) -> None:
    listed = ", ".join(f'#sym.size<"{name}", 1, 4096>' for name in ("rows", "depth"))
    sizes = f"attributes {{sym.sizes = [{listed}]}}"
    text = product("s0", 40, "s1", transposed=transposed, sizes=sizes)
    module, staged = lowered(text, "sm_80", schedule)
    assert staged == 2
    for m, k in ((1, 1), (64, 64), (65, 17), (100, 129)):
        check(module, m, 40, k, transposed=transposed)


def test_the_neighbours_of_a_schedule_compute_the_same() -> None:
    m, n, k = 36, 40, 33
    text = product(m, n, k, transposed=True)
    module = parse(text)
    passes = {each.name: each for each in make_pipeline("loop-to-cuda", "sm_90a")}
    passes["tileify"].apply(make_context(), module)
    space = SchedulePass.schedule_space(make_context(), module)
    own = passes["schedule"]
    own.apply(make_context(), module)
    (launch,) = [op for op in module.walk() if isinstance(op, LaunchOp)]
    chosen = {key: launch.schedule.get(key) or 1 for key in space[0].asked}
    assert len(space) >= 8
    for each in space:
        ((key, value),) = [pair for pair in each.asked.items() if chosen[pair[0]] != pair[1]]
        assert value in (chosen[key] * 2, chosen[key] // 2)
        changed, staged = lowered(text, "sm_90a", each.asked)
        assert staged == 2
        check(changed, m, n, k, transposed=True)


def test_what_a_kernel_cannot_have_is_declined_and_what_it_gets_is_printed() -> None:
    module = parse(product(64, 64, 64, transposed=True))
    with recording() as decisions:
        for each in make_pipeline("loop-to-tile", "sm_90a", "BK=1024,BM=32,BN=32"):
            each.apply(make_context(), module)
    (declined,) = [str(d) for d in decisions if d.pass_name == "schedule" and not d.fired]
    assert declined == (
        "schedule: linear: declined: slabs of 262144 bytes, 266240 when padded, exceed the 232448 "
        "that a block of sm_90a can have"
    )
    (launch,) = [op for op in module.walk() if isinstance(op, LaunchOp)]
    assert launch.schedule.get("block_k") == 16


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("XX=3", "unknown choice 'XX'; there are BM or block_m, .*"),
        ("threads=64", "unknown choice 'threads'; .*"),
        ("BM", "'BM' has no value; write BM=16"),
        ("BM=x", "block_m is a number from 1 on, of 9 digits at most, not 'x'"),
        ("FN=0", "thread_n is a number from 1 on, of 9 digits at most, not '0'"),
        ("lanes=12", "lanes is a power of two, at most 1024, not '12'"),
        ("vector=64", "vector is a power of two, at most 16, not '64'"),
        ("keep=there", "keep is one of registers, shared, nowhere, not 'there'"),
        ("BM=8, block_m=8", "block_m is given twice"),
        ("BM=16,FM=3", "thread_m = 3 does not divide block_m = 16"),
        ("BM=64,BN=64,FM=1,FN=1", "blocks of 64 by 64 .* 4096 threads; a block has at most 1024"),
    ],
)
def test_a_schedule_that_no_kernel_can_have_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=f"^schedule: {message}$"):
        make_pipeline("loop-to-tile", "sm_90a", text)


def test_every_choice_that_people_may_ask_for_is_an_option_of_the_pass() -> None:
    options = {option.name for option in get_pass_option_infos(SchedulePass)}
    assert options - {"target"} == {c.name for c in CHOICES.values() if not c.derived}


def test_nan_past_the_end_of_a_sliced_operand_stays_out() -> None:
    """K ends before the buffer does: what follows there is no zero, so the mask on K stays."""
    text = product(64, 64, 50, transposed=True).replace("memref<64x50xf32>", "memref<64x60xf32>")
    text = text.replace("tensor<64x50xf32>", "tensor<64x60xf32>")
    module, _ = lowered(text, "sm_90a", SCHEDULES["wide"])
    x = np.ones((64, 60), np.float32)
    x[:, 50:] = np.nan
    (got,) = interpreter.execute(module, [x, x.copy(), np.zeros(64, np.float32)])
    np.testing.assert_allclose(got, np.full((64, 64), 50.0, np.float32))


def test_the_kernel_has_no_loads_from_memory_in_its_inner_loop() -> None:
    module, _ = lowered(product(64, 64, 64, transposed=True), "sm_90a", SCHEDULES["wide"])
    (function,) = [op for op in module.ops if isinstance(op, cuda.FuncOp)]
    loops = [op for op in function.walk() if isinstance(op, scf.ForOp)]
    (columns,) = [op for op in loops if any(o.name == "arith.mulf" for o in op.body.block.ops)]
    rows = columns.parent_op()
    assert isinstance(rows, scf.ForOp)
    positions = rows.parent_op()  # of the reduced axis
    assert isinstance(positions, scf.ForOp)
    inner = [op for op in columns.walk() if isinstance(op, loop.LoadOp)]
    assert len(inner) == 3
    assert all(in_registers(load.memref) for load in inner)
    around = [op for op in positions.walk() if isinstance(op, loop.LoadOp) and op not in inner]
    assert len(around) == 2  # of 2 rows and of 8 columns
    assert all(isinstance(load.memref.owner, kernel.SharedOp) for load in around)
