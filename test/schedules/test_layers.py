"""Every kernel of layers of published models: machine code without spills, and committed texts."""

from pathlib import Path

import pytest

pytest.importorskip("transformers")

from digests import assert_committed
from layers import ARCHITECTURES, LENGTHS, MODELS, assert_kernels_fit, layer

DIGESTS = Path(__file__).with_name("cuda_layers.txt")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("model", MODELS)
def test_the_kernels_of_a_layer_do_not_spill(model: str, length: int, architecture: str) -> None:
    assert_kernels_fit(layer(model, length, architecture))


def test_the_text_of_every_kernel_is_the_committed_one() -> None:
    sources = {
        (model, str(length), architecture, kernel.name): kernel.source
        for model in MODELS
        for length in LENGTHS
        for architecture in ARCHITECTURES
        for kernel in layer(model, length, architecture).kernels
    }
    what = "Model, sequence length, architecture, kernel"
    assert_committed(sources, DIGESTS, what, "test/schedules/test_layers.py")
