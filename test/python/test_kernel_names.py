"""No two kernels of a program have one name, after any pass of either road."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.utils.exceptions import VerifyException

from deplo.analysis.launches import kernels_of
from deplo.analysis.verify import verify_module
from deplo.frontend.capture import capture
from deplo.machine.host_cpu import find_target
from deplo.machine.targets import get_target
from deplo.program import module_for
from deplo.program_stages import make_context, passes_to


class Block(nn.Module):
    """Attention and a gated MLP: sums and products that PyTorch calls by the same names."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.gate, self.up = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v))
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def repeated() -> nn.Module:
    return nn.Sequential(*(Block() for _ in range(3)))


def images() -> nn.Module:
    """Two convolutions, whose weights and images are copied in another order."""
    return nn.Sequential(nn.Conv2d(16, 32, 3), nn.Conv2d(32, 16, 3))


def long_sums() -> nn.Module:
    """Reductions and products that are split into parts and folds."""

    class Sums(nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return x.sum(-1), w.sum(-1), x.exp().sum(-1), x @ w.T, w @ x.T

    return Sums()


PROGRAMS = {
    "block": (Block, (torch.ones(1, 8, 16),)),
    "repeated": (repeated, (torch.ones(1, 8, 16),)),
    "images": (images, (torch.ones(1, 16, 10, 10),)),
    "long sums": (long_sums, (torch.ones(4, 20000), torch.ones(8, 20000))),
}


def captured_module(name: str, target: str) -> ModuleOp:
    make, args = PROGRAMS[name]
    return module_for(capture(make().eval(), args), get_target(target)).clone()


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_kernel_has_a_name_of_its_own_after_each_pass(name: str, target: str) -> None:
    module, context = captured_module(name, target), make_context()
    most = 0
    for _, passes in passes_to("cuda" if target != "cpu" else "llvm", get_target(target)):
        for each in passes:
            each.apply(context, module)
            names = [kernel.sym_name.data for kernel in kernels_of(module)]
            assert len(names) == len(set(names)), f"after {each.name}: {sorted(names)}"
            most = max(most, len(names))
            symbols = [name for op in module.ops if (name := op.properties.get("sym_name"))]
            assert len(symbols) == len(set(symbols)), f"after {each.name}"
    assert most > 1


def test_the_verifier_refuses_two_kernels_of_one_name() -> None:
    module, context = captured_module("block", "cpu"), make_context()
    for _, passes in passes_to("loop", find_target("cpu")):
        for each in passes:
            each.apply(context, module)
    verify_module(module)
    first, second = list(kernels_of(module))[:2]
    second.sym_name = StringAttr(first.sym_name.data)
    with pytest.raises(VerifyException, match=f"another kernel is called @{first.sym_name.data}"):
        verify_module(module)
