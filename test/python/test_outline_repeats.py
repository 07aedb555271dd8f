"""Repeated layers are compiled once, and still computed each with its own weights."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import deplo


class Layer(nn.Module):
    """A residual layer that also reads a table shared by all layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.up = nn.Linear(6, 10)
        self.down = nn.Linear(10, 6)

    def forward(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.up(self.norm(x) * table)).sigmoid() * 2 + 1
        return x + self.down(hidden).relu()


class Stack(nn.Module):
    """Layers between a table that is computed and what is done with the last or all values."""

    def __init__(self, depth: int, every: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(depth))
        self.every = every

    def forward(self, x: torch.Tensor) -> torch.Tensor | list[torch.Tensor]:
        table = torch.cos(x.mean(0))
        states: list[torch.Tensor] = []
        for layer in self.layers:
            x = layer(x, table)
            states.append(x)
        return states if self.every else x.cos()


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("depth", [2, 3, 7])
def test_each_layer_uses_its_own_weights(depth: int, every: bool) -> None:
    torch.manual_seed(0)
    model = Stack(depth, every).eval()
    x = torch.randn(3, 6)
    ours = deplo.compile(model, (x,), target="cpu")
    assert ours.ir("tensor").count("func.call @layer") == depth
    with torch.no_grad():
        torch.testing.assert_close(ours(x), model(x))


def test_depth_adds_no_kernels() -> None:
    x = torch.randn(3, 6)
    kernels = [
        [k.source for k in deplo.compile(Stack(depth).eval(), (x,), target="sm_90a").kernels]
        for depth in (2, 5)
    ]
    assert kernels[0] == kernels[1]


def test_layers_of_different_shapes_stay_apart() -> None:
    class Widening(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps = nn.ModuleList(nn.Linear(n, n + 1) for n in (3, 4, 5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for step in self.steps:
                x = torch.sin(torch.cos(torch.tanh(step(x).sigmoid() + 1) * 2).exp()).neg()
            return x

    x = torch.randn(2, 3)
    model = Widening().eval()
    ours = deplo.compile(model, (x,), target="cpu")
    assert "func.call" not in ours.ir("tensor")
    with torch.no_grad():
        torch.testing.assert_close(ours(x), model(x))
