"""Programs as files: loaded and run as the program that was saved, by numpy alone; files that are damaged."""

import copy
import platform
import shutil
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
assert not {"cuda", "deplo.runtime.gpu_runner"} & set(sys.modules), "nothing of GPUs"
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


def test_code_for_arm_is_linked_where_there_is_a_linker_for_it(tmp_path):
    if platform.machine() != "x86_64":
        pytest.skip("this machine is no x86-64")
    foreign = deplo.compile(mlp(), (r(3, 8),), target="cpu:neoverse-v2")
    if not (shutil.which("ld.lld") or shutil.which("aarch64-linux-gnu-ld")):
        with pytest.raises(MissingEnvironmentError, match=r"for aarch64 needs one of the linkers .*lld"):
            foreign.save(tmp_path / "arm.deplo")
        return
    foreign.save(tmp_path / "arm.deplo")
    with zipfile.ZipFile(tmp_path / "arm.deplo") as archive:
        code = archive.read("cpu-neoverse-v2/0/code.so")
    assert (code[:4], int.from_bytes(code[18:20], "little")) == (b"\x7fELF", 183)
    with pytest.raises(MissingEnvironmentError, match="is for aarch64, this machine is x86_64"):
        load(tmp_path / "arm.deplo")


def test_linux_says_of_this_cpu_what_llvm_says():
    # No kernel has an instruction of `shstk` or `prefetchi`; of `avx10.1` Linux names every part.
    unsaid = set(missing(host_features()))
    assert unsaid <= {"shstk", "prefetchi", "avx10.1"}, "features that no code can be checked for"


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
