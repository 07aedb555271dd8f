"""C11 with OpenMP for a module of upstream dialects: func, scf, memref, arith, math and `cf.assert`.

    func.func @k_neg(%x: memref<2x8xf32>, %y: memref<2x8xf32>) {
      scf.parallel (%i) = (%c0) to (%c2) step (%c1) {
        scf.for %j = %c0 to %c8 step %c1 {
          %v = memref.load %x[%i, %j]   %w = arith.negf %v   memref.store %w, %y[%i, %j]
prints as
    static void k_neg(const float x[restrict 2][8], float y[restrict 2][8])
    {
        #pragma omp parallel for
        for (long i = 0; i < 2; ++i) {
            for (long j = 0; j < 8; ++j) {
                y[i][j] = -x[i][j];

A value that is used once, in the block where it is computed, is a part of the expression that uses it; all
others are variables, named as in the IR. What is loaded is never moved past a store.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from io import StringIO
from typing import IO

from xdsl.context import Context
from xdsl.dialects import arith, cf, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.base_printer import BasePrinter
from xdsl.utils.target import Target

from ..dialects.inside import ops_in
from ..errors import DeploError
from .c_helpers import helper_texts
from .c_names import free_name
from .c_structure import (
    SUMS,
    is_constant,
    is_inlined,
    only_user,
    parameter_in_c,
    reduction,
    shape_in_c,
    written_arrays,
)
from .c_values import ANY, SUM, Text, Values, c_type, conditional, is_expression

LONGEST = 72
"""Characters of an expression above which it becomes a variable."""

HEADERS = ("math", "stdbool", "stdint", "stdio", "stdlib", "string")

WIDE = 88
"""Characters of a statement above which it goes on in a second line."""

SHORT = 24
"""Characters up to which an index that has no name is written wherever it is used."""

_COMPOUND = {**SUMS, arith.SubfOp: "-", arith.DivfOp: "/"}


@dataclass(eq=False, repr=False)
class CPrinter(BasePrinter):
    """Prints functions of upstream dialects as C."""

    values: Values = field(default_factory=Values, init=False)
    taken: set[str] = field(default_factory=set[str], init=False)
    functions: dict[str, func.FuncOp] = field(default_factory=dict[str, func.FuncOp], init=False)
    callees: set[str] = field(default_factory=set[str], init=False)
    """The functions that others in the module call."""
    changing: set[SSAValue] = field(default_factory=set[SSAValue], init=False)
    """What loops carry, which are variables that change, and what is computed from it."""

    # ------------------------------------------------------------------ names and types

    def fresh(self, hint: str | None) -> str:
        """A C name that nothing in the function has yet."""
        name = free_name(hint, self.taken)
        self.taken.add(name)
        return name

    def name(self, value: SSAValue) -> str:
        """Give a value a name of its own."""
        name = self.fresh(value.name_hint)
        self.values.texts[value] = Text(name)
        return name

    def text(self, value: SSAValue, binds: int = ANY) -> str:
        """The name of a value, or the expression that it is."""
        return self.values.texts[value].at(binds)

    def element(self, array: SSAValue, indices: Sequence[SSAValue]) -> str:
        """An element of an array."""
        places = "".join(f"[{self.text(i)}]" for i in indices) or "[0]"
        return self.text(array) + places

    # ------------------------------------------------------------------ lines

    def line(self, text: str) -> None:
        """One line at the current indentation."""
        self.print_string("\n")
        self.print_string(text)

    def body(self, block: Block, carried: Sequence[SSAValue] = ()) -> None:
        """The statements of a block, indented; their names are free again after it.

        At its end, the variables of what a loop has `carried` get their next values.
        """
        outside = set(self.taken)
        with self.indented(2):
            for op in block.ops:
                self.print(op)
            if carried and block.last_op is not None:
                self._carry(carried, block.last_op.operands)
        self.taken = outside

    # ------------------------------------------------------------------ expressions

    def _value(self, op: Operation, text: Text) -> None:
        """A value: part of the expression that uses it where that is possible, else a variable."""
        (result,) = op.results
        if any(value in self.changing for value in op.operands):
            self.changing.add(result)
        short = isinstance(result.type, IndexType) and len(text.code) <= SHORT
        anywhere = short and result.name_hint is None and result not in self.changing
        stored = isinstance(only_user(op), memref.StoreOp)
        limit = 2 * LONGEST if stored else LONGEST
        if anywhere or (is_inlined(op) and len(text.code) <= limit):
            self.values.texts[result] = text
            return
        kind = c_type(result.type)
        self.line(f"const {kind} {self.name(result)} = {text.code};")

    def _region_text(self, block: Block) -> Text | None:
        """The value that a block of expressions alone yields."""
        *ops, end = block.ops
        if len(end.operands) != 1 or not all(
            is_expression(op) or isinstance(op, memref.LoadOp) for op in ops
        ):
            return None
        if any(not is_constant(op) and only_user(op) is None for op in ops):
            return None
        for op in ops:
            text = self._load(op) if isinstance(op, memref.LoadOp) else self.values.expression(op)
            assert text is not None
            self.values.texts[op.results[0]] = text
        text = self.values.texts[end.operands[0]]
        return text if len(text.code) <= LONGEST else None

    def _load(self, op: memref.LoadOp) -> Text:
        return Text(self.element(op.memref, op.indices))

    # ------------------------------------------------------------------ statements

    @singledispatchmethod
    def print(self, op: Operation) -> None:
        """Print one operation. Raises DeploError if it has no C form."""
        text = self.values.expression(op)
        if text is None:
            raise DeploError(
                f"{op.name} has no C form; lower the program to upstream dialects first (`tile-to-mlir`)"
            )
        if is_constant(op):
            self.values.texts[op.results[0]] = text
        else:
            self._value(op, text)

    @print.register
    def _(self, op: memref.LoadOp) -> None:
        self._value(op, self._load(op))

    @print.register
    def _(self, op: memref.StoreOp) -> None:
        self._assign(self.element(op.memref, op.indices), op.value)

    def _assign(self, target: str, value: SSAValue) -> None:
        """`target = value`, or `target += ...` where that says the same."""
        owner = value.owner
        text = self.values.texts[value]
        for kind, operator in _COMPOUND.items():
            if isinstance(owner, kind) and text.code.startswith(f"{target} {operator} "):
                rest = self.values.texts[owner.operands[1]]
                if self.values.texts[owner.operands[0]].code == target:
                    self._wrapped(f"{target} {operator}= ", rest.code)
                    return
        if text.code != target:
            self._wrapped(f"{target} = ", text.code)

    def _wrapped(self, head: str, text: str) -> None:
        """An assignment, on two lines if it is long."""
        if len(head) + len(text) <= WIDE:
            self.line(f"{head}{text};")
        else:
            self.line(head.rstrip())
            with self.indented(2):
                self.line(f"{text};")

    @print.register
    def _(self, op: memref.AllocaOp) -> None:
        kind = c_type(op.memref.type.element_type)
        align = (
            f"_Alignas({op.alignment.value.data}) " if isinstance(op.alignment, IntegerAttr) else ""
        )
        extents = "".join(f"[{n}]" for n in shape_in_c(op.memref.type))
        self.line(f"{align}{kind} {self.name(op.memref)}{extents};")

    @print.register
    def _(self, op: memref.AllocOp) -> None:
        self.values.helpers.add("buffer")
        kind, (first, *rest) = c_type(op.memref.type.element_type), shape_in_c(op.memref.type)
        inner = "".join(f"[{n}]" for n in rest)
        name = self.name(op.memref)
        pointer = f"(*{name}){inner}" if rest else f"*{name}"
        self.line(f"{kind} {pointer} = buffer(sizeof({kind}[{first}]{inner}));")

    @print.register
    def _(self, op: memref.DeallocOp) -> None:
        self.line(f"free({self.text(op.memref)});")

    @print.register
    def _(self, op: memref.CopyOp) -> None:
        assert isinstance(op.source.type, MemRefType)
        extents = "".join(f"[{n}]" for n in shape_in_c(op.source.type))
        size = f"sizeof({c_type(op.source.type.element_type)}{extents})"
        self.line(f"memcpy({self.text(op.destination)}, {self.text(op.source)}, {size});")

    @print.register
    def _(self, op: cf.AssertOp) -> None:
        self.values.helpers.add("check")
        message = op.msg.data.replace("\\", "\\\\").replace('"', '\\"')
        self.line(f'check({self.text(op.arg)}, "{message}");')

    @print.register
    def _(self, op: func.CallOp) -> None:
        if op.results:
            raise DeploError(f"the call of @{op.callee.root_reference.data} gives values")
        arguments = ", ".join(self.text(v) for v in op.arguments)
        self.line(f"{op.callee.root_reference.data}({arguments});")

    @print.register
    def _(self, op: func.ReturnOp) -> None:
        if op.arguments:
            raise DeploError(
                "a function that returns values has no C form; let it store its results"
            )

    @print.register
    def _(self, op: scf.ReduceOp) -> None:
        pass  # the end of a parallel loop

    @print.register
    def _(self, op: scf.ParallelOp) -> None:
        if op.res:
            raise DeploError("a parallel loop that reduces has no C form")
        collapse = f" collapse({len(op.step)})" if len(op.step) > 1 else ""
        self.line(f"#pragma omp parallel for{collapse}")
        self._nest(op, 0)

    def _nest(self, op: scf.ParallelOp, depth: int) -> None:
        limits = op.lowerBound[depth], op.upperBound[depth], op.step[depth]
        counter = self._open_loop(op.body.block.args[depth], *limits)
        if depth + 1 < len(op.step):
            with self.indented(2):
                self._nest(op, depth + 1)
        else:
            self.body(op.body.block)
        self.line("}")
        self.taken.discard(counter)

    def _open_loop(self, counter: SSAValue, low: SSAValue, end: SSAValue, step: SSAValue) -> str:
        """The head of a loop; gives the name of its counter, to be freed after its end."""
        limits = self.text(low), self.text(end, SUM)
        name, by = self.name(counter), self.text(step)
        advance = f"++{name}" if by == "1" else f"{name} += {by}"
        self.line(f"for (long {name} = {limits[0]}; {name} < {limits[1]}; {advance}) {{")
        return name

    @print.register
    def _(self, op: scf.ForOp) -> None:
        counter, *carried = op.body.block.args
        for value, start, result in zip(carried, op.iter_args, op.res, strict=True):
            name = self.fresh(result.name_hint or value.name_hint)
            self.line(f"{c_type(value.type)} {name} = {self.text(start)};")
            self.values.texts[value] = self.values.texts[result] = Text(name)
            self.changing.add(value)
        if (operators := reduction(op)) is not None:
            self.line(f"#pragma omp simd{self._clauses(operators, carried)}")
        name = self._open_loop(counter, op.lb, op.ub, op.step)
        self.body(op.body.block, carried)
        self.line("}")
        self.taken.discard(name)

    def _clauses(self, operators: Sequence[str], carried: Sequence[SSAValue]) -> str:
        """What tells OpenMP how the variables of a loop are folded."""
        text = ""
        for operator in dict.fromkeys(operators):
            pairs = zip(operators, carried, strict=True)
            names = [self.text(value) for each, value in pairs if each == operator]
            rows = [", ".join(names[i : i + 4]) for i in range(0, len(names), 4)]
            joint = ", \\\n" + " " * 16
            text += f" reduction({operator}: {joint.join(rows)})"
        return text

    def _carry(self, carried: Sequence[SSAValue], nexts: Sequence[SSAValue]) -> None:
        """Give the variables of a loop their next values, all at once."""
        names = [self.text(value) for value in carried]
        texts = [self.values.texts[value] for value in nexts]
        for position, name in enumerate(names):
            word = re.compile(rf"\b{re.escape(name)}\b")
            if any(word.search(text.code) for text in texts[position + 1 :]):
                for i, value in enumerate(nexts):
                    held = self.fresh("next")
                    self.line(f"const {c_type(value.type)} {held} = {texts[i].code};")
                    texts[i] = Text(held)
                for each, text in zip(names, texts, strict=True):
                    self.line(f"{each} = {text.code};")
                return
        for name, value in zip(names, nexts, strict=True):
            self._assign(name, value)

    @print.register
    def _(self, op: scf.YieldOp) -> None:
        pass  # whoever opened the block sees to it

    @print.register
    def _(self, op: scf.IfOp) -> None:
        blocks = [region.block for region in op.regions if region.blocks]
        if len(op.output) == 1 and len(blocks) == 2:
            yes, no = (self._region_text(block) for block in blocks)
            if yes is not None and no is not None:
                self._value(op, conditional(self.values.texts[op.cond], yes, no))
                return
        names: list[str] = []
        for result in op.output:
            names.append(self.name(result))
            self.line(f"{c_type(result.type)} {names[-1]};")
        for position, block in enumerate(blocks):
            self.line("} else {" if position else f"if ({self.text(op.cond)}) {{")
            self.body(block)
            end = block.last_op
            assert end is not None
            with self.indented(2):
                for name, value in zip(names, end.operands, strict=True):
                    self.line(f"{name} = {self.text(value)};")
        self.line("}")

    # ------------------------------------------------------------------ functions

    @print.register
    def _(self, op: func.FuncOp) -> None:
        self.values.texts.clear()
        self.taken = set(self.functions)
        written = written_arrays(op, self.functions)
        parameters = [
            parameter_in_c(each.type, self.name(each), is_written=each in written)
            for each in op.body.block.args
        ]
        unused = [a for a in op.body.block.args if a.first_use is None]
        kernel = "static " if op.sym_name.data in self.callees else ""
        head = f"{kernel}void {op.sym_name.data}("
        whole = f"{head}{', '.join(parameters) or 'void'})"
        if len(whole) > 100:
            whole = head + "\n    " + ",\n    ".join(parameters) + ")"
        self.print_string(f"\n{whole}\n{{")
        with self.indented(2):
            for argument in unused:
                self.line(f"(void){self.text(argument)};")
        self.body(op.body.block)
        self.print_string("\n}\n")
        self.functions[op.sym_name.data] = op


def c_source(module: ModuleOp) -> str:
    """One C file with all functions of a module. Raises DeploError for what has no C form."""
    output = StringIO()
    printer = CPrinter(output)
    printer.callees = {
        op.callee.root_reference.data for op in ops_in(module) if isinstance(op, func.CallOp)
    }
    for op in module.body.block.ops:
        if not isinstance(op, func.FuncOp):
            raise DeploError(f"'{op.name}' has no C form; run `tile-to-mlir` first")
        printer.print(op)
    headers = "".join(f"#include <{name}.h>\n" for name in HEADERS)
    return f"{headers}\n{helper_texts(printer.values.helpers)}{output.getvalue().lstrip()}"


@dataclass(frozen=True)
class CTarget(Target):
    """`-t c`: C11 with OpenMP for a module of upstream dialects, as `X-to-mlir` leaves it."""

    name = "c"

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text; DeploError if the module holds an operation without a C form."""
        output.write(c_source(module))
