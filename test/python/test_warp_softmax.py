"""Attention of short floats on a GPU: one kernel, whose scores stay in the registers of warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import deplo
from deplo import interpreter
from deplo.passes.decisions import recording

STAGES = ("tile", "kernel", "cuda")


def bits(value: torch.Tensor) -> np.ndarray:
    """A tensor as the interpreter takes it."""
    return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()


def randn(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def mask(rows: int, columns: int, kind: str) -> torch.Tensor:
    """What masks: the fourth row of a bool mask hides all."""
    kept = torch.rand(rows, columns, generator=torch.Generator().manual_seed(0)) < 0.6
    kept[3] = False
    return kept if kind == "bool" else torch.where(kept, 0.5, -3.0).to(torch.bfloat16)


def heads_last(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (each.transpose(1, 2) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2)


CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "plain": (F.scaled_dot_product_attention, (randn(2, 2, 64, 32),) * 3),
    "causal": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (randn(1, 2, 130, 16),) * 3,
    ),
    "ragged": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        (randn(1, 2, 50, 64), randn(1, 2, 77, 64), randn(1, 2, 77, 24)),
    ),
    "bool mask": (
        F.scaled_dot_product_attention,
        (randn(1, 2, 20, 32), *[randn(1, 2, 77, 32)] * 2, mask(20, 77, "bool")),
    ),
    "float mask": (
        F.scaled_dot_product_attention,
        (randn(1, 2, 20, 32), *[randn(1, 2, 77, 32)] * 2, mask(20, 77, "float")),
    ),
    "groups of heads, f16": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (randn(1, 4, 40, 16, dtype=torch.float16), *[randn(1, 2, 40, 16, dtype=torch.float16)] * 2),
    ),
    "heads last": (heads_last, (randn(1, 33, 2, 32),) * 3),
}


@pytest.mark.parametrize("name", CASES)
def test_every_stage_agrees(name: str) -> None:
    """Within what rounding weights and results to the short type leaves; with NaN where eager has it."""
    function, inputs = CASES[name]
    program = deplo.compile(function, inputs, target="sm_90a")
    assert len(program.kernels) == 1
    assert "mma.sync" in program.kernels[0].source
    wide = [v.double() if v.is_floating_point() else v for v in inputs]
    expected = function(*wide).float().numpy()
    tolerance = 2e-3 if inputs[0].dtype == torch.float16 else 1.6e-2
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        np.testing.assert_allclose(
            got.reshape(expected.shape), expected, rtol=tolerance, atol=tolerance, err_msg=stage
        )


def test_values_that_are_not_finite_stay_in_their_rows() -> None:
    """A NaN in a row of queries, an infinity among the values: as eager has them."""
    q, k, v = randn(1, 1, 16, 16), randn(1, 1, 32, 16), randn(1, 1, 32, 16)
    q[0, 0, 2, 5] = float("nan")
    v[0, 0, 7, 3] = float("inf")
    program = deplo.compile(F.scaled_dot_product_attention, (q, k, v), target="sm_90a")
    expected = F.scaled_dot_product_attention(q.float(), k.float(), v.float()).numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), [bits(t) for t in (q, k, v)])
        np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected), err_msg=stage)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((randn(1, 1, 32, 16, dtype=torch.float32),) * 3, "no bf16 or f16 that are loaded"),
        ((randn(1, 1, 32, 24),) * 3, "rows of 24 and 24 elements are no 16s and 8s up to 128"),
        ((randn(1, 1, 32, 256),) * 3, "rows of 256 and 256 elements"),
    ],
)
def test_what_stays_three_kernels_says_why(inputs: Any, said: str) -> None:
    with recording() as decisions:
        program = deplo.compile(F.scaled_dot_product_attention, inputs, target="sm_90a")
        program.stage("tile")
    assert len(program.kernels) > 1
    assert any(d.pass_name == "online-softmax" and said in d.reason for d in decisions)
