"""Whole text models of transformers with batch and sequence both dynamic, as Tensor IR, agree with eager."""

import pytest
import torch

pytest.importorskip("transformers")

from torch.export import Dim
from torch.utils import _pytree as pytree
from whole_models import TEXT, build, tokens

from deplo.analysis.verify import verify_module
from deplo.frontend.capture import capture
from deplo.interpreter import execute
from deplo.passes.pipelines import make_pipeline
from deplo.program import make_context

SIZES = [(2, 9), (3, 5), (4, 17)]
"""Batch and sequence: as captured, and others."""


@pytest.mark.parametrize("architecture", TEXT)
def test_the_tensor_ir_of_any_batch_and_sequence_agrees_with_eager(architecture: str) -> None:
    model = build(architecture)
    dims = {"input_ids": {0: Dim("batch"), 1: Dim("seq", max=64)}}
    captured = capture(model.module, (), model.inputs, dims)
    context = make_context()
    for each in make_pipeline("torch-to-tensor", "cpu"):
        each.apply(context, captured.module)
    verify_module(captured.module)
    for batch, length in SIZES:
        inputs = {"input_ids": tokens(batch, length)}
        flat = captured.flatten_inputs((), inputs)
        tensors = [
            captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index]
            for a in captured.arguments
        ]
        results = execute(captured.module, [tensor.detach().numpy() for tensor in tensors])
        got = captured.unflatten_outputs([torch.from_numpy(r) for r in results], tensors)
        with torch.no_grad():
            eager = model.module(**inputs)
        torch.testing.assert_close(
            pytree.tree_leaves(got), pytree.tree_leaves(eager), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("architecture", ["llama", "gpt2", "bert", "t5"])
def test_a_model_that_is_captured_with_a_batch_of_one_takes_any_batch(architecture: str) -> None:
    model = build(architecture)
    one = {"input_ids": tokens(1, 9)}
    dims = {"input_ids": {0: Dim("batch"), 1: Dim("seq", max=64)}}
    captured = capture(model.module, (), one, dims)
    (main,) = captured.module.body.block.ops
    assert [str(size) for size in main.attributes["sym.sizes"]] == [
        '#sym.size<"batch", 1, none, hint = 1>',
        '#sym.size<"seq", 2, 64, hint = 9>',
    ]
