"""Writing at computed positions: order, bounds, edge values, and what is refused."""

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import deplo
from deplo.interpreter import execute
from deplo.passes.tensor_ir.expand_scatter import ExpandScatterPass
from deplo.program_stages import make_context
from deplo.tools.located_parser import LocatedParser

NAN = float("nan")


def compiled(program, *args):
    return deplo.compile(program, args, target="cpu")(*args)


def check(program, *args):
    torch.testing.assert_close(
        compiled(program, *args), program(*args), rtol=1e-5, atol=1e-5, equal_nan=True
    )


@st.composite
def scatters(draw):
    """A scatter of integers, which fold exactly, as text and inputs."""
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    axis = draw(st.integers(0, rank - 1))
    count = draw(st.integers(0, 5))
    updates = [count if i == axis else n for i, n in enumerate(shape)]
    indices = [n if i == axis or draw(st.booleans()) else 1 for i, n in enumerate(updates)]
    update = draw(st.sampled_from(["replace", "add", "mul", "max", "min"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    inputs = [
        rng.integers(-9, 9, shape),
        rng.integers(0, shape[axis], indices),
        rng.integers(-9, 9, updates),
    ]
    types = ["tensor<" + "".join(f"{n}x" for n in v.shape) + "i64>" for v in inputs]
    text = f"""func.func @main(%x: {types[0]}, %i: {types[1]}, %u: {types[2]}) -> {types[0]} {{
      %y = tensor_ir.scatter {update} %x[%i] along {axis} from %u : ({", ".join(types)}) -> {types[0]}
      func.return %y : {types[0]}
    }}"""
    return text, inputs, (update, axis)


FOLDS = {
    "replace": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "max": max,
    "min": min,
}


def one_by_one(inputs, update, axis):
    """What the operation means, in its own words."""
    result, (_, indices, updates) = inputs[0].copy(), inputs
    indices = np.broadcast_to(indices, updates.shape)
    for place in np.ndindex(*updates.shape):
        target = (*place[:axis], indices[place], *place[axis + 1 :])
        result[target] = FOLDS[update](result[target], updates[place])
    return result


@examples(100)
@given(scatters())
def test_it_is_one_update_after_the_other_and_so_is_its_expansion(case):
    text, inputs, how = case
    module = LocatedParser(make_context(), text, "scatter.mlir").parse_module()
    expected = one_by_one(inputs, *how)
    np.testing.assert_array_equal(execute(module, inputs)[0], expected)
    ExpandScatterPass().apply(None, module)
    module.verify()
    np.testing.assert_array_equal(execute(module, inputs)[0], expected)


# --------------------------------------------------------------------------- values


def test_the_last_of_several_values_stays_every_time():
    def program(x, i, v):
        return x.index_put((i,), v)

    x, i, v = torch.zeros(3), torch.tensor([1, 1, 0, 1]), torch.arange(4.0)
    made = deplo.compile(program, (x, i, v), target="cpu")
    assert all(made(x, i, v).tolist() == [2.0, 3.0, 0.0] for _ in range(5))


def test_what_is_not_hit_keeps_its_bits():
    x = torch.tensor([-0.0, NAN, -0.0, 1e-40])
    i, v = torch.tensor([2]), torch.tensor([-0.0])
    result = compiled(lambda x, i, v: x.index_add(0, i, v), x, i, v)
    assert torch.equal(torch.signbit(result), torch.signbit(x))
    assert result[3] == x[3]
    assert result[1].isnan()


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int8, torch.float64])
def test_folds(reduce, include_self, dtype):
    x = torch.tensor([5, -7, 100, 0]).to(dtype)
    s = torch.tensor([100, 3, -4, 90, -1, 2]).to(dtype)
    i = torch.tensor([0, 1, 1, 0, 0, 3])
    check(lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self), x, i, s)


def test_nan_wins_an_extremum_and_empty_updates_change_nothing():
    x, i, s = torch.ones(3), torch.tensor([0, 0, 1]), torch.tensor([2.0, NAN, 0.5])
    check(lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), x, i, s)
    empty = torch.zeros(0, dtype=torch.int64)
    check(lambda x, i, s: x.scatter_reduce(0, i, s, "amin", include_self=False), x, empty, s)
    check(lambda x, i, s: x.index_put((i,), s[:0]), x, empty, s)
    check(
        lambda x, i: x.scatter(0, i, 1.0), torch.zeros(0, 3), torch.zeros(0, 3, dtype=torch.int64)
    )


def test_indices_that_are_apart_and_masks():
    x, i, j = torch.randn(3, 4, 5), torch.tensor([0, 2]), torch.tensor([4, -1])

    def program(x, i, j):
        y = x.clone()
        y[i, :, j] = 1.0
        y[x > 0.5] = -1.0
        y[:, x[0, :, 0] > 0] = 7.0
        return y, x[i, :, j]

    for actual, expected in zip(compiled(program, x, i, j), program(x, i, j), strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.float16, torch.bfloat16])
def test_any_element_type_can_be_replaced(dtype):
    x = torch.tensor([[0, 1, 0], [1, 0, 1]]).to(dtype)
    i = torch.tensor([1, 0, 1])
    check(lambda x, i: x.index_put((i,), x[:1].expand(3, 3)), x, i)
    check(lambda x, i: x.index_put((i,), x[:1].expand(3, 3), accumulate=True), x, i)


# --------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    ("program", "negative_is_wrong"),
    [
        (lambda x, i: x.index_put((i,), x[0]), False),
        (lambda x, i: x.index_put((i,), x[0], accumulate=True), False),
        (lambda x, i: x.scatter(0, i[:, None].expand(2, 3), x), True),
        (lambda x, i: x.scatter_add(0, i[:, None].expand(2, 3), x), True),
        (lambda x, i: x.index_reduce(0, i, x[:2], "prod"), True),
    ],
    ids=["index_put", "accumulate", "scatter", "scatter_add", "index_reduce"],
)
def test_an_index_outside_stops_the_program(program, negative_is_wrong):
    x, inside = torch.randn(4, 3), torch.tensor([0, 3])
    made = deplo.compile(program, (x, inside), target="cpu")
    torch.testing.assert_close(made(x, inside), program(x, inside))
    wrong = [torch.tensor([1, 4]), torch.tensor([-5, 1])]
    if negative_is_wrong:
        wrong.append(torch.tensor([0, -1]))
    else:
        negative = torch.tensor([0, -1])
        torch.testing.assert_close(made(x, negative), program(x, negative))
    for indices in wrong:
        with pytest.raises(IndexError, match="index out of range"):
            made(x, indices)


def test_a_masked_scatter_from_too_few_elements_stops():
    x, mask = torch.zeros(5), torch.tensor([True, False, True, True, False])
    made = deplo.compile(torch.masked_scatter, (x, mask, torch.ones(2)), target="cpu")
    with pytest.raises(IndexError):
        made(x, mask, torch.ones(2))
    few = torch.tensor([True, False, True, False, False])
    assert made(x, few, torch.ones(2)).tolist() == [1, 0, 1, 0, 0]


# --------------------------------------------------------------------------- memory


@pytest.mark.parametrize(
    ("x", "others"),
    [
        (torch.randn(4, 5), (torch.randn(5, 4).t(), torch.randn(4, 10)[:, :5])),
        (torch.randn(5, 4).t(), (torch.randn(4, 5), torch.randn(4, 10)[:, ::2])),
    ],
    ids=["row-major", "transposed"],
)
def test_as_strided_holds_for_inputs_of_the_same_strides(x, others):
    def program(x, y):
        return (x * 2).as_strided((2, 3), (1, 2)) + y, x.as_strided((4,), (3,), 1)

    y = torch.randn(2, 3)
    made = deplo.compile(program, (x, y), target="cpu")
    for bias in (y, torch.randn(3, 2).t(), torch.randn(3, 3)[1:]):
        for actual, expected in zip(made(x.clone(), bias), program(x, bias), strict=True):
            torch.testing.assert_close(actual, expected)
    for other in others:
        with pytest.raises(deplo.UsageError, match=rf"strides \({x.stride(0)}, {x.stride(1)}\)"):
            made(other, y)


def _twice(x):
    return x * 2


def written_by_strides(size, stride, offset=None, view=_twice):
    def program(x):
        count = torch.Size(size).numel()
        return view(x).as_strided_scatter(x.flatten()[:count].reshape(size), size, stride, offset)

    return program


def changed_in_place(x):
    y = x * 2
    y.as_strided((2, 2), (1, 3), 1).add_(1)
    return y


def both_ways(program, x):
    """The program compiled by each entry point, of operators that all become kernels."""
    torch._dynamo.reset()
    yield deplo.compile(program, (x,), target="cpu")
    yield torch.compile(program, backend="deplo", options={"fallback": "error"})


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.t().as_strided((2, 3), (1, 2), 1) * 2,
        lambda x: (x * 2).t().as_strided((5, 3), (1, 2)),
        lambda x: (x * 2)[:2].t().as_strided((10,), (1,)),
        lambda x: x.view(2, 2, 5).permute(2, 0, 1).as_strided((3, 2), (7, 1)).exp(),
        lambda x: x[:, 1:].as_strided((2, 2), (1, 3)) * 2,
        lambda x: x.t()[1:].as_strided((2, 2), (1, 3), 2) * 2,
        lambda x: (x * 2).t().chunk(2)[1][1].as_strided((2, 2), (1, 3)),
        lambda x: x[1:].expand(3, 3, 5).as_strided((2, 2), (1, 3)) * 2,
        written_by_strides((2, 2), (1, 5), 1),
        written_by_strides((2, 2), (7, 2), 3),
        written_by_strides((5, 4), (1, 5)),
        written_by_strides((1, 3), (0, 4), 2),
        written_by_strides((), (), 2),
        written_by_strides((0, 2), (1, 2), 2),
        written_by_strides((2, 3), (1, 4), view=lambda x: (x * 2).t()),
        written_by_strides((2, 3), (1, 4), view=lambda x: (x * 2)[1:, 1:]),
        written_by_strides((2,), (3,), 7, view=lambda x: (x * 2).t()[1:, 1:]),
        changed_in_place,
    ],
    ids=[
        "an input",
        "a result",
        "a part",
        "three axes",
        "columns",
        "offset",
        "an item",
        "repeated",
        "write",
        "write with gaps",
        "write all",
        "write one row",
        "write a number",
        "write nothing",
        "write a transpose",
        "write columns",
        "write a part",
        "in place",
    ],
)
def test_memory_is_read_and_written_by_strides(program):
    x = torch.randn(4, 5)
    wanted = program(x)
    for compiled in both_ways(program, x):
        made = compiled(x)
        torch.testing.assert_close(made, wanted)
        assert made.stride() == wanted.stride()


@pytest.mark.parametrize(
    "view",
    [_twice, lambda x: (x * 2).t(), lambda x: (x * 2)[1:], lambda x: (x * 2)[:, 1:].exp()],
    ids=["whole", "transposed", "rows", "columns"],
)
@pytest.mark.parametrize("stride", [(1, 3), (1, 2)], ids=["once", "twice"])
def test_the_gradient_of_a_view_by_strides(view, stride):
    def program(x):
        return view(x).as_strided((2, 3), stride).exp()

    torch._dynamo.reset()
    x, twin = (torch.ones(4, 5).cumsum(1).div(9).requires_grad_() for _ in range(2))
    compiled = torch.compile(program, backend="deplo", options={"fallback": "error"})
    compiled(x).sum().backward()
    program(twin).sum().backward()
    torch.testing.assert_close(x.grad, twin.grad)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[1:].as_strided((2,), (1,)) * 2,
        lambda x: x[1:].as_strided((2,), (1,), 3) * 2,
        lambda x: x.as_strided((2,), (1,), 3) * 2,
        lambda x: x[1:].as_strided((2,), (1,)),
        lambda x: (x.t().as_strided((2,), (1,)), x * 2)[0],
        lambda x: x[1:].as_strided_scatter(x[0, :2] * 5, (2,), (1,)),
    ],
    ids=["relative", "absolute", "of the input", "a view", "a view and more", "write"],
)
def test_memory_of_inputs_begins_where_it_does_in_each_call(program):
    """Dynamo asks for the strides of an input, and not for where it begins."""
    memory = torch.randn(10, 5)
    for inputs in ((memory[:4], memory[2:6]), (memory[2:6], memory[:4])):
        torch._dynamo.reset()
        compiled = torch.compile(program, backend="deplo")
        for x in inputs:
            torch.testing.assert_close(compiled(x), program(x))
    made = deplo.compile(program, (memory[:4].clone(),), target="cpu")
    for x in (memory[:4], memory[2:6]):
        held = made.captured.read
        if held and held[0].offset is not None and x.storage_offset():
            with pytest.raises(deplo.UsageError, match="storage offset 0"):
                made(x)
        else:
            torch.testing.assert_close(made(x), program(x))


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: x[:2].as_strided((20,), (1,)) * 2, "goes to element 19 of a tensor of 10"),
        (lambda x: x.as_strided_scatter(x[:2, :2], (2, 2), (1, 1)), "writes an element twice"),
        (lambda x: x.as_strided_scatter(x[:2, :3], (2, 3), (3, 2)), "strides .3, 2. that interlace"),
    ],
    ids=["beyond", "twice", "interlaced"],
)
def test_what_is_refused(program, reason):
    with pytest.raises(deplo.UnsupportedOpError, match=reason):
        deplo.compile(program, (torch.randn(4, 5),), target="cpu")


@pytest.mark.parametrize("x", [torch.randn(4, 10)[:, ::2], torch.randn(5, 5)[1:]], ids=["gaps", "offset"])
def test_memory_of_an_input_that_is_a_part_is_refused(x):
    with pytest.raises(deplo.UnsupportedOpError, match="not contiguous memory of its own"):
        deplo.compile(lambda x: x.as_strided((2,), (1,)) * 2, (x,), target="cpu")
