"""Numbers that a program reads from its tensors and computes with."""

import pytest
import torch

import deplo

READ = {
    "a factor": lambda x, i, s, k: (x * s.item(), x * k.item(), i * k.item()),
    "an expression": lambda x, i, s, k: x * (2 * s.item() - 1) + k.item() * 0.1,
    "quotients": lambda x, i, s, k: (i // k.item(), i % k.item(), x / x.abs().max().item()),
    "of a sum": lambda x, i, s, k: (
        torch.add(x, x, alpha=s.item()),
        torch.sub(i, i, alpha=k.item()),
    ),
    "filled": lambda x, i, s, k: (torch.full((3,), s.item()), torch.full((3,), k.item())),
    "filled in place": lambda x, i, s, k: (x.clone().fill_(s.item()), i.clone().fill_(k.item())),
    "compared": lambda x, i, s, k: (x > s.item(), i == k.item()),
    "limits": lambda x, i, s, k: (x.clamp(max=s.item()), i.clamp(min=k.item())),
    "powers": lambda x, i, s, k: (x.abs() ** s.item(), x ** k.item(), s.item() ** x),
    "masked": lambda x, i, s, k: (x.masked_fill(x > 0, s.item()), torch.where(x > 0, k.item(), i)),
    "small integers": lambda x, i, s, k: (
        i.to(torch.int8) * k.item(),
        i.to(torch.int32) + k.item(),
    ),
    "half precision": lambda x, i, s, k: x.bfloat16() * s.item(),
    "without axes": lambda x, i, s, k: (s * s.item(), k + k.item(), s * x.sum().reshape(1).item()),
    "a tensor again": lambda x, i, s, k: x + torch.tensor(s.item()),
}


@pytest.mark.parametrize("name", READ)
def test_a_number_read_from_a_tensor_is_that_of_the_call(name):
    torch.manual_seed(0)
    x = torch.randn(5, 4)
    i = (x * 10).long()
    program = deplo.compile(READ[name], (x, i, torch.tensor(2.5), torch.tensor(3)))
    args = x, i, torch.tensor(1.25), torch.tensor([2])[0]
    torch.testing.assert_close(program(*args), READ[name](*args))


def test_where_an_operator_takes_no_tensor():
    def program(x, s):
        return torch.add(x, x, alpha=s.item())

    with pytest.raises(
        deplo.UnsupportedOpError, match="a float that depends on the values"
    ) as raised:
        deplo.compile(program, (torch.ones(3).half(), torch.tensor(2.0)))
    assert "test_read_numbers.py" in str(raised.value)
