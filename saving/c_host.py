"""The C around the kernels of a program: a function that goes through its plan, a header, an example."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from ..codegen.c_helpers import C_TYPES
from ..errors import DeploError, UsageError
from ..program import Program
from ..runtime.linked_code import texts_of
from ..runtime.loops import Move, moves_of
from ..runtime.plan import Plan
from ..runtime.plan_parts import ALIGNMENT, ITEM_BYTES, Array, Ref
from ..runtime.sizes import Extent
from .c_names import identifier
from .interface import interface_of, weight_names
from .program_file import weights_of

TEMPLATE = Path(__file__).with_name("c_library.c.in")
EXAMPLE = Path(__file__).with_name("c_example.c.in")

FIRST_MESSAGE = 3
"""The code of the first check of a kernel; those before are of the library."""


class Host:
    """The C around the kernels of a program."""

    def __init__(self, program: Program, name: str):
        self.name = name
        self.plan: Plan = program.plan
        self.said = interface_of(program.captured, name)
        self.inputs = [i for i, each in enumerate(self.said["arguments"]) if "input" in each]
        taken = {name, f"{name}_message"}
        self.sizes = [identifier(size.name, taken) for size in self.plan.sizes]
        self.names = {i: identifier(self.said["arguments"][i]["name"], taken) for i in self.inputs}
        self.changed = {update["argument"] for update in self.said["updates"]}
        if problems := [*self._problems()]:
            raise UsageError("the program cannot be a C library:\n  " + "\n  ".join(problems))
        self._own_names = {i: f"input_{i}" for i in self.inputs}
        self._own_sizes = [f"size_{n}" for n in range(len(self.sizes))]
        self.results = self._results()
        self.weights, self._offsets = self._packed(program)
        self._codes = {
            kernel.name: FIRST_MESSAGE + sum(len(k.messages) for k in self.plan.kernels[:n])
            for n, kernel in enumerate(self.plan.kernels)
        }

    def _problems(self) -> Iterator[str]:
        """What C cannot say of the program."""
        names = [*self.sizes, *self.names.values()]
        if len({*names}) < len(names):
            yield f"inputs and sizes have the same names in C: {', '.join(names)}"
        if any(each["assigned"] or each["argument"] not in self.names for each in self.said["updates"]):
            yield "a C library has no buffers that change; pass them as inputs"
        for number, value in enumerate(self.said["values"]):
            if value.get("from") == "argument" and value["index"] not in self.names:
                yield f"output {number} is a parameter, or a view of one; return a copy (.clone())"
        for update in self.said["updates"]:
            if not (self._stays(update) or self._is_whole(update["value"])):
                name = self.names.get(update["argument"], "a buffer")
                yield f"a C library cannot change input '{name}' to a view of another array"

    @staticmethod
    def _is_whole(value: Mapping[str, Any]) -> bool:
        """Whether a value is a result of the plan as it is."""
        return value.get("from") == "result" and not {"views", "order"} & value.keys()

    @staticmethod
    def _stays(update: Mapping[str, Any]) -> bool:
        """Whether the new value of an argument is itself, written to by a kernel."""
        value = update["value"]
        same = (value.get("from"), value.get("index")) == ("argument", update["argument"])
        return same and "views" not in value

    def _results(self) -> list[int]:
        """The results of the plan that the caller gets, each once."""
        values = [value for value in self.said["values"] if value.get("from") == "result"]
        return [*dict.fromkeys(value["index"] for value in values)]

    def _packed(self, program: Program) -> tuple[bytes, dict[int, int]]:
        """The weights one after the other, and the place of that of each argument."""
        held = weights_of(program.captured)
        packed = bytearray()
        places: dict[str, int] = {}
        for name, (_, array) in held.items():
            packed += bytes(-len(packed) % ALIGNMENT)
            places[name] = len(packed)
            packed += array.tobytes()
        names = weight_names(program.captured)
        return bytes(packed) or b"\0", {i: places[name] for i, name in names.items()}

    # ------------------------------------------------------------------------- texts

    def parameters(self, names: Mapping[int, str], sizes: Sequence[str]) -> str:
        """Those of the function: inputs and sizes, which have these names, and between them results."""
        listed: list[str] = []
        for i in self.inputs:
            const = "" if i in self.changed else "const "
            listed.append(f"{const}{C_TYPES[self.plan.arguments[i].array.dtype]} *{names[i]}")
        for number, index in enumerate(self.results):
            array = self.plan.array(self.plan.results[index])
            listed.append(f"{C_TYPES[array.dtype]} *result_{number}")
        return ", ".join([*listed, *(f"int64_t {size}" for size in sizes)]) or "void"

    def header(self) -> str:
        """What a C file includes."""
        lines = [f"   {self.names[i]}: {self.plan.arguments[i].said}" for i in self.inputs]
        lines += [f"   result_{n}: {self._described(i)}" for n, i in enumerate(self.results)]
        lines += self._others()
        lines += [
            f"   {name}: {max(size.minimum, 1)} to {size.maximum}"
            for name, size in zip(self.sizes, self.plan.sizes, strict=True)
        ]
        guard = f"{self.name.upper()}_H"
        described = "\n".join(lines)
        return f"""#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs the program, of which deplo made this library. Arrays are row by row; those of f16 and bf16 hold bits.
{described}
   Returns 0, or a code of which {self.name}_message tells what went wrong; several threads may call it. */
int {self.name}({self.parameters(self.names, self.sizes)});

const char *{self.name}_message(int code);

#ifdef __cplusplus
}}
#endif
#endif
"""

    def _described(self, index: int) -> str:
        array = self.plan.array(self.plan.results[index])
        text = array.named([size.name for size in self.plan.sizes])
        outputs = [
            (n, value)
            for n, value in enumerate(self.said["values"])
            if (value.get("from"), value.get("index")) == ("result", index)
        ]
        whole = [str(n) for n, value in outputs if "views" not in value]
        viewed = [str(n) for n, value in outputs if "views" in value]
        orders = {str(value.get("order")) for _, value in outputs} - {"None"}
        text += f", output {', '.join(whole)} of the program" if whole else ""
        text += f", of which output {', '.join(viewed)} is a view" if viewed else ""
        return text + (f", whose axes {orders.pop()} this has" if orders else "")

    def _others(self) -> Iterator[str]:
        """Lines on the outputs that the caller has already."""
        for number, value in enumerate(self.said["values"]):
            if value.get("from") == "argument":
                view = "a view of " if "views" in value else ""
                yield f"   output {number} is {view}{self.names[value['index']]}"

    def source(self) -> str:
        """The C file that goes through the plan."""
        names = texts_of(self.plan)
        messages = [m for kernel in self.plan.kernels for m in kernel.messages]
        return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
            name=self.name,
            parameters=self.parameters(self._own_names, self._own_sizes),
            declarations="\n".join(f"extern void {each}();" for each in names),
            messages="\n".join(f"    {_quoted(each)}," for each in messages),
            checks="\n".join(self._checks()),
            memory="\n".join(self._memory()),
            steps="\n".join(self._steps()),
            updates="\n".join(self._updates()),
        )

    def example(self) -> str:
        """A program that calls the function once."""
        values = {name: max(size.minimum, 2) for name, size in zip(self.sizes, self.plan.sizes, strict=True)}
        named = {
            **{self.names[i]: self.plan.arguments[i].array for i in self.inputs},
            **{f"result_{n}": self.plan.array(self.plan.results[i]) for n, i in enumerate(self.results)},
        }
        made = [
            f"    {C_TYPES[array.dtype]} *{name} = calloc({self._count(array, self.sizes)}, sizeof *{name});"
            for name, array in named.items()
        ]
        shown = [
            f'    printf("result_{n} begins with {_format(self.plan.array(self.plan.results[i]))}\\n", '
            f"{_shown(self.plan.array(self.plan.results[i]), n)});"
            for n, i in enumerate(self.results)
            if 0 not in self.plan.array(self.plan.results[i]).shape
        ]
        return Template(EXAMPLE.read_text(encoding="utf-8")).substitute(
            name=self.name,
            sizes="\n".join(f"    int64_t {name} = {value};" for name, value in values.items()),
            arrays="\n".join(made),
            arguments=", ".join([*named, *values]),
            shown="\n".join(shown),
        )

    # ------------------------------------------------------------------------- the plan

    def _extent(self, extent: Extent, names: Sequence[str] = ()) -> str:
        """An extent in C, where sizes have their own names in the function, or `names`."""
        if isinstance(extent, int):
            return str(extent)
        sizes = names or self._own_sizes
        return _c_expression(ast.parse(extent.text, mode="eval").body, sizes)

    def _count(self, array: Array, names: Sequence[str] = ()) -> str:
        return " * ".join(f"({self._extent(extent, names)})" for extent in array.shape) or "1"

    def _bytes(self, array: Array) -> str:
        return f"{self._count(array)} * {ITEM_BYTES[array.dtype]}"

    def _checks(self) -> Iterator[str]:
        """Statements that leave the function where a size is not allowed."""
        for name, size in zip(self._own_sizes, self.plan.sizes, strict=True):
            yield f"    if ({name} < {max(size.minimum, 1)} || {name} > {size.maximum}) return 1;"
        for extent in self.plan.positive:
            yield f"    if ({self._extent(extent)} < 1) return 1;"

    def _memory(self) -> Iterator[str]:
        """Statements that say where each array of the plan is."""
        given = {self.plan.results[index]: f"result_{n}" for n, index in enumerate(self.results)}
        yield "    size_t bytes = 0;"
        own = [
            (i, buffer)
            for i, buffer in enumerate(self.plan.buffers)
            if Ref("buffer", i) not in given
        ]
        for _, buffer in own:
            if buffer.offset is not None:
                end = f"{self._extent(buffer.offset)} + {self._bytes(buffer.array)}"
                yield f"    bytes = deplo_most(bytes, {end});"
        for i, buffer in own:
            if buffer.offset is None:
                yield f"    size_t offset_{i} = bytes = deplo_aligned(bytes);"
                yield f"    bytes += {self._bytes(buffer.array)};"
        yield "    char *memory = aligned_alloc(ALIGNMENT, deplo_aligned(bytes + 1));"
        yield "    if (!memory) return 2;"
        for i, buffer in own:
            offset = f"offset_{i}" if buffer.offset is None else self._extent(buffer.offset)
            yield f"    int64_t buffer_{i} = (int64_t)(memory + {offset});"
        for ref, name in given.items():
            if ref.kind == "buffer":
                yield f"    int64_t buffer_{ref.index} = (int64_t){name};"
        for i in range(len(self.plan.arguments)):
            where = self._own_names.get(i) or f"({self.name}_weights + {self._offsets.get(i, 0)})"
            yield f"    int64_t argument_{i} = (int64_t){where};"

    def _steps(self) -> Iterator[str]:
        begins = {loop.begin: n for n, loop in enumerate(self.plan.loops)}
        ends = {loop.end - 1 for loop in self.plan.loops}
        moves = moves_of(self.plan.loops, self.plan.places, self.plan.array)
        for number, step in enumerate(self.plan.launches):
            if (loop := begins.get(number)) is not None:
                trips = self._extent(self.plan.loops[loop].trips)
                yield f"    for (int64_t turn = 0; turn < {trips}; ++turn) {{"
                for n, move in enumerate(moves):
                    if move.place.loop == loop:
                        yield f"    int64_t place_{n} = {self._place(move)};"
            passed = [f"{ref.kind}_{ref.index}" for ref in step.arguments]
            passed += [self._extent(size) for size in step.sizes]
            values = f"(const int64_t[]){{{', '.join(passed)}}}"
            driver = f"deplo_drive_{len(passed)}"
            blocks = self._extent(step.blocks)
            launch = f"deplo_launch({driver}, {step.kernel}, {blocks}, {len(passed)}, {values})"
            code = self._codes[step.kernel] - 1
            yield f"    if ((failed = {launch})) {{ code = {code} + failed; goto end; }}"
            if number in ends:
                yield "    }"

    def _place(self, move: Move) -> str:
        of, start, stride = move.place.of, self._extent(move.start), self._extent(move.stride)
        if (first := move.place.first) is None:
            return f"{of.kind}_{of.index} + {start} + turn * ({stride})"
        later = f"{of.kind}_{of.index} + {start} + (turn - 1) * ({stride})"
        return f"turn ? {later} : {first.kind}_{first.index}"

    def _updates(self) -> Iterator[str]:
        """Statements that give inputs their new values."""
        for update in self.said["updates"]:
            if self._stays(update):
                continue
            value, argument = update["value"], update["argument"]
            ref = self.plan.results[value["index"]]
            if ref != Ref("argument", argument):
                size = self._bytes(self.plan.arguments[argument].array)
                target = self._own_names[argument]
                yield f"    memcpy({target}, (const void *){ref.kind}_{ref.index}, {size});"


OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def _c_expression(node: ast.expr, names: Sequence[str]) -> str:
    """An extent in C; sizes have `names`."""
    match node:
        case ast.Constant(value=value):
            return str(value)
        case ast.Name(id=name):
            return names[int(name[1:])]
        case ast.UnaryOp(operand=operand):
            return f"(-{_c_expression(operand, names)})"
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _c_expression(left, names), _c_expression(right, names)
            if isinstance(op, ast.FloorDiv):
                return f"deplo_floor_div({one}, {other})"
            if isinstance(op, ast.Mod):
                return f"({one} - {other} * deplo_floor_div({one}, {other}))"
            return f"({one} {OPERATORS[type(op)]} {other})"
        case _:
            raise DeploError(f"an extent that C cannot say: {ast.unparse(node)}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _format(array: Array) -> str:
    return "%g" if array.dtype in ("f32", "f64") else "%lld"


def _shown(array: Array, number: int) -> str:
    kind = "double" if array.dtype in ("f32", "f64") else "long long"
    return f"({kind})result_{number}[0]"

