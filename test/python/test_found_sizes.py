"""Sizes that are found in data while a program runs, `x[x > 0]`: one compilation for all of them."""

import dataclasses
import warnings

import pytest
import torch
from stages import assert_stages_agree

import deplo
from deplo.frontend.sources import Program as Source
from deplo.runtime.stages import stages_of
from deplo.tools import deplo as command


def compile_quietly(program, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", deplo.FallbackWarning)
        return deplo.compile(program, args, fallback="eager", **options)


def expert(x):
    """Rows are chosen, sent through a layer, and put back, as a mixture of experts does."""
    rows = (x[:, 0] > 0).nonzero().squeeze(-1)
    return torch.zeros_like(x).index_add(0, rows, torch.tanh(x[rows] @ x[:4, :4]))


def two_masks(x):
    return x[x > 0].sum(), x[x < -1].cumsum(0).sum(), torch.cat([x[x > 0.5], x[x < 0]]) * 2


def shared_mask(x):
    mask = x > 0
    return torch.index_put(x, (mask,), x[mask] * 3), x[mask] * x.exp()[mask]


def selected_twice(x):
    """The same mask computed twice: PyTorch asserts that both sizes are equal."""
    return x[x > 0] * x.exp()[x > 0]


def written(x):
    """Its gradient finds the size again, in an operator of the backward pass."""
    mask, result = x > 0, torch.zeros_like(x)
    result[mask] = x[mask] * 2
    return result


def returned_size(x):
    found = x[x > 0]
    return found.shape[0], found * 2


PROGRAMS = {
    "nonzero": lambda x: x.nonzero() * 2,
    "mask": lambda x: x[x > 0] * 2 + 1,
    "masked_select": lambda x: torch.masked_select(x, x > 0).exp().sum(),
    "unique": lambda x: torch.unique((x * 2).to(torch.int64)) + 1,
    "outer": lambda x: x[x > 0][:, None] * x[x < 0][None, :],
    "expert": expert,
    "two masks": two_masks,
    "where": lambda x: torch.where(x > 0)[1] + 1,
    "argwhere": lambda x: torch.argwhere(x),
    "rows": lambda x: x[x[:, 0] > 0] @ x.T,
    "columns": lambda x: x[:, x[0] > 0],
    "one value of all": lambda x: torch.index_put(
        x, (x[:, 0] > 0,), torch.tensor(3.0), accumulate=True
    ),
    "shared mask": shared_mask,
    "selected twice": selected_twice,
    "one mask, two finders": lambda x: (torch.nonzero(x > 0), x[x > 0]),
    "returned size": returned_size,
    "masked_scatter": lambda x: torch.masked_scatter(x, x > 0, x[x > 0] + 1),
    "inverse and counts": lambda x: torch.unique(
        x.round(), return_inverse=True, return_counts=True
    ),
    "bools": lambda x: torch.unique(x > 0, return_inverse=True),
    "consecutive": lambda x: torch.unique_consecutive(
        x > 0, return_inverse=True, return_counts=True
    ),
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_sizes_from_one_compilation(name):
    """Also one element, and none: for that the program is compiled apart."""
    program = PROGRAMS[name]
    compiled = deplo.compile(program, (torch.randn(6, 4),))
    assert not compiled.fallbacks
    one = -torch.ones(6, 4)
    one[0, 0] = 2
    for x in (torch.randn(6, 4), torch.ones(6, 4), one, -torch.ones(6, 4), torch.zeros(6, 4)):
        torch.testing.assert_close(compiled(x), program(x), equal_nan=True)


def padding(x, lengths):
    return torch.arange(lengths.max().item())[None, :] < lengths[:, None], x.sum()


def prefix(x, n):
    count = n.item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count].sum(0) * count


@torch._dynamo.config.patch(capture_scalar_outputs=True)
@pytest.mark.parametrize(
    "compiler", [lambda f, *args: deplo.compile(f, args), lambda f, *_: whole(f)]
)
def test_items_as_sizes(compiler):
    compiled = compiler(padding, torch.randn(3), torch.tensor([2, 5, 3]))
    for lengths in ([2, 5, 3], [1, 1, 1], [9, 2, 1], [0, 0, 0]):
        inputs = torch.randn(3), torch.tensor(lengths)
        torch.testing.assert_close(compiled(*inputs), padding(*inputs))


def test_items_in_their_limits():
    compiled = deplo.compile(prefix, (torch.randn(6, 4), torch.tensor(3, dtype=torch.int32)))
    for count in (3, 1, 6, 0):
        inputs = torch.randn(6, 4), torch.tensor(count, dtype=torch.int32)
        torch.testing.assert_close(compiled(*inputs), prefix(*inputs))
    for count in (-1, 7):
        with pytest.raises((RuntimeError, deplo.UsageError), match=r"negative|from 0 to 6"):
            compiled(torch.randn(6, 4), torch.tensor(count, dtype=torch.int32))


def repeated(x, repeats):
    return torch.repeat_interleave(x, repeats, dim=0) * 2, torch.repeat_interleave(repeats)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_repeated_rows():
    compiled = deplo.compile(repeated, (torch.randn(3, 2), torch.tensor([2, 5, 3])))
    trained = whole(repeated)
    for repeats in ([2, 5, 3], [9, 0, 1], [0, 0, 0], [0, 0, 1]):
        ours, counts = torch.randn(3, 2, requires_grad=True), torch.tensor(repeats)
        theirs = ours.detach().clone().requires_grad_()
        expected = repeated(theirs, counts)
        torch.testing.assert_close(compiled(ours.detach(), counts), expected)
        made = trained(ours, counts)
        torch.testing.assert_close(made, expected)
        made[0].square().sum().backward()
        expected[0].square().sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    with pytest.raises(RuntimeError):
        compiled(torch.randn(3, 2), torch.tensor([3, -1, 2]))


def test_an_item_that_may_be_negative_is_refused():
    with pytest.raises(deplo.UnsupportedOpError, match="gives a SymInt, not a tensor"):
        compile_quietly(
            lambda x, n: x.new_full((n.item() + 3,), 2.0), torch.randn(3), torch.tensor(2)
        )


def test_the_mean_of_nothing_is_that_of_eager():
    compiled = compile_quietly(lambda x: x[x > 0].mean(), torch.randn(9))
    assert torch.isnan(compiled(-torch.ones(9)))


def test_what_a_call_gave_before_is_not_drawn_again():
    def program(x):
        return torch.rand(3), x[x > 0] + torch.rand(1)

    compiled = compile_quietly(program, torch.randn(9))
    for x in (torch.randn(9), -torch.ones(9)):
        torch.manual_seed(3)
        expected = (*program(x), torch.rand(1))
        torch.manual_seed(3)
        torch.testing.assert_close((*compiled(x), torch.rand(1)), expected)


def test_beside_sizes_that_arguments_say():
    n = torch.export.Dim("n", min=4, max=64)
    compiled = deplo.compile(expert, (torch.randn(6, 4),), dynamic_shapes=({0: n},))
    assert [size.name for size in compiled.plan.sizes] == ["n", "nonzero:0"]
    for rows in (4, 17, 64):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), expert(x))
    with pytest.raises(deplo.UsageError, match="'n' must be"):
        compiled(torch.randn(65, 4))


def test_every_stage_means_the_same(capsys):
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    for target, program in (("cpu", expert), ("sm_90a", PROGRAMS["mask"])):
        compiled = deplo.compile(program, (x,), target=target)
        assert_stages_agree(compiled, Source(program, (x,)), capsys)


def test_check_each_pass(capsys):
    code = "x = torch.randn(6, 4); x[x > 9].sum() + x[x > 0].exp()"
    assert command.run(["run", "-c", code, "--fallback", "eager", "--check-each-pass"]) == 0
    assert "agrees with eager" in capsys.readouterr().out


def test_kernels_take_the_size_as_a_number():
    compiled = compile_quietly(PROGRAMS["mask"], torch.randn(6, 4), target="sm_90a")
    assert "s0)" in compiled.kernels[-1].source


TRAINED = {
    "mask": lambda x: x[x > 0] ** 2,
    "expert": expert,
    "masked_select": lambda x: torch.masked_select(x, x > 0) ** 2,
    "written": written,
}


def whole(program):
    """`program` compiled in one graph, none of which PyTorch runs."""
    torch._dynamo.reset()
    return torch.compile(program, backend="deplo", fullgraph=True, options={"fallback": "error"})


@pytest.mark.parametrize("name", TRAINED)
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_gradients(name):
    """The backward pass gets the size as an argument, also if it is 0 or 1."""
    program = TRAINED[name]
    compiled = whole(program)
    one = -torch.ones(6, 4)
    one[0, 0] = 2
    for x in (torch.randn(6, 4), one, -torch.ones(6, 4), torch.ones(6, 4)):
        torch.testing.assert_close(compiled(x), program(x))
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        compiled(ours).sum().backward()
        program(theirs).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_beside_sizes_that_dynamo_makes_dynamic():
    def program(x):
        return x[x[:, 0] > 0] @ x.T

    compiled = whole(program)
    for rows in (6, 9, 4):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), program(x))


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_a_graph_network_is_one_graph():
    def convolution(x, edges, weight):
        source, target = edges[:, edges[0] != edges[1]]
        return torch.zeros_like(x).index_add(0, target, x[source]) @ weight

    compiled = whole(convolution)
    for edges in (torch.randint(0, 6, (2, 20)), torch.ones(2, 20, dtype=torch.int64)):
        inputs = [(torch.randn(6, 4), edges, torch.randn(4, 4, requires_grad=True))]
        inputs.append((*inputs[0][:2], inputs[0][2].detach().clone().requires_grad_()))
        results = [f(*args) for f, args in zip((compiled, convolution), inputs, strict=True)]
        torch.testing.assert_close(*results)
        for result in results:
            result.sum().backward()
        torch.testing.assert_close(*[args[2].grad for args in inputs])


@pytest.mark.parametrize(
    "program",
    [torch.nonzero, lambda x: x[:, x[0] > 0].transpose(0, 1) * 2],
    ids=["columns", "moved"],
)
def test_results_lie_as_in_eager(program):
    x = torch.ones(3, 4)
    assert deplo.compile(program, (x,))(x).stride() == program(x).stride() != (2, 1)


def test_nan_is_a_value_of_its_own_each_time():
    x = torch.tensor([torch.nan, 1, torch.nan, -0.0, 0.0, 1])
    found, counts = deplo.compile(lambda x: torch.unique(x, return_counts=True), (x,))(x)
    assert counts.tolist() == [2, 2, 1, 1]
    assert found.isnan().tolist() == [False, False, True, True]


def test_sizes_that_must_be_equal_and_are_not():
    program = deplo.compile(lambda x, y: x[x > 0] * y[y > 0], (torch.ones(6), torch.ones(6)))
    for x, y in ((torch.ones(6), torch.eye(6)[0]), (torch.zeros(6), torch.ones(6))):
        with pytest.raises(RuntimeError, match="two sizes that the program needs to be equal are"):
            program(x, y)


def test_as_many_values_as_places():
    program = deplo.compile(
        lambda x, v: torch.index_put(x, (x > 0,), v), (torch.ones(4), torch.ones(4))
    )
    assert program(torch.ones(4), torch.arange(4.0)).tolist() == [0, 1, 2, 3]
    for x in (torch.tensor([1.0, 1, 1, 0]), torch.zeros(4)):
        with pytest.raises(IndexError):
            program(x, torch.arange(4.0))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda x: torch.unique(x, dim=0), r"aten.unique_dim.default, 1 time"),
        (lambda x: x[x[:, 0] > 0, torch.tensor([1])], "a mask among other indices"),
    ],
)
def test_what_is_refused(program, said):
    with pytest.raises(deplo.UnsupportedOpError, match=said):
        deplo.compile(program, (torch.randn(6, 4),))


# --------------------------------------------------------------------------- the plan


def test_the_plan_says_what_finds_a_size():
    plan = compile_quietly(PROGRAMS["mask"], torch.randn(6, 4)).plan
    (size,) = plan.sizes
    assert (size.argument, size.minimum, size.maximum) == (None, 0, 24)
    first, second = stages_of(plan)
    assert first.finds == (0,)
    assert plan.results[0].index in second.buffers
    assert all(plan.buffers[i].offset is None for i in (size.buffer, *second.buffers))


def test_a_plan_that_needs_a_size_too_early_is_refused():
    plan = compile_quietly(PROGRAMS["mask"], torch.randn(6, 4)).plan
    wrong = dataclasses.replace(plan, steps=plan.steps[::-1])
    with pytest.raises(deplo.DeploError, match="needs the size index:0 too early"):
        stages_of(wrong)


def test_a_call_that_gives_something_else_is_an_error():
    compiled = compile_quietly(PROGRAMS["nonzero"], torch.randn(6, 4))
    wrong = torch.zeros(3, 7, dtype=torch.int64)
    with pytest.raises(deplo.DeploError, match=r"gave int64\[3, 7\] where"):
        compiled.executable(torch.randn(6, 4), given=[[wrong]])
    with pytest.raises(deplo.UsageError, match="must be from 0 to 24, PyTorch found 25"):
        compiled.executable(torch.randn(6, 4), given=[[torch.zeros(25, 2)]])
