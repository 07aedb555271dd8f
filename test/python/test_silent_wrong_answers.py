"""Silent wrong answers that other importers gave: here each is eager's result, or a clear refusal."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import deplo
from deplo.tools.judge import judge

torch.manual_seed(0)
X = torch.randn(3, 4, 5)
Q, K, V = torch.randn(2, 4, 3, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8)


def check(program, *args):
    """The compiled program gives eager's values, shapes and dtypes."""
    result = deplo.compile(program, args, target="cpu")(*args)
    torch.testing.assert_close(result, program(*args), equal_nan=True)


def attention(**options):
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options)


def test_permute_is_not_a_reshape():
    check(lambda x: x.permute(2, 0, 1), X)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.bool])
def test_casts_are_not_dropped(dtype):
    check(lambda x: x.to(dtype), X * 3)
    check(lambda x, y: x.type_as(y), X * 3, torch.zeros(1, dtype=dtype))
    check(lambda x: x.float(), (X * 3).to(dtype))


def test_casts_in_between_keep_their_types():
    x = torch.randint(0, 100_000, (4, 8))
    check(lambda x, y: (x.to(torch.int8).long(), y.to(torch.int16).long()), x, x + 1)
    check(lambda x, y: (x.bfloat16().float().exp(), y.half().float().exp()), X, X + 1)


def test_alpha_of_add_and_sub_is_not_dropped():
    check(lambda x, y: torch.add(x, y, alpha=2.5), X, X + 1)
    check(lambda x, y: torch.sub(x, y, alpha=3), X, X + 1)


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_rounding_mode_is_not_ignored(mode):
    check(lambda x, y: torch.div(x, y, rounding_mode=mode), X * 10, X.flip(0))


@pytest.mark.parametrize("reduce", [torch.sum, torch.mean, torch.amax])
@pytest.mark.parametrize("dim", [(0, 2), (), (1,), (0, 1, 2)])
def test_reductions_keep_all_their_axes(reduce, dim):
    check(lambda x: reduce(x, dim=dim), X)


def test_reductions_without_axes_fold_everything():
    check(lambda x: (x.sum(), x.mean(), x.amax(), x.max()), X)


def test_slices_keep_their_step_and_negative_start():
    check(lambda x: x[:, -3:-1, ::2], X)


def test_attention_scale_is_not_ignored():
    check(attention(scale=0.3), Q, K, V)


def test_grouped_query_attention_is_not_causal():
    check(attention(enable_gqa=True), Q, K[:, :2].contiguous(), V[:, :2].contiguous())


def test_boolean_masks_are_not_added():
    mask = torch.rand(3, 6) > 0.3
    mask[:, 0] = True
    check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), Q, K, V, mask)


def test_additive_masks_are_not_boolean():
    mask = torch.randn(3, 6)
    check(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), Q, K, V, mask)


def test_key_length_is_not_the_query_length():
    check(attention(), Q, K, V)
    check(attention(is_causal=True), Q, K, V)


def test_masked_scores_are_infinite_and_not_merely_large():
    mask = torch.zeros(3, 6)
    mask[:, 3:] = -math.inf
    low, ones = torch.full_like(Q, -1e10), torch.ones_like(K)
    check(
        lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m), low, ones, V, mask
    )


def test_unknown_operators_are_refused_by_name():
    with pytest.raises(deplo.UnsupportedOpError, match=r"aten\.special_bessel_j1"):
        deplo.compile(torch.special.bessel_j1, (X,), target="cpu")


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, 2.5])
def test_powers_are_not_all_squares(exponent):
    check(lambda x: x**exponent, X.abs() + 0.1)


def test_expand_is_not_a_reshape():
    heads = torch.randn(1, 2, 1, 4)
    check(lambda k: k.expand(1, 2, 3, 4).reshape(1, 6, 4), heads)


def test_padding_with_several_batches():
    def pad(x):
        return F.pad(x, (1, 2, 0, 3), value=0.5)

    check(pad, X)
    compiled = deplo.compile(pad, (X,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    for batches in (2, 3, 70):
        x = torch.randn(batches, *X.shape[1:])
        assert torch.equal(compiled(x), pad(x))


def test_rotary_embedding_turns_by_position():
    angles = torch.outer(torch.arange(5.0), 10000 ** (-torch.arange(0, 4, 2) / 4))

    def rotate(x):
        cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    x = torch.randn(2, 5, 4)
    assert not torch.allclose(rotate(x), x)
    check(rotate, x)


def test_an_output_of_zeros_does_not_pass():
    assert judge(X, torch.zeros_like(X), X.double(), 1).problem is not None


def test_an_output_of_another_size_does_not_pass():
    assert "shape" in str(judge(X, X[:, :3], X.double(), 1).problem)


def test_an_output_of_another_dtype_does_not_pass():
    assert "dtype" in str(judge(X, X.double(), X.double(), 1).problem)


def test_each_operator_of_a_module_is_imported():
    check(nn.Sequential(nn.Linear(5, 6), nn.Softplus(), nn.LayerNorm(6), nn.Tanh()).eval(), X)


def test_scores_are_not_summed_again_in_each_sweep_of_a_softmax():
    """Each sweep would round the sum in its own order, which scores of some hundreds make visible."""
    torch.manual_seed(0)
    q, k = (torch.rand(4, n, 8) * 18 - 9 for n in (3, 6))

    def program(q, k):
        return F.softmax(q @ k.transpose(-1, -2) * 0.35, -1)

    compiled = deplo.compile(program, (q, k), target="cpu")(q, k)
    exact = program(q.double(), k.double())
    ours, eagers = ((r.double() - exact).abs().max() for r in (compiled, program(q, k)))
    assert ours <= 4 * eagers + 1e-7


def test_inputs_that_are_one_tensor_may_be_two_later():
    x, a, b = torch.zeros(4), torch.arange(4.0), torch.ones(4)
    assert torch.equal(deplo.compile(torch.sub, (x, x))(a, b), a - b)
    program = deplo.compile(lambda p: p["a"] - p["b"], ({"a": x, "b": x},))
    assert torch.equal(program({"a": a, "b": b}), a - b)


def test_inputs_that_are_a_parameter_and_a_buffer_may_be_others_later():
    class Weighted(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.register_buffer("bias", torch.ones(4))

        def forward(self, x, y):
            return self.weight * 2 + x * 3 + self.bias * 5 + y * 7

    module, x, y = Weighted(), torch.randn(4), torch.randn(4)
    program = deplo.compile(module, (module.weight, module.bias))
    torch.testing.assert_close(program(x, y), module(x, y).detach())
