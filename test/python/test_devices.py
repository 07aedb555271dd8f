"""Programs whose tensors are on a GPU and on the CPU. The GPU is PyTorch's fake one: no kernel runs here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch._dynamo.exc import BackendCompilerFailed
from torch._subclasses.fake_tensor import FakeTensorMode

import deplo
from deplo import torch_backend
from deplo.errors import FallbackWarning, UnsupportedOpError, UsageError
from deplo.frontend.capture import Captured
from deplo.program import Program


@pytest.fixture(autouse=True)
def capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))


@contextmanager
def fake() -> Iterator[FakeTensorMode]:
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        yield mode


def inputs(*kinds: str) -> tuple[torch.Tensor, ...]:
    """`g` is a matrix on the GPU, `h` one on another; `c` is one on the CPU, `s` a number on the CPU."""
    with fake():
        made = {
            "g": torch.empty(4, 8, device="cuda:0"),
            "h": torch.empty(4, 8, device="cuda:1"),
            "c": torch.empty(4, 8),
            "s": torch.empty(()),
        }
    return tuple(made[kind] for kind in kinds)


def without_kernels(program: Program) -> Program:
    """A program whose kernels give anything, on the GPU, of arguments that are all there."""

    def kernels(arguments: Any) -> list[torch.Tensor]:
        assert [value.device.type for value in arguments] == ["cuda"] * len(arguments)
        return [
            torch.empty(program.plan.array(ref).shape, device="cuda:0")
            if ref.kind == "buffer"
            else arguments[ref.index]
            for ref in program.plan.results
        ]

    program.code.run = kernels  # type: ignore[method-assign]
    return program


def run(program: Program, args: tuple[torch.Tensor, ...]) -> Any:
    """What a program gives, as far as where it is goes."""
    with fake():
        return without_kernels(program)(*args)


PROGRAMS: dict[str, tuple[Callable[..., Any], str]] = {
    "a constant": (lambda x: x * 2 + torch.tensor(3.0), "g"),
    "a constant that is moved": (lambda x: x + torch.tensor([1.0] * 8, device=x.device), "g"),
    "a number": (lambda x, s: x * s, "gs"),
    "numbers of the CPU": (lambda x, s: (x * s, s * 2, s, torch.tensor(1.0)), "gs"),
    "a tensor of the CPU": (lambda x: (torch.ones(2, 3), x + 1), "g"),
    "cpu()": (lambda x: (x + 1).cpu(), "g"),
    "to(cpu)": (lambda x: (x + 1, (x + 1).to("cpu", torch.float64)), "g"),
    "views of a copy": (lambda x: (lambda y: (y, y[0], y.t()))((x + 1).cpu()), "g"),
    "an input, copied": (lambda x: x.cpu(), "g"),
    "there and back": (lambda x: x.cpu().sin().to("cuda:0"), "g"),
    "nothing but the CPU's": (lambda s: torch.ones(3, device="cuda:0") * s, "s"),
    "one operator on both": (lambda x, s: (torch.celu(x.sum()), torch.celu(s)), "gs"),
}


def check(function: Callable[..., Any], args: tuple[torch.Tensor, ...], ours: Any) -> None:
    """Results are where eager's are."""
    with fake():
        eager = function(*args)
    eager, ours = (r if isinstance(r, tuple) else (r,) for r in (eager, ours))
    assert [r.device for r in ours] == [r.device for r in eager]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_where_they_are_in_pytorch(name: str) -> None:
    function, kinds = PROGRAMS[name]
    args = inputs(*kinds)
    program = deplo.compile(function, args)
    assert program.target.name == "sm_90a"
    check(function, args, run(program, args))


def _adds_to_a_number(x: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    s.add_(1)
    return x * s, s


@pytest.mark.parametrize("name", [*PROGRAMS, "a number that changes"])
def test_results_of_torch_compile_are_where_they_are_in_pytorch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, kinds = PROGRAMS.get(name, (_adds_to_a_number, "gs"))
    args = inputs(*kinds)
    made = torch_backend.Program
    monkeypatch.setattr(torch_backend, "Program", lambda *given: without_kernels(made(*given)))
    with fake():
        ours = torch.compile(function, backend="deplo", fullgraph=True)(*args)
    check(function, args, ours)


def test_views_of_a_result_that_is_brought_back_share_its_memory() -> None:
    function, kinds = PROGRAMS["views of a copy"]
    args = inputs(*kinds)
    whole, row, turned = run(deplo.compile(function, args), args)
    assert row._base is whole
    assert turned._base is whole


def test_constants_are_brought_to_the_gpu_once() -> None:
    args = inputs("g")
    program = deplo.compile(lambda x: x + torch.tensor(3.0), args)
    with fake():
        (first, second) = (program._on_device(program._arguments(args))[1] for _ in range(2))
    assert first is second
    assert first.device.type == "cuda"


def test_a_number_that_was_on_the_cpu_must_be_there() -> None:
    x, s = inputs("g", "s")
    program = deplo.compile(lambda x, s: x * s, (x, s))
    with fake(), pytest.raises(UsageError, match="argument 's': expected device cpu, got cuda:0"):
        program(x, s.to("cuda:0"))


def test_a_tensor_with_axes_on_the_cpu_is_an_error_that_names_it() -> None:
    with pytest.raises(
        UsageError, match=r"on cuda:0, and has on the CPU input 'y'.*\.to\('cuda:0'\)"
    ):
        deplo.compile(lambda x, y: (x * 2, y + 1), inputs("g", "c"))


def test_a_program_on_the_cpu_cannot_make_tensors_on_a_gpu() -> None:
    with pytest.raises(UsageError, match="computes on cuda:0, and has on the CPU input 'y'"):
        deplo.compile(lambda y: (y + 1, torch.ones(3, device="cuda:0")), inputs("c"))


def test_two_gpus_are_an_error() -> None:
    with pytest.raises(UsageError, match="computes on several GPUs, cuda:0, cuda:1"):
        deplo.compile(lambda x, y: (x * 2, y + 1), inputs("g", "h"))


@pytest.mark.parametrize("function", [torch.ones, torch.rand])
def test_other_devices_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UnsupportedOpError, match="device = meta"):
        deplo.compile(lambda x: (x, function(3, device="meta")), (torch.ones(3),), fallback="eager")


def test_random_numbers_of_the_cpu_are_not_drawn_on_a_gpu() -> None:
    with pytest.raises(
        UnsupportedOpError, match="gives a tensor on the CPU, in a program on cuda:0"
    ):
        deplo.compile(lambda x: x * torch.rand(8).to(x.device), inputs("g"), fallback="eager")


@pytest.mark.parametrize("kinds", ["gc", "gh"])
def test_torch_compile_leaves_a_graph_on_several_devices_to_pytorch(kinds: str) -> None:
    args = inputs(*kinds)

    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, y + 1

    torch_backend._warn.cache_clear()
    with fake(), pytest.warns(FallbackWarning, match="2 operators runs in PyTorch"):
        results = torch.compile(function, backend="deplo")(*args)
    assert [r.device for r in results] == [a.device for a in args]
    torch._dynamo.reset()
    strict = torch.compile(function, backend="deplo", options={"fallback": "error"})
    with fake(), pytest.raises(BackendCompilerFailed, match="SeveralDevices"):
        strict(*args)


def captured_by_torch_compile(
    monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any], *args: Any
) -> Captured:
    """What torch.compile makes of a function of sizes and numbers that may change; it is not run."""
    seen: list[Captured] = []

    def note(captured: Captured, target: Any) -> None:
        seen.append(captured)
        raise UsageError("seen")

    monkeypatch.setattr(torch_backend, "Program", note)
    with fake(), pytest.raises(BackendCompilerFailed, match="seen"):
        torch.compile(function, backend="deplo", dynamic=True)(*args)
    return seen[0]


def test_floats_that_change_are_numbers_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    captured = captured_by_torch_compile(monkeypatch, lambda x, f: x * f, *inputs("g"), 2.5)
    assert captured.device.type == "cuda"
    assert [a.device.type for a in captured.arguments] == ["cuda", "cpu"]
    assert "torch.call" not in str(captured.module)


def test_sizes_that_are_numbers_are_carried_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    s, x = inputs("s", "g")
    captured = captured_by_torch_compile(
        monkeypatch, lambda s, x, n: s * x.sum() + torch.ones(n, device=x.device), s, x, 3
    )
    assert [number.device.type for number in captured.numbers] == ["cuda"]


def test_attention_on_a_gpu_is_traced_in_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """No GPU is here that has PyTorch choose another way: what it may choose from is looked at."""
    (x,) = inputs("g")
    backends = torch.backends.cuda
    seen: list[tuple[bool, ...]] = []

    def note(graph: Any, *args: Any, **kwargs: Any) -> Captured:
        seen.append(tuple(may_choose() for may_choose in ways))
        return capture(graph, *args, **kwargs)

    ways = (
        backends.flash_sdp_enabled,
        backends.mem_efficient_sdp_enabled,
        backends.cudnn_sdp_enabled,
    )
    capture = torch_backend.capture_graph
    monkeypatch.setattr(torch_backend, "capture_graph", note)
    captured_by_torch_compile(monkeypatch, lambda x: x * 2, x)
    assert seen == [(False, False, False)]
    assert backends.flash_sdp_enabled()
