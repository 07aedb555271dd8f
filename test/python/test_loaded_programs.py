"""Loaded programs at their edges: views, memory that is shared, arrays of unusual kinds, complex buffers."""

import copy
import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from test_program_files import check_same
from torch import nn
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import UsageError
from deplo.runtime import load

r = torch.randn


def loaded(program, args, directory):
    """A program and the same from a file."""
    compiled = deplo.compile(program, copy.deepcopy(args), target="cpu")
    compiled.save(directory / "program.deplo")
    return compiled, load(directory / "program.deplo")


def changed_views(x):
    x.mul_(2)
    return x[0, 0, 0], x[1, 1, 1].view(1, 1), x[:1].squeeze(0), x.squeeze(0), *x.unbind(-1)


class Base:
    pass


class Box(Base):
    def __init__(self, values):
        self.values = values


pytree.register_pytree_node(
    Box,
    lambda box: (list(box.values.values()), list(box.values)),
    lambda values, names: Box(dict(zip(names, values, strict=True))),
    serialized_type_name="Box",
)
Renamed = namedtuple("Renamed", "class second", rename=True)  # noqa: PYI024


class ComplexBuffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(2, dtype=torch.complex64))
        self.register_buffer("last", torch.zeros(2, dtype=torch.complex64))
        self.register_buffer("table", torch.randn(2, 2, dtype=torch.complex128))

    def forward(self, x):
        self.total.add_(x * 1j)
        self.last = self.last + x
        return self.total, self.last, self.table, self.table[0], self.table * x


PROGRAMS = {
    "views of a changed input, also of one element": (changed_views, (r(2, 3, 4),)),
    "complex buffers": (ComplexBuffers(), (r(2),)),
    "a named tuple whose fields were renamed": (lambda x: Renamed(x, x * 2), (r(2),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_program_is_the_one_that_was_saved(name, tmp_path):
    program, args = PROGRAMS[name]
    check_same(*loaded(program, args, tmp_path), args, {})


def test_views_share_memory_and_can_be_written(tmp_path):
    _, program = loaded(lambda x: (x[0, 0], x[0, 0].view(1, 1), x.diagonal()), (r(3, 3),), tmp_path)
    x = np.zeros((3, 3), np.float32)
    for number, view in enumerate(program(x)):
        assert isinstance(view, np.ndarray)
        view[...] = number + 1
        assert x[0, 0] == number + 1


def test_arrays_of_unusual_kinds(tmp_path):
    _, program = loaded(lambda x: x * 2, (r(2, 3),), tmp_path)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    odd = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    odd[...] = x
    for same in (x, np.asfortranarray(x), x[::-1][::-1], odd, torch._neg_view(-torch.from_numpy(x))):
        np.testing.assert_array_equal(program(same), x * 2)
    with pytest.raises(UsageError, match="'x': expected dtype float32, got >f4"):
        program(x.astype(">f4"))
    _, program = loaded(lambda x: x.abs(), (torch.randn(2, dtype=torch.complex64),), tmp_path)
    for wrong in (np.zeros(2, np.complex128), np.zeros((2, 2), np.float32), np.zeros(2, ">c8")):
        with pytest.raises(UsageError, match=f"'x': expected dtype complex64, got {wrong.dtype}"):
            program(wrong)


def test_an_array_in_the_place_of_another_value_is_refused(tmp_path):
    _, program = loaded(lambda x, mask: x * 2, (r(2), None), tmp_path)
    with pytest.raises(UsageError, match="compiled for None"):
        program(np.zeros(2, np.float32), np.zeros(2, np.float32))


def test_what_memory_a_changed_input_may_have(tmp_path):
    _, program = loaded(lambda x, y: x.add_(y), (r(3, 4), r(3, 4)), tmp_path)
    both = np.ones((3, 8), np.float32)
    program(both[:, ::2], both[:, 1::2])
    np.testing.assert_array_equal(both, np.tile(np.float32([2, 1]), (3, 4)))
    one, line = np.ones((3, 4), np.float32), np.zeros(12, np.float32)
    for strides in ((0, 4), (4, 4), (-4, 4)):
        array = np.lib.stride_tricks.as_strided(line[4:], (3, 4), strides)
        with pytest.raises(UsageError, match="'x': the program changes it, and some of its elements are the"):
            program(array, one)
    for shared in (one, one[::-1], np.broadcast_to(one[1:2, 1:2], (3, 4))):
        with pytest.raises(UsageError, match="changes it, and it may share memory with 'y'; pass a copy"):
            program(one, shared)
    for wrong in ([1], None):
        with pytest.raises(UsageError, match=f"'x': expected a numpy array, got {type(wrong).__name__}"):
            program(wrong, one)


def test_a_class_of_the_program_is_refused_also_if_it_names_its_parts(tmp_path):
    with pytest.raises(UsageError, match=r"the outputs: a Box; take and return tuples, lists and dicts"):
        loaded(lambda x: Box({"a": x * 2}), (r(2),), tmp_path)


def test_where_a_file_is_written(tmp_path):
    program, _ = loaded(lambda x: x * 2, (r(2),), tmp_path)
    (tmp_path / "link.deplo").symlink_to(tmp_path / "linked.deplo")
    program.save(tmp_path / "link.deplo")
    assert (tmp_path / "link.deplo").is_symlink()
    os.mkfifo(tmp_path / "fifo")
    for wrong in (tmp_path, tmp_path / "fifo", "", tmp_path / ("a" * 300)):
        with pytest.raises(UsageError, match=r"cannot write .*(it is no file|File name too long)"):
            program.save(wrong)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(program.save, [tmp_path / "race.deplo"] * 8))
    load(tmp_path / "race.deplo")
    names = {"program.deplo", "link.deplo", "linked.deplo", "fifo", "race.deplo"}
    assert {path.name for path in tmp_path.iterdir()} == names
