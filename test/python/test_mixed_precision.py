"""Training under autocast: norms of half precision with weights in f32 are those of eager, and compiled."""

import copy

import pytest
import torch
from torch import nn

LAYERS = {
    "batch norm": lambda: nn.BatchNorm1d(4),
    "instance norm": lambda: nn.InstanceNorm1d(4, affine=True),
    "group norm": lambda: nn.GroupNorm(2, 4),
    "layer norm": lambda: nn.LayerNorm([4, 6]),
    "layer norm without weights": lambda: nn.LayerNorm(6, elementwise_affine=False),
    "RMS norm": lambda: nn.RMSNorm(6),
}


def gradients(model, call, dtype):
    torch.manual_seed(1)
    x = torch.randn(3, 2, 8, requires_grad=True)
    with torch.autocast("cpu", dtype=dtype):
        y = call(x)
    (y.float() * torch.linspace(-1, 1, y.numel()).view_as(y)).sum().backward()
    return [y.detach(), x.grad, *(p.grad for p in model.parameters()), *model.buffers()]


@pytest.mark.sample(4)
@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_a_norm_under_autocast(name, dtype):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 4, 3), LAYERS[name](), nn.GELU())
    twin = copy.deepcopy(model)
    made = gradients(model, torch.compile(model, backend="deplo"), dtype)
    wanted = gradients(twin, twin, dtype)
    largest = max(float(each.abs().max()) for each in wanted)
    for mine, eager in zip(made, wanted, strict=True):
        tolerance = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(mine, eager, rtol=tolerance, atol=tolerance * largest)
