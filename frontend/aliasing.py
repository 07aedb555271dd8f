"""Whether the results of an operator are memory of its arguments in eager."""

from __future__ import annotations

from typing import Any

from torch._C import (
    _dispatch_has_kernel_for_dispatch_key,  # pyright: ignore[reportPrivateUsage]
)

COMPOSITE = "CompositeImplicitAutograd"
"""PyTorch's name for what is defined by other operators."""


def is_composite(op: Any) -> bool:
    """Whether eager runs other operators for this one."""
    return _dispatch_has_kernel_for_dispatch_key(op.name(), COMPOSITE)


def may_alias(op: Any) -> bool:
    """Whether results may be memory of arguments, or arguments are changed, by the operator's schema."""
    schema = op._schema
    return schema.is_mutable or any(result.alias_info is not None for result in schema.returns)
