"""The CPU runtime: results, checks of its arguments, threads, and errors from inside kernels."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cpu_programs import cpu_plan, cpu_program, elementwise, lower

from deplo.codegen.llvm_sources import llvm_sources
from deplo.errors import DeploError, UsageError
from deplo.machine.host_cpu import host_cpu
from deplo.runtime import cpu, cpu_kernels, jit, threads
from deplo.runtime.cpu import CpuProgram

HERE = Path(__file__).parent

GATHER = """
func.func @main(%x: tensor<5x4xf32>, %ids: tensor<3xi64>) -> tensor<3xf32> {
  %y = loop.kernel @k_gather(%x, %ids) : (tensor<5x4xf32>, tensor<3xi64>) -> tensor<3xf32> {
  ^bb0(%x: memref<5x4xf32>, %ids: memref<3xi64>, %out: memref<3xf32>):
    tile.launch (%i = 3 : block) {
      %id = loop.load %ids[%i] : memref<3xi64>
      %row = loop.checked_index %id below 5 : i64
      %sum = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %v = loop.load %x[%row, %k] : memref<5x4xf32>
        loop.yield %v : f32
      }
      loop.store %sum, %out[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}
"""

CHAIN = """
func.func @main(%x: tensor<512xf32>) -> (tensor<512xf32>, tensor<512xf32>) {
  %a = loop.kernel @k_double(%x) : (tensor<512xf32>) -> tensor<512xf32> {
  ^bb0(%x: memref<512xf32>, %out: memref<512xf32>):
    tile.launch (%i = 512 : block) {
      %v = loop.load %x[%i] : memref<512xf32>
      %w = arith.addf %v, %v : f32
      loop.store %w, %out[%i] : memref<512xf32>
    }
  }
  %b = loop.kernel @k_again(%a) : (tensor<512xf32>) -> tensor<512xf32> {
  ^bb0(%x: memref<512xf32>, %out: memref<512xf32>):
    tile.launch (%i = 512 : block) {
      %v = loop.load %x[%i] : memref<512xf32>
      %w = arith.addf %v, %v : f32
      loop.store %w, %out[%i] : memref<512xf32>
    }
  }
  func.return %b, %x : tensor<512xf32>, tensor<512xf32>
}
"""


def test_loops_have_vectors_of_the_full_length(monkeypatch) -> None:
    monkeypatch.delenv("DEPLO_CPU_MODEL", raising=False)
    (kernel,) = elementwise("%r = arith.addf %x, %x : f32", {"x": "f32"}, "f32", 4).plan.kernels
    assert ("zmm" in jit.assembly(kernel.source)) == (host_cpu().vector_bytes == 64)


def test_a_kernels_text_is_the_same_each_time_and_leaves_the_module_as_it_was():
    text = """
    llvm.func @k(%x: f32, %y: f32) -> f32 attributes {deplo.kernel} {
      %z = llvm.fadd %x, %y {fastmathFlags = #llvm.fastmath<nnan,ninf,nsz,arcp,contract>} : f32
      llvm.return %z : f32
    }
    """
    module = lower(text, "loops-to-branches")
    before = str(module)
    (source,) = llvm_sources(module).values()
    assert "fadd arcp contract ninf nnan nsz float" in source  # sets have no order
    assert str(module) == before


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(20, dtype=np.float32).reshape(5, 4), np.array([4, 0, 2])


@pytest.fixture(scope="module", params=[0, cpu.TIMED_CALLS], ids=["first", "prepared"])
def gather(request: pytest.FixtureRequest) -> CpuProgram:
    """The program, which was called so often on numpy arrays before."""
    program = cpu_program(GATHER)
    for _ in range(request.param):
        program(*arrays())
    return program


def test_a_gather_sums_the_rows_it_is_told(gather: CpuProgram) -> None:
    x, ids = arrays()
    (y,) = gather(x, ids)
    np.testing.assert_array_equal(y, x.sum(1)[ids])


@pytest.mark.parametrize("index", [5, -1, 2**40])
def test_an_index_out_of_range_raises_index_error(gather: CpuProgram, index: int) -> None:
    x, ids = arrays()
    ids[1] = index
    with pytest.raises(IndexError, match="expected 0 <= index < 5"):
        gather(x, ids)
    ids[1] = 1  # and the program still works
    np.testing.assert_array_equal(gather(x, ids)[0], x.sum(1)[ids])


def test_torch_tensors_give_torch_tensors(gather: CpuProgram) -> None:
    torch = pytest.importorskip("torch")
    x, ids = (torch.from_numpy(a) for a in arrays())
    (y,) = gather(x, ids)
    assert isinstance(y, torch.Tensor)
    assert torch.equal(y, x.sum(1)[ids])
    (y,) = gather(torch.nn.Parameter(x), ids)
    assert not y.requires_grad


def test_strided_and_expanded_inputs_are_copied(gather: CpuProgram) -> None:
    x, ids = arrays()
    (y,) = gather(np.asfortranarray(x), np.repeat(ids, 2)[::2])
    np.testing.assert_array_equal(y, x.sum(1)[ids])
    odd = np.empty(x.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(x.shape)  # between two places
    odd[...] = x
    np.testing.assert_array_equal(gather(odd, ids)[0], x.sum(1)[ids])
    with pytest.raises(UsageError, match="expected dtype float32, got >f4"):
        gather(x.astype(">f4"), ids)
    torch = pytest.importorskip("torch")
    wide = torch.arange(4.0).expand(5, 4)
    assert torch.equal(gather(wide, torch.from_numpy(ids))[0], torch.full((3,), 6.0))


def wrong_arguments() -> list[tuple[tuple[object, ...], str]]:
    x, ids = arrays()
    return [
        ((x,), r"expected 2 arrays \(x, ids\), got 1"),
        ((x[:4], ids), r"argument 'x': expected shape \[5, 4\], got \[4, 4\]"),
        ((x.astype(np.float64), ids), "argument 'x': expected dtype float32, got float64"),
        ((x, ids.astype(np.int32)), "argument 'ids': expected dtype int64, got int32"),
        ((x.tolist(), ids), "argument 'x': expected a numpy array, got list"),
    ]


@pytest.mark.parametrize(("arguments", "message"), wrong_arguments())
def test_wrong_arguments_are_named(
    gather: CpuProgram, arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        gather(*arguments)


def test_a_tensor_on_another_device_is_named(gather: CpuProgram) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(UsageError, match="expected device cpu, got meta"):
        gather(torch.empty(5, 4, device="meta"), torch.zeros(3, dtype=torch.int64))


def test_equal_kernels_are_compiled_once_and_a_returned_argument_is_itself() -> None:
    program = cpu_program(CHAIN)
    assert len(program.plan.kernels) == 1
    assert len(program.plan.steps) == 2
    assert program.plan.arena_bytes == 2048
    x = np.arange(512, dtype=np.float32)
    y, same = program(x)
    np.testing.assert_array_equal(y, 4 * x)
    assert same is x


def test_results_of_two_calls_do_not_share_memory() -> None:
    program = cpu_program(CHAIN)
    first, _ = program(np.ones(512, np.float32))
    second, _ = program(np.zeros(512, np.float32))
    assert first.sum() == 4 * 512
    assert second.sum() == 0


def test_bools_are_bytes_and_bf16_is_bits() -> None:
    x = np.linspace(-1, 1, 256, dtype=np.float32)
    (y,) = elementwise(
        "%z = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %x, %z : f32", {"x": "f32"}, "i1", 1
    )(x)
    assert y.dtype == np.bool_
    np.testing.assert_array_equal(y, x > 0)
    select = "%o = arith.constant 1.5 : bf16\n%r = arith.select %m, %x, %o : bf16"
    bits = np.arange(256, dtype=np.uint16)
    (y,) = elementwise(select, {"m": "i1", "x": "bf16"}, "bf16", 1)(x > 0, bits)
    np.testing.assert_array_equal(y, np.where(x > 0, bits, 0x3FC0))


@pytest.mark.parametrize("kind", ["team", "pool"])
@pytest.mark.parametrize("count", [2, 5])
def test_blocks_are_shared_by_threads_without_loss(
    kind: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pool = ThreadPoolExecutor(count - 1)
    team = threads.sharing().team if kind == "team" else None
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    monkeypatch.setattr(cpu, "sharing", lambda: threads.Sharing(count, 0.0, team))
    program = cpu_program(CHAIN)
    x = np.random.default_rng(0).standard_normal(512).astype(np.float32)
    for _ in range(20):
        np.testing.assert_array_equal(program(x)[0], 4 * x)


@pytest.mark.parametrize(
    ("microseconds", "shared_from"),
    [
        ([20, 3, 150, 8, 8, 8], None),  # cold pages and caches made the first call look long
        ([20, 3, 150, 70, 70, 70], 4),  # it is worth sharing, and not so long that one call says so
        ([20, 3, 150, 8, 70, 70], None),  # the machine had something else to do in the last ones
        ([20, 30], 0),  # whatever is cold, so much is worth sharing
    ],
)
def test_threads_are_asked_for_help_once_it_is_known_to_pay(
    microseconds: list[int], shared_from: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter([t for each in microseconds for t in (0.0, each * 1e-6)])
    monkeypatch.setattr(cpu_kernels, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    monkeypatch.setattr(cpu, "sharing", lambda: threads.Sharing(2, 20e-6, None))
    run, helped = threads.Sharing.run, []

    def counted(*arguments: Any) -> int:
        helped.append(call)
        return run(*arguments)

    monkeypatch.setattr(threads.Sharing, "run", counted)
    program = elementwise("%r = arith.addf %x, %x : f32", {"x": "f32"}, "f32", 50)
    x = np.arange(50 * 256, dtype=np.float32)
    for call in range(7):  # noqa: B007
        (y,) = program(x)
        np.testing.assert_array_equal(y, 2 * x)
    assert helped == ([] if shared_from is None else list(range(shared_from, 7)))
    assert next(readings, None) is None


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_forked_child_has_threads_of_its_own(library: str) -> None:
    """The parent's threads are not in the child; waiting for them would never end."""
    code = f"""
import os, sys; sys.path.insert(0, {str(HERE)!r})
import numpy as np, {library}
from cpu_programs import cpu_program
from deplo.runtime import threads
threads.thread_count = lambda: 2
threads.TEAM_SECONDS = threads.THREAD_SECONDS = threads.POOL_SECONDS = 0.0
program = cpu_program({CHAIN!r})
x = np.ones(512, np.float32)
x = x if {library!r} == "numpy" else torch.from_numpy(x)
program(x); program(x)
child = os.fork()
if child == 0:
    os._exit(7 if (program(x)[0] == 4).all() else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "7\n", done.stderr


def test_a_launch_that_fails_in_any_thread_raises(
    gather: CpuProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    monkeypatch.setattr(cpu, "sharing", lambda: threads.Sharing(2, 0.0, None))
    x, ids = arrays()
    for _ in range(3):
        with pytest.raises(IndexError, match="expected 0 <= index < 5"):
            gather(x, ids + 2)
    np.testing.assert_array_equal(gather(x, ids)[0], x.sum(1)[ids])


def test_one_program_may_be_called_from_several_threads() -> None:
    program = cpu_program(CHAIN)

    def call(value: int) -> bool:
        x = np.full(512, value, np.float32)
        return bool((program(x)[0] == 4 * x).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(200)))


@pytest.fixture
def unknown_count():
    threads._counter.cache_clear()
    yield
    threads._counter.cache_clear()


def test_a_wrong_number_of_threads_is_refused(
    unknown_count: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLO_NUM_THREADS", "none")
    with pytest.raises(
        UsageError, match="DEPLO_NUM_THREADS must be a positive integer, got 'none'"
    ):
        threads.thread_count()


@pytest.mark.parametrize(
    ("own", "theirs", "expected"),
    [("3", "1", 3), (None, "1", 1), (None, "5", 5), (None, "2,3", None), (None, None, None)],
)
def test_the_number_of_threads_without_pytorch(
    own: str | None,
    theirs: str | None,
    expected: int | None,
    unknown_count: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (("DEPLO_NUM_THREADS", own), ("OMP_NUM_THREADS", theirs)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert threads.thread_count() == (expected or os.cpu_count())


def test_a_plan_for_a_gpu_does_not_run_here() -> None:
    plan = cpu_plan(CHAIN)
    with pytest.raises(UsageError, match="a plan for sm_90a does not run on this CPU"):
        CpuProgram(type(plan)(**{**vars(plan), "target": "sm_90a"}))


def test_ir_that_llvm_rejects_is_one_error() -> None:
    plan = cpu_plan(CHAIN)
    broken = type(plan.kernels[0])("k_double", "define void @k_double( {", ())
    with pytest.raises(DeploError, match="LLVM does not accept a kernel"):
        CpuProgram(type(plan)(**{**vars(plan), "kernels": (broken,)}))


def test_the_process_ends_quietly_after_running() -> None:
    """Code that is loaded at exit must not crash the interpreter."""
    code = f"""
import sys; sys.path.insert(0, {str(HERE)!r})
import numpy as np
from cpu_programs import cpu_program
program = cpu_program({CHAIN!r})
print(program(np.ones(512, np.float32))[0].sum())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2048.0\n", "")


@pytest.mark.parametrize(
    ("constant", "element", "expected"),
    [
        ("1.5", "f16", np.float16(1.5)),
        ("0xFC00", "f16", np.float16("-inf")),
        ("3.0e38", "bf16", np.uint16(0x7F62)),
        ("0x7FC00000", "f32", np.float32("nan")),
        ("1.0e-45", "f32", np.float32(1e-45)),
        ("5.0e-324", "f64", np.float64(5e-324)),
        ("-9223372036854775808", "i64", np.int64(-(2**63))),
        ("-128", "i8", np.int8(-128)),
        ("true", "i1", np.bool_(True)),
    ],
)
def test_constants_of_every_type_reach_machine_code(
    constant: str, element: str, expected: np.generic
) -> None:
    typed = constant if element == "i1" else f"{constant} : {element}"
    mask = np.arange(256) % 2 == 0
    body = f"%c = arith.constant {typed}\n%r = arith.select %m, %c, %x : {element}"
    (y,) = elementwise(body, {"m": "i1", "x": element}, element, 1)(
        mask, np.zeros(256, expected.dtype)
    )
    np.testing.assert_array_equal(y, np.where(mask, expected, np.zeros(1, expected.dtype)))
