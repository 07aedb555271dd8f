"""CUDA's driver through its Python bindings: what loads kernels and launches them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from ..errors import DeploError, MissingEnvironmentError


@cache
def driver() -> Any:
    """The bindings. Raises MissingEnvironmentError without them."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise MissingEnvironmentError(
            f"running on a GPU needs CUDA's Python bindings: pip install 'deplo[cuda]' ({error})"
        ) from error


def ok(answer: tuple[Any, ...], doing: str) -> Any:
    """The value of a driver call; raises DeploError if it failed."""
    if answer[0] != driver().CUresult.CUDA_SUCCESS:
        raise DeploError(f"{doing} failed: {answer[0].name}")
    return answer[1] if len(answer) > 1 else None


def load(name: str, code: bytes, symbol: str, shared_bytes: int) -> Any:
    """A kernel, ready to be launched with so much shared memory above what it declares.

    `code` is machine code, or PTX that ends with a zero.
    """
    cuda = driver()
    module = ok(cuda.cuModuleLoadData(code), f"loading @{name}")
    function = ok(cuda.cuModuleGetFunction(module, symbol.encode()), f"finding @{name}")
    if shared_bytes:
        most = cuda.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        doing = f"asking for {shared_bytes} bytes of shared memory for @{name}"
        ok(cuda.cuFuncSetAttribute(function, most, shared_bytes), doing)
    return function


def launch(
    stream: int,
    kernel: str,
    function: Any,
    blocks: int,
    threads: int,
    shared_bytes: int,
    parameters: Any,
) -> None:
    """Launch a kernel. `parameters` are values and types, or the address of the addresses of values."""
    grid = blocks, 1, 1, threads, 1, 1
    launched = driver().cuLaunchKernel(function, *grid, shared_bytes, stream, parameters, 0)
    ok(launched, f"launching @{kernel}")
