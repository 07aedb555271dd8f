"""Some warps of a block meet at barriers of their own: what they may rely on, and what is a fault."""

import numpy as np
import pytest
from kernel_programs import INPUT, Program, cubin

from deplo.interpreter.simt import MachineFault

SHARED = 'memref<64xf32, "shared">'

STORE = f"""
%s = kernel.shared : {SHARED}
%v = loop.load %x[%b, %t] : memref<8x256xf32>
loop.store %v, %s[%t] : {SHARED}
%first = loop.test[%t < 32]
"""
"""Each of the 2 warps of a block has a half of %s."""

MEET = """
scf.if %first {
  kernel.named_barrier 1 threads 32
} else {
  kernel.named_barrier 2 threads 32
}
"""

REVERSE = f"""
%w = loop.load %s[%t floordiv 32 * 64 - %t + 31] : {SHARED}
"""
"""Each thread reads what another one of its warp stored."""

RESULT = """
loop.store %w, %y[%b * 64 + %t] : memref<128xf32>
"""

SWAP = f"""
%w = loop.load %s[-%t + 63] : {SHARED}
"""
"""Each thread reads what one of the other warp stored."""

OVERWRITE = f"""
%r = loop.load %s[%t floordiv 32 * 32] : {SHARED}
loop.store %r, %y[%b * 64 + %t] : memref<128xf32>
{MEET}
%one = loop.test[%t mod 32 >= 31]
scf.if %one {{
  loop.store %v, %s[%t floordiv 32 * 32] : {SHARED}
}}
"""
"""All threads of a warp read one element, which one of them overwrites."""


def reversed_warps(x: np.ndarray) -> np.ndarray:
    return x[:2, :64].reshape(2, 2, 32)[:, :, ::-1]


RIGHT = Program(STORE + MEET + REVERSE + OVERWRITE + RESULT, reversed_warps)
ALL = Program(
    STORE + MEET + REVERSE + "kernel.barrier\n" + SWAP.replace("%w", "%w2") + RESULT,
    reversed_warps,
)


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("program", [RIGHT, ALL], ids=["own halves", "all threads later"])
def test_what_a_barrier_orders(program: Program, level: str) -> None:
    np.testing.assert_array_equal(program.run(level), program.expected(INPUT).reshape(-1))


FAULTS = {
    "no barrier": (STORE + REVERSE, "reads an element of s another thread wrote"),
    "what the other warp wrote": (
        STORE + MEET + SWAP,
        "reads an element of s another thread wrote",
    ),
    "what the other warp wrote before its barrier and read after it": (
        STORE + MEET + f"%again = loop.load %s[%t] : {SHARED}\n" + SWAP,
        "reads an element of s another thread wrote",
    ),
    "over what the other warp read": (
        STORE + MEET + REVERSE + MEET + f"loop.store %w, %s[(%t + 32) mod 64] : {SHARED}\n",
        "writes an element of s another thread wrote",
    ),
    "over what several threads read, without a barrier": (
        STORE + MEET + OVERWRITE.replace(MEET, ""),
        "writes an element of s another thread read",
    ),
    "over what both warps read": (
        STORE
        + f"kernel.barrier\n%both = loop.load %s[3] : {SHARED}\n"
        + MEET
        + "%one = loop.test[%t >= 3, %t < 4]\n"
        + f"scf.if %one {{\n  loop.store %v, %s[3] : {SHARED}\n}}\n",
        "writes an element of s another thread read",
    ),
    "too few": (
        STORE + "scf.if %first {\n  kernel.named_barrier 1 threads 64\n}\n",
        "waits for 64 threads of a block, but 32 come",
    ),
    "no whole warps": (
        STORE
        + "%some = loop.test[%t >= 16, %t < 48]\n"
        + "scf.if %some {\n  kernel.named_barrier 1 threads 32\n}\n",
        "threads that are no whole warps next to each other",
    ),
}


@pytest.mark.parametrize("level", ["kernel", "cuda"])
@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, level: str) -> None:
    body, message = FAULTS[name]
    with pytest.raises(MachineFault, match=message):
        Program(body, reversed_warps).run(level)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
def test_nvrtc_takes_it(architecture: str) -> None:
    assert cubin(RIGHT.cuda_module(), architecture).warnings == ()
