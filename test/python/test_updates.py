"""Inputs that a compiled function changes: what they hold, where, and what else is left alone."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._dynamo.backends.common import aot_autograd

import deplo
from deplo.analysis.orders import runs_in_order
from deplo.errors import FallbackWarning, UsageError
from deplo.frontend.aten_graph import capture_graph
from deplo.frontend.decompositions import decompositions
from deplo.program import Program, choose_target

PLACE = torch.tensor([3])


def both(function, make, calls=3, **options):
    """Call a function and its compiled twin on inputs of their own, and compare results and inputs."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="deplo", **options)
    torch.manual_seed(0)
    mine = make()
    torch.manual_seed(0)
    eager = make()
    kept = []
    for _ in range(calls):
        results = [f(*args) for f, args in ((compiled, mine), (function, eager))]
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4, equal_nan=True)
        torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-4, equal_nan=True)
        kept.append(results)
    for results in kept:  # what was returned before is as it is in eager, too
        torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4, equal_nan=True)


def caches(*shape, **kind):
    return lambda: (torch.randn(shape, **kind), torch.randn(*shape[:2], 1, shape[3], **kind))


def written(cache, k):
    cache.index_copy_(2, PLACE, k)
    return (cache * 2).sum(-1)


def read_before(cache, k):
    before = cache.sum(-1)
    cache.index_copy_(2, PLACE, k)
    return before, cache.sum(-1)


def returned(cache, k):
    return cache.index_copy_(2, PLACE, k)


def copied(cache, k):
    return cache.index_copy_(2, PLACE, k).clone()


def twice(cache, k):
    cache.index_copy_(2, PLACE, k)
    cache.index_copy_(2, PLACE + 1, k * 2)
    return cache.exp().sum()


def added(cache, k):
    cache.scatter_add_(2, (PLACE.expand_as(k)), k)
    return cache[:, :, 3] + 1


def view_returned(cache, k):
    cache.index_copy_(2, PLACE, k)
    return cache[:, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "function", [written, read_before, returned, copied, twice, added, view_returned]
)
def test_a_cache_is_written_to(function, dtype):
    both(function, caches(2, 3, 9, 4, dtype=dtype))


def test_a_strided_cache_is_written_to():
    def make():
        return torch.randn(3, 2, 4, 9).permute(1, 0, 3, 2), torch.randn(2, 3, 1, 4)

    both(written, make, calls=9)


def test_caches_that_share_memory():
    def function(whole, k):
        first, second = whole[:2], whole[1:]
        first.index_copy_(2, PLACE, k)
        second.mul_(2)
        return first.sum(), second.sum()

    both(function, lambda: (torch.randn(3, 3, 9, 4), torch.randn(2, 3, 1, 4)))
    both(
        lambda a, b, k: (a.index_copy_(2, PLACE, k).sum(), b.sum()),
        lambda: (*(lambda w: (w[:2], w[1:]))(torch.randn(3, 3, 9, 4)), torch.randn(2, 3, 1, 4)),
        options={"fallback": "error"},
    )


def test_elements_are_changed_and_statistics_kept():
    def function(x, counter):
        x.mul_(2).add_(1)
        counter += 1
        return x.sum(), counter * 2

    both(function, lambda: (torch.randn(5, 7), torch.tensor(0)))
    norm, twin = nn.BatchNorm1d(6), nn.BatchNorm1d(6)
    compiled = torch.compile(norm, backend="deplo")
    for _ in range(3):
        x = torch.randn(4, 6)
        compiled(x).square().sum().backward()
        twin(x).square().sum().backward()
    torch.testing.assert_close(dict(norm.named_buffers()), dict(twin.named_buffers()))
    torch.testing.assert_close(norm.weight.grad, twin.weight.grad)


class Layer(nn.Module):
    """Attention to a cache that grows by a position in each call."""

    def __init__(self, length: int):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(2, 4, length, 4))

    def forward(self, x, place):
        q, k, v = (t.view(2, 1, 4, 4).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        self.keys.index_copy_(2, place, k)
        self.values.index_copy_(2, place, v)
        seen = torch.arange(self.keys.shape[2]) <= place
        mixed = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=seen[None])
        return x + self.out(mixed.transpose(1, 2).reshape(2, 1, 16))


def test_layers_that_repeat_keep_their_caches_where_they_are():
    torch.manual_seed(0)
    model = nn.ModuleList([Layer(20) for _ in range(3)])
    twin = nn.ModuleList([Layer(20) for _ in range(3)])
    twin.load_state_dict(model.state_dict())

    def run(layers, x, place):
        for layer in layers:
            x = layer(x, place)
        return x

    compiled = torch.compile(lambda x, place: run(model, x, place), backend="deplo")
    places = [b.data_ptr() for b in model.buffers()]
    with torch.no_grad():
        for step in range(8):
            x, place = torch.randn(2, 1, 16), torch.tensor([step])
            torch.testing.assert_close(compiled(x, place), run(twin, x, place))
    torch.testing.assert_close(dict(model.named_buffers()), dict(twin.named_buffers()))
    assert places == [b.data_ptr() for b in model.buffers()]


def graph_of(function, *args):
    """The graph that AOTAutograd hands to the backend."""
    graphs = []

    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward

    aot = aot_autograd(
        fw_compiler=keep, decompositions=decompositions(), keep_inference_input_mutations=True
    )
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(function, backend=aot)(*args)
    return graphs[0]


@pytest.mark.parametrize(
    ("function", "in_place"),
    [
        (written, True),
        (read_before, True),
        (twice, True),
        (added, True),
        (copied, False),  # the clone is the value itself, which is the caller's to keep
        (lambda cache, k: cache.mul_(2).sum(), False),  # no scatter
    ],
)
def test_only_what_is_scattered_is_written_in_place(function, in_place):
    captured = capture_graph(graph_of(function, *caches(2, 3, 9, 4)()))
    assert len(captured.updates) == 1
    program = Program(captured, choose_target("cpu", captured))
    assert bool(program.plan.updated) == in_place


def test_an_index_outside_stops_the_call():
    compiled = torch.compile(lambda c, k, p: c.index_copy_(2, p, k).sum(), backend="deplo")
    cache, k = caches(2, 3, 9, 4)()
    with pytest.raises(IndexError, match="out of range"):
        compiled(cache, k, torch.tensor([9]))


def test_a_call_of_pytorch_beside_it_and_sizes_that_change():
    def function(cache, k):
        cache.index_copy_(2, PLACE, torch.special.bessel_j1(k * 0.1))
        return cache.sum(-1)

    with pytest.warns(FallbackWarning):
        both(function, caches(2, 3, 9, 4), calls=9)
    both(written, caches(2, 3, 9, 4), dynamic=True)
    with pytest.raises(IndexError, match="out of range"):
        deplo.compile(lambda c, p: c.index_fill(0, p, 1.0), (torch.randn(5), PLACE), target="cpu")(
            torch.randn(5), PLACE + 9
        )


def test_a_cache_of_complex_numbers():
    both(
        lambda c, k: c.index_copy_(2, PLACE, k).real.sum(),
        caches(2, 3, 9, 4, dtype=torch.complex64),
    )


def test_an_unknown_target_is_a_usage_error():
    with pytest.raises(UsageError, match="unknown target 'foo'"):
        runs_in_order("foo")


# --------------------------------------------------------------------------- between forward and backward

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a result is saved": torch.sigmoid,
    "the input is saved": torch.sin,
    "eager saves two results": lambda x: x.sigmoid().tanh(),
    "eager saves results of one input": lambda x: x.exp() + x.sigmoid(),
    "nothing is saved": lambda x: x * 2,
}

CHANGES: dict[str, Callable[[torch.Tensor], object]] = {
    "all": lambda x: x.add_(1),
    "a part": lambda x: x[0].mul_(2),
    "detached": lambda x: x.detach().neg_(),
}


def gradient_of(function: Callable[..., torch.Tensor], change: str, leaf: bool) -> torch.Tensor | None:
    """The gradient where the input is changed before it is computed; None if autograd refuses it."""
    x = torch.linspace(0.5, 1.5, 12).reshape(3, 4).requires_grad_()
    given = x if leaf else x * 1
    result = function(given)
    with torch.no_grad():
        CHANGES[change](given)
    try:
        (result * torch.arange(12.0).reshape(3, 4)).sum().backward()
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        return None
    return x.grad


@pytest.mark.sample(8)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_change_before_backward_is_refused_or_leaves_the_gradient(
    name: str, change: str, leaf: bool, dynamic: bool
) -> None:
    """It is refused wherever eager refuses it, and where the partition saves what eager does not."""
    torch._dynamo.reset()
    ours = torch.compile(FUNCTIONS[name], backend="deplo", dynamic=dynamic)
    actual, eager = (gradient_of(f, change, leaf) for f in (ours, FUNCTIONS[name]))
    refused = name.startswith("eager") or eager is None
    assert (actual is None) == refused
    if actual is not None:
        torch.testing.assert_close(actual, eager)


def scaled(x, buffer):
    scale = buffer * 2
    buffer.mul_(0.5)
    return (x * scale).sum()


def copied(x, buffer):
    with torch.no_grad():
        kept = buffer.view(-1).clone()
        buffer.add_(1)
    return (x * kept.view(3, 4).tanh()).sum(), buffer


def transposed(x, buffer):
    scale = (buffer.t() * 2).exp().t()
    with torch.no_grad():
        buffer[0] = x[0]
    return (x * scale).sum(), buffer[1:]


def between_changes(x, buffer):
    with torch.no_grad():
        buffer.add_(1)
        kept = buffer.clone()
        buffer.copy_(x.detach())
    return (x * kept).sum()


def checkpointed(x, buffer):
    scale = buffer * 2
    buffer.mul_(0.5)
    return (torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False) * scale).sum()


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("function", [scaled, copied, transposed, between_changes, checkpointed])
def test_a_gradient_is_of_elements_from_before_the_forward_pass_changed_them(
    function, dtype, dynamic
):
    """Both of two forward passes are differentiated after the second, too."""
    torch._dynamo.reset()
    found = []
    for call in (torch.compile(function, backend="deplo", dynamic=dynamic), function):
        x = torch.linspace(0.5, 1.5, 12, dtype=dtype).reshape(3, 4).requires_grad_()
        buffer = torch.linspace(-1, 1, 12, dtype=dtype).reshape(3, 4)
        passes = [call(x, buffer), call(x, buffer)]
        losses = [each[0] if isinstance(each, tuple) else each for each in passes]
        gradients = [torch.autograd.grad(loss, x)[0] for loss in losses]
        found.append((passes, gradients, buffer))
    torch.testing.assert_close(*found)


class Codebook(nn.Module):
    """Vectors that follow the means of what is nearest to them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("vectors", torch.linspace(-1, 1, 32).reshape(8, 4))

    def forward(self, x):
        nearest = torch.cdist(x, self.vectors).argmin(1)
        if self.training:
            with torch.no_grad():
                found = F.one_hot(nearest, 8).to(x.dtype)
                self.vectors.lerp_(found.T @ x / found.sum(0).clamp(min=1)[:, None], 0.1)
        return (x - self.vectors[nearest].detach()).square().mean() + (
            x @ self.vectors.T
        ).sigmoid().mean()


def test_a_codebook_is_trained():
    torch._dynamo.reset()
    model = Codebook()
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, backend="deplo")
    for step in range(3):
        x = torch.linspace(-1, 1 + step, 24).reshape(6, 4).requires_grad_()
        torch.testing.assert_close(*(torch.autograd.grad(each(x), x) for each in (compiled, twin)))
    torch.testing.assert_close(compiled.vectors, twin.vectors)
