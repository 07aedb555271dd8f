"""PyTorch's settings of how precise products of f32 are: what they ask for, what programs then compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kernel_programs import cubin
from torch import Tensor
from xdsl.dialects.builtin import DictionaryAttr, bf16, tf32
from xdsl.ir import Attribute

import deplo
from deplo import interpreter
from deplo.analysis.roundings import roundings
from deplo.dialects import kernel
from deplo.dialects.products import PRODUCTS, Product, rounded_products
from deplo.errors import DeploError
from deplo.interpreter.numpy_types import round_to_tf32
from deplo.machine.host_cpu import host_cpu
from deplo.passes.pipelines import make_pipeline
from deplo.program import Program
from deplo.program_stages import make_context

BACKENDS = torch.backends
MULTIPLIES_BF16 = host_cpu().pairs or host_cpu().mma


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    """Leave PyTorch's settings as they were; convolutions on a GPU may be in tf32, as they may by default."""
    precision = torch.get_float32_matmul_precision()
    with BACKENDS.cudnn.flags(enabled=True, allow_tf32=True):
        yield
    torch.set_float32_matmul_precision(precision)


def asked(program: Program) -> dict[Product, Attribute]:
    return dict(rounded_products(program.stage("torch")))


def two_products(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d((x @ x)[None, :, :, None], w[:, :, None, None])


SQUARES = (torch.ones(16, 16), torch.ones(4, 16))


@pytest.mark.parametrize(
    ("precision", "gpu", "cpu"),
    [
        ("highest", {}, {}),
        ("high", {"matmul": tf32}, {}),
        ("medium", {"matmul": tf32}, {"matmul": bf16}),
    ],
)
def test_what_a_setting_asks_for(
    precision: str, gpu: dict[str, Attribute], cpu: dict[str, Attribute]
) -> None:
    torch.set_float32_matmul_precision(precision)
    with BACKENDS.cudnn.flags(enabled=True, allow_tf32=False):
        assert asked(deplo.compile(two_products, SQUARES, target="sm_90a")) == gpu
    found = asked(deplo.compile(two_products, SQUARES))
    assert found == (cpu if MULTIPLIES_BF16 else {})


def test_convolutions_have_a_setting_of_their_own() -> None:
    torch.set_float32_matmul_precision("highest")
    program = deplo.compile(two_products, SQUARES, target="sm_90a")
    assert asked(program) == {Product.CONVOLUTION: tf32}
    softmax = deplo.compile(lambda x: x.softmax(-1), SQUARES[:1], target="sm_90a")
    assert PRODUCTS not in softmax.stage("torch").attributes


def test_products_of_other_types_are_as_precise_as_ever() -> None:
    torch.set_float32_matmul_precision("medium")
    wide = [each.double() for each in SQUARES]
    assert asked(deplo.compile(two_products, wide, target="sm_90a")) == {}


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


PROGRAMS: dict[str, tuple[Callable[..., Tensor], list[tuple[int, ...]]]] = {
    "mm": (torch.mm, [(33, 40), (40, 70)]),
    "linear": (F.linear, [(7, 64), (32, 64), (32,)]),
    "bmm": (torch.bmm, [(2, 16, 17), (2, 17, 48)]),
    "addmm": (torch.addmm, [(16,), (64, 32), (32, 16)]),
    "a row": (torch.matmul, [(96,), (96, 32)]),
    "nothing to add up": (torch.mm, [(16, 0), (0, 16)]),
    "of computed factors": (lambda x, y: x.relu() @ y.sigmoid(), [(32, 32), (32, 32)]),
    "in a row": (lambda x, y, z: (x @ y).relu() @ z, [(32, 32), (32, 64), (64, 16)]),
    "convolution of points": (F.conv2d, [(1, 32, 6, 5), (16, 32, 1, 1)]),
    "convolution of windows": (F.conv2d, [(1, 32, 6, 8), (16, 32, 3, 3)]),
}


def rounded(program: Callable[..., Any]) -> Callable[..., Any]:
    """The program, whose products are of factors that are rounded to tf32."""

    class Rounding(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            first = 1 if func is torch.addmm else 0
            if func.__name__ in ("linear", "conv2d", "mm", "bmm", "addmm", "matmul"):
                args = [
                    torch.from_numpy(round_to_tf32(each.float().numpy())).double()
                    if first <= i < first + 2
                    else each
                    for i, each in enumerate(args)
                ]
            return func(*args, **(kwargs or {}))

    def run(*inputs: Tensor) -> Tensor:
        with Rounding():
            return program(*inputs)

    return run


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gpu_multiplies_what_is_rounded(name: str) -> None:
    function, shapes = PROGRAMS[name]
    torch.set_float32_matmul_precision("high")
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    program = deplo.compile(function, inputs, target="sm_90a")
    (got,) = interpreter.execute(program.stage("cuda"), [each.numpy() for each in inputs])
    wide = [each.double() for each in inputs]
    expected, exact = rounded(function)(*wide), function(*wide)
    scale = float(exact.abs().max()) if exact.numel() else 1.0
    # An intermediate result may be rounded to the other neighbour than that of its exact value.
    tolerance = 2**-10 if name in ("in a row", "of computed factors") else 2**-20
    np.testing.assert_allclose(got, expected.numpy(), rtol=0, atol=tolerance * scale)
    if scale != 0:
        assert np.abs(got - exact.numpy()).max() > 2**-16 * scale, "nothing was rounded"


@pytest.mark.parametrize(
    "name", ["mm", "linear", "convolution of points", "convolution of windows"]
)
def test_tensor_cores_multiply_tf32(name: str) -> None:
    function, _ = PROGRAMS[name]
    shapes = {
        "mm": [(256, 512), (512, 256)],
        "linear": [(256, 512), (128, 512)],
        "convolution of points": [(1, 256, 32, 32), (128, 256, 1, 1)],
        "convolution of windows": [(1, 64, 16, 16), (64, 64, 3, 3)],
    }[name]
    torch.set_float32_matmul_precision("high")
    inputs = [torch.ones(shape) for shape in shapes]
    module = deplo.compile(function, inputs, target="sm_90a").stage("cuda")
    (op, *_) = [op for op in module.walk() if isinstance(op, kernel.MmaOp)]
    assert op.element == tf32
    assert cubin(module, "sm_90a").code


def test_attention_multiplies_rounded_weights() -> None:
    torch.set_float32_matmul_precision("high")
    q, k, v = (torch.randn(1, 2, 64, 32) for _ in range(3))
    program = deplo.compile(attention, (q, k, v), target="sm_90a")
    (got,) = interpreter.execute(program.stage("cuda"), [each.numpy() for each in (q, k, v)])
    exact = attention(q.double(), k.double(), v.double()).numpy()
    error = np.linalg.norm(got - exact) / np.linalg.norm(exact)
    assert 2**-16 < error < 2**-10


def test_attention_of_halves_on_a_gpu_rounds_its_weights() -> None:
    """As PyTorch's kernels do: tensor cores multiply by values of the same type."""
    q, k, v = (torch.randn(1, 2, 64, 32).half() for _ in range(3))
    program = deplo.compile(attention, (q, k, v), target="sm_90a")
    (got,) = interpreter.execute(program.stage("tensor"), [each.numpy() for each in (q, k, v)])
    scores = (q.double() @ k.double().mT) / 32**0.5
    expected = (scores.softmax(-1).half().double() @ v.double()).half().numpy()
    np.testing.assert_allclose(got, expected, rtol=2**-10, atol=2**-14)


def test_windows_of_few_channels_on_a_gpu_are_computed_in_f32() -> None:
    """They are no matrices for tensor cores, so that rounding would gain nothing."""
    program = deplo.compile(
        F.conv2d, (torch.ones(1, 4, 9, 9), torch.ones(4, 4, 3, 3)), target="sm_90a"
    )
    assert "tf32" not in program.ir("tensor").replace("convolution = tf32", "")


@pytest.mark.skipif(not MULTIPLIES_BF16, reason="the CPU has no `vdpbf16ps`")
def test_torch_compile_follows_the_setting_on_a_cpu() -> None:
    x, w = torch.randn(64, 256), torch.randn(128, 256)
    exact = F.linear(x.double(), w.double())
    compiled = torch.compile(F.linear, backend="deplo", fullgraph=True)
    for precision, low, high in [
        ("highest", 0, 2**-18),
        ("medium", 2**-11, 2**-7),
        ("highest", 0, 2**-18),
    ]:
        torch.set_float32_matmul_precision(precision)
        error = float((compiled(x, w) - exact).norm() / exact.norm())
        assert low <= error < high, precision


def test_infinities_and_nan() -> None:
    torch.set_float32_matmul_precision("high")
    x = torch.ones(32, 48)
    x[3, 5], x[7, 1], x[9, 0] = torch.inf, torch.nan, torch.finfo(x.dtype).max
    w = torch.ones(48, 32)
    program = deplo.compile(torch.mm, (x, w), target="sm_90a")
    (got,) = interpreter.execute(program.stage("cuda"), [x.numpy(), w.numpy()])
    expected = (x @ w).numpy()
    expected[9] = np.inf  # the largest number rounds to infinity, as it does to tf32
    np.testing.assert_array_equal(got, expected)


def test_a_cpu_has_no_tf32() -> None:
    module = deplo.compile(torch.mm, SQUARES[:1] * 2).code.module.clone()
    module.attributes[PRODUCTS] = DictionaryAttr({"matmul": tf32})
    *before, expand_math = make_pipeline("torch-to-llvm", "cpu")
    while expand_math.name != "expand-math":
        expand_math = before.pop()
    for each in before:
        each.apply(make_context(), module)
    with pytest.raises(DeploError, match="tf32 is what tensor cores multiply"):
        expand_math.apply(make_context(), module)


def test_the_judge_allows_what_is_rounded_and_no_more() -> None:
    torch.set_float32_matmul_precision("high")
    x, w = torch.randn(64, 256), torch.randn(256, 64)
    rounds = deplo.compile(torch.mm, (x, w), target="sm_90a").stage("loop")
    assert roundings(rounds) == 256 + 4 * 2**13
    torch.set_float32_matmul_precision("highest")
    assert roundings(deplo.compile(torch.mm, (x, w), target="sm_90a").stage("loop")) == 256
    # A setting that changes nothing of a program allows it nothing.
    image, weight = torch.ones(1, 4, 9, 9), torch.ones(4, 4, 3, 3)
    windows = deplo.compile(F.conv2d, (image, weight), target="sm_90a")
    assert asked(windows)
    assert roundings(windows.stage("loop")) == 36
