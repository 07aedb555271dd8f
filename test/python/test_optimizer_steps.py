"""Steps of optimizers, by PyTorch and by hand, compiled: parameters and states change as in eager."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import deplo

OPTIMIZERS = {
    "SGD": lambda values: torch.optim.SGD(values, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda values: torch.optim.Adam(values, lr=0.01),
    "Adam by lists": lambda values: torch.optim.Adam(values, lr=0.01, foreach=True, amsgrad=True),
    "RMSprop by lists": lambda values: torch.optim.RMSprop(values, foreach=True, centered=True),
}


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_of_pytorch(name):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    for each, compiled in ((model, True), (twin, False)):
        optimizer = OPTIMIZERS[name](each.parameters())
        step = torch.compile(optimizer.step, backend="deplo") if compiled else optimizer.step
        for rows in (3, 4, 5):
            optimizer.zero_grad()
            each(torch.arange(4.0).expand(rows, 4)).square().mean().backward()
            step()
    for mine, wanted in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-6)


def adam(parameter, gradient, mean, square, step):
    """A step of Adam, in place; what divides is a tensor, so Dynamo makes a fused multiplication."""
    step += 1
    mean.mul_(0.9).add_(gradient, alpha=0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    unbiased = mean / (1 - 0.9**step)
    root = (square / (1 - 0.999**step)).sqrt().add_(1e-8)
    parameter.addcdiv_(unbiased, root, value=-0.01)
    parameter.add_(unbiased, alpha=-1e-4 * step)


def by_lists(parameter, gradient, mean, square, step):
    torch._foreach_add_([step], 1)
    torch._foreach_mul_([mean, square], [0.9, 0.999])
    torch._foreach_add_([mean], [gradient], alpha=0.1)
    torch._foreach_addcmul_([square], [gradient], [gradient], 0.001)
    roots = torch._foreach_add(torch._foreach_sqrt([square]), 1e-8)
    torch._foreach_addcdiv_([parameter], [mean], roots, -0.01)
    torch._foreach_lerp_([mean], [gradient], 0.01)
    norms = torch._foreach_norm([parameter, gradient], 2)
    torch._foreach_clamp_max_([parameter], 1.5)
    return norms, torch._foreach_maximum([mean, square], [square, mean])


def states():
    torch.manual_seed(0)
    return *(torch.randn(5, 4) for _ in range(3)), torch.rand(5, 4), torch.tensor(3.0)


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
@pytest.mark.parametrize("entry", ["deplo.compile", "torch.compile"])
@pytest.mark.parametrize("step", [adam, by_lists])
def test_a_step_by_hand(step, entry):
    torch._dynamo.reset()
    mine, wanted = states(), states()
    if entry == "deplo.compile":
        compiled = deplo.compile(step, mine)
    else:
        compiled = torch.compile(step, backend="deplo")
    for _ in range(2):
        torch.testing.assert_close(compiled(*mine), step(*wanted))
    torch.testing.assert_close(mine, wanted)


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_the_gradient_of_a_mean_over_a_size():
    torch._dynamo.reset()
    compiled = torch.compile(F.mse_loss, backend="deplo")
    for rows in (2, 3, 4):
        x, twin = (torch.arange(rows * 4.0).reshape(rows, 4).requires_grad_() for _ in range(2))
        compiled(x, torch.ones(rows, 4)).backward()
        F.mse_loss(twin, torch.ones(rows, 4)).backward()
        torch.testing.assert_close(x.grad, twin.grad)
