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
        lambda x: x[1:].as_strided((2, 2), (1, 3)),
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


DYNAMIC = {
    "the second half": lambda x: x.chunk(2, 2)[1],
    "expanded": lambda x: x[:, :1].expand(-1, x.shape[0], -1),
    "expanded in front": lambda x: x.expand((2, *x.shape)),
    "flattened": lambda x: x.flatten(1),
    "split in halves": lambda x: x.view(x.shape[0], 2, -1, x.shape[2])[:, 1],
    "by strides": lambda x: x.as_strided((2, 2), (1, 3), 1),
    "of a result": lambda x: (x * 2, (x * 2).chunk(2, 2)[1]),
    "of a result that is returned": lambda x: (y := x * 2, y.chunk(2, 2)[1], y[1:]),
    "the strides of the input": lambda x: x + 1,
    "a result, expanded": lambda x: x.relu().expand((3, *x.shape)),
    "a result, transposed": lambda x: (x * x).transpose(0, 2),
}
LAYOUTS = {
    "row-major": lambda a, b, c: torch.randn(a, b, c),
    "transposed": lambda a, b, c: torch.randn(c, a, b).permute(1, 2, 0),
    "a part": lambda a, b, c: torch.randn(a, b + 2, c * 2)[:, 2:, ::2],
}


@pytest.mark.sample(16)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DYNAMIC)
def test_views_of_dynamic_sizes_lie_where_eager_has_them(name: str, layout: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(DYNAMIC[name], backend="deplo", dynamic=True)
    for shape in ((7, 4, 6), (5, 6, 8)):
        x = LAYOUTS[layout](*shape)
        try:
            eager = DYNAMIC[name](x)
        except RuntimeError:  # eager has no such view of this layout
            continue
        ours = compiled(x)
        for mine, theirs in zip(*map(tuple_of, (ours, eager)), strict=True):
            assert torch.equal(mine, theirs)
            assert mine.stride() == theirs.stride()
            assert shares(mine, x) == shares(theirs, x)


def tuple_of(value: object) -> tuple[torch.Tensor, ...]:
    return (value,) if isinstance(value, torch.Tensor) else tuple(value)


def test_a_second_length_makes_a_view_dynamic() -> None:
    """Dynamo takes a length for dynamic once it has seen two."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.chunk(2, 1)[1], backend="deplo")
    for length in (6, 8, 12):
        x = torch.arange(4.0 * length).view(4, length)
        assert torch.equal(compiled(x), x.chunk(2, 1)[1])


def test_a_view_by_strides_of_what_is_returned_runs_in_pytorch() -> None:
    """AOTAutograd makes it itself, of the result, with the strides and the offset that it gets."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 2
        return y, y.as_strided((2, 2), (1, 3), 5)

    torch._dynamo.reset()
    with pytest.warns(deplo.FallbackWarning, match="returned as a view of memory"):
        ours = torch.compile(program, backend="deplo")(X)
    for mine, theirs in zip(ours, program(X), strict=True):
        assert torch.equal(mine, theirs)
