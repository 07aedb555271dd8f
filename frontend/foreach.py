"""Operators on lists of tensors, one operator for each element.

    torch._foreach_mul([m, v], [0.9, 0.999])

becomes

    [m * 0.9, v * 0.999]

PyTorch's optimizers and `clip_grad_norm_` call them. On a CPU, PyTorch runs the same kernel, which calls an
operator for each tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch._C import (
    DispatchKey,  # pyright: ignore[reportPrivateUsage]
    _dispatch_get_registrations_for_dispatch_key,  # pyright: ignore[reportPrivateUsage]
)

BY_ELEMENT = DispatchKey.CompositeExplicitAutograd
"""Where the kernel is that calls an operator for each tensor."""


def foreach_rules() -> dict[Any, Callable[..., Any]]:
    """Operator -> what calls others for each tensor of its lists; those that return tensors."""
    return {op: partial(op._op_dk, BY_ELEMENT) for op in _operators() if op._schema.returns}


def _operators() -> Iterator[Any]:
    for name in _dispatch_get_registrations_for_dispatch_key(BY_ELEMENT.name):
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if packet.startswith("_foreach_") and overload != "out" and not overload.endswith("_out"):
            yield getattr(getattr(torch.ops.aten, packet), overload or "default")
