"""Products of matrices that are views of all kinds: random ones, of small integers, and so exact."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import deplo

View = Callable[[Tensor], Tensor]


def parts(rng: random.Random, size: int) -> tuple[int, int]:
    """Two numbers whose product is `size`."""
    first = rng.choice([n for n in range(1, size + 1) if size % n == 0])
    return first, size // first


def view(rng: random.Random, rows: int, columns: int) -> tuple[str, tuple[int, ...], View]:
    """What a matrix may be a view of: a name, a shape, and the view."""
    a, b = parts(rng, rows)
    c, d = parts(rng, columns)
    few, step = rng.randint(0, min(columns - 1, 7)), rng.choice([2, 3])
    shape = rows, columns
    kinds: dict[str, tuple[tuple[int, ...], View]] = {
        "plain": (shape, lambda x: x),
        "transposed": ((columns, rows), lambda x: x.t()),
        "heads": ((c, rows, d), lambda x: x.transpose(0, 1).reshape(shape)),
        "batches": ((b, a, columns), lambda x: x.transpose(0, 1).reshape(shape)),
        "patches": ((a, c, b, d), lambda x: x.permute(0, 2, 1, 3).reshape(shape)),
        "part of rows": ((rows, columns + few), lambda x: x[:, few:]),
        "part of batches": ((a, b + 1, columns), lambda x: x[:, 1:].reshape(shape)),
        "repeated": ((a, 1, columns), lambda x: x.expand(a, b, columns).reshape(shape)),
        "padded": ((rows, columns - few), lambda x: F.pad(x, (few, 0))),
        "rolled": (shape, lambda x: torch.cat([x[:, few:], x[:, :few]], 1)),
        "reversed": (shape, lambda x: x.flip(1)),
        "steps": ((rows, columns * step), lambda x: x[:, ::step]),
    }
    kind = rng.choice(list(kinds))
    return (f"{kind} {(a, b, c, d, few, step)}", *kinds[kind])


@pytest.mark.sample(30)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "f32"])
@pytest.mark.parametrize("seed", range(30))
def test_products_of_views(seed: int, dtype: torch.dtype) -> None:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    m, n = rng.choice([4, 16, 33, 64, 96]), rng.choice([8, 32, 48, 64, 100])
    k = rng.choice([32, 48, 64, 77, 90, 96, 120, 192, 256])
    name, shape, rows = view(rng, m, k)
    other, other_shape, columns = view(rng, n, k)

    def program(x: Tensor, w: Tensor) -> Tensor:
        return (rows(x) @ columns(w).t()).relu()

    x, w = (
        torch.randint(-2, 3, each, generator=generator).to(dtype) for each in (shape, other_shape)
    )
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert torch.equal(compiled(x, w), program(x.float(), w.float()).to(dtype)), (name, other)


@pytest.mark.parametrize("width", [2, 8, 24, 40, 48, 72, 80])
def test_rows_that_are_made_of_heads(width: int) -> None:
    """A step of a matrix tile, 32 positions, would go from one head into what is no next one."""
    heads = 384 // width // 2 * 2
    x = torch.randint(-2, 3, (2, heads, 64, width)).bfloat16()
    w = torch.randint(-2, 3, (96, heads * width)).bfloat16()

    def program(x: Tensor, w: Tensor) -> Tensor:
        return F.linear(x.transpose(1, 2).reshape(2, 64, heads * width), w)

    compiled = deplo.compile(program, (x, w), target="cpu")
    assert torch.equal(compiled(x, w), program(x.float(), w.float()).bfloat16())
