"""Attention on a GPU as products and a softmax, which kernels of deplo's own can take together.

PyTorch has kernels of its own for `scaled_dot_product_attention`, and AOTAutograd traces a call of one of
them; or products of f32, where it is asked for none. Here short floats stay factors of products, whose sums
are f32.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F


def expand_attention(graph: torch.fx.GraphModule) -> None:
    """Let a graph that Dynamo traced compute its attention by products, where that is on a GPU."""
    for node in graph.graph.nodes:
        if node.op == "call_function" and node.target is F.scaled_dot_product_attention:
            value = node.meta.get("example_value")
            if isinstance(value, torch.Tensor) and value.is_cuda:
                node.target = attention
    graph.recompile()


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention`; rows that are all masked give zeros, as there."""
    if dropout_p:
        options: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa}
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, **options
        )
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (each.repeat_interleave(groups, -3) for each in (key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = query.to(wide) @ key.to(wide).mT * factor
    if is_causal:
        row, column = (torch.arange(n, device=scores.device) for n in scores.shape[-2:])
        scores = torch.where(row.unsqueeze(-1) >= column, scores, -math.inf)
    if attn_mask is None:
        weights = scores.softmax(-1)
    else:
        is_kept = attn_mask.dtype == torch.bool
        scores = torch.where(attn_mask, scores, -math.inf) if is_kept else scores + attn_mask
        weights = _softmax_or_zero(scores)
    return weights.to(value.dtype) @ value


def _softmax_or_zero(scores: torch.Tensor) -> torch.Tensor:
    """A softmax whose rows of minus infinities are zeros."""
    if scores.requires_grad:
        return torch.ops.aten._safe_softmax.default(scores, -1)
    largest = scores.amax(-1, keepdim=True)
    weights = (scores - largest).exp()
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.where(largest == -math.inf, 0.0, weights)
