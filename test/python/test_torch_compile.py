"""`torch.compile(model, backend="deplo")`: results, gradients, views, and what is refused."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import deplo
from deplo.errors import UsageError
from deplo.torch_backend import deplo_backend


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def test_the_backend_is_found_by_name() -> None:
    assert "deplo" in torch._dynamo.list_backends()


def test_results_without_gradients() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))
    x = torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, backend="deplo")(x), model(x))


class Block(nn.Module):
    """Attention, convolution, norms and an MLP: what training graphs are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(6, 8, 3, stride=2, padding=1, groups=2)
        self.norm = nn.BatchNorm1d(8)
        self.qkv = nn.Linear(8, 24)
        self.after = nn.LayerNorm(8)
        self.mlp = nn.Sequential(nn.Linear(8, 12), nn.SiLU(), nn.Linear(12, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.norm(self.convolution(x))).mT
        q, k, v = self.qkv(h).unflatten(-1, (2, 12)).transpose(1, 2).chunk(3, -1)
        attention = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = self.after(h + attention.transpose(1, 2).flatten(2))
        return (h + self.mlp(h)).softmax(-1)


def test_three_steps_of_training() -> None:
    ours, eager = Block(), Block()
    eager.load_state_dict(ours.state_dict())
    compiled = torch.compile(ours, backend="deplo", fullgraph=True)
    x = torch.randn(4, 6, 9)
    for _ in range(3):
        for model, call in ((ours, compiled), (eager, eager)):
            call(x).pow(2).sum().backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= 0.1 * parameter.grad
                    parameter.grad = None
    for (name, mine), theirs in zip(
        ours.state_dict().items(), eager.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, msg=lambda m, name=name: f"{name}: {m}")


CONVOLUTIONS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "padded": (nn.Conv2d(3, 4, 3, padding=1), (2, 3, 7, 6)),
    "strided, rows left over": (nn.Conv2d(3, 4, 3, stride=2), (2, 3, 8, 7)),
    "dilated": (nn.Conv2d(3, 4, 2, dilation=3, padding=2), (3, 3, 9, 8)),
    "depthwise": (nn.Conv2d(4, 4, 3, groups=4, bias=False), (2, 4, 5, 6)),
    "grouped, strided and dilated": (nn.Conv1d(4, 6, 3, 2, 2, 2, 2), (2, 4, 13)),
    "three dimensions": (nn.Conv3d(2, 3, 2, stride=(1, 2, 1)), (2, 2, 4, 5, 3)),
    "transposed": (nn.ConvTranspose2d(4, 8, 3, 2), (2, 4, 5, 6)),
    "transposed, padded": (nn.ConvTranspose2d(3, 2, 2, 1, 0, (0, 1), dilation=2), (2, 3, 4, 5)),
    "transposed, grouped": (nn.ConvTranspose1d(4, 6, 3, 3, 2, 1, 2, dilation=2), (2, 4, 7)),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("batch", ["static", "dynamic"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name: str, batch: str) -> None:
    module, shape = CONVOLUTIONS[name]
    x = torch.randn(shape, requires_grad=True)
    inputs = [x, *module.parameters()]
    if batch == "dynamic":
        torch._dynamo.mark_dynamic(x, 0)
    options = {"fallback": "error"}
    compiled = torch.compile(module, backend="deplo", fullgraph=True, options=options)
    ours, theirs = compiled(x), module(x)
    upstream = torch.randn_like(theirs)
    torch.testing.assert_close(ours, theirs)
    for mine, other in zip(
        torch.autograd.grad(ours, inputs, upstream),
        torch.autograd.grad(theirs, inputs, upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)


CALLED: dict[str, tuple[nn.Module, tuple[int, ...], list[bool]]] = {
    "short lines": (nn.Conv2d(32, 64, 3, padding=1), (4, 32, 7, 7), [True, True, False]),
    "few taps": (nn.Conv2d(64, 64, 3, groups=64), (4, 64, 20, 20), [False, True, False]),
}


@pytest.mark.filterwarnings("ignore::deplo.FallbackWarning")
@pytest.mark.parametrize("name", CALLED)
def test_gradients_that_pytorch_computes_faster(name: str) -> None:
    module, shape, mask = CALLED[name]
    x = torch.randn(shape, requires_grad=True)
    calls: list[list[bool]] = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.convolution_backward.default:
                calls.append(args[-1])
            return func(*args, **(kwargs or {}))

    ours, theirs = torch.compile(module, backend="deplo")(x), module(x)
    inputs, upstream = [x, *module.parameters()], torch.randn_like(theirs)
    with Calls():
        mine = torch.autograd.grad(ours, inputs, upstream)
    assert calls == [mask]
    for own, other in zip(mine, torch.autograd.grad(theirs, inputs, upstream), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


@pytest.mark.sample(5)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "additive", "a row is masked"])
@pytest.mark.parametrize("shared", [1, 3])
def test_gradients_of_attention(mask: str, shared: int) -> None:
    q = torch.randn(2, 6, 5, 4, requires_grad=True)
    k, v = (torch.randn(2, 6 // shared, 7, 4, requires_grad=True) for _ in range(2))
    row = torch.zeros(5, 7).index_fill_(0, torch.tensor(2), -math.inf)
    given: dict[str, Any] = {
        "none": {},
        "causal": {"is_causal": True},
        "bool": {"attn_mask": torch.ones(5, 7, dtype=torch.bool).tril()},
        "additive": {"attn_mask": torch.randn(5, 7), "scale": 0.3},
        "a row is masked": {"attn_mask": row},
    }[mask]

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=shared > 1, **given)

    with torch.no_grad():
        inferred = torch.compile(attend, backend="deplo", fullgraph=True)(q, k, v)
        torch.testing.assert_close(inferred, attend(q, k, v))
    ours = torch.compile(attend, backend="deplo", fullgraph=True)(q, k, v)
    theirs = attend(q, k, v)
    torch.testing.assert_close(ours, theirs)
    upstream = torch.randn_like(theirs)
    for mine, other in zip(
        torch.autograd.grad(ours, (q, k, v), upstream),
        torch.autograd.grad(theirs, (q, k, v), upstream),
        strict=True,
    ):
        torch.testing.assert_close(mine, other)


@pytest.mark.filterwarnings("ignore::deplo.FallbackWarning")
def test_gradients_of_sizes_that_only_values_would_order_run_in_pytorch() -> None:
    """The least of two dynamic sizes is an extent that deplo has not: the graph is PyTorch's."""

    def upper(a: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.linalg.qr(torch.tanh(a @ w).mT)[1].square().mean()

    compiled = torch.compile(upper, backend="deplo")
    for n in (5, 6, 7):
        ours = [torch.randn(3, n - 1, n, requires_grad=True), torch.randn(n, n, requires_grad=True)]
        theirs = [each.detach().clone().requires_grad_() for each in ours]
        compiled(*ours).backward()
        upper(*theirs).backward()
        for mine, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(mine.grad, other.grad)


def test_gradients_of_attention_on_the_parts_of_one_projection() -> None:
    """dq and dk are runs of equal operators: one reads a tensor twice where the other reads two."""

    def attend(qkv: torch.Tensor) -> torch.Tensor:
        q, k, v = (x.view(2, 5, 2, 8).transpose(1, 2) for x in qkv.chunk(3, -1))
        return nn.functional.scaled_dot_product_attention(q, k, v).sum(-1)

    qkv, upstream = torch.randn(2, 5, 48, requires_grad=True), torch.randn(2, 2, 5)
    ours = torch.compile(attend, backend="deplo", fullgraph=True)(qkv)
    mine, theirs = (torch.autograd.grad(y, qkv, upstream) for y in (ours, attend(qkv)))
    torch.testing.assert_close(mine, theirs)


VIEWS: dict[str, Callable[[torch.Tensor], Any]] = {
    "transposed": lambda x: x.T,
    "slice": lambda x: (x[1:, ::2], x + 1),
    "expanded": lambda x: x[:1].expand(4, 5),
    "permuted sum": lambda x: (x.T + 1).T,
    "the input itself": lambda x: (x, x * 2),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_gradients_of_a_group_norm_of_all_sizes(affine: bool, dtype: torch.dtype) -> None:
    """One graph, in which nothing reads memory by strides; as exact as eager."""
    layer = nn.Sequential(nn.GroupNorm(4, 16, affine=affine), nn.SiLU()).to(dtype)
    exact = copy.deepcopy(layer).double()
    compiled = torch.compile(layer, backend="deplo", dynamic=True, fullgraph=True)
    for shape in ((2, 16, 5, 6), (3, 16, 7, 4), (1, 16, 2, 1)):
        values = (torch.randn(shape) * 2 + 30).to(dtype)
        weights = torch.randn(shape)
        found: list[list[torch.Tensor]] = []
        for run, owner, wide in (
            (compiled, layer, dtype),
            (layer, layer, dtype),
            (exact, exact, torch.float64),
        ):
            x = values.detach().to(wide).requires_grad_()
            owner.zero_grad()
            y = run(x)
            (y * weights.to(wide)).sum().backward()
            given = [y.detach(), x.grad, *(p.grad for p in owner.parameters())]
            found.append([each.double() for each in given if each is not None])
        for ours, eager, right in zip(*found, strict=True):
            assert (ours - right).norm() <= 2 * (eager - right).norm() + 1e-6 * right.norm()


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Sequential(nn.LayerNorm(24), nn.SiLU()), (50, 24)),
        (nn.Sequential(nn.GroupNorm(3, 12), nn.SiLU()), (3, 12, 5, 7)),
        (nn.Sequential(nn.RMSNorm(24), nn.GELU()), (50, 24)),
    ],
)
def test_what_a_gradient_computes_again_is_not_saved(
    layer: nn.Module, shape: tuple[int, ...]
) -> None:
    """Of a norm and an activation only the input has as many elements as the input."""
    x = torch.randn(shape, requires_grad=True)
    saved = torch.compile(layer, backend="deplo")(x).grad_fn.saved_tensors
    large = [each for each in saved if each.numel() >= x.numel()]
    assert [each.data_ptr() for each in large] == [x.data_ptr()]


@pytest.mark.parametrize("name", VIEWS)
def test_outputs_have_the_strides_and_the_memory_of_eager(name: str) -> None:
    x = torch.randn(4, 5)
    results = [f(x) for f in (torch.compile(VIEWS[name], backend="deplo"), VIEWS[name])]
    for mine, other in zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True):
        torch.testing.assert_close(mine, other)
        assert mine.stride() == other.stride()
        shared = [
            t.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for t in (mine, other)
        ]
        assert shared[0] == shared[1]


def test_a_change_of_an_input_is_seen_by_the_caller() -> None:
    def add_in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 2

    x, y = torch.randn(3), torch.randn(3)
    other = x.clone()
    result = torch.compile(add_in_place, backend="deplo")(x, y)
    torch.testing.assert_close(result, add_in_place(other, y))
    torch.testing.assert_close(x, other)


CHANGES: dict[str, Callable[[torch.Tensor], Any]] = {
    "slices": lambda view: view[:, 1:5, :, :3].fill_(2),
    "steps": lambda view: view[..., ::2].mul_(2),
    "positions": lambda view: view.put_(torch.tensor([1, 5]), torch.tensor([7.0, 8.0])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_a_transposed_view_is_seen_in_the_whole(name: str) -> None:
    def change(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        whole = x * 1
        view = whole.view(2, 3, 8, 5).transpose(1, 2)
        CHANGES[name](view)
        return whole, view + 1

    x = torch.randn(6, 8, 5)
    torch.testing.assert_close(torch.compile(change, backend="deplo")(x), change(x))


LAYERS: dict[str, dict[str, Any]] = {
    "ReLU, norms after": {},
    "GELU, norms first": {"activation": "gelu", "norm_first": True},
}
SEEN = torch.rand(7, 7, generator=torch.Generator().manual_seed(0)) < 0.6
MASKS: dict[str, dict[str, torch.Tensor]] = {
    "none": {},
    "padding": {"src_key_padding_mask": torch.tensor([[5], [7], [0]]) <= torch.arange(7)},
    "floats": {"src_mask": nn.Transformer.generate_square_subsequent_mask(7)},
    "both": {"src_mask": ~SEEN, "src_key_padding_mask": torch.arange(21).view(3, 7) % 5 == 0},
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("layer", LAYERS)
def test_an_encoder_layer_without_gradients(layer: str, mask: str) -> None:
    """Eager has one operator for the whole layer. A row of the batch that is all padding is NaN."""
    model = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, **LAYERS[layer]).eval()
    compiled = torch.compile(model, backend="deplo", options={"fallback": "error"}, fullgraph=True)
    x = torch.randn(3, 7, 16)
    with torch.no_grad():
        mine, other = (f(x, **MASKS[mask]) for f in (compiled, model))
    torch.testing.assert_close(mine, other, equal_nan=True)
    assert mine.isnan().any() == (mask == "padding")


@pytest.mark.parametrize("options", [{}, {"average_attn_weights": False}, {"need_weights": False}])
def test_attention_and_its_weights_without_gradients(options: dict[str, bool]) -> None:
    model = nn.MultiheadAttention(16, 4, batch_first=True).eval()
    compiled = torch.compile(model, backend="deplo", options={"fallback": "error"}, fullgraph=True)
    x = torch.randn(3, 7, 16)
    with torch.no_grad():
        mine, other = (f(x, x, x, **options) for f in (compiled, model))
    torch.testing.assert_close(mine, other)


def test_modes_and_options() -> None:
    x = torch.randn(3)
    compiled = torch.compile(torch.sin, backend="deplo", mode="max-autotune")
    torch.testing.assert_close(compiled(x), torch.sin(x))
    for given in ({"mode": "fastest"}, {"options": {"speed": 11}}):
        with pytest.raises((UsageError, torch._dynamo.exc.BackendCompilerFailed), match="unknown"):
            torch.compile(torch.cos, backend="deplo", **given)(x)


def test_what_is_not_supported_is_named() -> None:
    def decompose(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.svdvals(x)

    compiled = torch.compile(decompose, backend="deplo", options={"fallback": "error"})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="_linalg_svd"):
        compiled(torch.randn(3, 3))


def test_what_is_not_supported_runs_in_pytorch_and_is_told_once() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(x.exp() @ w) * 2

    compiled = torch.compile(program, backend="deplo", fullgraph=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for rows in (3, 4, 5):
            x, w = torch.randn(rows, 4), torch.randn(4, 4)
            torch.testing.assert_close(compiled(x, w), program(x, w))
    told = [str(each.message) for each in caught if each.category is deplo.FallbackWarning]
    assert len(told) == 1
    assert "special_bessel_j1" in told[0]
    assert "test_torch_compile.py" in told[0]


def test_what_eager_asserts_of_values_is_asserted() -> None:
    def program(i: torch.Tensor) -> torch.Tensor:
        torch._assert_async((i >= 0).all(), "a class is negative")
        return i * 2

    compiled = torch.compile(program, backend="deplo")
    classes = torch.tensor([3, 0, 6, 3])
    assert torch.equal(compiled(classes), program(classes))
    with pytest.raises(RuntimeError, match="a class is negative"):
        compiled(torch.tensor([3, 0, 6, -1]))


def test_a_graph_that_deplo_cannot_express_runs_in_pytorch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.sin().to(torch.complex32)

    compiled = torch.compile(program, backend="deplo")
    x = torch.randn(8)
    with pytest.warns(deplo.FallbackWarning, match="complex32"):
        torch.testing.assert_close(compiled(x), program(x))


def test_gradients_of_a_graph_that_runs_in_pytorch() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x * w).to(torch.complex32).to(torch.complex64).abs().sum()

    compiled = torch.compile(program, backend="deplo")
    x, w = torch.randn(8), torch.randn(8, requires_grad=True)  # the gradient of x is None
    with pytest.warns(deplo.FallbackWarning, match="complex32"):
        (ours,) = torch.autograd.grad(compiled(x, w), [w])
    torch.testing.assert_close(ours, torch.autograd.grad(program(x, w), [w])[0])


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_gradients_of_as_many_rows_as_values_say() -> None:
    """Dynamo compiles once for all of them, none included."""
    convolution = nn.Conv1d(3, 4, 3, 2, 1)

    def chosen(x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return convolution(x[keep.nonzero().squeeze(-1)]).square().sum()

    x = torch.randn(4, 3, 70, requires_grad=True)
    compiled = torch.compile(chosen, backend="deplo")
    for keep in ([1, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]):
        rows = torch.tensor(keep)
        mine, theirs = (torch.autograd.grad(f(x, rows), x)[0] for f in (compiled, chosen))
        torch.testing.assert_close(mine, theirs)


def test_training_of_batch_norm_for_all_batches() -> None:
    """The factor of the running variance, n / (n - 1), is no whole number of any size.

    In f64, where sums in another order differ by less than what is compared.
    """
    ours, eager = nn.BatchNorm2d(4).double(), nn.BatchNorm2d(4).double()
    options = {"fallback": "error"}
    compiled = torch.compile(ours, backend="deplo", dynamic=True, options=options)
    for batch in (3, 7, 1):
        x = torch.randn(batch, 4, 5, 5, dtype=torch.float64)
        (compiled(x) ** 3).sum().backward()
        (eager(x) ** 3).sum().backward()
    for (name, mine), theirs in zip(
        ours.state_dict().items(), eager.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, msg=lambda m, name=name: f"{name}: {m}")
    for mine, theirs in zip(ours.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_logs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DEPLO_LOGS", "graphs, recompiles")
    compiled = torch.compile(lambda x: x.exp() + 1, backend="deplo")
    try:
        for rows in (3, 4):
            compiled(torch.randn(rows))
    finally:
        torch._logging.set_logs()
    told = capfd.readouterr().err
    assert told.count("1 kernel, 0 calls of PyTorch") == 2
    assert "size mismatch at index 0. expected 3, actual 4" in told
    monkeypatch.setenv("DEPLO_LOGS", "graphs,kernel")
    with pytest.raises(UsageError, match="names kernel; topics are graphs, recompiles"):
        deplo_backend(None, [])  # type: ignore[arg-type]


@pytest.mark.sample(3)
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "bert", "vit", "resnet"])
def test_whole_models(architecture: str) -> None:
    pytest.importorskip("transformers")
    from whole_models import build

    model = build(architecture, layers=1)
    eager = copy.deepcopy(model.module)
    with torch.no_grad():
        ours = torch.compile(model.module, backend="deplo")(**model.inputs).logits
        torch.testing.assert_close(ours, eager(**model.inputs).logits)


# --------------------------------------------------------------------------- sizes that change


def count_graphs() -> tuple[list[int], Callable[..., Any]]:
    """A backend that compiles as deplo's, and the number of graphs that it got."""
    graphs: list[int] = []

    def backend(graph, inputs, **options):
        graphs.append(len(graph.graph.nodes))
        return deplo_backend(graph, inputs, **options)

    return graphs, backend


def test_one_graph_for_all_sizes_forward_and_backward() -> None:
    def program(x, w):
        return (x @ w).relu().reshape(-1) * x.shape[0]

    graphs, backend = count_graphs()
    compiled = torch.compile(program, backend=backend, dynamic=True)
    for rows in (3, 5, 17):
        x = torch.randn(rows, 4, requires_grad=True)
        w = torch.randn(4, 4, requires_grad=True)
        results = []
        for function in (compiled, program):
            y = function(x, w)
            results.append((y, *torch.autograd.grad(y.square().sum(), (x, w))))
        for ours, eager in zip(*results, strict=True):
            torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-4)
    assert len(graphs) == 1


def test_the_second_size_makes_a_graph_for_all() -> None:
    graphs, backend = count_graphs()
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU())
    compiled = torch.compile(module, backend=backend)
    with torch.no_grad():
        for length in (4, 6, 9, 33):
            x = torch.randn(2, length, 8)
            torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    assert len(graphs) == 2


def test_the_second_length_of_a_model_makes_a_graph_for_all() -> None:
    pytest.importorskip("transformers")
    from whole_models import build, tokens

    model = build("llama", layers=1).module
    graphs, backend = count_graphs()
    compiled = torch.compile(copy.deepcopy(model), backend=backend)
    with torch.no_grad():
        for length in (5, 7, 9, 12):
            ids = tokens(2, length)
            expected = model(input_ids=ids).logits
            torch.testing.assert_close(compiled(input_ids=ids).logits, expected)
    assert len(graphs) == 2


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_heads_of_as_many_positions_as_convolutions_leave() -> None:
    """A length that strides leave is split into heads; what divides such sizes is in `test_sizes.py`."""

    convolution = torch.nn.Conv1d(8, 8, 3, stride=2)  # whose channels stay 8

    def program(x: torch.Tensor) -> torch.Tensor:
        y = convolution(convolution(x)).mT
        return y.view(*y.shape[:-1], -1, 4).transpose(1, 2) * 2

    compiled = torch.compile(program, backend="deplo", dynamic=True)
    with torch.no_grad():
        for length in (30, 57, 100):
            x = torch.randn(2, 8, length)
            torch.testing.assert_close(compiled(x), program(x), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_tensors_that_a_function_makes_of_numbers() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * 3)
        return x / scale * torch.tensor([[1.0], [2.0]]), torch.tensor([1, 2, 3])

    compiled = torch.compile(program, backend="deplo")
    for length in (5, 7, 9):
        x = torch.randn(2, length)
        torch.testing.assert_close(compiled(x), program(x))
    ours, eager = (torch.ones(2, 4, requires_grad=True) for _ in range(2))
    compiled(ours)[0].sum().backward()
    program(eager)[0].sum().backward()
    torch.testing.assert_close(ours.grad, eager.grad)


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_halves_that_are_doubled_have_the_size_that_dynamo_knows() -> None:
    """`cat` and `add` take (h - 1) // 2 * 2 + 2 and h for the same where h is even: no call of PyTorch."""

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.Conv2d(2, 4, 3, stride=2, padding=1)
            self.up = nn.ConvTranspose2d(4, 3, 2, stride=2)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            up = self.up(self.down(x).relu())
            return torch.cat([up, x], 1), up[:, :2] + x

    model = Network()
    compiled = torch.compile(model, backend="deplo", dynamic=True)
    for shape in ((1, 2, 8, 12), (3, 2, 14, 6)):
        x = torch.randn(shape)
        mine, eager = (x.clone().requires_grad_() for _ in range(2))
        for f, own in ((compiled, mine), (model, eager)):
            joined, added = f(own)
            (joined.square().sum() + added.sum()).backward()
        torch.testing.assert_close(mine.grad, eager.grad)
    torch.testing.assert_close(compiled(x), model(x))


def test_a_size_among_the_results() -> None:
    compiled = torch.compile(lambda x: (x + 1, x.shape[0] * 2), backend="deplo", dynamic=True)
    for rows in (3, 8):
        y, size = compiled(torch.zeros(rows, 2))
        assert (y.shape, size) == ((rows, 2), 2 * rows)


@pytest.mark.sample(3)
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "bert", "vit", "resnet"])
def test_steps_of_a_model_are_those_of_eager(architecture: str) -> None:
    pytest.importorskip("transformers")
    from whole_models import build

    model = build(architecture, layers=1)
    for module in model.module.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    trained = [model.module.train(), copy.deepcopy(model.module).train()]
    programs = [trained[0], torch.compile(trained[1], backend="deplo")]
    optimizers = [torch.optim.SGD(each.parameters(), lr=0.05) for each in trained]
    for _ in range(3):
        for program, optimizer in zip(programs, optimizers, strict=True):
            optimizer.zero_grad()
            program(**model.inputs).logits.square().mean().backward()
            optimizer.step()
    for eager, ours in zip(*(each.parameters() for each in trained), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)


def test_numbers_may_come_after_the_tensors() -> None:
    """With dynamic sizes they are inputs of the graph, in the order in which the program reads them."""

    def program(x: torch.Tensor, y: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.minimum(x, y).mean([axis]).abs()

    compiled = torch.compile(program, backend="deplo", dynamic=True, fullgraph=True)
    x, y = torch.linspace(-2, 3, 12).view(3, 4), torch.linspace(1, -1, 4)
    for axis in (0, 1):
        torch.testing.assert_close(compiled(x, y, axis), program(x, y, axis))


def test_a_condition_on_sizes_may_be_saved_for_the_gradients() -> None:
    """As `is_causal=q_len > 1` is in models of Hugging Face."""

    def program(q: torch.Tensor) -> torch.Tensor:
        causal = q.shape[-2] % 2 == 0
        return nn.functional.scaled_dot_product_attention(q, q, q, is_causal=causal)

    compiled = torch.compile(program, backend="deplo", dynamic=True)
    for length in (33, 35, 34):
        ours, eager = (torch.linspace(-1, 1, 3 * length * 16).view(1, 3, length, 16) for _ in "ab")
        for q, function in ((ours, compiled), (eager, program)):
            q.requires_grad_()
            function(q).square().sum().backward()
        torch.testing.assert_close(ours.grad, eager.grad)


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_grids_of_images_of_all_batches() -> None:
    def grid(theta: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return nn.functional.affine_grid(theta, list(image.shape), align_corners=False)

    compiled = torch.compile(grid, backend="deplo")
    for batch in (2, 3, 4):
        theta = torch.randn(batch, 2, 3, requires_grad=True)
        twin = theta.detach().clone().requires_grad_()
        image = torch.randn(batch, 3, 5, 4)
        made, wanted = compiled(theta, image), grid(twin, image)
        torch.testing.assert_close(made, wanted)
        made.square().sum().backward()
        wanted.square().sum().backward()
        torch.testing.assert_close(theta.grad, twin.grad)


class _MaskedLinear(nn.Linear):
    """Masks its own weight by `.data`, which AOTAutograd refuses to trace."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        self.weight.data *= torch.eye(3)
        return super().forward(input)


def test_a_graph_that_pytorch_cannot_trace_runs_in_pytorch() -> None:
    torch.manual_seed(0)
    model = _MaskedLinear(3, 3)
    twin = copy.deepcopy(model)
    x = torch.randn(2, 3)
    with pytest.warns(deplo.FallbackWarning, match="which cannot trace it: AssertionError"):
        torch.compile(model, backend="deplo")(x).sum().backward()
    twin(x).sum().backward()
    torch.testing.assert_close(model.weight, twin.weight)
    torch.testing.assert_close(model.weight.grad, twin.weight.grad)
    options = {"fallback": "error"}
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="AssertionError"):
        torch.compile(_MaskedLinear(3, 3), backend="deplo", options=options)(x)


POOLED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "halves": lambda x: nn.functional.avg_pool2d(x, 2),
    "a rest": lambda x: nn.functional.avg_pool2d(x, (3, 4)),
    "a divisor": lambda x: nn.functional.avg_pool2d(x, 2, divisor_override=3),
    "to few": lambda x: nn.functional.adaptive_avg_pool2d(x, (4, 3)),
    "one image": lambda x: nn.functional.avg_pool2d(x[0], 2),
    "weight norm": lambda x: torch._weight_norm(x, x[:, :1, :1, :1], 0),
    "weight norm of columns": lambda x: torch._weight_norm(x, x[:1, :1, :1], 3),
}


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("name", POOLED)
def test_gradients_of_pooling_and_weight_norm(
    name: str, layout: torch.memory_format, dtype: torch.dtype
) -> None:
    program = POOLED[name]
    x = torch.randn(2, 3, 8, 9, dtype=dtype).contiguous(memory_format=layout).requires_grad_()
    twin = x.detach().clone().requires_grad_()
    made, wanted = torch.compile(program, backend="deplo")(x), program(twin)
    weights = torch.randn_like(wanted)
    (made * weights).sum().backward()
    (wanted * weights).sum().backward()
    torch.testing.assert_close(made, wanted)
    torch.testing.assert_close(x.grad, twin.grad)
    assert x.grad is not None
    assert twin.grad is not None
    assert x.grad.stride() == twin.grad.stride()
