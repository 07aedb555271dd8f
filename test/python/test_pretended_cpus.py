"""Code for a CPU that is not there is compiled and printed; where it names instructions, it is not run."""

import pytest
import torch
from torch import nn

import deplo
from deplo.errors import MissingEnvironmentError
from deplo.machine import host_cpu
from deplo.runtime import jit


@pytest.mark.parametrize(("model", "feature"), [("amx", "amx-tile"), ("avx512:znver4", "avx512bf16")])
def test_a_cpu_whose_instructions_this_one_lacks_is_not_run(model, feature, monkeypatch):
    begun = []
    monkeypatch.setattr(host_cpu, "_host_flags", lambda: {"avx2", "fma"})
    monkeypatch.setattr(jit, "begin", begun.append)  # LLVM would end the process
    monkeypatch.setenv("DEPLO_CPU_MODEL", model)
    monkeypatch.setenv("DEPLO_CACHE", "0")
    x = torch.randn(32, 64).bfloat16()
    program = deplo.compile(nn.Linear(64, 64).bfloat16(), (x,), target="cpu")
    assert "define void" in program.kernels[0].source
    assert not begun
    with pytest.raises(MissingEnvironmentError, match=f"compiled for {model}.* has no .*{feature}"):
        program(x)
    assert feature in str(program.report()["note"])


def test_wide_vectors_run_anywhere(monkeypatch):
    monkeypatch.setenv("DEPLO_CPU_MODEL", "avx512")
    x = torch.randn(8, 64)
    program = deplo.compile(lambda x: x.softmax(-1), (x,), target="cpu")
    torch.testing.assert_close(program(x), x.softmax(-1))
