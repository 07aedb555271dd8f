"""Every rule of decompose-torch computes what eager PyTorch computes."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from deplo.dialects.torch import ALL_OPS, ScanOp
from deplo.errors import UnsupportedOpError
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source
from deplo.interpreter import ProgramError, execute
from deplo.passes.torch.decompose_torch import RULES, DecomposeTorchPass

torch.manual_seed(0)

INF, NAN = math.inf, math.nan
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.5, 2.5, 3.5, -2.5, INF, -INF, NAN, 1e-3, 40.0])
X = torch.randn(3, 4, 5)
POSITIVE = X.abs() + 0.1
INTEGERS = torch.randint(-9, 10, (3, 4))
DIVISORS = torch.tensor([[1, -2, 3, 5]])
BOOLS = INTEGERS > 0
HALF = torch.randn(4, 8).half()
BF16 = torch.randn(4, 8).bfloat16()
Q, K, V = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 5)
EMPTY = torch.zeros(0, 4)
LONG = torch.cat([torch.tensor([[-0.0], [1.5]]), torch.randn(2, 1100)], 1).T.contiguous()
SCALAR = torch.tensor(1.25)


def numpy_of(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).contiguous().numpy()


def run(function, *args, **kwargs):
    """What Tensor IR gives for `function`, as tensors of the eager dtypes, and what eager gives."""
    return run_captured(capture(function, args, kwargs), args, kwargs), function(*args, **kwargs)


def run_captured(captured, args, kwargs):
    DecomposeTorchPass().apply(None, captured.module)
    captured.module.verify()
    flat = captured.flatten_inputs(args, kwargs)
    tensors = [
        captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index]
        for a in captured.arguments
    ]
    results = execute(captured.module, [numpy_of(t) for t in tensors])
    return captured.unflatten_outputs([torch.from_numpy(np.array(r)) for r in results], tensors)


def check(function, *args, **kwargs):
    got, expected = run(function, *args, **kwargs)
    flat_got, flat_expected = (torch.utils._pytree.tree_leaves(v) for v in (got, expected))
    assert len(flat_got) == len(flat_expected)
    for mine, eager in zip(flat_got, flat_expected, strict=True):
        if not isinstance(eager, torch.Tensor):
            assert mine == eager
            continue
        assert mine.shape == eager.shape
        if eager.dtype is torch.bfloat16:  # numpy holds it as float32
            assert torch.equal(mine.nan_to_num(), mine.bfloat16().float().nan_to_num())
            torch.testing.assert_close(mine, eager.float(), rtol=1e-2, atol=1e-2, equal_nan=True)
        else:
            torch.testing.assert_close(mine, eager.detach(), equal_nan=True)


UNARY = (
    "neg abs sign floor ceil round trunc exp exp2 expm1 sin cos tan tanh erf sigmoid relu isnan isinf"
    " logical_not reciprocal"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_on_special_values(name):
    check(getattr(torch, name), SPECIAL)


@pytest.mark.parametrize("name", "log log2 log1p sqrt rsqrt".split())
def test_unary_on_positive_values(name):
    check(getattr(torch, name), POSITIVE)


@pytest.mark.parametrize(
    "name", "neg abs sign floor round relu isnan logical_not bitwise_not".split()
)
def test_unary_on_integers(name):
    check(getattr(torch, name), INTEGERS)


@pytest.mark.parametrize("name", "exp sqrt sigmoid tanh".split())
def test_float_functions_of_integers(name):
    check(getattr(torch, name), INTEGERS.abs())


ELEMENTWISE = {
    "add_broadcasts": lambda: (lambda a, b: a + b, X, X[0, :, :1]),
    "add_true": lambda: (lambda a: (a + True, a * True, a == True), INTEGERS),  # noqa: E712
    "add_alpha": lambda: (lambda a, b: torch.add(a, b, alpha=3), X, X[0]),
    "add_scalar_alpha": lambda: (lambda a: torch.add(a, 2, alpha=0.5), X),
    "add_bools": lambda: (lambda a, b: a + b, BOOLS, BOOLS.flip(0)),
    "mul_bools": lambda: (lambda a, b: a * b, BOOLS, BOOLS.flip(0)),
    "sub_alpha": lambda: (lambda a, b: torch.sub(a, b, alpha=2), X, X[0]),
    "number_first": lambda: (lambda a: (3 - a, 2 / a, 0.1 + a, 3 * a), X),
    "number_first_double": lambda: (lambda a: (3 - a, 2 / a, 0.1 + a), X.double()),
    "number_first_integers": lambda: (lambda a: (3 - a, 2 / a, 0.5 - a, 1 < a), INTEGERS),
    "mul_int_float": lambda: (lambda a, b: a * b, INTEGERS, torch.randn(4)),
    "mul_half_by_number": lambda: (lambda a: a * 0.1, BF16),
    "half_plus_bf16": lambda: (lambda a, b: a + b, HALF, BF16),
    "int_plus_float_number": lambda: (lambda a: a + 0.5, INTEGERS),
    "zero_dim_double": lambda: (lambda a, b: a * b, X, torch.tensor(2.0, dtype=torch.float64)),
    "div_integers": lambda: (lambda a, b: a / b, INTEGERS, DIVISORS),
    "floor_div_integers": lambda: (lambda a, b: a // b, INTEGERS, DIVISORS),
    "trunc_div_integers": lambda: (
        lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        INTEGERS,
        DIVISORS,
    ),
    "floor_div_number": lambda: (lambda a: a // -2, INTEGERS),
    "trunc_div_floats": lambda: (lambda a: torch.div(a, 0.3, rounding_mode="trunc"), X * 3),
    "remainder": lambda: (lambda a, b: torch.remainder(a, b), INTEGERS, DIVISORS),
    "remainder_number": lambda: (lambda a: a % 3, INTEGERS),
    "fmod": lambda: (lambda a, b: torch.fmod(a, b), INTEGERS, DIVISORS),
    "pow_tensors": lambda: (lambda a, b: a**b, POSITIVE, X),
    "pow_base": lambda: (lambda a: 2.0**a, X),
    **{
        f"pow_{p}": lambda p=p: (lambda a: a**p, POSITIVE)
        for p in (0, 1, 2, 3, 0.5, -0.5, -1, -2, 2.7)
    },
    "pow_integers": lambda: (lambda a: a**3, INTEGERS),
    "pow_zero_integers": lambda: (lambda a: a**0, INTEGERS),
    "maximum_nan": lambda: (torch.maximum, SPECIAL, SPECIAL.flip(0)),
    "minimum_nan": lambda: (torch.minimum, SPECIAL, SPECIAL.flip(0)),
    "clamp": lambda: (lambda a: a.clamp(-0.5, 0.5), SPECIAL),
    "clamp_low": lambda: (lambda a: a.clamp(min=0.1), BF16),
    "clamp_integers": lambda: (lambda a: a.clamp(max=2), INTEGERS),
    "clamp_tensors": lambda: (lambda a, b: torch.clamp(a, b, b + 1), X, X[0]),
    "compare_promotes": lambda: (
        lambda a: (a > 0.5, a == 1, a <= 2, a != 3, a >= 0, a < 1),
        INTEGERS,
    ),
    "compare_tensors": lambda: (
        lambda a, b: (a > b, a == b, a <= b, a != b),
        SPECIAL,
        SPECIAL.flip(0),
    ),
    "compare_half_number": lambda: (lambda a: a > 0.1, (BF16 * 0 + 0.1)),
    "compare_bools": lambda: (lambda a: a == True, BOOLS),  # noqa: E712
    "logical": lambda: (
        lambda a, b: (torch.logical_and(a, b), torch.logical_or(a, b), torch.logical_xor(a, b)),
        SPECIAL,
        SPECIAL.flip(0),
    ),
    "bitwise": lambda: (lambda a: (a & 6, a | 3, a ^ a.flip(0)), INTEGERS),
    "bitwise_bools": lambda: (lambda a: (a & a.flip(0), a | a.flip(0), ~a), BOOLS),
    "where": lambda: (lambda a: torch.where(a > 0, a, -a), X),
    "where_promotes": lambda: (
        lambda c, a, b: torch.where(c, a, b),
        BOOLS,
        INTEGERS,
        torch.ones(()),
    ),
    "where_half": lambda: (lambda a: torch.where(a > 0, a, 0.0), HALF),
    "masked_fill": lambda: (lambda a, m: a.masked_fill(m, -INF), INTEGERS.float(), BOOLS),
    "gelu": lambda: (F.gelu, X),
    "gelu_tanh": lambda: (lambda a: F.gelu(a, approximate="tanh"), X),
    "silu": lambda: (F.silu, X),
    "leaky_relu": lambda: (lambda a: F.leaky_relu(a, 0.2), SPECIAL),
    "elu": lambda: (lambda a: F.elu(a, 1.5), X),
    "hardtanh": lambda: (lambda a: F.hardtanh(a, -0.5, 0.75), SPECIAL),
    "gelu_half": lambda: (F.gelu, HALF),
    "silu_bf16": lambda: (F.silu, BF16),
    **{
        f"to_{d}": lambda d=d: (lambda a: a.to(d), X * 100)
        for d in (torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool)
    },
    "half_to_int": lambda: (lambda a: (a * 10).to(torch.int64), HALF),
    "int_to_half": lambda: (lambda a: a.half(), INTEGERS),
    "bool_to_float": lambda: (lambda a: a.float(), BOOLS),
    "double_to_half": lambda: (lambda a: a.half(), X.double()),
    "clone": lambda: (lambda a: a.clone() + 1, X),
    "zero_dim": lambda: (lambda a: torch.exp(a) * a, SCALAR),
    "empty": lambda: (lambda a: torch.exp(a) + 1, EMPTY),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    function, *args = ELEMENTWISE[name]()
    check(function, *args)


REDUCTIONS = {
    "sum": lambda: (lambda a: (a.sum(), a.sum(1), a.sum((0, 2), keepdim=True), a.sum(-1, True)), X),
    "sum_integers": lambda: (lambda a: (a.sum(), a.sum(1)), INTEGERS.to(torch.int8)),
    "sum_bools": lambda: (lambda a: (a.sum(), a.sum(1)), BOOLS),
    "sum_half": lambda: (lambda a: a.sum(-1), HALF),
    "sum_dtype": lambda: (
        lambda a: (a.sum(-1, dtype=torch.float32), a.sum(dtype=torch.float64)),
        HALF,
    ),
    "sum_to_half": lambda: (lambda a: a.sum(-1, dtype=torch.float16), X),
    "sum_int_dtype": lambda: (lambda a: a.sum(dtype=torch.int32), INTEGERS),
    "sum_zero_dim": lambda: (lambda a: (a.sum(), a.sum(0)), SCALAR),
    "sum_empty": lambda: (lambda a: (a.sum(), a.sum(0), a.sum(1)), EMPTY),
    "mean": lambda: (lambda a: (a.mean(), a.mean((0, 2)), a.mean(-1, keepdim=True)), X),
    "mean_bf16": lambda: (lambda a: a.mean(-1), BF16),
    "mean_empty": lambda: (lambda a: a.mean(0), EMPTY),
    "prod": lambda: (lambda a: (a.prod(), a.prod(1)), X),
    "prod_integers": lambda: (lambda a: a.prod(1), INTEGERS),
    "extrema": lambda: (lambda a: (a.amax(1), a.amin((0, 2)), a.max(), a.min()), X),
    "extrema_nan": lambda: (lambda a: (a.amax(), a.amin(0)), SPECIAL),
    "extrema_bools": lambda: (lambda a: (a.amax(1), a.amin(1)), BOOLS),
    "extrema_half": lambda: (lambda a: a.amax(1), HALF),
    "extrema_integers": lambda: (lambda a: (a.amax(1), a.min()), INTEGERS),
    "argmax": lambda: (lambda a: (a.argmax(), a.argmax(1), a.argmin(-1, keepdim=True)), X),
    "argmax_ties": lambda: (lambda a: (a.argmax(1), a.argmin(0)), torch.ones(3, 4)),
    "argmax_nan": lambda: (lambda a: (a.argmax(), a.argmin()), SPECIAL),
    "argmax_integers": lambda: (lambda a: a.argmax(1), INTEGERS),
    "any_all": lambda: (lambda a: (a.any(), a.any(1), a.all(), a.all(0, keepdim=True)), BOOLS),
    "any_floats": lambda: (lambda a: (a.any(1), a.all(1)), X),
    "any_dims": lambda: (lambda a: (torch.any(a, (0, 1)), torch.all(a, (0,))), BOOLS),
    "any_no_dims": lambda: (lambda a: (torch.any(a, ()), torch.all(a, ())), INTEGERS),
    "any_empty": lambda: (lambda a: (a.any(0), a.all(0)), EMPTY),
    "var": lambda: (lambda a: (a.var(), a.var(1), a.var((0, 2), correction=0, keepdim=True)), X),
    "var_half": lambda: (lambda a: a.var(-1), HALF),
    "std": lambda: (lambda a: a.std(-1), X),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_reduction(name):
    function, *args = REDUCTIONS[name]()
    check(function, *args)


LAYOUT = {
    "view": lambda: (
        lambda a: (a.view(12, 5), a.reshape(4, -1), a.flatten(), a.view(3, 2, 2, 5)),
        X,
    ),
    "permute": lambda: (lambda a: (a.permute(2, 0, 1), a.transpose(0, 2), a.mT), X),
    "t": lambda: (lambda a: (a.t(), a[0].t()), X[0]),
    "slice": lambda: (lambda a: (a[1:], a[:, ::2], a[..., -3:-1], a[:, 1:99]), X),
    "select": lambda: (lambda a: (a[1], a[:, -1], a[..., 2, 3]), X),
    "unsqueeze": lambda: (lambda a: (a[None], a.unsqueeze(-1), a[:, None].squeeze(1)), X),
    "squeeze": lambda: (
        lambda a: (a.squeeze(), a.squeeze(0), a.squeeze((0, 2)), a.squeeze(1)),
        X[:1, :, :1],
    ),
    "expand": lambda: (lambda a: (a.expand(2, 3, 4), a.expand(-1, 4)), torch.randn(3, 1)),
    "flip": lambda: (lambda a: (a.flip(0), a.flip((0, -1))), X),
    "roll": lambda: (
        lambda a: (a.roll(1, 0), a.roll(-9, 2), a.roll((2, 0, -1), (2, 1, 2)), a.roll(5)),
        X,
    ),
    "roll_little": lambda: (lambda a: (a[:0].roll(1, 0), a[0, 0, 0].roll(2), a[:1].roll(3, 0)), X),
    "permute_slice_flip": lambda: (lambda a: a.permute(2, 0, 1)[::2].flip(0), X),
    "cat": lambda: (lambda a, b: torch.cat([a, b.T, a], 1), torch.randn(3, 5), torch.randn(7, 3)),
    "cat_promotes": lambda: (lambda a, b: torch.cat([a, b]), INTEGERS, torch.randn(2, 4)),
    "cat_empty": lambda: (lambda a, b: torch.cat([b, a, b]), torch.randn(2, 3), torch.zeros(0)),
    "stack": lambda: (lambda a, b: (torch.stack([a, b]), torch.stack([a, b], -1)), X, -X),
    "split": lambda: (lambda a: (a.split(2, 2), a.chunk(2, 1), torch.split(a, [1, 2])), X),
    "repeat": lambda: (lambda a: (a.repeat(2, 1, 3), a.repeat(2, 1, 1, 1)), X),
    "pad": lambda: (lambda a: (F.pad(a, (1, 2)), F.pad(a, (0, 0, 2, 1), value=-1.5)), X),
    "pad_crops": lambda: (lambda a: (F.pad(a, (-1, 2)), F.pad(a, (-1, -1))), X),
    "pad_bools": lambda: (lambda a: F.pad(a, (1, 0), value=True), BOOLS),
    "tril": lambda: (lambda a: (a.tril(), a.tril(1), a.triu(), a.triu(-1)), X),
    "tril_integers": lambda: (lambda a: (a.tril(), a.triu(1)), INTEGERS),
    "half": lambda: (lambda a: (a.T, a[:, ::3], F.pad(a, (1, 1))), HALF),
    "empty": lambda: (lambda a: (a.T, a.flip(0), torch.cat([a, a]), a.view(4, 0)), EMPTY),
}


@pytest.mark.parametrize("name", LAYOUT)
def test_layout(name):
    function, *args = LAYOUT[name]()
    check(function, *args)


NEURAL = {
    "linear": lambda: (nn.Linear(5, 7), X),
    "linear_no_bias": lambda: (nn.Linear(5, 7, bias=False), X[0]),
    "linear_vector": lambda: (nn.Linear(5, 7), X[0, 0]),
    "linear_bf16": lambda: (nn.Linear(8, 3).bfloat16(), BF16),
    "linear_empty": lambda: (nn.Linear(4, 3), EMPTY),
    "matmul": lambda: (
        lambda a, b: (a @ b, a[0] @ b, a @ b[:, 0], b[:, 0] @ a.mT),
        X,
        torch.randn(5, 2),
    ),
    "matmul_batches": lambda: (
        torch.matmul,
        torch.randn(2, 1, 3, 4),
        torch.randn(5, 4, 2),
    ),
    "dot": lambda: (lambda a: a @ a, X[0, 0]),
    "mm_integers": lambda: (lambda a: torch.mm(a, a.T), INTEGERS),
    "bmm": lambda: (lambda a: torch.bmm(a, a.mT), X),
    "addmm": lambda: (
        lambda a, b, c: (torch.addmm(a, b, c), torch.addmm(a, b, c, beta=0, alpha=2)),
        torch.randn(3),
        torch.randn(2, 4),
        torch.randn(4, 3),
    ),
    "empty_product": lambda: (lambda a: a.T @ a, EMPTY),
    "rms_norm": lambda: (nn.RMSNorm(5), X),
    "rms_norm_half": lambda: (nn.RMSNorm(8, eps=1e-3).half(), HALF),
    "rms_norm_tiny": lambda: (lambda a: F.rms_norm(a, (8,)), BF16 * 1e-4),
    "rms_norm_double": lambda: (lambda a: F.rms_norm(a, (4, 5)), X.double()),
    "layer_norm": lambda: (nn.LayerNorm(5), X),
    "layer_norm_2d": lambda: (nn.LayerNorm((4, 5)), X),
    "layer_norm_bf16": lambda: (nn.LayerNorm(8).bfloat16(), BF16),
    "layer_norm_plain": lambda: (lambda a: F.layer_norm(a, (5,)), X),
    "native_layer_norm": lambda: (lambda a: torch.native_layer_norm(a, [5], None, None, 1e-5), X),
    "softmax": lambda: (lambda a: (F.softmax(a, 0), F.softmax(a, -1)), X),
    "softmax_inf": lambda: (
        lambda a: F.softmax(a, -1),
        torch.tensor([[0.0, -INF], [-INF, -INF], [INF, 0.0], [NAN, 0.0]]),
    ),
    "softmax_half": lambda: (lambda a: F.softmax(a, -1), HALF),
    "softmax_dtype": lambda: (lambda a: F.softmax(a, -1, dtype=torch.float32), HALF),
    "softmax_zero_dim": lambda: (lambda a: (F.softmax(a, 0), F.log_softmax(a, -1)), SCALAR),
    "softmax_empty": lambda: (lambda a: (F.softmax(a, 0), F.softmax(a, 1)), EMPTY),
    "log_softmax": lambda: (lambda a: F.log_softmax(a, 1), X),
    "attention": lambda: (F.scaled_dot_product_attention, Q, K, V),
    "attention_causal": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        Q,
        K,
        V,
    ),
    "attention_causal_long": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        K,
        Q,
        Q,
    ),
    "attention_mask": lambda: (F.scaled_dot_product_attention, Q, K, V, torch.randn(3, 6)),
    "attention_bool_mask": lambda: (
        F.scaled_dot_product_attention,
        Q,
        K,
        V,
        torch.tensor([[True] * 6, [False] * 6, [True, False] * 3]),
    ),
    "attention_grouped": lambda: (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True),
        torch.randn(2, 6, 5, 8),
        torch.randn(2, 2, 5, 8),
        torch.randn(2, 2, 5, 8),
    ),
    "attention_bfloat16": lambda: (
        F.scaled_dot_product_attention,
        Q.bfloat16(),
        K.bfloat16(),
        V.bfloat16(),
    ),
    "gather": lambda: (
        lambda a, i: (a.gather(1, i), a.gather(-1, i), a.T.gather(0, i[:1])),
        torch.randn(3, 4),
        torch.randint(0, 3, (2, 3)),
    ),
    "index_select": lambda: (
        lambda a, i: (a.index_select(1, i), a[:, i]),
        X,
        torch.tensor([3, 0, 0]),
    ),
    "index": lambda: (lambda a, i: (a[i], a[:, i], a[..., i]), X, torch.tensor([[-1, 2], [0, -3]])),
    "index_pairs": lambda: (
        lambda a, i, j: (a[i, j], a[i[:, None], j], a[:, i, j], a[i, j, -j]),
        X,
        torch.tensor([-1, 2, 0]),
        torch.tensor([0, -4, 3]),
    ),
    "index_half": lambda: (lambda a, i: a[i, i], HALF, torch.tensor([1, 3])),
    "cumsum": lambda: (lambda a: (a.cumsum(0), a.cumsum(-1)), X),
    "cumsum_integers": lambda: (lambda a: (a.cumsum(1), (a > 0).cumsum(0)), INTEGERS.int()),
    "cumsum_half": lambda: (lambda a: (a.cumsum(1), a.cumsum(1, dtype=torch.float32)), HALF),
    "cumsum_parts": lambda: (lambda a: (a.cumsum(0), a.cumprod(1), *a.cummax(0)), LONG),
    "cumsum_zero_dim": lambda: (lambda a: a.cumsum(0), SCALAR),
    "cumsum_empty": lambda: (lambda a: (a.cumsum(0), a.cumsum(1)), EMPTY),
    "embedding": lambda: (nn.Embedding(10, 4), torch.randint(0, 10, (2, 3))),
    "mlp": lambda: (nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 5)), X),
}


@pytest.mark.parametrize("name", NEURAL)
def test_neural(name):
    program, *args = NEURAL[name]()
    check(program, *args)


PAIRS = {
    "distances": lambda a: torch.cdist(a, a + 0.5, p=1.5),
    "largest_distances": lambda a: torch.cdist(a, a + 0.5, p=math.inf),
    "counts": lambda a: torch.cdist(a, a.floor(), p=0),
    "distances_of_nothing": lambda a: torch.cdist(a[..., :0], a[..., :0]),
    "distances_among": lambda a: torch.pdist(a[0]),
    "distance_of_one": lambda a: torch.pdist(a[0, :1]),
    "bilinear": lambda a: F.bilinear(a[0], a[0] * 2, torch.ones(2, 5, 5) + a[0, :1, :]),
    "bilinear_of_images": lambda a: F.bilinear(a, a[..., :2], torch.ones(3, 5, 2)),
    "decimals": lambda a: (a.round(decimals=2), (a * 100).round(decimals=-1)),
    "triangles": lambda a: (a, torch.triu_indices(4, 5, 1), torch.tril_indices(3, 2, -1)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name):
    check(PAIRS[name], X)


CREATION = {
    "arange": lambda a: a + torch.arange(5),
    "arange_steps": lambda a: (a, torch.arange(1, 9, 3), torch.arange(0.5, 3, 0.25)),
    "arange_down": lambda a: (a, torch.arange(5, 0, -2), torch.arange(2, 5, dtype=torch.float32)),
    "full": lambda a: (a * 2, torch.full((2, 3), 1.5), torch.full((2,), 7), torch.full((), True)),
    "full_like": lambda a: (torch.full_like(a, 3.0), torch.zeros_like(a), torch.ones_like(a)),
    "zeros": lambda a: (a, torch.zeros(2, 3), torch.ones(2, dtype=torch.bool)),
    "constant": lambda a: a * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
    "causal_mask": lambda a: a.masked_fill(torch.ones(4, 5, dtype=torch.bool).triu(1), -INF),
}


@pytest.mark.parametrize("name", CREATION)
def test_creation(name):
    check(CREATION[name], X)


def test_each_operation_of_the_dialect_has_a_rule():
    assert {op.name for op in [*ALL_OPS, ScanOp]} == {op.name for op in RULES}


@pytest.mark.parametrize("index", [(9, 0), (0, 4), (-4, 0)])
def test_an_index_outside_fails_as_in_eager(index):
    i, j = (torch.tensor([v]) for v in index)

    def program(a, i, j):
        return a[i, j]

    with pytest.raises(IndexError):
        program(X, i, j)
    with pytest.raises(ProgramError):
        run_captured(capture(program, (X, i, j)), (X, i, j), {})


SMALL = (
    "hidden_size=32,num_attention_heads=4,vocab_size=64,intermediate_size=48,num_hidden_layers=2"
)


@pytest.mark.parametrize("layer", [None, 1], ids=["model", "layer"])
@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("llama", f"{SMALL},num_key_value_heads=2"),
        ("qwen2", f"{SMALL},num_key_value_heads=2"),
        ("gpt2", "n_embd=32,n_head=4,n_layer=2,vocab_size=64"),
        ("bert", SMALL),
    ],
)
def test_models(name, config, layer):
    pytest.importorskip("transformers")
    source = load_source(f"hf:{name}", config=config, layer=layer, seq_len=8)
    with torch.no_grad():
        check(source.program, *source.args, **source.kwargs)


def test_every_refusal_is_reported_at_once():
    def program(q, mask, x):
        first = F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)
        wide = q.double()
        return first, 2**x, x**x, torch.div(wide, 2, rounding_mode="floor"), wide % 3

    captured = capture(program, (Q, torch.ones(3, 3), INTEGERS.abs()))
    with pytest.raises(UnsupportedOpError) as raised:
        DecomposeTorchPass().apply(None, captured.module)
    message = str(raised.value)
    assert "dropout_p = 0.5" in message
    assert message.count("torch.pow") == 2
    assert "torch.div_scalar_mode: the remainder of f64 values" in message
    assert "torch.remainder_scalar: the remainder of f64 values" in message
    assert "test_decompose_torch.py:" in message


@pytest.mark.parametrize("order", [2, 3, 0.5, 0, 1, -1, INF, -INF])
def test_norms_of_single_elements_are_their_sizes(order):
    """Even where their powers are no floats."""
    x = torch.tensor([[1e30], [1e-30], [NAN], [-0.0], [-INF]])
    for value, dims in ((x, -1), (x[1:2], (0, 1))):
        ours, eager = run(lambda x, dims=dims: torch.linalg.vector_norm(x, order, dims), value)
        torch.testing.assert_close(ours, eager, rtol=0, atol=0, equal_nan=True)
