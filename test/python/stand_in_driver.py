"""A GPU for programs from files where there is none: a driver in C, kernels as the interpreter runs them."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import MemRefType, ModuleOp, i32

from deplo.analysis.sizes import instantiate, sizes_of
from deplo.dialects import cuda
from deplo.dialects.kernel import TensorMapType
from deplo.dialects.sizes import static_shape
from deplo.execution import ExecutionPlan
from deplo.interpreter.execute import main_function
from deplo.interpreter.history import History
from deplo.interpreter.launches import launch
from deplo.interpreter.numpy_types import numpy_dtype
from deplo.interpreter.simt import element_of
from deplo.interpreter.tensor_ir import ProgramError
from deplo.program import Program
from deplo.runtime import driver_gpu
from deplo.runtime.nvrtc import compile_cuda, ptx_of

SOURCE = Path(__file__).with_name("stand_in_driver.c")
LAUNCH_FAILED = 719
Callback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_uint64,
    ctypes.c_char_p,
    *[ctypes.c_uint] * 3,
    ctypes.POINTER(ctypes.c_void_p),
)


class StandIn:
    """The driver, and the programs whose kernels it can launch."""

    def __init__(self, library: Any):
        self._library = library
        self._functions: dict[tuple[int, str], tuple[ModuleOp, cuda.FuncOp]] = {}
        self._callback = Callback(self._launch)
        self.launched: list[tuple[str, int, int, int]] = []
        self.raised: list[BaseException] = []

    def be(
        self,
        capability: tuple[int, int] = (9, 0),
        *,
        cuda: int = 13990,
        devices: int = 1,
        shared_bytes: int = 232448,
    ) -> None:
        """Be GPUs of a kind; none, if there are to be none."""
        driver_gpu.driver_gpu.cache_clear()
        self._library.stand_in(devices, *capability, cuda, shared_bytes, self._callback)

    def learn(self, program: Program) -> None:
        """Be able to launch the kernels of a program that was saved, by their machine code or PTX."""
        target = program.target.name
        codes = program.code.codes
        for code in codes:  # those for sizes of 0 come behind it
            codes += code._empty.values()
            module = ExecutionPlan(code).stage("cuda")
            functions = {op.sym_name.data: op for op in module.ops if isinstance(op, cuda.FuncOp)}
            for plan in code.plan.whole:
                for kernel in plan.kernels:
                    images = [compile_cuda(kernel.source, target).code]
                    if not target.endswith("a"):
                        images.append(ptx_of(kernel.source, target).encode())
                    for image in images:
                        key = digest(image), kernel.name
                        self._functions[key] = module, functions[kernel.name]

    @property
    def state(self) -> dict[str, int]:
        """Bytes in use and uploaded, contexts pushed, and how often machine code and PTX were loaded."""
        found = (ctypes.c_int64 * 5)()
        self._library.stand_in_state(found)
        return dict(zip(("bytes", "uploaded", "contexts", "cubins", "texts"), found, strict=True))

    def _launch(
        self, code: int, name: bytes, blocks: int, threads: int, shared: int, parameters: Any
    ) -> int:
        self.launched.append((name.decode(), blocks, threads, shared))
        try:
            module, function = self._functions[code, name.decode()]
            count = len(function.body.block.args)
            sizes = [1] * len(sizes_of(main_function(module)))
            width = ctypes.c_int32 if function.index_type == i32 else ctypes.c_int64
            for place, size in enumerate(function.size_arguments):
                sizes[size] = width.from_address(parameters[count + place]).value
            if sizes:
                named = {op.sym_name.data: op for op in instantiate(module, sizes).ops}
                function = named[name.decode()]
            assert (blocks, threads) == (function.blocks.data, function.threads.value.data)
            types = function.body.block.arg_types
            arrays = [_array(type, parameters[i]) for i, type in enumerate(types)]
            launch(function, arrays, History())
        except ProgramError:
            return LAUNCH_FAILED
        except BaseException as error:  # ctypes would print it and go on
            self.raised.append(error)
            return 1
        return 0


def digest(image: bytes) -> int:
    """The number of an image, as the driver makes it (FNV-1a)."""
    found = 14695981039346656037
    for byte in image:
        found = (found ^ byte) * 1099511628211 % 2**64
    return found


def _array(type: Any, place: int) -> Any:
    """An argument of a kernel, of which `place` is the parameter: an address, or a descriptor by value."""
    words = (ctypes.c_int64 * (16 if isinstance(type, TensorMapType) else 1)).from_address(place)
    shape = static_shape(type) if isinstance(type, MemRefType) else words[2 : 2 + words[1]][::-1]
    dtype = numpy_dtype(element_of(type))
    count = prod(shape)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(words[0])
    return np.frombuffer(memory, dtype, count).reshape(shape)


@cache
def stand_in() -> StandIn | None:
    """The driver, loaded in the place of NVIDIA's; None where that is there."""
    try:
        ctypes.CDLL("libcuda.so.1")
        return None
    except OSError:
        pass
    with tempfile.TemporaryDirectory() as directory:
        return StandIn(ctypes.CDLL(str(build(Path(directory)))))


def build(directory: Path) -> Path:
    """The driver as a library."""
    if (compiler := shutil.which("cc")) is None:
        pytest.skip("no C compiler")
    made = directory / "libcuda.so.1"
    flags = ["-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([compiler, *flags, "-o", made, SOURCE], check=True)
    return made


@pytest.fixture
def gpu() -> Iterator[StandIn]:
    """An H100, as far as programs from files see; behind the test there is no GPU any more."""
    pytest.importorskip("cuda.bindings.driver")
    if (driver := stand_in()) is None:
        pytest.skip("this machine has NVIDIA's driver")
    driver.launched.clear()
    driver.be()
    yield driver
    driver.be(devices=0)
    assert not driver.raised, driver.raised.pop()
