"""Sweeps over several axes that become one: every stage computes the same, on odd shapes and strides."""

import pytest
import torch
from stages import assert_stages_agree
from torch.nn import functional

import deplo
from deplo.frontend.sources import Program as Source

NASTY = [0.0, -0.0, torch.nan, torch.inf, -torch.inf, 3e38, 1e-45]


def filled(*shape):
    """Random numbers, the last of which are nasty."""
    values = torch.randn(shape)
    if values.numel() > 2 * len(NASTY):
        values.view(-1)[-len(NASTY) :] = torch.tensor(NASTY)
    return values


PROGRAMS = {
    "planes": (lambda x: x.sum((2, 3)), filled(4, 6, 8, 16)),
    "odd planes": (lambda x: x.mean((2, 3)), filled(3, 5, 7, 11)),
    "everything": (lambda x: x.amax(), filled(3, 1, 7, 13)),
    "the first axes": (lambda x: x.sum((0, 1)), filled(5, 7, 3)),
    "apart": (lambda x: x.sum((0, 2)), filled(5, 7, 3)),
    "transposed": (lambda x: x.permute(0, 2, 1).sum((1, 2)), filled(5, 7, 3)),
    "half of a row": (lambda x: x[:, :, :5].sum((1, 2)), filled(5, 7, 9)),
    "padded": (lambda x: functional.pad(x, (1, 2)).sum((1, 2)), filled(5, 7, 9)),
    "two operands": (lambda x: (x * x.flip(0)).sum((1, 2)), filled(5, 7, 9)),
    "flipped": (lambda x: x.flip(1, 2).sum((1, 2)), filled(5, 7, 9)),
    "none": (lambda x: x.sum((1, 2)), torch.ones(3, 0, 4)),
    "bools": (lambda x: (x > 0).any(2).any(1), filled(3, 5, 7)),
    "integers": (lambda x: x.sum((1, 2)), torch.randint(-(2**62), 2**62, (3, 5, 7))),
    "norm of planes": (lambda x: functional.layer_norm(x, (7, 9)), filled(5, 3, 7, 9)),
    "norm of groups": (lambda x: functional.group_norm(x, 3), filled(2, 6, 5, 7)),
    "norm of groups of one": (lambda x: functional.group_norm(x, 6), filled(2, 6, 4, 8)),
    "softmax of planes": (
        lambda x: (
            (x - x.amax((1, 2), True)).exp() / (x - x.amax((1, 2), True)).exp().sum((1, 2), True)
        ),
        filled(3, 4, 8),
    ),
}


@pytest.mark.sample(17)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_every_stage_computes_what_eager_does(name, target, capsys):
    program, x = PROGRAMS[name]
    compiled = deplo.compile(program, (x,), target=target)
    assert_stages_agree(compiled, Source(program, (x,)), capsys)
    if target == "cpu":
        torch.testing.assert_close(compiled(x), program(x), rtol=1e-5, atol=1e-5, equal_nan=True)


def test_threads_of_a_gpu_share_the_sweep_of_planes():
    program, x = PROGRAMS["norm of planes"]
    source = deplo.compile(program, (x,), target="sm_90a").kernels[0].source
    assert "__shfl" in source or "__syncthreads" in source


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_outer_axis_may_be_dynamic(rows):
    size = torch.export.Dim("rows", min=1, max=64)
    compiled = deplo.compile(
        lambda x: x.sum((0, 1)), (torch.randn(3, 5),), dynamic_shapes=({0: size},)
    )
    x = torch.randn(rows, 5)
    torch.testing.assert_close(compiled(x), x.sum())
