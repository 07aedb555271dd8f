"""The plan of a program: what the runtime needs to run it, as plain JSON data.

    {"version": 1, "target": "cpu",
     "arguments": [{"name": "x", "kind": "input", "dtype": "f32", "shape": [4, 8]}],
     "buffers": [{"dtype": "f32", "shape": [4, 1], "offset": null}],
     "steps": [{"kernel": "k_exp", "arguments": [{"argument": 0}, {"buffer": 0}],
                "blocks": 4, "threads": 1}],
     "results": [{"buffer": 0}], "arena_bytes": 0,
     "kernels": [{"name": "k_exp", "source": "...", "messages": [], "flops": null, "bytes": null}]}

It is read off the host function: `kernel.alloc`s are its buffers (those with an offset lie in the
arena, the others are allocated for each call), `kernel.launch`es and `kernel.call`s its steps. A call is

    {"call": "aten.cat.default", "arguments": {"tensors": [{"buffer": 1}, {"buffer": 2}], "dim": 1},
     "results": [{"buffer": 3}]}

Its arguments are JSON values; `{"dtype": "f32"}` is a dtype, `{"float": "inf"}` a float that JSON has not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, prod
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.traits import SymbolOpInterface, SymbolTable

from ..dialects.calls import OperandAttr
from ..dialects.kernel import AllocOp, CallOp, LaunchOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import static_extent, static_shape
from ..dialects.torch_base import number_of
from ..errors import DeploError

VERSION = 1
"""Version of the plan's format."""

KERNEL_ATTRIBUTE = "deplo.kernel"
"""Marks the functions that run on the device among a module's functions."""

MESSAGES_ATTRIBUTE = "deplo.messages"
"""What the numbers that a kernel may store to its status word mean."""

ARGUMENT_KINDS = ("input", "parameter", "buffer", "constant")
"""An argument of `main` with attribute `deplo.parameter = "weight"` is the parameter `weight`."""

Plan = dict[str, Any]
Ref = dict[str, int]


def build_plan(module: ModuleOp, target: str, sources: Mapping[str, str]) -> Plan:
    """The plan of `module`'s host function `main`.

    `sources` has the text of each kernel by symbol: LLVM IR for the target `cpu`, else CUDA C++.
    Raises DeploError if there is no host function or a kernel has no source.
    """
    main = SymbolTable.lookup_symbol(module, "main")
    if not isinstance(main, func.FuncOp) or not main.body.blocks:
        raise DeploError("the module has no host function @main; lower its kernels first")
    entry = main.body.block
    refs: dict[SSAValue, Ref] = {a: {"argument": i} for i, a in enumerate(entry.args)}
    buffers: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    results: list[Ref] = []
    for op in entry.ops:
        match op:
            case AllocOp():
                refs[op.result] = {"buffer": len(buffers)}
                offset = None if op.offset is None else op.offset.value.data
                buffers.append({**_array(op.result.type), "offset": offset})
            case LaunchOp():
                steps.append(_step(op, refs))
            case CallOp():
                steps.append(_call(op, refs))
            case func.ReturnOp():
                results = [refs[value] for value in op.arguments]
            case _:
                raise DeploError(f"{op.name} in the host function is not part of a plan")
    names = dict.fromkeys(str(step["kernel"]) for step in steps if "kernel" in step)
    return {
        "version": VERSION,
        "target": target,
        "arguments": [_argument(main, i) for i in range(len(entry.args))],
        "buffers": buffers,
        "steps": steps,
        "results": results,
        "arena_bytes": max((_end(b) for b in buffers if b["offset"] is not None), default=0),
        "kernels": [_kernel(module, name, sources) for name in names],
    }


def _array(type: Attribute) -> dict[str, Any]:
    if not isinstance(type, MemRefType):
        raise DeploError(f"a plan holds tensors of constant shape only, got {type}")
    memref = cast(MemRefType, type)
    return {"dtype": str(memref.element_type), "shape": list(static_shape(memref))}


def _end(buffer: dict[str, Any]) -> int:
    return buffer["offset"] + prod(buffer["shape"]) * _ITEM_BYTES[buffer["dtype"]]


_ITEM_BYTES = {"i1": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4} | dict.fromkeys(
    ("i64", "f64"), 8
)


def buffer_bytes(type: Attribute) -> int:
    """The size of a buffer of memref `type`."""
    assert isinstance(type, MemRefType)
    memref = cast(MemRefType, type)
    return prod(static_shape(memref)) * storage_bytes(memref.element_type)


def _argument(main: func.FuncOp, index: int) -> dict[str, Any]:
    value = main.body.block.args[index]
    attributes: Mapping[str, Attribute] = {}
    if main.arg_attrs is not None:
        attributes = main.arg_attrs.data[index].data
    for kind in ARGUMENT_KINDS:
        if isinstance(name := attributes.get(f"deplo.{kind}"), StringAttr):
            return {"name": name.data, "kind": kind, **_array(value.type)}
    return {"name": value.name_hint or f"arg{index}", "kind": "input", **_array(value.type)}


def _step(op: LaunchOp, refs: Mapping[SSAValue, Ref]) -> dict[str, Any]:
    return {
        "kernel": op.kernel.root_reference.data,
        "arguments": [refs[value] for value in op.arguments],
        "blocks": static_extent(op.blocks.data),
        "threads": op.threads.value.data,
    }


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
        case OperandAttr():
            return operands[value.position.data]
        case UnitAttr():
            return None
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
    attribute = None if function is None else function.attributes.get(MESSAGES_ATTRIBUTE)
    messages: list[str] = []
    if isinstance(attribute, ArrayAttr):
        messages = [m.data for m in cast(ArrayAttr[StringAttr], attribute)]
    return {
        "name": name,
        "source": sources[name],
        "messages": messages,
        "flops": None,
        "bytes": None,
    }


def _symbol(op: Any) -> str | None:
    trait = op.get_trait(SymbolOpInterface)
    attribute = None if trait is None else trait.get_sym_attr_name(op)
    return None if attribute is None else attribute.data
