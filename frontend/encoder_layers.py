"""The operators that eager has for a whole encoder layer and for its attention, in terms of others.

`nn.TransformerEncoderLayer` and `nn.MultiheadAttention` call them where no gradients are wanted. PyTorch has
no decomposition of them.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

aten = torch.ops.aten
Tensor = torch.Tensor

QUERIES_BY_KEYS, BATCH_BY_KEYS = 0, 1
"""What the axes of a mask are, by the number that the operators have for it; else it has all four axes."""


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> Any:
    """The output, (batch, queries, embed_dim), and the weights, (batch, heads, queries, keys), or their mean.

    `mask` holds where a key is not seen; a query that sees none gives NaN. A mask of floats holds where it is
    not 0.
    """
    if query.is_nested or query.ndim != 3:
        return NotImplemented
    if query is key and key is value:
        projected = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        parts = zip(qkv_weight.chunk(3), qkv_bias.chunk(3), strict=True)
        inputs = (query, key, value)
        projected = [F.linear(x, *part) for x, part in zip(inputs, parts, strict=True)]
    q, k, v = (
        x.unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2) for x in projected
    )
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(_over_scores(mask.bool(), mask_type), float("-inf"))
    weights = scores.softmax(-1)
    output = F.linear((weights @ v).transpose(1, 2).flatten(2), proj_weight, proj_bias)
    if not need_weights:
        return output, query.new_empty(0)
    return output, weights.mean(1) if average_attn_weights else weights


def _over_scores(mask: Tensor, mask_type: int | None) -> Tensor:
    """A mask that can be broadcast to (batch, heads, queries, keys)."""
    if mask_type == BATCH_BY_KEYS:
        return mask[:, None, None]
    return mask[None, None] if mask_type == QUERIES_BY_KEYS else mask


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Any:
    """`src` and the result are (batch, positions, embed_dim); norms stand before or after their parts."""
    if src.is_nested or src.ndim != 3:
        return NotImplemented

    def norm_1(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attend(x: Tensor) -> Tensor:
        weights = qkv_weight, qkv_bias, proj_weight, proj_bias
        return _attention(
            x, x, x, embed_dim, num_heads, *weights, mask, need_weights=False, mask_type=mask_type
        )[0]

    def feed_forward(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else hidden.relu(), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attend(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attend(src))
    return norm_2(x + feed_forward(x))


ENCODER_LAYERS: dict[Any, Any] = {
    aten._native_multi_head_attention.default: _attention,
    aten._transformer_encoder_layer_fwd.default: _encoder_layer,
}
"""The rules, by operator. One leaves a call on nested tensors as it is."""
