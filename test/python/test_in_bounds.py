"""Every load and store of the corpus is proven to stay within its buffer, at Loop and at Tile IR."""

import pytest

pytest.importorskip("z3")

from in_bounds import accesses, unproven
from ir_programs import DYNAMIC_PROGRAMS, parse
from programs import CORPUS, compiled
from xdsl.parser import Parser

from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", CORPUS)
def test_every_access_is_within_bounds(name: str, target: str) -> None:
    program = compiled(name, target)
    for stage in ("loop", "tile"):
        for op in accesses(program.stage(stage)):
            assert (problem := unproven(op)) is None, f"{stage}: {problem}"


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", DYNAMIC_PROGRAMS)
def test_every_access_of_dynamic_sizes_is_within_bounds(name: str, target: str) -> None:
    module = parse(DYNAMIC_PROGRAMS[name])
    for segment in ("tensor-to-loop", "loop-to-tile"):
        for each in make_pipeline(segment, target):
            each.apply(make_context(), module)
        for op in accesses(module):
            assert (problem := unproven(op)) is None, f"{segment}: {problem}"


@pytest.mark.parametrize(
    ("index", "within"),
    [
        ("%i", True),
        ("%i + 1", False),
        ("(%i * 3) mod 4", True),
        ("%i floordiv 2 + 2", True),
        ("%i floordiv 2 + 3", False),
        ("%i - 1", False),
    ],
)
def test_the_proof_itself(index: str, within: bool) -> None:
    source = f"""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {{
      ^bb0(%x: memref<4xf32>, %out: memref<4xf32>):
        loop.for %i = 0 to 4 {{
          %v = loop.load %x[{index}] : memref<4xf32>
          loop.store %v, %out[%i] : memref<4xf32>
        }}
      }}
      func.return %y : tensor<4xf32>
    }}"""
    module = Parser(make_context(), source).parse_module()
    load = next(accesses(module))
    assert (unproven(load) is None) == within
