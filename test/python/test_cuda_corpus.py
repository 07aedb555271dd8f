"""The CUDA text of the corpus: it compiles without spills, and a committed file shows what changed."""

import hashlib
import os
from functools import cache
from pathlib import Path

import pytest
from programs import CORPUS, compiled

from deplo.errors import MissingEnvironmentError
from deplo.program import Program
from deplo.runtime.nvrtc import compile_cuda

DIGESTS = Path(__file__).with_name("cuda_corpus.txt")
UPDATE = "DEPLO_UPDATE_CORPUS"
HEADER = f"""\
# Program, kernel and the first digits of the SHA-256 of the kernel's CUDA text for sm_90a.
# After an intended change: {UPDATE}=1 pytest test/python/test_cuda_corpus.py, then read the diff.
"""
SHARES = {"sm_90a": 1, "sm_80": 3, "sm_120": 3}
"""Architecture -> it compiles every n-th kernel: the texts differ by architecture in nothing yet."""


@cache
def sources() -> dict[tuple[str, str], str]:
    """(program, kernel) -> CUDA text."""
    return {
        (name, kernel.name): kernel.source
        for name in CORPUS
        for kernel in compiled(name, "sm_90a").kernels
    }


def digests() -> dict[tuple[str, str], str]:
    return {key: hashlib.sha256(text.encode()).hexdigest()[:12] for key, text in sources().items()}


def committed() -> dict[tuple[str, str], str]:
    lines = DIGESTS.read_text().splitlines() if DIGESTS.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return {(program, kernel): digest for program, kernel, digest in rows}


def test_the_text_of_every_kernel_is_the_committed_one() -> None:
    now = digests()
    if os.environ.get(UPDATE) == "1":
        rows = [f"{program} {kernel} {digest}\n" for (program, kernel), digest in now.items()]
        DIGESTS.write_text(HEADER + "".join(rows))
    before = committed()
    changed = [
        f"{program}: {kernel}: "
        + ("new" if key not in before else "gone" if key not in now else "altered")
        for key in sorted(now.keys() | before.keys())
        if now.get(key) != before.get(key)
        for program, kernel in [key]
    ]
    assert not changed, (
        "the change alters the CUDA text of these kernels:\n  "
        + "\n  ".join(changed)
        + f"\nIf that is intended, run with {UPDATE}=1 and commit {DIGESTS.name}."
    )


def test_equal_programs_have_equal_text() -> None:
    """Nothing random, and no address of an object, reaches the text."""
    for name in ("softmax", "cat_transposed", "mlp"):
        ours = compiled(name, "sm_90a")
        again = Program(ours.captured, ours.target)
        assert [k.source for k in again.kernels] == [k.source for k in ours.kernels]


@pytest.mark.parametrize("architecture", SHARES)
def test_every_kernel_compiles_without_spills(architecture: str) -> None:
    texts = {text: key for key, text in sorted(sources().items())}
    for text, (program, kernel) in list(texts.items())[:: SHARES[architecture]]:
        try:
            cubin = compile_cuda(text, architecture)
        except MissingEnvironmentError as error:
            pytest.skip(f"no NVRTC: {error}")
        for usage in cubin.usage.values():
            spilled = usage.spill_stores + usage.spill_loads
            assert spilled == 0, f"{program}: {kernel} spills {spilled} bytes on {architecture}"
