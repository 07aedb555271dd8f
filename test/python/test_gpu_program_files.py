"""Programs for GPUs from files, on a driver that stands in for NVIDIA's; the interpreter runs the kernels."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from gpu_programs import check_same, saved
from stand_in_driver import build, gpu  # noqa: F401
from test_hostile_program_files import rewritten
from test_program_files import Counter, Tied, bits, into_cache, sized, tree, views
from torch import nn

import deplo
from deplo.errors import DeploError, MissingEnvironmentError, OutOfRangeError, UsageError
from deplo.runtime import load
from deplo.tools.deplo import run

pytestmark = pytest.mark.usefixtures("gpu")
r = torch.randn
Dim = torch.export.Dim


def mlp():
    return nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4)).eval()


PROGRAMS = {
    "mlp": (mlp(), (r(8, 16),), {}),
    "views": (views, (r(4, 6),), {}),
    "tree": (tree, ({"a": r(3), "b": r(2)},), {"scale": r(3)}),
    "complex result": (lambda x: torch.view_as_complex(x) * 2j, (r(4, 2),), {}),
    "complex input": (lambda x: (x * x).abs(), (torch.randn(5, dtype=torch.complex64),), {}),
    "buffers": (Counter(), (r(3),), {}),
    "cache": (into_cache, (r(2, 1, 4), torch.zeros(2, 6, 4), torch.tensor([2])), {}),
    "tied": (Tied(), (torch.arange(6),), {}),
    "loop over time": (nn.LSTM(4, 6), (r(5, 2, 4),), {}),
    "integers": (lambda x: (x // 3, x > 2, x.sum()), (torch.arange(9),), {}),
    "no elements": (lambda x: x * 2, (torch.zeros(0, 4),), {}),
    "no inputs": (lambda: torch.arange(5) * 2, (), {}),
    "in place": (lambda x: x.add_(1), (r(4),), {}),
    "twice the same": (lambda x: (x, x), (r(4),), {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_program_is_the_one_that_was_saved(name, gpu, tmp_path):  # noqa: F811
    program, args, kwargs = PROGRAMS[name]
    check_same(*saved(program, args, kwargs, gpu, tmp_path / "x.deplo"), args, kwargs)
    assert gpu.state["contexts"] == 0


def test_what_has_tensor_maps(gpu, tmp_path):  # noqa: F811
    args = (r(256, 32), r(32, 256))
    ours, loaded = saved(lambda x, y: x @ y, args, None, gpu, tmp_path / "x.deplo")
    assert loaded.plan.tensor_maps
    check_same(ours, loaded, args, {}, calls=2)


def test_dynamic_sizes(gpu, tmp_path):  # noqa: F811
    shapes = ({0: Dim("batch", min=1, max=512)}, None)
    calls = [(r(n, 8), r(8, 5)) for n in (3, 1, 200)]
    ours = deplo.compile(sized, calls[0], target="cpu", dynamic_shapes=shapes)
    compiled = deplo.compile(sized, calls[0], target="sm_90a", dynamic_shapes=shapes)
    for hints in ((1,), (512,)):
        compiled.code._suit(hints)  # as the first call does that is in such a bucket
    compiled.save(tmp_path / "x.deplo")
    gpu.learn(compiled)
    loaded = load(tmp_path / "x.deplo")
    assert len(loaded._variants) == 3
    for args in calls:
        check_same(ours, loaded, args, {})
    with pytest.raises(UsageError, match=r"'batch' must be from 1 to 512, got 513"):
        loaded(np.zeros((513, 8), np.float32), bits(calls[0][1]))


# --------------------------------------------------------------------------- what goes wrong


def test_a_check_that_fails_is_an_error_of_its_call(gpu, tmp_path):  # noqa: F811
    args = (r(5, 4), torch.tensor([0, 2]))
    _, loaded = saved(lambda x, i: x[i], args, None, gpu, tmp_path / "x.deplo")
    wrong = np.array([0, 5])
    message = r"index out of range: expected 0 <= index < 5 \(CUDA_ERROR_LAUNCH_FAILED\); the GPU takes no"
    with pytest.raises(OutOfRangeError, match=message):
        loaded(bits(args[0]), wrong)
    with pytest.raises(DeploError, match="CUDA_ERROR_LAUNCH_FAILED"):
        loaded(bits(args[0]), wrong)
    gpu.be()


def choices(path):
    """Why a file's program does not run, or what it runs by."""
    try:
        program = load(path)
        return program.target, getattr(program._runner, "_kind", "cpu")
    except MissingEnvironmentError as error:
        return str(error).partition("on this machine: ")[2]


def test_which_code_runs_where(gpu, tmp_path):  # noqa: F811
    file = tmp_path / "x.deplo"
    command = ["compile", "-c", "torch.exp(torch.randn(64))", "--target", "sm_90a,sm_80", "-o", str(file)]
    assert run(command) == 0
    for capability, wanted in {
        (8, 0): ("sm_80", "cubin"),
        (8, 9): ("sm_80", "cubin"),
        (9, 0): ("sm_90a", "cubin"),
        (10, 0): ("sm_80", "ptx"),
        (12, 1): ("sm_80", "ptx"),
    }.items():
        gpu.be(capability)
        assert choices(file) == wanted, capability
        assert gpu.state["texts" if wanted[1] == "ptx" else "cubins"] == 1
    gpu.be((7, 5))
    not_here = "does not run on GPU 0, which is sm_75"
    assert choices(file) == f"sm_90a {not_here}; sm_80 {not_here}"
    gpu.be((9, 0), cuda=12040)
    old = "needs a driver for CUDA 13.0 or later, this one is for 12.4"
    assert choices(file).startswith(f"sm_90a {old}; sm_80 needs a driver for CUDA 13."), "PTX is newer"
    gpu.be((10, 0), cuda=13000)
    assert "sm_80 needs a driver for CUDA 13." in choices(file), "PTX is compiled by the driver"
    gpu.be(devices=0)
    assert "sm_90a needs a GPU: NVIDIA's driver finds none (CUDA_ERROR_NO_DEVICE)" in choices(file)
    gpu.be()
    with pytest.raises(MissingEnvironmentError, match="a GPU: finding GPU 3 failed: CUDA_ERROR_INVALID_D"):
        load(file, device=3)
    with pytest.raises(UsageError, match="has no target 'cpu'; it has sm_90a, sm_80"):
        load(file, target="cpu")


def test_the_first_target_that_runs_is_taken(gpu, tmp_path):  # noqa: F811
    file = tmp_path / "x.deplo"
    command = ["compile", "-c", "torch.exp(torch.randn(64))", "--target", "sm_90a,cpu", "-o", str(file)]
    assert run(command) == 0
    assert load(file).target == "sm_90a"
    assert load(file, target="cpu").target == "cpu"
    gpu.be(devices=0)
    assert load(file)(np.zeros(64, np.float32)).tolist() == [1] * 64


def test_a_gpu_with_too_little_shared_memory_is_told(gpu, tmp_path):  # noqa: F811
    deplo.compile(lambda x: x * 2, (r(4),), target="sm_80").save(whole := tmp_path / "x.deplo")
    said = rewritten(whole, lambda manifest, _: manifest["targets"][0].update(shared_bytes=166912))
    (tmp_path / "y.deplo").write_bytes(said)
    gpu.be((8, 6), shared_bytes=101376)
    assert load(whole).target == "sm_80"
    assert choices(tmp_path / "y.deplo") == (
        "sm_80 needs 166912 bytes of shared memory for a block, GPU 0 has 101376"
    )


def test_inspect_says_what_there_is(gpu, tmp_path, capsys):  # noqa: F811
    file = str(tmp_path / "x.deplo")
    assert run(["compile", "-c", "torch.exp(torch.randn(64))", "--target", "sm_80,sm_90a", "-o", file]) == 0
    capsys.readouterr()
    assert run(["inspect", file]) == 0
    told = capsys.readouterr().out
    assert "target sm_80 (GPUs of compute capability 8.x, and later ones by PTX): runs here" in told
    assert "target sm_90a (GPUs of compute capability 9.0): runs here" in told
    assert " registers" in told
    assert run(["inspect", file, "--json"]) == 0
    (variant,) = json.loads(capsys.readouterr().out)["targets"][1]["variants"]
    (usage,) = variant["usage"].values()
    assert usage["registers"] > 0
    assert usage["spill_stores"] == 0


def lies(whole):
    """Files with right digests and wrong content."""

    def kernel(manifest):
        (said,) = manifest["targets"][0]["variants"][0]["code"].values()
        return said

    def of(change):
        return rewritten(whole, change)

    for key in ("name", "kind", "toolkit", "shared_bytes", "variants"):
        yield of(lambda m, _, key=key: m["targets"][0].pop(key))
        yield of(lambda m, _, key=key: m["targets"][0].update({key: {}}))
    yield of(lambda m, _: m["targets"][0].update(name="sm_9000"))
    yield of(lambda m, _: m["targets"][0].update(kind="cpu"))
    for key in ("symbol", "usage", "cubin"):
        yield of(lambda m, _, key=key: kernel(m).pop(key))
        yield of(lambda m, _, key=key: kernel(m).update({key: []}))
    yield of(lambda m, _: kernel(m).update(cubin="../x"))
    yield of(lambda m, _: kernel(m).update(usage={"registers": 1}))
    yield of(lambda m, _: m["targets"][0]["variants"][0].update(code={}))
    yield of(lambda m, _: m["targets"][0]["variants"][0].update(code="x"))
    yield of(lambda m, members: members.update({"sm-90a/kernels/0.cubin": b"none" * 99}))

    def change(plan):
        def changed(manifest, members):
            name = manifest["targets"][0]["variants"][0]["plan"]
            members[name] = json.dumps(json.loads(members[name]) | plan).encode()

        return changed

    yield of(change({"target": "sm_80"}))
    yield of(change({"target": "cpu"}))
    yield of(change({"kernels": []}))
    yield of(change({"tensor_maps": [{"of": {"argument": 0}, "box": [1, 2, 3], "swizzle": 0}]}))


def refusal(file):
    """Why a file is not loaded."""
    try:
        load(file)
    except DeploError as error:
        return str(error)
    return ""


def test_hostile_files(gpu, tmp_path):  # noqa: F811
    deplo.compile(lambda x: x * 2, (r(4),), target="sm_90a").save(whole := tmp_path / "x.deplo")
    assert load(whole).target == "sm_90a"
    for number, content in enumerate(lies(whole)):
        (file := tmp_path / f"{number}.deplo").write_bytes(content)
        said = refusal(file)
        assert said, f"file {number} is loaded"
        assert "\n" not in said, number


ALONE = """
import ctypes, sys
for name in ("torch", "xdsl", "llvmlite", "sympy", "safetensors"):
    sys.modules[name] = None
import numpy as np
driver = ctypes.CDLL(sys.argv[3])

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64, ctypes.c_char_p, *[ctypes.c_uint] * 3, ctypes.c_void_p)
def doubled(code, kernel, blocks, threads, shared, parameters):
    places = (ctypes.c_void_p * 2).from_address(parameters)
    x, y = ((ctypes.c_float * 64).from_address(ctypes.c_void_p.from_address(p).value) for p in places)
    for i in range(64):
        y[i] = 2 * x[i]
    return 0

driver.stand_in(1, 9, 0, 13000, 200000, doubled)
from deplo.runtime import load
program = load(sys.argv[1])
for _ in range(3):
    y = program(np.arange(64, dtype=np.float32))
    assert y.tolist() == list(range(0, 128, 2)), y
np.save(sys.argv[2], y)
"""


def test_a_program_runs_where_there_is_no_torch(tmp_path):
    deplo.compile(lambda x: x * 2, (r(64),), target="sm_90a").save(tmp_path / "x.deplo")
    paths = [tmp_path / "x.deplo", tmp_path / "y.npy", build(tmp_path)]
    subprocess.run([sys.executable, "-c", ALONE, *paths], check=True)
    assert np.load(tmp_path / "y.npy")[1] == 2
