"""Small programs in tile IR, compiled for the CPU; shared by the tests of the CPU back end."""

import json

from xdsl.context import Context
from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.arg_spec import parse_pipeline

from deplo.analysis.plan import build_plan
from deplo.analysis.verify import Verifier
from deplo.codegen.llvm_sources import llvm_sources
from deplo.dialects import get_all_dialects
from deplo.passes.pipelines import expand, make_passes
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.plan import Plan

BLOCK = 256


def lower(text: str, pipeline: str = "tile-to-llvm") -> ModuleOp:
    """`text` after `pipeline`, verified after each pass."""
    ctx = Context()
    for get_dialects in (get_xdsl_dialects, get_all_dialects):
        for name, factory in get_dialects().items():
            ctx.register_dialect(name, factory)
    module = Parser(ctx, text).parse_module()
    verifier = Verifier()
    for each in expand(make_passes(parse_pipeline(pipeline))):
        each.apply(ctx, module)
        verifier.verify(module)
    return module


def cpu_plan(text: str) -> Plan:
    """The plan of a tile IR program, through its JSON form."""
    module = lower(text)
    return Plan.from_data(json.loads(json.dumps(build_plan(module, "cpu", llvm_sources(module)))))


def cpu_program(text: str) -> CpuProgram:
    """A tile IR program, ready to run on this CPU."""
    return CpuProgram(cpu_plan(text))


def elementwise(body: str, inputs: dict[str, str], output: str, blocks: int) -> CpuProgram:
    """One kernel over `blocks` * 256 elements; `body` computes `%r` from the inputs' names."""
    size = blocks * BLOCK
    names = ", ".join(f"%{name}" for name in inputs)
    tensors = ", ".join(f"tensor<{size}x{t}>" for t in inputs.values())
    outer = ", ".join(f"%{name}: tensor<{size}x{t}>" for name, t in inputs.items())
    inner = ", ".join(f"%in_{name}: memref<{size}x{t}>" for name, t in inputs.items())
    at = f"[%b * {BLOCK} + %j]"
    loads = "\n".join(
        f"%{name} = loop.load %in_{name}{at} : memref<{size}x{t}>" for name, t in inputs.items()
    )
    return cpu_program(f"""
func.func @main({outer}) -> tensor<{size}x{output}> {{
  %y = loop.kernel @k({names}) : ({tensors}) -> tensor<{size}x{output}> {{
  ^bb0({inner}, %out: memref<{size}x{output}>):
    tile.launch (%b = {blocks} : block) {{
      loop.for %j = 0 to {BLOCK} {{
        {loads}
        {body}
        loop.store %r, %out{at} : memref<{size}x{output}>
      }}
    }}
  }}
  func.return %y : tensor<{size}x{output}>
}}""")
