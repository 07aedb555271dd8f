"""Loops and choices that data decide: parts of a program that are compiled as the program is."""

import json

import pytest
import torch
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

import deplo
from deplo.errors import DeploError, UnsupportedOpError
from deplo.program_stages import Compilation, compile_module
from deplo.runtime.plan import Plan
from deplo.tools.deplo_opt import run


def newton(x):
    """Square roots, as many turns as the worst element needs."""

    def wrong(y, turns):
        return ((y * y - x).abs() > 1e-4 * x).any()

    def better(y, turns):
        return (y + x / y) / 2, turns + 1

    return while_loop(wrong, better, (x + 1, torch.tensor(0)))


def fibonacci(x):
    """What is carried changes places."""
    return while_loop(lambda a, b: a.sum() < 50, lambda a, b: (b.clone(), a + b), (x, x + 1))


def never(x):
    return while_loop(lambda y: y.sum() > 1e9, lambda y: (y + 1,), (x,))[0]


def nested(x):
    def inner(y):
        return while_loop(lambda z: z.sum() < 100, lambda z: (z * 2,), (y,))[0]

    return while_loop(lambda y: y.sum() < 1000, lambda y: (inner(y) * 1.5,), (x,))[0]


def lookup(x):
    """A branch that may fail runs only where it is asked for."""
    return torch.cond(x.sum() > 0, lambda x: x[x.long()], lambda x: x / 2, (x,))


def integer_division(x):
    n = x.long()
    return torch.cond(n.min() > 0, lambda n: 7 // n, lambda n: n - 1, (n,))


def choice_in_loop(x):
    def halve(y):
        return torch.cond(y.max() > 8, lambda y: y[y.long() % 3] / 2, lambda y: y + 1, (y,))

    return while_loop(lambda y, n: n < 6, lambda y, n: (halve(y), n + 1), (x, torch.tensor(0)))


PROGRAMS = [newton, fibonacci, never, nested, lookup, integer_division, choice_in_loop]


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def inputs_of(function):
    ordinary = torch.tensor([1.0, 2.0, 0.5])
    return [ordinary, -ordinary if function in (lookup, integer_division) else ordinary * 3]


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_as_a_program(function):
    first, second = inputs_of(function)
    program = deplo.compile(Module(function), (first,), target="cpu")
    assert not program.fallbacks
    for given in (first, second, first):
        before = given.clone()
        torch.testing.assert_close(program(given), function(given), rtol=1e-5, atol=1e-6)
        assert torch.equal(given, before)


@pytest.mark.parametrize("function", [newton, lookup, choice_in_loop], ids=lambda f: f.__name__)
def test_compiled_by_torch_compile(function, recwarn):
    compiled = torch.compile(function, backend="deplo", fullgraph=True)
    for given in inputs_of(function):
        torch.testing.assert_close(compiled(given), function(given), rtol=1e-5, atol=1e-6)
    assert not [w for w in recwarn if "deplo" in str(w.message)]


@pytest.mark.parametrize("function", [lookup, choice_in_loop], ids=lambda f: f.__name__)
def test_every_pass_keeps_the_meaning(function, tmp_path):
    path = tmp_path / "program.mlir"
    first, _ = inputs_of(function)
    path.write_text(deplo.compile(Module(function), (first,), target="sm_90a").ir("tensor"))
    for target in ("cpu", "sm_90a"):
        steps = f"tensor-to-loop,loop-to-tile{{target={target}}}"
        steps += ",tile-to-llvm" if target == "cpu" else ",tile-to-kernel,kernel-to-cuda"
        assert run([f"--pass-pipeline={steps}", "--check-each-pass", str(path)]) == 0


def test_sizes_that_no_operand_says_come_with_an_argument():
    def steps(x, y):
        return while_loop(lambda n: n < x.shape[0], lambda n: (n + y.sum(),), (y.sum() - 1,))[0]

    given = torch.ones(5), torch.tensor([1.0])
    program = deplo.compile(
        Module(steps), given, target="cpu", dynamic_shapes=(({0: Dim("n", max=64)}, None),)
    )
    for n in (5, 9, 2):
        assert program(torch.ones(n), given[1]).item() == n


def test_dynamic_sizes():
    def function(x, w):
        return while_loop(
            lambda n, x: n < 3, lambda n, x: (n + 1, torch.tanh(x @ w)), (torch.tensor(0), x)
        )[1]

    given = torch.randn(5, 4), torch.randn(4, 4)
    program = deplo.compile(
        Module(function),
        given,
        target="cpu",
        dynamic_shapes=(({0: Dim("n", max=64)}, None),),
    )
    for n in (5, 2, 33):
        x = torch.randn(n, 4)
        torch.testing.assert_close(program(x, given[1]), function(x, given[1]))


def test_gradients_of_a_choice_that_may_fail():
    def loss(x, w):
        return torch.cond(
            w.sum() > 0, lambda x, w: (x / w)[w.long()], lambda x, w: x * w, (x, w)
        ).sum()

    for sign in (1, -1):
        x = torch.randn(3, requires_grad=True)
        w = (sign * torch.tensor([1.0, 2.0, 0.5])).requires_grad_()
        expected = torch.autograd.grad(loss(x, w), (x, w))
        got = torch.autograd.grad(torch.compile(loss, backend="deplo")(x, w), (x, w))
        torch.testing.assert_close(got, expected)


def test_operators_of_a_part_that_deplo_has_not_run_in_pytorch_alone():
    def function(x):
        return while_loop(
            lambda y: y.sum() < 100, lambda y: (torch.special.airy_ai(y) + y * 2,), (x,)
        )[0]

    x = torch.rand(4) + 1
    with pytest.raises(UnsupportedOpError, match="airy_ai"):
        deplo.compile(Module(function), (x,), target="cpu")
    with pytest.warns(deplo.FallbackWarning, match="airy_ai"):
        program = deplo.compile(Module(function), (x,), target="cpu", fallback="eager")
    torch.testing.assert_close(program(x), function(x))


def test_a_branch_draws_what_it_draws_in_eager():
    def function(x):
        return torch.cond(x.sum() > 0, lambda x: torch.rand_like(x) + x, lambda x: -x, (x,))

    x = torch.ones(5)
    with pytest.warns(deplo.FallbackWarning, match="rand_like"):
        program = deplo.compile(Module(function), (x,), target="cpu", fallback="eager")
    for given in (x, -x, x):
        states, results = [], []
        for run_it in (program, function):
            torch.manual_seed(3)
            results.append(run_it(given))
            states.append(torch.get_rng_state())
        torch.testing.assert_close(*results)
        assert torch.equal(*states)


def test_an_index_outside_its_axis_fails_in_the_branch_that_runs():
    program = deplo.compile(Module(lookup), (torch.tensor([1.0, 2.0, 0.5]),), target="cpu")
    program(torch.tensor([-7.0, 1.0, 0.0]))
    with pytest.raises(IndexError):
        program(torch.tensor([7.0, 1.0, 0.0]))


def test_a_plan_without_its_part_is_refused():
    program = deplo.compile(Module(never), (torch.ones(3),), target="cpu")
    data = json.loads(json.dumps(plan_data(program)))
    assert set(data["parts"]) == {"while_loop_test", "while_loop_body"}
    Plan.from_data(data)
    del data["parts"]["while_loop_body"]
    with pytest.raises(DeploError, match="there is no part while_loop_body"):
        Plan.from_data(data)


def plan_data(program):
    return compile_module(program.code.module, program.target, "", Compilation()).plan


def test_the_report_has_the_kernels_of_parts():
    program = deplo.compile(Module(never), (torch.ones(3),), target="cpu")
    names = [kernel["name"] for kernel in program.report()["kernels"]]
    assert names == [kernel.name for kernel in program.kernels]
    assert len(names) >= 2
