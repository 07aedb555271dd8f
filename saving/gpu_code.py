"""The machine code of kernels for a GPU, and the PTX from which later GPUs get theirs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..machine.targets import Target
from ..runtime.nvrtc import Cubin, compile_all, compute_capability, nvrtc_version, ptx_of
from ..runtime.plan import Plan


@dataclass
class GpuCode:
    """The kernels of a program's variants; one that several have is a member once."""

    folder: str
    target: Target
    members: dict[str, bytes]
    known: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """What is said of each kernel, by its source."""
    shared_bytes: int = 0
    """The most shared memory of a block so far."""

    def code(self, plan: Plan, prefix: str) -> dict[str, Any]:
        """What a file says of the code of a plan's kernels, by name; their members are added."""
        kernels = {kernel.name: kernel for each in plan.whole for kernel in each.kernels}
        cubins = compile_all([each.source for each in kernels.values()], self.target.name)
        said: dict[str, Any] = {}
        for (name, kernel), cubin in zip(kernels.items(), cubins, strict=True):
            if kernel.source not in self.known:
                self.known[kernel.source] = self._added(kernel.source, cubin)
            said[name] = self.known[kernel.source]
            declared = said[name]["usage"]["shared_bytes"]
            self.shared_bytes = max(self.shared_bytes, declared + kernel.shared_bytes)
        return said

    def _added(self, source: str, cubin: Cubin) -> dict[str, Any]:
        """What is said of a new kernel.

        PTX for a target with a suffix runs on exactly the GPUs that its machine code does: it is left out.
        """
        path = f"{self.folder}/kernels/{len(self.known)}"
        ((symbol, usage),) = cubin.usage.items()
        said: dict[str, Any] = {
            "symbol": symbol,
            "usage": asdict(usage),
            "cubin": f"{path}.cubin",
        }
        self.members[said["cubin"]] = cubin.code
        if not compute_capability(self.target.name)[2]:
            said["ptx"] = f"{path}.ptx"
            self.members[said["ptx"]] = ptx_of(source, self.target.name).encode()
        return said

    def said(self) -> dict[str, Any]:
        """What a file says of the target, once all code is there."""
        toolkit = [int(part) for part in nvrtc_version().split(".")[:2]]
        return {"kind": "gpu", "toolkit": toolkit, "shared_bytes": self.shared_bytes}

    @property
    def described(self) -> str:
        """Everything that the code depends on besides its text."""
        return f"{self.target.name} {nvrtc_version()}"
