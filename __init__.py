"""deplo: an ML compiler you can read.

    import deplo
    program = deplo.compile(nn.RMSNorm(2048), (torch.randn(1, 32, 2048),))
    program(torch.randn(1, 32, 2048))

Importing this package is cheap: the public names load their modules on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import (
    DeploError,
    FallbackWarning,
    MismatchError,
    MissingEnvironmentError,
    UnsupportedOpError,
    UsageError,
)

if TYPE_CHECKING:
    from . import array_api, lazy
    from .execution import ExecutionPlan, Kernel
    from .generation import generate
    from .lazy import Tensor, Variable, prepare
    from .onnx_import.entry import from_onnx
    from .program import Program, compile

_LAZY = {
    **{name: ".program" for name in ("compile", "Program")},
    **{name: ".execution" for name in ("ExecutionPlan", "Kernel")},
    **{name: ".lazy" for name in ("Tensor", "Variable", "prepare")},
    "from_onnx": ".onnx_import.entry",
    "generate": ".generation",
}

__all__ = [
    "DeploError",
    "ExecutionPlan",
    "FallbackWarning",
    "Kernel",
    "MismatchError",
    "MissingEnvironmentError",
    "Program",
    "Tensor",
    "UnsupportedOpError",
    "UsageError",
    "Variable",
    "array_api",
    "compile",
    "from_onnx",
    "generate",
    "lazy",
    "prepare",
]


def __getattr__(name: str) -> Any:
    if name in ("array_api", "lazy"):
        return import_module(f".{name}", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)
