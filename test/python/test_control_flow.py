"""Parts of a program that run under a condition, many times, or in a transform of torch.func."""

import pytest
import torch
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.while_loop import while_loop

import deplo

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.tensor([0.5, -2.0, 3.0])
W = torch.tensor([1.0, 2.0, 3.0])


def nested(x):
    return torch.cond(
        x.sum() > 0,
        lambda x: torch.cond(x[0] > 1, lambda x: x.exp(), lambda x: -x, (x,)),
        lambda x: x @ torch.eye(3),
        (x,),
    )


CONDITIONALS = {
    "one": lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,)),
    "closure": lambda x: torch.cond(x.sum() > 0, lambda x: x * W, lambda x: x / W, (x,)) + 1,
    "two results": lambda x: torch.cond(
        x.sum().view(1) > 0, lambda x: (x * 2, x.sum()), lambda x: (x.sin(), x[0] + 1), (x,)
    ),
    "nested": nested,
    "a size": lambda x: torch.cond(x.shape[0] > 2, lambda x: x * 2, lambda x: x - 1, (x,)),
}


@pytest.mark.parametrize("name", CONDITIONALS)
def test_conditionals(name):
    program = CONDITIONALS[name]
    whole = {"fallback": "error"}
    for compiled in (
        deplo.compile(program, (X,), fallback="eager"),
        torch.compile(program, backend="deplo", options=whole),
    ):
        for x in (X, -X, X * 9, X * torch.nan):
            torch.testing.assert_close(compiled(x), program(x), equal_nan=True)


REFUSED = {
    "a size decides": lambda x: while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x)),
    "random numbers of rows": lambda x: map_over(
        lambda a, b: torch.rand_like(a) + b, torch.ones(2, 3), x
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("fallback", ["error", "eager"])
def test_what_is_refused(name, fallback):
    with pytest.raises(
        deplo.UnsupportedOpError, match=r"runs a part of the program|carries a number"
    ) as raised:
        deplo.compile(REFUSED[name], (X,), fallback=fallback)
    assert "test_control_flow.py:" in str(raised.value)


def cubes(x):
    return x**3


TRANSFORMS = {
    "grad": lambda x: torch.func.grad(lambda x: cubes(x).sum())(x),
    "grad_and_value": lambda x: torch.func.grad_and_value(lambda x: cubes(x).sum())(x),
    "vmap": lambda x: torch.vmap(lambda x: cubes(x).sum())(x[None]),
    "jvp": lambda x: torch.func.jvp(cubes, (x,), (x,)),
    "jvp of a product": lambda x: torch.func.jvp(lambda y: torch.outer(y, y) @ x, (x,), (x,)),
    "vjp": lambda x: torch.func.vjp(cubes, x)[1](x),
    "jacrev": lambda x: torch.func.jacrev(cubes)(x),
    "jacfwd": lambda x: torch.func.jacfwd(cubes)(x),
    "hessian": lambda x: torch.func.hessian(lambda x: cubes(x).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name):
    program = TRANSFORMS[name]
    torch.testing.assert_close(deplo.compile(program, (X,))(X), program(X))


def test_a_transform_that_fails_leaves_nothing_behind():
    with pytest.raises(deplo.DeploError):
        deplo.compile(lambda x: torch.func.jacfwd(lambda x: x * len(x.nonzero()))(x), (X,))
    torch.testing.assert_close(torch.func.grad(lambda x: cubes(x).sum())(X), 3 * X**2)
