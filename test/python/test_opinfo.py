"""A fixed, seeded part of PyTorch's operator database: nothing is wrong and nothing crashes.

`make test-ops` runs all of it, with more samples.
"""

import pytest
import torch
from opinfo import entries, run_entry

PARTS = {
    torch.float32: (0, 8),
    torch.bfloat16: (1, 40),
    torch.int64: (2, 40),
    torch.bool: (3, 40),
    torch.uint8: (4, 40),
}
"""For each dtype, which share of the database runs here, out of how many."""

CHOSEN = [
    pytest.param(op, dtype, id=f"{op.name}-{op.variant_test_name}-{dtype}".replace("torch.", ""))
    for dtype, (part, parts) in PARTS.items()
    for op in entries(dtype, part, parts)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("op", "dtype"), CHOSEN)
def test_operator(op, dtype):
    entry = run_entry(op, dtype, samples=1)
    assert entry.status not in ("WRONG", "CRASH"), entry.notes
