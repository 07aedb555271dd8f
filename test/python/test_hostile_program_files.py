"""Program files that are damaged, or made to harm: refused in one line, and nothing is written."""

import hashlib
import json
import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from test_program_files import mlp, r

import deplo


def rewritten(whole, change):
    """A sound file of another content: `change` is given the manifest and the members."""
    with zipfile.ZipFile(whole) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    change(manifest, members)
    if isinstance(manifest.get("members"), dict):
        manifest["members"] = {n: hashlib.sha256(d).hexdigest() for n, d in members.items()}
    text = json.dumps(manifest).encode()
    made = whole.with_suffix(".made")
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in {"manifest.json": text, **members}.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.comment = b"deplo " + hashlib.sha256(text).hexdigest().encode()
    return made.read_bytes()


def lies(whole):
    """Files with right digests and wrong content."""

    def of(change):
        return rewritten(whole, change)

    yield of(lambda manifest, members: manifest.update(version=2))
    yield of(lambda manifest, members: manifest.pop("version"))
    yield of(lambda manifest, members: manifest.update(members=[]))
    yield of(lambda manifest, members: manifest.update(targets=[]))
    yield of(lambda manifest, members: manifest.update(targets={}))
    yield of(lambda manifest, members: manifest["targets"][0].update(machine="riscv64"))
    yield of(lambda manifest, members: manifest["targets"][0].update(kind="gpu"))
    yield of(lambda manifest, members: manifest["targets"][0]["features"].append("unheardof"))
    yield of(lambda manifest, members: manifest["targets"][0].update(variants=[]))
    yield of(lambda manifest, members: manifest["targets"][0]["variants"][0].update(code="../x.so"))
    yield of(lambda manifest, members: manifest["targets"][0]["variants"][0].pop("plan"))
    yield of(lambda manifest, members: members.update({"../../evil": b"x"}))
    yield of(lambda manifest, members: members.update({"/etc/evil": b"x"}))
    yield of(lambda manifest, members: members.update({"a/../b": b"x"}))
    yield of(lambda manifest, members: members.pop("weights.safetensors"))
    yield of(lambda manifest, members: members.update({"weights.safetensors": b"\xff" * 64}))
    yield of(lambda manifest, members: members.update({"weights.safetensors": b""}))
    yield of(lambda manifest, members: members.update({"cpu/0/plan.json": b"{}"}))
    yield of(lambda manifest, members: members.update({"cpu/0/plan.json": b"[" * 200_000}))
    yield of(lambda manifest, members: members.update({"cpu/0/code.so": b"\x7fELF"}))
    yield of(lambda manifest, members: members.update({"cpu/0/code.so": b""}))
    for key in ("name", "inputs", "outputs", "arguments", "constants", "values", "updates", "strides"):
        yield of(lambda manifest, members, key=key: manifest["interface"].pop(key))
        yield of(lambda manifest, members, key=key: manifest["interface"].update({key: 7}))
        yield of(lambda manifest, members, key=key: manifest["interface"].update({key: [{}]}))
    for key, value in (
        ("outputs", {"named": ["a b", ["x"], ["*"]]}),
        ("outputs", {"named": ["P", ["x", "y"], ["*"]]}),
        ("inputs", {"tuple": [{"tuple": ["*"]}, {"dict": [[[], {"tuple": []}]]}]}),
        ("arguments", "s0"),
    ):
        yield of(lambda m, members, key=key, value=value: m["interface"].update({key: value}))
    for value in (
        {"from": "result", "index": 9},
        {"from": "x", "index": 0},
        {"from": "result", "index": 0, "views": [["swap", 0, 99]]},
        {"from": "result", "index": 0, "views": [["select"]]},
        {"size": "s0 ** 9", "axes": []},
        {"size": "", "axes": []},
        {"size": "1 // 0", "axes": []},
    ):
        yield of(lambda m, members, value=value: m["interface"].update(values=[value]))


def bombs(whole):
    """Zip files that are larger inside than outside, or hold a name twice."""
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        made = whole.with_suffix(".bomb")
        with zipfile.ZipFile(made, "w", method) as archive:
            archive.writestr("manifest.json", b"0" * (1 << 24))
            archive.comment = b"deplo " + b"0" * 64
        yield made.read_bytes()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("manifest.json", b"{}")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("manifest.json", b"{}")
    yield made.read_bytes()


def damaged(data, random):
    """The file with a bit flipped, cut off, with bytes removed, put in, or of random ones."""
    place = random.randrange(len(data))
    match random.randrange(6):
        case 0 | 1 | 2:
            flipped = data[place] ^ (1 << random.randrange(8))
            return data[:place] + bytes([flipped]) + data[place + 1 :]
        case 3:
            return data[:place]
        case 4:
            return data[:place] + data[place + random.randrange(1, 64) :]
        case _:
            return data[:place] + random.randbytes(random.randrange(1, 64)) + data[place:]


HOSTILE = """
import os, sys
import numpy as np
from pathlib import Path
from deplo.errors import DeploError
from deplo.runtime import load

directory, x, y = Path(sys.argv[1]), np.load(sys.argv[2]), np.load(sys.argv[3])
before = sorted(os.listdir(directory))
for path in sorted(directory.glob("*.deplo"), key=lambda path: int(path.stem)):
    try:
        same = np.array_equal(load(path)(x), y)
        print(path.stem, "right" if same else "WRONG", flush=True)
    except DeploError as error:
        print(path.stem, "refused" if "\\n" not in str(error) else "SEVERAL LINES", error, flush=True)
assert sorted(os.listdir(directory)) == before
"""


def test_500_hostile_files(tmp_path):
    compiled = deplo.compile(mlp(), (x := r(3, 8),), target="cpu")
    compiled.save(whole := tmp_path / "whole.deplo")
    np.save(tmp_path / "x.npy", x.numpy())
    np.save(tmp_path / "y.npy", compiled(x).detach().numpy())
    made = [*lies(whole), *bombs(whole)]
    must_fail = len(made)
    rng, data = random.Random(0), whole.read_bytes()
    made += [damaged(data, rng) for _ in range(500 - len(made))]
    (directory := tmp_path / "hostile").mkdir()
    for number, content in enumerate(made):
        (directory / f"{number}.deplo").write_bytes(content)
    paths = [directory, tmp_path / "x.npy", tmp_path / "y.npy"]
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE, *paths], capture_output=True, text=True, check=False
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, [*lines[-1:], done.stderr]
    assert len(lines) == 500
    verdicts = [line.split()[1] for line in lines]
    assert set(verdicts) <= {"right", "refused"}, [line for line in lines if line.split()[1].isupper()]
    assert set(verdicts[:must_fail]) == {"refused"}, lines[:must_fail]
    assert verdicts.count("refused") > 450, "digests cover nearly all of a file"
