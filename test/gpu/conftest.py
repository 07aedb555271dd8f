"""What the tests on a GPU share: f32 is f32 in eager, and a GPU that an error broke ends with its process."""

import os
import sys
from collections.abc import Iterator

import pytest

os.environ["DEPLO_CACHE"] = "0"  # what is tested is compiled now


@pytest.fixture(autouse=True)
def exact_products() -> Iterator[None]:
    """What eager computes in f32 is not rounded to tf32, neither by cuBLAS nor by cuDNN."""
    import torch

    cudnn = torch.backends.cudnn
    before = torch.get_float32_matmul_precision(), cudnn.allow_tf32
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = False
    yield
    torch.set_float32_matmul_precision(before[0])
    cudnn.allow_tf32 = before[1]


def is_broken() -> bool:
    """Whether the process can use its GPU no more: after an illegal access, each call of CUDA fails."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


@pytest.hookimpl(trylast=True)
def pytest_runtest_logfinish() -> None:
    """End a worker of pytest-xdist whose GPU is broken: it names the test, and other tests get a new one."""
    if "PYTEST_XDIST_WORKER" in os.environ and is_broken():
        os._exit(1)
