"""Recurrent networks are a loop over time: kernels of one step, launched once per step, never copied."""

import warnings

import numpy as np
import pytest
import torch
import torch._dynamo
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import deplo
from deplo import interpreter
from deplo.errors import DeploError
from deplo.machine.targets import get_target
from deplo.program_stages import make_context, passes_to
from deplo.runtime.cuda import CudaProgram
from deplo.tools.judge import float64_reference

CELLS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "rnn_tanh": nn.RNN,
    "rnn_relu": lambda *args, **options: nn.RNN(*args, nonlinearity="relu", **options),
}
FEATURES, HIDDEN = 4, 6
CALLS = 6
"""More calls than a program has before native code runs all of them."""

FORMS = {
    "plain": {},
    "no_bias": {"bias": False},
    "batch_first": {"batch_first": True},
    "bidirectional": {"bidirectional": True},
    "layers": {"num_layers": 2, "dropout": 0.5},
    "all": {"num_layers": 2, "bidirectional": True, "batch_first": True},
}


def network(cell, dtype=torch.float32, **options):
    torch.manual_seed(0)
    made = CELLS[cell](FEATURES, HIDDEN, **options)
    return made.eval().to(dtype)


def assert_like_eager(program, network, *args, **bounds):
    for _ in range(CALLS):
        with torch.no_grad():
            torch.testing.assert_close(program(*args), network(*args), **bounds)


@pytest.mark.sample(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cell", CELLS)
def test_it_is_what_eager_computes(cell, form):
    made, x = network(cell, **FORMS[form]), torch.randn(5, 3, FEATURES)
    assert_like_eager(deplo.compile(made, (x,), target="cpu"), made, x)


@pytest.mark.parametrize("shape", [(1, 3, FEATURES), (4, 1, FEATURES), (1, 1, FEATURES), (4, FEATURES)])
@pytest.mark.parametrize("cell", CELLS)
def test_of_one_step_and_of_one_sequence(cell, shape):
    made, x = network(cell), torch.randn(shape)
    assert_like_eager(deplo.compile(made, (x,), target="cpu"), made, x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("cell", CELLS)
def test_of_other_types(cell, dtype):
    made, x = network(cell, dtype), torch.randn(5, 3, FEATURES).to(dtype)
    bounds = {} if dtype == torch.float64 else {"rtol": 2e-2, "atol": 2e-2}
    assert_like_eager(deplo.compile(made, (x,), target="cpu"), made, x, **bounds)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("cell", CELLS)
def test_initial_states(cell, directions):
    made, x = network(cell, bidirectional=directions == 2), torch.randn(5, 3, FEATURES)
    states = [torch.randn(directions, 3, HIDDEN) for _ in range(2 if cell == "lstm" else 1)]
    given = tuple(states) if cell == "lstm" else states[0]
    assert_like_eager(deplo.compile(made, (x, given), target="cpu"), made, x, given)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("form", ["plain", "all"])
def test_projections_of_the_hidden_state(form):
    made, x = network("lstm", proj_size=3, **FORMS[form]), torch.randn(5, 3, FEATURES)
    assert_like_eager(deplo.compile(made, (x,), target="cpu"), made, x)


@pytest.mark.sample(3)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=["length", "batch", "both"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_dynamic_length_and_batch(cell, axes):
    made, x = network(cell, bidirectional=True), torch.randn(5, 3, FEATURES)
    shapes = {"input": {axis: Dim(f"n{axis}", min=2, max=64) for axis in axes}}
    program = deplo.compile(made, (x,), target="cpu", dynamic_shapes=shapes)
    for extents in ((5, 3), (2, 2), (9, 7)):
        length, batch = (n if axis in axes else (5, 3)[axis] for axis, n in enumerate(extents))
        assert_like_eager(program, made, torch.randn(length, batch, FEATURES))


class Between(nn.Module):
    """A network between other layers, run twice."""

    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(FEATURES, FEATURES), nn.Linear(FEATURES, 3)

    def forward(self, x):
        y, last = self.gru(x.tanh())
        again, _ = self.gru(y.flip(0), last)
        return self.out(again[-1]).softmax(-1), y


def test_between_other_layers():
    torch.manual_seed(0)
    made, x = Between().eval(), torch.randn(5, 3, FEATURES)
    assert_like_eager(deplo.compile(made, (x,), target="cpu"), made, x)


class Repeated(nn.Module):
    """A layer with enough operators that several of it become one function."""

    def __init__(self):
        super().__init__()
        self.norm, self.gru = nn.LayerNorm(FEATURES), nn.GRU(FEATURES, FEATURES)
        self.up, self.down = nn.Linear(FEATURES, 8), nn.Linear(8, FEATURES)

    def forward(self, x):
        y, _ = self.gru(self.norm(x))
        return x + self.down(F.gelu(self.up(y.tanh()))).sigmoid() * 2


def test_in_layers_that_repeat():
    torch.manual_seed(0)
    made, x = nn.Sequential(*(Repeated() for _ in range(3))).eval(), torch.randn(5, 3, FEATURES)
    program = deplo.compile(made, (x,), target="cpu")
    assert any(d.pass_name == "outline-repeats" and d.fired for d in program.compilation.decisions)
    assert len(program.plan.loops) == 3
    assert_like_eager(program, made, x)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("cell", CELLS)
def test_a_long_sequence_is_one_short_loop(cell, target):
    x = torch.randn(1000, 3, FEATURES)
    plan = deplo.compile(network(cell), (x,), target=target).plan
    (loop,) = plan.loops
    assert loop.trips == 1000
    assert loop.end - loop.begin <= 2
    assert len(plan.steps) < 10


@pytest.mark.sample(4)
@pytest.mark.parametrize("target", ["cpu", "sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("form", ["plain", "all"])
def test_every_level_computes_the_same(form, target):
    made, x = network("lstm", **FORMS[form]), torch.randn(3, 2, FEATURES)
    module = deplo.compile(made, (x,), target=target).captured.module.clone()
    inputs = interpreter.random_inputs(module_at(module, "tensor", target))[0]
    results = [
        interpreter.execute(module_at(module, stage, target), inputs)
        for stage in ("tensor", "loop", "tile", *(() if target == "cpu" else ("kernel", "cuda")))
    ]
    for later in results[1:]:
        for one, other in zip(results[0], later, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def module_at(module, stage, target):
    module, context = module.clone(), make_context()
    for _, passes in passes_to(stage, get_target(target)):
        for each in passes:
            each.apply(context, module)
    return module


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_kernels_for_gpus_spill_nothing(cell, target):
    made = CELLS[cell](64, 64).eval()
    program = deplo.compile(made, (torch.randn(5, 8, 64),), target=target)
    for usage in CudaProgram(program.plan).usage.values():
        assert usage.spill_stores == usage.spill_loads == 0


@pytest.mark.parametrize("form", ["plain", "all"])
@pytest.mark.parametrize("cell", CELLS)
@torch._dynamo.config.patch(allow_rnn=True)
def test_torch_compile_without_gradients(cell, form):
    torch._dynamo.reset()
    made, x = network(cell, **FORMS[form]), torch.randn(5, 3, FEATURES)
    compiled = torch.compile(made, backend="deplo", fullgraph=True)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", deplo.FallbackWarning)
        torch.testing.assert_close(compiled(x), made(x))


def test_dropout_between_layers_in_training_is_refused():
    made = network("lstm", **FORMS["layers"]).train()
    with pytest.raises(deplo.UnsupportedOpError, match=r"aten\.native_dropout"):
        deplo.compile(made, (torch.randn(5, 3, FEATURES),), target="cpu")


def test_dropout_in_training_draws_eagers_numbers():
    made, x = network("lstm", **FORMS["layers"]).train(), torch.randn(5, 3, FEATURES)
    with pytest.warns(deplo.FallbackWarning):
        program = deplo.compile(made, (x,), target="cpu", fallback="eager")
    torch.manual_seed(5)
    actual = program(x)
    torch.manual_seed(5)
    with torch.no_grad():
        torch.testing.assert_close(actual, made(x))


@pytest.mark.parametrize("stage", ["mlir", "c"])
def test_other_compilers_have_no_loop_of_launches(stage):
    captured = deplo.compile(network("gru"), (torch.randn(5, 3, FEATURES),), target="cpu").captured
    with pytest.raises(DeploError, match="a loop of launches, which MLIR and C do not have"):
        module_at(captured.module, stage, "cpu")


@pytest.mark.parametrize("cell", CELLS)
def test_a_sequence_without_steps_is_refused_as_in_eager(cell):
    with pytest.raises(RuntimeError, match="sequence length to be larger than 0"):
        deplo.compile(network(cell), (torch.randn(0, 3, FEATURES),), target="cpu")


@pytest.mark.parametrize("cell", [nn.LSTMCell(8, 5), nn.GRUCell(8, 5), nn.RNNCell(8, 5)])
def test_one_step_is_compiled(cell):
    x = torch.randn(3, 8)
    program = deplo.compile(cell, (x,), target="cpu")
    with torch.no_grad():
        torch.testing.assert_close(program(x), cell(x))


def test_a_program_that_makes_its_network_is_judged_without_float64():
    """For weights of another type than the input PyTorch has a ValueError here, and else a RuntimeError."""
    network = nn.LSTM(4, 8)
    assert float64_reference(lambda x: network(x)[0], (torch.randn(3, 1, 4),), {}) is None
