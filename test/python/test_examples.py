"""The examples run, and what both front doors say is one program: PyTorch's modules and `deplo.Tensor`."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location

import pytest
import torch
from conftest import ROOT
from torch.nn import functional
from xdsl.dialects.builtin import StringAttr

import deplo
import deplo.array_api as xp
from deplo import Tensor
from deplo.dialects.loop import KernelOp

EXAMPLE = ROOT / "examples" / "transformer.py"


def loops(plan):
    """A program in Loop IR with kernels by their number, and no names of parameters."""
    module = plan.stage("loop")
    numbers = {}
    for kernel in (op for op in module.walk() if isinstance(op, KernelOp)):
        name = kernel.sym_name.data
        kernel.sym_name = StringAttr(f"k{numbers.setdefault(name, len(numbers))}")
    for op in module.walk():
        op.properties.pop("arg_attrs", None)
        op.attributes.pop("arg_attrs", None)
    return module


def same(one, other):
    """Whether two programs are the same in Loop IR, but for names."""
    return loops(one).is_structurally_equivalent(loops(other))


@pytest.fixture(scope="module")
def example():
    spec = spec_from_file_location("transformer", EXAMPLE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def programs(example):
    """The transformer from the module and from tensors."""
    model = example.Transformer().eval()
    x = torch.randn(example.BATCH, example.LENGTH, example.WIDTH)
    weights = {name: Tensor(parameter) for name, parameter in model.named_parameters()}
    return deplo.compile(model, (x,)), deplo.prepare(example.transformer(Tensor(x), weights))


def test_the_transformer_runs_and_shares_all_kernels():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        len(re.findall(r"^result +from the (?:module|tensors) agrees", done.stdout, re.MULTILINE))
        == 2
    )
    shared, *all_of_them = re.findall(r"\d+", done.stdout.splitlines()[-1])
    assert int(shared) > 5
    assert all_of_them == [shared, shared]


def test_the_transformers_are_one_program_in_loop_ir(example):
    from_module, from_tensors = programs(example)
    assert same(from_module, from_tensors)
    assert len(from_tensors.plan.launches) == 2 * 7 + 1  # the layers run the same seven kernels


def test_the_example_finds_a_kernel_that_is_not_shared(example, monkeypatch):
    monkeypatch.setattr(example.functional, "silu", torch.nn.functional.gelu)
    from_module, from_tensors = programs(example)
    assert not same(from_module, from_tensors)
    one, other = example.kernels(from_module), example.kernels(from_tensors)
    assert (one & other).total() == one.total() - 1 == other.total() - 1


X, W, BIAS, BATCHED = torch.randn(2, 6, 8), torch.randn(8, 8), torch.randn(8), torch.randn(2, 8, 8)
Q, K, V = (torch.randn(2, 2, 6, 4) for _ in range(3))
MASK, IDS = torch.rand(6, 6) > 0.3, torch.randint(0, 8, (2, 6))

SAID_TWICE = {
    "linear": ((X, W, BIAS), functional.linear, lambda x, w, b: x @ w.mT + b),
    "addmm": (
        (X[0], W, BIAS),
        lambda x, w, b: torch.addmm(b, x, w),
        lambda x, w, b: x @ w + b,
    ),
    "baddbmm": (
        (X, BATCHED, BIAS),
        lambda x, w, b: torch.baddbmm(b, x, w),
        lambda x, w, b: x @ w + b,
    ),
    "softmax": (
        (X,),
        lambda x: x.softmax(-1),
        lambda x: (
            (x - x.max(axis=-1, keepdims=True)).exp()
            / (x - x.max(axis=-1, keepdims=True)).exp().sum(axis=-1, keepdims=True)
        ),
    ),
    "log softmax": ((X,), lambda x: x.log_softmax(0), lambda x: x.log_softmax(axis=0)),
    "rms norm": (
        (X, BIAS),
        lambda x, w: functional.rms_norm(x, (8,), w, 1e-6),
        lambda x, w: x * ((x * x).mean(axis=-1, keepdims=True) + 1e-6).rsqrt() * w,
    ),
    "rms norm by hand": (
        (X, BIAS),
        lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w,
        lambda x, w: x.rms_norm(w, eps=1e-6),
    ),
    "layer norm": (
        (X, W[0], BIAS),
        lambda x, w, b: functional.layer_norm(x, (8,), w, b, 1e-6),
        lambda x, w, b: (
            (d := x - x.mean(axis=-1, keepdims=True))
            * (d.square().mean(axis=-1, keepdims=True) + 1e-6).rsqrt()
            * w
            + b
        ),
    ),
    "attention": (
        (Q, K, V),
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
    ),
    "attention with a mask and a scale": (
        (Q, K, V, MASK),
        lambda q, k, v, m: functional.scaled_dot_product_attention(q, k, v, m, scale=0.3),
        lambda q, k, v, m: q.scaled_dot_product_attention(k, v, m, scale=0.3),
    ),
    "causal attention by hand": (
        (Q, K, V),
        lambda q, k, v: (
            torch.where(
                torch.arange(6)[:, None] >= torch.arange(6), q @ k.mT / 2, -torch.inf
            ).softmax(-1)
            @ v
        ),
        lambda q, k, v: (
            xp.where(xp.arange(6).reshape((6, 1)) >= xp.arange(6), q @ k.mT / 2, -xp.inf).softmax()
            @ v
        ),
    ),
    "gelu": (
        (X,),
        lambda x: functional.gelu(x, approximate="tanh"),
        lambda x: x.gelu(approximate="tanh"),
    ),
    "embedding": (
        (W, IDS),
        lambda w, ids: functional.embedding(ids, w),
        lambda w, ids: w.embedding(ids),
    ),
    "rows": ((W, IDS), lambda w, ids: w[ids], lambda w, ids: w[ids]),
    "rotation": (
        (X,),
        lambda x: torch.cat([-x[..., 4:], x[..., :4]], -1),
        lambda x: xp.concat([-x[..., 4:], x[..., :4]], axis=-1),
    ),
    "numbers": ((X,), lambda x: 2 * x + 1 - x / 3, lambda x: 1 + 2 * x - x / 3),
}
"""Arguments in the order in which they are read, and what PyTorch and lazy tensors do with them."""


@pytest.mark.parametrize("name", SAID_TWICE)
def test_both_front_doors_say_the_same_loops(name):
    arguments, eager, lazy = SAID_TWICE[name]
    tensors = [Tensor(argument) for argument in arguments]
    assert same(deplo.compile(eager, arguments), deplo.prepare(lazy(*tensors)))


def test_programs_that_differ_in_a_number_are_not_the_same():
    x = Tensor(X)
    assert not same(deplo.compile(lambda x: x * 2, (X,)), deplo.prepare(x * 3))
    assert same(deplo.compile(lambda x: x * 2, (X,)), deplo.prepare(2 * x))


def test_the_namespace_needs_no_tensor_first():
    code = "import deplo; print(deplo.array_api.arange(3).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[0, 1, 2]\n"
