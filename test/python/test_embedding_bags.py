"""`F.embedding_bag` is kernels: sums, means and maxima of rows by bags, as eager's."""

import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import deplo

INDICES = torch.tensor([1, 2, 4, 5, 4, 3, 2, 9])
NAN = float("nan")


def compiled(function, args, entry):
    """The function compiled to kernels alone."""
    if entry == "deplo.compile":
        return deplo.compile(function, args, target="cpu")
    torch._dynamo.reset()
    return torch.compile(function, backend="deplo", options={"fallback": "error"})


WHOLE = list(itertools.product(("sum", "mean", "max"), (None, 2, -1), ("rows", "offsets", "last")))


@pytest.mark.sample(8)
@pytest.mark.parametrize("entry", ["deplo.compile", "torch.compile"])
@pytest.mark.parametrize(("mode", "padding", "bags"), WHOLE)
def test_bags(mode, padding, bags, entry):
    weight = torch.randn(10, 3)
    weight[5, 0] = weight[1, 1] = NAN
    offsets = torch.tensor([0, 0, 3, 7, 8] + [8] * (bags == "last"))  # empty ones, too
    indices = INDICES.view(2, 4) if bags == "rows" else INDICES
    more = () if bags == "rows" else (offsets,)

    def function(indices, weight, *offsets):
        options = {"include_last_offset": bags == "last", "padding_idx": padding}
        return F.embedding_bag(indices, weight, *offsets, mode=mode, **options)

    args = indices, weight, *more
    actual = compiled(function, args, entry)(*args)
    torch.testing.assert_close(actual, function(*args), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("entry", ["deplo.compile", "torch.compile"])
def test_factors_of_indices(entry, dtype):
    args = INDICES, torch.randn(10, 3, dtype=dtype), torch.tensor([0, 5]), torch.rand(8).to(dtype)

    def function(indices, weight, offsets, factors):
        return F.embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=factors)

    torch.testing.assert_close(compiled(function, args, entry)(*args), function(*args))


def test_training_and_other_lengths():
    layer, twin = nn.EmbeddingBag(10, 3, padding_idx=1), nn.EmbeddingBag(10, 3, padding_idx=1)
    twin.load_state_dict(layer.state_dict())
    torch._dynamo.reset()
    program = torch.compile(layer, backend="deplo", options={"fallback": "error"})
    for length in (8, 5, 7):
        offsets = torch.tensor([0, 2, 2])
        results = [f(INDICES[:length], offsets) for f in (program, twin)]
        torch.testing.assert_close(*results)
        for result in results:
            result.square().sum().backward()
        torch.testing.assert_close(layer.weight.grad, twin.weight.grad)


@pytest.mark.parametrize("offsets", [[1, 4], [0, 9], [-1, 4]])
def test_offsets_beyond_the_indices_are_refused(offsets):
    args = INDICES, torch.randn(10, 3), torch.tensor([0, 4])
    program = deplo.compile(F.embedding_bag, args, target="cpu")
    with pytest.raises(RuntimeError, match="out of"):
        program(*args[:2], torch.tensor(offsets))
    with pytest.raises(RuntimeError, match="out of"):
        program(INDICES + 1, *args[1:])


@pytest.mark.parametrize("classes", [5, 16])
@pytest.mark.parametrize("entry", ["deplo.compile", "torch.compile"])
def test_one_hot_is_a_kernel_that_checks_its_classes(entry, classes):
    x = torch.tensor([[0, 3], [4, 1]])
    program = compiled(lambda x: F.one_hot(x, classes) * 2, (x,), entry)
    torch.testing.assert_close(program(x), F.one_hot(x, classes) * 2)
    with pytest.raises(RuntimeError, match="out of range"):
        program(x - 1)
