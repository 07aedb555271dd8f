"""The LLVM text of the corpus for named cores: a committed file shows what a change alters."""

import os
from pathlib import Path

import pytest
from digests import assert_committed
from programs import CORPUS, compiled

DIGESTS = Path(__file__).with_name("llvm_corpus.txt")
CORES = ("avx2:znver3", "avx512:znver4")


def test_the_llvm_text_of_every_kernel_is_the_committed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    texts: dict[tuple[str, ...], str] = {}
    for core in CORES:
        monkeypatch.setenv("DEPLO_CPU_MODEL", core)
        compiled.cache_clear()
        for name in CORPUS:
            for kernel in compiled(name, "cpu").kernels:
                texts[core, name, kernel.name] = kernel.source
    compiled.cache_clear()
    where = "test/schedules/test_llvm_corpus.py"
    assert_committed(texts, DIGESTS, "Core, program, kernel", where)
