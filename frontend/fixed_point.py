"""What eager computes on bytes in fixed point, with weights that PyTorch's own decomposition does not have.

    F.interpolate(image, size=(130, 130), mode="bilinear")      # of uint8: up to 1 from the decomposition

Such an operator is none of deplo's: alone it runs in PyTorch, and so does a graph of Dynamo's that has one,
which PyTorch's tracing would take apart before a backend sees its operators.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F

aten = torch.ops.aten

MODES = ("bilinear", "bicubic")

OPERATORS = tuple(
    getattr(getattr(aten, f"upsample_{mode}2d"), overload)
    for mode in MODES
    for overload in ("default", "vec")
)

FUNCTIONS = (
    *(F.interpolate, F.upsample, F.upsample_bilinear),
    *(getattr(cast(Any, torch)._C._nn, f"upsample_{mode}2d") for mode in MODES),
)
"""What the user calls, as Dynamo keeps it."""


def in_fixed_point(node: torch.fx.Node) -> bool:
    """Whether a node of an ATen graph, or of one of Dynamo's, is a smooth image of bytes."""
    if node.target in OPERATORS:
        return _is_bytes(node.args[0], "val")
    if node.target not in FUNCTIONS:
        return False
    image = node.args[0] if node.args else node.kwargs.get("input")
    named = node.target in (F.interpolate, F.upsample)
    mode = node.args[3] if len(node.args) > 3 else node.kwargs.get("mode")
    return _is_bytes(image, "example_value") and (not named or mode in MODES)


def _is_bytes(image: Any, known_by: str) -> bool:
    value = image.meta.get(known_by) if isinstance(image, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.dtype == torch.uint8
