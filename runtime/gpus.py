"""The GPU that PyTorch runs on: whether there is one, what it is, and whether it runs code for a target."""

from __future__ import annotations

from typing import Any

from ..errors import MissingEnvironmentError
from .nvrtc import compute_capability

WITHOUT = "the program is compiled and can run where there is one, or compile with target='cpu'"
"""What can be done where there is no GPU to run a program."""


def torch_with_gpu(without: str = WITHOUT) -> Any:
    """PyTorch, ready to use a GPU; MissingEnvironmentError says what can be done if there is none."""
    try:
        import torch
    except ImportError as error:
        raise MissingEnvironmentError("running on a GPU needs torch: pip install torch") from error
    if not torch.cuda.is_available():
        raise MissingEnvironmentError(
            f"no GPU: torch finds no CUDA device on this machine; {without}"
        )
    torch.cuda.init()
    return torch


def check_capability(torch: Any, device: Any, target: str) -> None:
    """Raise MissingEnvironmentError unless `device` runs code for `target`: its generation, and no older.

    Code for a target with a suffix runs on exactly that one ("CUDA Binary Compatibility").
    """
    major, minor, suffix = compute_capability(target)
    has_major, has_minor = torch.cuda.get_device_capability(device)
    fits = has_major == major and (has_minor == minor if suffix == "a" else has_minor >= minor)
    if not fits:
        raise MissingEnvironmentError(
            f"the program was compiled for {target}, this GPU is sm_{has_major}{has_minor}"
        )


def describe_gpu(target: str) -> str:
    """PyTorch's current GPU in words: its name and multiprocessors, which may be a part of the chip.

    Raises MissingEnvironmentError if there is none, or if it does not run code for `target`.
    """
    torch = torch_with_gpu("kernels are tuned where they run")
    device = torch.device("cuda", torch.cuda.current_device())
    check_capability(torch, device, target)
    found = torch.cuda.get_device_properties(device)
    return f"{found.name} processors={found.multi_processor_count}"
