"""What plain `xdsl-opt` sees of deplo: dialects, passes and the targets `c` and `cuda`.

xDSL finds `DEPLO` through the `xdsl.universe` entry point.
"""

from __future__ import annotations

from importlib import import_module

from xdsl.universe import Universe
from xdsl.utils.target import Target

from .dialects import get_all_dialects
from .passes import get_all_passes
from .passes.pipelines import get_all_pipelines


def _cuda_target() -> type[Target]:
    return import_module(".codegen.cuda_printer", __package__).CudaTarget


def _c_target() -> type[Target]:
    return import_module(".codegen.c_printer", __package__).CTarget


DEPLO = Universe(
    all_dialects=get_all_dialects(),
    all_passes={**get_all_passes(), **get_all_pipelines()},
    all_targets={"c": _c_target, "cuda": _cuda_target},
)
