"""Programs of dynamic sizes: one compilation computes what the program means, at any sizes that it allows."""

import numpy as np
import pytest
from ir_programs import DYNAMIC_PROGRAMS, parse
from xdsl.dialects.builtin import f32

from deplo import interpreter
from deplo.analysis.plan import build_plan
from deplo.analysis.verify import verify_module
from deplo.codegen.llvm_sources import llvm_sources
from deplo.errors import DeploError, UsageError
from deplo.interpreter.execute import main_function
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.plan import Plan
from deplo.runtime.sizes import Expression, read_extent

SHAPES = {
    "dynamic_softmax": [((1, 1), (1,)), ((3, 70), (3,)), ((65, 5), (65,))],
    "dynamic_product": [((n, m, 48), (36, 48)) for n, m in ((1, 2), (2, 17), (5, 33))],
    "dynamic_attention": [((1, 1, 8),) * 2, ((2, 13, 8),) * 2, ((3, 65, 8),) * 2],
    "dynamic_windows": [((2, 8),), ((3, 8),), ((130, 8),)],
    "dynamic_arena": [((1, 1),), ((3, 5),), ((40, 2),), ((2, 1000),)],
}
"""Shapes of the arguments to call each program with."""


def lowered(module, pipeline, target):
    """A copy of a module after a pipeline."""
    low = module.clone()
    for each in make_pipeline(pipeline, target):
        each.apply(make_context(), low)
    verify_module(low)
    return low


def native(module):
    """A module compiled for this CPU."""
    low = lowered(module, "tensor-to-llvm", "cpu")
    return CpuProgram(Plan.from_data(build_plan(low, "cpu", llvm_sources(low))), "numpy")


def inputs_of(module, shapes, seed=0):
    """Random arguments; those of integers are indices that exist."""
    rng = np.random.default_rng(seed)
    types = main_function(module).function_type.inputs
    return [
        rng.integers(0, shape[0], shape)
        if "i64" in str(type)
        else rng.standard_normal(shape).astype(np.float32)
        for type, shape in zip(types, shapes, strict=True)
    ]


@pytest.mark.parametrize("name", DYNAMIC_PROGRAMS)
def test_one_compilation_for_all_sizes(name):
    module = parse(DYNAMIC_PROGRAMS[name])
    program, cuda = native(module), lowered(module, "tensor-to-cuda", "sm_90a")
    for shapes in SHAPES[name]:
        inputs = inputs_of(module, shapes)
        expected = interpreter.execute(module, inputs)
        for results in (program(*inputs), interpreter.execute(cuda, inputs)):
            for got, want in zip(results, expected, strict=True):
                assert got.shape == want.shape
                assert interpreter.compare(want, got, f32) is None


def test_sizes_are_checked_at_the_call():
    program = native(parse(DYNAMIC_PROGRAMS["dynamic_product"]))
    x, w = np.zeros((2, 5, 48), np.float32), np.zeros((36, 48), np.float32)
    program(x, w)
    for shape, words in (
        ((65, 5, 48), r"argument 'x', axis 0: 'batch' must be from 1 to 64, got 65"),
        ((2, 1, 48), r"argument 'x', axis 1: 'seq' must be from 2 to 4096, got 1"),
        (
            (2, 5, 47),
            r"argument 'x': expected shape \[2, 5, 48\], got .* f32\[batch, seq, 48\]",
        ),
        ((2,), r"argument 'x': expected an axis 1, whose extent is 'seq', got shape \[2\]"),
    ):
        with pytest.raises(UsageError, match=words):
            program(np.zeros(shape, np.float32), w)


def test_equal_sizes_must_be_equal():
    program = native(parse(DYNAMIC_PROGRAMS["dynamic_attention"]))
    q = np.zeros((2, 5, 8), np.float32)
    with pytest.raises(
        UsageError, match=r"argument 'k': expected shape \[2, 5, 8\], got \[2, 6, 8\]"
    ):
        program(q, np.zeros((2, 6, 8), np.float32))


def test_a_size_that_makes_an_inner_tensor_empty_is_refused():
    program = native(parse(DYNAMIC_PROGRAMS["dynamic_windows"]))
    with pytest.raises(UsageError, match=r"with s0 = 1 a tensor inside .* s0 // 2 = 0 elements"):
        program(np.zeros((1, 8), np.float32))


def test_an_index_from_data_is_checked_against_the_size():
    program = native(parse(DYNAMIC_PROGRAMS["dynamic_softmax"]))
    x = np.zeros((3, 4), np.float32)
    with pytest.raises(IndexError, match="index out of range"):
        program(x, np.array([0, 3, 1]))
    program(np.zeros((4, 4), np.float32), np.array([0, 3, 1, 2]))


def test_the_arena_fits_at_every_size():
    """Slots are placed by expressions; no two buffers that live at once may meet, whatever the sizes."""
    module = parse(DYNAMIC_PROGRAMS["dynamic_arena"])
    low = lowered(module, "tensor-to-llvm", "cpu")
    plan = Plan.from_data(build_plan(low, "cpu", llvm_sources(low)))
    assert any(isinstance(b.offset, Expression) for b in plan.buffers)
    for (shape,) in SHAPES["dynamic_arena"]:
        at = plan.at([shape])
        inside = [b for b in at.buffers if b.offset is not None]
        assert all(b.offset + b.array.nbytes <= at.arena_bytes for b in inside)


def test_plans_refuse_what_is_no_extent():
    assert read_extent("(s0 + 3) // 4 * s1 % 7 - 1").evaluate([5, 2]) == (5 + 3) // 4 * 2 % 7 - 1
    for text in ("s0 ** 2", "__import__('os')", "s0 / 2", "x", "s0 // 0", "", 1.5):
        with pytest.raises(ValueError, match="not an extent"):
            read_extent(text)
    module = parse(DYNAMIC_PROGRAMS["dynamic_product"])
    low = lowered(module, "tensor-to-llvm", "cpu")
    data = build_plan(low, "cpu", llvm_sources(low))
    data["steps"][0]["blocks"] = "s7"
    with pytest.raises(DeploError, match="fewer sizes than it uses"):
        Plan.from_data(data)
