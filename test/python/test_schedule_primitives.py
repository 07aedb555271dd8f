"""Random sequences of primitives on random nests: what they make means what was there, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.parser import Parser
from xdsl.utils.arg_spec import parse_pipeline

from deplo import interpreter
from deplo.analysis.launches import launches_of
from deplo.analysis.verify import verify_module
from deplo.passes.pipelines import expand, make_passes
from deplo.passes.schedule.bind import PLACES, BindPass
from deplo.passes.schedule.fill import FillPass
from deplo.passes.schedule.fuse import FusePass
from deplo.passes.schedule.partial import PartialPass
from deplo.passes.schedule.pipeline import PipelinePass
from deplo.passes.schedule.primitive import Primitive
from deplo.passes.schedule.reorder import ReorderPass
from deplo.passes.schedule.split import SplitPass
from deplo.passes.schedule.stage import PLACES as KEPT_IN
from deplo.passes.schedule.stage import StagePass
from deplo.passes.schedule.tensorize import TensorizePass
from deplo.passes.tile.named_axes import axis_names
from deplo.program_stages import make_context

EXTENTS = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 12, 17])

POINTWISE = """
        %v = loop.load %x[{axes}] : memref<{shape}xf32>
        %w = arith.addf %v, %v : f32
        loop.store %w, %y[{axes}] : memref<{shape}xf32>"""

TRANSPOSED = """
        %v = loop.load %x[{axes}] : memref<{shape}xf32>
        %w = arith.negf %v : f32
        loop.store %w, %y[{turned}] : memref<{turned_shape}xf32>"""

ROWS = """
        %s = loop.for %r = 0 to 5 reduce(add) -> f32 {{
          %v = loop.load %x[{axes}, %r] : memref<{shape}x5xf32>
          loop.yield %v : f32
        }}
        %i_as_f32 = loop.load %x[{axes}, 0] : memref<{shape}x5xf32>
        %w = arith.mulf %s, %i_as_f32 : f32
        loop.store %w, %y[{axes}] : memref<{shape}xf32>"""

SWEEPS = """
        %s = loop.for %r = 0 to 12 reduce(add) -> f32 {{
          %v = loop.load %x[{axes}, %r] : memref<{shape}x12xf32>
          loop.yield %v : f32
        }}
        %t = loop.for %r = 0 to 12 reduce(max) -> f32 {{
          %u = loop.load %x[{axes}, %r] : memref<{shape}x12xf32>
          %d = arith.subf %u, %s : f32
          loop.yield %d : f32
        }}
        loop.store %t, %y[{axes}] : memref<{shape}xf32>"""

PRODUCT = """
        %s = loop.for %r = 0 to 12 reduce(add) -> f32 {{
          %v = loop.load %x[{axes}, %r] : memref<{shape}x12xf32>
          %u = loop.load %x[{origin}, %r] : memref<{shape}x12xf32>
          %p = arith.mulf %v, %u : f32
          loop.yield %p : f32
        }}
        loop.store %s, %y[{axes}] : memref<{shape}xf32>"""

BODIES = {
    "pointwise": POINTWISE,
    "transposed": TRANSPOSED,
    "rows": ROWS,
    "sweeps": SWEEPS,
    "product": PRODUCT,
}
LENGTHS = {ROWS: 5, SWEEPS: 12, PRODUCT: 12}
BEGINNINGS = ["tileify", "tileify,split{axis=r by=4 into=r_block,r},stage{to=shared}"]
"""Chunks of a sweep in slabs are what few random sequences come to."""


def program(body: str, extents: list[int]) -> str:
    """A kernel of one nest of free loops."""
    names = "ijk"[: len(extents)]
    axes, turned = (", ".join(f"%{n}" for n in order) for order in (names, names[::-1]))
    shape, turned_shape = ("x".join(map(str, order)) for order in (extents, extents[::-1]))
    given = f"{shape}x{LENGTHS[body]}xf32" if body in LENGTHS else f"{shape}xf32"
    made = f"{turned_shape}xf32" if body is TRANSPOSED else f"{shape}xf32"
    origin = ", ".join("0" for _ in names)
    text = body.format(
        axes=axes, turned=turned, shape=shape, turned_shape=turned_shape, origin=origin
    )
    for name, extent in reversed([*zip(names, extents, strict=True)]):
        text = f"loop.for %{name} = 0 to {extent} {{ {text}\n }}"
    return f"""
func.func @main(%x: tensor<{given}>) -> tensor<{made}> {{
  %y = loop.kernel @k(%x) : (tensor<{given}>) -> tensor<{made}> {{
  ^bb0(%x: memref<{given}>, %y: memref<{made}>):
    {text}
  }}
  func.return %y : tensor<{made}>
}}"""


def steps(names: list[str]) -> st.SearchStrategy[Primitive]:
    """Primitives about axes of these names; some of them decline."""
    axis, sweep = st.sampled_from(names), st.sampled_from(["r", "r_block"])
    made = [
        st.builds(SplitPass, axis=axis | sweep, by=st.integers(1, 9)),
        st.builds(TensorizePass, axes=st.tuples(axis), by=st.tuples(st.integers(1, 4))),
        st.builds(
            FillPass,
            via=st.sampled_from([(), ("sync",), ("cp_async",), ("tma",)]),
            pad=st.sampled_from([(), (1,), (4,), (0, 2)]),
            buffers=st.sampled_from([(), (2,), (3,)]),
            row=st.sampled_from([(), (8,)]),
        ),
        st.builds(PipelinePass, axis=sweep),
        st.builds(BindPass, axis=axis, to=st.sampled_from(PLACES)),
        st.builds(
            PartialPass,
            across=st.just("thread"),
            parts=st.sampled_from([1, 2, 4, 8, 64]),
            vector=st.sampled_from([1, 2, 4]),
            columns=st.booleans(),
        ),
        st.builds(
            PartialPass, across=st.just("block"), parts=st.integers(1, 5), grain=st.integers(1, 3)
        ),
        st.builds(StagePass, to=st.sampled_from(KEPT_IN)),
    ]
    if len(names) > 1:
        n = st.integers(0, len(names) - 2)
        made.append(n.map(lambda n: FusePass(axes=(names[n], names[n + 1]))))
        made.append(st.permutations(names).map(lambda order: ReorderPass(axes=tuple(order))))
    return st.one_of(made)


def apply(module, passes) -> None:
    context = make_context()
    for each in passes:
        each.apply(context, module)
        verify_module(module)


def lowered(module, pipeline: str):
    """The module after the passes of a pipeline."""
    made = module.clone()
    apply(made, expand(make_passes(parse_pipeline(pipeline))))
    return made


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@settings(deadline=None, max_examples=25)
@given(data=st.data(), extents=st.lists(EXTENTS, min_size=1, max_size=3))
def test_primitives_leave_the_meaning_as_it_is(body, data, extents):
    module = Parser(make_context(), program(body, extents)).parse_module()
    inputs = [np.round(8 * x) for x in interpreter.random_inputs(module)[-1]]  # any order of a sum
    (expected,) = interpreter.execute(module, inputs)
    apply(module, make_passes(parse_pipeline(data.draw(st.sampled_from(BEGINNINGS)))))
    for _ in range(data.draw(st.integers(1, 5))):
        names = sorted({name for _, each in launches_of(module) for name in axis_names(each)})
        apply(module, [data.draw(steps(names or ["i"]))])
        (result,) = interpreter.execute(module, inputs)
        np.testing.assert_array_equal(result, expected)
    counts = [launch.num_threads for _, launch in launches_of(module)]
    if not all(isinstance(n, int) and 0 < n <= 1024 for n in counts) or 0 in extents:
        return
    # On the machine that finds races; and the kernels are some for a GPU.
    (result,) = interpreter.execute(lowered(module, "tile-to-kernel"), inputs)
    np.testing.assert_array_equal(result, expected)
