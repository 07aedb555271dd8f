"""Weights of a few bits, several of which share a byte, with a scale for each group of columns."""

import pytest
import torch
from torch.nn import functional as F

import deplo

COLUMNS = 256


def alternating(packed, bits):
    """Values of a few bits where those of a byte are neighbours."""
    mask = 2**bits - 1
    parts = [(packed >> shift) & mask for shift in range(0, 8, bits)]
    return torch.stack(parts, -1).flatten(-2)


def in_pieces(packed, bits, group):
    """The same where those of a byte are as far apart as a group has bytes."""
    mask = 2**bits - 1
    grouped = packed.unflatten(-1, (-1, group * bits // 8))
    return torch.cat([(grouped >> shift) & mask for shift in range(0, 8, bits)], -1).flatten(-2)


def linear(layout, bits, group):
    def program(x, packed, scales):
        unpacked = in_pieces(packed, bits, group) if layout == "pieces" else alternating(packed, bits)
        values = (unpacked.to(torch.int8) - 2 ** (bits - 1)).unflatten(-1, (-1, group))
        weights = (values.to(x.dtype) * scales[..., None]).flatten(-2)
        return F.linear(x, weights)

    return program


def arguments(bits, group, rows, results):
    torch.manual_seed(0)
    packed = torch.randint(0, 256, (results, COLUMNS * bits // 8), dtype=torch.uint8)
    return torch.randn(rows, COLUMNS), packed, torch.randn(results, COLUMNS // group)


@pytest.mark.parametrize("layout", ["neighbours", "pieces"])
@pytest.mark.parametrize(
    ("bits", "group", "rows", "results"),
    [(4, 32, 1, 40), (4, 64, 1, 33), (4, 128, 3, 16), (2, 32, 1, 17), (1, 256, 1, 5), (4, 16, 1, 1)],
)
def test_a_product_with_weights_of_a_few_bits(layout, bits, group, rows, results):
    program, given = linear(layout, bits, group), arguments(bits, group, rows, results)
    compiled = deplo.compile(program, given, target="cpu")
    exact = program(given[0].double(), given[1], given[2].double())
    error = (compiled(*given).double() - exact).abs().max()
    assert error <= 1e-6 * COLUMNS**0.5 * 2**bits


@pytest.mark.parametrize("layout", ["neighbours", "pieces"])
def test_one_row_takes_the_values_of_a_byte_in_one_iteration(layout):
    compiled = deplo.compile(linear(layout, 4, 64), arguments(4, 64, 1, 32), target="cpu")
    assert len(compiled.kernels) == 1
    (told,) = [
        d.reason for d in compiled.compilation.decisions if d.pass_name == "split-sweeps" and d.fired
    ]
    assert told == "2 pieces in an iteration, 4 parts of 32 at once"
    text = compiled.ir("tile")
    assert "loop.test" not in text
    assert " mod " not in text
    assert "floordiv" not in text


@pytest.mark.parametrize("results", [2, 4, 33])
def test_rows_side_by_side_give_what_one_alone_gives(results):
    program, given = linear("neighbours", 4, 32), arguments(4, 32, 1, results)
    line = "k_linear_reduce: tileify,split-sweeps,hint{interleave=1 rows=4},bind{axis=j to=block}"
    alone, jammed = (
        deplo.compile(program, given, target="cpu", schedule=each)
        for each in (line.replace(" rows=4", ""), line)
    )
    (told,) = [d.reason for d in jammed.compilation.decisions if d.pass_name == "jam-rows"]
    assert told == "4 rows come side by side"
    assert torch.equal(jammed(*given), alone(*given))
