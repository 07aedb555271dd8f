"""Constants of 16 bits as operands of PTX: what C++ has for them is an int, which the compiler refuses."""

import pytest
import torch

import deplo


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_comparison_outside_of_a_loop_compiles(dtype):
    x = torch.zeros(2, 5, dtype=dtype)
    compiled = deplo.compile(
        lambda t: (t > 0)[:, None].expand(2, 3, 5).sum(1), (x,), target="sm_80"
    )
    text = compiled.ir("cuda")
    assert '"h"((unsigned short)0x0000)' in text
    assert '"h"(0x' not in text
