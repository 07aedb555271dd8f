"""Programs with tensors on the CPU beside a GPU, against eager: values, and where they are."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import deplo  # noqa: E402
from deplo.errors import FallbackWarning  # noqa: E402

PROGRAMS: dict[str, Callable[..., Any]] = {
    "a constant": lambda x, s: (x * 2 + torch.tensor(3.0),),
    "a constant that is moved": lambda x, s: (x + torch.tensor([1.0] * 8, device=x.device),),
    "indices": lambda x, s: (x[torch.arange(3)], x[torch.tensor([0, 2])]),
    "numbers": lambda x, s: (x * s, s * 2, s, torch.tensor(1.0)),
    "a tensor of the CPU": lambda x, s: (torch.ones(2, 3), x + 1),
    "copies": lambda x, s: ((x + 1).cpu(), x.cpu(), x.to("cpu", torch.float64)),
    "views of a copy": lambda x, s: (lambda y: (y, y[0], y.t()))((x + 1).cpu()),
    "there and back": lambda x, s: (x.cpu().sin().to(x.device),),
}


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix on the GPU and a number on the CPU."""
    return torch.randn(4, 8, device="cuda"), torch.randn(())


def check(ours: Any, eager: Any) -> None:
    assert [y.device for y in ours] == [y.device for y in eager]
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compile(name: str) -> None:
    program = deplo.compile(PROGRAMS[name], inputs())
    for _ in range(3):
        args = inputs()
        check(program(*args), PROGRAMS[name](*args))


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_compile(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(PROGRAMS[name], backend="deplo")
    for _ in range(3):
        args = inputs()
        check(compiled(*args), PROGRAMS[name](*args))


def test_a_number_of_the_cpu_that_a_program_changes() -> None:
    torch._dynamo.reset()

    def step(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        n.add_(1)
        return x * n

    compiled = torch.compile(step, backend="deplo")
    x, n = torch.randn(4, 8, device="cuda"), torch.zeros(())
    for count in range(1, 4):
        torch.testing.assert_close(compiled(x, n), x * count)
        assert n.item() == count


def test_parameters_without_axes_may_be_on_the_cpu() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    module, (x, _) = Scaled(), inputs()
    program = deplo.compile(module, (x,))
    with torch.no_grad():
        for value in (2.0, 3.0):
            module.scale.fill_(value)
            torch.testing.assert_close(program(x), x * value)


def test_a_graph_is_replayed_with_other_numbers_of_the_cpu() -> None:
    program = deplo.compile(lambda x, s: x * s + torch.tensor(1.0), inputs())
    replay = program.graphed(*inputs())
    for _ in range(3):
        x, s = inputs()
        torch.testing.assert_close(replay(x, s), x * s + 1)


def test_torch_compile_leaves_tensors_with_axes_on_both_to_pytorch() -> None:
    torch._dynamo.reset()
    x, y = torch.randn(4, 8, device="cuda"), torch.randn(4, 8)
    with pytest.warns(FallbackWarning, match="several devices"):
        ours = torch.compile(lambda x, y: (x * 2, y + 1), backend="deplo")(x, y)
    check(ours, (x * 2, y + 1))


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_gradient_of_a_number_of_the_cpu_is_there(dynamic: bool) -> None:
    torch._dynamo.reset()

    def program(x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return (x * s.exp()).tanh()

    args = [value.requires_grad_() for value in inputs()]
    compiled = torch.compile(program, backend="deplo", dynamic=dynamic)
    ours, eager = (torch.autograd.grad(f(*args).sum(), args) for f in (compiled, program))
    check(ours, eager)


def test_attention_runs_in_kernels() -> None:
    """Under a mask of 9 columns, which PyTorch's own kernel reads in rows of 16 only; and in f16."""
    torch._dynamo.reset()
    attend = torch.nn.functional.scaled_dot_product_attention
    compiled = torch.compile(attend, backend="deplo", options={"fallback": "error"})
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float16, 2e-3)):
        q, k, v = (torch.randn(2, 4, 9, 8, device="cuda", dtype=dtype) for _ in range(3))
        mask = torch.rand(2, 1, 9, 9, device="cuda") > 0.3
        mask[..., 0] = True
        for given in ((q, k, v), (q, k, v, mask)):
            torch.testing.assert_close(
                compiled(*given), attend(*given), rtol=tolerance, atol=tolerance
            )
