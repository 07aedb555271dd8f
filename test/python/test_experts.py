"""Mixtures of experts: products of groups of rows, counts of tokens, and whole models of transformers."""

import pytest
import torch
import torch._dynamo

import deplo
from deplo.dialects.inside import ops_in
from deplo.dialects.loop import KernelOp
from deplo.frontend.sources import Program

pytest.importorskip("transformers")
import transformers.integrations.moe  # noqa: F401 (makes the operator)
from stages import assert_stages_agree
from whole_models import EXPERTS, build

grouped = torch.ops.transformers.grouped_mm_fallback
INT32, INT64 = torch.int32, torch.int64


def compiled_both_ways(program, *args):
    """The results of both entry points, in which PyTorch runs nothing."""
    exported = deplo.compile(program, args, target="cpu", fallback="error")
    torch._dynamo.reset()
    traced = torch.compile(program, backend="deplo", fullgraph=True, options={"fallback": "error"})
    with torch.no_grad():
        return exported(*args), traced(*args)


def matrices(rows, *, groups=3, depth=5, columns=7, dtype=torch.float32):
    return torch.randn(rows, depth).to(dtype), torch.randn(groups, depth, columns).to(dtype)


# --------------------------------------------------------------------------- groups of rows


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        (8, [3, 3, 8]),  # a group of none
        (8, [0, 0, 0]),  # no rows of any group: all are 0
        (9, [2, 4, 5]),  # rows behind the last group
        (1, [0, 1, 1]),
        (0, [0, 0, 0]),
        (100, [1, 78, 100]),  # several tiles in a group
    ],
)
def test_each_row_is_multiplied_by_the_matrix_of_its_group(rows, ends):
    left, right = matrices(rows)
    offsets = torch.tensor(ends, dtype=INT32)
    for result in compiled_both_ways(grouped, left, right, offsets):
        torch.testing.assert_close(result, grouped(left, right, offsets))


@pytest.mark.parametrize(
    ("dtype", "index"),
    [(torch.float64, INT64), (torch.bfloat16, INT32), (torch.float16, INT64)],
)
def test_matrices_may_be_transposed_and_of_any_float(dtype, index):
    left, right = matrices(12, columns=8, dtype=dtype)
    right = right.mT.contiguous()
    offsets = torch.tensor([4, 11, 12], dtype=index)

    def program(a, b, o):
        return grouped(a, b.mT, o).relu() + 1

    for result in compiled_both_ways(program, left, right, offsets):
        torch.testing.assert_close(result, program(left, right, offsets))


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        ((16, 8), (3, 8, 24), [5, 5, 16]),  # groups of rows
        ((3, 16, 8), (8, 24), [5, 5, 24]),  # groups of columns
        ((8, 40), (40, 16), [5, 5, 32]),  # groups of what is summed over, with rows behind the last
        ((3, 16, 8), (3, 8, 24), None),  # a batch
    ],
)
def test_the_operator_of_pytorch(left, right, ends):
    left, right = (torch.randn(shape).bfloat16() for shape in (left, right))
    offsets = None if ends is None else torch.tensor(ends, dtype=INT32)
    args = (left, right) if offsets is None else (left, right, offsets)
    for result in compiled_both_ways(torch._grouped_mm, *args):
        torch.testing.assert_close(result, torch._grouped_mm(*args))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        (8, [3, 3, 8]),
        (9, [2, 4, 5]),
        (1, [0, 1, 1]),
        (0, [0, 0, 0]),
        (100, [1, 90, 100]),
        (60, list(range(3, 63, 3))),
    ],
)
def test_gradients_are_kernels(rows, ends):
    left, right = (each.requires_grad_() for each in matrices(rows, groups=len(ends)))
    offsets, weights = torch.tensor(ends, dtype=INT32), torch.randn(rows, 7)

    def gradients(program):
        return torch.autograd.grad((program(left, right, offsets) * weights).sum(), (left, right))

    torch._dynamo.reset()
    program = torch.compile(grouped, backend="deplo", fullgraph=True, options={"fallback": "error"})
    torch.testing.assert_close(gradients(program), gradients(grouped))
    if rows:
        args = left.detach(), right.detach(), offsets, weights
        backward = torch.ops.transformers.grouped_mm_fallback_backward
        compiled = deplo.compile(lambda *args: backward(*args), args, target="cpu")
        torch.testing.assert_close(compiled(*args), backward(*args))


@pytest.mark.parametrize("turned", [False, True])
def test_gradients_of_the_operator_of_pytorch_are_kernels(turned):
    left = torch.randn(40, 16).bfloat16().requires_grad_()
    right = torch.randn(3, *((8, 16) if turned else (16, 8))).bfloat16().requires_grad_()
    offsets = torch.tensor([5, 5, 40], dtype=INT32)

    def program(a, b):
        return torch._grouped_mm(a, b.mT if turned else b, offsets)

    def gradients(program):
        return torch.autograd.grad(program(left, right).float().square().sum(), (left, right))

    torch._dynamo.reset()
    compiled = torch.compile(
        program, backend="deplo", fullgraph=True, options={"fallback": "error"}
    )
    actual, expected = gradients(compiled), gradients(program)
    torch.testing.assert_close(actual, expected, rtol=2e-2, atol=2e-2)
    assert [each.stride() for each in actual] == [each.stride() for each in expected]


def test_what_stands_behind_a_group_is_in_no_sum():
    """Of the rows of other groups not even NaN is."""
    left, right = torch.randn(8, 16).bfloat16(), torch.randn(16, 8).bfloat16()
    left[:, 3:5] = torch.nan
    args = left, right, torch.tensor([3, 5, 16], dtype=INT32)
    for result in compiled_both_ways(torch._grouped_mm, *args):
        torch.testing.assert_close(result, torch._grouped_mm(*args), equal_nan=True)


def test_one_program_serves_any_number_of_rows():
    left, right = matrices(8)
    rows = torch.export.Dim("rows", min=2)
    program = deplo.compile(
        lambda a, b, o: grouped(a, b, o),
        (left, right, torch.tensor([3, 3, 8], dtype=INT32)),
        target="cpu",
        dynamic_shapes=({0: rows}, None, None),
    )
    for count, ends in ((8, [3, 3, 8]), (200, [50, 50, 190]), (33, [0, 33, 33]), (2, [0, 0, 1])):
        left, offsets = torch.randn(count, 5), torch.tensor(ends, dtype=INT32)
        torch.testing.assert_close(program(left, right, offsets), grouped(left, right, offsets))


@pytest.mark.parametrize("ends", [[5, 3, 8], [3, 3, 9], [-1, 3, 8]])
def test_offsets_of_no_groups_stop_the_program(ends):
    left, right = matrices(8)
    program = deplo.compile(
        grouped, (left, right, torch.tensor([3, 3, 8], dtype=INT32)), target="cpu"
    )
    with pytest.raises(IndexError):
        program(left, right, torch.tensor(ends, dtype=INT32))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_the_product_reads_the_matrices_in_their_place(target):
    """No kernel copies a matrix for each tile of rows."""
    left, right = matrices(64, groups=4, depth=64, columns=128)
    offsets = torch.tensor([16, 32, 48, 64], dtype=INT32)
    program = deplo.compile(grouped, (left, right, offsets), target=target)
    kernels = [op for op in ops_in(program.stage("loop")) if isinstance(op, KernelOp)]
    largest = max(result.type.element_count() for kernel in kernels for result in kernel.outputs)
    assert largest == (64 + 4 * 15) // 16 * 16 * 128


def test_a_row_for_each_group_is_multiplied_by_kernels_though_pytorch_may_be_called():
    left, right = matrices(3)
    args = left, right, torch.tensor([1, 1, 3], dtype=INT32)
    program = deplo.compile(grouped, args, target="cpu", fallback="eager")
    assert program.report()["calls"] == []
    torch.testing.assert_close(program(*args), grouped(*args))


def test_pytorch_multiplies_longer_groups_where_it_may_be_called():
    left, right = matrices(8)
    args = left, right, torch.tensor([3, 3, 8], dtype=INT32)
    with pytest.warns(deplo.FallbackWarning, match="grouped_mm_fallback"):
        program = deplo.compile(grouped, args, target="cpu", fallback="eager")
    torch.testing.assert_close(program(*args), grouped(*args))


# --------------------------------------------------------------------------- counts

NAN, INFINITY = float("nan"), float("inf")
EDGE_CASES = torch.tensor([0, 1, 2, 3, NAN, -1, 4, INFINITY, -INFINITY, -0.0, 0.5, 2.9999998])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("bins", "low", "high"), [(4, 0, 3), (7, -2, 3.7), (100, 0.1, 0.3)])
def test_values_are_counted_between_edges(dtype, bins, low, high):
    values = torch.cat([EDGE_CASES, 3 * torch.randn(4000)]).to(dtype)
    program = deplo.compile(
        lambda x: torch.histc(x, bins, low, high), (values,), target="cpu", fallback="error"
    )
    assert torch.equal(program(values), torch.histc(values, bins, low, high))


@pytest.mark.parametrize("shape", [(3, 4), (12,), (0,), ()])
def test_tensors_of_any_shape_are_counted(shape):
    values = EDGE_CASES[: torch.Size(shape).numel()].reshape(shape)

    def program(x):
        return torch.histc(x, bins=4, min=0, max=3)

    for result in compiled_both_ways(program, values):
        assert torch.equal(result, program(values))


@pytest.mark.parametrize(("low", "high"), [(3, 0), (0, NAN)])
def test_edges_that_eager_refuses_are_refused(low, high):
    with pytest.raises(RuntimeError, match="histc"):
        deplo.compile(lambda x: torch.histc(x, 4, low, high), (EDGE_CASES,), target="cpu")


@pytest.mark.parametrize(
    "program", [lambda x: torch.histc(x, 4), lambda x: torch.histc(x.half(), 4, 0, 3)]
)
def test_the_range_of_the_data_and_half_types_are_calls(program):
    with pytest.raises(deplo.UnsupportedOpError, match=r"histc"):
        deplo.compile(program, (torch.rand(5),), target="cpu", fallback="error")


# --------------------------------------------------------------------------- models


def experts_of(architecture):
    """The last mixture of experts in a small model."""
    blocks = [
        m for m in build(architecture).module.modules() if "experts" in dict(m.named_children())
    ]
    return blocks[-1]


def first(result):
    return result[0] if isinstance(result, tuple) else result


@pytest.mark.sample(3)
@pytest.mark.parametrize("architecture", EXPERTS)
def test_the_experts_of_a_model_are_kernels_at_every_length(architecture):
    block = experts_of(architecture)
    shape = {1: torch.export.Dim("length", min=2, max=64)}
    program = deplo.compile(
        block, (torch.randn(2, 9, 32),), target="cpu", fallback="error", dynamic_shapes=(shape,)
    )
    assert program.report()["calls"] == []
    assert len(program.plan.kernels) <= 36
    for length in (9, 17):
        hidden = torch.randn(2, length, 32)
        with torch.no_grad():
            torch.testing.assert_close(first(program(hidden)), first(block(hidden)))


@pytest.mark.sample(1)
@pytest.mark.parametrize("architecture", EXPERTS)
def test_a_whole_mixture_of_experts_agrees_with_eager(architecture):
    model = build(architecture)
    program = deplo.compile(model.module, (), model.inputs, target="cpu", fallback="error")
    with torch.no_grad():
        wanted = model.module(**model.inputs)
    torch.testing.assert_close(program(**model.inputs)["logits"], wanted["logits"])


def test_torch_compile_traces_experts_of_any_length_as_kernels():
    block = experts_of("mixtral")
    torch._dynamo.reset()
    compiled = torch.compile(
        block, backend="deplo", fullgraph=True, dynamic=True, options={"fallback": "error"}
    )
    for length in (9, 17):
        hidden = torch.randn(2, length, 32)
        with torch.no_grad():
            torch.testing.assert_close(first(compiled(hidden)), first(block(hidden)))


# --------------------------------------------------------------------------- passes


def routed(rows, matrices, experts):
    """Rows in the order of their experts, each multiplied by the matrix of its own."""
    order = experts.remainder(3).argsort(stable=True)
    counts = (experts.remainder(3).unsqueeze(-1) == torch.arange(3)).sum(0)
    return grouped(rows[order], matrices, counts.cumsum(0))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_every_pass_keeps_the_products_of_groups(target, dtype, capsys):
    left, right = matrices(48, depth=32, columns=40, dtype=dtype)
    args = left, right, torch.randint(0, 100, (48,))
    program = deplo.compile(routed, args, target=target)
    assert_stages_agree(program, Program(routed, args), capsys)


def picked(rows, matrices, at):
    """Products of a batch whose matrices data picks."""
    return torch.bmm(rows, torch.index_select(matrices, 0, at.clamp(0, 3)).mT)


def test_blocks_of_a_cluster_share_the_matrix_that_they_pick(capsys):
    left, right = torch.randn(2, 128, 64).bfloat16(), torch.randn(4, 64, 64).bfloat16()
    args = left, right, torch.tensor([2, 0])
    program = deplo.compile(picked, args, target="sm_90a", schedule="BM=64,BN=32,CM=2")
    assert "multicast" in str(program.stage("tile"))
    assert_stages_agree(program, Program(picked, args), capsys)
