"""Indices that no data decides: what they read needs no check, and joins what is computed from it."""

import pytest
import torch
import torch.nn.functional as F

import deplo
from deplo.errors import DeploError

torch.manual_seed(0)
TABLE = torch.randn(20, 6)

KNOWN = {
    "positions": lambda w: F.embedding(torch.arange(7), w),
    "later positions": lambda w: F.embedding(torch.arange(7)[None] + 2, w),
    "from the end of a range": lambda w: F.embedding(19 - torch.arange(20), w),
    "every third": lambda w: F.embedding(torch.arange(7) * 3, w),
    "narrow": lambda w: F.embedding(torch.arange(20, dtype=torch.int32), w),
    "columns": lambda w: w.index_select(1, torch.arange(4)),
}
UNKNOWN = {
    "a constant, which is data": lambda w: F.embedding(torch.tensor([[3]]), w),
    "negative": lambda w: w[torch.arange(-3, 0)],
    "wrapped": lambda w: F.embedding((torch.arange(3) * 2**40).to(torch.int32), w),
    "bytes": lambda w: w[(torch.arange(300).to(torch.int8) // 8).long()],
    "remainders": lambda w: w[torch.arange(30) % 20],
    "two axes": lambda w: w[torch.arange(4)[:, None], torch.arange(3)],
    "along an axis": lambda w: w.gather(0, torch.arange(5)[:, None].expand(5, 6)),
}


@pytest.mark.parametrize("name", [*KNOWN, *UNKNOWN])
def test_results_are_pytorchs(name) -> None:
    program = KNOWN.get(name) or UNKNOWN[name]
    compiled = deplo.compile(program, (TABLE,), target="cpu")
    assert torch.equal(compiled(TABLE), program(TABLE))
    if name in KNOWN:
        assert "checked_index" not in compiled.ir("loop")


@pytest.mark.parametrize("indices", [lambda: torch.arange(21), lambda: torch.arange(3) - 1])
def test_what_is_outside_is_still_an_error(indices) -> None:
    def program(w):
        return F.embedding(indices(), w)

    with pytest.raises((DeploError, IndexError), match="index out of range"):
        deplo.compile(program, (TABLE,), target="cpu")(TABLE)


def test_a_number_of_positions_that_changes_is_checked() -> None:
    def program(x, w):
        return F.embedding(torch.arange(x.shape[1]), w) + x[..., None]

    sizes = ({1: torch.export.Dim("tokens", min=2, max=30)}, None)
    compiled = deplo.compile(
        program, (torch.randn(2, 7), TABLE), target="cpu", dynamic_shapes=sizes
    )
    x = torch.randn(2, 20)
    assert torch.equal(compiled(x, TABLE), program(x, TABLE))
    with pytest.raises((DeploError, IndexError), match="index out of range"):
        compiled(torch.randn(2, 25), TABLE)
