"""Programs as files: loaded and run as the program that was saved, by numpy alone; files that are damaged."""

import copy
import json
import random
import subprocess
import sys
import zipfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import DeploError, MissingEnvironmentError, UsageError
from deplo.runtime import load
from deplo.runtime.cpu_features import missing
from deplo.runtime.jit import host_features
from deplo.runtime.loaded import described
from deplo.runtime.program_file import read_program_file
from deplo.runtime.safetensors import read, written
from deplo.tools.deplo import run

Pair = namedtuple("Pair", "first second")  # noqa: PYI024
Dim = torch.export.Dim


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.total.add_(x)
        self.calls = self.calls + 1
        return self.total * 2, self.calls


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.table.weight

    def forward(self, tokens):
        return self.head(self.table(tokens))


def into_cache(x, cache, place):
    cache.index_copy_(1, place, x)
    return cache.sum(1)


def mlp():
    return nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def views(x):
    y = x * 2
    parts = x.split(2, dim=1)
    return x.t(), x[0], y, y.t(), y[1], x.unsqueeze(0), x.reshape(-1), x[:, 1:3], parts, x.diagonal()


def tree(named, *, scale):
    return {"out": [named["a"] * scale, Pair(named["b"], None)], "number": 3}


def sized(x, y):
    return x @ y, x.shape[0] * 2 + 1, x.reshape(-1), x.expand(2, -1, -1)


r = torch.randn
PROGRAMS = {
    "mlp": (mlp(), (r(3, 8),), {}),
    "views": (views, (r(4, 6),), {}),
    "tree": (tree, ({"a": r(3), "b": r(2)},), {"scale": r(3)}),
    "constant": (lambda x, k: x * k, (r(3), 3), {}),
    "complex result": (lambda x: torch.view_as_complex(x) * 2j, (r(4, 2),), {}),
    "complex input": (lambda x: (x * x).abs(), (torch.randn(5, dtype=torch.complex64),), {}),
    "buffers": (Counter(), (r(3),), {}),
    "cache": (into_cache, (r(2, 1, 4), torch.zeros(2, 6, 4), torch.tensor([2])), {}),
    "tied": (Tied(), (torch.arange(6),), {}),
    "bfloat16": (nn.Linear(8, 8).bfloat16(), (r(3, 8).bfloat16(),), {}),
    "loop over time": (nn.LSTM(4, 6, 2), (r(7, 2, 4),), {}),
    "integers": (lambda x: (x // 3, x > 2, x.sum()), (torch.arange(9),), {}),
    "no elements": (lambda x: x * 2, (torch.zeros(0, 4),), {}),
    "no inputs": (lambda: torch.arange(5) * 2, (), {}),
    "in place": (lambda x: x.add_(1), (r(4),), {}),
    "twice the same": (lambda x: (x, x), (r(4),), {}),
    "channels last": (
        nn.Conv2d(3, 8, 3).eval().to(memory_format=torch.channels_last),
        (r(1, 3, 9, 9).contiguous(memory_format=torch.channels_last),),
        {},
    ),
}
DYNAMIC = {
    "mlp": (mlp(), ({0: Dim("batch", min=1, max=5000)},), [(r(n, 8),) for n in (3, 1, 17, 2000)]),
    "sizes": (
        sized,
        ({0: Dim("batch", min=1, max=512)}, None),
        [(r(n, 8), r(8, 5)) for n in (3, 1, 200)],
    ),
}


def bits(value):
    """A tensor as the array that a loaded program takes or gives."""
    if not torch.is_tensor(value):
        return value
    value = value.detach()
    return (value.view(torch.uint16) if value.dtype is torch.bfloat16 else value).numpy()


def check_same(program, loaded, args, kwargs):
    """Call both on copies of the same inputs; what they return, and make of the inputs, has the same bits."""
    theirs = pytree.tree_map(lambda v: np.copy(bits(v), order="K") if torch.is_tensor(v) else v, args)
    ours = copy.deepcopy(args)
    for _ in range(6):  # the later calls are prepared
        wanted = pytree.tree_map(bits, program(*ours, **kwargs))
        given = loaded(*theirs, **pytree.tree_map(bits, kwargs))
        np.testing.assert_equal(given, wanted)
        for one, other in zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True):
            assert getattr(one, "dtype", type(one)) == getattr(other, "dtype", type(other))
        np.testing.assert_equal(theirs, pytree.tree_map(bits, ours))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_program_is_the_one_that_was_saved(name, tmp_path):
    program, args, kwargs = PROGRAMS[name]
    compiled = deplo.compile(program, args, kwargs, target="cpu")
    compiled.save(tmp_path / "program.deplo")
    check_same(compiled, load(tmp_path / "program.deplo"), args, kwargs)


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_sizes_work_as_in_the_program(name, tmp_path):
    program, shapes, calls = DYNAMIC[name]
    compiled = deplo.compile(program, calls[0], target="cpu", dynamic_shapes=shapes)
    for args in calls:
        compiled(*args)
    compiled.save(tmp_path / "program.deplo")
    loaded = load(tmp_path / "program.deplo")
    for args in calls:
        check_same(compiled, loaded, args, {})
    assert described(loaded.file)["outputs"][0].startswith("f32[batch, ")
    with pytest.raises(UsageError, match=r"'batch' must be from 1 to"):
        loaded(*(bits(each[:0]) if i == 0 else bits(each) for i, each in enumerate(calls[0])))


def test_the_same_program_gives_the_same_file(tmp_path):
    compiled = deplo.compile(mlp(), (r(3, 8),), target="cpu")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        compiled.save(tmp_path / name / "mlp.deplo")
    assert (tmp_path / "a/mlp.deplo").read_bytes() == (tmp_path / "b/mlp.deplo").read_bytes()
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["mlp.deplo"]


REFUSED = {
    "aten.native_dropout.default at ": lambda x: F.dropout(x, training=True),
    "aten.linalg_inv_ex.default|aten.linalg_inv.default": torch.linalg.inv,
    "output 0: a view by aten.unfold.default; return a copy": lambda x: x.unfold(0, 2, 1),
    "the outputs: a Size; take and return tuples, lists and dicts": lambda x: x.shape,
}


@pytest.mark.filterwarnings("ignore::deplo.FallbackWarning")
@pytest.mark.parametrize("message", REFUSED)
def test_what_a_file_cannot_say_is_refused(message, tmp_path):
    compiled = deplo.compile(REFUSED[message], (torch.eye(3),), target="cpu", fallback="eager")
    with pytest.raises(UsageError, match=message):
        compiled.save(tmp_path / "program.deplo")
    assert not list(tmp_path.iterdir())


def test_inputs_that_do_not_fit_are_refused(tmp_path):
    deplo.compile(tree, *PROGRAMS["tree"][1:], target="cpu").save(tmp_path / "tree.deplo")
    loaded = load(tmp_path / "tree.deplo")
    a, b = np.ones(3, np.float32), np.ones(2, np.float32)
    with pytest.raises(UsageError, match=r"inputs\[0\]\[0\] must have the keys 'a', 'b', got the keys 'a'"):
        loaded({"a": a}, scale=a)
    with pytest.raises(UsageError, match=r"inputs\[1\] must have the keys 'scale', got no keys"):
        loaded({"a": a, "b": b})
    with pytest.raises(UsageError, match=r"expected dtype float32, got float64"):
        loaded({"a": a.astype(np.float64), "b": b}, scale=a)
    with pytest.raises(UsageError, match=r"expected a numpy array, got list"):
        loaded({"a": [1, 2, 3], "b": b}, scale=a)
    assert loaded({"a": torch.ones(3), "b": b}, scale=a)["out"][0].tolist() == [1, 1, 1]  # by DLPack


def test_a_changed_input_may_share_no_memory_and_must_be_writable(tmp_path):
    _, args, _ = PROGRAMS["cache"]
    deplo.compile(into_cache, args, target="cpu").save(tmp_path / "cache.deplo")
    loaded = load(tmp_path / "cache.deplo")
    x, cache, place = map(bits, copy.deepcopy(args))
    with pytest.raises(UsageError, match="'cache': the program changes it, and it may share memory"):
        loaded(cache[:, :1], cache, place)
    cache.setflags(write=False)
    with pytest.raises(UsageError, match=r"'cache': the program changes it, and it is read only"):
        loaded(x, cache, place)


ALONE = """
import sys
for name in ("torch", "xdsl", "llvmlite", "sympy", "safetensors"):
    sys.modules[name] = None
import numpy as np
from deplo.runtime import load
program = load(sys.argv[1])
np.save(sys.argv[3], program(np.load(sys.argv[2])))
"""


def test_a_program_runs_where_there_is_numpy_alone(tmp_path):
    model, x = mlp(), r(3, 8)
    compiled = deplo.compile(model, (x,), target="cpu")
    compiled.save(tmp_path / "mlp.deplo")
    np.save(tmp_path / "x.npy", x.numpy())
    paths = [tmp_path / name for name in ("mlp.deplo", "x.npy", "y.npy")]
    subprocess.run([sys.executable, "-c", ALONE, *paths], check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), compiled(x).detach().numpy())


def test_code_for_several_cpus_in_one_file(tmp_path):
    file = tmp_path / "several.deplo"
    command = ["-m", "deplo.tools.deplo", "compile", "-c", "F.softmax(torch.randn(4, 300), -1)"]
    targets = "cpu:x86-64,cpu:x86-64-v3,cpu:sapphirerapids"
    subprocess.run([sys.executable, *command, "--target", targets, "-o", file], check=True)
    x = r(4, 300)
    for target in ("cpu:x86-64", "cpu:x86-64-v3"):
        given = load(file, target=target)(x.numpy())
        np.testing.assert_allclose(given, torch.softmax(x, -1).numpy(), rtol=1e-6)
    with pytest.raises(UsageError, match=r"has no target 'sm_80'; it has cpu:x86-64, cpu:x86-64-v3"):
        load(file, target="sm_80")
    if missing(["amx-tile"]):
        with pytest.raises(MissingEnvironmentError, match=r"sapphirerapids needs a CPU with .*amxtile"):
            load(file, target="cpu:sapphirerapids")


def test_linux_says_of_this_cpu_what_llvm_says():
    assert set(missing(host_features())) <= {"shstk"}, "features that no code can be checked for"


def test_signatures(tmp_path):
    keys = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    key, other = keys.Ed25519PrivateKey.generate(), keys.Ed25519PrivateKey.generate()
    compiled = deplo.compile(mlp(), (r(3, 8),), target="cpu")
    compiled.save(tmp_path / "signed.deplo", private_key=key.private_bytes_raw())
    compiled.save(tmp_path / "unsigned.deplo")
    public, wrong = (each.public_key().public_bytes_raw() for each in (key, other))
    assert load(tmp_path / "signed.deplo", public_key=public).file.signed
    assert not load(tmp_path / "signed.deplo").file.signed
    with pytest.raises(UsageError, match=r"is not signed by the owner of that public key"):
        load(tmp_path / "signed.deplo", public_key=wrong)
    with pytest.raises(UsageError, match=r"is not signed; load it without"):
        load(tmp_path / "unsigned.deplo", public_key=public)
    with pytest.raises(UsageError, match=r"a public key has 32 bytes, not 3"):
        load(tmp_path / "signed.deplo", public_key=b"abc")


def test_safetensors_are_what_the_library_reads():
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "odd": ("float32", np.arange(5, dtype=np.float32)),
        "even": ("int64", np.arange(16).reshape(2, 8)),
        "bits": ("bfloat16", np.arange(4, dtype=np.uint16)),
        "none": ("float64", np.zeros((0, 3))),
        "truth": ("bool", np.array(True)),
    }
    data = written(arrays)
    mine = read(memoryview(data))
    np.testing.assert_equal(mine, {name: array for name, (_, array) in arrays.items()})
    kept = {name: each for name, each in arrays.items() if name != "bits"}  # numpy has no bfloat16
    np.testing.assert_equal(library.load(written(kept)), {n: array for n, (_, array) in kept.items()})


# --------------------------------------------------------------------------- hostile files


def rewritten(whole, change):
    """A sound file of another content: `change` is given the manifest and the members."""
    import hashlib

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


def test_what_is_no_file_of_ours(tmp_path):
    (tmp_path / "empty.deplo").touch()
    with pytest.raises(UsageError, match="it is no whole zip file"):
        load(tmp_path / "empty.deplo")
    with pytest.raises(UsageError, match=r"cannot read .*none.deplo: No such file"):
        load(tmp_path / "none.deplo")
    with pytest.raises(UsageError, match=r"cannot read .*: Is a directory"):
        read_program_file(tmp_path)
    with zipfile.ZipFile(tmp_path / "other.deplo", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(UsageError, match=r"it has no manifest of deplo's"):
        load(tmp_path / "other.deplo")


def test_a_file_cannot_be_written_to_a_place_that_is_none(tmp_path):
    compiled = deplo.compile(lambda x: x + 1, (r(2),), target="cpu")
    with pytest.raises(DeploError, match=r"cannot write .*No such file or directory"):
        compiled.save(Path(tmp_path / "none" / "x.deplo"))


def test_a_file_may_have_the_text_of_each_stage(tmp_path, capsys):
    command = ["compile", "-c", "torch.exp(torch.randn(4))", "--target", "cpu", "--with-ir"]
    assert run([*command, "-o", str(tmp_path / "exp.deplo")]) == 0
    capsys.readouterr()
    assert run(["inspect", str(tmp_path / "exp.deplo"), "--ir", "torch"]) == 0
    assert "torch.exp" in capsys.readouterr().out
    assert run(["inspect", str(tmp_path / "exp.deplo")]) == 0
    assert "its text as torch, tensor, loop, tile, llvm, asm" in capsys.readouterr().out
    assert run(["inspect", str(tmp_path / "exp.deplo"), "--ir", "cuda"]) == 2
    assert "has no cuda for cpu; it has torch, tensor" in capsys.readouterr().err
    assert run([*command, "-o", str(tmp_path / "exp.txt")]) == 2
    assert "--with-ir goes with -o FILE.deplo" in capsys.readouterr().err
