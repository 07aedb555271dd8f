"""`vllm serve --compilation-config '{"mode": ..., "backend": "deplo"}'`, with a stand-in for vLLM.

The stand-in has what vLLM 0.33.0 does with a backend, in the two modes in which it gives one the whole graph:

* mode 1 asks PyTorch whether it knows the backend's name, else imports it by its dotted name, and compiles
  the model with `fullgraph=True`;
* mode 2 marks the axes of tokens as dynamic in the first call, compiles `forward` with `dynamic=False` and
  drops all guards, so that this one graph has to serve every number of tokens, one included.

Attention and the cache are operators of vLLM's own: one writes to the cache, outside of the graph, and
returns an empty tensor, another writes to an argument, a view, and finds the cache by its layer's name.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.registry import list_backends
from torch._dynamo.utils import counters
from torch.nn import functional as F

from deplo.errors import FallbackWarning

HEADS, WIDTH, TOKENS = 2, 16, 24
NAME = "model.layers.0.self_attn.attn"
CACHES: dict[str, list[Tensor]] = {}


def update_cache(key: Tensor, value: Tensor, layer_name: str) -> Tensor:
    CACHES[layer_name] = [key.clone(), value.clone()]
    return torch.empty(0, dtype=key.dtype)


def attention(
    query: Tensor,
    output: Tensor,
    layer_name: str,
    output_scale: Tensor | None = None,
    output_block_scale: Tensor | None = None,
    kv_cache_dummy_dep: Tensor | None = None,
) -> None:
    q, k, v = (each.transpose(0, 1) for each in (query, *CACHES[layer_name]))
    output.copy_(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1))


@pytest.fixture(scope="module", autouse=True)
def operators() -> Generator[None]:
    library = torch.library.Library("deplo_test_vllm", "DEF")
    library.define("update_cache(Tensor key, Tensor value, str layer_name) -> Tensor")
    library.define(
        "attention(Tensor query, Tensor(a!) output, str layer_name, Tensor? output_scale=None, "
        "Tensor(b!)? output_block_scale=None, Tensor? kv_cache_dummy_dep=None) -> ()"
    )
    library.impl("update_cache", update_cache, "CPU")
    library.impl("attention", attention, "CPU")
    torch.library.register_fake(
        "deplo_test_vllm::update_cache",
        lambda key, value, layer_name: key.new_empty(0),
        lib=library,
    )
    yield
    library._destroy()


class Layer(nn.Module):
    """A layer of a decoder on the tokens of all requests, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, WIDTH)
        self.norm = nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, input_ids: Tensor, positions: Tensor) -> Tensor:
        x = self.embedding(input_ids) + 0.01 * positions[:, None]
        q, k, v = self.qkv(self.norm(x)).split(WIDTH, -1)
        q, k, v = (each.reshape(-1, HEADS, WIDTH // HEADS) for each in (q, k, v))
        output = torch.empty(x.shape[0], WIDTH).view(q.shape)
        named = torch.ops.deplo_test_vllm
        stored = named.update_cache(k, v, NAME)
        named.attention(q, output, NAME, kv_cache_dummy_dep=stored)
        return x + self.out(output.view(-1, WIDTH))


def backend_of(name: str) -> Any:
    """What vLLM gives `torch.compile` for the name of a backend."""
    if name in list_backends(exclude_tags=()):
        return name
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(module), function)


def stock(model: Layer, backend: Any) -> Callable[..., Tensor]:
    model.compile(fullgraph=True, backend=backend)
    return model


def traced_once(model: Layer, backend: Any) -> Callable[..., Tensor]:
    options = {"guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
    compiled: Any = torch.compile(
        model.forward, fullgraph=True, dynamic=False, backend=backend, options=options
    )
    first = True

    def call(input_ids: Tensor, positions: Tensor) -> Tensor:
        nonlocal first
        if first:
            torch._dynamo.mark_dynamic(input_ids, 0)
            torch._dynamo.mark_dynamic(positions, 0)
        with torch.compiler.set_stance("default" if first else "fail_on_recompile"):
            first = False
            return compiled(input_ids, positions)

    return call


@pytest.mark.parametrize("name", ["deplo", "deplo.torch_backend.deplo_backend"])
@pytest.mark.parametrize(("mode", "graphs"), [(stock, 3), (traced_once, 1)])
def test_a_model_is_served(
    mode: Callable[..., Any],
    graphs: int,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DEPLO_LOGS", "graphs")
    torch._dynamo.reset()
    counters.clear()
    torch.manual_seed(0)
    model = Layer().eval()
    serve = mode(model, backend_of(name))
    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for tokens in (8, 5, TOKENS, 1, 3, 1):
            ids, positions = torch.randint(0, 50, (tokens,)), torch.arange(tokens)
            got = serve(ids.clone(), positions.clone())
            torch.testing.assert_close(got, model.forward(ids, positions), rtol=1e-4, atol=1e-5)
    assert counters["stats"]["unique_graphs"] == graphs
    assert capsys.readouterr().err.count("2 calls of PyTorch") == graphs  # the rest is kernels


def test_vllm_finds_the_backend_by_its_name() -> None:
    assert "deplo" in list_backends(exclude_tags=())
    assert backend_of("deplo") == "deplo"
    assert callable(backend_of("deplo.torch_backend.deplo_backend"))


def double_into(x: Tensor, out: Tensor) -> None:
    out.copy_(2 * x)


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@pytest.mark.parametrize("part", ["whole", "rows", "every other", "transposed"])
def test_an_operator_writes_to_an_argument(part: str) -> None:
    """The whole of a tensor is a call's result; a graph with one that writes to a part runs in PyTorch."""
    library = torch.library.Library("deplo_test_into", "DEF")
    library.define("double(Tensor x, Tensor(a!) out) -> ()")
    library.impl("double", double_into, "CPU")
    parts: dict[str, Callable[[Tensor], Tensor]] = {
        "whole": lambda t: t,
        "rows": lambda t: t[1:3],
        "every other": lambda t: t[::2],
        "transposed": lambda t: t.mT,
    }

    def program(x: Tensor, kept: Tensor) -> tuple[Tensor, Tensor]:
        made = torch.zeros(4, 4)
        for out in (made, kept):
            chosen = parts[part](out)
            torch.ops.deplo_test_into.double(x[: chosen.shape[0]], chosen)
        return made + 1, kept * 2

    torch._dynamo.reset()
    x, ours, eager = torch.randn(4, 4), torch.ones(4, 4), torch.ones(4, 4)
    got = torch.compile(program, backend="deplo", fullgraph=True)(x, ours)
    torch.testing.assert_close(got, program(x, eager))
    torch.testing.assert_close(ours, eager)
    library._destroy()
