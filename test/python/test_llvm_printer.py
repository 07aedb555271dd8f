"""The text that LLVM reads of functions in the `llvm` dialect."""

import math
import struct

import pytest
from llvmlite import binding
from xdsl.context import Context
from xdsl.dialects import builtin, llvm
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, bf16, f16, f32, f64, i1, i64
from xdsl.parser import Parser

from deplo.codegen.llvm_independence import independent_accesses
from deplo.codegen.llvm_loop_hints import loop_options
from deplo.codegen.llvm_operations import number_text
from deplo.codegen.llvm_printer import GROUP, Notes, llvm_text
from deplo.dialects.schedule import INDEPENDENT_ATTRIBUTE
from deplo.errors import DeploError

LOOP = """
llvm.func @k(%x: !llvm.ptr {llvm.noalias}, %n: i64) {
  %zero = llvm.mlir.constant(START : i64) : i64
  llvm.br ^bb1(%zero : i64)
^bb1(%i: i64):
  %c = "llvm.icmp"(%i, %n) <{predicate = 2 : i64}> : (i64, i64) -> i1
  "llvm.cond_br"(%c)[^bb2, ^bb3] <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i1) -> ()
^bb2:
  %p = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %v = llvm.load %p : !llvm.ptr -> f32
  %w = llvm.fadd %v, %v {fastmathFlags = #llvm.fastmath<contract>} : f32
  llvm.store %w, %p : f32, !llvm.ptr
  %one = llvm.mlir.constant(1 : i64) : i64
  %next = llvm.add %i, %one overflow<nsw> : i64
  llvm.br ^bb1(%next : i64)
^bb3:
  llvm.return
}"""


def functions_of(text: str) -> list[llvm.FuncOp]:
    ctx = Context()
    ctx.load_dialect(builtin.Builtin)
    ctx.load_dialect(llvm.LLVM)
    module = Parser(ctx, text).parse_module()
    return [op for op in module.ops if isinstance(op, llvm.FuncOp)]


def printed(text: str, notes: Notes) -> str:
    """The text of all functions, which LLVM accepts."""
    made = llvm_text([(function, notes) for function in functions_of(text)])
    binding.parse_assembly(made).verify()
    return made


def test_a_loop_reads_as_the_program_names_it() -> None:
    text = printed(LOOP.replace("START", "0"), Notes(['"no-builtins"']))
    assert [line.strip() for line in text.splitlines() if line] == [
        'define void @"k"(ptr noalias %x, i64 %n) "no-builtins" {',
        "entry:",
        "br label %b",
        "b:",
        "%i = phi i64 [ 0, %entry ], [ %next, %b.1 ]",
        "%c = icmp slt i64 %i, %n",
        "br i1 %c, label %b.1, label %b.2",
        "b.1:",
        "%p = getelementptr inbounds float, ptr %x, i64 %i",
        "%v = load float, ptr %p",
        "%w = fadd contract float %v, %v",
        "store float %w, ptr %p",
        "%next = add nsw i64 %i, 1",
        "br label %b",
        "b.2:",
        "ret void",
        "}",
    ]


def test_names_that_meet_become_different() -> None:
    """Values and blocks share their names, and a name may look like one that was made."""
    body = "\n".join(f"%n{n} = llvm.add %a, %a : i64" for n in range(5))
    (function,) = functions_of(f"llvm.func @k(%a: i64) {{\n{body}\n llvm.return\n}}")
    hints = ["a", "a.1", "a", "entry", "a.1"]
    for op, hint in zip(function.body.block.ops, hints, strict=False):
        if op.results:
            op.results[0].name_hint = hint
    text = llvm_text([(function, Notes())])
    binding.parse_assembly(text).verify()
    names = [line.split(" = ")[0].strip() for line in text.splitlines() if " = " in line]
    assert len({*names, "%a", "%entry"}) == 7


def test_a_loop_that_another_left_is_masked_and_others_are_interleaved() -> None:
    for start, count, said in (("0", 4, ["i32 4"]), ("0", 0, []), ("8", 4, ["i32 1", "i1 1"])):
        (function,) = functions_of(LOOP.replace("START", start))
        options = loop_options(function, count)
        told = [option.split(", ")[1] for each in options.values() for option in each]
        assert told == said
        binding.parse_assembly(llvm_text([(function, Notes(loops=options))])).verify()


@pytest.mark.parametrize("marked", [0, 1, 2])
def test_a_loop_is_independent_if_all_of_its_accesses_are(marked: int) -> None:
    (function,) = functions_of(LOOP.replace("START", "0"))
    accesses = [op for op in function.walk() if isinstance(op, llvm.LoadOp | llvm.StoreOp)]
    for op in accesses[:marked]:
        op.attributes[INDEPENDENT_ATTRIBUTE] = builtin.UnitAttr()
    options = loop_options(function, 2)
    independent = independent_accesses(function, options)
    text = llvm_text([(function, Notes(loops=options, independent=independent))])
    binding.parse_assembly(text).verify()
    assert text.count(f"!llvm.access.group {GROUP}") == (2 if marked == 2 else 0)
    assert text.count("parallel_accesses") == (marked == 2)
    assert text.count("!llvm.loop !") == 1


def test_calls_are_declared_once_and_intrinsics_by_their_types() -> None:
    text = printed(
        """
llvm.func @f(f32) -> f32
llvm.func @k(%x: f32, %v: vector<4xf64>) {
  %a = llvm.call @f(%x) : (f32) -> f32
  %b = llvm.call @f(%a) : (f32) -> f32
  %c = "llvm.intr.fma"(%v, %v, %v) : (vector<4xf64>, vector<4xf64>, vector<4xf64>) -> vector<4xf64>
  %d = "llvm.intr.fma"(%a, %b, %x) : (f32, f32, f32) -> f32
  llvm.return
}""",
        Notes(),
    )
    assert text.count("declare") == 3
    assert 'declare float @"f"(float)' in text
    assert 'declare <4 x double> @"llvm.fma.v4f64"' in text
    assert 'declare float @"llvm.fma.f32"' in text


@pytest.mark.parametrize("type", [f16, f32, f64])
@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1.0, 1 / 3, 6e-8, -65504.0, math.inf, -math.inf, math.nan]
)
def test_floats_are_exact(type: builtin.AnyFloat, value: float) -> None:
    """LLVM takes the text for a number of the type, and gives the number's own bits back."""
    text = number_text(FloatAttr(value, type))
    code = {f16: "e", f32: "f", f64: "d"}[type]
    (expected,) = struct.unpack(code, struct.pack(code, value))
    bits = struct.pack("Q", int(text, 16)) if text.startswith("0x") else None
    assert (bits or struct.pack("d", float(text))) == struct.pack("d", expected)
    name = {f16: "half", f32: "float", f64: "double"}[type]
    binding.parse_assembly(f"@x = global {name} {text}").verify()


def test_what_has_no_text_is_refused() -> None:
    assert number_text(IntegerAttr(-1, i1)) == "-1"
    with pytest.raises(DeploError, match=r"the constant .*bf16.* has no text"):
        number_text(FloatAttr(1.0, bf16))
    (function,) = functions_of(LOOP.replace("START", "0"))
    load = next(op for op in function.walk() if isinstance(op, llvm.LoadOp))
    load.properties["ordering"] = IntegerAttr(2, i64)
    with pytest.raises(DeploError, match=r"llvm\.load: an access of a special kind"):
        llvm_text([(function, Notes())])
    for text, said in (
        ("%y = llvm.mlir.zero : !llvm.ptr\n llvm.return", r"llvm\.mlir\.zero has no text"),
        ("llvm.unreachable", r"llvm\.unreachable has no text"),
    ):
        (function,) = functions_of(f"llvm.func @k() {{\n {text}\n}}")
        with pytest.raises(DeploError, match=said):
            llvm_text([(function, Notes())])


def test_without_names_equal_kernels_are_one_text() -> None:
    text = LOOP.replace("START", "0")
    other = text.replace("%x", "%weights").replace("%i", "%position").replace("%v", "%w0")
    (one,), (two,) = functions_of(text), functions_of(other)
    assert llvm_text([(one, Notes())]) != llvm_text([(two, Notes())])
    assert llvm_text([(one, Notes())], named=False) == llvm_text([(two, Notes())], named=False)
