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
from deplo.passes.schedule.axes import axis_names
from deplo.passes.schedule.bind import PLACES, BindPass
from deplo.passes.schedule.fuse import FusePass
from deplo.passes.schedule.primitive import Primitive
from deplo.passes.schedule.reorder import ReorderPass
from deplo.passes.schedule.split import SplitPass
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

BODIES = {"pointwise": POINTWISE, "transposed": TRANSPOSED, "rows": ROWS}


def program(body: str, extents: list[int]) -> str:
    """A kernel of one nest of free loops."""
    names = "ijk"[: len(extents)]
    axes, turned = (", ".join(f"%{n}" for n in order) for order in (names, names[::-1]))
    shape, turned_shape = ("x".join(map(str, order)) for order in (extents, extents[::-1]))
    given = f"{shape}x5xf32" if body is ROWS else f"{shape}xf32"
    made = f"{turned_shape}xf32" if body is TRANSPOSED else f"{shape}xf32"
    text = body.format(axes=axes, turned=turned, shape=shape, turned_shape=turned_shape)
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
    axis = st.sampled_from(names)
    made = [
        st.builds(SplitPass, axis=axis, by=st.integers(1, 9)),
        st.builds(BindPass, axis=axis, to=st.sampled_from(PLACES)),
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
    inputs = interpreter.random_inputs(module)[-1]
    (expected,) = interpreter.execute(module, inputs)
    apply(module, make_passes(parse_pipeline("tileify")))
    ((_, launch),) = launches_of(module)
    for _ in range(data.draw(st.integers(1, 5))):
        if not (names := axis_names(launch)):
            break
        apply(module, [data.draw(steps(names))])
        (result,) = interpreter.execute(module, inputs)
        np.testing.assert_array_equal(result, expected)
    threads = launch.num_threads
    if not isinstance(threads, int) or not 0 < threads <= 1024 or 0 in extents:
        return
    # On the machine that finds races; and the kernel is one for a GPU.
    (result,) = interpreter.execute(lowered(module, "tile-to-kernel"), inputs)
    np.testing.assert_array_equal(result, expected)
