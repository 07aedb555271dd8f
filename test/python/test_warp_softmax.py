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


def heads_of_projection(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **kwargs: bool
) -> torch.Tensor:
    """Heads of 64 that lie side by side."""
    q, k, v = (each.unflatten(-1, (-1, 64)).transpose(1, 2) for each in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, **kwargs).transpose(1, 2).flatten(2)


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

GROUPED: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "causal, two slabs of keys": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        (randn(1, 2, 130, 128), randn(1, 2, 130, 128), randn(1, 2, 130, 64)),
    ),
    "ragged, f16, two slabs of values": (
        F.scaled_dot_product_attention,
        (
            randn(1, 2, 17, 64, dtype=torch.float16),
            randn(1, 2, 77, 64, dtype=torch.float16),
            randn(1, 2, 77, 128, dtype=torch.float16),
        ),
    ),
    "float mask": (
        F.scaled_dot_product_attention,
        (randn(1, 2, 20, 64), *[randn(1, 2, 77, 64)] * 2, mask(20, 77, "float")),
    ),
    "bool mask": (
        F.scaled_dot_product_attention,
        (randn(1, 1, 20, 64), *[randn(1, 1, 77, 64)] * 2, mask(20, 77, "bool")),
    ),
    "heads of a projection": (heads_of_projection, (randn(2, 64, 128),) * 3),
    "groups of heads of a projection": (
        lambda q, k, v: heads_of_projection(q, k, v, enable_gqa=True),
        (randn(1, 64, 256), *[randn(1, 64, 128)] * 2),
    ),
}
"""Those that warpgroups multiply."""


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("name", "grouped"), [*((n, False) for n in CASES), *((n, True) for n in GROUPED)]
)
def test_every_stage_agrees(name: str, grouped: bool) -> None:
    """Within what rounding weights and results to the short type leaves; with NaN where eager has it."""
    function, inputs = (GROUPED if grouped else CASES)[name]
    program = deplo.compile(function, inputs, target="sm_90a")
    assert len(program.kernels) == 1
    assert ("wgmma" if grouped else "mma.sync") in program.kernels[0].source
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


def test_values_of_the_next_sequence_are_not_loaded() -> None:
    """Sequences that follow each other in one axis: what lies after the last of 70 is another's."""

    def attention(q: torch.Tensor, kv: torch.Tensor) -> torch.Tensor:
        k = v = kv.unflatten(0, (2, 70)).unsqueeze(1)
        return F.scaled_dot_product_attention(q, k, v)

    q, kv = randn(2, 1, 70, 64), randn(140, 64)
    kv[70, 3] = float("inf")
    with recording() as decisions:
        program = deplo.compile(attention, (q, kv), target="sm_90a")
        (got,) = interpreter.execute(program.stage("cuda"), [bits(q), bits(kv)])
    assert any("what a block shares is no box of rows" in d.reason for d in decisions)
    expected = attention(q.float(), kv.float()).numpy()
    np.testing.assert_array_equal(np.isfinite(got.reshape(expected.shape)), np.isfinite(expected))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_large_exponents_and_long_rows(dtype: torch.dtype) -> None:
    """Scores of some thousands, whose differences count; 1500 weights of which no one counts."""
    q, k, v = (randn(1, 1, 32, 64, dtype=dtype), *[randn(1, 1, 1500, 64, dtype=dtype)] * 2)
    for scale in (30.0, 1e-3):
        inputs = (q * scale, k * scale, v)
        program = deplo.compile(F.scaled_dot_product_attention, inputs, target="sm_90a")
        expected = F.scaled_dot_product_attention(*[t.double() for t in inputs]).numpy()
        (got,) = interpreter.execute(program.stage("tile"), list(map(bits, inputs)))
        tolerance = 2e-3 if dtype == torch.float16 else 1.6e-2
        np.testing.assert_allclose(got.reshape(expected.shape), expected, tolerance, tolerance)


def test_the_parts_of_a_transposed_slab_lie_16_rows_apart() -> None:
    """PTX ISA, "Matrix Descriptor Format": 8 rows of 128 bytes are 64 units of 16 bytes."""
    function, inputs = GROUPED["float mask"]
    (source,) = [k.source for k in deplo.compile(function, inputs, target="sm_90a").kernels]
    lines = [line for line in source.splitlines() if "wgmma.mma_async" in line]
    of_scores = [line for line in lines if ", 1, 1, 1, 0;" in line]
    of_values = [line for line in lines if ", 1, 1, 1, 1;" in line]
    assert len(of_scores) == len(of_values) == len(lines) // 2 == 4
    for part, (score, value) in enumerate(zip(of_scores, of_values, strict=True)):
        assert (f"columns + {2 * part})" in score) == (part > 0)
        assert (f" + {128 * part})" in value) == (part > 0)
