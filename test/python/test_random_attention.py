"""Attention of random sizes, with operands that are views, no further from the truth than eager."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import deplo


@dataclass(frozen=True)
class Sizes:
    """Of a batch, heads, queries, keys, and the width of a head."""

    batch: int
    heads: int
    rows: int
    columns: int
    width: int


Operands = Callable[..., tuple[Tensor, ...]]


def split_rows(s: Sizes) -> tuple[list[tuple[int, ...]], Operands]:
    shape = s.batch, s.rows, 3, s.heads, s.width
    whole = s.batch, s.rows, 3 * s.heads * s.width
    return [whole], lambda x: x.reshape(shape).permute(2, 0, 3, 1, 4).unbind(0)


def keys_with_values(s: Sizes) -> tuple[list[tuple[int, ...]], Operands]:
    shapes = [(s.batch, s.rows, s.heads, s.width), (s.batch, s.columns, 2, s.heads, s.width)]
    return shapes, lambda q, kv: (q.transpose(1, 2), *kv.permute(2, 0, 3, 1, 4).unbind(0))


def behind_a_cache(s: Sizes) -> tuple[list[tuple[int, ...]], Operands]:
    q, old, new = ((s.batch, s.heads, n, s.width) for n in (s.rows, s.columns, s.rows))
    return [q, old, new, old, new], lambda q, a, b, c, d: (
        q,
        torch.cat([a, b], 2),
        torch.cat([c, d], 2),
    )


def shared_keys(s: Sizes) -> tuple[list[tuple[int, ...]], Operands]:
    one = s.batch, s.heads, s.columns, s.width
    return [(s.batch, 2 * s.heads, s.rows, s.width), one, one], lambda q, k, v: (
        q,
        k.repeat_interleave(2, 1),
        v.repeat_interleave(2, 1),
    )


def plain(s: Sizes) -> tuple[list[tuple[int, ...]], Operands]:
    one = s.batch, s.heads, s.columns, s.width
    return [(s.batch, s.heads, s.rows, s.width), one, one], lambda *operands: operands


KINDS = (split_rows, keys_with_values, behind_a_cache, shared_keys, plain)


@pytest.mark.sample(16)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("seed", range(20))
def test_attention(seed: int, dtype: torch.dtype) -> None:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    sizes = Sizes(
        rng.choice([1, 2]),
        rng.choice([1, 2, 3]),
        rng.choice([7, 16, 33, 64, 77]),
        rng.choice([17, 64, 130]),
        rng.choice([16, 24, 40, 48, 64, 72, 80]),
    )
    shapes, operands = rng.choice(KINDS)(sizes)
    causal, projected = rng.random() < 0.5, rng.random() < 0.5
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    heads = operands(*inputs)[0].shape[1]
    weight = torch.randn(32, heads * sizes.width, generator=generator).to(dtype) * 0.2

    def program(weight: Tensor, *inputs: Tensor) -> Tensor:
        q, k, v = operands(*inputs)
        result = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        flat = result.transpose(1, 2).reshape(sizes.batch, q.shape[2], -1)
        return F.linear(flat, weight) if projected else flat

    given = (weight, *inputs)
    exact = program(*(each.double() for each in given))
    ours, eager = (
        float((result.double() - exact).norm() / exact.norm())
        for result in (deplo.compile(program, given, target="cpu")(*given), program(*given))
    )
    assert ours <= max(3 * eager, 2e-6), (sizes, causal, projected)
