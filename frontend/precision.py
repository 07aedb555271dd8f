"""PyTorch's settings of how precise products of f32 are: `torch.set_float32_matmul_precision` and the like.

PyTorch has one for each of its libraries and kinds of products,
`torch.backends.<library>.<kind>.fp32_precision`. On a GPU "tf32" stands for tensor cores; on a CPU "bf16" for
instructions that multiply bf16. Everything else is f32, which is never less precise than what is asked for.
"""

from __future__ import annotations

from typing import Any

import torch
from xdsl.dialects.builtin import DictionaryAttr, Float32Type, ModuleOp, bf16, tf32
from xdsl.ir import Attribute, Operation

from ..dialects import torch_ops as t
from ..dialects.inside import ops_in
from ..dialects.products import PRODUCTS, Product
from ..dialects.syntax import tensor_type

_KINDS: dict[type[Operation], Product] = {
    t.LinearOp: Product.MATMUL,
    t.MatmulOp: Product.MATMUL,
    t.MmOp: Product.MATMUL,
    t.BmmOp: Product.MATMUL,
    t.AddmmOp: Product.MATMUL,
    t.BaddbmmOp: Product.MATMUL,
    t.ScaledDotProductAttentionOp: Product.MATMUL,
    t.ConvolutionOp: Product.CONVOLUTION,
}


def with_asked_precision(module: ModuleOp, *, on_gpu: bool, multiplies_bf16: bool) -> ModuleOp:
    """The module, or a copy that says what it rounds factors in f32 to if PyTorch's settings ask for it.

    `multiplies_bf16` says whether the CPU has instructions that do.
    """
    asked = _asked(on_gpu, multiplies_bf16)
    found = ((_KINDS.get(type(op)), op) for op in ops_in(module))
    used = {kind for kind, op in found if kind is not None and _is_f32(op)}
    said = {kind.value: asked[kind] for kind in Product if kind in used and kind in asked}
    if not said:
        return module
    copy = module.clone()
    copy.attributes[PRODUCTS] = DictionaryAttr(said)
    return copy


def _asked(on_gpu: bool, multiplies_bf16: bool) -> dict[Product, Attribute]:
    """What PyTorch's settings let products of each kind round to."""
    backends: Any = torch.backends
    if on_gpu:
        settings = {Product.MATMUL: backends.cuda.matmul, Product.CONVOLUTION: backends.cudnn.conv}
        return {k: tf32 for k, setting in settings.items() if setting.fp32_precision == "tf32"}
    settings = {Product.MATMUL: backends.mkldnn.matmul, Product.CONVOLUTION: backends.mkldnn.conv}
    if not multiplies_bf16:
        return {}
    return {k: bf16 for k, setting in settings.items() if setting.fp32_precision == "bf16"}


def _is_f32(op: Operation) -> bool:
    return isinstance(tensor_type(op.results[0]).element_type, Float32Type)
