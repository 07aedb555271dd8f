"""The kernels of a plan on GPUs: loaded when first launched, and what each launch passes to them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeploError
from . import cuda_driver
from .nvrtc import Cubin, Usage
from .plan import Plan
from .plan_parts import Kernel, Ref, Step
from .sizes import static
from .tensor_maps import Description, describe, encode

MAX_BLOCKS = 2**31 - 1
"""Blocks of a one-dimensional grid (CUDA C++ Programming Guide, "Technical Specifications")."""

MAX_DESCRIPTORS = 256
"""Tensor maps that a program keeps; buffers tend to lie where they lay in the last call."""


class CudaKernels:
    """The machine code of a plan's kernels. A function is loaded once for each device."""

    def __init__(self, kernels: Sequence[Kernel], cubins: Mapping[str, Cubin]):
        self.kernels = {kernel.name: kernel for kernel in kernels}
        self._cubins = {name: cubins[name] for name in self.kernels}
        self._functions: dict[tuple[int, str], Any] = {}
        self._descriptors: dict[tuple[int, Description], Any] = {}

    @property
    def usage(self) -> dict[str, Usage]:
        """Registers, spills and memory of each kernel."""
        return {name: c.usage[_symbol(name, c)] for name, c in self._cubins.items()}

    def function(self, device: int, name: str) -> Any:
        """A kernel on a device, whose context is current."""
        key = device, name
        if key not in self._functions:
            cubin, shared_bytes = self._cubins[name], self.kernels[name].shared_bytes
            symbol = _symbol(name, cubin)
            self._functions[key] = cuda_driver.load(name, cubin.code, symbol, shared_bytes)
        return self._functions[key]

    def launch(
        self, plan: Plan, step: Step, pointers: Mapping[Ref, int], device: int, stream: int
    ) -> None:
        """Launch a step of a plan whose sizes are known; arrays lie where `pointers` says."""
        blocks = static(step.blocks)
        if blocks == 0:
            return
        if blocks > MAX_BLOCKS:
            raise DeploError(f"@{step.kernel}: {blocks} blocks exceed the GPU's {MAX_BLOCKS}")
        kernel, function = self.kernels[step.kernel], self.function(device, step.kernel)
        passed = [self._passed(plan, ref, pointers) for ref in step.arguments]
        values = (*(value for value, _ in passed), *step.sizes)
        size = ctypes.c_int if kernel.size_bits == 32 else ctypes.c_longlong
        types = (*(type for _, type in passed), *[size] * len(step.sizes))
        numbers = blocks, step.threads, kernel.shared_bytes
        cuda_driver.launch(stream, step.kernel, function, *numbers, (values, types))

    def _passed(self, plan: Plan, ref: Ref, pointers: Mapping[Ref, int]) -> tuple[Any, Any]:
        """What a kernel gets for `ref` and its type; a tensor map is passed by value, without one."""
        if ref.kind != "tensor_map":
            return pointers[ref], ctypes.c_void_p
        map = plan.tensor_maps[ref.index]
        key = (pointers[map.of], describe(plan.array(map.of), map))
        if key not in self._descriptors:
            if len(self._descriptors) >= MAX_DESCRIPTORS:
                self._descriptors.clear()
            doing = f"describing {plan.array(map.of)} to the copy engine"
            self._descriptors[key] = cuda_driver.ok(encode(cuda_driver.driver(), *key), doing)
        return self._descriptors[key], None


def _symbol(name: str, cubin: Cubin) -> str:
    """The kernel's symbol in its cubin; the only kernel of a cubin may have another name."""
    if name in cubin.usage:
        return name
    if len(cubin.usage) == 1:
        return next(iter(cubin.usage))
    raise DeploError(f"the source of @{name} defines {', '.join(cubin.usage) or 'no kernel'}")
