"""Operators with effects, such as the checks of linear algebra, in graphs of `torch.compile`."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch import linalg

import deplo

CHECKED = {
    "cholesky": lambda y: linalg.cholesky(y),
    "inv": lambda y: linalg.inv(y),
    "inverse": lambda y: y.inverse(),
    "solve": lambda y: linalg.solve(y, y[:, :2]),
    "lu_factor": lambda y: linalg.lu_factor(y)[0],
    "matrix_power": lambda y: linalg.matrix_power(y, -2),
    "batches": lambda y: linalg.cholesky(y.expand(3, 4, 4)).sum(0),
    "two": lambda y: linalg.solve(y, linalg.cholesky(y)),
}


def positive(x):
    return x @ x.mT + torch.eye(x.shape[-1])


def program_with(function):
    return lambda x: function(positive(F.gelu(x))).exp().tanh()


def inputs(train):
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    return x.clone().requires_grad_(train), x.clone().requires_grad_(train)


@pytest.mark.sample(12)
@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", CHECKED)
def test_only_linear_algebra_runs_in_pytorch(name, dynamic, train, capfd, monkeypatch):
    monkeypatch.setenv("DEPLO_LOGS", "graphs")
    torch._dynamo.reset()
    program = program_with(CHECKED[name])
    compiled = torch.compile(program, backend="deplo", dynamic=dynamic)
    x, twin = inputs(train)
    made, wanted = compiled(x), program(twin)
    torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-4)
    if train:
        made.sum().backward()
        wanted.sum().backward()
        torch.testing.assert_close(x.grad, twin.grad, rtol=1e-3, atol=1e-3)
    counts = re.findall(r"(\d+) kernels?, (\d+) calls? of PyTorch", capfd.readouterr().err)
    assert len(counts) == 1 + train
    assert all(int(kernels) > 0 for kernels, _ in counts)
    # Each operator, and the check that it succeeded, which not every PyTorch has.
    assert 0 < int(counts[0][1]) <= (4 if name == "two" else 2)


@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
@pytest.mark.parametrize("function", [linalg.cholesky, linalg.inv, torch.inverse])
def test_what_fails_raises_as_in_eager(function, used):
    def program(x):
        y = function(x * 2)
        return y.exp() if used else x + 1

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo")
    torch.testing.assert_close(compiled(torch.eye(3)), program(torch.eye(3)))
    with pytest.raises(linalg.LinAlgError):
        program(torch.zeros(3, 3))
    with pytest.raises(linalg.LinAlgError):
        compiled(torch.zeros(3, 3))


@pytest.fixture
def tells():
    """Two operators that tell, in order, what they are called with: of one result, and of two."""
    told = []
    library = torch.library.Library("deplo_test_effects", "DEF")

    def one(x, number):
        told.append(number)
        return x * number

    def two(x, number):
        told.append(number)
        return x + number, x - number

    for name, returns, function in (("one", "Tensor", one), ("two", "(Tensor, Tensor)", two)):
        library.define(f"{name}(Tensor x, int number) -> {returns}")
        library.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"deplo_test_effects::{name}", function, lib=library)
        op = getattr(torch.ops.deplo_test_effects, name).default
        torch._higher_order_ops.effects._register_effectful_op(op, EFFECT)
    yield told
    library._destroy()


EFFECT = torch._higher_order_ops.effects._EffectType.ORDERED


def test_effects_keep_their_order(tells):
    ops = torch.ops.deplo_test_effects

    def program(x):
        ops.one(x, 1)  # nothing reads the result
        a, b = ops.two(x.exp(), 2)
        c = ops.one(b.sin(), 3)
        ops.two(x, 4)
        return a + c, ops.one(x.cos(), 5)

    x = torch.randn(5)
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo")
    with pytest.warns(deplo.FallbackWarning, match="2 operators run in PyTorch"):
        compiled(x)
    tells.clear()
    torch.testing.assert_close(compiled(x), program(x))
    assert tells == [1, 2, 3, 4, 5] * 2
