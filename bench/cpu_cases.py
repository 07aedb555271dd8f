"""The cases that are measured on a CPU, in f32 with random weights; each group has its mean.

The first groups are the shapes on which the models of costs were made (`analysis/cpu_*.py`). Those of models,
chosen before anything was measured on them, show how well they do elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from deplo.frontend.sources import load_source
from deplo.tools.measuring import Case

Cases = Iterator[tuple[str, Any, tuple[tuple[int, ...], ...]]]
"""Names, programs, and the shapes of their arguments."""

VIT = "hidden_size=768,intermediate_size=3072,num_attention_heads=12"


def gelu_chain(x: torch.Tensor) -> torch.Tensor:
    """GELU as its formula, nine operators."""
    return 0.5 * x * (1 + torch.tanh(0.797 * (x + 0.044 * x * x * x)))


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary position embedding of x[batch, head, position, feature]."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention of each position to those before it."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def nucleus(x: torch.Tensor) -> torch.Tensor:
    """How much the most likely tokens have together, the first step of top-p sampling."""
    return x.softmax(-1).sort(-1, descending=True)[0].cumsum(-1)


class Scatter(nn.Module):
    """Adds elements of u to elements of x: those of a column, or whole rows."""

    def __init__(self, rows: int, updates: int, columns: int = 0):
        super().__init__()
        shape = (updates, columns) if columns else (updates,)
        self.register_buffer("index", torch.randint(rows, shape))

    def forward(self, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        """x with u added"""
        assert isinstance(self.index, torch.Tensor)
        if self.index.ndim == 1:
            return x.index_add(0, self.index, u)
        return x.scatter_add(0, self.index, u)


class GatedMlp(nn.Module):
    """The feed-forward network of a Llama layer."""

    def __init__(self, width: int, inner: int):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """down(silu(gate x) * up x)"""
        return self.down(F.silu(self.gate(x)) * self.up(x))


def pointwise() -> Cases:
    """One result for each element."""
    yield "GELU chain 32x18944", gelu_chain, ((32, 18944),)
    yield "GELU chain 512x18944", gelu_chain, ((512, 18944),)
    yield "SwiGLU 512x5632", lambda a, b: F.silu(a) * b, ((512, 5632),) * 2
    yield (
        "residual and scale 512x2048",
        lambda x, r, s: (x + r) * s,
        ((512, 2048),) * 2 + ((2048,),),
    )


def rows() -> Cases:
    """Reductions over rows."""
    yield "RMSNorm 512x2048", nn.RMSNorm(2048), ((512, 2048),)
    yield "layer norm 1024x768", nn.LayerNorm(768), ((1024, 768),)
    yield "layer norm 64x1024", nn.LayerNorm(1024), ((64, 1024),)
    yield "softmax 8x512x512", lambda x: F.softmax(x, -1), ((8, 512, 512),)
    yield "softmax 32x32000", lambda x: F.softmax(x, -1), ((32, 32000),)
    yield "log-softmax 32x32000", lambda x: F.log_softmax(x, -1), ((32, 32000),)
    yield "sum 1024x4096", lambda x: x.sum(-1), ((1024, 4096),)
    yield "mean over columns 1024x1024", lambda x: x.mean(0), ((1024, 1024),)


def layout() -> Cases:
    """Elements change places."""
    yield "transpose and add 1024x1024", lambda a, b: a.T + b, ((1024, 1024),) * 2
    yield "cat 512x512 and 512x512", lambda a, b: torch.cat([a, b], 1), ((512, 512),) * 2
    yield "rotary 1x32x128x64", rotary, ((1, 32, 128, 64), (128, 64), (128, 64))


def contractions() -> Cases:
    """Matrix products, attention, convolutions."""
    for tokens in (1, 32, 128, 512):
        yield f"linear {tokens}x2048x2048", nn.Linear(2048, 2048), ((tokens, 2048),)
    yield "matmul 1024x1024x1024", torch.matmul, ((1024, 1024),) * 2
    yield (
        "linear and GELU 128x768x3072",
        nn.Sequential(nn.Linear(768, 3072), nn.GELU()),
        ((128, 768),),
    )
    yield "gated MLP 32x2048x5632", GatedMlp(2048, 5632), ((32, 2048),)
    yield "attention 1x8x256x64", F.scaled_dot_product_attention, ((1, 8, 256, 64),) * 3
    yield (
        "causal attention 1x8x256x64",
        causal_attention,
        ((1, 8, 256, 64),) * 3,
    )
    yield "convolution 3x3 64x32x32", nn.Conv2d(64, 64, 3, padding=1), ((1, 64, 32, 32),)
    yield (
        "depthwise convolution 64x56x56",
        nn.Conv2d(64, 64, 3, padding=1, groups=64),
        ((1, 64, 56, 56),),
    )
    block = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU())
    yield "convolution, norm, ReLU 64x56x56", block, ((1, 64, 56, 56),)


def rows_of_models() -> Cases:
    """Rows as ViT-B, GPT-2, Qwen3, Stable Diffusion, ResNet-50 and Llama have them."""
    yield "layer norm 197x768", nn.LayerNorm(768), ((197, 768),)
    yield "softmax 12x197x197", lambda x: F.softmax(x, -1), ((12, 197, 197),)
    yield "log-softmax 1x50257", lambda x: F.log_softmax(x, -1), ((1, 50257),)
    yield "RMSNorm 128x32x64", nn.RMSNorm(64), ((128, 32, 64),)
    yield "group norm 1x320x64x64", nn.GroupNorm(32, 320), ((1, 320, 64, 64),)
    yield "mean of channels 32x64x28x28", lambda x: x.mean((0, 2, 3)), ((32, 64, 28, 28),)
    yield "mean of images 32x2048x7x7", lambda x: x.mean((2, 3)), ((32, 2048, 7, 7),)
    yield "argmax 32x32000", lambda x: x.argmax(-1), ((32, 32000),)


def contractions_of_models() -> Cases:
    """Products as ViT-B, GPT-2, TinyLlama, ResNet-50, CLIP and Whisper have them."""
    for tokens, width, results in (
        (197, 768, 2304),
        (197, 3072, 768),
        (1, 768, 3072),
        (8, 2048, 5632),
        (32, 2048, 1000),
    ):
        name = f"linear {tokens}x{width}x{results}"
        yield name, nn.Linear(width, results), ((tokens, width),)
    yield "scores 12x197x64x197", lambda q, k: q @ k.mT, ((12, 197, 64),) * 2
    yield "attention 1x12x197x64", F.scaled_dot_product_attention, ((1, 12, 197, 64),) * 3
    yield "causal attention 1x12x77x64", causal_attention, ((1, 12, 77, 64),) * 3
    yield (
        "attention 1x12x1x64, 512 keys",
        F.scaled_dot_product_attention,
        ((1, 12, 1, 64), (1, 12, 512, 64), (1, 12, 512, 64)),
    )
    yield "attention 1x8x1500x64", F.scaled_dot_product_attention, ((1, 8, 1500, 64),) * 3
    yield "convolution 1x1 256x56x56", nn.Conv2d(256, 64, 1), ((1, 256, 56, 56),)
    stem = nn.Conv2d(3, 64, 7, stride=2, padding=3)
    yield "convolution 7x7 3x224x224", stem, ((1, 3, 224, 224),)
    halving = nn.Conv2d(128, 256, 3, stride=2, padding=1)
    yield "convolution 3x3, stride 2 128x28x28", halving, ((1, 128, 28, 28),)
    yield "convolution 3 80x3000", nn.Conv1d(80, 512, 3, padding=1), ((1, 80, 3000),)


def orders() -> Cases:
    """Elements in order, and writing where data says."""
    yield "sort 512x512", lambda x: x.sort(-1)[0], ((512, 512),)
    yield "top 8 of 512x512", lambda x: x.topk(8)[0], ((512, 512),)
    yield "top 50 of 32x32000", lambda x: x.topk(50)[0], ((32, 32000),)
    yield "median 512x512", lambda x: x.median(-1)[0], ((512, 512),)
    yield "nucleus 4x32000", nucleus, ((4, 32000),)
    yield "scatter_add 512x256", Scatter(512, 512, 256), ((512, 256),) * 2
    rows = (10000, 32), (50000, 32)
    yield "index_add 50000x32 to 10000x32", Scatter(10000, 50000), rows


def blocks() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Layers of models."""
    for tokens in (32, 128):
        name = f"TinyLlama layer, {tokens} tokens"
        yield name, lambda n=name, t=tokens: _layer(n, "hf:tinyllama-1.1b", seq_len=t)
    yield "ViT-B layer", lambda: _layer("ViT-B layer", "hf:vit", config=VIT)


def _layer(name: str, architecture: str, **options: Any) -> Case:
    source = load_source(architecture, layer=0, **options)
    return Case(name, source.program, source.args, source.kwargs)


def _case(name: str, program: Any, shapes: tuple[tuple[int, ...], ...]) -> Case:
    torch.manual_seed(0)
    if isinstance(program, nn.Module):
        program = program.eval()
    return Case(name, program, tuple(torch.randn(shape) for shape in shapes))


def narrowed(case: Case, dtype: torch.dtype) -> Case:
    """A case with parameters and inputs of another type."""
    program = case.program.to(dtype) if isinstance(case.program, nn.Module) else case.program
    cast = pytree.tree_map(
        lambda v: v.to(dtype) if torch.is_tensor(v) and v.is_floating_point() else v,
        (case.args, case.kwargs),
    )
    return Case(case.name, program, *cast)


def cases() -> Iterator[tuple[str, str, Callable[[], Case]]]:
    """Group, name, and what makes each case."""
    groups = (
        pointwise,
        rows,
        layout,
        contractions,
        rows_of_models,
        contractions_of_models,
        orders,
    )
    for made in groups:
        group = made.__name__.replace("_", " ")
        for name, program, shapes in made():
            yield group, name, lambda n=name, p=program, s=shapes: _case(n, p, s)
    for name, make in blocks():
        yield "blocks", name, make
