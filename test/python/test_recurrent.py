"""Recurrent networks stay whole: refused at once or called, never copied once per time step."""

import pytest
import torch
from torch import nn

import deplo

STEPS = 1000
NETWORKS = {
    "aten.lstm.input": lambda: nn.LSTM(8, 5, num_layers=2, bidirectional=True, dropout=0.3),
    "aten.gru.input": lambda: nn.GRU(8, 5, batch_first=True),
    "aten.rnn_tanh.input": lambda: nn.RNN(8, 5),
    "aten.rnn_relu.input": lambda: nn.RNN(8, 5, nonlinearity="relu"),
}


@pytest.fixture
def x():
    return torch.randn(STEPS, 3, 8)


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_refused_in_one_clear_error(name, x):
    with pytest.raises(deplo.UnsupportedOpError) as raised:
        deplo.compile(NETWORKS[name]().eval(), (x,), target="cpu")
    lines = str(raised.value).splitlines()
    assert lines[0] == "deplo does not support 1 thing that this program uses:"
    assert lines[1] == f"  {name}, 1 time"
    assert len(lines) == 4


@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_one_call_of_pytorch(name, x):
    network = NETWORKS[name]().eval()
    with pytest.warns(deplo.FallbackWarning, match=f"1 operator runs in PyTorch: {name} "):
        program = deplo.compile(network, (x,), target="cpu", fallback="eager")
    (call,) = program.report()["calls"]
    assert (call["operator"], call["count"]) == (name, 1)
    assert len(program.plan.steps) < 5
    with torch.no_grad():
        torch.testing.assert_close(program(x), network(x))


def test_dropout_in_training_draws_eagers_numbers(x):
    network = NETWORKS["aten.lstm.input"]().train()
    with pytest.warns(deplo.FallbackWarning):
        program = deplo.compile(network, (x,), target="cpu", fallback="eager")
    torch.manual_seed(5)
    actual = program(x)
    torch.manual_seed(5)
    with torch.no_grad():
        torch.testing.assert_close(actual, network(x))


@pytest.mark.parametrize("cell", [nn.LSTMCell(8, 5), nn.GRUCell(8, 5), nn.RNNCell(8, 5)])
def test_one_step_is_compiled(cell):
    x = torch.randn(3, 8)
    program = deplo.compile(cell, (x,), target="cpu")
    with torch.no_grad():
        torch.testing.assert_close(program(x), cell(x))
