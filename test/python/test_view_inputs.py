"""Inputs of gradients that are views of dense memory are read as they lie."""

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode

from deplo.frontend.view_inputs import permuted, read_as_they_lie

aten = torch.ops.aten


def _graph(
    example: torch.Tensor, *, returns: bool = False, changes: bool = False, reads: bool = True
):
    """y = x.exp(), of an input that lies as an example does."""
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    if not reads:
        with FakeTensorMode() as mode:
            x.meta["val"] = mode.from_tensor(example)
        graph.output(())
        return graph
    y = graph.call_function(aten.exp.default, (x,))
    with FakeTensorMode() as mode:
        x.meta["val"] = mode.from_tensor(example)
        y.meta["val"] = x.meta["val"].exp()
    if changes:
        graph.call_function(aten.copy_.default, (x, y))
    graph.output((y, x) if returns else (y,))
    return graph


@pytest.mark.parametrize("order", [(1, 0), (0, 2, 1), (2, 0, 1), (0, 2, 1, 3)])
def test_a_call_hands_over_the_memory(order) -> None:
    base = torch.randn(*range(2, 2 + len(order)))
    x = base.permute(order)
    graph = _graph(x)
    orders = read_as_they_lie(graph)
    (given,) = permuted([x], orders)
    assert given.is_contiguous()
    assert given.data_ptr() == x.data_ptr()
    module = torch.fx.GraphModule(nn.Module(), graph)
    assert torch.equal(module(given)[0], x.exp())
    (placeholder,) = graph.find_nodes(op="placeholder")
    assert placeholder.meta["val"].shape == given.shape


IMAGES = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    "graph",
    [
        _graph(torch.randn(3, 4)),
        _graph(torch.randn(3, 8)[:, ::2].t()),
        _graph(torch.randn(1, 4).expand(3, 4)),
        _graph(torch.randn(3, 4).t(), returns=True),
        _graph(torch.randn(3, 4).t(), changes=True),
        _graph(torch.randn(3, 4).t(), reads=False),
        _graph(IMAGES),
    ],
    ids=["row by row", "with gaps", "repeated", "returned", "changed", "not read", "channels last"],
)
def test_others_stay_as_they_are(graph) -> None:
    nodes = len(graph.nodes)
    assert read_as_they_lie(graph) == {}
    assert len(graph.nodes) == nodes


def test_weights_are_not_copied_in_the_backward_pass(monkeypatch) -> None:
    """What a linear layer saves is the transpose of its weight; PyTorch copied it in each call."""
    model = nn.Sequential(
        nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 20), nn.Tanh(), nn.Linear(20, 10)
    )
    x = torch.randn(8, 40)
    found = []
    for function in (model, torch.compile(model, backend="deplo")):
        for _ in range(2):
            model.zero_grad()
            loss = function(x).square().mean()
            with torch.profiler.profile() as profile:
                loss.backward()
        copied = [e.input_shapes for e in profile.events() if e.name == "aten::clone"]
        found.append([p.grad for p in model.parameters()])
    assert not copied
    for eager, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, eager)
