"""LLVM in this process: a kernel's text to machine code, for this CPU or another, and its address."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DeploError, MissingEnvironmentError
from .background import Background
from .cache import cache_key, open_cache

_library_numbers = itertools.count()


def begin(source: str) -> object:
    """Begin to compile an LLVM IR module in the background, for whoever keeps what this gives."""
    return _background.begin(source)


def compile_object(source: str) -> bytes:
    """The object file of an LLVM IR module, optimised for this CPU; from the cache if it is there."""
    return _background.get(source)


def _compile(source: str) -> bytes:
    cache = open_cache()
    key = cache_key(source, _own_source(), *host_cpu())
    code = cache.get("object", key)
    if code is None:
        code = _optimize(source)
        cache.put("object", key, code)
    return code


@cache
def _own_source() -> bytes:
    """This file, which says how a text becomes an object: what an older one made is not found any more."""
    return Path(__file__).read_bytes()


_background = Background(_compile)


def _optimize(source: str) -> bytes:
    module, machine = _optimized(source, *_machine())
    return machine.emit_object(module)


def assembly(source: str, architecture: str = "", core: str = "") -> str:
    """The machine code of an LLVM IR module, as an assembler reads it: for this CPU, or for LLVM's `core`."""
    module, machine = _optimized(source, *(_machine_of(architecture, core) if core else _machine()))
    return machine.emit_assembly(module)


def object_for(source: str, architecture: str, core: str, features: Sequence[str]) -> bytes:
    """The object file of an LLVM IR module for another CPU: LLVM's `core`, which has `features` besides."""
    module, machine = _optimized(source, *_machine_of(architecture, core, features))
    return machine.emit_object(module)


def host_cpu() -> tuple[str, str, str]:
    """What machine code for this CPU depends on: its name, its features, and the compiler's version."""
    binding, _ = _machine()
    version = ".".join(map(str, binding.llvm_version_info))
    return binding.get_host_cpu_name(), _features(binding), version


def host_architecture() -> str:
    """LLVM's name of this machine's architecture."""
    binding, _ = _machine()
    return binding.get_process_triple().partition("-")[0]


def host_features() -> list[str]:
    """LLVM's names of what this CPU has, all of which machine code for it may use."""
    binding, _ = _machine()
    return [name for name, has in binding.get_host_cpu_features().items() if has]


def _features(binding: Any) -> str:
    """What this CPU has, its longest vectors to be used: LLVM's model of some CPUs has it halve them."""
    features = binding.get_host_cpu_features()
    flattened = features.flatten()
    return f"{flattened},-prefer-256-bit" if features.get("avx512f") else flattened


def _optimized(source: str, binding: Any, machine: Any) -> tuple[Any, Any]:
    """The module after LLVM's passes for a machine, and the machine that makes code of it."""
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
    # Loops of a few iterations would be unrolled whole before they are vectorised, and then not be: a sum of
    # 64 elements would become a chain of 64 additions.
    options.loop_unrolling = False
    options.loop_interleaving = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return _with_lanes_stored(module, binding), machine


_STORE_OF_A_LANE = re.compile(
    r"(?:tail )?call void @llvm\.masked\.store\.\w+\.p0\((?P<vector><\d+ x (?P<type>\w+)> %[^ ,]+), "
    r"ptr [^%,]*(?P<place>%[^ ,]+), <\d+ x i1> <(?P<before>(?:i1 false, )*)i1 true(?:, i1 false)*>\)"
)
"""A masked store of one lane of a vector, as LLVM 22 prints it."""


def _with_lanes_stored(module: Any, binding: Any) -> Any:
    """The module with masked stores of one lane as stores of an element.

    LLVM 22.1.0 makes that of them itself on CPUs with AVX-512, and where the elements were truncated it
    stores one from before that: up to seven bytes behind it are overwritten (llvm-project's issue 179489).
    """
    if not any(function.name.startswith("llvm.masked.store.") for function in module.functions):
        return module
    numbers = itertools.count()

    def as_element(call: re.Match[str]) -> str:
        lane, type = call["before"].count("i1"), call["type"]
        element, place = (f"%stored.{name}.{next(numbers)}" for name in ("element", "place"))
        return (
            f"{element} = extractelement {call['vector']}, i64 {lane}\n"
            f"  {place} = getelementptr {type}, ptr {call['place']}, i64 {lane}\n"
            f"  store {type} {element}, ptr {place}, align 1"
        )

    text, count = _STORE_OF_A_LANE.subn(as_element, str(module))
    return binding.parse_assembly(text) if count else module


def load(name: str, code: bytes) -> tuple[int, object]:
    """The address of a function of an object file, and what keeps it alive."""
    binding, _ = _machine()
    builder = binding.JITLibraryBuilder()
    builder.add_object_img(code).add_current_process().export_symbol(name)
    try:
        tracker = builder.link(_engine(), f"deplo{next(_library_numbers)}")
    except RuntimeError as error:
        raise DeploError(f"LLVM cannot load kernel @{name}: {error}") from error
    return tracker[name], tracker


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
    binding.initialize_native_asmparser()  # the text of inline assembly
    target: Any = binding.Target
    target = target.from_triple(binding.get_process_triple())
    machine = target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=_features(binding),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )
    return binding, machine


def _machine_of(architecture: str, core: str, more: Sequence[str] = ()) -> tuple[Any, Any]:
    """What makes code for another CPU, which cannot be run here; it may have `more` than its core has."""
    binding, _ = _machine()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target: Any = binding.Target.from_triple(f"{architecture}-unknown-linux-gnu")
    listed = [f"+{name}" for name in more]
    features = ",".join([*listed, *(["-prefer-256-bit"] if architecture == "x86_64" else [])])
    return binding, target.create_target_machine(cpu=core, features=features, opt=3, reloc="pic")


@cache
def _engine() -> Any:
    binding, _ = _machine()
    # The engine takes its target machine over, so it gets one of its own.
    return binding.create_lljit_compiler()
