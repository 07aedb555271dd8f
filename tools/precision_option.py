"""`--precision`: how precise products of f32 are while a command runs."""

from __future__ import annotations

import argparse
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch

PRECISION_OPTION: dict[str, Any] = {
    "choices": ("highest", "high", "medium"),
    "help": "of products of f32, as torch.set_float32_matmul_precision has it: 'high' lets tensor cores "
    "multiply tf32, 'medium' also lets a CPU multiply bf16",
}
"""The option's declaration."""


@contextmanager
def asked_precision(options: argparse.Namespace) -> Generator[None]:
    """PyTorch's setting is what the options ask for, if they do, and then what it was before."""
    asked, before = getattr(options, "precision", None), torch.get_float32_matmul_precision()
    if asked is None:
        yield
        return
    torch.set_float32_matmul_precision(asked)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
