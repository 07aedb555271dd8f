"""The GPU's benchmark runs where there is no GPU: small sizes on the CPU, the same code."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bench" / "gpu.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_dry_run_measures_and_writes_nothing(tmp_path) -> None:
    out = tmp_path / "gpu.json"
    ran = bench("--dry-run", "--only", "rms_norm 512x2048", "--out", str(out))
    assert ran.returncode == 0, ran.stderr
    assert "rms_norm 512x2048" in ran.stdout
    assert "gelu" not in ran.stdout
    assert not out.exists()


def test_the_committed_results_are_shown() -> None:
    ran = bench("--show")
    assert ran.returncode == 0, ran.stderr
    assert "linear 4096x4096x4096" in ran.stdout


def test_without_a_gpu_it_says_so(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    ran = bench()
    assert ran.returncode == 4
    assert "--dry-run" in ran.stderr
