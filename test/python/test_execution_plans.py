"""`deplo.prepare`: plans that are executed again, on other data and for other values of variables."""

import numpy as np
import pytest
import torch

import deplo
import deplo.array_api as xp
from deplo import Tensor, UsageError, Variable, execution
from deplo.runtime import cpu


@pytest.fixture
def compilations(monkeypatch):
    """What is compiled while a test runs: modules, and kernels; drivers serve all programs of a process."""
    seen = []
    compile_module, compile_kernel = execution.compile_module, cpu.native_code.compile_kernel

    def module(*args):
        seen.append("module")
        return compile_module(*args)

    def kernel(name, source):
        if not name.startswith("deplo_"):
            seen.append(name)
        return compile_kernel(name, source)

    monkeypatch.setattr(execution, "compile_module", module)
    monkeypatch.setattr(cpu.native_code, "compile_kernel", kernel)
    return seen


def test_outputs_share_kernels_and_come_in_order():
    a, b = Tensor(np.eye(2) * 2), Tensor([[1.0, 2.0], [3.0, 4.0]], "float64")
    product = a @ b
    plan = deplo.prepare(product + 1, product.sum(axis=0), product + 1, b)
    assert sum("matmul" in kernel.name for kernel in plan.kernels) == 1
    assert sum(plan.ir("loop").count(op) for op in ("arith.mulf",)) == 1
    more = [[3.0, 5.0], [7.0, 9.0]]
    assert [t.tolist() for t in plan.execute()] == [more, [8.0, 12.0], more, b.tolist()]
    assert product.node.array is None  # preparing computes nothing of the tensors themselves


def test_inputs_are_bound_to_other_data(compilations):
    a, b = Tensor(np.arange(3.0)), Tensor(np.ones(3))
    plan = deplo.prepare(a * 2 + b)
    first = plan.execute()[0]
    compiled = len(compilations)
    plan.bind(a, np.full(3, 5.0)).bind(b, torch.zeros(3, dtype=torch.float64))
    assert plan.execute()[0].tolist() == [10.0, 10.0, 10.0]
    assert first.tolist() == [1.0, 3.0, 5.0]
    assert len(compilations) == compiled
    for tensor, data, said in (
        (Tensor([1.0]), [1.0], "reads no such tensor"),
        (a * 2, [1.0], "reads no such tensor"),
        (a, np.ones(4), r"of shape \[3\], got \[4\]"),
        (a, np.ones(3, np.float32), "of float64, got float32"),
    ):
        with pytest.raises(UsageError, match=said):
            plan.bind(tensor, data)


def test_one_plan_serves_all_sizes_of_a_variable(compilations):
    rng = np.random.default_rng(0)
    data, weight = (rng.random(shape, np.float32) for shape in ((4096, 8), (8, 4)))
    n = Variable("n", 1, 4096)
    x = Tensor(data)
    rows = x[:n]
    scores = xp.softmax(rows @ Tensor(weight), axis=0)
    plan = deplo.prepare(scores, rows.mean(axis=0), xp.concat([rows, rows]).max(axis=-1))
    assert scores.shape == (n, 4)
    plan.execute_with(n=5)
    compiled = len(compilations)
    assert compiled > 1
    for size in (
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        15,
        16,
        17,
        31,
        64,
        100,
        255,
        256,
        257,
        1000,
        1024,
        4095,
        4096,
    ):
        part = data[:size]
        raised = np.exp(part.astype(float) @ weight)
        got = [t.numpy() for t in plan.execute_with(n=size)]
        np.testing.assert_allclose(got[0], raised / raised.sum(0), rtol=2e-5)
        np.testing.assert_allclose(got[1], part.mean(0, dtype=float), rtol=1e-5)
        np.testing.assert_array_equal(got[2], np.concatenate([part, part]).max(-1))
    assert len(compilations) == compiled


def test_values_that_a_variable_has_not_are_refused():
    n = Variable("n", 2, 6)
    x = Tensor(np.arange(8.0))
    plan = deplo.prepare(x[:n].sum())
    for values, said in (
        ({"n": 1}, "'n' must be from 2 to 6, got 1"),
        ({"n": 7}, "'n' must be from 2 to 6, got 7"),
        ({"n": 3.0}, "'n' must be an integer from 2 to 6, got 3.0"),
        ({"n": "3"}, "'n' must be an integer from 2 to 6, got '3'"),
        ({"n": None}, "'n' must be an integer from 2 to 6, got None"),
        ({"m": 3, "n": 3}, "no size 'm'; its sizes are n"),
        ({}, "'n' needs a value: execute_with"),
    ):
        with pytest.raises(UsageError, match=said):
            plan.execute_with(**values)
    with pytest.raises(UsageError, match=r"has shape \[4\], with n = 5 the program reads \[5\]"):
        plan.bind(x, np.ones(4)).execute_with(n=5)
    assert plan.execute_with(n=4)[0].item() == 4.0
    with pytest.raises(UsageError, match="must be from 2 to 6, got 0"):
        deplo.prepare(x[:n].sum(), variables={"n": 0})
    with pytest.raises(UsageError, match=r"values by name, .* not list"):
        deplo.prepare(x[:n].sum(), variables=[n])
    assert deplo.prepare(x[:n].sum(), variables={"n": 3}).execute()[0].item() == 3.0
    with pytest.raises(UsageError, match="all its sizes are fixed"):
        deplo.prepare(x + 1).execute_with(n=1)


def test_several_variables_and_expressions_over_them():
    n, m = Variable("n", 1, 5), Variable("m", 2, 4)
    data = np.arange(20.0).reshape(5, 4)
    part = Tensor(data)[:n][:, :m]
    flat = part.reshape(n * m)
    again = Tensor(np.ones(5))[:n]
    plan = deplo.prepare(flat, part.T @ again, xp.arange(n), xp.zeros((n, m)) + 1)
    for i, j in ((1, 2), (5, 4), (3, 3)):
        got = [t.numpy() for t in plan.execute_with(n=i, m=j)]
        np.testing.assert_array_equal(got[0], data[:i, :j].ravel())
        np.testing.assert_array_equal(got[1], data[:i, :j].sum(0))
        np.testing.assert_array_equal(got[2], np.arange(i))
        np.testing.assert_array_equal(got[3], np.ones((i, j)))


def test_an_axis_may_be_a_multiple_of_a_variable():
    n, m = Variable("n", 1, 5), Variable("m", 1, 3)
    data = np.arange(40.0).reshape(10, 4)
    pairs = Tensor(data)[: 2 * n].reshape((n, 2, 4))
    plan = deplo.prepare(pairs.sum(axis=1), Tensor(data)[: 3 * m + 1, 0])
    for i, j in ((1, 1), (5, 3), (3, 2)):
        summed, first = (t.numpy() for t in plan.execute_with(n=i, m=j))
        np.testing.assert_array_equal(summed, data[: 2 * i].reshape(i, 2, 4).sum(1))
        np.testing.assert_array_equal(first, data[: 3 * j + 1, 0])
    with pytest.raises(UsageError, match="'n' must be from 1 to 5, got 6"):
        plan.execute_with(n=6, m=1)


def test_what_a_variable_cannot_do_is_refused():
    n = Variable("n", 1, 8)
    x = Tensor(np.ones((8, 3)))
    assert Variable("n", 1, 8) == n
    assert Variable("n", 1, 9) != n
    for act, error, said in (
        (lambda: x[:n].numpy(), UsageError, r"variable 'n': execute_with\(n=…\)"),
        (lambda: x[:n].sum().item(), UsageError, "variable 'n'"),
        (lambda: x[:, :n], IndexError, "'n' may be 8, axis 1 has 3 positions"),
        (lambda: x[n:], IndexError, r"x\[:n\] only"),
        (lambda: x[:n] + Tensor(np.ones(8))[: Variable("k", 1, 8)], ValueError, "n and k|n.*k"),
        (lambda: x[:n][2], ValueError, "n"),
        (lambda: deplo.prepare(xp.arange(n)), UsageError, "extent of no axis"),
        (lambda: Variable("n", 0, 3), UsageError, "limits from 1"),
        (lambda: Variable("a b", 1, 3), UsageError, "identifier"),
        (lambda: deplo.prepare(x), UsageError, "nothing to compute"),
    ):
        with pytest.raises(error, match=said):
            act()
    other = Tensor(np.ones(9))[: Variable("n", 1, 9)]
    with pytest.raises(UsageError, match="two variables are named 'n'"):
        deplo.prepare(x[:n].sum() + other.sum())


def test_a_compiled_program_is_an_execution_plan():
    program = deplo.compile(lambda x: x + 1, (torch.ones(3),))
    plan = deplo.prepare(Tensor([1.0, 1.0, 1.0]) + 1)
    assert isinstance(program, deplo.ExecutionPlan)
    assert isinstance(plan, deplo.ExecutionPlan)
    assert [k.source for k in plan.kernels] != []
    assert set(program.report()) == set(plan.report())
    assert program.run([torch.ones(3)])[0].tolist() == [2.0, 2.0, 2.0]
