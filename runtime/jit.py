"""LLVM in this process: a kernel's text to machine code for this CPU, and a function to call it.

Code lives as long as the process: a function pointer never outlives its code.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from ..errors import DeploError, MissingEnvironmentError
from .cache import cache_key, open_cache

_lock = threading.RLock()
_library_numbers = itertools.count()
_kernels: dict[tuple[str, str], CompiledKernel] = {}


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code of one kernel: `f(buffers..., sizes..., block_begin, block_end, status)`."""

    name: str
    address: int
    keep_alive: Any = field(repr=False)


@dataclass(frozen=True)
class Driver:
    """Machine code that runs chunks of a launch's blocks until none is left, in any number of threads.

    It is told by a task, 64-bit words: the first block that nobody took, which it changes; the block after
    the last; how many to take at once; the kernel's address; that of the status word; and then the kernel's
    buffers and sizes.
    """

    address: int
    function: Callable[[int], None] = field(repr=False)
    """Takes a task's address, and releases the GIL."""


TASK_WORDS = 5
"""Words of a task before the kernel's own arguments."""


@cache
def driver(arguments: int) -> Driver:
    """The driver of kernels with so many buffers and sizes."""
    name = f"deplo_drive_{arguments}"
    compiled = compile_kernel(name, _driver_source(name, arguments))
    return Driver(compiled.address, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address))


def _driver_source(name: str, arguments: int) -> str:
    """A pointer is passed as an i64, which is the same to the machines there are."""
    words = range(1, TASK_WORDS + arguments)
    loads = "\n".join(
        f"  %p{n} = getelementptr i64, ptr %task, i64 {n}\n  %w{n} = load i64, ptr %p{n}"
        for n in words
    )
    own = "".join(f"i64 %w{n}, " for n in words[TASK_WORDS - 1 :])
    return f"""
define void @{name}(ptr %task) {{
{loads}
  %kernel = inttoptr i64 %w3 to ptr
  br label %next
next:
  %begin = atomicrmw add ptr %task, i64 %w2 monotonic
  %some = icmp slt i64 %begin, %w1
  br i1 %some, label %run, label %done
run:
  %past = add i64 %begin, %w2
  %end = call i64 @llvm.smin.i64(i64 %past, i64 %w1)
  call void %kernel({own}i64 %begin, i64 %end, i64 %w4)
  br label %next
done:
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)
"""


def compile_kernel(name: str, source: str) -> CompiledKernel:
    """Compile the function `name` of the LLVM IR `source`; the same text is compiled once."""
    with _lock:
        key = (name, source)
        if key not in _kernels:
            _kernels[key] = _load(name, compile_object(source))
        return _kernels[key]


def compile_object(source: str) -> bytes:
    """The object file of an LLVM IR module, optimised for this CPU; from the cache if it is there."""
    cache = open_cache()
    key = cache_key(source, *host_cpu())
    code = cache.get("object", key)
    if code is None:
        code = _optimize(source)
        cache.put("object", key, code)
    return code


def host_cpu() -> tuple[str, str, str]:
    """What machine code for this CPU depends on: its name, its features, and the compiler's version."""
    binding, _ = _machine()
    version = ".".join(map(str, binding.llvm_version_info))
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten(), version


def _optimize(source: str) -> bytes:
    binding, machine = _machine()
    try:
        module = binding.parse_assembly(source)
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise DeploError(f"LLVM does not accept a kernel: {error}") from error
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    options.loop_unrolling = True
    options.loop_interleaving = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return machine.emit_object(module)


def _load(name: str, code: bytes) -> CompiledKernel:
    binding, _ = _machine()
    builder = binding.JITLibraryBuilder()
    builder.add_object_img(code).add_current_process().export_symbol(name)
    try:
        tracker = builder.link(_engine(), f"deplo{next(_library_numbers)}")
    except RuntimeError as error:
        raise DeploError(f"LLVM cannot load kernel @{name}: {error}") from error
    return CompiledKernel(name, tracker[name], tracker)


@cache
def _machine() -> tuple[Any, Any]:
    try:
        from llvmlite import binding
    except ImportError as error:
        raise MissingEnvironmentError(
            "running on the CPU needs llvmlite: pip install llvmlite"
        ) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target: Any = binding.Target
    target = target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )
    return binding, machine


@cache
def _engine() -> Any:
    binding, _ = _machine()
    # The engine takes its target machine over, so it gets one of its own.
    return binding.create_lljit_compiler()
