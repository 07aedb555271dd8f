"""Programs with dynamic sizes: what is captured computes what eager does at every size that is allowed."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import deplo
from deplo.analysis.sizes import sizes_of
from deplo.dialects.sizes import Size
from deplo.errors import DeploError, UnsupportedOpError, UsageError
from deplo.frontend.capture import capture
from deplo.interpreter import execute
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context

torch.manual_seed(0)


def numpy_of(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).contiguous().numpy()


def tensor_ir(captured):
    """Captured Torch IR as Tensor IR of primitives, verified after each pass."""
    module = captured.module.clone()
    context = make_context()
    for each in (*make_pipeline("torch-to-tensor", "cpu"), *make_pipeline("tensor-to-loop", "cpu")):
        if each.name == "lift-to-loops":
            return module
        each.apply(context, module)
        module.verify()
    raise AssertionError("lift-to-loops is gone")


def check(program, shapes, dims, dtypes=None):
    """Capture at the first shapes with `dims`, then compare with eager at each of the shapes."""
    captured = capture(program, inputs(shapes[0], dtypes), dynamic_shapes=dims)
    lowered = tensor_ir(captured)
    assert any(isinstance(n, Size) for a in captured.arguments for n in a.shape)
    for each in shapes:
        args = inputs(each, dtypes)
        flat = captured.flatten_inputs(args, {})
        tensors = [
            captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index]
            for a in captured.arguments
        ]
        results = execute(lowered, [numpy_of(t) for t in tensors])
        got = captured.unflatten_outputs([torch.from_numpy(np.array(r)) for r in results], tensors)
        with torch.no_grad():
            expected = program(*args)
        mine, eager = pytree.tree_leaves(got), pytree.tree_leaves(expected)
        assert len(mine) == len(eager)
        for a, b in zip(mine, eager, strict=True):
            assert a.shape == b.shape
            torch.testing.assert_close(a.to(b.dtype), b, equal_nan=True)
    return captured


def inputs(shapes, dtypes=None):
    """Seeded tensors of the shapes: floats, or small numbers from 0 on for integer dtypes."""
    generator = torch.Generator().manual_seed(7)
    made = []
    for shape, dtype in zip(shapes, dtypes or [torch.float32] * len(shapes), strict=True):
        if dtype.is_floating_point:
            made.append(torch.randn(shape, generator=generator).to(dtype))
        else:
            made.append(torch.randint(0, 4, shape, generator=generator).to(dtype))
    return tuple(made)


B, S, B1, S1 = Dim("batch"), Dim("seq"), Dim("batch", min=1), Dim("seq", min=1)
MATRIX = [((4, 6),), ((3, 11),), ((7, 2),)]
BATCHED = [((2, 5, 8),), ((3, 9, 8),), ((7, 2, 8),)]
WITH_ONE = [((2, 5, 8),), ((1, 9, 8),), ((3, 1, 8),)]
TWO = ({0: B, 1: S},)
TWO_FROM_ONE = ({0: B1, 1: S1},)

TWO_FROM_FOUR = ({0: Dim("batch", min=4), 1: Dim("seq", min=4)},)
PER_LARGER_MATRIX = {
    "slices": lambda x: x[1:, :-1] + x[:-1, 1:],
    "the last three": lambda x: x[:, -3:] + x[:, :3],
    "every second": lambda x: x[::2, 1::2],
    "to the size": lambda x: x[:, : x.shape[1] - 1],
    "arange by steps": lambda x: torch.arange(1, x.shape[1], 2) * 1.0 + x.sum() * 0,
    "split": lambda x: torch.split(x, [1, x.shape[1] - 1], dim=1),
    "the largest two": lambda x: x.topk(2, 1),
    "the third smallest": lambda x: x.kthvalue(3, 1),
    "windows": lambda x: x.unfold(1, 3, 1),
    "pooled": lambda x: F.avg_pool2d(x[None, None], 3, 1, padding=1),
    "pooled to the largest": lambda x: F.max_pool2d(x[None, None], 2, 2),
    "pooled to one": lambda x: F.adaptive_avg_pool2d(x[None, None], 1),
}
"""Export asks of each that no axis in between has extent 1."""

PER_MATRIX = {
    "mean over a dynamic axis": lambda x: x.mean(1),
    "mean over everything": lambda x: x.mean(),
    "variance": lambda x: x.var(0),
    "variance and mean": lambda x: torch.var_mean(x, 1, correction=0),
    "scaled by a size": lambda x: x * x.shape[1] + x.shape[0],
    "divided by a size": lambda x: x / x.shape[1],
    "divided by an expression of sizes": lambda x: x / (x.shape[0] * x.shape[1] + 1),
    "a size to a tensor": lambda x: torch.full((3,), x.shape[1]) + x.sum().long() * 0,
    "arange of a size": lambda x: x + torch.arange(x.shape[1]),
    "arange between sizes": lambda x: torch.arange(x.shape[0], x.shape[0] + x.shape[1]) + x,
    "full": lambda x: torch.full((x.shape[0], 3), 2.5) @ x[:1, :1].expand(3, 4),
    "zeros and ones": lambda x: torch.zeros(x.shape[1]) + torch.ones_like(x),
    "flatten": lambda x: x.reshape(-1),
    "flatten and back": lambda x: (x.reshape(-1) * 2).view(x.shape[0], x.shape[1]),
    "transposed and flattened": lambda x: x.t().reshape(-1),
    "a new axis": lambda x: x.unsqueeze(1).expand(-1, 3, -1).reshape(x.shape[0], -1),
    "first and last": lambda x: x[:, 0] + x[:, -1] + x[0, 0],
    "rolled": lambda x: x.roll((-1, 2), (0, 1)),
    "flipped": lambda x: x.flip(0, 1),
    "joined": lambda x: torch.cat([x, x[:1], x * 2], 0),
    "joined along the other axis": lambda x: torch.cat([x[:, :1], x], 1),
    "stacked": lambda x: torch.stack([x, x * 2], 1),
    "padded": lambda x: F.pad(x, (1, 2, 0, 1), value=0.5),
    "repeated": lambda x: x.repeat(2, 3),
    "repeated by a size": lambda x: x[:1].repeat(x.shape[0], 1),
    "lower triangle": lambda x: x.tril(),
    "a triangle above": lambda x: x.triu(1),
    "softmax over rows": lambda x: x.softmax(0),
    "log softmax": lambda x: F.log_softmax(x, -1),
    "an outer product": lambda x: x[:, :, None] * x[:, None, :],
    "a product with itself": lambda x: x @ x.t(),
    "a gram matrix": lambda x: x.t() @ x,
    "largest": lambda x: (x.amax(1), x.argmax(1), x.max(0)),
    "position of the smallest of all": lambda x: x.argmin(),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=0),
    "a running sum": lambda x: x.cumsum(1),
    "sorted": lambda x: x.sort(1),
    "a median": lambda x: x.median(1),
    "a mask by comparing positions": lambda x: torch.where(
        torch.arange(x.shape[0])[:, None] >= torch.arange(x.shape[1])[None, :], x, -math.inf
    ),
    "chosen rows": lambda x: x[torch.tensor([1, 0, -1])],
    "rows by a computed index": lambda x: x[torch.arange(x.shape[0]) // 2],
    "gathered": lambda x: x.gather(1, (x > 0).long()),
    "scattered": lambda x: torch.zeros(x.shape[0], 4).scatter_add(1, (x > 0).long(), x),
    "put": lambda x: x.index_put((torch.tensor([0, 1]),), x[:2] * 2),
    "half precision": lambda x: x.bfloat16().mean(1),
}


@pytest.mark.sample(22)
@pytest.mark.parametrize("name", PER_MATRIX)
def test_a_program_on_a_matrix_of_any_size(name):
    shapes = [((4, 6),), ((3, 11),), ((7, 2),)]
    check(PER_MATRIX[name], shapes, TWO)


@pytest.mark.parametrize("name", PER_LARGER_MATRIX)
def test_a_program_on_a_larger_matrix(name):
    if name == "pooled to the largest" and torch.__version__ < (2, 13):
        pytest.skip("torch.export before 2.13 fixes whether the extents are odd")
    check(PER_LARGER_MATRIX[name], [((5, 9),), ((4, 11),), ((8, 6),)], TWO_FROM_FOUR)


class Attention(nn.Module):
    """Self-attention with a causal mask over heads of 4."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x):
        batch, seq, _ = x.shape
        q, k, v = (p.view(batch, seq, 2, 4).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, seq, 8))


def rotary(x):
    angle = torch.arange(x.shape[1])[:, None] / torch.tensor([1.0, 100.0, 1e4, 1e6])
    first, second = x.chunk(2, -1)
    return torch.cat(
        [first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1
    )


PER_SEQUENCE = {
    "linear": nn.Linear(8, 3),
    "layer norm and gelu": nn.Sequential(nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8)),
    "rms norm and silu": nn.Sequential(nn.RMSNorm(8), nn.SiLU()),
    "attention": Attention(),
    "a norm over a dynamic axis": lambda x: F.layer_norm(x.transpose(1, 2), (x.shape[1],)),
    "mean of a sequence": lambda x: x.mean(1, keepdim=True) - x,
    "rotary embedding": rotary,
    "tokens as rows": lambda x: x.reshape(-1, 8) @ torch.ones(8, 2),
    "a convolution over the sequence": lambda x: F.conv1d(
        x.transpose(1, 2), torch.ones(4, 8, 3) / 3, padding=1
    ),
    "batches multiplied": lambda x: x @ x.transpose(1, 2),
    "cosine of itself": lambda x: F.cosine_similarity(x, x.flip(1), -1),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PER_SEQUENCE)
def test_a_program_on_a_batch_of_sequences(name):
    captured = check(PER_SEQUENCE[name], [*BATCHED, ((1, 4, 8),), ((1, 1, 8),)], TWO_FROM_ONE)
    (sizes,) = [f.attributes["sym.sizes"] for f in captured.module.body.block.ops]
    assert [str(size) for size in sizes] == [
        '#sym.size<"batch", 1, none, hint = 2>',
        '#sym.size<"seq", 1, none, hint = 5>',
    ]


def test_a_cache_is_joined_with_new_keys():
    """Two sequences of different sizes; the result's size is their sum."""

    def program(query, key, cache):
        keys = torch.cat([cache, key], 2)
        return F.scaled_dot_product_attention(query, keys, keys * 2), keys

    past, new = Dim("past"), Dim("new", min=1)
    dims = ({2: new}, {2: new}, {2: past})
    shapes = [
        ((1, 2, q, 4), (1, 2, q, 4), (1, 2, p, 4)) for q, p in ((3, 5), (2, 9), (1, 6), (7, 2))
    ]
    check(program, shapes, dims)


def test_cross_entropy_of_a_batch_of_any_size():
    dims = ({0: B}, {0: B})
    shapes = [((n, 5), (n,)) for n in (4, 3, 17)]
    check(F.cross_entropy, shapes, dims, [torch.float32, torch.int64])


def test_an_embedding_of_tokens():
    module = nn.Embedding(9, 4)
    check(module, [((2, 5),), ((4, 3),), ((2, 2),)], TWO, [torch.int64])


def test_a_size_that_is_a_multiple_of_another():
    twice = Dim("half") * 2
    half = Dim("half")
    twice = 2 * half

    def program(x, y):
        return x + y[: x.shape[0]] * y[x.shape[0] :]

    check(program, [((3,), (6,)), ((2,), (4,)), ((8,), (16,))], ({0: half}, {0: twice}))


def test_axes_of_one_go_without_a_division_by_other_sizes():
    """A convolution drops the axes that it sums over; its results are as long as strides leave of a line."""

    def program(x, w):
        return torch.nn.functional.conv1d(torch.nn.functional.conv1d(x, w, stride=2), w, stride=2)

    x, w = torch.randn(2, 8, 60), torch.randn(8, 8, 3)
    shapes = ({0: B, 2: Dim("length", min=20, max=400)}, None)
    compiled = deplo.compile(program, (x, w), target="cpu", dynamic_shapes=shapes)
    indices = [line for line in compiled.ir("loop").splitlines() if "loop.load" in line]
    assert indices
    assert not any("floordiv" in line.split(" : ")[0] for line in indices)
    for batch, length in ((2, 60), (3, 201), (5, 400)):
        x = torch.randn(batch, 8, length)
        torch.testing.assert_close(compiled(x, w), program(x, w), rtol=1e-4, atol=1e-4)


def test_dimensions_that_torch_export_names_itself():
    captured = check(
        lambda x, y: x + y,
        [((3, 4), (3, 4)), ((2, 4), (2, 4))],
        ({0: Dim.DYNAMIC}, {0: Dim.AUTO}),
    )
    (main,) = captured.module.body.block.ops
    assert str(main.attributes["sym.sizes"]) == '[#sym.size<"x:0", 2, none, hint = 3>]'


def test_an_axis_that_may_be_fixed_is_fixed_where_it_must():
    captured = capture(
        lambda x: x + torch.ones(4, 1), inputs([(4, 6)]), None, ({0: Dim.AUTO, 1: Dim.AUTO},)
    )
    assert [str(n) for n in captured.arguments[0].shape] == ["4", "s0"]


def test_an_example_of_one_position_is_enough():
    check(lambda x: x.softmax(0) * 2, [((1, 6),), ((3, 6),), ((8, 6),)], ({0: B},))


def test_an_input_that_is_not_contiguous():
    program = lambda x: x.reshape(-1) * 2  # noqa: E731
    x = torch.arange(24.0).view(6, 4).t()[:, ::2]
    captured = capture(program, (x,), None, TWO)
    (got,) = execute(tensor_ir(captured), [numpy_of(x)])
    assert torch.equal(torch.from_numpy(got), program(x))


def test_inputs_by_name_and_inside_of_others():
    def program(pair, *, scale):
        return pair[0] + pair["1" if isinstance(pair, dict) else 1] * scale

    x, y = inputs([(4, 3), (4, 3)])
    dims = {"pair": ({0: B}, {0: B}), "scale": None}
    captured = capture(program, ((x, y),), {"scale": torch.ones(())}, dims)
    assert [str(a.shape) for a in captured.arguments] == ["(s0, 3)", "(s0, 3)", "()"]


X = torch.randn(4, 6)

# --------------------------------------------------------------------------- multiples of sizes


def said(captured):
    """What the module says of its sizes, and the shape of its first argument."""
    sizes = [(s.label.data, s.minimum.data) for s in sizes_of(captured.module.body.block.first_op)]
    return sizes, str(captured.arguments[0].shape[0])


def test_an_axis_that_is_asked_to_be_a_multiple():
    half = Dim("half")
    shapes = [((4, 6),), ((6, 6),), ((50, 6),)]
    assert said(check(lambda x: x[::2] * 2, shapes, ({0: 2 * half},))) == ([("half", 2)], "s0 * 2")
    shapes = [((4, 3), (2, 3)), ((6, 3), (3, 3))]
    captured = check(lambda x, y: x[::2] + y, shapes, ({0: 2 * half}, {0: half}))
    assert said(captured) == ([("half", 2)], "s0 * 2")
    odd = 2 * Dim("half", min=2) - 1
    shapes = [((7, 6),), ((3, 6),), ((51, 6),)]
    assert said(check(lambda x: x[::2].cos(), shapes, ({0: odd},))) == (
        [("half", 2)],
        "s0 * 2 - 1",
    )


@pytest.mark.parametrize(
    ("program", "rows", "label", "extent"),
    [
        (lambda x: x * 2 if x.shape[0] % 2 == 0 else x, (4, 2, 50), ("x:0 / 2", 1), "s0 * 2"),
        (lambda x: x * 2 if x.shape[0] % 2 else x, (5, 3, 51), ("(x:0 + 1) / 2", 2), "s0 * 2 - 1"),
        (lambda x: x + x.shape[0] // 3 if x.shape[0] % 3 == 1 else x, (4, 7), None, "s0 * 3 - 2"),
        (lambda x: torch.cat([x[::2], x[1::2] * 2], 1), (8, 4, 20), ("x:0 / 2", 2), "s0 * 2"),
        (lambda x: x * 3 if x.shape[0] % 4 == x.shape[0] % 2 == 0 else x, (8, 4), None, "s0 * 4"),
        (lambda x: x * 3 if x.shape[0] % 2 == 0 == x.shape[0] % 3 else x, (6, 12), None, "s0 * 6"),
    ],
)
def test_a_size_that_a_program_needs_to_be_a_multiple(program, rows, label, extent):
    axis = Dim.DYNAMIC(min=min(rows))
    captured = check(program, [((n, 6),) for n in rows], ({0: axis},))
    ((name, least),), shown = said(captured)
    assert shown == extent
    assert label is None or (name, least) == label


def test_halves_that_are_doubled_are_the_whole():
    """A U-Net: what comes up again has the size of what went down, where that is a multiple of 4."""

    def program(x, down, up):
        halves = F.conv2d(x, down, stride=2)
        quarters = F.max_pool2d(halves, 2)
        again = torch.cat([F.conv_transpose2d(quarters, up, stride=2), halves], 1)
        return torch.cat([F.interpolate(again, scale_factor=2.0), x], 1)

    shapes = [((1, 2, h, w), (2, 2, 2, 2), (2, 2, 2, 2)) for h, w in ((8, 12), (12, 8), (20, 16))]
    axes = {2: Dim.DYNAMIC(min=8), 3: Dim.DYNAMIC(min=8)}
    captured = check(program, shapes, (axes, None, None))
    assert [str(n) for n in captured.arguments[0].shape] == ["1", "2", "s0 * 4", "s1 * 4"]


def test_a_divisor_that_is_larger_than_a_size():
    """No multiple of 16 is a number of rows here: 16 divides columns."""

    def program(x):
        rows, columns = x.shape
        return x * 2 if rows * (columns // 16) != rows else x + 1

    compiled = torch.compile(program, backend="deplo")
    for rows, columns in ((8, 64), (2, 33), (15, 47), (3, 17)):
        x = torch.randn(rows, columns)
        torch._dynamo.mark_dynamic(x, 0, min=2, max=15)
        torch._dynamo.mark_dynamic(x, 1)
        torch.testing.assert_close(compiled(x), program(x))


def test_calls_with_another_remainder_are_refused():
    program = deplo.compile(
        lambda x: x[::2] + x[1::2], (X,), target="cpu", dynamic_shapes=({0: Dim.DYNAMIC(min=4)},)
    )
    even = torch.randn(50, 6)
    torch.testing.assert_close(program(even), even[::2] + even[1::2])
    with pytest.raises(
        UsageError, match=r"'x', axis 0: must be 2 \* n, where n, 'x:0 / 2', is at least 2, got 5"
    ):
        program(torch.randn(5, 6))


# --------------------------------------------------------------------------- what is refused


def refused(program, dims, args=(X,), error=DeploError):
    with pytest.raises(error) as raised:
        tensor_ir(capture(program, args, dynamic_shapes=dims))
    message = str(raised.value)
    assert "Traceback" not in message
    assert "TORCH_LOGS" not in message
    assert len(message.splitlines()) <= 10
    return message


def test_an_extent_that_the_program_fixes():
    message = refused(lambda x: x + torch.ones(4, 6), ({0: B},))
    assert "batch is 4 in this program, whatever is asked" in message


def test_a_range_that_the_program_does_not_have():
    message = refused(lambda x: x.exp() if x.shape[0] > 3 else x, ({0: B},))
    assert "not every batch = x.shape[0] satisfies 4 <= x.shape[0]" in message
    assert "PyTorch would take: batch = Dim('batch', min=4)" in message


def test_sizes_that_must_be_equal():
    message = refused(lambda x, y: x + y, ({0: B}, {0: S}), (X, X.clone()))
    assert "must be equal: give them one name" in message


def test_one_name_for_different_sizes():
    message = refused(lambda x: x * 2, ({0: B, 1: B},))
    assert "one name is given to different sizes: x.shape[1] = 6 is not equal" in message


def test_a_property_that_is_no_range():
    message = refused(lambda x: x * 2 if x.shape[0] % 5 != 2 else x, ({0: Dim.DYNAMIC},))
    assert "captured for sizes with these properties only" in message
    assert "(x:0 % 5) != 2" in message


def test_a_property_that_a_range_implies_is_none():
    check(
        lambda x: x * 2 if x.shape[0] != 3 else x,
        [((5, 6),), ((4, 6),), ((9, 6),)],
        ({0: Dim.DYNAMIC(min=4)},),
    )


def test_a_property_that_arithmetic_implies_is_none():
    """Export's own solver does not find that half of a size is at most the size."""
    shapes = [((5, 6),), ((4, 6),), ((9, 6),)]
    check(lambda x: x[: x.shape[0] // 2], shapes, ({0: Dim.DYNAMIC(min=4)},))


def test_another_program_where_the_size_is_one():
    message = refused(lambda x: x.squeeze(0), ({0: B1},), error=UnsupportedOpError)
    assert "for batch = 1 this program is another one, from aten.squeeze.dim at" in message
    message = refused(lambda x: x * 2 if x.shape[0] == 1 else x, ({0: B1},))
    assert "for batch = 1" in message
    message = refused(lambda x: x[1], ({0: B1},))
    assert "for batch = 1: this program fails in PyTorch: IndexError" in message


def test_without_one_these_are_fine():
    check(lambda x: x.squeeze(0) + x[1], [((4, 6),), ((2, 6),), ((3, 6),)], ({0: B},))


FLOATS = {
    "a quotient": lambda x, n: x * (n / (2 * n - 1)) + 1 / n,
    "an inexact number": lambda x, n: x * (0.1 / n) - 0.07 * n,
    "powers": lambda x, n: x / n**0.5 + 0.9**n,
    "functions": lambda x, n: x * torch.sym_sqrt(n) + torch.sym_max(n / 7, 0.3),
    "a difference": lambda x, n: (1.0 - n / 100) - x,
    "compared": lambda x, n: x > 0.5 / n,
    "without axes": lambda x, n: (x.sum() / n**0.5, x.sum() > 0.1 * n),
    "half precision": lambda x, n: (x.bfloat16() * (0.1 / n), x.bfloat16() > 0.1 * n),
    "double precision": lambda x, n: (x.double() + 0.1 / n, torch.full((2,), 0.1 / n).double()),
    "integers": lambda x, n: (x > 0).long() * (0.5 / n),
    "filled": lambda x, n: torch.full((3,), 1.0 / n),
    "of another type": lambda x, n: torch.full((3,), 7.5 / n, dtype=torch.int32),
    "a tensor": lambda x, n: x * torch.tensor(n / 3),
    "limits": lambda x, n: x.clamp(min=0.3 / n, max=0.5),
    "an exponent": lambda x, n: (x.abs() ** (1 / n), (1 / n) ** x),
    "masked": lambda x, n: (x.masked_fill(x > 0, 0.2 / n), torch.where(x > 0, 0.1 * n, x)),
    "a factor": lambda x, n: (torch.addcmul(x, x, x, value=0.3 / n), torch.lerp(x, 2 * x, 0.3 / n)),
    "of a sum": lambda x, n: torch.add(x, x, alpha=0.1 / n) - torch.sub(x, x[:1], alpha=2 / n),
    "steps": lambda x, n: torch.linspace(0, 1 / n, 5),
    "a quantile": lambda x, n: x.quantile(0.3, 0),
    "smoothed labels": lambda x, n: F.cross_entropy(
        x.mT, torch.arange(4) % n, label_smoothing=0.1, reduction="sum"
    ),
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_that_are_computed_from_sizes(name):
    shapes = [((3, 4),), ((2, 4),), ((7, 4),)]
    few = Dim("batch", min=2, max=1000)  # quantile takes no more
    check(lambda x: FLOATS[name](x, x.shape[0]), shapes, ({0: few},))


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
@pytest.mark.parametrize("name", FLOATS)
def test_floats_that_dynamo_computes_from_sizes(name):
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: FLOATS[name](x, x.shape[0]), backend="deplo", dynamic=True)
    for rows in (3, 2, 7):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), FLOATS[name](x, rows))


ADAPTIVE = {
    "one axis": (lambda x: F.adaptive_avg_pool1d(x.flatten(2), 4), (3, 4, 4)),
    "two axes": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (3, 5, 6)),
    "to one element": (lambda x: F.adaptive_avg_pool2d(x, 1), (3, 5, 6)),
    "three axes": (lambda x: F.adaptive_avg_pool3d(x, 2), (2, 4, 4, 3)),
}


@pytest.mark.parametrize("name", ADAPTIVE)
def test_adaptive_pooling_of_all_batches(name):
    program, image = ADAPTIVE[name]
    check(program, [((n, *image),) for n in (3, 2, 5)], ({0: B},))


def test_a_float_of_sizes_where_an_operator_takes_no_tensor():
    def program(x):
        return torch.addmm(x, x, torch.eye(6), alpha=1 / x.shape[0])

    message = refused(program, ({0: B},))
    assert "alpha = 1 / batch, a float computed from sizes" in message
    assert "test_dynamic_shapes.py" in message


def test_a_size_that_floats_decide():
    message = refused(lambda x: x[: int(x.shape[0] * 0.5)], ({0: Dim.AUTO},))
    assert "captured for sizes with these properties only" in message


def test_a_size_as_a_result():
    x = torch.randn(3, 4)
    program = deplo.compile(lambda x: (x * 2, x.shape[0] * 4), (x,), dynamic_shapes=({0: B},))
    for rows in (3, 7):
        doubled, size = program(torch.ones(rows, 4))
        assert (doubled.shape, size) == ((rows, 4), 4 * rows)


def test_a_size_that_is_one_or_another():
    message = refused(lambda x: x.diagonal() + 1, TWO)
    assert "the size min(batch, seq)" in message


def test_an_argument_that_must_be_a_number():
    message = refused(lambda x: torch.add(x, x, alpha=x.shape[0]), ({0: B},))
    assert "alpha = s0 is known only at run time" in message


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"y": {0: B}}, "names 'y', which is no input; they are x"),
        (({0: B}, None), "has 2 entries for 1 inputs"),
        (({2: B},), "input 0 has 2 axes, no axis 2"),
        (3, "not organized as the inputs are"),
    ],
)
def test_dynamic_shapes_that_do_not_fit_the_inputs(dims, message):
    assert message in refused(lambda x: x * 2, dims, error=UsageError)


def test_inputs_that_only_collect_have_no_dynamic_sizes():
    class Collects(nn.Module):
        def forward(self, **inputs):
            return inputs["x"] * 2

    with pytest.raises(UsageError, match=r"where \*\*inputs collects inputs"):
        capture(Collects(), (), {"x": X}, {"inputs": {"x": {0: B}}})


def test_a_call_of_pytorch_has_no_sizes_among_its_arguments():
    def program(x):
        return torch.roll(torch.linalg.cholesky(x @ x.mT + torch.eye(x.shape[0])), 1)

    with pytest.raises(UnsupportedOpError):
        deplo.compile(program, (X,), dynamic_shapes=({0: B},), target="cpu", fallback="error")


def test_an_input_that_is_a_module():
    def program(x, function):
        return function(x) + 1

    x, relu = torch.randn(2, 3), nn.ReLU()
    assert torch.equal(deplo.compile(program, (x, relu))(x, relu), relu(x) + 1)
    with pytest.raises(DeploError, match="dynamic_shapes"):
        deplo.compile(program, (x, relu), dynamic_shapes={"x": {0: Dim("n")}})


def test_a_batch_of_images_may_be_one_image():
    """In some graphs PyTorch leaves what nothing needs: the places of maxima, an empty tensor of a norm."""
    layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(36, 5)).eval()
    check(model, [((n, 3, 6, 6),) for n in (4, 1, 2, 9)], ({0: B1},))


@pytest.mark.parametrize("tokens", [2, 33, 96, 128, 131, 600])
def test_a_transposed_copy_of_any_number_of_tokens(tokens):
    """Squares are turned at once, but for those in which the tokens end."""
    example = torch.randn(3, 128, 100)
    program = deplo.compile(
        lambda x: x.transpose(1, 2).contiguous(),
        (example,),
        target="cpu",
        dynamic_shapes=({1: Dim("tokens", min=2, max=700)},),
    )
    x = torch.randn(3, tokens, 100)
    assert torch.equal(program(x), x.transpose(1, 2))
