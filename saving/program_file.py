"""`Program.save`: a compiled program as a file, which `runtime/loaded.py` runs without a compiler."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import torch

from ..analysis.sizes import size_hints
from ..errors import UsageError
from ..execution import Code
from ..frontend.capture import Captured
from ..frontend.complex_graphs import parts_of
from ..machine.targets import Target
from ..program import Program
from ..program_stages import stages_of
from ..runtime import safetensors
from ..runtime.linked_code import texts_of
from ..runtime.own_calls import is_own
from ..runtime.plan import Plan
from ..runtime.program_file import MANIFEST, VERSION, WEIGHTS, ed25519
from .gpu_code import GpuCode
from .interface import interface_of, weight_names
from .linker import link
from .machine_code import code_target, compiled, described, features_of
from .writing import new_file

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all members: the same program gives the same file."""


def save(
    programs: Sequence[Program],
    path: str | os.PathLike[str],
    name: str,
    private_key: bytes | None = None,
    *,
    ir: bool = False,
) -> None:
    """Write one program, compiled for one or more targets, to a file, with its texts at all stages if `ir`.

    With a `private_key`, the 32 bytes of an Ed25519 key, the file is signed. Raises UsageError, which lists
    what of the program a file cannot say; MissingEnvironmentError without a linker or NVRTC.
    """
    captured = programs[0].captured
    check_calls(programs)
    members: dict[str, bytes] = {}
    interface = interface_of(captured, name)
    targets = [_target(program, members) for program in programs]
    if ir:
        for program, target in zip(programs, targets, strict=True):
            target["ir"] = _texts(program, members)
    if weights := weights_of(captured):
        members[WEIGHTS] = safetensors.written(weights)
    manifest = {
        "version": VERSION,
        "deplo": version("deplo"),
        "interface": interface,
        "targets": targets,
        "members": {each: hashlib.sha256(data).hexdigest() for each, data in members.items()},
    }
    _write(Path(path), json.dumps(manifest, separators=(",", ":")).encode(), members, private_key)


def check_calls(programs: Sequence[Program]) -> None:
    """Raise UsageError if a program needs PyTorch, with the lines that do."""
    for program in programs:
        steps = [call for plan in program.plan.whole for call in plan.calls]
        calls = {step.operator for step in steps if not is_own(step)}
        if not calls:
            continue
        where = {each.operator: each.where for each in program.fallbacks}
        lines = [f"  {each}{_at(where.get(each, ()))}" for each in sorted(calls)]
        told = "a program that is saved runs without PyTorch, and this one has it run"
        raise UsageError("\n".join((f"{told}:", *lines)))


def _at(lines: Sequence[str]) -> str:
    return f" at {', '.join(dict.fromkeys(lines))}" if lines else ""


def weights_of(captured: Captured) -> dict[str, tuple[str, Any]]:
    """The tensors that a program holds, by name, each with its dtype; complex ones as pairs of reals."""
    found: dict[str, tuple[str, Any]] = {}
    for i, name in weight_names(captured).items():
        tensor = parts_of(captured.tensors[captured.arguments[i].name].detach().cpu()).contiguous()
        dtype = str(tensor.dtype).removeprefix("torch.")
        bits = tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor
        found[name] = dtype, bits.numpy()
    return found


# --------------------------------------------------------------------------- targets


class _Code(Protocol):
    """The machine code of a target's variants."""

    @property
    def described(self) -> str:
        """Everything that it depends on besides its text."""
        ...

    def code(self, plan: Plan, prefix: str) -> Any:
        """What a file says of a plan's code; the members, whose names may begin so, are added."""
        ...

    def said(self) -> dict[str, Any]:
        """What a file says of the target, once all code is there."""
        ...


@dataclass
class _CpuCode:
    """One shared object for each variant."""

    target: Target
    members: dict[str, bytes]

    def code(self, plan: Plan, prefix: str) -> str:
        """The member that has the code of a plan."""
        kind = code_target(self.target)
        objects = [compiled(text, *kind) for text in texts_of(plan).values()]
        self.members[name := f"{prefix}/code.so"] = link(objects, kind[0])
        return name

    def said(self) -> dict[str, Any]:
        """Whom it is for."""
        needs = features_of(self.target)
        return {"kind": "cpu", "machine": code_target(self.target)[0], "features": needs}

    @property
    def described(self) -> str:
        """Everything that the code depends on besides its text."""
        return described(self.target)


@dataclass
class _Variants:
    """The variants of a program on a target, whose members stand in one folder."""

    folder: str
    code: _Code
    members: dict[str, bytes]
    known: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])

    def variant(self, code: Code) -> dict[str, Any]:
        """A plan and its machine code."""
        if (found := self.known.get(id(code))) is not None:
            return found
        prefix = f"{self.folder}/{len(self.known)}"
        said = self.known[id(code)] = {
            "plan": f"{prefix}/plan.json",
            "code": self.code.code(code.plan, prefix),
            "hints": list(size_hints(code.module)),
            "without": {},
        }
        stripped = _without_sources(code.data, self.code.described)
        self.members[said["plan"]] = json.dumps(stripped, separators=(",", ":")).encode()
        for number, size in enumerate(code.plan.sizes):
            if size.minimum == 0:
                said["without"][str(number)] = self.variant(code.without(number))
        return said


def _target(program: Program, members: dict[str, bytes]) -> dict[str, Any]:
    """What a file says of a program on one target; its members are added."""
    target = program.target
    folder = folder_of(target)
    of_cpu = not target.is_gpu
    code = _CpuCode(target, members) if of_cpu else GpuCode(folder, target, members)
    variants = _Variants(folder, code, members)
    made = [variants.variant(each) for each in program.code.codes]
    return {"name": target.name, **code.said(), "variants": made}


def _texts(program: Program, members: dict[str, bytes]) -> dict[str, str]:
    """The members that have the program's texts, by stage; those are added."""
    folder = folder_of(program.target)
    found = {stage: f"{folder}/ir/{stage}.txt" for stage in stages_of(program.target)}
    members |= {member: program.ir(stage).encode() for stage, member in found.items()}
    return found


def folder_of(target: Target) -> str:
    """The folder of a target's members."""
    return re.sub("[^A-Za-z0-9]", "-", target.name)


def _without_sources(data: Mapping[str, Any], machine: str) -> dict[str, Any]:
    """A plan whose kernels have digests in place of their sources: what they are found by when loaded."""

    def digest(text: str) -> str:
        return hashlib.sha256(f"{machine}\0{text}".encode()).hexdigest()

    kernels = [{**kernel, "source": digest(kernel["source"])} for kernel in data["kernels"]]
    parts = {n: _without_sources(part, machine) for n, part in data.get("parts", {}).items()}
    target = "cpu" if data["target"].startswith("cpu") else data["target"]
    return {**data, "target": target, "kernels": kernels, **({"parts": parts} if parts else {})}


# --------------------------------------------------------------------------- writing


def _write(
    path: Path, manifest: bytes, members: Mapping[str, bytes], private_key: bytes | None
) -> None:
    """Write the zip."""
    comment = f"deplo {hashlib.sha256(manifest).hexdigest()}"
    if private_key is not None:
        comment += f" {_signature(manifest, private_key)}"
    try:
        with new_file(path) as place, zipfile.ZipFile(place, "x", zipfile.ZIP_STORED) as archive:
            for name, data in {MANIFEST: manifest, **members}.items():
                archive.writestr(zipfile.ZipInfo(name, EPOCH), data)
            archive.comment = comment.encode()
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _signature(manifest: bytes, private_key: bytes) -> str:
    keys, _ = ed25519()
    try:
        key = keys.Ed25519PrivateKey.from_private_bytes(private_key)
    except ValueError as error:
        raise UsageError(f"a private key has 32 bytes, not {len(private_key)}") from error
    return base64.b64encode(key.sign(manifest)).decode()
