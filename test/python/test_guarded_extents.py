"""Products of sizes that only Dynamo's guards say are equal: what reads both is a kernel."""

import pytest
import torch
import torch.nn.functional as F

from deplo.frontend.guarded_extents import pad_to_guarded_extents

IGNORING = {"ignore_index": -1}
WEIGHT = torch.rand(10)


def loss(**options):
    return lambda x, t: F.cross_entropy(x.view(-1, 10), t.view(-1), **IGNORING, **options)


def target_of(t):
    return t.view(-1, 1).clamp(min=0)


PROGRAMS = {
    "mean": loss(),
    "sum": loss(reduction="sum"),
    "each": loss(reduction="none"),
    "weights": loss(weight=WEIGHT),
    "smoothing": loss(label_smoothing=0.1),
    "gather": lambda x, t: (
        x.view(-1, 10).exp().gather(1, target_of(t)) * x.view(-1, 10) * t.view(-1, 1)
    ),
    "scatter": lambda x, t: x.view(-1, 10).scatter(1, target_of(t), 3.0) * t.view(-1, 1),
    "scatter_add": lambda x, t: (
        x.view(-1, 10).scatter_add(1, target_of(t), t.view(-1, 1) * 1.0) * t.view(-1, 1)
    ),
    "pointwise": lambda x, t: x.view(-1, 10) * t.view(-1, 1) + t.view(-1)[:, None],
    "where": lambda x, t: torch.where(t.view(-1) > 3, x.view(-1, 10).sum(1), 0.0),
}

GRADIENT_NEEDS_SIZES = {"gather", "where"}
"""Programs whose backward pass gets products of sizes, of which no axis says the factors."""

SHAPES = (((2, 16), (2, 16)), ((3, 9), (3, 9)), ((4, 6), (8, 3)))


def inputs(rows, targets, train):
    torch.manual_seed(0)
    x, t = torch.randn(*rows, 10), torch.randint(-1, 10, targets)
    return [(x.clone().requires_grad_(train), t) for _ in range(2)]


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("name", "dynamic", "train"),
    [
        *((name, True, False) for name in PROGRAMS),
        *((name, True, True) for name in PROGRAMS if name not in GRADIENT_NEEDS_SIZES),
        ("mean", None, True),
    ],
)
def test_nothing_runs_in_pytorch(name, dynamic, train):
    torch._dynamo.reset()
    program = PROGRAMS[name]
    compiled = torch.compile(
        program, backend="deplo", dynamic=dynamic, options={"fallback": "error"}
    )
    for rows, targets in SHAPES:
        mine, twin = inputs(rows, targets, train)
        made, wanted = compiled(*mine), program(*twin)
        torch.testing.assert_close(made, wanted)
        if train:
            made.sum().backward()
            wanted.sum().backward()
            torch.testing.assert_close(mine[0].grad, twin[0].grad)


def test_sizes_that_no_guard_relates_stay():
    graphs = []

    def backend(module, _):
        graphs.append((list(module.graph.nodes), module.graph))
        return module.forward

    torch._dynamo.reset()
    compiled = torch.compile(lambda x, i: x[:, 0].exp() + i.sum(), backend=backend, dynamic=True)
    compiled(torch.randn(4, 3), torch.arange(6))
    ((nodes, graph),) = graphs
    pad_to_guarded_extents(graph)
    assert list(graph.nodes) == nodes
