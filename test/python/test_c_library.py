"""Programs as C libraries: what C's function computes has the bits of the program; errors are codes."""

import copy
import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import torch
from test_program_files import DYNAMIC, Counter, bits, into_cache, mlp
from torch import nn
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import MissingEnvironmentError, UsageError

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")
r = torch.randn


def pick(x, i):
    return x[i]


PROGRAMS = {
    "mlp": (mlp(), (r(3, 8),)),
    "many blocks": (lambda x: (x.softmax(-1), x.sum()), (r(512, 300),)),
    "loop over time": (nn.LSTM(4, 6, 2), (r(7, 2, 4),)),
    "in place": (into_cache, (r(2, 1, 4), torch.zeros(2, 6, 4), torch.tensor([2]))),
    "halves": (lambda x: (x * 2, x > 0), (r(33).bfloat16(),)),
    "transposed result": (lambda x: (x * 2).t(), (r(4, 5),)),
    "C's own words": (lambda int, code: int + code, (r(3), r(3))),
    "no inputs": (lambda: torch.arange(5) * 2, ()),
    "an index": (pick, (r(5, 3), torch.tensor([4, 0]))),
}


class Library:
    """The function of a library, on numpy arrays."""

    def __init__(self, program, directory, name):
        program.save_c_library(directory, name)
        library = ctypes.CDLL(str(directory / f"lib{name}.so"))
        self.function, self.plan = getattr(library, name), program.plan
        self.message = getattr(library, f"{name}_message")
        self.message.restype = ctypes.c_char_p

    def __call__(self, arrays, results, sizes=()):
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (*arrays, *results)]
        code = self.function(*pointers, *map(ctypes.c_int64, sizes))
        return self.message(code).decode()


def wanted_of(program, args):
    """The results of a program as arrays, row by row as its plan makes them."""
    values = pytree.tree_leaves(pytree.tree_map(bits, program(*args)))
    return [each if each.flags.c_contiguous else each.T for each in values]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_library_computes_what_the_program_does(name, tmp_path):
    model, args = PROGRAMS[name]
    program = deplo.compile(model, args, target="cpu")
    library = Library(program, tmp_path, "program")
    theirs = [np.array(bits(each)) for each in copy.deepcopy(args)]
    ours = copy.deepcopy(args)
    wanted = wanted_of(program, ours)
    results = [np.empty_like(each) for each in wanted]
    assert library(theirs, results) == ""
    np.testing.assert_equal(results, wanted)
    np.testing.assert_equal(theirs, [bits(each) for each in ours])


def test_dynamic_sizes_are_parameters(tmp_path):
    model, shapes, calls = DYNAMIC["mlp"]
    program = deplo.compile(model, calls[0], target="cpu", dynamic_shapes=shapes)
    library = Library(program, tmp_path, "mlp")
    for (x,) in calls[:3]:
        (wanted,) = wanted_of(program, (x,))
        result = np.empty_like(wanted)
        assert library([bits(x)], [result], [len(x)]) == ""
        np.testing.assert_allclose(result, wanted, 1e-5, 1e-6)  # the program has code for each bucket
    for size in (0, -1, 5001):
        assert library([bits(x)], [result], [size]) == "a size that the program was not compiled for"


def test_a_check_that_fails_is_a_code_with_its_message(tmp_path):
    model, args = PROGRAMS["an index"]
    library = Library(deplo.compile(model, args, target="cpu"), tmp_path, "pick")
    x, result = bits(args[0]), np.empty((2, 3), np.float32)
    assert "index" in library([x, np.array([5, 0])], [result])
    assert library([x, np.array([4, 0])], [result]) == ""
    assert library.message(99) == b"no code of this library"


def test_the_example_compiles_without_a_warning_and_runs(tmp_path):
    deplo.compile(mlp(), (r(3, 8),), target="cpu").save_c_library(tmp_path, "mlp")
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "example.c", "-L.", "-lmlp", "-Wl,-rpath,."]
    subprocess.run([*command, "-o", "example"], cwd=tmp_path, check=True)
    done = subprocess.run(["./example"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("result_0 begins with ")


NAMES = "linux virtual int64_t bytes memory free printf result_0 argument_0 size_0 prog floor_div".split()


@pytest.mark.parametrize("name", NAMES)
def test_an_input_may_have_any_name(name, tmp_path):
    exec(f"def function({name}, y): return {name} * 2 + y", made := {})
    function, shapes = made["function"], ({0: torch.export.Dim("int", min=2, max=9)},) * 2
    program = deplo.compile(function, (r(3), r(3)), target="cpu", dynamic_shapes=shapes)
    program.save_c_library(tmp_path, "prog")
    command = ["cc", "-Wall", "-Wextra", "-Werror", "example.c", "-L.", "-lprog", "-Wl,-rpath,."]
    subprocess.run([*command, "-o", "example"], cwd=tmp_path, check=True)
    subprocess.run(["./example"], cwd=tmp_path, check=True)


@pytest.mark.parametrize("name", ["int", "class", "main", "free", "sin", "deplo_run", "k_mul_pointwise"])
def test_a_function_has_no_name_that_is_taken(name, tmp_path):
    program = deplo.compile(lambda x: x * 2, (r(3),), target="cpu")
    with pytest.raises(UsageError, match=f"'{name}' names something else in C already"):
        program.save_c_library(tmp_path, name)


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(r(3))

    def forward(self, x):
        return x * 2, self.weight, self.weight[1:]


def test_outputs_that_are_no_results(tmp_path):
    with pytest.raises(UsageError, match=r"output 1 is a parameter.*\n  output 2 is a parameter"):
        deplo.compile(Parameters(), (r(3),), target="cpu").save_c_library(tmp_path, "prog")
    program = deplo.compile(lambda x: ((y := x * 2), y.t(), x, x[0]), (r(3, 4),), target="cpu")
    program.save_c_library(tmp_path, "prog")
    header = (tmp_path / "prog.h").read_text()
    assert "result_0: f32[3, 4], output 0 of the program, of which output 1 is a view\n" in header
    assert "output 2 is x\n   output 3 is a view of x\n" in header


def test_what_c_cannot_say_is_refused(tmp_path):
    with pytest.raises(UsageError, match="has no buffers that change; pass them as inputs"):
        deplo.compile(Counter(), (r(3),), target="cpu").save_c_library(tmp_path, "counter")
    program = deplo.compile(lambda x: x + 1, (r(3),), target="cpu")
    with pytest.raises(UsageError, match="'My Name' names no C function"):
        program.save_c_library(tmp_path, "My Name")
    foreign = deplo.compile(lambda x: x + 1, (r(3),), target="cpu:neoverse-v2")
    if not shutil.which("aarch64-linux-gnu-gcc"):
        with pytest.raises(MissingEnvironmentError, match="for aarch64 needs a C compiler"):
            foreign.save_c_library(tmp_path, "foreign")


def test_a_c_library_is_for_a_cpu(tmp_path):
    compiled = deplo.compile(lambda x: x + 1, (r(3),), target="sm_90a")
    with pytest.raises(UsageError, match="sm_90a: a C library is for a CPU; save a program file"):
        compiled.save_c_library(tmp_path / "x", "f")
