"""Strides, views and shared memory of results are eager's, from both entry points."""

import random
from collections.abc import Callable
from typing import Any, TypeGuard

import pytest
import torch
import torch.nn.functional as F
from opinfo import clone, entries, full_name
from torch.utils import _pytree as pytree

import deplo

ENTRY_POINTS = ("compile", "torch.compile")


def compiled(entry: str, program: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A program compiled through an entry point, with calls of PyTorch where they are needed."""
    if entry == "compile":
        return deplo.compile(program, args, kwargs, fallback="eager")
    torch._dynamo.reset()
    return torch.compile(program, backend="deplo")


def strides_of(value: torch.Tensor) -> list[int]:
    """The strides that matter."""
    pairs = zip(value.stride(), value.shape, strict=True) if value.numel() else ()
    return [stride for stride, n in pairs if n > 1]


def memory_of(tensors: list[torch.Tensor], inputs: list[torch.Tensor]) -> list[int]:
    """For each tensor, the first of all, inputs in front, that has its memory."""
    known: dict[int, int] = {}
    places = [
        known.setdefault(value.untyped_storage().data_ptr() or id(value), place)
        for place, value in enumerate([*inputs, *tensors])
    ]
    return places[len(inputs) :]


def is_strided(value: Any) -> TypeGuard[torch.Tensor]:
    """Whether it is a tensor that is not sparse."""
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def check(ours: Any, eager: Any, our_inputs: Any, eager_inputs: Any) -> None:
    """Each result lies as eager's, shares memory as it does, and is a view only where it is one."""
    mine, theirs, given, known = (
        [leaf for leaf in pytree.tree_leaves(tree) if is_strided(leaf)]
        for tree in (ours, eager, our_inputs, eager_inputs)
    )
    assert list(map(strides_of, mine)) == list(map(strides_of, theirs))
    assert memory_of(mine, given) == memory_of(theirs, known)
    for value, expected in zip(mine, theirs, strict=True):
        assert expected._is_view() or not value._is_view()


# --------------------------------------------------------------------------- all operators


def transposed(value: Any) -> Any:
    """A copy that lies in memory with its axes in reverse order."""
    if not is_strided(value) or value.ndim < 2:
        return clone(value)
    axes = list(reversed(range(value.ndim)))
    return value.detach().permute(axes).contiguous().permute(axes)


def channels_last(value: Any) -> Any:
    """A copy with its channels last, if it is an image or a volume."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if not is_strided(value) or value.ndim not in formats:
        return clone(value.detach() if is_strided(value) else value)
    return value.detach().clone(memory_format=formats[value.ndim])


LAYOUTS = {"transposed": transposed, "channels last": channels_last}

NOT_AS_EAGER = {
    "argwhere": "results with an extent that depends on values are row-major, eager's is column-major",
    "_unsafe_view": "it gives memory of its argument, which its schema denies",
    "nanquantile": "it changes its result's axes in place, which export traces as views",
    "nn.functional.interpolate.nearest": "PyTorch's rule for lines, traced for a backend, has other strides",
    "nn.functional.interpolate.nearest-exact": "the same",
    "nn.functional.upsample_nearest": "the same",
    "normal": "it draws numbers in row-major order from means in any other",
    "quantile": "as nanquantile",
    "unsafe_chunk": "as _unsafe_view",
    "unsafe_split": "as _unsafe_view",
}
"""Entries whose results lie otherwise, and why."""

ENTRIES = [op for op in entries(torch.float32) if full_name(op) not in NOT_AS_EAGER]


def sample_of(op: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of an entry's sample with most axes."""
    torch.manual_seed(20)
    random.seed(20)
    samples = list(op.sample_inputs("cpu", torch.float32))
    if not samples:
        pytest.skip("the entry has no samples here")
    chosen = max(samples, key=lambda s: s.input.ndim if isinstance(s.input, torch.Tensor) else 0)
    return (chosen.input, *chosen.args), dict(chosen.kwargs)


@pytest.mark.sample(20)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", ENTRIES, ids=full_name)
def test_an_operator(op: Any, layout: str, entry: str) -> None:
    arguments = sample_of(op)
    theirs = pytree.tree_map(LAYOUTS[layout], arguments)
    ours = pytree.tree_map(LAYOUTS[layout], arguments)

    def program(*args: Any, **kwargs: Any) -> Any:
        return op.op(*args, **kwargs)

    with torch.no_grad():
        try:
            eager = program(*theirs[0], **theirs[1])
        except Exception as error:
            pytest.skip(f"eager has no such call: {type(error).__name__}")
        try:
            result = compiled(entry, program, *ours[0], **ours[1])(*ours[0], **ours[1])
        except deplo.DeploError as error:
            pytest.skip(f"refused: {str(error).splitlines()[0]}")
    check(result, eager, ours, theirs)


# --------------------------------------------------------------------------- changes of results in place

X = torch.rand(2, 3, 4)
IMAGE = torch.rand(2, 3, 5, 5).to(memory_format=torch.channels_last)
WEIGHT = torch.rand(3, 4, 2, requires_grad=True)
LINEAR = torch.nn.Linear(4, 5)
CONV = torch.nn.Conv2d(3, 3, 3, padding=1).to(memory_format=torch.channels_last)

RESULTS: dict[str, tuple[Callable[..., Any], torch.Tensor]] = {
    "channels last": (CONV, IMAGE),
    "permuted": (lambda x: x.permute(1, 2, 0) * WEIGHT, X),
    "a transpose": (lambda x: LINEAR(x).mT, X),
    "a part": (lambda x: LINEAR(x)[:, :2], X),
    "t_": (lambda x: LINEAR(x[0]).t_(), X),
    "unsqueeze_": (lambda x: (x[0] * WEIGHT[..., 0]).unsqueeze_(0), X),
    "both orders": (lambda x: ((y := LINEAR(x).mT * 2), y.contiguous()), X),
    "detached": (lambda x: ((y := x.permute(1, 2, 0) * WEIGHT), y.detach()), X),
    "a result and a part": (lambda x: ((y := x.permute(1, 2, 0) * WEIGHT), y[0]), X),
    "twice": (lambda x: ((y := LINEAR(x[0])).transpose_(0, 1), y), X),
}

CHANGES: dict[str, Callable[[torch.Tensor], object]] = {
    "relu_": lambda y: y.relu_(),
    "add_": lambda y: y.add_(1),
    "copy_": lambda y: y.copy_(torch.ones(())),
    "transpose_": lambda y: y.transpose_(0, -1),
    "a part": lambda y: y[0].mul_(2),
}

PARAMETERS = [WEIGHT, *LINEAR.parameters(), *CONV.parameters()]


def outcome(program: Callable[..., Any], x: torch.Tensor, change: str, place: int) -> list[Any]:
    """The results after one was changed, and the gradients of the sum of their squares."""
    for parameter in PARAMETERS:
        parameter.grad = None
    results = list(r) if isinstance(r := program(x), tuple) else [r]
    CHANGES[change](results[place])
    differentiable = [r for r in results if r.requires_grad]
    if differentiable:
        sum((r * r).sum() for r in differentiable).backward()  # type: ignore[union-attr]
    return [*[r.detach() for r in results], *[p.grad for p in PARAMETERS]]


@pytest.mark.sample(12)
@pytest.mark.parametrize("mode", ["training", "inference", "dynamic training", "compile"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_may_be_changed_in_place(name: str, change: str, mode: str) -> None:
    program, x = RESULTS[name]
    torch._dynamo.reset()
    if mode == "compile":
        ours = deplo.compile(program, (x,))
    else:
        ours = torch.compile(program, backend="deplo", dynamic="dynamic" in mode or None)
    count = len(r) if isinstance(r := program(x), tuple) else 1
    for place in range(count):
        with torch.set_grad_enabled("training" in mode):
            expected = outcome(program, x, change, place)
            actual = outcome(ours, x, change, place)
        torch.testing.assert_close(actual, expected)
        for mine, theirs in zip(actual[:count], expected, strict=False):
            assert strides_of(mine) == strides_of(theirs)


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("change", ["t_", "transpose_", "swapaxes_", "unsqueeze_", "squeeze_"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_axes_changed_in_place_are_of_all_results(change: str, dynamic: bool, entry: str) -> None:
    axes = {"t_": (), "unsqueeze_": (0,), "squeeze_": ()}.get(change, (0, 1))

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x * 2
        return y, getattr(y, change)(*axes), x + 1

    x = torch.rand(4, 5)
    torch._dynamo.reset()
    if entry == "compile":
        sizes = {axis: torch.export.Dim(f"n{axis}", min=2, max=99) for axis in range(2)}
        ours = deplo.compile(program, (x,), dynamic_shapes=(sizes,) if dynamic else None)
    else:
        ours = torch.compile(program, backend="deplo", dynamic=dynamic)
    for given in (x, torch.rand(3, 8), x) if dynamic else (x, x):
        actual, expected = ours(given), program(given)
        check(actual, expected, given, given)
        assert actual[0] is actual[1]
        torch.testing.assert_close(actual, expected)


# --------------------------------------------------------------------------- kinds of results

PAIRS = {
    "copysign": torch.copysign,
    "floor_divide": torch.floor_divide,
    "floor rounding": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "xlogy": torch.xlogy,
    "xlog1py": torch.special.xlog1py,
    "addition": torch.add,
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("name", PAIRS)
def test_pairs_of_operands_in_other_orders(name: str, entry: str) -> None:
    x = torch.rand(2, 5, 4).permute(2, 1, 0)
    for y in (torch.rand(5, 2), torch.rand(2, 5).t(), torch.rand(4, 2, 5).mT, torch.rand(2)):

        def program(x: torch.Tensor, y: torch.Tensor, name: str = name) -> Any:
            return (z := PAIRS[name](x, y)), z.relu(), z.mT + x.mT

        ours, eager = compiled(entry, program, x, y)(x, y), program(x, y)
        check(ours, eager, (x, y), (x, y))
        torch.testing.assert_close(ours, eager)


IMAGES = {
    "batch norm": lambda x: F.batch_norm(x, torch.zeros(6), torch.ones(6)),
    "batch norm of this batch": lambda x: F.batch_norm(x, None, None, training=True),
    "channel shuffle": lambda x: F.channel_shuffle(x, 3),
    "circular padding": lambda x: F.pad(x, (1, 1, 2, 0), mode="circular"),
    "nearest": lambda x: F.interpolate(x, scale_factor=2),
    "pooled": lambda x: F.adaptive_avg_pool2d(x, 1),
    "scatter": lambda x: x.select_scatter(x[:, 0] + 1, 1, 2),
    "slice scatter": lambda x: x.slice_scatter(x[:, 1:3] + 1, 1, 0, 2),
    "transposed convolution": lambda x: F.conv_transpose2d(x, torch.ones(6, 2, 3, 3), stride=2),
    "pooled and scaled": lambda x: x * F.adaptive_avg_pool2d(x, 1).sigmoid(),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2)])
@pytest.mark.parametrize("name", IMAGES)
def test_images_in_other_orders(name: str, order: tuple[int, ...], entry: str) -> None:
    shape = (2, 6, 4, 4)
    x = torch.rand([shape[i] for i in order]).permute([order.index(i) for i in range(4)])
    ours, eager = compiled(entry, IMAGES[name], x)(x), IMAGES[name](x)
    check(ours, eager, x, x)
    torch.testing.assert_close(ours, eager)


VOLUMES = {
    "reflected": lambda x: F.pad(x, (1, 1, 1, 0, 0, 1), mode="reflect"),
    "replicated": lambda x: F.pad(x, (1, 1, 1, 0, 0, 1), mode="replicate"),
    "rolled": lambda x: x.roll((1, 2, -1), (1, 2, 4)),
    "rolled by an extent": lambda x: x.roll((1, 2), (1, 2)),
    "rolled as one row": lambda x: x.roll(2),
}


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("order", [(0, 2, 3, 4, 1), (0, 4, 2, 3, 1), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("name", VOLUMES)
def test_volumes_in_other_orders(name: str, order: tuple[int, ...], entry: str) -> None:
    shape = (2, 3, 2, 3, 4)
    x = torch.rand([shape[i] for i in order]).permute([order.index(i) for i in range(5)])
    ours, eager = compiled(entry, VOLUMES[name], x)(x), VOLUMES[name](x)
    check(ours, eager, x, x)
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("entry", ENTRY_POINTS)
def test_losses_of_transposed_targets(entry: str) -> None:
    def program(x: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
        losses = F.nll_loss, F.cross_entropy
        return [f(x, target, reduction=kind) for f in losses for kind in ("none", "mean")]

    x, target = torch.rand(2, 5, 3), torch.randint(0, 5, (3, 2)).t()
    ours, eager = compiled(entry, program, x, target)(x, target), program(x, target)
    check(ours, eager, (x, target), (x, target))
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("entry", ENTRY_POINTS)
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_transposed_heads(causal: bool, entry: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        q, k, v = x.view(2, 7, 3, 4, 8).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    x = torch.rand(2, 7, 96)
    ours, eager = compiled(entry, program, x)(x), program(x)
    check(ours, eager, x, x)
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (torch.nn.AdaptiveAvgPool1d(1), (2, 5, 4)),
        (torch.nn.AdaptiveAvgPool2d(1), (2, 5, 4, 3)),
        (torch.nn.AdaptiveAvgPool2d((1, 1)), (2, 5, 4, 3)),
        (torch.nn.AdaptiveAvgPool3d(1), (2, 5, 4, 3, 2)),
        (torch.nn.ChannelShuffle(2), (2, 5, 4, 4)),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("error::deplo.errors.FallbackWarning")
def test_gradients_of_channels_last_images_are_compiled(pool: Any, shape: tuple[int, ...]) -> None:
    """Their channels are the last axis of `shape`."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return pool(x.movedim(-1, 1)) * 3

    results: list[list[torch.Tensor]] = []
    torch._dynamo.reset()
    for run in (program, torch.compile(program, backend="deplo")):
        x = torch.linspace(0, 1, torch.Size(shape).numel()).reshape(shape).requires_grad_()
        made = run(x)
        made.square().sum().backward()
        assert x.grad is not None
        results.append([made.detach(), x.grad])
    torch.testing.assert_close(results[1], results[0])
    assert [strides_of(t) for t in results[1]] == [strides_of(t) for t in results[0]]


def test_a_pooled_network_takes_clones_of_channels_last_images() -> None:
    layers = torch.nn.Conv2d(3, 4, 3), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()
    network = torch.nn.Sequential(*layers, torch.nn.Linear(4, 2)).eval()
    image = torch.rand(2, 3, 6, 5).to(memory_format=torch.channels_last)
    for model in (network, network.to(memory_format=torch.channels_last)):
        program = deplo.compile(model, (image,))
        for given in (image.clone(), image.contiguous(), image):
            torch.testing.assert_close(program(given), model(given))


# --------------------------------------------------------------------------- containers

STRUCTURES: dict[str, Callable[[torch.Tensor], Any]] = {
    "a shape": lambda x: x.shape,
    "in a tuple": lambda x: (x + 1, x.shape),
    "in a dict of lists": lambda x: {"y": x + 1, "sizes": [x.size(), (x.mT.shape,)]},
    "a part of one": lambda x: (x + 1, x.shape[1:]),
    "a return type": lambda x: [torch.max(x, 0), x.shape],
    "no shape": lambda x: (x + 1, tuple(x.shape)),
}


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


def types_of(value: Any) -> Any:
    """The types of a nested result, and its numbers."""
    if isinstance(value, torch.Tensor):
        return torch.Tensor
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    return (type(value), list(map(types_of, value))) if isinstance(value, tuple | list) else value


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("wrap", [lambda f: f, Wrapped], ids=["function", "module"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_shapes_among_results_stay_shapes(name: str, wrap: Any, dynamic: bool) -> None:
    function, x = STRUCTURES[name], torch.rand(3, 4)
    sizes = ({0: torch.export.Dim("n", min=2, max=64)},)
    program = deplo.compile(wrap(function), (x,), dynamic_shapes=sizes if dynamic else None)
    for given in (x, torch.rand(7, 4)) if dynamic else (x,):
        assert types_of(program(given)) == types_of(function(given))
