"""The margin loss over several labels: rows end at their first -1, which PyTorch's decomposition ignores."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import deplo

SCORES = torch.tensor([[0.1, 0.2, 0.4, 0.8], [0.3, -1.0, 2.0, 0.5], [1.0, 0.0, float("nan"), -0.0]])
LABELS = torch.tensor([[3, 0, -1, 1], [-1, 2, 0, 2], [2, 1, 0, 3]])

CALLS = [
    lambda x, t: F.multilabel_margin_loss(x, t),
    lambda x, t: F.multilabel_margin_loss(x, t, reduction="sum"),
    lambda x, t: F.multilabel_margin_loss(x, t, size_average=True, reduce=False),
    lambda x, t: nn.MultiLabelMarginLoss(reduction="none")(x, t),
    lambda x, t: torch._C._nn.multilabel_margin_loss(x, t, 2),
    lambda x, t: F.multilabel_margin_loss(x[0], t[0]),
    lambda x, t: F.multilabel_margin_loss(x[1:, :1], t[1:, :1] * 0 - 1, reduction="none"),
]


@pytest.mark.parametrize("call", CALLS)
def test_agrees_with_eager(call):
    expected = call(SCORES, LABELS)
    torch.testing.assert_close(deplo.compile(call, (SCORES, LABELS))(SCORES, LABELS), expected)
    torch.compiler.reset()
    torch.testing.assert_close(torch.compile(call, backend="deplo")(SCORES, LABELS), expected)


def test_gradients_agree_with_eager():
    gradients = []
    torch.compiler.reset()
    for loss in (
        F.multilabel_margin_loss,
        torch.compile(F.multilabel_margin_loss, backend="deplo"),
    ):
        scores = SCORES[:2].clone().requires_grad_()
        loss(scores, LABELS[:2]).backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(*gradients)


def test_agrees_with_eager_at_random():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(40, 7, generator=generator)
    labels = torch.stack([torch.randperm(8, generator=generator)[:7] - 1 for _ in range(40)])
    expected = F.multilabel_margin_loss(scores, labels, reduction="none")
    program = deplo.compile(
        lambda x, t: F.multilabel_margin_loss(x, t, reduction="none"), (scores, labels)
    )
    torch.testing.assert_close(program(scores, labels), expected)
