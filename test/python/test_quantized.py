"""Linear layers whose weights are int8 or int4: as plain operators, as tensors of parts, and torchao's."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import deplo
from deplo.errors import FallbackWarning

ROWS, COLUMNS = 24, 128
GROUPS = (32, 64, 128)
X = torch.linspace(-2, 3, 3 * COLUMNS).view(3, COLUMNS)


def dequantized(q: Tensor, scale: Tensor, zero: Tensor | float, dtype: torch.dtype) -> Tensor:
    """Weights of integers in groups: [rows, groups, elements] of `q`, [rows, groups, 1] of the others."""
    return ((q.to(dtype) - zero) * scale.to(dtype)).flatten(1)


class Int8(nn.Module):
    """int8 weights, with a scale for each group."""

    def __init__(self, group: int):
        super().__init__()
        weight = torch.randn(ROWS, COLUMNS // group, group)
        self.register_buffer("scale", weight.abs().amax(2, keepdim=True) / 127)
        self.register_buffer("q", (weight / self.scale).round().to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, dequantized(self.q, self.scale, 0.0, x.dtype))


class Int4(nn.Module):
    """Two weights in a byte, with a scale and a zero for each group."""

    def __init__(self, group: int):
        super().__init__()
        q = torch.randint(0, 16, (ROWS, COLUMNS // group, group), dtype=torch.uint8)
        self.register_buffer("packed", q[..., ::2] | (q[..., 1::2] << 4))
        self.register_buffer("scale", torch.rand(ROWS, COLUMNS // group, 1) / 8)
        self.register_buffer("zero", torch.randint(0, 16, self.scale.shape))

    def forward(self, x: Tensor) -> Tensor:
        q = torch.stack([self.packed & 15, self.packed >> 4], -1).flatten(2)
        return F.linear(x, dequantized(q, self.scale, self.zero.to(x.dtype), x.dtype))


class Scaled(Tensor):
    """A weight that consists of integers and a scale, as torchao's do."""

    @staticmethod
    def __new__(cls, q: Tensor, scale: Tensor) -> Self:
        return Tensor._make_wrapper_subclass(cls, q.shape, dtype=scale.dtype)

    def __init__(self, q: Tensor, scale: Tensor):
        self.q, self.scale = q, scale

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["q", "scale"], None

    @staticmethod
    def __tensor_unflatten__(parts: dict[str, Tensor], *_: Any) -> Scaled:
        return Scaled(parts["q"], parts["scale"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear:
            x, weight, *bias = args
            return F.linear(x, weight.q.to(x.dtype) * weight.scale, *bias)
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        assert func is torch.ops.aten.detach.default
        return Scaled(args[0].q, args[0].scale)


def scaled_layer() -> nn.Sequential:
    layer = nn.Linear(COLUMNS, ROWS)
    q = torch.randint(-127, 128, (ROWS, COLUMNS), dtype=torch.int8)
    layer.weight = nn.Parameter(Scaled(q, torch.rand(ROWS, 1) / 64), requires_grad=False)
    return nn.Sequential(layer, nn.ReLU(), nn.Linear(ROWS, 4)).requires_grad_(False)


@torch.no_grad()
def check(model: nn.Module, x: Tensor) -> None:
    """Both entry points give what eager gives, and call nothing of PyTorch."""
    torch._dynamo.reset()
    expected = model(x)
    close = {"rtol": 1e-5, "atol": 1e-5} if x.dtype == torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for compiled in (
            deplo.compile(model, (x,)),
            torch.compile(model, backend="deplo", fullgraph=True),
        ):
            torch.testing.assert_close(compiled(x), expected, **close)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", [Int8, Int4])
def test_weights_are_dequantized(kind: type[nn.Module], group: int, dtype: torch.dtype) -> None:
    check(kind(group), X.to(dtype))


def test_a_parameter_may_consist_of_plain_tensors() -> None:
    check(scaled_layer(), X)


def test_a_module_with_such_a_parameter_stays_as_it_is() -> None:
    model = scaled_layer()
    weight = model[0].weight
    program = deplo.compile(model, (X,))
    assert model[0].weight is weight
    assert type(model[0]) is nn.Linear
    weight.q.neg_()  # the program has the parts themselves
    torch.testing.assert_close(program(X), model(X))


PROGRAM = '''
import sys
sys.path.insert(0, {tests!r})
import torch
from test_quantized import {name}
example_inputs = (torch.linspace(-2, 3, 384).view(3, 128),)
model = {name}({arguments})
'''


@pytest.mark.parametrize(
    ("name", "arguments"), [("Int8", "32"), ("Int4", "64"), ("scaled_layer", "")]
)
def test_each_pass_for_a_gpu_computes_the_same(name: str, arguments: str, tmp_path: Path) -> None:
    path, tests = tmp_path / "program.py", str(Path(__file__).parent)
    path.write_text(PROGRAM.format(tests=tests, name=name, arguments=arguments))
    command = ["compile", f"{path}:model", "--target", "sm_90a", "--check-each-pass"]
    done = subprocess.run(
        [sys.executable, "-m", "deplo.tools.deplo", *command, "-o", str(tmp_path / "out.cu")],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "stages compute the same" in done.stderr


TORCHAO: dict[str, str] = {
    "int8 rows": "Int8WeightOnlyConfig()",
    **{f"int8 {g}": f"Int8WeightOnlyConfig(granularity=PerGroup({g}))" for g in GROUPS},
    **{
        f"int4 {g}": f"IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup({g}))"
        for g in GROUPS
    },
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", TORCHAO)
def test_layers_that_torchao_quantized(name: str, dtype: torch.dtype) -> None:
    quantization = pytest.importorskip("torchao.quantization")
    names = {**vars(quantization), "torch": torch}
    model = nn.Sequential(nn.Linear(COLUMNS, ROWS), nn.ReLU(), nn.Linear(ROWS, 8)).to(dtype)
    kept = lambda module, _: isinstance(module, nn.Linear) and module.in_features == COLUMNS  # noqa: E731
    quantization.quantize_(model, eval(TORCHAO[name], names), filter_fn=kept)
    assert type(model[0].weight) is not nn.Parameter
    check(model.requires_grad_(False), X.to(dtype))
