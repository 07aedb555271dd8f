"""Whether the results of an operator are memory of its arguments in eager."""

from __future__ import annotations

from typing import Any

import torch
from torch._C import (
    _dispatch_has_kernel_for_dispatch_key,  # pyright: ignore[reportPrivateUsage]
)

COMPOSITE = "CompositeImplicitAutograd"
"""PyTorch's name for what is defined by other operators."""


UNSAFE = (
    torch.ops.aten.unsafe_split.Tensor,
    torch.ops.aten.unsafe_split_with_sizes.default,
)
"""Operators whose results are memory of their arguments, though their schemas do not say so."""


def is_composite(op: Any) -> bool:
    """Whether eager runs other operators for this one."""
    return _dispatch_has_kernel_for_dispatch_key(op.name(), COMPOSITE)


def may_alias(op: Any) -> bool:
    """Whether results may be memory of arguments, or arguments are changed, by the operator's schema."""
    schema = op._schema
    aliases = any(result.alias_info is not None for result in schema.returns)
    return schema.is_mutable or aliases or op in UNSAFE
