"""The plan of a program: what the runtime needs to run it, as plain JSON data.

    {"version": 3, "target": "cpu",
     "arguments": [{"name": "x", "kind": "input", "dtype": "f32", "shape": ["s0", 8]}],
     "buffers": [{"dtype": "f32", "shape": ["s0", 1], "offset": null}],
     "steps": [{"kernel": "k_exp", "arguments": [{"argument": 0}, {"buffer": 0}], "sizes": ["s0"],
                "blocks": "(s0 + 3) // 4", "threads": 1}],
     "results": [{"buffer": 0}], "arena_bytes": 0,
     "sizes": [{"name": "batch", "minimum": 1, "maximum": 64, "argument": 0, "axis": 0}], "positive": [],
     "kernels": [{"name": "k_exp", "source": "...", "messages": [], "flops": null, "bytes": null}]}

It is read off the host function: `kernel.alloc`s are its buffers (those with an offset lie in the
arena, the others are allocated for each call), `kernel.launch`es and `kernel.call`s its steps. An extent
is a number, or the text of an expression over the sizes, which axes of the arguments define, or axes of what
calls give (`"buffer": 3, "axis": 0`); an axis that is twice a size has `"scale": 2, "offset": 0`. Those
listed as `positive` must be at least 1. Where sizes decide how large the arena is, `arena_bytes` is null. A
call is

    {"call": "aten.cat.default", "arguments": {"tensors": [{"buffer": 1}, {"buffer": 2}], "dim": 1},
     "results": [{"buffer": 3}]}

Its arguments are JSON values; `{"dtype": "f32"}` is a dtype, `{"float": "inf"}` a float that JSON has not,
`{"size": "s0 - 8"}` a number that depends on sizes. A loop or a choice (`dialects/part_calls.py`) names
functions, whose plans stand under `parts`.

A launch that may run while others do says which group it is in, `"group": 0`, the number of its neighbours
that may, and by number which arguments it writes: `"writes": [1]`.

Steps that run several times are a loop: `"loops": [{"begin": 2, "end": 4, "trips": 100, "reversed": false}]`,
by the numbers of the first step and of that behind the last. `{"place": 0}` among the arguments of such a
step is a slice along the leading axis of what `places` says, `{"of": {"buffer": 3}, "loop": 0}`: that of the
turn's number, counted from the end in a reversed loop. With `"first": {"argument": 1}` it is the slice of the
turn before, and in the first turn that array.

A kernel that gets tensor maps has `{"tensor_map": 0}` among its arguments, and the plan says under
`tensor_maps` what each describes: `{"of": {"argument": 0}, "box": [16, 64], "swizzle": 0}`. One whose launch
must ask for shared memory says how much: `"shared_bytes": 65536`. One that computes indices in 32 bits gets
its sizes so: `"size_bits": 32`; else they have 64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import SymbolOpInterface, SymbolTable

from ..dialects import cuda
from ..dialects.calls import OperandAttr
from ..dialects.inside import ops_in, ops_of
from ..dialects.kernel import (
    AllocOp,
    AssertOp,
    CallOp,
    LaunchOp,
    LoopOp,
    TensorMapOp,
    TensorMapType,
)
from ..dialects.kernel_loop import loop_around
from ..dialects.multiples import Multiple, multiple_of
from ..dialects.part_calls import parts_of
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import Extent, ExtentAttr, Size, shape_of, static_extent
from ..dialects.torch_base import number_of
from ..errors import DeploError
from .architecture import require_architecture
from .launch_groups import GROUP, marked_writes
from .sizes import positive_extents, sizes_of
from .updates import becomes

VERSION = 3
"""Version of the plan's format."""

MESSAGES_ATTRIBUTE = "deplo.messages"
"""What the numbers that a kernel may store to its status word mean."""

SIZES_ATTRIBUTE = "deplo.sizes"
"""The numbers of the dynamic sizes that a function which runs on the CPU takes after its buffers."""

ARGUMENT_KINDS = ("input", "parameter", "buffer", "constant")
"""An argument of `main` with attribute `deplo.parameter = "weight"` is the parameter `weight`."""

Plan = dict[str, Any]
Ref = dict[str, int]


def build_plan(module: ModuleOp, target: str, sources: Mapping[str, str]) -> Plan:
    """The plan of `module`'s host function `main`.

    `sources` has the text of each kernel by symbol: LLVM IR for the target `cpu`, else CUDA C++.
    Raises DeploError if there is no host function, a kernel has no source, or the target has not all
    instructions that the kernels use.
    """
    require_architecture(module, target)
    return _plan_of(module, "main", target, sources)


def _plan_of(module: ModuleOp, function: str, target: str, sources: Mapping[str, str]) -> Plan:
    """The plan of a host function, with those of the functions that its calls run."""
    main = SymbolTable.lookup_symbol(module, function)
    if not isinstance(main, func.FuncOp) or not main.body.blocks:
        raise DeploError(f"the module has no host function @{function}; lower its kernels first")
    arguments = main.body.block.args
    host = _Host(module, {a: {"argument": i} for i, a in enumerate(arguments)})
    host.read(main.body.block)
    lists: dict[str, Sequence[Any]] = {
        "tensor_maps": host.maps,
        "places": host.places,
        "loops": host.loops,
        "updated": [i for i in range(len(arguments)) if _is_updated(main, i, host.results)],
    }
    names = dict.fromkeys(str(step["kernel"]) for step in host.steps if "kernel" in step)
    parts = {name: _plan_of(module, name, target, sources) for name in host.parts}
    return {
        "version": VERSION,
        "target": target,
        "arguments": [_argument(main, i) for i in range(len(arguments))],
        "buffers": host.buffers,
        "steps": host.steps,
        "results": host.results,
        "arena_bytes": _arena_bytes(main),
        "sizes": _sizes(main),
        "positive": [_extent(extent) for extent in positive_extents(main)],
        "kernels": [_kernel(module, name, sources) for name in names],
        **{name: found for name, found in lists.items() if found},
        **({"parts": parts} if parts else {}),
    }


@dataclass
class _Host:
    """What a host function does, in the plan's form; a loop's steps stand among the others."""

    module: ModuleOp
    refs: dict[SSAValue, Ref]
    buffers: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    results: list[Ref] = field(default_factory=list[Ref])
    maps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    places: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    loops: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    parts: dict[str, None] = field(default_factory=dict[str, None])

    def read(self, block: Block) -> None:
        """Add what a block does. Raises DeploError for what is not part of a plan."""
        for op in block.ops:
            match op:
                case TensorMapOp():
                    self.maps.append(_tensor_map(op, self.refs))
                    self.refs[op.result] = {"tensor_map": len(self.maps) - 1}
                case AllocOp():
                    self.refs[op.result] = {"buffer": len(self.buffers)}
                    offset = None if op.offset is None else _extent(op.offset.data)
                    self.buffers.append({**_array(op.result.type), "offset": offset})
                case LaunchOp():
                    self.steps.append(_step(self.module, op, self.refs))
                case LoopOp():
                    self._read_loop(op)
                case CallOp() if loop_around(op) is None:
                    self.steps.append(_call(op, self.refs))
                    self.parts |= dict.fromkeys(parts_of(op.callee.data, op.call_arguments))
                case func.ReturnOp():
                    self.results = [self.refs[value] for value in op.arguments]
                case _:
                    where = "the host function" if loop_around(op) is None else "a loop"
                    raise DeploError(f"{op.name} in {where} is not part of a plan")

    def _read_loop(self, op: LoopOp) -> None:
        for argument in op.body.block.args:
            place = {"of": self.refs[op.array_of(argument)], "loop": len(self.loops)}
            if argument.index < len(op.carried):
                place["first"] = self.refs[op.carried[argument.index]]
            self.refs[argument] = {"place": len(self.places)}
            self.places.append(place)
        begin, number = len(self.steps), len(self.loops)
        loop = {"trips": _extent(op.trips), "reversed": op.reversed is not None}
        self.loops.append({**loop, "begin": begin})
        self.read(op.body.block)
        self.loops[number]["end"] = len(self.steps)


def _is_updated(main: func.FuncOp, argument: int, results: Sequence[Ref]) -> bool:
    """Whether an argument is the result that it becomes: a kernel writes to it."""
    result = becomes(main, argument)
    return result is not None and results[result] == {"argument": argument}


def _array(type: Attribute) -> dict[str, Any]:
    if not isinstance(type, MemRefType):
        raise DeploError(f"a plan holds tensors of constant shape only, got {type}")
    memref = cast(MemRefType, type)
    return {"dtype": str(memref.element_type), "shape": [_extent(n) for n in shape_of(memref)]}


def _extent(extent: Extent) -> int | str:
    """An extent in the plan's form: a number, or an expression in Python's syntax."""
    return (
        str(extent).replace("floordiv", "//").replace("mod", "%")
        if isinstance(extent, Size)
        else extent
    )


def _axes_of_sizes(main: func.FuncOp) -> dict[int, list[tuple[Multiple, dict[str, int]]]]:
    """The axes that say each size, of arguments and of what calls give: its multiple, and its place."""
    buffers = [op.result for op in ops_in(main) if isinstance(op, AllocOp)]
    called = called_buffers(main)
    arrays = [({"argument": i}, value.type) for i, value in enumerate(main.body.block.args)]
    arrays += [({"buffer": i}, b.type) for i, b in enumerate(buffers) if b in called]
    axes: dict[int, list[tuple[Multiple, dict[str, int]]]] = {}
    for array, type in arrays:
        shape = shape_of(cast(MemRefType, type)) if isinstance(type, MemRefType) else ()
        for axis, extent in enumerate(shape):
            if (said := multiple_of(extent)) is not None:
                symbol, multiple = said
                axes.setdefault(symbol, []).append((multiple, {**array, "axis": axis}))
    return axes


def _sizes(main: func.FuncOp) -> list[dict[str, Any]]:
    """The program's sizes, and the axes that define them: of arguments, else of what calls give."""
    axes = _axes_of_sizes(main)
    sizes: list[dict[str, Any]] = []
    for number, size in enumerate(sizes_of(main)):
        if number not in axes:
            raise DeploError(
                f"the size {size.label} is the extent of no axis of an argument, or of what a call gives"
            )
        multiple, place = min(axes[number], key=lambda at: ("buffer" in at[1], at[0] != Multiple()))
        limits = {"minimum": size.minimum.data, "maximum": size.largest}
        if multiple != Multiple():
            place |= {"scale": multiple.scale, "offset": multiple.offset}
        sizes.append({"name": size.label.data, **limits, **place})
    return sizes


def called_buffers(main: func.FuncOp) -> set[SSAValue]:
    """The buffers of a host function that calls of PyTorch fill."""
    calls = [op for op in main.body.block.ops if isinstance(op, CallOp)]
    return {value for call in calls for value in call.outputs}


def _arena_bytes(main: func.FuncOp) -> int | None:
    """The end of the last buffer in the arena; None if the sizes decide."""
    allocs = ops_of(main, AllocOp)
    ends = [a.offset.data + buffer_bytes(a.result.type) for a in allocs if a.offset is not None]
    if any(isinstance(end, Size) for end in ends):
        return None
    return max(map(static_extent, ends), default=0)


def buffer_bytes(type: Attribute) -> Extent:
    """The size of a buffer of memref `type`."""
    assert isinstance(type, MemRefType)
    memref = cast(MemRefType, type)
    return prod(shape_of(memref)) * storage_bytes(memref.element_type)


def _argument(main: func.FuncOp, index: int) -> dict[str, Any]:
    value = main.body.block.args[index]
    attributes: Mapping[str, Attribute] = {}
    if main.arg_attrs is not None:
        attributes = main.arg_attrs.data[index].data
    for kind in ARGUMENT_KINDS:
        if isinstance(name := attributes.get(f"deplo.{kind}"), StringAttr):
            return {"name": name.data, "kind": kind, **_array(value.type)}
    return {"name": value.name_hint or f"arg{index}", "kind": "input", **_array(value.type)}


def _step(module: ModuleOp, op: LaunchOp, refs: Mapping[SSAValue, Ref]) -> dict[str, Any]:
    return {
        "kernel": op.kernel.root_reference.data,
        "arguments": [refs[value] for value in op.arguments],
        "sizes": [_extent(Size.symbol(i)) for i in _kernel_sizes(module, op)],
        "blocks": _extent(op.blocks.data),
        "threads": op.threads.value.data,
        **_group(op),
    }


def _group(op: LaunchOp) -> dict[str, Any]:
    """The group of launches that may run at once."""
    group, writes = op.attributes.get(GROUP), marked_writes(op)
    if not isinstance(group, IntegerAttr) or writes is None:
        return {}
    return {"group": group.value.data, "writes": list(writes)}


def _tensor_map(op: TensorMapOp, refs: Mapping[SSAValue, Ref]) -> dict[str, Any]:
    type = op.result.type
    assert isinstance(type, TensorMapType)
    return {"of": refs[op.tensor], "box": list(type.extents), "swizzle": type.swizzle}


def _kernel_sizes(module: ModuleOp, launch: LaunchOp) -> list[int]:
    """The sizes that a kernel takes as arguments, by number."""
    function = SymbolTable.lookup_symbol(module, launch.kernel)
    if isinstance(function, cuda.FuncOp):
        return function.size_arguments
    sizes = None if function is None else function.attributes.get(SIZES_ATTRIBUTE)
    return (
        [size.data for size in sizes if isinstance(size, IntAttr)]
        if isinstance(sizes, ArrayAttr)
        else []
    )


def _call(op: CallOp, refs: Mapping[SSAValue, Ref]) -> dict[str, Any]:
    return {
        "call": op.callee.data,
        "arguments": call_data(op.call_arguments, [refs[value] for value in op.inputs]),
        "results": [refs[value] for value in op.outputs],
    }


def call_data(value: Attribute, operands: Sequence[Ref]) -> Any:
    """An argument of a call as JSON data, each operand as the reference given for it."""
    match value:
        case DictionaryAttr():
            return {name: call_data(item, operands) for name, item in value.data.items()}
        case ArrayAttr():
            return [call_data(item, operands) for item in value]
        case OperandAttr() if value.permutation:
            return {**operands[value.position.data], "axes": value.permutation}
        case OperandAttr():
            return operands[value.position.data]
        case UnitAttr():
            return None
        case ExtentAttr(data=Size() as size):
            return {"size": _extent(size)}
        case ExtentAttr(data=number):
            return number
        case StringAttr():
            return value.data
        case IntegerAttr() | FloatAttr():
            number = number_of(value)
            finite = not isinstance(number, float) or isfinite(number)
            return number if finite else {"float": str(number)}
        case _:
            return {"dtype": str(value)}


def _kernel(module: ModuleOp, name: str, sources: Mapping[str, str]) -> dict[str, Any]:
    if name not in sources:
        raise DeploError(f"kernel @{name} is launched but there is no source for it")
    function = next((op for op in module.ops if _symbol(op) == name), None)
    shared = function.launch_shared_bytes if isinstance(function, cuda.FuncOp) else 0
    narrow = isinstance(function, cuda.FuncOp) and function.sizes and function.index_type == i32
    return {
        "name": name,
        "source": sources[name],
        "messages": [] if function is None else _messages(function),
        "flops": None,
        "bytes": None,
        **({"shared_bytes": shared} if shared else {}),
        **({"size_bits": 32} if narrow else {}),
    }


def _messages(function: Operation) -> list[str]:
    """What a kernel's checks may say; one on a GPU stops without saying which of them failed."""
    attribute = function.attributes.get(MESSAGES_ATTRIBUTE)
    if isinstance(attribute, ArrayAttr):
        return [m.data for m in cast(ArrayAttr[StringAttr], attribute)]
    checks = ops_of(function, AssertOp) if isinstance(function, cuda.FuncOp) else []
    return [*dict.fromkeys(op.message.data for op in checks)]


def _symbol(op: Any) -> str | None:
    trait = op.get_trait(SymbolOpInterface)
    attribute = None if trait is None else trait.get_sym_attr_name(op)
    return None if attribute is None else attribute.data
