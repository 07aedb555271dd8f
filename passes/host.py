"""The host's side of a lowering: from kernels as values to buffers and launches, in order.

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = loop.kernel @k_exp(%x) : (tensor<4xf32>) -> tensor<4xf32> { ... }
      func.return %y : tensor<4xf32>
    }

becomes

    func.func @k_exp(...) { ... }              // what the caller's `build` makes of the kernel
    func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
      %y = kernel.alloc : memref<4xf32>
      kernel.launch @k_exp(%x, %y) blocks(4) threads(1) : memref<4xf32>, memref<4xf32>
      func.return %y : memref<4xf32>
    }

Kernels that differ in name only become one function, launched several times. A `tensor_ir.call` becomes a
buffer for each result, and a `kernel.call` that fills them; a `tensor_ir.scan` becomes a `kernel.loop`
(`host_loops.py`). An operation on tensors that is a kernel as it is (`Whole`) becomes a launch of it; what
begins as an argument that it takes the place of (`analysis/updates.py`), or as a buffer that nothing else
reads, is made there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..analysis.equivalence import equivalent
from ..analysis.updates import takes_place
from ..dialects.calls import TensorCallOp
from ..dialects.inside import ops_in
from ..dialects.kernel import AllocOp, CallOp, TensorMapOp, TensorMapType
from ..dialects.kernel import LaunchOp as HostLaunchOp
from ..dialects.loop import KernelOp
from ..dialects.sizes import Extent, memref_of, shape_of
from ..dialects.tensor_ir_scan import ScanOp
from ..dialects.tile import LaunchOp
from ..errors import DeploError
from .host_loops import loop_of, take_results
from .levels import levels_in, missing
from .symbol_names import FreshNames, function_names


@dataclass(frozen=True)
class Device:
    """A kernel lowered for its device."""

    function: Operation
    """The function that runs it; it stands in front of the host function."""
    blocks: Extent
    threads: int
    tensor_maps: tuple[tuple[int, TensorMapType], ...] = ()
    """What the function gets in front of the kernel's buffers: maps of those with these numbers."""
    dropped: tuple[int, ...] = ()
    """The numbers of buffers that the function does not get, as it reads them by their maps only."""


BuildDevice = Callable[[KernelOp, LaunchOp, str], Device]
"""Makes the device function of a kernel from its one launch, under the symbol given.

It may take the kernel's body apart.
"""


@dataclass(frozen=True)
class Whole:
    """How an operation on tensors is lowered that is one function of its operands and results."""

    build: Callable[[Any, str, bool], Device]
    """Makes the function under a name; with True, its result begins as the first operand, in its buffer, and
    the function does not get that operand."""
    begins_as_first: bool = False
    """Whether its only result begins as its first operand."""


Wholes = Mapping[type[Operation], Whole]


def lower_host(module: ModuleOp, build: BuildDevice, wholes: Wholes | None = None) -> None:
    """Turn each function of `module` that works on tensors into host form, its kernels by `build`.

    `wholes` has the other operations on tensors that are lowered, by their class.

    Raises DeploError for a kernel that is not one `tile.launch` and for any other op on tensors.
    """
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    scanned = {op.step.root_reference.data for op in ops_in(module) if isinstance(op, ScanOp)}
    devices = _Devices(function_names(module), build, {} if wholes is None else wholes)
    for function in functions:
        if function.body.blocks:
            _lower_function(function, devices)
            if function.sym_name.data in scanned:
                take_results(function)


class _Code:
    """What a kernel does, whatever it is called on; a copy, for the kernel may be taken apart."""

    def __init__(self, op: KernelOp):
        self.attributes = dict(op.attributes)
        self.types = (op.inputs.types, op.outputs.types)
        self.body = op.body.clone()

    def same_as(self, op: KernelOp) -> bool:
        """Whether a kernel does this."""
        return (
            self.attributes == op.attributes
            and self.types == (op.inputs.types, op.outputs.types)
            and equivalent(self.body, op.body)
        )


@dataclass
class _Devices:
    """The device functions made so far, to find a kernel that was built before."""

    names: FreshNames
    build: BuildDevice
    wholes: Wholes
    built: list[tuple[_Code, Device, str]] = field(default_factory=list[tuple[_Code, Device, str]])
    built_whole: dict[Hashable, tuple[Device, str]] = field(
        default_factory=dict[Hashable, tuple[Device, str]]
    )

    def get(self, op: KernelOp, host: func.FuncOp) -> tuple[Device, str]:
        """The device function for a kernel, and its name; a new one stands in front of `host`."""
        for code, device, name in self.built:
            if code.same_as(op):
                return device, name
        name = self.names.fresh(op.sym_name.data)
        code = _Code(op)
        device = self._placed(self.build(op, _only_launch(op), name), op, host)
        self.built.append((code, device, name))
        return device, name

    def get_whole(self, op: Operation, in_place: bool, host: func.FuncOp) -> tuple[Device, str]:
        """The device function for an operation that is one, and its name."""
        types = [buffer_type(v.type) for v in (*op.operands, *op.results)]
        key = (type(op), tuple(op.properties.items()), tuple(types), in_place)
        if key not in self.built_whole:
            kind = op.name.rpartition(".")[2]
            name = self.names.fresh(f"k_{op.results[0].name_hint or 'value'}_{kind}")
            device = self.wholes[type(op)].build(op, name, in_place)
            self.built_whole[key] = self._placed(device, op, host), name
        return self.built_whole[key]

    @staticmethod
    def _placed(device: Device, op: Operation, host: func.FuncOp) -> Device:
        """A device function made of `op`, in front of `host` now."""
        device.function.location = op.location
        block = host.parent
        assert block is not None
        block.insert_op_before(device.function, host)
        return device


def _only_launch(op: KernelOp) -> LaunchOp:
    ops = list(op.body.block.ops)
    if len(ops) == 1 and isinstance(ops[0], LaunchOp):
        return ops[0]
    raise DeploError(
        f"kernel @{op.sym_name.data} is not one tile.launch; run `tileify` first"
    )


def _lower_function(host: func.FuncOp, devices: _Devices) -> None:
    entry = host.body.block
    for argument in entry.args:
        Rewriter.replace_value_with_new_type(argument, buffer_type(argument.type))
    for op in list(entry.ops):
        if isinstance(op, KernelOp):
            _launch_kernel(op, devices, host)
        elif isinstance(op, TensorCallOp):
            _lower_call(op)
        elif isinstance(op, ScanOp):
            _replace(op, loop_of(op, _buffers(op, list(op.stacks))))
        elif type(op) in devices.wholes:
            _launch_whole(op, devices, host)
        elif isinstance(op, func.CallOp):
            for result in op.results:
                Rewriter.replace_value_with_new_type(result, buffer_type(result.type))
        elif not isinstance(op, func.ReturnOp | arith.ConstantOp):
            _refuse_tensors(op)
    inputs, outputs = host.function_type.inputs, host.function_type.outputs
    host.function_type = FunctionType.from_lists(_buffer_types(inputs), _buffer_types(outputs))


def _launch_kernel(op: KernelOp, devices: _Devices, host: func.FuncOp) -> None:
    block = op.parent
    assert block is not None
    arguments: list[SSAValue] = list(op.inputs)
    outputs = list(op.outputs)
    replaced = op.replaced_inputs
    device, name = devices.get(op, host)
    for position, start in replaced.items():
        _check_replaced(op, arguments[start])
        outputs[position].replace_all_uses_with(arguments[start])
    buffers = iter(_buffers(op, [v for i, v in enumerate(outputs) if i not in replaced]))
    arguments += [
        arguments[replaced[i]] if i in replaced else next(buffers) for i in range(len(outputs))
    ]
    maps: list[SSAValue] = []
    for number, type in device.tensor_maps:
        describe = TensorMapOp(arguments[number], type)
        describe.location = op.location
        describe.result.name_hint = f"{arguments[number].name_hint or 'buffer'}_map"
        block.insert_op_before(describe, op)
        maps.append(describe.result)
    passed = [v for number, v in enumerate(arguments) if number not in device.dropped]
    _replace(op, HostLaunchOp(name, [*maps, *passed], device.blocks, device.threads))


def _launch_whole(op: Operation, devices: _Devices, host: func.FuncOp) -> None:
    in_place = devices.wholes[type(op)].begins_as_first and _may_replace(op, op.operands[0])
    device, name = devices.get_whole(op, in_place, host)
    arguments = list(op.operands)
    if in_place:
        start = arguments.pop(0)
        op.results[0].replace_all_uses_with(start)
        arguments.append(start)
    else:
        arguments += _buffers(op, list(op.results))
    _replace(op, HostLaunchOp(name, arguments, device.blocks, device.threads))


def _may_replace(op: Operation, start: SSAValue) -> bool:
    """Whether what `op` makes may take the place of the operand that it begins as."""
    left = [use.operation for use in start.uses if not isinstance(use.operation, HostLaunchOp)]
    is_own = isinstance(start.owner, AllocOp) or takes_place(op.results[0], start)
    return is_own and left == [op]


def _check_replaced(op: KernelOp, start: SSAValue) -> None:
    """Raise DeploError unless an output may take the place of the input that it begins as."""
    if not _may_replace(op, start):
        raise DeploError(
            f"kernel @{op.sym_name.data} accumulates in a value that something else needs too; it "
            "must be a kernel's, and this its only use"
        )


def _lower_call(op: TensorCallOp) -> None:
    inputs = list(op.inputs)
    call = CallOp(op.callee.data, op.arguments, inputs, _buffers(op, list(op.outputs)))
    call.attributes |= op.attributes
    _replace(op, call)


def _replace(op: Operation, new: Operation) -> None:
    """Put what does an operation's work in its place; its results have no users by now."""
    assert op.parent is not None
    new.location = op.location
    op.parent.insert_op_before(new, op)
    op.detach()
    op.erase()


def _buffers(op: Operation, results: Iterable[SSAValue]) -> list[SSAValue]:
    """A buffer in front of `op` for each of its results, in whose place it stands from then on."""
    assert op.parent is not None
    buffers: list[SSAValue] = []
    for result in results:
        buffer = buffer_type(result.type)
        assert isinstance(buffer, MemRefType)
        alloc = AllocOp(cast(MemRefType, buffer))
        alloc.location = op.location
        alloc.result.name_hint = result.name_hint
        op.parent.insert_op_before(alloc, op)
        result.replace_all_uses_with(alloc.result)
        buffers.append(alloc.result)
    return buffers


def _refuse_tensors(op: Operation) -> None:
    types = (*op.operand_types, *op.result_types)
    if not any(isinstance(t, TensorType | MemRefType) for t in types):
        return
    module = op.get_toplevel_object()
    if isinstance(module, ModuleOp) and "tile" not in (present := levels_in(module)):
        raise DeploError(missing("tile", module, present))
    raise DeploError(f"{op.name} is not a kernel; lower all of the program to loops (`tensor-to-loop`)")


def _buffer_types(types: Iterable[Attribute]) -> list[Attribute]:
    return [buffer_type(t) for t in types]


def buffer_type(value: Attribute) -> Attribute:
    """The memref that holds a tensor; an index stays what it is."""
    if not isinstance(value, TensorType):
        return value
    tensor = cast(TensorType, value)
    return memref_of(tensor.element_type, shape_of(tensor))
