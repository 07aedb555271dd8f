"""Calls of functions on functions: attention with score functions, maps over rows, named regions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._higher_order_ops.flex_attention import sdpa_dense
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch.nn import functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import deplo
from deplo.errors import UnsupportedOpError
from deplo.frontend.higher_order import MEANINGS
from deplo.frontend.sources import load_source
from deplo.torch_backend import FallbackWarning

Program = Callable[..., Any]
SLOPES = torch.tensor([0.5, -0.25, 2.0, 0.125])
SHARED = torch.arange(12.0).reshape(3, 4)

region = torch.compiler.nested_compile_region(lambda x: F.gelu(x) * 2)
inner = torch.compiler.nested_compile_region(lambda x: region(x).sin())


def _window(b: Any, h: Any, i: Any, j: Any) -> Any:
    return (i >= j) & (i - j < 5)


def _causal(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return torch.where(i >= j, score, -float("inf"))


def _none_for_some(score: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
    return torch.where(i >= 3, score, -float("inf"))


def _blocks(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    size = q.shape[-2], k.shape[-2]
    mask = create_block_mask(_window, None, None, *size, device="cpu", BLOCK_SIZE=8)
    return flex_attention(q, k, v, block_mask=mask)


ATTENTION: dict[str, Program] = {
    "plain": flex_attention,
    "causal": lambda q, k, v: flex_attention(q, k, v, score_mod=_causal),
    "rows without a score": lambda q, k, v: flex_attention(q, k, v, score_mod=_none_for_some),
    "slopes": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: s + SLOPES[h] * (j - i)
    ),
    "soft cap": lambda q, k, v: flex_attention(
        q, k, v, score_mod=lambda s, b, h, i, j: 20 * torch.tanh(s / 20)
    ),
    "scale": lambda q, k, v: flex_attention(q, k, v, scale=0.5),
    "groups": lambda q, k, v: flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    "transposed heads": lambda q, k, v: flex_attention(
        *(each.transpose(1, 2).contiguous().transpose(1, 2) for each in (q, k, v))
    ),
    "sums": lambda q, k, v: flex_attention(q, k, v, return_lse=True),
    "mask": _blocks,
}

ROWS: dict[str, Program] = {
    "map": lambda x: map_rows(lambda row: F.gelu(row) @ row.mT + row.sum(), x),
    "map with a shared tensor": lambda x: map_rows(lambda row, w: row @ w, x, SHARED),
    "map of columns": lambda x: map_rows(lambda row: row.mT * 2, x),
    "region": lambda x: region(x) + region(x * 2),
    "region in a region": lambda x: inner(x) + region(x),
    "map of a region": lambda x: map_rows(lambda row: region(row) + 1, x),
    "region and choice": lambda x: torch.cond(x.sum() > 0, lambda y: region(y), lambda y: -y, (x,)),
}


def _agree(found: Any, wanted: Any, dtype: torch.dtype = torch.float32) -> None:
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    found, wanted = (x if isinstance(x, tuple) else (x,) for x in (found, wanted))
    for mine, theirs in zip(found, wanted, strict=True):
        assert (mine.dtype, mine.stride()) == (theirs.dtype, theirs.stride())
        torch.testing.assert_close(mine, theirs, rtol=bound, atol=bound, equal_nan=True)


def _entry(kind: str, program: Program, inputs: Any) -> Program:
    if kind == "deplo.compile":
        return deplo.compile(program, inputs)
    torch._dynamo.reset()
    options = {"fallback": "error"}
    dynamic = kind == "dynamic" or None
    return torch.compile(program, backend="deplo", options=options, dynamic=dynamic)


@pytest.mark.sample(12)
@pytest.mark.parametrize("kind", ["deplo.compile", "torch.compile", "dynamic"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_with_score_functions(name: str, dtype: torch.dtype, kind: str) -> None:
    torch.manual_seed(0)
    program = ATTENTION[name]
    inputs = tuple(torch.randn(2, 4, 16, 8).to(dtype) for _ in range(3))
    compiled = _entry(kind, program, inputs)
    _agree(compiled(*inputs), program(*inputs), dtype)
    if kind == "dynamic":
        longer = tuple(torch.randn(3, 4, 24, 8).to(dtype) for _ in range(3))
        _agree(compiled(*longer), program(*longer), dtype)


@pytest.mark.parametrize("name", ["plain", "causal", "groups", "slopes", "soft cap"])
def test_attention_with_score_functions_is_one_kernel(name: str) -> None:
    inputs = tuple(torch.randn(1, 4, 128, 64) for _ in range(3))
    program = deplo.compile(ATTENTION[name], inputs)
    reductions = [kernel.name for kernel in program.kernels if kernel.name.endswith("reduce")]
    assert len(reductions) == 1


@pytest.mark.parametrize("kind", ["deplo.compile", "torch.compile"])
def test_equal_calls_are_traced_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flex, traced = torch.ops.higher_order.flex_attention, []

    def dense(*args: Any) -> Any:
        traced.append(args)
        return sdpa_dense(*args)

    monkeypatch.setitem(MEANINGS, flex, dense)

    def layers(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for factor in (2, 2, 3):  # two functions
            x = flex_attention(x, y, y, score_mod=lambda s, b, h, i, j, f=factor: s * f)
        for slopes in (SLOPES, SLOPES * 2):  # one function of two tensors
            x = flex_attention(x, y, y, score_mod=lambda s, b, h, i, j, t=slopes: s * t[h])
        return x

    inputs = tuple(torch.randn(1, 4, 16, 8) for _ in range(2))
    _agree(_entry(kind, layers, inputs)(*inputs), layers(*inputs))
    assert len(traced) == 3


@pytest.mark.sample(10)
@pytest.mark.parametrize("kind", ["deplo.compile", "torch.compile", "dynamic"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_and_regions(name: str, kind: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3, 3)
    _agree(_entry(kind, ROWS[name], (x,))(x), ROWS[name](x))


@pytest.mark.parametrize("name", ROWS)
def test_rows_and_regions_in_training(name: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 3, 3)
    mine, theirs = (x.clone().requires_grad_() for _ in range(2))
    _entry("torch.compile", ROWS[name], (x,))(mine).square().sum().backward()
    ROWS[name](theirs).square().sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)


FILE = """
from __future__ import annotations
import dataclasses, typing, torch
from torch.nn.attention.flex_attention import flex_attention

@dataclasses.dataclass
class Config:
    heads: typing.ClassVar[int] = 2

class Attention(torch.nn.Module):
    def forward(self, x):
        return flex_attention(x, x, x, score_mod=lambda s, b, h, i, j: s - h)

Attention_args = (torch.randn(1, Config.heads, 8, 4),)
"""


@pytest.mark.parametrize("name", ["attention.py", "random.py"], ids=["new", "known"])
def test_a_program_of_a_file_is_found_by_its_module(name: str, tmp_path: Path) -> None:
    """Dataclasses and Dynamo look the module up by its name, which another one may have."""
    (tmp_path / name).write_text(FILE)
    source = load_source(f"{tmp_path / name}:Attention")
    compiled = deplo.compile(source.program, source.args)
    _agree(compiled(*source.args), source.program(*source.args))


def test_a_body_that_draws_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="map_impl"):
        deplo.compile(lambda x: map_rows(lambda row: F.dropout(row, 0.5), x), (torch.randn(3, 4),))


def test_a_graph_that_runs_in_pytorch_is_differentiated_with_its_regions() -> None:
    def step(pair: tuple[torch.Tensor, torch.Tensor], row: torch.Tensor) -> Any:
        one, other = pair
        return (other.clone(), one + row), one * row

    def program(x: torch.Tensor) -> torch.Tensor:
        return region(x) + scan(step, (x[0] * 0, x[1] * 1), x)[1]

    torch._dynamo.reset()
    x = torch.randn(5, 3)
    mine, theirs = (x.clone().requires_grad_() for _ in range(2))
    with pytest.warns(FallbackWarning, match="scan"):
        torch.compile(program, backend="deplo")(mine).sum().backward()
    program(theirs).sum().backward()
    torch.testing.assert_close(mine.grad, theirs.grad)


def _sliding(size: int, shift: int, is_guarded: bool) -> Program:
    """Attention within a window before each row's own place, by products or by PyTorch's operator."""

    def program(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        i = torch.arange(q.shape[-2])[:, None] + shift
        j = torch.arange(k.shape[-2])
        mask = (i >= j) & (i - j < size)
        if is_guarded:
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return torch.where(mask, q @ k.mT, -torch.inf).softmax(-1) @ v

    return program


@pytest.mark.sample(16)
@pytest.mark.parametrize("nasty", [None, "nan", "inf"])
@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "plain"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize(
    ("rows", "columns", "size", "shift"),
    [(300, 300, 17, 0), (1100, 1100, 200, 0), (130, 900, 64, 770), (700, 700, 3, -5)],
)
def test_what_a_window_leaves_out_counts_as_in_eager(
    rows: int,
    columns: int,
    size: int,
    shift: int,
    dtype: torch.dtype,
    is_guarded: bool,
    nasty: str | None,
) -> None:
    """0 times a value that is not finite is NaN, in rows that the window of no block reaches, too."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, n, 32).to(dtype) for n in (rows, columns, columns))
    if nasty is not None:
        v[0, columns // 3, 3] = float(nasty)
    program = _sliding(size, shift, is_guarded)
    compiled = deplo.compile(program, (q, k, v))
    _agree(compiled(q, k, v), program(q, k, v), dtype)
