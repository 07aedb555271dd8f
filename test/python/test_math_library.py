"""The library of elementary functions: LLVM's text, and the functions that passes call."""

import re
from collections import Counter
from pathlib import Path

import pytest
from cpu_programs import elementwise
from llvmlite import binding
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, UnitAttr, f32, f64

from deplo.codegen.math_library import is_in_library, link
from deplo.passes.llvm.math_functions import library_name, name_of
from deplo.passes.llvm.relax_maxima import AT_MOST_ZERO
from deplo.runtime.jit import assembly

TEXT = "\n".join(
    path.read_text()
    for path in (Path(__file__).resolve().parents[2] / "codegen" / "math").glob("*.ll")
)
DEFINED = Counter(re.findall(r"^define .*@(\w+)\(", TEXT, re.MULTILINE))
SMALL = {f32: ("sin", "cos", "tan"), f64: ("sin", "cos")}


def called() -> set[str]:
    """The functions of the library that `expand-math` and `small-angles` may call."""
    ops = [kind.create(result_types=[t]) for t in (f32, f64) for kind in math.Math.operations]
    ops.append(math.ExpOp.create(result_types=[f32], attributes={AT_MOST_ZERO: UnitAttr()}))
    one = arith.ConstantOp(FloatAttr(1.0, f32))
    for kind in (math.ErfOp, math.TanhOp):
        ops.append(kind.create(result_types=[f32]))
        arith.AddfOp(ops[-1].results[0], one.result)
    names = {name_of(op, scales=scales) for op in ops for scales in (False, True)}
    names |= {library_name(f, type, "small") for type, found in SMALL.items() for f in found}
    names |= {library_name("is_large_angle", type) for type in SMALL}
    return {name for name in names if name and name.startswith("deplo_")}


CALLED = sorted(called())


def test_every_function_is_defined_once() -> None:
    assert set(DEFINED.values()) == {1}
    assert len(CALLED) == 43


@pytest.mark.parametrize("name", CALLED)
def test_a_function_and_what_it_calls_are_a_module(name: str) -> None:
    assert is_in_library(name)
    linked = link([name])
    module = binding.parse_assembly("\n".join([*linked.declarations.values(), *linked.definitions]))
    module.verify()
    assert all(not f.is_declaration or f.name.startswith("llvm.") for f in module.functions)


def test_no_function_is_there_for_nobody() -> None:
    linked = "\n".join(link(CALLED).definitions)
    assert set(re.findall(r"^define .*@(\w+)\(", linked, re.MULTILINE)) == set(DEFINED)


def test_a_kernel_holds_the_functions_that_it_needs_and_its_code_calls_none() -> None:
    program = elementwise("%r = math.tanh %x : f32", {"x": "f32"}, "f32", 1)
    (kernel,) = program.plan.kernels
    needed = {"deplo_tanh_f32", "deplo_exp_moderate_f32", "deplo_exp_reduced_f32"}
    defined = re.findall(r"^define .*@\"?(\w+)", kernel.source, re.MULTILINE)
    assert set(defined) == {*needed, "k"}
    code = assembly(kernel.source)
    assert "deplo_" not in code
    assert not re.search(r"^\s+(call|bl)\b", code, re.MULTILINE)
