"""Programs of dynamic sizes are compiled again for sizes of another bucket, and are right for all."""

import pytest
import torch
from torch import nn
from torch.export import Dim

import deplo
from deplo import execution
from deplo.errors import UsageError
from deplo.runtime.buckets import Buckets
from deplo.runtime.sizes import Size

ROWS = Size("rows", 1, 4096, axis=0, argument=0)
FOUND = Size("found", 0, 100, axis=0, buffer=2)
WIDTH = Size("width", 2, 20, axis=1, argument=0)


def test_sizes_have_buckets():
    buckets = Buckets((ROWS,))
    sizes = (1, 2, 16, 17, 128, 129, 1024, 1025, 4096)
    found = [buckets.of([torch.empty(size, 3)]) for size in sizes]
    assert found == [(0,), (1,), (1,), (2,), (2,), (3,), (3,), (4,), (4,)]


@pytest.mark.parametrize("argument", [torch.empty(0, 3), torch.empty(4097), torch.tensor(1.0), 3])
def test_what_is_not_allowed_has_no_bucket(argument: object):
    assert Buckets((ROWS,)).of([argument]) is None
    assert Buckets((ROWS,)).of([]) is None


def test_a_bucket_has_hints_that_are_allowed():
    buckets = Buckets((ROWS, FOUND, WIDTH))
    assert buckets.of_hints((32, 50, 4)) == (2, 1)
    assert buckets.hints((2, 1), (32, 50, 4)) == [32, 50, 4]
    assert buckets.hints((0, 2), (32, 50, 4)) == [1, 50, 20]
    assert buckets.hints((4, 1), (32, 50, 4)) == [4096, 50, 4]
    assert Buckets((WIDTH,)).hints((0,), (20,)) == [2]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that are compiled while a test runs."""
    compiled: list[str] = []
    compile_module = execution.compile_module

    def counting(module, *args):
        compiled.append(str(module))
        return compile_module(module, *args)

    monkeypatch.setattr(execution, "compile_module", counting)
    return compiled


def test_a_program_is_compiled_once_for_each_bucket(modules: list[str]):
    model = nn.Sequential(nn.Linear(40, 24), nn.GELU(), nn.Softmax(0))
    rows = Dim("rows", min=1, max=1000)
    program = deplo.compile(model, (torch.randn(5, 40),), target="cpu", dynamic_shapes=({0: rows},))
    assert len(modules) == 1
    for size in (5, 1, 7, 16, 17, 100, 129, 1000, 1, 3, 128):
        x = torch.randn(size, 40)
        torch.testing.assert_close(program(x), model(x))
    assert len(modules) == 4
    assert program.report()["compiled_for"] == [{"rows": n} for n in (5, 1, 128, 1000)]
    with pytest.raises(UsageError, match="'rows' must be from 1 to 1000, got 1001"):
        program(torch.randn(1001, 40))
    with pytest.raises(UsageError, match="expected shape"):
        program(torch.randn(20, 41))
    assert len(modules) == 4


def test_a_program_of_fixed_sizes_is_compiled_once(modules: list[str]):
    program = deplo.compile(nn.ReLU(), (torch.randn(5, 40),), target="cpu")
    program(torch.randn(5, 40))
    assert len(modules) == 1
    assert program.report()["compiled_for"] == [{}]


def test_sizes_of_several_arguments_have_a_bucket_together(modules: list[str]):
    m, k = Dim("m", max=300), Dim("k", max=300)
    shapes = ({0: m, 1: k}, {0: k})
    x, y = torch.randn(20, 20), torch.randn(20, 8)
    program = deplo.compile(lambda x, y: x @ y, (x, y), target="cpu", dynamic_shapes=shapes)
    for rows, depth in ((20, 20), (30, 200), (200, 30), (200, 200), (19, 201)):
        x, y = torch.randn(rows, depth), torch.randn(depth, 8)
        torch.testing.assert_close(program(x, y), x @ y)
    assert len(modules) == 4
