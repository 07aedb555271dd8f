"""`deplo.compile` of programs that change their arguments, buffers and parameters in place, as eager does."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import UnsupportedOpError, UsageError
from deplo.frontend.overlaps import check_apart


def same(program, args, calls=3, dynamic_shapes=None, others=None):
    """Compile a program and compare results and state with eager's twin, over several calls."""
    twin = copy.deepcopy(program) if isinstance(program, nn.Module) else program
    before = copy.deepcopy(args)
    compiled = deplo.compile(program, args, target="cpu", dynamic_shapes=dynamic_shapes)
    torch.testing.assert_close(args, before)  # compiling changes nothing
    mine, eager = copy.deepcopy(others or args), copy.deepcopy(others or args)
    for _ in range(calls):
        with torch.no_grad():
            results = compiled(*mine), twin(*eager)
        torch.testing.assert_close(*results)
        torch.testing.assert_close(mine, eager)
        if isinstance(program, nn.Module):
            torch.testing.assert_close(dict(program.state_dict()), dict(twin.state_dict()))
    return compiled


class Stateful(nn.Module):
    """A module with a buffer, a counter and a parameter, and what a call does with them."""

    def __init__(self, forward):
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 5, 3))
        self.register_buffer("step", torch.tensor([0]))
        self.weight = nn.Parameter(torch.ones(3))
        self.call = forward

    def forward(self, x):
        return self.call(self, x)


def caches(self, x):
    self.cache.index_copy_(1, self.step, x)
    self.step.add_(1)
    return self.cache.sum(-1), self.cache[:, :2]


def assigns_slice(self, x):
    self.cache[:, 2:3] = x
    self.cache[0, :, 1].mul_(0.5)
    return self.cache


def learns(self, x):
    with torch.no_grad():
        self.weight.mul_(0.9).sub_(x.mean((0, 1)))
    return x * self.weight


def puts_new(self, x):
    self.step = self.step + 1
    return x * self.step, self.step


@pytest.mark.parametrize("forward", [caches, assigns_slice, learns, puts_new])
def test_state_of_modules_advances(forward):
    same(Stateful(forward), (torch.randn(2, 1, 3),))


def test_statistics_of_training_mode_are_kept():
    layer = nn.BatchNorm1d(3)
    same(nn.Sequential(nn.Linear(4, 3), layer), (torch.randn(5, 4),))
    function = deplo.compile(lambda x: layer(x), (torch.randn(5, 3),), target="cpu")
    x, twin = torch.randn(5, 3), copy.deepcopy(layer)
    torch.testing.assert_close(function(x), twin(x))
    torch.testing.assert_close(layer.state_dict(), twin.state_dict())


@pytest.mark.parametrize("bags", [False, True])
def test_rows_that_are_looked_up_get_a_norm(bags):
    layer = (nn.EmbeddingBag if bags else nn.Embedding)(6, 3, max_norm=0.7)
    same(layer, (torch.tensor([[1, 2, 2, 5]]),))


def whole(x, y):
    return x.add_(y)


def views(x, y):
    x.mul_(2)
    return x[0], x.t(), x * y, y


def swapped(x, y):
    old = x.clone()
    x.copy_(y)
    y.copy_(old)


def copied_then_written(x, y):
    y.copy_(x)
    x.index_copy_(0, torch.tensor([1]), torch.ones(1, 3))
    return x.sum()


def separate(x, y):
    new = x + y
    x.copy_(new)
    return new, new[0]


def leaves(result):
    return [each for each in pytree.tree_leaves(result) if each is not None]


FUNCTIONS = [whole, views, swapped, copied_then_written, separate]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("compiler", ["deplo.compile", "torch.compile"])
def test_inputs_change_as_in_eager(function, compiler):
    def make():
        torch.manual_seed(0)
        return torch.randn(3, 3), torch.randn(3, 3)

    torch._dynamo.reset()
    if compiler == "deplo.compile":
        compiled = deplo.compile(function, make(), target="cpu")
    else:
        compiled = torch.compile(function, backend="deplo")
    mine, eager = make(), make()
    for _ in range(3):
        results = compiled(*mine), function(*eager)
        torch.testing.assert_close(*results)
        torch.testing.assert_close(mine, eager)
        storages = [
            [[r.data_ptr() == x.data_ptr() for x in args] for r in leaves(result)]
            for result, args in zip(results, (mine, eager), strict=True)
        ]
        assert storages[0] == storages[1]  # what is returned is the argument's memory, or is not


def test_a_change_is_of_the_callers_tensor_and_known_to_autograd():
    program = deplo.compile(lambda x: x.add_(1), (torch.zeros(2, 3),), target="cpu")
    x = torch.zeros(2, 3)
    version = x._version
    assert program(x) is x
    assert x._version > version
    whole = torch.zeros(4, 6)
    program(whole[::2, 1::2])
    expected = torch.zeros(4, 6)
    expected[::2, 1::2] = 1
    torch.testing.assert_close(whole, expected)
    cache = torch.zeros(3, 4)
    write = deplo.compile(
        lambda c, i, v: c.index_copy_(0, i, v).sum(), (cache, torch.tensor([1]), torch.ones(1, 4))
    )
    assert write.plan.updated == (0,)
    for _ in range(5):
        version = cache._version
        write(cache, torch.tensor([1]), torch.ones(1, 4))
        assert cache._version > version


def test_sizes_that_change():
    n = torch.export.Dim("n", min=3, max=64)
    others = torch.randn(7, 3), torch.randn(7, 3)
    shapes = ({0: n}, {0: n})
    args = torch.randn(4, 3), torch.randn(4, 3)

    def function(x, y):
        x.add_(y)
        return x[: x.shape[0] - 1], x.view(-1)

    same(function, args, dynamic_shapes=shapes, others=others)


def test_a_buffer_that_is_assigned_is_a_new_tensor():
    module = Stateful(puts_new)
    program = deplo.compile(module, (torch.ones(2, 1, 3),), target="cpu")
    before = module.step
    result = program(torch.ones(2, 1, 3))[1]
    assert before.item() == 0
    assert module.step is result
    module.step = torch.tensor([10])
    assert program(torch.ones(2, 1, 3))[1].item() == 11


def test_tensors_that_a_function_names():
    count, kept = torch.tensor(0.0), [torch.zeros(3)]

    def function(x):
        count.add_(1)
        kept[0].add_(x)
        return kept[0] * count

    program = deplo.compile(function, (torch.ones(3),), target="cpu")
    assert count.item() == 0
    for n in (1, 2):
        torch.testing.assert_close(program(torch.ones(3)), torch.full((3,), float(n * n)))
    assert (count.item(), kept[0].tolist()) == (2, [2, 2, 2])


GRID = torch.zeros(4, 2, 6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GRID, GRID),
        (GRID, GRID[1:]),
        (GRID.view(-1)[:10], GRID.view(-1)[9:12]),
        (GRID[0].expand(3, 2, 6), torch.zeros(3)),
        (GRID.unfold(2, 4, 2), torch.zeros(3)),
    ],
)
def test_a_call_with_shared_memory_is_refused(one, other):
    with pytest.raises(UsageError, match=r"memory.*clone"):
        check_apart(["x", "y"], [one, other], {0})
    check_apart(["x", "y"], [one, other], ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GRID[:, 0], GRID[:, 1]),
        (GRID[..., :2], GRID[..., 2:]),
        (GRID[::2].permute(2, 0, 1), GRID[1::2]),
        (GRID[:0], GRID),
        (torch.zeros(3).to_sparse(), GRID),
    ],
)
def test_parts_of_one_tensor_are_apart(one, other):
    check_apart(["x", "y"], [one, other], {0, 1})


def test_the_program_checks_its_calls():
    program = deplo.compile(whole, (torch.ones(2), torch.ones(2)), target="cpu")
    x = torch.ones(2)
    with pytest.raises(UsageError, match="argument 'x' in place, which shares memory with argument 'y'"):
        program(x, x)
    with pytest.raises(RuntimeError, match="some of its elements are the same memory"):
        program(torch.ones(1).expand(2), x)
    module = Stateful(lambda self, x: self.step.add_(x))
    program = deplo.compile(module, (torch.tensor([1]),), target="cpu")
    with pytest.raises(UsageError, match="shares memory with argument 'x'"):
        program(module.step)


def shifts(x):
    x[:, 1:].copy_(x[:, :-1])


def of_a_result(x):
    F.dropout(x, 0.5, training=False).add_(1)


def in_both_ways(self, x):
    self.step.add_(1)
    self.step = self.step * 2
    return x


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: x.t_(), "changes the shape, the strides or the memory of its argument 'x'"),
        (lambda x: x.resize_(5), "changes the shape, the strides or the memory of its argument 'x'"),
        (shifts, "reads at other positions"),
        (of_a_result, "torch.export loses that change"),
        (Stateful(in_both_ways), "assigns a tensor to buffer 'step', and changes that tensor"),
    ],
)
def test_what_cannot_be_done_as_in_eager_is_refused(program, reason):
    with pytest.raises(UnsupportedOpError) as raised:
        deplo.compile(program, (torch.ones(2, 3),), target="cpu")
    assert reason in str(raised.value)


def test_strides_decide_what_is_memory_of_an_input():
    def function(x):
        x.reshape(-1).add_(1)

    program = deplo.compile(function, (torch.zeros(2, 3),), target="cpu")
    with pytest.raises(UsageError, match=r"must have strides \(3, 1\).*changes it in place"):
        program(torch.zeros(3, 2).t())


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
def test_random_numbers_fill_an_argument_as_it_lies():
    x, y = torch.zeros(4, 3).t(), torch.zeros(4, 3).t()
    program = deplo.compile(lambda x: x.uniform_(1, 2), (x,), fallback="eager")
    torch.manual_seed(0)
    program(x)
    torch.manual_seed(0)
    torch.testing.assert_close(x, y.uniform_(1, 2))
    with pytest.raises(UsageError, match="strides"):
        program(torch.zeros(3, 4))
    for fill in (lambda x: x.bernoulli_(0.5), lambda x: F.dropout(x, 0.5, inplace=True)):
        with pytest.raises(UnsupportedOpError, match="draw numbers for a tensor that is not row-major"):
            deplo.compile(fill, (y,), fallback="eager")
        deplo.compile(fill, (y.contiguous(),), fallback="eager")


def test_a_value_that_decides_must_not_change():
    count = torch.tensor(0.0)

    def function(x):
        count.add_(1)
        return x * 2 if count * 2 > 4 else x

    with pytest.raises(UnsupportedOpError, match="decides by the value"):
        deplo.compile(function, (torch.ones(2),), target="cpu")
    assert count.item() == 0


def test_a_program_that_fails_leaves_its_buffers():
    count, x = torch.zeros(2), torch.ones(3)

    def function(self, x):
        self.step.add_(1)
        self.step = self.step + 1
        count[1:].add_(x.mul_(2)[:1])
        return x.reshape(7)

    module = Stateful(function)
    with pytest.raises(UsageError, match="this program fails in PyTorch"):
        deplo.compile(module, (x,), target="cpu")
    assert (module.step.item(), count.tolist(), x.tolist()) == (0, [0, 0], [1, 1, 1])
