"""A compiled program as one file: a zip whose members are stored as they are, checked before one is used.

    manifest.json                    what the program takes and gives, and the size and SHA-256 of each member
    cpu/0/plan.json, cpu/0/code.so   a plan, and the machine code of its kernels
    sm-80/kernels/0.cubin, 0.ptx     machine code of a kernel for a GPU, and what later GPUs get theirs from
    weights.safetensors              its parameters, buffers and constants

The zip's comment is the SHA-256 of the manifest and, of a signed file, an Ed25519 signature of the manifest.
Digests tell damage: whoever makes a file can give it any. Only a signature, checked with a key that the
reader has from elsewhere, tells who made it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import mmap
import os
import re
import struct
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import MissingEnvironmentError, UsageError

VERSION = 1
"""The version of the format that this runtime reads."""

MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*")
_COMMENT = re.compile(rb"deplo ([0-9a-f]{64})(?: ([A-Za-z0-9+/=]+))?")
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""The signature of a member's own header, and how long the name and what else stands behind it are."""


@dataclass(frozen=True)
class ProgramFile:
    """The sound content of a file."""

    path: Path
    manifest: Mapping[str, Any]
    members: Mapping[str, memoryview]
    """By name; in memory of the reader's own, each at the begin of a page."""
    signed: bool
    """Whether a signature was asked for, and is right."""


def read_program_file(path: str | os.PathLike[str], public_key: bytes | None = None) -> ProgramFile:
    """Read a file and check every byte that is used of it; nothing of it is executed, nothing is written.

    With a `public_key`, the 32 bytes of an Ed25519 key, the file must be signed by its owner. Raises
    UsageError for a file that is damaged, is none of deplo's, or is not signed so.
    """
    where = Path(path)
    try:
        with open(where, "rb") as file, zipfile.ZipFile(file) as archive:
            return _read(where, file, archive, public_key)
    except OSError as error:
        raise UsageError(f"cannot read {where}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error) as error:
        raise _unsound(where, f"it is no whole zip file ({error})") from error


def _read(
    path: Path, file: BinaryIO, archive: zipfile.ZipFile, public_key: bytes | None
) -> ProgramFile:
    size = os.fstat(file.fileno()).st_size
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if info.filename in found or not _NAME.fullmatch(info.filename):
            raise _unsound(path, f"it has a member {info.filename!r} that deplo does not write")
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise _unsound(path, f"its member {info.filename} is compressed or encrypted")
        found[info.filename] = info
    comment = _COMMENT.fullmatch(archive.comment)
    if comment is None or MANIFEST not in found:
        raise _unsound(path, "it has no manifest of deplo's")
    if sum(info.file_size for info in found.values()) > size:
        raise _unsound(path, "its members are larger than the file")
    text = bytes(_member(path, file, found.pop(MANIFEST)))
    if hashlib.sha256(text).hexdigest().encode() != comment[1]:
        raise _unsound(path, f"its {MANIFEST} is damaged")
    if public_key is not None:
        _check_signature(path, text, comment[2], public_key)
    manifest = _manifest(path, text)
    listed = manifest["members"]
    if listed.keys() != found.keys():
        raise _unsound(path, "its members are not those that it lists")
    members: dict[str, memoryview] = {}
    for name, info in found.items():
        members[name] = _member(path, file, info)
        if hashlib.sha256(members[name]).hexdigest() != listed[name]:
            raise _unsound(path, f"its member {name} is damaged")
    return ProgramFile(path, manifest, members, public_key is not None)


def _member(path: Path, file: BinaryIO, info: zipfile.ZipInfo) -> memoryview:
    """What a member holds, in new memory."""
    file.seek(info.header_offset)
    magic, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
    if magic != b"PK\3\4":
        raise _unsound(path, f"its member {info.filename} is not where it should be")
    file.seek(name + extra, os.SEEK_CUR)
    made = memoryview(mmap.mmap(-1, max(info.file_size, 1)))[: info.file_size]
    if file.readinto(made) != info.file_size:  # pyright: ignore[reportAttributeAccessIssue]
        raise _unsound(path, f"its member {info.filename} ends too early")
    return made


def _manifest(path: Path, text: bytes) -> dict[str, Any]:
    try:
        manifest = json.loads(text)
        version, members = manifest["version"], manifest["members"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unsound(path, f"its {MANIFEST} is none of deplo's") from error
    if version != VERSION:
        raise UsageError(
            f"{path} has version {version} of the format, this deplo reads version {VERSION}; save the "
            "program again, or load it with the deplo that saved it"
        )
    if not isinstance(members, dict):
        raise _unsound(path, f"its {MANIFEST} lists no members")
    return manifest


def _check_signature(path: Path, text: bytes, signature: bytes | None, key: bytes) -> None:
    """Raise UsageError unless `text` is signed by the owner of a public key."""
    if signature is None:
        raise UsageError(f"{path} is not signed; load it without a public key if you trust its origin")
    keys, invalid = ed25519()
    try:
        keys.Ed25519PublicKey.from_public_bytes(key).verify(base64.b64decode(signature), text)
    except (invalid, binascii.Error) as error:
        raise UsageError(f"{path} is not signed by the owner of that public key") from error
    except ValueError as error:
        raise UsageError(f"a public key has 32 bytes, not {len(key)}") from error


def ed25519() -> tuple[Any, Any]:
    """The module that signs, and its exception for what is not signed. Raises MissingEnvironmentError."""
    try:
        keys = import_module("cryptography.hazmat.primitives.asymmetric.ed25519")
        return keys, import_module("cryptography.exceptions").InvalidSignature
    except ImportError as error:
        raise MissingEnvironmentError(
            "signatures need the package cryptography: pip install 'deplo[signed]'"
        ) from error


def _unsound(path: Path, why: str) -> UsageError:
    return UsageError(f"{path} is not a program that deplo can load: {why}; save it again")
