"""Tokens of a language model on a CPU, one by one: `torch.compile` with deplo, its own backend, and eager.

    python bench/decoding.py              # measures all cases, writes bench/results/decoding.json
    python bench/decoding.py --only Llama # prints the cases whose name holds this, writes nothing
    python bench/decoding.py --show       # prints the results file

Each step has one token more in the cache than the step before, so no two have the same sizes. A turn is 32
steps behind a prompt of 64 tokens, divided by 32; the contenders take turns and have the same number of
threads, and the median counts. The logits of the last step are compared with those in float64 first. Weights
are random. In its own turn a plain sum of all weights that a token reads tells how fast this machine reads
them; `read at` is the part of that speed at which deplo does, the prompt left out.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
import training  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from transformers import (  # noqa: E402
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

import deplo  # noqa: E402
from deplo.tools.measuring import (  # noqa: E402
    ROOT,
    CpuClock,
    interleaved,
    relative_error,
    summary,
)

RESULT = ROOT / "bench" / "results" / "decoding.json"
PROMPT, STEPS = 64, 32
TOLERANCE = 1e-4
"""Of ||ours - exact|| / ||exact||, of the last logits; in bf16, twice eager's."""


def llama(width: int, layers: int, head: int = 32) -> nn.Module:
    """A Llama whose heads have so many elements."""
    heads = width // head
    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=width,
            intermediate_size=11 * width // 4,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=heads,
            vocab_size=4000,
        )
    )


CASES: dict[str, Callable[[], nn.Module]] = {
    "Llama 6x256, growing cache": lambda: llama(256, 6),
    "Llama 4x1024, growing cache": lambda: llama(1024, 4),
    "GPT-2 12x768, growing cache": lambda: GPT2LMHeadModel(GPT2Config()),
    "Llama 0.1B": lambda: llama(768, 12, 64),
    "Llama 0.1B, bf16": lambda: llama(768, 12, 64).bfloat16(),
    "Llama 1B": lambda: llama(2048, 20, 64),
    "Llama 1B, bf16": lambda: llama(2048, 20, 64).bfloat16(),
}


def decode(model: nn.Module, run: Callable[..., Any], steps: int = STEPS) -> Tensor:
    """The logits after the prompt and so many steps, of tokens that do not depend on them."""
    tokens = torch.arange(PROMPT + steps).view(1, -1)
    cache = DynamicCache(config=model.config)

    def step(begin: int, end: int) -> Tensor:
        found = run(input_ids=tokens[:, begin:end], past_key_values=cache, use_cache=True)
        return found.logits[:, -1]

    logits = step(0, PROMPT)
    for at in range(PROMPT, PROMPT + steps):
        logits = step(at, at + 1)
    return logits


def weights(model: nn.Module) -> list[Tensor]:
    """What a token reads whole: all matrices but those of which it reads a row."""
    looked_up = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    looked_up -= {id(m.weight) for m in model.modules() if isinstance(m, nn.Linear)}
    return [p for p in model.parameters() if p.ndim == 2 and id(p) not in looked_up]


@torch.no_grad()
def measure(name: str, rounds: int) -> dict[str, Any]:
    """One row of the table, of a step."""
    torch.manual_seed(0)
    model = CASES[name]().eval()
    exact = copy.deepcopy(model).double()
    expected = decode(exact, exact)
    del exact
    calls: dict[str, Callable[[], Any]] = {}
    torch.compiler.reset()
    for contender, backend in {"eager": None, **training.BACKENDS}.items():
        run = model if backend is None else torch.compile(model, backend=backend)
        calls[contender] = lambda r=run: decode(model, r)
        calls[contender]()
        if contender == "deplo":
            calls["prompt"] = lambda r=run: decode(model, r, 0)
    read = weights(model)
    add_up = deplo.compile(lambda *each: [w.sum() for w in each], tuple(read), target="cpu")
    calls["sum"] = lambda: add_up(*read)
    errors = {
        contender: relative_error(calls[contender](), expected)
        for contender in ("eager", *training.BACKENDS)
    }
    allowed = max(TOLERANCE, 2 * errors["eager"]) if model.dtype == torch.bfloat16 else TOLERANCE
    wrong = [contender for contender, error in errors.items() if not error <= allowed]
    right = {contender: call for contender, call in calls.items() if contender not in wrong}
    found = summary(interleaved(right, CpuClock(), rounds))
    times = found["median_us"]
    row: dict[str, Any] = {"error": errors, "wrong": wrong, **found}
    if "deplo" in times:
        row["read at"] = times["sum"] / ((times["deplo"] - times["prompt"]) / STEPS)
    row["median_us"] = {
        each: time if each in ("prompt", "sum") else time / STEPS for each, time in times.items()
    }
    return row


if __name__ == "__main__":
    raise SystemExit(training.main(__doc__, RESULT, CASES, measure))
