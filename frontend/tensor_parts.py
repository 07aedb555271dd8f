"""Parameters that are made of plain tensors, such as quantized weights: their parts become the parameters.

    model.weight      # an Int8Tensor: a subclass of torch.Tensor that holds `qdata` and `scale`

becomes, in a twin of the module,

    weight = Int8Tensor.__tensor_unflatten__({"qdata": original0, "scale": original1}, …)

where `original0` and `original1` are plain parameters in the memory of the parts. Tracing the twin goes
through the operators that the subclass says, down to those of plain tensors. The module stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch._functorch._aot_autograd.subclass_parametrization import (
    unwrap_tensor_subclass_parameters,
)
from torch.utils._python_dispatch import is_traceable_wrapper_subclass


def with_parts(module: torch.nn.Module) -> torch.nn.Module:
    """A twin of a module whose parameters are plain tensors, or the module, if they are already.

    The twin's modules share all else with the originals, so buffers that it assigns are the module's.
    """
    if not any(map(_has_parts, module.modules())):
        return module
    return unwrap_tensor_subclass_parameters(_twin(module, {}))


def _has_parts(module: torch.nn.Module) -> bool:
    """Whether a module has a parameter of its own that consists of plain tensors."""
    return any(map(is_traceable_wrapper_subclass, module.parameters(recurse=False)))


def _twin(module: Any, made: dict[torch.nn.Module, Any]) -> Any:
    """The copy of a module and those in it, once for each of them."""
    if module not in made:
        twin: Any = copy.copy(module)
        made[module] = twin
        inner: Mapping[str, Any] = module._modules
        twin._modules = {n: None if each is None else _twin(each, made) for n, each in inner.items()}
        twin._parameters = dict(module._parameters)
    return made[module]
