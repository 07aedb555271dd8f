"""Kernels with several outputs: every stage computes what eager does, and each value once."""

import copy

import pytest
import torch
from stages import assert_stages_agree
from torch import nn
from torch.nn import functional as F

import deplo
from deplo.frontend.sources import Program as Source

GENERATOR = torch.Generator().manual_seed(0)

NASTY = [0.0, -0.0, torch.nan, torch.inf, -torch.inf, 3e38, 1e-45]


def normal(*shape):
    """Random numbers: a sum of products that overflows depends on its order."""
    return torch.randn(shape, generator=GENERATOR)


def filled(*shape):
    """Random numbers, the last of which are nasty."""
    values = normal(*shape)
    if values.numel() > 2 * len(NASTY):
        values.view(-1)[-len(NASTY) :] = torch.tensor(NASTY)
    return values


def normed(x, w):
    """A norm, and what its gradient needs."""
    mean = x.mean(-1, True)
    deviation = torch.rsqrt(((x - mean) ** 2).mean(-1, True) + 1e-5)
    y = (x - mean) * deviation * w
    return mean, deviation, y, F.silu(y)


def grouped(x):
    """The same in groups of channels."""
    y, mean, deviation = torch.ops.aten.native_group_norm(
        x, None, None, x.shape[0], x.shape[1], x[0, 0].numel(), 3, 1e-5
    )
    return y, mean, deviation, F.relu(y)


def halves(a, g):
    """What is rounded in two halves, each of which is a result."""
    gate = torch.sigmoid(a[:, 4:])
    left, right = gate * g, (1 - gate) * gate * a[:, :4] * g
    return left, right, torch.cat((left, right), 1).sum(0)


PROGRAMS = {
    "norm": (normed, filled(137, 19), torch.ones(19)),
    "a norm of few rows": (normed, filled(3, 19), torch.ones(19)),
    "a norm of one": (normed, filled(9, 1), torch.ones(1)),
    "a norm of no rows": (normed, torch.ones(0, 5), torch.ones(5)),
    "norm of groups": (grouped, filled(5, 6, 5, 7)),
    "norm of groups of two images": (grouped, filled(2, 6, 5, 7)),
    "linear": (
        lambda x, w: (F.linear(x, w), F.gelu(F.linear(x, w))),
        normal(33, 3),
        normal(7, 3),
    ),
    "convolution": (
        lambda x, w: (y := F.conv2d(x, w), y.relu()),
        normal(1, 2, 7, 9),
        normal(5, 2, 1, 2),
    ),
    "sums of columns": (lambda g, x: (g.sum(0), (g * x).sum(0)), filled(50, 23), filled(50, 23)),
    "of whole arrays": (lambda g, x: (g.sum(), (g * x).sum()), filled(5, 3), filled(5, 3)),
    "one axis": (lambda x: (x.exp(), x.exp() + 1, x.exp().sum()), filled(41)),
    "a scalar": (lambda x: (x.exp(), x.exp() + 1), torch.tensor(0.5)),
    "nothing": (lambda x: (x.exp(), x.exp() + 1), torch.ones(0, 3)),
    "shifted": (lambda x: (y := x.exp(), y.flip(1) + y, y.t().neg()), filled(6, 6)),
    "rows and their softmax": (
        lambda x: (x.softmax(1), x.log_softmax(1), x.amax(1)),
        filled(67, 13),
    ),
    "windows": (
        lambda x: (y := F.max_pool2d(x, 2), y.relu(), F.avg_pool2d(x, 2)),
        filled(2, 3, 8, 9),
    ),
    "conditions": (lambda x: (m := x > 0, torch.where(m, x, -x), m.sum(1)), filled(12, 13)),
    "halves": (halves, filled(9, 8), filled(9, 4)),
    "bf16": (lambda x: (y := x.bfloat16().exp(), y.float() + 1, y * 2), filled(5, 23)),
    "integers": (lambda x: (y := x * 3, y % 7, y.sum(0)), torch.arange(-49, 50).view(9, 11)),
}


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_every_stage_computes_what_eager_does(name, target, capsys):
    """Interpreted at each stage, and native on the CPU."""
    function, *args = PROGRAMS[name]
    program = deplo.compile(function, args, target=target)
    assert_stages_agree(program, Source(function, tuple(args)), capsys)
    if target == "cpu":
        for ours, eager in zip(program(*args), function(*args), strict=True):
            torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5, equal_nan=True)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_a_norm_that_a_gradient_needs_is_one_kernel(target):
    """With all that it saves."""
    args = torch.randn(512, 64), torch.randn(64)
    program = deplo.compile(normed, args, target=target)
    assert len(program.kernels) == 1
    if target == "cpu":
        for ours, eager in zip(program(*args), normed(*args), strict=True):
            torch.testing.assert_close(ours, eager)


LAYERS = {
    "layer norm": (nn.Sequential(nn.LayerNorm(24), nn.SiLU()), (50, 24)),
    "group norm": (nn.Sequential(nn.GroupNorm(3, 12), nn.SiLU()), (3, 12, 5, 7)),
    "batch norm": (nn.Sequential(nn.BatchNorm2d(6), nn.ReLU()), (4, 6, 5, 7)),
    "RMS norm": (nn.Sequential(nn.RMSNorm(24), nn.Tanh()), (50, 24)),
    "perceptron": (nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 8)), (50, 24)),
    "gated": (nn.Sequential(nn.Linear(24, 40), nn.GLU(), nn.Linear(20, 8)), (50, 24)),
    "convolutions": (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.MaxPool2d(2)),
        (2, 3, 11, 12),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_are_those_of_eager(name):
    """Of layers whose forward pass saves what it gives; against float64."""
    torch.manual_seed(0)
    layer, shape = LAYERS[name]
    layer, x = copy.deepcopy(layer), torch.randn(shape)
    exact = copy.deepcopy(layer).double()
    torch._dynamo.reset()
    ours, theirs = x.clone().requires_grad_(), x.double().requires_grad_()
    torch.compile(layer, backend="deplo")(ours).square().sum().backward()
    exact(theirs).square().sum().backward()
    pairs = [(ours.grad, theirs.grad)]
    pairs += [(a.grad, b.grad) for a, b in zip(layer.parameters(), exact.parameters(), strict=True)]
    for actual, expected in pairs:
        torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-4)
