"""The CUDA text of the corpus: it compiles without spills, and a committed file shows what changed."""

from functools import cache
from pathlib import Path

import pytest
from digests import assert_committed
from layers import assert_kernels_fit, layer
from programs import CORPUS, compiled

from deplo.errors import MissingEnvironmentError
from deplo.program import Program
from deplo.runtime.nvrtc import compile_cuda

DIGESTS = Path(__file__).with_name("cuda_corpus.txt")
WHAT = "Program, kernel"
SHARES = {"sm_90a": 1, "sm_80": 3, "sm_120": 3}
"""Architecture -> it compiles every n-th program; `make test-schedules` those of layers."""


@cache
def sources(architecture: str) -> dict[tuple[str, str], str]:
    """(program, kernel) -> CUDA text."""
    return {
        (name, kernel.name): kernel.source
        for name in list(CORPUS)[:: SHARES[architecture]]
        for kernel in compiled(name, architecture).kernels
    }


def test_the_text_of_every_kernel_is_the_committed_one() -> None:
    assert_committed(sources("sm_90a"), DIGESTS, WHAT, "test/python/test_cuda_corpus.py")


def test_equal_programs_have_equal_text() -> None:
    """Nothing random, and no address of an object, reaches the text."""
    for name in ("softmax", "cat_transposed", "mlp"):
        ours = compiled(name, "sm_90a")
        again = Program(ours.captured, ours.target)
        assert [k.source for k in again.kernels] == [k.source for k in ours.kernels]


@pytest.mark.parametrize("architecture", SHARES)
def test_every_kernel_compiles_without_spills(architecture: str) -> None:
    texts = {text: key for key, text in sorted(sources(architecture).items())}
    for text, (program, kernel) in texts.items():
        try:
            cubin = compile_cuda(text, architecture)
        except MissingEnvironmentError as error:
            pytest.skip(f"no NVRTC: {error}")
        for usage in cubin.usage.values():
            spilled = usage.spill_stores + usage.spill_loads
            assert spilled == 0, f"{program}: {kernel} spills {spilled} bytes on {architecture}"


def test_the_kernels_of_a_layer_do_not_spill() -> None:
    pytest.importorskip("transformers")
    assert_kernels_fit(layer("tinyllama-1.1b", 32, "sm_90a"))
