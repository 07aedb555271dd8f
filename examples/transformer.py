"""A transformer of two layers, written twice: as a PyTorch module and with `deplo.Tensor`.

    python examples/transformer.py

Both say the same, so both become the same kernels. The program prints how far the results differ from
PyTorch's own, and how many kernels of one program are, but for names, kernels of the other. It exits with
1 if a result is wrong or a kernel is not shared.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

import deplo
from deplo.execution import ExecutionPlan, Kernel

BATCH, LENGTH, WIDTH, HEADS, HIDDEN, LAYERS = 2, 24, 64, 4, 160, 2
HEAD = WIDTH // HEADS
EPS = 1e-6


# --------------------------------------------------------------------------- with PyTorch


class Layer(nn.Module):
    """Causal attention of several heads, then SwiGLU, each behind a norm and added to its input."""

    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH, eps=EPS)
        self.query, self.key, self.value, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        self.mlp_norm = nn.RMSNorm(WIDTH, eps=EPS)
        self.gate, self.up = (nn.Linear(WIDTH, HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, length, width] to the same."""
        y = self.attention_norm(x)
        query, key, value = (
            linear(y).reshape(BATCH, LENGTH, HEADS, HEAD).permute(0, 2, 1, 3)
            for linear in (self.query, self.key, self.value)
        )
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH))
        y = self.mlp_norm(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Transformer(nn.Module):
    """Layers, and a norm."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH, eps=EPS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, length, width] to the same."""
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


# --------------------------------------------------------------------------- with deplo.Tensor


def layer(x: deplo.Tensor, weights: Mapping[str, deplo.Tensor], name: str) -> deplo.Tensor:
    """The same layer; `weights` has its weights under the names of the module's parameters."""

    def linear(x: deplo.Tensor, which: str) -> deplo.Tensor:
        return x @ weights[f"{name}.{which}.weight"].mT

    def norm(x: deplo.Tensor, which: str) -> deplo.Tensor:
        return x.rms_norm(weights[f"{name}.{which}_norm.weight"], eps=EPS)

    y = norm(x, "attention")
    query, key, value = (
        linear(y, which).reshape((BATCH, LENGTH, HEADS, HEAD)).permute((0, 2, 1, 3))
        for which in ("query", "key", "value")
    )
    y = query.scaled_dot_product_attention(key, value, is_causal=True)
    x = x + linear(y.permute((0, 2, 1, 3)).reshape((BATCH, LENGTH, WIDTH)), "out")
    y = norm(x, "mlp")
    return x + linear(linear(y, "gate").silu() * linear(y, "up"), "down")


def transformer(x: deplo.Tensor, weights: Mapping[str, deplo.Tensor]) -> deplo.Tensor:
    """Layers, and a norm."""
    for number in range(LAYERS):
        x = layer(x, weights, f"layers.{number}")
    return x.layer_norm(weights["norm.weight"], weights["norm.bias"], eps=EPS)


# --------------------------------------------------------------------------- the comparison


def without_names(kernel: Kernel) -> str:
    """The LLVM IR of a kernel, in which its values and labels are numbered as they appear."""
    numbers: dict[str, str] = {}
    source = kernel.source.replace(kernel.name, "kernel")
    source = re.sub(r"^([\w.$-]+):", r"%\1:", source, flags=re.MULTILINE)
    return re.sub(
        r'%("[^"]*"|[\w.$-]+)', lambda name: numbers.setdefault(name[0], f"%{len(numbers)}"), source
    )


def kernels(plan: ExecutionPlan) -> Counter[str]:
    """The texts of a plan's kernels, without names."""
    return Counter(without_names(kernel) for kernel in plan.kernels)


def main() -> int:
    """Compute both, compare, and say what they share."""
    torch.manual_seed(0)
    model, x = Transformer().eval(), torch.randn(BATCH, LENGTH, WIDTH)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # norms' weights are not all 1
    weights = {name: deplo.Tensor(parameter) for name, parameter in model.named_parameters()}

    from_module = deplo.compile(model, (x,))
    from_tensors = deplo.prepare(transformer(deplo.Tensor(x), weights))
    wanted = model(x).detach()
    results = {
        "module": from_module(x),
        "tensors": torch.from_numpy(from_tensors.execute()[0].numpy()),
    }
    right = True
    for name, result in results.items():
        agrees = torch.allclose(result, wanted, rtol=1e-4, atol=1e-5)
        error = (result - wanted).abs().max().item()
        said = "agrees with PyTorch's" if agrees else "DIFFERS from PyTorch's"
        print(f"result  from the {name} {said}, largest difference {error:.1e}")
        right &= agrees
    one, other = kernels(from_module), kernels(from_tensors)
    shared = (one & other).total()
    print(
        f"kernels  {shared} shared of {one.total()} from the module, {other.total()} from tensors"
    )
    return 0 if right and shared == one.total() == other.total() else 1


if __name__ == "__main__":
    sys.exit(main())
