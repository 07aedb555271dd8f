"""Programs from files whose sizes, loops and choices their data decide: without PyTorch, also on a GPU."""

import json
import subprocess
import sys

import gpu_programs
import numpy as np
import pytest
import torch
from stand_in_driver import gpu  # noqa: F401
from test_part_calls import PROGRAMS as PARTS
from test_part_calls import inputs_of, lookup, newton
from test_program_files import bits, check_same
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import CheckError, DeploError, OutOfRangeError, UsageError
from deplo.runtime import load
from deplo.runtime.plan import Plan

r = torch.randn
Dim = torch.export.Dim


def counted(x):
    positive = x[x > 0]
    return positive * 2, positive.shape[0], positive.unsqueeze(0)


def of_two(x, y):
    return x[x > 0] * 2, y.nonzero()


FOUND = {
    "a mask": (lambda x: x[x > 0] * 2, [r(9), -r(9).abs(), r(9).abs()]),
    "nonzero": (lambda x: x.nonzero(), [(r(3, 4) > 0).long(), torch.zeros(3, 4).long()]),
    "sizes are returned": (counted, [r(9), -r(9).abs()]),
    "unique": (lambda x: x.unique(return_counts=True), [torch.tensor([3, 1, 3, 2]), torch.ones(4).long()]),
    "repeats": (
        lambda n: torch.arange(3).repeat_interleave(n, output_size=None),
        [torch.tensor([2, 0, 1]), torch.zeros(3).long()],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_sizes_found_in_data(name, tmp_path):
    program, inputs = FOUND[name]
    compiled = deplo.compile(program, inputs[:1], target="cpu")
    compiled.save(tmp_path / "x.deplo")
    loaded = load(tmp_path / "x.deplo")
    for x in inputs:
        check_same(compiled, loaded, (x,), {})


def test_several_sizes_any_of_which_is_0(tmp_path):
    compiled = deplo.compile(of_two, (r(5), r(5)), target="cpu")
    compiled.save(tmp_path / "x.deplo")
    loaded = load(tmp_path / "x.deplo")
    none, some = torch.zeros(5), torch.tensor([1.0, 0.0, 2.0, 0.0, 3.0])
    for args in ((some, some), (none, some), (some, none), (none, none), (some, some)):
        check_same(compiled, loaded, args, {})


def test_a_size_found_beside_one_that_changes(tmp_path):
    shapes = ({0: Dim("rows", min=1, max=300)},)
    compiled = deplo.compile(lambda x: x[x > 0] * 2, (r(5),), target="cpu", dynamic_shapes=shapes)
    for n in (1, 200):
        compiled(r(n).abs())
    compiled.save(tmp_path / "x.deplo")
    loaded = load(tmp_path / "x.deplo")
    for n in (5, 1, 200):
        check_same(compiled, loaded, (r(n),), {})
        check_same(compiled, loaded, (-r(n).abs(),), {})


@pytest.mark.parametrize("function", PARTS, ids=lambda f: f.__name__)
@pytest.mark.sample(3)
def test_loops_and_choices(function, tmp_path):
    inputs = inputs_of(function)
    compiled = deplo.compile(function, inputs[:1], target="cpu")
    compiled.save(tmp_path / "x.deplo")
    loaded = load(tmp_path / "x.deplo")
    for x in inputs:
        check_same(compiled, loaded, (x,), {})


def test_what_a_branch_checks(tmp_path):
    deplo.compile(lookup, (r(3),), target="cpu").save(tmp_path / "x.deplo")
    with pytest.raises(OutOfRangeError, match="index out of range"):
        load(tmp_path / "x.deplo")(np.array([7, 7, 7], np.float32))


def test_two_sizes_that_must_be_equal(tmp_path):
    compiled = deplo.compile(lambda x, y: x[x > 0] * y[y > 0], (torch.ones(3), torch.ones(3)), target="cpu")
    compiled.save(tmp_path / "x.deplo")
    loaded = load(tmp_path / "x.deplo")
    ones = np.ones(3, np.float32)
    assert loaded(ones, ones).tolist() == [1, 1, 1]
    with pytest.raises(CheckError, match="two sizes that the program needs to be equal are 3 and 2"):
        loaded(ones, np.array([1, 1, 0], np.float32))


@pytest.mark.parametrize(
    ("name", "value"),
    [("predicate", 5), ("shared", {"argument": 0}), ("if_true", 3), ("if_false", "other"), ("more", 1)],
)
def test_a_call_that_is_none_is_no_plan(name, value):
    data = json.loads(json.dumps(deplo.compile(lookup, (r(3),), target="cpu").code.data))
    (call,) = [step for step in data["steps"] if "call" in step]
    call["arguments"][name] = value
    with pytest.raises(DeploError, match="not a valid plan: "):
        Plan.from_data(data)
    del call["arguments"]["predicate"]
    with pytest.raises(DeploError, match="not a valid plan: "):
        Plan.from_data(data)


ALONE = """
import sys
for name in ("torch", "xdsl", "llvmlite", "sympy", "safetensors"):
    sys.modules[name] = None
import numpy as np
from deplo.runtime import load
given = np.load(sys.argv[1])
found = {}
for name in {each.rpartition(":")[0] for each in given}:
    program = load(f"{sys.argv[2]}/{name}.deplo")
    for number in (0, 1):
        found[f"{name}:{number}"] = program(given[f"{name}:{number}"])
np.savez(sys.argv[3], **{name: y[0] if isinstance(y, tuple) else y for name, y in found.items()})
"""


def test_where_there_is_numpy_alone(tmp_path):
    programs = {each.__name__: (each, inputs_of(each)) for each in (newton, lookup)}
    programs |= {"mask": FOUND["a mask"], "nonzero": FOUND["nonzero"]}
    given, wanted = {}, {}
    for name, (program, inputs) in programs.items():
        compiled = deplo.compile(program, inputs[:1], target="cpu")
        compiled.save(tmp_path / f"{name}.deplo")
        for number, x in enumerate(inputs[:2]):
            given[f"{name}:{number}"] = bits(x)
            wanted[f"{name}:{number}"] = bits(pytree.tree_leaves(compiled(x))[0])
    np.savez(tmp_path / "x.npz", **given)
    paths = [tmp_path / "x.npz", tmp_path, tmp_path / "y.npz"]
    subprocess.run([sys.executable, "-c", ALONE, *paths], check=True)
    np.testing.assert_equal(dict(np.load(tmp_path / "y.npz")), wanted)


def test_a_c_library_has_none_of_it(tmp_path):
    for program in (FOUND["a mask"][0], newton):
        compiled = deplo.compile(program, (r(3),), target="cpu")
        with pytest.raises(UsageError, match="a C library finds no sizes in data, and has no loops"):
            compiled.save_c_library(tmp_path / "x", "f")


@pytest.mark.parametrize("name", ["a mask", "nonzero", "sizes are returned"])
def test_sizes_found_on_a_gpu(name, gpu, tmp_path):  # noqa: F811
    program, inputs = FOUND[name]
    ours, loaded = gpu_programs.saved(program, inputs[:1], None, gpu, tmp_path / "x.deplo")
    for x in inputs:
        gpu_programs.check_same(ours, loaded, (x,), {}, calls=2)


@pytest.mark.parametrize("function", [newton, lookup], ids=lambda f: f.__name__)
def test_loops_and_choices_on_a_gpu(function, gpu, tmp_path):  # noqa: F811
    inputs = inputs_of(function)
    ours, loaded = gpu_programs.saved(function, inputs[:1], None, gpu, tmp_path / "x.deplo")
    for x in inputs:
        gpu_programs.check_same(ours, loaded, (x,), {}, calls=2)
