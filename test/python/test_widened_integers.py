"""Integers of 8 and 16 bits that become floats: computed wider only where they cannot wrap."""

import torch
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

import deplo

STEPS = {
    "add": lambda v, n: v + n,
    "subtract": lambda v, n: v - n,
    "multiply": lambda v, n: v * n,
    "square": lambda v, n: v * v,
}
"""What a program does to integers, with a number."""


@examples(25)
@given(
    st.sampled_from([torch.int8, torch.int16]),
    st.integers(0, 255),
    st.integers(0, 7),
    st.lists(st.tuples(st.sampled_from(list(STEPS)), st.integers(-20, 20)), min_size=1, max_size=3),
)
def test_parts_of_bytes_give_the_floats_that_eager_gives(dtype, mask, shift, steps):
    def program(values):
        values = ((values >> shift) & mask).to(dtype)
        for name, number in steps:
            values = STEPS[name](values, number)
        return values.float()

    values = torch.arange(256, dtype=torch.uint8)
    compiled = deplo.compile(program, (values,), target="cpu")
    assert torch.equal(compiled(values), program(values))


def test_weights_of_a_byte_are_computed_in_32_bits():
    def program(packed):
        low, high = (packed & 15).to(torch.int8) - 8, (packed >> 4).to(torch.int8) - 8
        return low.float() + high.float()

    values = torch.arange(256, dtype=torch.uint8)
    compiled = deplo.compile(program, (values,), target="cpu")
    told = [d.reason for d in compiled.compilation.decisions if d.pass_name == "widen-integers"]
    assert told == ["2 conversions"]
    assert torch.equal(compiled(values), program(values))
