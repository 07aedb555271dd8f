"""Tokens of a language model on a CPU, one by one: `torch.compile` with deplo, its own backend, and eager.

    python bench/decoding.py              # measures all cases, writes bench/results/decoding.json
    python bench/decoding.py --only Llama # prints the cases whose name holds this, writes nothing
    python bench/decoding.py --show       # prints the results file

Each step has one token more in the cache than the step before, so no two have the same sizes. A turn is 32
steps behind a prompt of 64 tokens, divided by 32; the contenders take turns and have the same number of
threads, and the median counts. The logits of the last step are compared with those in float64 first. Weights
are random.
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
"""Of ||ours - exact|| / ||exact||, of the last logits."""


def llama(width: int, layers: int) -> nn.Module:
    """A Llama whose heads have 32 elements."""
    heads = width // 32
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
}


def decode(model: nn.Module, run: Callable[..., Any]) -> Tensor:
    """The logits after the prompt and the steps, of tokens that do not depend on them."""
    tokens = torch.arange(PROMPT + STEPS).view(1, -1)
    cache = DynamicCache(config=model.config)

    def step(begin: int, end: int) -> Tensor:
        found = run(input_ids=tokens[:, begin:end], past_key_values=cache, use_cache=True)
        return found.logits[:, -1]

    logits = step(0, PROMPT)
    for at in range(PROMPT, PROMPT + STEPS):
        logits = step(at, at + 1)
    return logits


@torch.no_grad()
def measure(name: str, rounds: int) -> dict[str, Any]:
    """One row of the table, of a step."""
    torch.manual_seed(0)
    model = CASES[name]().eval()
    exact = copy.deepcopy(model).double()
    expected = decode(exact, exact)
    calls: dict[str, Callable[[], Any]] = {}
    torch.compiler.reset()
    for contender, backend in {"eager": None, **training.BACKENDS}.items():
        own = copy.deepcopy(model)
        run = own if backend is None else torch.compile(own, backend=backend)
        calls[contender] = lambda o=own, r=run: decode(o, r)
        calls[contender]()
    errors = {contender: relative_error(call(), expected) for contender, call in calls.items()}
    wrong = [contender for contender, error in errors.items() if not error <= TOLERANCE]
    right = {contender: call for contender, call in calls.items() if contender not in wrong}
    row: dict[str, Any] = {
        "error": errors,
        "wrong": wrong,
        **summary(interleaved(right, CpuClock(), rounds)),
    }
    row["median_us"] = {contender: time / STEPS for contender, time in row["median_us"].items()}
    return row


if __name__ == "__main__":
    raise SystemExit(training.main(__doc__, RESULT, CASES, measure))
