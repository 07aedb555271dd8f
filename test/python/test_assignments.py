"""`torch.compile`: parts of inputs that are assigned to are changed in place, and nothing else of them."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from deplo.errors import FallbackWarning
from deplo.frontend.assignments import assign_by_positions

L, D = 96, 64
Assignment = Callable[[Tensor, Tensor, int], Any]


def slice_of_one(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 1] = x[:, :1]
    return c[:, : at + 1].sum(1)


def fixed(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, 3:7] = x
    return c.sum() * at


def several(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 4] = x
    return c.amax()


def repeated(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 3] = x[0, :1]
    return c.amax()


def numbered(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, 5] = x[:, 1]
    return c.mean() * at


def last_axis(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[..., at : at + 2] = x.mean()
    return c.mean()


def converted(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 4, :] = x.double()
    return c.sum(1)


def twice(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 4] = x
    c[:, at + 1 : at + 5] = x * 2
    return c.sum(1)


def read_before(c: Tensor, x: Tensor, at: int) -> Tensor:
    before = c.sum(1)
    c[:, at : at + 4] = x + c[:, 1:5]
    return before + c.sum(1)


BY_POSITIONS = (
    slice_of_one, fixed, several, repeated, numbered, last_axis, converted, twice, read_before
)  # fmt: skip


def two_axes(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:1, at : at + 4] = x[:1]
    return c.sum(1)


def apart(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 8 : 2] = x
    return c.sum(1)


def from_the_end(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, -4:] = x
    return c.sum(1) * at


def past_the_end(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, L - 4 : L + 9] = x
    return c.sum(1) * at


def a_number(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[:, at : at + 4] = 3.0
    return c.sum(1) + x.sum()


def a_mask(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[c > at] = 0.0
    return c.sum(1) + x.sum()


def a_new_axis(c: Tensor, x: Tensor, at: int) -> Tensor:
    c[None, :, 2:6] = x
    return c.sum(1) * at


def not_an_input(c: Tensor, x: Tensor, at: int) -> Tensor:
    y = c * 2
    y[:, at : at + 4] = x
    return y.sum(1)


AS_THEY_ARE = (
    two_axes, apart, from_the_end, past_the_end, a_number, a_mask, a_new_axis, not_an_input
)  # fmt: skip


def inputs() -> tuple[Tensor, Tensor]:
    return torch.linspace(-3, 9, 2 * L * D).view(2, L, D), torch.linspace(4, -2, 8 * D).view(
        2, 4, D
    )


@pytest.mark.sample(11)
@pytest.mark.parametrize("program", [*BY_POSITIONS, *AS_THEY_ARE], ids=lambda each: each.__name__)
def test_inputs_have_the_values_of_eager(program: Assignment) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo", fullgraph=True)
    (ours, x), (eager, _) = inputs(), inputs()
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for at in (8, 9, 2, 40, L - 8, 0):
            got, expected = compiled(ours, x, at), program(eager, x, at)
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(ours, eager)


def assignments_left(program: Assignment, *given: Any) -> int:
    """How many assignments stay as they are in the graph for the second number."""
    left: list[int] = []

    def backend(graph: torch.fx.GraphModule, _: Any) -> Any:
        assign_by_positions(graph)
        left.append(len(graph.graph.find_nodes(op="call_function", target=operator.setitem)))
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend)
    cache, x = given or inputs()
    for at in (8, 9):
        compiled(cache, x, at)
    return left[-1]


@pytest.mark.parametrize("program", BY_POSITIONS, ids=lambda each: each.__name__)
def test_assignments_along_one_axis_name_positions(program: Assignment) -> None:
    assert assignments_left(program) == 0


@pytest.mark.parametrize("program", AS_THEY_ARE, ids=lambda each: each.__name__)
def test_others_stay(program: Assignment) -> None:
    assert assignments_left(program) == 1


def test_small_inputs_stay() -> None:
    assert assignments_left(several, torch.zeros(2, 16, 8), torch.ones(2, 4, 8)) == 1


def test_a_part_that_ends_past_the_input_is_an_error_as_in_eager() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(several, backend="deplo")
    cache, x = inputs()
    for at in (8, 9, 10):
        compiled(cache, x, at)
    with pytest.raises(Exception, match=r"shape|size|expand"):
        compiled(cache, x, L - 2)


def test_two_names_of_one_input() -> None:
    def program(c: Tensor, alias: Tensor, at: int) -> Tensor:
        c[:, at : at + 4] = 1 + alias[:, 4:8]
        return alias.sum(1)

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo")
    ours, eager = inputs()[0], inputs()[0]
    for at in (8, 9, 5):
        got, expected = compiled(ours, ours[:], at), program(eager, eager[:], at)
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(ours, eager)


def test_gradients_go_through_an_assignment() -> None:
    def program(c: Tensor, x: Tensor, at: int) -> Tensor:
        c[:, at : at + 4] = x
        return (c * c).sum()

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo")
    for at in (8, 9, 20):
        (ours, x), (eager, y) = inputs(), inputs()
        x.requires_grad_()
        y.requires_grad_()
        compiled(ours, x, at).backward()
        program(eager, y, at).backward()
        torch.testing.assert_close(x.grad, y.grad)
        torch.testing.assert_close(ours, eager)
