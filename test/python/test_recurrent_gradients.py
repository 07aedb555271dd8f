"""Gradients of recurrent networks are scans from the last step to the first, as kernels."""

import warnings

import pytest
import torch
import torch._dynamo
from test_recurrent import CELLS, FEATURES, FORMS, HIDDEN

import deplo
from deplo import torch_backend

pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections")


@pytest.fixture
def programs(monkeypatch):
    """The programs that a test compiles."""
    found = []
    make = torch_backend.Program

    def made(*args):
        found.append(make(*args))
        return found[-1]

    monkeypatch.setattr(torch_backend, "Program", made)
    torch._dynamo.reset()
    torch_backend._warn.cache_clear()
    return found


def network(cell, dtype=torch.float32, **options):
    torch.manual_seed(0)
    return CELLS[cell](FEATURES, HIDDEN, **options).to(dtype)


def inputs(made, shape, dtype=torch.float32, *, states=False):
    x = torch.randn(*shape, FEATURES, dtype=dtype, requires_grad=True)
    if not states:
        return (x,)
    layers = made.num_layers * (2 if made.bidirectional else 1)
    batch = shape[0 if made.batch_first else 1]
    widths = [made.proj_size or HIDDEN, HIDDEN][: 2 if made.mode == "LSTM" else 1]
    given = [torch.randn(layers, batch, n, dtype=dtype, requires_grad=True) for n in widths]
    return x, tuple(given) if made.mode == "LSTM" else given[0]


def step(run, made, args):
    """The results of a network, and the gradients of all that it reads, of a loss of all that it gives."""
    leaves = [*made.parameters(), *torch.utils._pytree.tree_leaves(args)]
    results = torch.utils._pytree.tree_leaves(run(*args))
    loss = sum(
        (r * torch.linspace(-1, 1, r.numel(), dtype=r.dtype).view(r.shape)).sum() for r in results
    )
    return results, torch.autograd.grad(loss, leaves)


def assert_trains_like_eager(made, *all_args, dynamic=None, **bounds):
    """Compare all results and gradients, without a call of PyTorch."""
    with torch._dynamo.config.patch(allow_rnn=True), warnings.catch_warnings():
        warnings.simplefilter("error", deplo.FallbackWarning)
        compiled = torch.compile(made, backend="deplo", fullgraph=True, dynamic=dynamic)
        for args in all_args:
            torch.testing.assert_close(step(compiled, made, args), step(made, made, args), **bounds)


@pytest.mark.parametrize(
    ("cell", "form"), [*((cell, "plain") for cell in CELLS), ("rnn_relu", "all")]
)
def test_all_gradients_are_eagers(cell, form, programs):
    made = network(cell, **FORMS[form])
    assert_trains_like_eager(made, inputs(made, (5, 3), states=True))
    forward, backward = programs
    scans = 4 if form == "all" else 1
    assert len(forward.plan.loops) == len(backward.plan.loops) == scans
    assert all(loop.trips == (3 if form == "all" else 5) for loop in backward.plan.loops)


def test_without_given_states_and_biases(programs):
    made = network("lstm", bidirectional=True, **FORMS["no_bias"])
    assert_trains_like_eager(made, inputs(made, (5, 3)))


def test_projections_of_the_hidden_state(programs):
    made = network("lstm", proj_size=3, num_layers=2)
    assert_trains_like_eager(made, inputs(made, (5, 3), states=True))


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (1, 1)])
def test_of_one_step_and_of_one_sequence(shape, programs):
    made = network("gru")
    assert_trains_like_eager(made, inputs(made, shape, states=True))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_of_other_types(dtype, programs):
    made = network("lstm", dtype)
    bounds = {} if dtype == torch.float64 else {"rtol": 5e-2, "atol": 5e-2}
    assert_trains_like_eager(made, inputs(made, (5, 3), dtype, states=True), **bounds)


def test_dynamic_batch(programs):
    """The length is fixed: Dynamo itself finds the shapes of a network by running each step."""
    made = network("rnn_tanh", bidirectional=True)
    shapes = [(5, 3), (5, 2), (5, 7)]
    assert_trains_like_eager(
        made, *(inputs(made, shape, states=True) for shape in shapes), dynamic=True
    )
    assert len(programs) == 2  # one forward, one backward


def test_a_long_sequence_is_one_short_loop(programs):
    made = network("lstm")
    assert_trains_like_eager(made, inputs(made, (50, 2)))
    for program in programs:
        (loop,) = program.plan.loops
        assert loop.trips == 50
        assert loop.end - loop.begin <= 3


def test_dropout_between_layers_draws_eagers_numbers(programs):
    made = network("lstm", num_layers=2, dropout=0.5)
    args = inputs(made, (5, 3))
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(made, backend="deplo", fullgraph=True)
        torch.manual_seed(5)
        with pytest.warns(
            deplo.FallbackWarning, match=r"1 operator runs in PyTorch: aten\.native_dropout"
        ):
            actual = step(compiled, made, args)
    torch.manual_seed(5)
    torch.testing.assert_close(actual, step(made, made, args))


def test_frozen_weights_have_no_gradients(programs):
    made = network("gru").requires_grad_(False)
    (x,) = inputs(made, (5, 3))
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(made, backend="deplo", fullgraph=True)
        (actual,) = torch.autograd.grad(compiled(x)[1].sum(), x)
    torch.testing.assert_close(actual, torch.autograd.grad(made(x)[1].sum(), x)[0])


def test_gradients_inside_of_a_program():
    made = network("gru")

    def gradients(x):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            loss = made(x)[0].square().sum()
        return torch.autograd.grad(loss, x)

    x = torch.randn(5, 3, FEATURES)
    program = deplo.compile(gradients, (x,), target="cpu")
    torch.testing.assert_close(program(x), gradients(x))
    assert len(program.plan.loops) == 2
