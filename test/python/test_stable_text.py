"""What is printed, read and printed again is the same text, after each pass of each road."""

from io import StringIO

import pytest
import torch
from ir_programs import DYNAMIC_PROGRAMS, TILE_PROGRAMS, make_context, parse
from programs import CORPUS, compiled
from torch import nn
from xdsl.printer import Printer

import deplo
from deplo.machine.targets import get_target
from deplo.passes.pipelines import make_pipeline
from deplo.program import module_for
from deplo.tools.located_parser import LocatedParser

ROADS = {"cpu": "torch-to-llvm", "sm_90a": "torch-to-cuda"}


def text_of(module, generic):
    stream = StringIO()
    Printer(stream=stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


def assert_stable(module, pipeline, target):
    """Print, read and print after each pass; the generic form at the end, too."""
    seen = set()
    passes = make_pipeline(pipeline, target)
    for index, each in enumerate((None, *passes)):
        if each is not None:
            each.apply(make_context(), module)
        for generic in (False, True)[: 2 if index == len(passes) else 1]:
            text = text_of(module, generic)
            if text not in seen:
                seen.add(text)
                again = LocatedParser(make_context(), text, "program.mlir").parse_module()
                assert text_of(again, generic) == text, each


def assert_stable_on_the_road(program, target):
    module = module_for(program.captured, get_target(target))
    assert_stable(module.clone(), ROADS[target], target)


def test_a_convolution():
    """Its indices are sums of several constants."""
    layer, x = nn.Conv2d(3, 8, 3, padding=1), torch.randn(2, 3, 9, 9)
    assert_stable_on_the_road(deplo.compile(layer, (x,), target="cpu"), "cpu")


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", ROADS)
@pytest.mark.parametrize("name", CORPUS)
def test_the_corpus(name, target):
    assert_stable_on_the_road(compiled(name), target)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("pipeline", "target"), [("llvm", "cpu"), ("cuda", "sm_80")])
@pytest.mark.parametrize("name", DYNAMIC_PROGRAMS)
def test_dynamic_sizes(name, pipeline, target):
    assert_stable(parse(DYNAMIC_PROGRAMS[name]), f"tensor-to-{pipeline}", target)


@pytest.mark.parametrize("name", TILE_PROGRAMS)
def test_programs_in_tile_ir(name):
    assert_stable(parse(TILE_PROGRAMS[name]), "tile-to-cuda", "sm_90a")
