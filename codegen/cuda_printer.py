"""CUDA C++ text: a walk over the `cuda` dialect, one short method per operation.

Printing decides nothing: each operation is one C++ construct. Names come from the program's name hints;
what is not an identifier is cleaned, and names that meet again in one function get a number. Literals,
components of vectors, and elements of registers on their way into a vector are written where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from io import StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import (
    AffineMapAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.base_printer import BasePrinter
from xdsl.utils.target import Target

from ..dialects import cuda, kernel, loop
from ..dialects.cuda_names import RESERVED
from ..dialects.cuda_scalars import form_of
from ..dialects.inside import ops_in
from ..dialects.instructions import instruction_of
from ..dialects.sizes import Extent, print_extent, static_shape
from ..dialects.stored import stored_in
from ..dialects.tensor_map import TensorMapType
from ..errors import DeploError
from ..index.text import print_condition, print_index_expr
from ..machine.cuda_scalars import TYPES
from .cuda_registers import carried_by, is_replaced_next, is_written_where_used, places_of
from .cuda_scalars import scalar_text
from .cuda_statements import STATEMENTS, instruction_text
from .index_text import IndexText
from .literals import literal_text

_TENSOR_MAP = """
#ifndef DEPLO_TENSOR_MAP
#define DEPLO_TENSOR_MAP
struct __align__(64) TensorMap { unsigned long long words[16]; };
#endif"""
"""The type of a tensor map, which the driver's headers define; in front of each kernel that gets one."""


@dataclass(eq=False, repr=False)
class CudaPrinter(BasePrinter):
    """Prints `cuda` operations as C++."""

    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str], init=False)
    variables: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """The values that are mutable locals."""
    placed: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """The values that are assigned to elements of registers when they are computed."""
    taken: set[str] = field(default_factory=set[str], init=False)
    index_type: str = field(default="int", init=False)
    shared: str = field(default="", init=False)
    """The name of the shared memory that the kernel's launch asks for."""

    # ------------------------------------------------------------------ names and types

    def name(self, value: SSAValue) -> str:
        """The C++ name of a value, or the literal that it is."""
        if value not in self.names:
            self.names[value] = self.fresh(value.name_hint or "v")
        return self.names[value]

    def fresh(self, hint: str) -> str:
        """A C++ name that nothing has yet."""
        stem = re.sub(r"[^A-Za-z0-9_]|(?<=_)_", "", hint)[:48].rstrip("_") or "v"
        if not re.match(r"[A-Za-z]", stem):
            stem = f"v{stem.lstrip('_')}"
        name, count = stem, 0
        while name in self.taken or name in RESERVED:
            count += 1
            name = f"{stem}_{count}"
        self.taken.add(name)
        return name

    def type(self, type: Attribute) -> str:
        """The C++ type of a value."""
        match type:
            case IndexType():
                return self.index_type
            case TensorMapType():
                return "const __grid_constant__ TensorMap"
            case MemRefType():
                return f"{self.type(type.element_type)}* __restrict__"
            case _:
                return TYPES[str(type)]

    # ------------------------------------------------------------------ statements

    def line(self, text: str) -> None:
        """One line at the current indentation."""
        self.print_string("\n")
        self.print_string(text)

    def let(self, value: SSAValue, expression: str) -> None:
        """`const T name = expression;`, or an assignment."""
        self.line(f"{self.declared(value, self.type(value.type))} = {expression};")

    def declared(self, value: SSAValue, type: str) -> str:
        """`const T name`, or the element of registers where a value lies."""
        return self.name(value) if value in self.placed else f"const {type} {self.name(value)}"

    def statement(self, op: Operation) -> None:
        """The lines of one operation."""
        self.print(op)

    def body(self, block: Block, variables: Sequence[SSAValue] = ()) -> None:
        """The statements of a block, indented; its yield assigns to variables."""
        with self.indented(2):
            for op in block.ops:
                self.statement(op)
            if variables and block.last_op is not None:
                self._assign(variables, block.last_op.operands)

    def _assign(self, variables: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """Assign in parallel: a value that is itself one of the variables is copied first."""
        names = [self.name(v) for v in variables]
        changed = [(n, v) for n, v in zip(names, values, strict=True) if self.name(v) != n]
        copies: dict[str, str] = {}
        for _, value in changed:
            name = self.name(value)
            if name in names and len(names) > 1:
                copies[name] = self.fresh("v")
                self.line(f"{self.type(value.type)} {copies[name]} = {name};")
        for target, value in changed:
            self.line(f"{target} = {copies.get(self.name(value), self.name(value))};")

    def indices(self, map: AffineMapAttr, operands: Sequence[SSAValue]) -> list[str]:
        """The C++ text of index expressions."""

        def text(expr: AffineExpr) -> str:
            text = IndexText()
            print_index_expr(text, expr, lambda i: text.print_string(self.name(operands[i])))
            return text.cpp()

        return [text(expr) for expr in map.data.results]

    def index(self, map: AffineMapAttr, operands: Sequence[SSAValue]) -> str:
        """The C++ text of an index expression."""
        return self.indices(map, operands)[0]

    def element(self, pointer: SSAValue, map: AffineMapAttr, operands: Sequence[SSAValue]) -> str:
        """The C++ text of an element of memory."""
        return f"{self.name(pointer)}[{self.index(map, operands)}]"

    def extent(self, extent: Extent) -> str:
        """The C++ text of an extent."""
        text = IndexText()
        print_extent(text, extent)
        return text.cpp()

    def place(self, op: Operation) -> None:
        """Have the results of an operation lie in the registers or the variable where they go next."""
        for value, store in places_of(op).items():
            self.names[value] = self.element(store.memref, store.map, store.indices)
            self.placed.add(value)
        if (variable := carried_by(op)) is not None:
            self.names[op.results[0]] = self.name(variable)
            self.placed.add(op.results[0])

    @singledispatchmethod
    def print(self, op: Operation) -> None:
        """Print one operation; host code and other dialects have no CUDA text."""
        self.place(op)
        if (form := form_of(op)) is not None:
            text = scalar_text(self, op, form)
        elif (row := instruction_of(op)) is not None:
            text = instruction_text(self, op, row)
        elif (statement := STATEMENTS.get(type(op))) is not None:
            text = statement(self, op)
        else:
            raise ValueError(f"'{op.name}' has no CUDA form")
        for line in text.split("\n"):
            self.line(line)

    @print.register
    def _(self, op: cuda.FuncOp) -> None:
        forms = [form_of(o) for o in ops_in(op)]
        called = {name for form in forms if form is not None for name in form.functions}
        sizes = [f"s{i}" for i in op.size_arguments]
        self.shared = f"{op.sym_name.data}_shared"
        self.names, self.variables, self.placed = {}, set(), set()
        self.taken = {op.sym_name.data, self.shared, *called, *sizes}
        assert op.index_type is not None
        self.index_type = self.type(op.index_type)
        stored = stored_in(op.body)
        parameters = [
            f"{'const ' if isinstance(a.type, MemRefType) and a not in stored else ''}"
            f"{self.type(a.type)} {self.name(a)}"
            for a in op.body.block.args
        ]
        arguments = ",\n    ".join([*parameters, *(f"const {self.index_type} {s}" for s in sizes)])
        threads = op.threads.value.data
        if any(isinstance(a.type, TensorMapType) for a in op.body.block.args):
            self.print_string(_TENSOR_MAP)
        self.line(f"// <<<{self.extent(op.blocks.data)}, {threads}>>>")
        bounds = f"{threads}" if op.resident is None else f"{threads}, {op.resident.value.data}"
        cluster = "" if op.cluster is None else f"__cluster_dims__({op.cluster.value.data}, 1, 1) "
        signature = f"__launch_bounds__({bounds}) {cluster}{op.sym_name.data}("
        self.line(f'extern "C" __global__ void {signature}')
        self.line(f"    {arguments})")
        self.line("{")
        if op.parts:
            align = max(part.alignment for part in op.parts)
            with self.indented(2):
                self.line(f"extern __shared__ __align__({align}) unsigned char {self.shared}[];")
        self.body(op.body.block)
        self.line("}")
        self.print_string("\n")

    @print.register
    def _(self, op: kernel.ThreadIdOp) -> None:
        self.let(op.result, "threadIdx.x")

    @print.register
    def _(self, op: kernel.BlockIdOp) -> None:
        self.let(op.result, "blockIdx.x")

    @print.register
    def _(self, op: arith.ConstantOp) -> None:
        assert isinstance(op.value, IntegerAttr | FloatAttr)
        self.names[op.result] = literal_text(op.value.value.data, op.result.type)

    @print.register
    def _(self, op: loop.IndexOp) -> None:
        text = self.index(op.map, op.operands_)
        if not op.operands_ and all(isinstance(u.operation, scf.ForOp) for u in op.result.uses):
            self.names[op.result] = text  # an extent, in the head of its loop
        else:
            self.let(op.result, text)

    @print.register
    def _(self, op: loop.TestOp) -> None:
        self.place(op)
        text = IndexText()
        print_condition(
            text, op.set.data, lambda i: text.print_string(self.name(op.operands_[i])), " && "
        )
        self.let(op.result, text.cpp())

    @print.register
    def _(self, op: kernel.AssertOp) -> None:
        failed = self.fresh("v")
        self.line(f"const bool {failed} = !{self.name(op.condition)};")
        self.line(f"if ({failed}) {{")
        with self.indented(2):
            self.line("__trap();")
        self.line("}")

    @print.register
    def _(self, op: loop.LoadOp) -> None:
        text = self.element(op.memref, op.map, op.indices)
        if is_written_where_used(op):
            self.names[op.result] = text
            if is_replaced_next(op):
                self.variables.add(op.result)
        else:
            self.place(op)
            self.let(op.result, text)

    @print.register
    def _(self, op: loop.StoreOp) -> None:
        if op.value not in self.placed:
            self.line(f"{self.element(op.memref, op.map, op.indices)} = {self.name(op.value)};")

    @print.register
    def _(self, op: kernel.SharedOp) -> None:
        element, extent = self._row(op.result)
        align = "" if op.align is None else f"__align__({op.alignment}) "
        if op.place is not None:
            first = f"{self.shared} + {op.place[0]}"
            self.line(f"{element}* const {self.name(op.result)} = ({element}*)({first});")
            return
        self.line(f"__shared__ {align}{element} {self.name(op.result)}[{extent}];")

    @print.register
    def _(self, op: loop.RegistersOp) -> None:
        element, extent = self._row(op.result)
        self.line(f"{element} {self.name(op.result)}[{extent}];")

    def _row(self, memory: SSAValue) -> tuple[str, int]:
        """The type and the number of the elements of memory."""
        assert isinstance(memory.type, MemRefType)
        (extent,) = static_shape(memory.type)
        return self.type(memory.type.element_type), extent

    @print.register
    def _(self, op: kernel.ShuffleOp) -> None:
        self.place(op)
        arguments = f"0xffffffffu, {self.name(op.value)}, {op.lane_mask.value.data}"
        self.let(op.result, f"__shfl_xor_sync({arguments})")

    @print.register
    def _(self, op: scf.ForOp) -> None:
        counter, *arguments = op.body.block.args
        for initial, argument, result in zip(op.iter_args, arguments, op.res, strict=True):
            first = self.name(initial)
            self.line(f"{self.type(result.type)} {self.name(result)} = {first};")
            self.names[argument] = self.name(result)
        self.variables |= {*arguments, *op.res}
        if "unroll" in op.attributes:
            self.line("#pragma unroll")
        if "rolled" in op.attributes:
            self.line("#pragma unroll 1")
        k, low, end, step = map(self.name, (counter, op.lb, op.ub, op.step))
        advance = f"++{k}" if step == "1" else f"{k} += {step}"
        self.line(f"for ({self.type(counter.type)} {k} = {low}; {k} < {end}; {advance}) {{")
        self.body(op.body.block, op.res)
        self.line("}")

    @print.register
    def _(self, op: scf.IfOp) -> None:
        for result in op.output:
            self.line(f"{self.type(result.type)} {self.name(result)};")
        self.variables |= {*op.output}
        self.line(f"if ({self.name(op.cond)}) {{")
        self.body(op.true_region.block, op.output)
        otherwise = op.false_region.blocks.first
        if otherwise is not None and (op.output or len(list(otherwise.ops)) > 1):
            self.line("} else {")
            self.body(otherwise, op.output)
        self.line("}")

    @print.register
    def _(self, op: scf.YieldOp) -> None:
        pass  # `body` assigns its values


def kernel_texts(module: ModuleOp) -> dict[str, str]:
    """The CUDA C++ of each `cuda.func` of a module, by symbol."""
    texts: dict[str, str] = {}
    for op in module.body.block.ops:
        if isinstance(op, cuda.FuncOp):
            output = StringIO()
            CudaPrinter(output).print(op)
            texts[op.sym_name.data] = output.getvalue().lstrip("\n")
    return texts


def cuda_source(module: ModuleOp) -> str:
    """One CUDA C++ file with all kernels of a module."""
    return "\n".join(kernel_texts(module).values())


def _is_host(function: func.FuncOp) -> bool:
    """Whether a function is `@main`, or a part of the program that it runs."""
    is_part = function.sym_visibility == StringAttr("private") and bool(function.body.blocks)
    return is_part or function.sym_name.data == "main"


@dataclass(frozen=True)
class CudaTarget(Target):
    """`-t cuda`: the CUDA C++ of every `cuda.func` in the module, and nothing else."""

    name = "cuda"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text; DeploError if the module still holds kernels of another dialect."""
        for op in module.body.block.ops:
            if not isinstance(op, cuda.FuncOp | func.FuncOp):
                raise DeploError(f"'{op.name}' has no CUDA form; run `lower-to-cuda` first")
            if isinstance(op, func.FuncOp) and not _is_host(op):
                name = op.sym_name.data
                raise DeploError(
                    f"@{name} is neither a kernel nor @main nor a private function that @main runs"
                )
        output.write(cuda_source(module))
