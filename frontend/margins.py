"""The margin loss over several labels a row, which PyTorch's own decomposition gets wrong.

    F.multilabel_margin_loss(scores, [[3, 0, -1, 1], ...])      # labels 3 and 0; a row ends at its first -1

The decomposition (torch 2.11 to 2.13) counts what stands at and after the -1 as a label 0, and tracing asks
it before a backend sees the operator. So the operator has a rule of ours, and calls that Dynamo kept are
replaced before AOTAutograd traces them.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch.nn import _reduction

from .composites import replace_calls


def multilabel_margin_loss(
    value: torch.Tensor, target: torch.Tensor, reduction: int = 1
) -> torch.Tensor:
    """The sum over labels j and other classes c of max(0, 1 - value[j] + value[c]), over the classes.

    `value` and `target` are (classes) or (rows, classes), or have no axis, as one class; `reduction` is none,
    mean or sum. As eager does, a NaN counts as no loss.
    """
    if value.ndim == 0:
        value, target = value.reshape(1), target.reshape(1)
    classes = value.shape[-1]
    place = torch.arange(classes, device=target.device)
    end = torch.where(target == -1, place, classes).amin(-1, keepdim=True)
    is_label = place < end
    label = torch.where(is_label, target, 0)
    at_label = value.gather(-1, label).unsqueeze(-1)
    named = is_label.unsqueeze(-1) & (label.unsqueeze(-1) == place)
    margin = 1 - at_label + value.unsqueeze(-2)
    counts = is_label.unsqueeze(-1) & ~named.any(-2, keepdim=True) & (margin > 0)
    losses = torch.where(counts, margin, 0).sum((-2, -1)) / classes
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()


def _by_name(
    input: torch.Tensor,
    target: torch.Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> torch.Tensor:
    """The same with the parameters of `F.multilabel_margin_loss`."""
    if size_average is not None or reduce is not None:
        return multilabel_margin_loss(
            input, target, _reduction.legacy_get_enum(size_average, reduce)
        )
    return multilabel_margin_loss(input, target, _reduction.get_enum(reduction))


def _by_number(input: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> torch.Tensor:
    """The same with the parameters of the function in C++."""
    return multilabel_margin_loss(input, target, reduction)


_REPLACED: dict[Any, Any] = {
    F.multilabel_margin_loss: _by_name,
    cast(Any, torch)._C._nn.multilabel_margin_loss: _by_number,
}
"""What the user calls, as Dynamo keeps it."""


def replace_margin_losses(graph: torch.fx.GraphModule) -> None:
    """Let the calls of a graph of Dynamo's compute what eager does."""
    replace_calls(graph, _REPLACED)
