"""PyTorch's database of modules: results and gradients are as in eager, from both entry points."""

import copy

import pytest
import torch
from opinfo import clone
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

import deplo
from deplo.errors import DeploError

SEED = 7
"""Chooses parameters, inputs and random numbers, the same for eager and compiled modules."""

pytestmark = pytest.mark.filterwarnings("ignore")

MODULES = [info for info in module_db if torch.float32 in info.dtypes]


def inputs_of(info, training):
    """What to construct a module with and to call it with, for each sample, and whether to train it."""
    torch.manual_seed(SEED)
    return info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=training, training=training
    )


def leaves(tree):
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def own(tree, training):
    """A copy whose floats are leaves of the graph of gradients, as they were."""

    def copied(value):
        return clone(value.detach()).requires_grad_(training and value.requires_grad)

    return pytree.tree_map_only(torch.Tensor, copied, tree)


def run(function, module, given, training):
    """The results of a call, and the gradients of what it took."""
    args, kwargs = own((given.args, given.kwargs), training)
    torch.manual_seed(SEED)
    results = leaves(function(*args, **kwargs))
    sources = [x for x in (*module.parameters(), *leaves((args, kwargs))) if x.requires_grad]
    wanted = [r for r in results if r.requires_grad]
    if not training or not wanted:
        return results, []
    total = sum((r * torch.linspace(0.5, 1.5, r.numel()).view(r.shape)).sum() for r in wanted)
    return results, torch.autograd.grad(total, sources, allow_unused=True)


def modules_of(info, training):
    """Each sample's module, in eager, with what to call it with; none that eager refuses."""
    for sample in list(inputs_of(info, training))[:4]:
        torch.manual_seed(SEED)
        given = sample.constructor_input
        module = info.module_cls(*given.args, **given.kwargs).train(training)
        if sample.forward_input is None:
            continue
        try:
            run(copy.deepcopy(module), module, sample.forward_input, training=False)
        except (RuntimeError, ValueError):
            continue
        yield module, sample.forward_input


@pytest.mark.sample(8)
@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
def test_a_module_gives_what_it_gives_in_eager(info, training):
    for module, given in modules_of(info, training):
        eager = copy.deepcopy(module)
        results, gradients = run(eager, eager, given, training)
        torch._dynamo.reset()
        compiled = torch.compile(module, backend="deplo")
        ours, our_gradients = run(compiled, module, given, training)
        torch.testing.assert_close(ours, results, rtol=1e-4, atol=1e-5, equal_nan=True)
        for found, wanted in zip(our_gradients, gradients, strict=True):
            assert (found is None) == (wanted is None)
            if wanted is not None:
                torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.sample(5)
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.name)
def test_a_module_is_compiled_ahead_or_refused(info):
    for module, given in modules_of(info, training=False):
        args, kwargs = own((given.args, given.kwargs), training=False)
        try:
            program = deplo.compile(module, args, kwargs, fallback="eager")
        except DeploError:
            continue  # in one clear error
        with torch.no_grad():
            torch.manual_seed(SEED)
            expected = module(*args, **kwargs)
            torch.manual_seed(SEED)
            torch.testing.assert_close(
                program(*args, **kwargs), expected, rtol=1e-4, atol=1e-5, equal_nan=True
            )
