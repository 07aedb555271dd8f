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
    buckets = Buckets((ROWS,), (32,))
    sizes = (1, 2, 16, 17, 32, 33, 128, 129, 1024, 1025, 4096)
    found = [buckets.of([torch.empty(size, 3)]) for size in sizes]
    hints = (1, 16, 16, 32, 32, 128, 128, 1024, 1024, 4096, 4096)
    assert found == [(hint,) for hint in hints]
    large = Size("rows", 1, 100000, axis=0, argument=0)
    for size, hint in ((8000, 8192), (8193, 8192), (50000, 8192), (1000, 1024)):
        assert Buckets((large,), (8192,)).of([torch.empty(size, 3)]) == (hint,)


@pytest.mark.parametrize("argument", [torch.empty(0, 3), torch.empty(4097), torch.tensor(1.0), 3])
def test_what_is_not_allowed_has_no_bucket(argument: object):
    assert Buckets((ROWS,), (32,)).of([argument]) is None
    assert Buckets((ROWS,), (32,)).of([]) is None


def test_a_bucket_has_hints_that_are_allowed():
    buckets = Buckets((ROWS, FOUND, WIDTH), (32, 50, 4))
    assert buckets.of([torch.empty(20, 3)]) == (32, 50, 4)
    assert buckets.of([torch.empty(1, 5)]) == (1, 50, 16)
    assert buckets.of([torch.empty(33, 17)]) == (128, 50, 20)
    assert buckets.of([torch.empty(4096, 2)]) == (4096, 50, 4)


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
    for size in (5, 1, 3, 16, 7, 17, 100, 129, 1000, 1, 3, 128):
        x = torch.randn(size, 40)
        torch.testing.assert_close(program(x), model(x))
    assert len(modules) == 5
    assert program.report()["compiled_for"] == [{"rows": n} for n in (5, 1, 16, 128, 1000)]
    with pytest.raises(UsageError, match="'rows' must be from 1 to 1000, got 1001"):
        program(torch.randn(1001, 40))
    with pytest.raises(UsageError, match="expected shape"):
        program(torch.randn(20, 41))
    assert len(modules) == 5


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
    for rows, depth in ((20, 20), (18, 200), (200, 19), (200, 200), (17, 201)):
        x, y = torch.randn(rows, depth), torch.randn(depth, 8)
        torch.testing.assert_close(program(x, y), x @ y)
    assert len(modules) == 4
