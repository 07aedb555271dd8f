"""What `bench/gpu.py` measures: kernels of common shapes, and layers of published models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from deplo.frontend.sources import load_source
from deplo.tools.measuring import Case

Make = Callable[[], Case]
"""Makes a case when it is needed."""

LINEARS = (
    (32, 2048, 2048),
    (512, 2048, 2048),
    (32, 3584, 512),
    (512, 3584, 3584),
    (512, 3584, 18944),
    (4096, 4096, 4096),
)
"""Rows, inner and outer features."""

ATTENTIONS = ((32, 512, 64, False), (32, 2048, 128, True), (12, 197, 64, False))
"""Heads, tokens, features of a head, and whether tokens see those before them only."""

CONVOLUTIONS = ((64, 64, 56, 3), (256, 64, 56, 1), (3, 64, 224, 7))
"""Channels in and out, and extents of the image and of the window."""


def gelu(x: torch.Tensor) -> torch.Tensor:
    """By tanh, written out."""
    return 0.5 * x * (1 + torch.tanh(0.797 * (x + 0.044 * x * x * x)))


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """The gate of an MLP."""
    return F.silu(gate) * up


@dataclass(frozen=True)
class Cases:
    """The cases on a device in a dtype; `small` ones show that the script runs."""

    device: str
    dtype: torch.dtype
    small: bool = False

    def __iter__(self) -> Iterator[Make]:
        yield from self._rows()
        yield from self._linears()
        yield from self._attentions()
        yield from self._convolutions()
        yield from self._blocks()

    def _cut(self, *extents: int) -> tuple[int, ...]:
        return tuple(max(n // 16, 1) for n in extents) if self.small else extents

    def _kernel(self, name: str, program: Any, *shapes: tuple[int, ...]) -> Case:
        if isinstance(program, nn.Module):
            program = program.to(self.device, self.dtype).eval()
        torch.manual_seed(0)
        inputs = (torch.randn(shape, device=self.device).to(self.dtype) for shape in shapes)
        return Case(name, program, tuple(inputs))

    def _rows(self) -> Iterator[Make]:
        cut = self._cut
        yield lambda: self._kernel("gelu 32x18944", gelu, cut(32, 18944))
        yield lambda: self._kernel("swiglu 512x18944", swiglu, *[cut(512, 18944)] * 2)
        softmax = nn.Softmax(-1)
        yield lambda: self._kernel("softmax 4096x4096", softmax, cut(4096, 4096))
        for n in (2048, 3584):
            norm = nn.RMSNorm(*cut(n))
            yield lambda n=n, norm=norm: self._kernel(f"rms_norm 512x{n}", norm, cut(512, n))
        layer = nn.LayerNorm(*cut(1024))
        yield lambda: self._kernel("layer_norm 4096x1024", layer, cut(4096, 1024))

    def _linears(self) -> Iterator[Make]:
        for rows, inner, outer in LINEARS:

            def make(m: int = rows, k: int = inner, n: int = outer) -> Case:
                layer = nn.Linear(*self._cut(k, n), bias=False)
                return self._kernel(f"linear {m}x{k}x{n}", layer, self._cut(m, k))

            yield make

    def _attentions(self) -> Iterator[Make]:
        for heads, length, width, causal in ATTENTIONS:

            def make(h: int = heads, n: int = length, w: int = width, c: bool = causal) -> Case:
                name = f"{'causal ' if c else ''}attention 1x{h}x{n}x{w}"
                shape = (1, *self._cut(h, n), w)

                def attention(q: Any, k: Any, v: Any) -> torch.Tensor:
                    return F.scaled_dot_product_attention(q, k, v, is_causal=c)

                case = self._kernel(name, attention, shape, shape, shape)
                return replace(case, needed=(n + 1) / (2 * n) if c else 1.0)

            yield make

    def _convolutions(self) -> Iterator[Make]:
        for channels, outputs, size, window in CONVOLUTIONS:

            def make(i: int = channels, o: int = outputs, n: int = size, w: int = window) -> Case:
                layer = nn.Conv2d(i, o, w, 2 if w == 7 else 1, w // 2, bias=False)
                (extent,) = self._cut(n)
                shape = (8, i, max(extent, w), max(extent, w))
                return self._kernel(f"convolution {w}x{w} 8x{i}x{n}x{n}", layer, shape)

            yield make

    def _blocks(self) -> Iterator[Make]:
        models = ("tinyllama-1.1b",) if self.small else ("tinyllama-1.1b", "qwen2.5-7b")
        for model in models:
            for tokens in (8,) if self.small else (32, 128, 512):
                yield lambda m=model, t=tokens: self._block(m, t)

    def _block(self, model: str, tokens: int) -> Case:
        source = load_source(f"hf:{model}", layer=0, seq_len=tokens)
        program: Any = source.program

        def there(value: Any) -> Any:
            if not torch.is_tensor(value):
                return value
            return value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)

        args, kwargs = pytree.tree_map(there, (tuple(source.args), dict(source.kwargs)))
        program = program.to(self.device, self.dtype)
        return Case(f"{model} layer, {tokens} tokens", program, args, kwargs)
