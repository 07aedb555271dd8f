"""Committed files of digests of generated sources: which kernels a change alters."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

UPDATE = "DEPLO_UPDATE_CORPUS"
HEADER = f"""\
# {{what}} and the first digits of the SHA-256 of the kernel's text.
# After an intended change: {UPDATE}=1 pytest {{where}}, then read the diff.
"""

Key = tuple[str, ...]


def assert_committed(sources: Mapping[Key, str], path: Path, what: str, where: str) -> None:
    """Raise if a text has another digest than the file says; with DEPLO_UPDATE_CORPUS=1, write the file."""
    now = {key: hashlib.sha256(text.encode()).hexdigest()[:12] for key, text in sources.items()}
    if os.environ.get(UPDATE) == "1":
        rows = [f"{' '.join(key)} {digest}\n" for key, digest in now.items()]
        path.write_text(HEADER.format(what=what, where=where) + "".join(rows))
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    before = {tuple(key): digest for *key, digest in rows}
    changed = [
        f"{': '.join(key)}: "
        + ("new" if key not in before else "gone" if key not in now else "altered")
        for key in sorted(now.keys() | before.keys())
        if now.get(key) != before.get(key)
    ]
    assert not changed, (
        "the change alters the text of these kernels:\n  "
        + "\n  ".join(changed)
        + f"\nIf that is intended, run with {UPDATE}=1 and commit {path.name}."
    )
