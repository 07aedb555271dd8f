"""Outputs that are views in eager are views here: they share memory and have eager's strides."""

import pytest
import torch

import deplo

X = torch.arange(24.0).reshape(2, 3, 4)


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors lie in the same memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.permute(2, 0, 1),
        lambda x: x[:, 1],
        lambda x: x[..., ::2].transpose(0, 1),
        lambda x: x.reshape(6, 4).t(),
        lambda x: x.unsqueeze(1).expand(2, 5, 3, 4),
        lambda x: x.diagonal(dim1=1, dim2=2),
        lambda x: x.split(2, dim=2)[1],
        lambda x: x.unbind(1)[2].squeeze(),
        lambda x: x.unfold(2, 2, 1),
    ],
)
def test_a_view_of_an_input(view) -> None:
    program = deplo.compile(view, (X,))
    ours, eager = program(X), view(X)
    assert shares(ours, X)
    assert (ours.stride(), ours.storage_offset()) == (eager.stride(), eager.storage_offset())
    assert torch.equal(ours, eager)
    assert not program.kernels


def test_a_view_of_an_input_that_is_strided_at_the_call() -> None:
    program = deplo.compile(lambda x: (x.transpose(1, 2), x.reshape(-1), x + 1), (X,))
    strided = torch.arange(24.0).reshape(3, 4, 2).permute(2, 0, 1)
    turned, flat, more = program(strided)
    assert shares(turned, strided)
    assert torch.equal(turned, strided.transpose(1, 2))
    assert torch.equal(flat, strided.reshape(-1))
    assert torch.equal(more, strided + 1)


def test_views_of_one_result_share_it() -> None:
    def program(x):
        y = x * 2
        return y, y[0], y.permute(1, 2, 0), y

    ours, eager = deplo.compile(program, (X,))(X), program(X)
    for mine, theirs in zip(ours, eager, strict=True):
        assert shares(mine, ours[0])
        assert mine.stride() == theirs.stride()
        assert torch.equal(mine, theirs)
    assert ours[3] is ours[0]
    ours[1].fill_(7)
    assert torch.equal(ours[0][0], torch.full((3, 4), 7.0))


def test_a_parameter_that_is_returned_is_the_parameter() -> None:
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 4))

        def forward(self, x):
            return x @ self.weight.t(), self.weight.t()

    model = Tied()
    _, weight = deplo.compile(model, (torch.randn(2, 4),))(torch.randn(2, 4))
    assert shares(weight, model.weight)
    assert weight.stride() == (1, 4)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x * 2).permute(2, 0, 1),
        lambda x: x.permute(2, 0, 1) * 2,
        lambda x: (x.permute(0, 2, 1) + 1).unsqueeze(0),
        lambda x: (x + 1).sum(0, keepdim=True).expand(5, 3, 4),
    ],
)
def test_results_have_the_strides_of_eager(program) -> None:
    ours, eager = deplo.compile(program, (X,))(X), program(X)
    assert ours.stride() == eager.stride()
    assert torch.equal(ours, eager)


def test_a_part_of_a_result_is_computed_alone() -> None:
    """The last of many positions: nobody has the others."""
    weight = torch.randn(7, 4)
    compiled = deplo.compile(lambda x: (x @ weight.t())[:, -1], (X,))
    assert torch.allclose(compiled(X), (X @ weight.t())[:, -1])
    (result,) = compiled.stage("loop").body.block.last_op.body.block.last_op.operands
    assert tuple(result.type.get_shape()) == (2, 7)
