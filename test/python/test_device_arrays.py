"""Arrays on a GPU without PyTorch: taken and given by DLPack, here of memory of the host that stands in."""

import gc

import numpy as np
import pytest
import torch
from gpu_programs import compare, saved
from stand_in_driver import gpu  # noqa: F401
from test_program_files import bits, into_cache, views
from torch import nn
from torch.utils import _pytree as pytree

from deplo.errors import UsageError
from deplo.runtime import dlpack, load
from deplo.runtime.device_arrays import DeviceArray

r = torch.randn


def mlp():
    return nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 4)).eval()


class OnGpu:
    """An array of another library on the GPU: memory of the host, which stands in for that."""

    def __init__(self, array, device=0):
        self.array, self.device, self.streams = array, device, []

    def __dlpack_device__(self):
        return dlpack.CUDA, self.device

    def __dlpack__(self, *, stream):
        self.streams.append(stream)
        array = self.array
        strides = [stride // array.itemsize for stride in array.strides]
        place = array.__array_interface__["data"][0]
        return dlpack.give(array, place, str(array.dtype), array.shape, strides, (dlpack.CUDA, 0))


def aligned(array):
    """The same at an address that vectors may be read from."""
    room = np.zeros(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    made = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def seen(array):
    """What a device array holds, as a library that takes it sees it."""
    taken = dlpack.Taken(array.__dlpack__(stream=dlpack.LEGACY_STREAM))
    assert array.__dlpack_device__() == (2, 0) == taken.device
    item = np.dtype("uint16" if taken.dtype == "bfloat16" else taken.dtype)
    strides = [n * item.itemsize for n in taken.strides]
    reach = sum((n - 1) * stride for n, stride in zip(taken.shape, strides, strict=True))
    memory = (dlpack.ctypes.c_char * (reach + item.itemsize)).from_address(taken.address)
    return np.ndarray(taken.shape, item, memory, 0, strides).copy()


class OnCpu:
    """A view of a numpy array, given by deplo's own capsules."""

    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        array = self.array
        strides = [stride // array.itemsize for stride in array.strides]
        return dlpack.give(array, array.ctypes.data, str(array.dtype), array.shape, strides, (1, 0))


@pytest.mark.parametrize("library", [np.from_dlpack, torch.from_dlpack])
@pytest.mark.parametrize("dtype", [name for name in dlpack.CODES if name != "bfloat16"])
def test_others_read_what_is_given(library, dtype):
    x = np.arange(24).reshape(4, 6).astype(dtype)
    for view in (x, x.T, x[1:, ::2], x[:0], x[2, 3:4]):
        read = library(OnCpu(view))
        np.testing.assert_array_equal(np.asarray(read), view)
        assert np.asarray(read).dtype == view.dtype
        assert len(dlpack._given) == 1
        del read
        assert not dlpack._given
    OnCpu(x).__dlpack__()
    assert not dlpack._given, "a capsule that nobody took"


def test_what_others_give_is_read():
    x = torch.arange(24.0).reshape(4, 6)
    for view in (x, x.t(), x[1:, ::2], x.bfloat16(), x > 3, x[0, 0]):
        taken = dlpack.Taken(view.__dlpack__())
        assert (taken.device, taken.address, taken.shape) == ((1, 0), view.data_ptr(), tuple(view.shape))
        assert (taken.strides or (), taken.dtype) == (view.stride(), str(view.dtype).removeprefix("torch."))
    with pytest.raises(ValueError, match="incorrect name"):
        dlpack.Taken(x.__dlpack__(max_version=(1, 0)))


def test_arrays_on_the_gpu_are_taken_and_given_there(gpu, tmp_path):  # noqa: F811
    x = aligned(r(8, 16).numpy())
    ours, loaded = saved(mlp(), (torch.from_numpy(x),), None, gpu, tmp_path / "x.deplo")
    loaded(x)
    before = gpu.state
    given = OnGpu(x)
    y = loaded(given)
    assert isinstance(y, DeviceArray)
    assert (y.shape, y.dtype, given.streams) == ((8, 4), "float32", [1])
    wanted = bits(ours(torch.from_numpy(x)))
    compare([seen(y), np.asarray(y), np.asarray(y, np.float64)], [wanted, wanted, wanted.astype(float)])
    assert gpu.state["uploaded"] == before["uploaded"], "neither the input nor a parameter came from the host"
    view = pytest.importorskip("cuda.core.utils").StridedMemoryView.from_dlpack(y, stream_ptr=-1)
    assert (view.shape, view.device_id, view.ptr) == ((8, 4), 0, y.address)
    assert len(dlpack._given) == 1  # the input is released
    del view
    kept = y.__dlpack__(stream=7)
    del y, given
    for _ in range(5):
        loaded(OnGpu(x))
    assert gpu.state["bytes"] <= before["bytes"] + 8 * 4 * 4
    del kept
    gc.collect()
    loaded(x)
    assert gpu.state["bytes"] <= before["bytes"]
    assert not dlpack._given


def test_results_go_into_the_next_call(gpu, tmp_path):  # noqa: F811
    _, loaded = saved(lambda x: x * 2, (r(4),), None, gpu, tmp_path / "x.deplo")
    y = loaded(OnGpu(aligned(np.ones(4, np.float32))))
    for _ in range(3):
        y = loaded(y)
    assert np.asarray(y).tolist() == [16] * 4
    for asked in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="is given where it is"):
            y.__dlpack__(**asked)
    with pytest.raises(ValueError, match="is copied to become numpy's"):
        np.asarray(y, copy=False)


def test_views_on_the_gpu_are_of_the_same_memory(gpu, tmp_path):  # noqa: F811
    x = aligned(r(4, 6).numpy())
    ours, loaded = saved(views, (torch.from_numpy(x),), None, gpu, tmp_path / "x.deplo")
    given, wanted = loaded(OnGpu(x)), pytree.tree_map(bits, ours(torch.from_numpy(x)))
    for one, other in zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True):
        compare([seen(one), np.asarray(one)], [np.ascontiguousarray(other)] * 2)
    assert given[0].address == x.ctypes.data
    assert given[3].address == given[2].address


def test_what_changes_on_the_gpu_changes_there(gpu, tmp_path):  # noqa: F811
    args = (r(2, 1, 4), torch.zeros(2, 6, 4), torch.tensor([2]))
    ours, loaded = saved(into_cache, args, None, gpu, tmp_path / "x.deplo")
    cache = aligned(bits(args[1]))
    for _ in range(3):
        y = loaded(bits(args[0]), OnGpu(cache), bits(args[2]))
        compare([np.asarray(y), cache], [bits(ours(*args)), bits(args[1])])
    with pytest.raises(UsageError, match=r"'cache': .* must lie there row by row; pass a copy"):
        loaded(bits(args[0]), OnGpu(np.zeros((2, 4, 6), np.float32).transpose(0, 2, 1)), bits(args[2]))
    with pytest.raises(UsageError, match=r"'cache': expected dtype float32, got float64"):
        loaded(bits(args[0]), OnGpu(aligned(np.zeros((2, 6, 4)))), bits(args[2]))
    with pytest.raises(UsageError, match=r"'cache': the program changes it, and it may share memory"):
        loaded(OnGpu(cache[:, :1]), OnGpu(cache), bits(args[2]))


def test_an_array_where_vectors_cannot_be_read_is_copied(gpu, tmp_path):  # noqa: F811
    _, loaded = saved(lambda x: x.add_(1), (r(6),), None, gpu, tmp_path / "x.deplo")
    whole = aligned(np.zeros(7, np.float32))
    loaded(OnGpu(whole[1:]))
    assert whole.tolist() == [0, *[1] * 6]


def test_complex_numbers_on_the_gpu(gpu, tmp_path):  # noqa: F811
    x = torch.randn(6, dtype=torch.complex64)
    ours, loaded = saved(lambda x: x * 2j, (x,), None, gpu, tmp_path / "x.deplo")
    y = loaded(OnGpu(aligned(x.numpy())))
    assert y.dtype == "complex64"
    compare([seen(y), np.asarray(y)], [ours(x).numpy()] * 2)


def test_parameters_that_are_returned_have_their_dtype(gpu, tmp_path):  # noqa: F811
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.narrow, self.table = nn.Parameter(r(2, 3).bfloat16()), nn.Parameter(r(2, 3))

        def forward(self, x):
            return self.narrow.t(), self.table[1], x

    module = Own()
    _, loaded = saved(module, (r(4),), None, gpu, tmp_path / "x.deplo")
    wanted = [bits(module.narrow.t()), bits(module.table[1])]
    half, row, _ = loaded(OnGpu(aligned(np.ones(4, np.float32))))
    assert (half.dtype, row.dtype) == ("bfloat16", "float32")
    compare([seen(half), seen(row)], wanted)
    x = np.ones(4, np.float32)
    *given, same = loaded(x)
    assert same is x
    compare(given, wanted)


def test_what_cannot_be_read_is_refused(gpu, tmp_path):  # noqa: F811
    gpu.be(devices=2)
    _, loaded = saved(lambda x: x * 2, (r(4),), None, gpu, tmp_path / "x.deplo")
    other = load(tmp_path / "x.deplo", device=1)
    y = loaded(OnGpu(aligned(np.ones(4, np.float32))))
    with pytest.raises(UsageError, match=r"'x': expected an array on GPU 1, got one on GPU 0"):
        other(y)
    with pytest.raises(UsageError, match=r"'x': a OnGpu that cannot be read on GPU 1 \(it is on device"):
        other(OnGpu(np.ones(4, np.float32)))
    with pytest.raises(UsageError, match="'x': expected a numpy array, got list"):
        loaded([1, 2, 3, 4])
