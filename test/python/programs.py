"""The corpus: small PyTorch programs with inputs, each named for what could go wrong in it.

    program, args = make("softmax")
    compiled("softmax")(*args)

Inputs are the same in every run. Shapes are small and uneven on purpose: primes, ones and zeros find what
powers of two hide.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import deplo
from deplo.machine.targets import get_target
from deplo.program import Program

Case = tuple[Callable[..., Any], tuple[Any, ...]]

CORPUS: dict[str, Callable[[], Case]] = {}
"""Name -> what makes the program and its inputs."""

SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-40, 3e38, -3e38, 1.0]


def make(name: str) -> Case:
    """A program of the corpus and its inputs, the same each time."""
    torch.manual_seed(zlib.crc32(name.encode()))
    program, args = CORPUS[name]()
    if isinstance(program, nn.Module):
        program.eval()
    return program, args


@cache
def compiled(name: str, target: str = "cpu") -> Program:
    """A program of the corpus, compiled for a target; captured once for all targets."""
    if target != "cpu":
        return Program(compiled(name).captured, get_target(target))
    program, args = make(name)
    return deplo.compile(program, args, target="cpu")


def case(name: str) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Put the decorated function into the corpus."""

    def add(function: Callable[[], Case]) -> Callable[[], Case]:
        CORPUS[name] = function
        return function

    return add


def _add(name: str, program: Callable[..., Any], *make_inputs: Callable[[], Any]) -> None:
    CORPUS[name] = lambda: (program, tuple(make_input() for make_input in make_inputs))


def _randn(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape).to(dtype)


def _special(dtype: torch.dtype = torch.float32) -> Callable[[], torch.Tensor]:
    return lambda: torch.tensor(SPECIAL, dtype=torch.float64).to(dtype)


def _integers(*values: int, dtype: torch.dtype = torch.int64) -> Callable[[], torch.Tensor]:
    return lambda: torch.tensor(values, dtype=dtype)


# --------------------------------------------------------------------------- what users write


def _tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(0.797 * (x + 0.044 * x * x * x)))


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(x, dim=-1)


def _exp_neg_slice(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(torch.neg(x)[5:8])


_add("tanh_gelu", _tanh_gelu, _randn(32, 18944))
_add("softmax", _softmax, _randn(4, 8))
_add("exp_neg_slice", _exp_neg_slice, _randn(16))
_add("exp_of_sum", lambda x: torch.exp(x.sum(-1, True)), _randn(4, 8))
_add("cat_transposed", lambda a, b: torch.cat([a, b.T], 1), _randn(5, 3), _randn(7, 5))
_add("mean_of_two_axes", lambda x: x.mean(dim=(0, 2)), _randn(3, 5, 7))
_add("batch_statistics", lambda x: torch.var_mean(x, (0, 2, 3)), _randn(9, 5, 4, 7))
_add("batch_statistics_in_vectors", lambda x: x.mean((0, 2, 3)), _randn(9, 5, 8, 8))
_add(
    "max_around_channels",
    lambda x: x.amax((0, 2)),
    lambda: torch.tensor(SPECIAL * 7).repeat(7, 3, 1),
)
_add("columns_of_two_axes", lambda x: x.sum((0, 2)), _randn(9, 3, 7, 11))
_add(
    "batch_norm_of_a_batch",
    lambda x: F.batch_norm(x, None, None, training=True),
    _randn(6, 3, 7, 5),
)
_add("vector_times_matrix", lambda x, y: x @ y, _randn(1, 530), _randn(530, 17))
_add(
    "attention_of_one_query",
    F.scaled_dot_product_attention,
    _randn(1, 2, 1, 64),
    *[_randn(1, 2, 50, 64)] * 2,
)
_add(
    "softmax_with_a_mask",
    lambda x, m: F.softmax(x + m, -1),
    _randn(2, 3, 5, 70),
    _randn(2, 1, 1, 70),
)
_add("permute_slice_flip", lambda x: x.permute(2, 0, 1)[::2].flip(0), _randn(3, 5, 7))
_add("where_amax", lambda x: torch.where(x > 0, x, -x).amax(1), _randn(5, 9))

for _half in (torch.bfloat16, torch.float16):
    _suffix = "bf16" if _half is torch.bfloat16 else "f16"
    _add(f"tanh_gelu_{_suffix}", _tanh_gelu, _randn(4, 311, dtype=_half))
    _add(f"softmax_{_suffix}", _softmax, _randn(4, 8, dtype=_half))
    _add(f"exp_neg_slice_{_suffix}", _exp_neg_slice, _randn(16, dtype=_half))
    CORPUS[f"layer_norm_{_suffix}"] = lambda half=_half: (
        nn.LayerNorm(64).to(half),
        (torch.randn(3, 5, 64).to(half),),
    )


@case("rms_norm")
def _() -> Case:
    return nn.RMSNorm(256), (torch.randn(1, 7, 256),)


@case("layer_norm")
def _() -> Case:
    return nn.LayerNorm(64), (torch.randn(3, 5, 64),)


@case("linear")
def _() -> Case:
    return nn.Linear(3, 2, bias=False), (torch.randn(4, 3),)


@case("linear_odd")
def _() -> Case:
    return nn.Linear(65, 33), (torch.randn(7, 65),)


@case("linear_bf16")
def _() -> Case:
    return nn.Linear(65, 33).bfloat16(), (torch.randn(7, 65).bfloat16(),)


@case("linear_f16_tensor_cores")
def _() -> Case:
    return nn.Sequential(nn.Linear(70, 33), nn.ReLU()).half(), (torch.randn(40, 70).half(),)


class _Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(64, 40, bias=False), nn.Linear(64, 40, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(self.gate(x)) * self.up(x)


@case("gated_bf16_tensor_cores")
def _() -> Case:
    return _Gated().bfloat16(), (torch.randn(33, 64).bfloat16(),)


@case("mlp")
def _() -> Case:
    return nn.Sequential(nn.Linear(13, 37), nn.GELU(), nn.Linear(37, 13)), (torch.randn(5, 13),)


@case("grouped_causal_attention")
def _() -> Case:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3, enable_gqa=True)

    return attend, (torch.randn(2, 4, 5, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8))


@case("attention_bool_mask")
def _() -> Case:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=m)

    mask = torch.rand(3, 7) > 0.3
    mask[:, 0] = True
    return attend, (torch.randn(2, 2, 3, 4), torch.randn(2, 2, 7, 4), torch.randn(2, 2, 7, 4), mask)


@case("attention_additive_mask")
def _() -> Case:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=m)

    return attend, (
        *(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 7, 4), torch.randn(1, 2, 7, 4)),
        torch.randn(1, 1, 3, 7),
    )


@case("attention_more_queries_than_keys")
def _() -> Case:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    return attend, (torch.randn(1, 2, 7, 4), torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4))


@case("embedding")
def _() -> Case:
    return nn.Embedding(11, 3), (torch.tensor([[0, 10, 5], [3, 3, 1]]),)


@case("one_hot")
def _() -> Case:
    return lambda i: F.one_hot(i, 5), (torch.tensor([[0, 4, 2], [3, 3, 1]]),)


@case("kwargs_and_a_dict")
def _() -> Case:
    def both(x: dict[str, torch.Tensor], scale: float = 2.0) -> dict[str, torch.Tensor]:
        return {"sum": x["a"] + x["b"], "scaled": x["a"] * scale}

    return both, ({"a": torch.randn(3), "b": torch.randn(3)},)


# --------------------------------------------------------------------------- integers and bools

_add("sum_of_int64", lambda x: x.sum(1), lambda: torch.randint(-9, 9, (3, 7)))
_add("sum_of_int32", lambda x: x.sum(0), lambda: torch.randint(-9, 9, (3, 7), dtype=torch.int32))
_add("product_of_int64", lambda x: x.prod(1), lambda: torch.randint(-3, 4, (3, 7)))
_add("extremes_of_int64", lambda x: (x.amax(1), x.amin(0)), lambda: torch.randint(-9, 9, (3, 7)))
_add("any_and_all", lambda x: (x.any(1), x.all(0)), lambda: torch.rand(5, 7) > 0.4)
_add("sum_of_bools", lambda x: x.sum(1), lambda: torch.rand(5, 7) > 0.4)
_add("mean_of_bools_as_float", lambda x: x.float().mean(), lambda: torch.rand(5, 7) > 0.4)
_add("logic", lambda a, b: (a & b, a | b, a ^ b, ~a), *[lambda: torch.rand(9) > 0.5] * 2)
_add(
    "division_by_negatives",
    lambda a, b: (a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b)),
    _integers(7, -7, 7, -7, 0, 6, -6, 1),
    _integers(2, 2, -2, -2, -3, 3, 3, -5),
)
_add(
    "int32_wraps",
    lambda a, b: (a + b, a * b, a - b, -a),
    _integers(2**31 - 1, -(2**31), 123456789, -5, dtype=torch.int32),
    _integers(1, -1, 987654321, 7, dtype=torch.int32),
)
_add(
    "int8_wraps",
    lambda a, b: (a + b, a * b, a - b, (a + b).to(torch.int32)),
    _integers(127, -128, 100, -5, dtype=torch.int8),
    _integers(1, -1, 100, 7, dtype=torch.int8),
)
_add(
    "casts",
    lambda x: (x.to(torch.int32), x.to(torch.bool), x.double(), x.half(), x.bfloat16()),
    lambda: torch.tensor([-2.7, -0.5, 0.0, -0.0, 0.5, 2.7, 1e5, -1e-30]),
)
_add(
    "integer_casts",
    lambda x: (x.to(torch.int8), x.float(), x.half(), x.bool(), x.to(torch.int16)),
    _integers(0, 1, -1, 127, 128, 300, -300, 2049),
)
_add("arange_and_compare", lambda x: x * (torch.arange(7) < 4), _randn(3, 7))

# --------------------------------------------------------------------------- shapes

_add("zero_sized", lambda x: torch.exp(x) + 1, _randn(0, 5))
_add("zero_sized_rows_sum", lambda x: x.sum(1), _randn(0, 5))
_add("empty_sum", lambda x: (x.sum(1), x.prod(1)), _randn(3, 0))
_add("empty_all_any", lambda x: ((x > 0).all(1), (x > 0).any(1)), _randn(3, 0))
_add("empty_mean", lambda x: x.mean(1), _randn(3, 0))
_add("scalar_input", lambda x: torch.exp(x) * 2, _randn())
_add("scalar_sum", lambda x: x.sum(), _randn(7, 11))
_add("scalar_broadcast", lambda x, s: x * s + s, _randn(3, 5), _randn())
_add("ones_everywhere", lambda x: F.softmax(x, -1) + x.sum(1, True), _randn(1, 1, 1))
_add("primes", lambda x: F.softmax(x * 3, 1).sum(2), _randn(7, 131, 3))
_add("longer_than_a_block", lambda x: x * 2 + 1, _randn(1031))
_add("rank_six", lambda x: x.sum((1, 4)).permute(3, 0, 2, 1), _randn(2, 3, 2, 1, 3, 2))
_add(
    "broadcast_everywhere",
    lambda a, b, c, d: a + b * c - d,
    *(_randn(3, 1, 5), _randn(4, 1), _randn(5), _randn(1, 4, 1)),
)
_add("broadcast_both", lambda a, b: a * b, _randn(3, 1), _randn(1, 5))
_add("expanded_input", lambda x: x + 1, lambda: torch.randn(3, 1).expand(3, 5))
_add("permuted_input", lambda x: x.sum(0), lambda: torch.randn(3, 5, 7).permute(2, 0, 1))
_add("strided_input", lambda x: x * 2, lambda: torch.randn(6, 10)[::2, 1::3])
_add("overlapping_input", lambda x: x.sum(1), lambda: torch.randn(9).unfold(0, 4, 1))
_add("reshape_chain", lambda x: x.reshape(5, 6).T.reshape(2, 15) * 2, _randn(3, 10))
_add("reshape_of_transpose", lambda x: x.transpose(0, 1).reshape(-1) + 1, _randn(7, 5))
# Large enough that a GPU's blocks read tiles of them.
_add(
    "transposed_tiles",
    lambda a, b, c: a.T.contiguous() * 2 + b.T + c,
    _randn(211, 223),
    _randn(211, 223, dtype=torch.bfloat16),
    _randn(223, 211),
)
_add(
    "transposed_halves",
    lambda a, b: F.pad(torch.cat([a.T, b.flip(0).T]), (1, 2)),
    _randn(211, 100),
    _randn(211, 123),
)
_add(
    "channels_go_last",
    lambda x: x.permute(0, 2, 3, 1).contiguous(),
    _randn(2, 40, 23, 29, dtype=torch.float16),
)
_add("transposed_row", lambda x: x.permute(0, 2, 1).reshape(-1) - 1, _randn(2, 131, 173))
_add("cat_with_empty", lambda a, b: torch.cat([a, b, a], 0), _randn(3, 2), _randn(0, 2))
_add("cat_three", lambda a, b, c: torch.cat([a, b, c]).exp(), _randn(3), _randn(1), _randn(5))
_add("stack", lambda a, b: torch.stack([a, b * 2], 1), _randn(3, 5), _randn(3, 5))
_add("slices", lambda x: (-x[-3:], -x[:-2:2], -x[1:100:3], -x[..., -1]), _randn(7, 5))
_add(
    "attention_without_a_score",  # every score of the second query is -inf
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    lambda: torch.tensor([[[1.0, 1.0], [-torch.inf, 1.0]]]),
    lambda: torch.ones(1, 3, 2),
    _randn(1, 3, 2),
)
_add("empty_slice", lambda x: x[5:2] + 1, _randn(7, 5))
_add("pad", lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), _randn(3, 5))
_add("roll_twice", lambda x: x.roll((1, -2), (1, 2)).roll((1, -2), (1, 2)) * 2, _randn(1, 8, 7))
_add("roll_by_cat", lambda x: torch.cat([x[:, -2:], x[:, :-2]], 1) * x, _randn(3, 7))
_add("rotate_half", lambda x: torch.cat([-x[..., 3:], x[..., :3]], -1) * 0.5 + x, _randn(2, 5, 6))

# --------------------------------------------------------------------------- values

_add("special_values", lambda x: (x + 1, x * 2, -x, x.abs(), x.clamp(-1, 1)), _special())
_add("special_values_f16", lambda x: (x + 1, x * 2, -x, torch.relu(x)), _special(torch.float16))
_add("special_values_bf16", lambda x: (x + 1, x * 2, torch.relu(x)), _special(torch.bfloat16))
_add(
    "special_functions",
    lambda x: (torch.exp(x), torch.tanh(x), torch.sigmoid(x), torch.log1p(x), torch.sqrt(x)),
    _special(),
)
_add(
    "comparisons_of_special_values",
    lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y, torch.maximum(x, y)),
    lambda: torch.tensor(SPECIAL * 2),
    lambda: torch.tensor(SPECIAL + SPECIAL[1:] + SPECIAL[:1]),
)
_add(
    "extremes_with_nan", lambda x: (x.amax(1), x.amin(1)), lambda: torch.tensor(SPECIAL).view(2, 5)
)
_add(
    "softmax_with_infinities",
    _softmax,
    lambda: torch.tensor([[-float("inf"), 0.0, 1.0], [-float("inf")] * 3, [1e30, -1e30, 1e30]]),
)
_add("huge_sums", lambda x: x.sum(1), lambda: torch.full((2, 5), 3e38))
_add("double", lambda x: F.softmax(x, 1) + torch.erf(x), _randn(3, 7, dtype=torch.float64))
_add("where_scalars", lambda x: torch.where(x > 0, 1.5, -2.5) + x, _randn(3, 5))
_add("power", lambda x: (x**2, x**3, x.abs() ** 0.5, 2.0**x), _randn(3, 5))
_add("masked_fill", lambda x: x.masked_fill(x < 0, -float("inf")).amax(1), _randn(5, 3))

# --------------------------------------------------------------------------- results

_add("several_outputs", lambda x: (x + 1, x.sum(), x.T), _randn(3, 5))
_add("one_output_twice", lambda x: (lambda y: (y, y))(x * 2), _randn(3, 5))
_add("output_is_the_input", lambda x: (x, x + 1), _randn(3, 5))
_add("outputs_are_views", lambda x: (x.view(5, 3), (x + 1).T, x[0] * 2), _randn(3, 5))
_add("constant_output", lambda x: (torch.ones(2, 3), x + torch.full((3,), 2.0)), _randn(2, 3))
_add("unused_input", lambda x, y: x + 1, _randn(3), _randn(4))
_add(
    "a_value_used_by_many",
    lambda x: (lambda e: (e.sum(1), e + 1, e.T * e.T))(x.exp()),
    _randn(3, 5),
)

# --------------------------------------------------------------------------- once wrong, or easily so

_add("signed_zeros", lambda x: 1 / torch.where(x > 0, 0.0, -0.0) + torch.tensor(-0.0), _randn(3, 5))
_add("negative_zero_result", lambda x: (torch.full((3,), -0.0) * x.abs(), x * 0.0), _randn(3))
_add(
    "zero_plus_negative_zero",
    lambda x: (x + 0.0, x - 0.0, x * 1.0, x * -1.0, x + (-0.0)),
    _special(),
)
_add("nan_is_not_itself", lambda x: (x == x, x != x, x - x, x / x), _special())
_add("square_transposed", lambda a, b: (a * 2).T @ b + a, _randn(5, 5), _randn(5, 5))
_add(
    "cat_of_computed",
    lambda a, b: torch.cat([a.exp(), (b * 2).flip(0)], 0),
    _randn(2, 3),
    _randn(5, 3),
)
_add(
    "strange_bool_arithmetic",
    lambda x: (x * 2, x + x, x.float() - 0.5),
    lambda: torch.rand(7) > 0.5,
)
_add("flip_of_reshape", lambda x: x.reshape(6, 5).flip(0).reshape(2, 3, 5)[:, 1:] * 2, _randn(5, 6))
_add("sum_keeps_half", lambda x: x.sum(1), _randn(3, 300, dtype=torch.float16))
_add(
    "minimum_of_ints",
    lambda a, b: torch.minimum(a, b) + torch.maximum(a, b),
    *[_integers(1, -2, 3)] * 2,
)
_add("nan_extremes_double", lambda x: x.amax(1), lambda: torch.tensor(SPECIAL).double().view(2, 5))
_add("known_condition", lambda a, b: torch.cat([a, b]).exp()[:3] * 2, _randn(3), _randn(4))
_add("cat_of_slices", lambda a, b: torch.cat([torch.cat([a, b])[:5], a]), _randn(3), _randn(4))
_add("cat_of_padded", lambda a, b: torch.cat([F.pad(a, (1, 1)), b]), _randn(3), _randn(4))
_add(
    "depthwise",
    lambda x, w: F.conv2d(x.relu(), w, padding=1, groups=3),
    _randn(2, 3, 9, 11),
    _randn(3, 1, 3, 3),
)
_add("strided_pool", lambda x: F.max_pool2d(x, 3, 2, 1), _randn(1, 3, 11, 14))
_add("siblings", lambda x, a, b: (x @ a, x @ b), _randn(4, 9), _randn(9, 12), _randn(9, 12))
_add("a_sum_and_a_sum_of_it", lambda x, y: (x + y, x + (x + y)), _randn(7), _randn(7))
_add("differences", lambda x: x[1:] - x[:-1], _randn(7))

# --------------------------------------------------------------------------- writing at positions


def _put_in_place(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y[:, i] = v
    y[i, 1] += 3
    y[y > 1] = 0.5
    return y


_add("put_in_place", _put_in_place, _randn(5, 6), _integers(0, -1, 0, 3), _randn(5, 4))
_add(
    "scatter_last_wins",
    lambda x, i, s: (x.scatter(0, i, s), x.scatter(1, i, 2.5), x.exp().scatter(0, i[:1], s)),
    _randn(3, 4),
    lambda: torch.tensor([[0, 2, 1], [0, 2, 0]]),
    _randn(2, 4),
)
_add(
    "scatter_folds",
    lambda x, i, s: (
        x.scatter_add(0, i, s),
        *(x.scatter_reduce(0, i, s, r) for r in ("prod", "amax", "mean")),
        x.scatter_reduce(0, i, s, "amin", include_self=False),
    ),
    lambda: torch.tensor(SPECIAL),
    _integers(3, 0, 3, 4, 1, 4),
    lambda: torch.tensor([1.0, 2.0, -5.0, -0.0, float("nan"), -0.0]),
)
_add(
    "index_add_bf16",
    lambda x, i, s: (x.index_add(1, i, s, alpha=2), x.index_copy(1, i, s)),
    _randn(3, 5, dtype=torch.bfloat16),
    _integers(4, 0, 4),
    _randn(3, 3, dtype=torch.bfloat16),
)
_add(
    "scatter_add_of_int8_wraps",
    lambda x, i: x.scatter_add(0, i, x),
    _integers(127, -128, 100, 5, dtype=torch.int8),
    _integers(0, 1, 0, 3),
)
_add(
    "masked_scatter",
    lambda x, m, s: x.masked_scatter(m, s),
    *(_randn(3, 5), lambda: torch.rand(5) > 0.4, _randn(15)),
)
_add(
    "sort",
    lambda x: (*x.sort(dim=0, stable=True), *x.sort(dim=1, descending=True, stable=True)),
    lambda: torch.tensor([SPECIAL, SPECIAL[::-1], [1.0, 2.0] * 5]),
)
_add("topk_bf16", lambda x: x.topk(3, 1)[0], _randn(4, 7, dtype=torch.bfloat16))
_add(
    "middle_values",
    lambda x: (x.median(), x.median(1)[0], x.nanmedian(0)[0], x.kthvalue(2, 1)[0]),
    lambda: torch.tensor([SPECIAL[2:8], SPECIAL[:6]]),
)
_add(
    "running_extrema",
    lambda x: (*x.cummax(0), *x.cummin(0), x.logcumsumexp(0)),
    lambda: torch.tensor([1.0, -2.0, 1.0, 3.0, 3.0, -float("inf"), float("nan"), 4.0]),
)


def _places(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    bounds = torch.tensor([-float("inf"), -1.0, 0.0, 0.0, 2.5])
    return torch.bucketize(x, bounds), torch.searchsorted(bounds, x, right=True)


_add("searchsorted", _places, lambda: torch.tensor(SPECIAL))
_add("diagonal_scatter", lambda x, s: x.diagonal_scatter(s, -1), _randn(4, 5), _randn(3))
_add("as_strided", lambda x: x.exp().as_strided((3, 4), (2, 1), 1), _randn(4, 5))


def _saved(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A norm with what its gradient needs, and what reads other elements than it has at hand."""
    mean = x.mean(-1, True)
    deviation = torch.rsqrt((x - mean).square().mean(-1, True) + 1e-5)
    y = (x - mean) * deviation * w
    return mean, deviation, y, y.sigmoid(), y.flip(1).neg(), (y * x).sum(0), y.sum(0), y - y.sum(0)


_add("saved_norm", _saved, _randn(139, 7), _randn(7))
