"""Rows and lines that are no whole vectors, on the CPU, against PyTorch: masked, clipped, or strided by 2."""

import random
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import deplo

ROW_CASES = 40
CONVOLUTION_CASES = 40

Program = Callable[..., torch.Tensor]

ROWS: dict[str, Program] = {
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
    "gelu": lambda x: F.gelu(x) * 2,
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "logsumexp": lambda x: x.logsumexp(-1),
    "maximum": lambda x: x.exp().amax(-1),
    "sine": lambda x: (x * 3).sin() + x,
    "causal": lambda x: x.masked_fill(torch.ones(x.shape[-2:]).triu(1).bool(), -1e9).softmax(-1),
}


def _agree(program: Program, inputs: tuple[torch.Tensor, ...], tolerance: float) -> None:
    expected = program(*inputs)
    (result,) = torch.utils._pytree.tree_leaves(
        deplo.compile(program, inputs, target="cpu")(*inputs)
    )
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.sample(20)
@pytest.mark.parametrize("seed", range(ROW_CASES))
def test_rows_of_any_length_give_what_pytorch_gives(seed: int) -> None:
    torch.manual_seed(seed)
    make = random.Random(seed)
    name = list(ROWS)[seed % len(ROWS)]
    rows = make.choice((1, 3, 4, 5, 37, 197))
    length = make.choice((1, 5, 15, 16, 17, 23, 31, 33, 50, 63, 77, 127, 130, 197, 300))
    dtype = make.choice((torch.float32, torch.float32, torch.float64, torch.bfloat16))
    x = torch.randn(make.choice((1, 2, 12)), rows, length, dtype=dtype)
    if make.random() < 0.4:
        numbers = torch.tensor([float("nan"), -0.0, 1e-42, 30.0, -float("inf")], dtype=dtype)
        x = torch.where(torch.rand(x.shape) < 0.02, numbers[torch.randint(0, 5, x.shape)], x)
    _agree(ROWS[name], (x,), 2e-2 if dtype is torch.bfloat16 else 2e-5)


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(CONVOLUTION_CASES))
def test_strided_convolutions_give_what_pytorch_gives(seed: int) -> None:
    torch.manual_seed(seed)
    make = random.Random(seed)
    size = make.choice((1, 2, 3, 5, 7))
    width = make.choice((7, 14, 16, 28, 31, 32, 33, 47, 64, 97)) * 2
    height, channels, results = (
        make.choice((7, 8, 12)),
        make.choice((1, 3, 32)),
        make.choice((8, 40)),
    )
    stride = (make.choice((1, 2)), make.choice((2, 2, 2, 3)))
    padding, dilation = make.randint(0, size), make.choice((1, 1, 2))
    height = max(height, dilation * (size - 1) + 1)
    x = torch.randn(make.choice((1, 2)), channels, height, width)
    weight, bias = torch.randn(results, channels, size, size), torch.randn(results)
    if make.random() < 0.3:
        x = x.flip(-1) if make.random() < 0.5 else x[..., 1:]

    def convolution(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, b, stride, padding, dilation)

    _agree(convolution, (x, weight, bias), 2e-4)


def test_a_strided_convolution_reads_nothing_past_its_input() -> None:
    """The last element is the last one of a page, and the next page may not be read."""
    code = """
import ctypes, mmap, torch, deplo
page, width = mmap.PAGESIZE, 65  # 32 results: two vectors
size = 3 * 21 * width * 4
pages = -(-size // page) + 1
memory = mmap.mmap(-1, pages * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + (pages - 1) * page), page, 0) == 0
x = torch.frombuffer(memory, dtype=torch.float32, count=size // 4, offset=(pages - 1) * page - size)
x = x.view(1, 3, 21, width).normal_()
for padding in (0, 1, 3):
    layer = torch.nn.Conv2d(3, 64, 3, stride=2, padding=padding).eval()
    with torch.no_grad():
        result = deplo.compile(layer, (x,), target="cpu")(x)
        torch.testing.assert_close(result, layer(x), rtol=1e-4, atol=1e-4)
print("read nothing else", flush=True)
import os
os._exit(0)  # the mapping is not to be closed under the array
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "read nothing else" in done.stdout, done.stderr
