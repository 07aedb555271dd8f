"""Language models of transformers write the same tokens with deplo, and none of them has many graphs."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import torch
import transformers
from torch._dynamo.utils import counters
from whole_models import CONFIGS, GROUPED, SMALL_HEADS, VOCABULARY

import deplo
from deplo.errors import FallbackWarning, UsageError

POSITIONS = {"max_position_embeddings": 256}
LAYERS = ("num_hidden_layers", "n_layer")
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": GROUPED | POSITIONS,
    "gpt2": CONFIGS["gpt2"][1] | {"n_positions": 256},
    "qwen2": GROUPED | POSITIONS,
    "gemma": SMALL_HEADS | POSITIONS,
}
CASES = [
    (family, kind, sampled)
    for family in FAMILIES
    for kind in ("static", "growing")
    for sampled in (False, True)
]
FEW, MANY = 6, 200
"""Tokens of a case in the sample, and with all cases."""
CLOSE = 1e-4
"""Logits so near to each other may change places."""


@cache
def model_of(family: str, layers: int = 1) -> Any:
    torch.manual_seed(0)
    settings = FAMILIES[family]
    settings = settings | {name: layers for name in LAYERS if name in settings}
    config = transformers.AutoConfig.for_model(family, **settings)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def prompt(batch: int, length: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(1))


def asked(new: int, *, sampled: bool = False) -> dict[str, Any]:
    """Options for exactly `new` tokens and their logits."""
    return {
        "max_new_tokens": new,
        "min_new_tokens": new,
        "do_sample": sampled,
        "return_dict_in_generate": True,
        "output_logits": True,
        "pad_token_id": 0,
    }


@contextmanager
def at_most(graphs: int) -> Generator[None]:
    """All operators are deplo's, in at most so many graphs."""
    torch._dynamo.reset()
    counters.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield
    assert 0 < counters["stats"]["unique_graphs"] <= graphs


def assert_same_tokens(got: Any, expected: Any) -> None:
    """Two generations agree up to a step at which eager's best logits are the same up to rounding."""
    for step, (ours, eager) in enumerate(zip(got.logits, expected.logits, strict=True)):
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)
        at = expected.sequences.shape[1] - len(expected.logits) + step
        if not torch.equal(got.sequences[:, at], expected.sequences[:, at]):
            best = eager.topk(2).values
            assert (best[:, 0] - best[:, 1]).min() < CLOSE
            return
    assert torch.equal(got.sequences, expected.sequences)


def in_eager(model: Any, tokens: torch.Tensor, kind: str, **options: Any) -> Any:
    torch.manual_seed(3)
    cache = "static" if kind == "static" else None
    return model.generate(tokens, cache_implementation=cache, disable_compile=True, **options)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("family", "kind", "sampled"), CASES)
def test_generate_compiles_prompts_and_steps_once(family: str, kind: Any, sampled: bool) -> None:
    """Prompts of other lengths and more tokens have the graphs that there are."""
    model = model_of(family)
    with at_most(2):
        for length, new in ((7, FEW), (5, 3), (12, FEW)):
            tokens, options = prompt(2, length), asked(new, sampled=sampled)
            got = deplo.generate(model, tokens, cache=kind, seed=3, fallback="error", **options)
            assert_same_tokens(got, in_eager(model, tokens, kind, **options))
    assert "forward" not in vars(model)


def generated(family: str, kind: str, new: int, *, sampled: bool) -> tuple[Any, Any]:
    """What `model.generate` gives with a `forward` that is compiled, and in eager."""
    model, options = model_of(family, 1 if new == FEW else 2), asked(new, sampled=sampled)
    expected = in_eager(model, prompt(2, 7), kind, **options)
    with at_most(3):
        model.forward = torch.compile(model.forward, backend="deplo", fullgraph=True)
        try:
            return in_eager(model, prompt(2, 7), kind, **options), expected
        finally:
            del model.forward


@pytest.mark.sample(1)
@pytest.mark.parametrize(("family", "kind", "sampled"), CASES)
def test_generate_of_transformers(family: str, kind: str, sampled: bool) -> None:
    assert_same_tokens(*generated(family, kind, FEW, sampled=sampled))


@pytest.mark.sample(0)
@pytest.mark.parametrize(("family", "kind", "sampled"), CASES)
def test_generate_writes_many_tokens(family: str, kind: str, sampled: bool) -> None:
    assert_same_tokens(*generated(family, kind, MANY, sampled=sampled))


def test_transformers_compiles_a_model_with_a_static_cache_itself() -> None:
    """Of `compile_config`, with which its first pass over the prompt is eager's."""
    model, options = model_of("llama"), asked(FEW)
    tokens = prompt(2, 7)
    expected = in_eager(model, tokens, "static", **options)
    config = transformers.CompileConfig(backend="deplo", mode=None, fullgraph=True)
    config._compile_all_devices = True
    try:
        with at_most(1):
            got = model.generate(
                tokens, cache_implementation="static", compile_config=config, **options
            )
    finally:
        vars(model).pop("_compiled_call", None)
    assert_same_tokens(got, expected)


def test_prompts_of_several_lengths_are_padded_on_the_left() -> None:
    model, tokens = model_of("llama"), prompt(2, 7)
    mask = torch.ones_like(tokens)
    mask[1, :3] = 0
    options = asked(3) | {"attention_mask": mask}
    got = deplo.generate(model, tokens, **options)
    assert_same_tokens(got, in_eager(model, tokens, "static", **options))


def test_a_seed_leaves_the_generator_as_it_was() -> None:
    model, tokens = model_of("gpt2"), prompt(1, 4)
    before = torch.get_rng_state()
    first, second = (
        deplo.generate(model, tokens, max_new_tokens=3, do_sample=True, seed=5, pad_token_id=0)
        for _ in "ab"
    )
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "another model": ({"model": torch.nn.Linear(2, 2)}, "Linear cannot generate"),
    "a vector": ({"input_ids": torch.tensor([1, 2])}, "shape [batch, tokens], got (2,)"),
    "no tokens": ({"input_ids": torch.ones(1, 0).long()}, "got (1, 0)"),
    "a list": ({"input_ids": [[1]]}, "got [[1]]"),
    "none asked for": ({"max_new_tokens": 0}, "from 1 on, got 0"),
    "another cache": ({"cache": "paged"}, "cache must be one of 'static', 'growing', got 'paged'"),
    "ours": ({"max_length": 9}, "sets max_length itself"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_that_do_not_fit_are_refused(name: str) -> None:
    changed, told = WRONG[name]
    fits = {"model": model_of("llama"), "input_ids": prompt(1, 3), "max_new_tokens": 1}
    with pytest.raises(UsageError) as caught:
        deplo.generate(**fits | changed)
    assert told in str(caught.value)


def test_models_with_an_encoder_or_another_forward_are_refused() -> None:
    config = transformers.T5Config(**CONFIGS["t5"][1])
    model: Any = transformers.T5ForConditionalGeneration(config)
    with pytest.raises(UsageError, match="encodes and decodes"):
        deplo.generate(model, prompt(1, 3), max_new_tokens=1)
    model = transformers.AutoModelForCausalLM.from_config(model_of("gpt2").config)
    model.forward = lambda **_: None
    with pytest.raises(UsageError, match="forward of its own"):
        deplo.generate(model, prompt(1, 3), max_new_tokens=1)
