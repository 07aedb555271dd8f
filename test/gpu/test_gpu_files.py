"""Programs from files on a GPU, against PyTorch: by CUDA's driver alone, and beside PyTorch's own work."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

import numpy as np  # noqa: E402
from torch import nn  # noqa: E402
from torch.export import Dim  # noqa: E402

import deplo  # noqa: E402
from deplo.errors import MissingEnvironmentError  # noqa: E402
from deplo.runtime import LoadedProgram, load  # noqa: E402

MLP = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 10)).eval()


def saved(
    program: Callable[..., Any], args: Any, path: Path, target: str | None = None, **options: Any
) -> LoadedProgram:
    """The program for this GPU, from a file."""
    if target is None:
        target = deplo.compile(torch.neg, (torch.zeros(1, device="cuda"),)).target.name
    deplo.compile(program, args, target=target, **options).save(path)
    return load(path)


def test_numpy(tmp_path: Path) -> None:
    x = torch.randn(33, 64)
    loaded = saved(MLP, (x,), tmp_path / "x.deplo")
    for _ in range(5):
        given = loaded(x.numpy())
        assert isinstance(given, np.ndarray)
        torch.testing.assert_close(torch.from_numpy(given), MLP(x).detach())


def test_tensors_stay_on_the_gpu(tmp_path: Path) -> None:
    loaded = saved(MLP, (torch.randn(33, 64),), tmp_path / "x.deplo")
    for n in range(50):
        x = torch.full((33, 64), float(n), device="cuda") + torch.randn(33, 64, device="cuda")
        y = torch.from_dlpack(loaded(x))
        assert y.device == x.device
        torch.testing.assert_close(y.cpu(), MLP(x.cpu()).detach())


def test_work_of_other_streams_is_waited_for(tmp_path: Path) -> None:
    loaded = saved(lambda x: x * 2, (torch.randn(1 << 20),), tmp_path / "x.deplo")
    stream = torch.cuda.Stream()
    for _ in range(20):
        with torch.cuda.stream(stream):
            x = torch.zeros(1 << 20, device="cuda")
            for _ in range(50):
                x = x + 1
            y = torch.from_dlpack(loaded(x)) + 1
            del x
            other = torch.full((1 << 20,), 7.0, device="cuda")
        stream.synchronize()
        assert torch.equal(y, torch.full_like(y, 101.0))
        assert torch.equal(other, torch.full_like(other, 7.0))


def test_what_changes_on_the_gpu(tmp_path: Path) -> None:
    def into(x: Any, cache: Any, place: Any) -> Any:
        cache.index_copy_(1, place, x)
        return cache.sum(1)

    args = torch.randn(2, 1, 4), torch.zeros(2, 6, 4), torch.tensor([2])
    loaded = saved(into, args, tmp_path / "x.deplo")
    x, cache, place = (each.cuda() for each in args)
    y = loaded(x, cache, place)
    wanted = into(*args)
    torch.testing.assert_close(torch.from_dlpack(y).cpu(), wanted)
    torch.testing.assert_close(cache.cpu(), args[1])


def test_dynamic_sizes_and_bfloat16(tmp_path: Path) -> None:
    model = nn.Linear(64, 48).bfloat16().eval()
    shapes = ({0: Dim("batch", min=1, max=4096)},)
    x = torch.randn(5, 64).bfloat16()
    loaded = saved(model, (x,), tmp_path / "x.deplo", dynamic_shapes=shapes)
    for n in (1, 5, 300, 4096):
        x = torch.randn(n, 64).bfloat16()
        y = torch.from_dlpack(loaded(x.cuda())).cpu()
        assert y.dtype is torch.bfloat16
        torch.testing.assert_close(y, model(x).detach())


def test_sizes_and_loops_by_data(tmp_path: Path) -> None:
    loaded = saved(lambda x: x[x > 0] * 2, (torch.randn(1000),), tmp_path / "x.deplo")
    for x in (torch.randn(1000), -torch.rand(1000), torch.rand(1000) + 1):
        assert torch.equal(torch.from_dlpack(loaded(x.cuda())).cpu(), x[x > 0] * 2)


def test_ptx_runs_on_later_gpus(tmp_path: Path) -> None:
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("this GPU runs machine code for sm_80")
    x = torch.randn(33, 64)
    try:
        loaded = saved(MLP, (x,), tmp_path / "x.deplo", target="sm_80")
    except MissingEnvironmentError as error:
        pytest.skip(str(error))  # a driver that is older than NVRTC
    torch.testing.assert_close(torch.from_numpy(loaded(x.numpy())), MLP(x).detach())


ALONE = """
import sys
for name in ("torch", "xdsl", "llvmlite", "sympy"):
    sys.modules[name] = None
import numpy as np
from deplo.runtime import load
program = load(sys.argv[1])
x = np.arange(12, dtype=np.float32).reshape(3, 4)
assert np.array_equal(program(x, np.array([2, 0])), x[[2, 0]])
try:
    program(x, np.array([2, 3]))
except IndexError as error:
    print(error)
"""


def test_without_pytorch_and_a_check_that_fails(tmp_path: Path) -> None:
    args = torch.randn(3, 4), torch.tensor([0, 1])
    saved(lambda x, i: x[i], args, tmp_path / "x.deplo")
    command = [sys.executable, "-c", ALONE, str(tmp_path / "x.deplo")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "index out of range: expected 0 <= index < 3 (CUDA_ERROR_" in done.stdout
