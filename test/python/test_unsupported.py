"""What cannot be expressed is reported all at once, with counts and the user's lines."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import deplo
from deplo.errors import DeploError, UnsupportedOpError, UsageError
from deplo.frontend.capture import capture

X = torch.randn(4, 4)


def error_of(program, *args, **kwargs):
    with pytest.raises(UnsupportedOpError) as raised:
        capture(program, args, kwargs)
    assert raised.value.exit_code == 1
    return str(raised.value)


class Spectral(nn.Module):
    """A supported operator among unsupported ones."""

    def forward(self, x):
        first = torch.linalg.eigvals(x)
        second = torch.linalg.eigvals(torch.exp(x))
        u = torch.linalg.svd(x)[0]
        return u, first.real + second.real


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


def test_all_operators_are_named_with_counts_and_lines():
    message = error_of(Spectral(), X)
    assert "deplo does not support 2 things that this program uses:" in message
    assert "aten.linalg_eig.default (from linalg_eigvals), 2 times" in message
    assert "aten._linalg_svd.default (from linalg_svd), 1 time\n" in message
    for text in ("first = ", "second = ", "u = "):
        number = line_of(Spectral.forward, text)
        assert f"test_unsupported.py:{number}  {text}" in message
    assert "exp" not in message.replace("torch.exp(x)", "")


def test_lines_of_a_plain_function_are_named():
    def program(x):
        y = x + 1
        return torch.linalg.svd(y)[0]

    number = line_of(program, "torch.linalg.svd")
    assert f"test_unsupported.py:{number}  return torch.linalg.svd(y)[0]" in error_of(program, X)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: x.to(torch.uint16), "dtype = torch.uint16"),
        (lambda x: torch.complex(x, x).tan(), "aten.tan.default: complex numbers"),
        (lambda x: F.dropout(x, 0.5, training=True), "native_dropout"),
        (torch.special.bessel_j1, "bessel_j1"),
        (lambda x: x[x[:, 0] > 0, torch.tensor([1])], "a mask among other indices"),
    ],
    ids=["dtype", "complex", "dropout", "operator", "indices"],
)
def test_an_argument_that_cannot_be_expressed_is_named(program, reason):
    assert reason in error_of(program, X)


def test_inputs_of_a_dtype_that_cannot_be_expressed_are_named():
    message = error_of(lambda image: image.float(), torch.zeros(3, dtype=torch.uint16))
    assert "input image: dtype uint16, 1 time" in message


def branch(x):
    return x + 1 if x.sum() > 0 else x


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (branch, "its shapes or its control flow depend on the values in tensors"),
        (lambda x: sum(x for _ in range(int(x[0, 0]))), "its shapes or its control flow depend"),
        (lambda x: x if torch.equal(x, x + 1) else -x, "aten.equal.default gives Python what"),
        (
            lambda x: F.ctc_loss(x[:, None], *(torch.tensor([[1]]) for _ in range(3))),
            "the shape that aten._ctc_loss.Tensor gives depends on the values in tensors",
        ),
        (lambda x: torch.nested.nested_tensor([x]), "PyTorch cannot trace aten._nested_tensor"),
        (lambda x: x.set_(torch.ones(4)), "changes the shape, the strides or the memory of its argument 'x'"),
    ],
)
def test_what_export_cannot_follow_is_one_clear_error(program, reason):
    with pytest.raises(UnsupportedOpError) as raised:
        capture(program, (X,))
    first, *lines = str(raised.value).splitlines()
    assert reason in first
    assert "Exception" not in first
    assert len(lines) < 4
    assert all("test_unsupported.py:" in line for line in lines)


def test_an_error_in_the_program_itself_keeps_its_text():
    with pytest.raises(DeploError, match=r"same reduction dim|cannot be multiplied"):
        capture(lambda x: x @ torch.randn(3, 3), (X,))


@pytest.mark.parametrize(
    "program", [lambda x: x.item(), lambda x: x.sum().item() * 2, lambda x: (x + 1, x.item())]
)
def test_a_number_that_depends_on_values_is_refused(program):
    assert "_local_scalar_dense.default (from item), 1 time" in error_of(program, torch.ones(()))


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(torch.float16, -1e9), (torch.float16, 65519.0), (torch.bfloat16, 3.4e38), (X.dtype, 1e39)],
)
def test_a_number_that_its_type_does_not_hold(dtype, number):
    def fill(x):
        return torch.full_like(x, number)

    for run in (fill, lambda x: deplo.compile(fill, (x,))):
        with pytest.raises(RuntimeError, match="overflow"):
            run(X.to(dtype))
    largest = torch.finfo(dtype).max
    ours = deplo.compile(lambda x: torch.full_like(x, largest), (X.to(dtype),))
    assert (ours(X.to(dtype)) == largest).all()


def test_a_tensor_without_memory_is_refused():
    program = deplo.compile(torch.relu, (X,))
    with FakeTensorMode():
        fake = torch.empty(4, 4)
    for _ in range(3):  # also where a call is prepared
        with pytest.raises(UsageError, match="a plain torch tensor, got a FakeTensor"):
            program(fake)
        assert torch.equal(program(X), torch.relu(X))


def test_an_operator_of_which_pytorch_cannot_write_the_name():
    with pytest.raises(UnsupportedOpError, match=r"write its graph as code: .*random_\.from\(clone, 0, 10\)"):
        deplo.compile(lambda x: x.clone().random_(0, 10), (torch.ones(3),))
