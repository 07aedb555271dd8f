"""Convolutions of all kinds, with what models have around them, no further from the truth than eager."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import deplo

CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


@pytest.mark.sample(30)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("seed", range(40))
def test_convolutions(seed: int, dtype: torch.dtype) -> None:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    rank = rng.choice([1, 2, 2, 2, 3])
    groups = rng.choice([1, 1, 2, 4])
    channels, results = groups * rng.choice([1, 3, 8, 16]), groups * rng.choice([1, 4, 8, 16])
    if rng.random() < 0.2:
        groups = channels = results = rng.choice([16, 33])
    kernel, stride, dilation, padding = (
        [rng.choice(choices) for _ in range(rank)]
        for choices in ([1, 1, 3, 5], [1, 1, 2], [1, 1, 2], [0, 1, 2])
    )
    extents = [rng.choice([9, 14, 16, 21] if rank < 3 else [9, 10]) for _ in range(rank)]
    transposed, normed, active = (rng.random() < part for part in (0.25, 0.4, 0.5))
    before = rng.choice([None, "relu", "rolled", "twice as large"])
    first = (channels, results // groups) if transposed else (results, channels // groups)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(dtype)

    x, weight, shift = (
        drawn(rng.choice([1, 2]), channels, *extents),
        drawn(*first, *kernel),
        drawn(results),
    )
    scale = torch.rand(results, generator=generator).to(dtype) + 0.5
    if rank == 2 and rng.random() < 0.3:
        x = x.contiguous(memory_format=torch.channels_last)
    convolve = (TRANSPOSED if transposed else CONVOLUTIONS)[rank - 1]

    def program(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        if before == "relu":
            x = x.relu()
        elif before == "rolled":
            x = torch.cat([x[:, channels // 2 :], x[:, : channels // 2]], 1)
        elif before == "twice as large" and rank == 2:
            x = F.interpolate(x, scale_factor=2)
        y = convolve(x, weight, shift, stride, padding, dilation=dilation, groups=groups)
        if normed:
            y = F.batch_norm(y, shift * 0, scale, scale, shift)
        return y.relu() if active else y

    inputs = x, weight, scale, shift
    exact = program(*(each.double() for each in inputs))
    result = deplo.compile(program, inputs, target="cpu")(*inputs)
    error = float((result.double() - exact).norm() / exact.norm().clamp_min(1e-9))
    assert error < (2e-6 if dtype == torch.float32 else 2e-2)
