"""Programs on the CPU beside the same for a GPU from a file, and how their results are compared."""

import copy

import numpy as np
import torch
from test_program_files import bits
from torch.utils import _pytree as pytree

import deplo
from deplo.runtime import load


def saved(program, args, kwargs, gpu, path, target="sm_90a", **options):
    """A program on the CPU, and the same for a GPU from a file."""
    ours = deplo.compile(copy.deepcopy(program), args, kwargs, target="cpu", **options)
    compiled = deplo.compile(program, args, kwargs, target=target, **options)
    compiled.save(path)
    gpu.learn(compiled)
    return ours, load(path)


def compare(given, wanted):
    """Integers are equal, floats near: the CPU adds in another order."""
    for one, other in zip(pytree.tree_leaves(given), pytree.tree_leaves(wanted), strict=True):
        if not isinstance(other, np.ndarray | np.generic):
            assert one == other
            continue
        assert type(one) is np.ndarray
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def check_same(program, loaded, args, kwargs, calls=3):
    """Call both on copies of the same inputs; what they return, and make of the inputs, is the same."""
    theirs = pytree.tree_map(lambda v: np.copy(bits(v), order="K") if torch.is_tensor(v) else v, args)
    ours = copy.deepcopy(args)
    for _ in range(calls):  # the later calls are prepared
        wanted = pytree.tree_map(bits, program(*ours, **kwargs))
        compare(loaded(*theirs, **pytree.tree_map(bits, kwargs)), wanted)
        compare(theirs, pytree.tree_map(bits, ours))
