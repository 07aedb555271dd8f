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

Kernels that differ in name only become one function, launched several times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ..dialects.kernel import AllocOp
from ..dialects.kernel import LaunchOp as HostLaunchOp
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..errors import DeploError


@dataclass(frozen=True)
class Device:
    """A kernel lowered for its device."""

    function: Operation
    """The function that runs it; the module's next op before `main`."""
    blocks: int
    threads: int


BuildDevice = Callable[[KernelOp, LaunchOp, str], Device]
"""Makes the device function of a kernel from its one launch, under the symbol given.

It may take the kernel's body apart.
"""


def lower_host(module: ModuleOp, build: BuildDevice) -> None:
    """Turn each function of `module` that works on tensors into host form, its kernels by `build`.

    Raises DeploError for a kernel that is not one `tile.launch` and for any other op on tensors.
    """
    taken = {op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp)}
    for op in list(module.ops):
        if isinstance(op, func.FuncOp) and op.body.blocks:
            _lower_function(op, _Devices(op, taken, build))


@dataclass
class _Devices:
    """The device functions made so far, to find a kernel that was built before."""

    main: func.FuncOp
    taken: set[str]
    build: BuildDevice
    built: list[tuple[KernelOp, Device, str]] = field(
        default_factory=list[tuple[KernelOp, Device, str]]
    )

    def get(self, op: KernelOp) -> tuple[Device, str]:
        """The device function for a kernel, and its name."""
        for known, device, name in self.built:
            if _same_kernel(known, op):
                return device, name
        name = self._fresh_name(op.sym_name.data)
        original = op.clone()
        device = self.build(op, _only_launch(op), name)
        device.function.location = op.location
        block = self.main.parent
        assert block is not None
        block.insert_op_before(device.function, self.main)
        self.built.append((original, device, name))
        return device, name

    def _fresh_name(self, wanted: str) -> str:
        name, suffix = wanted, 1
        while name in self.taken:
            name, suffix = f"{wanted}_{suffix}", suffix + 1
        self.taken.add(name)
        return name


def _same_kernel(a: KernelOp, b: KernelOp) -> bool:
    return (
        a.attributes == b.attributes
        and a.inputs.types == b.inputs.types
        and a.outputs.types == b.outputs.types
        and a.body.is_structurally_equivalent(b.body)
    )


def _only_launch(op: KernelOp) -> LaunchOp:
    ops = list(op.body.block.ops)
    if len(ops) == 1 and isinstance(ops[0], LaunchOp):
        return ops[0]
    raise DeploError(
        f"kernel @{op.sym_name.data} is not one tile.launch; run `tileify` before this pass"
    )


def _lower_function(main: func.FuncOp, devices: _Devices) -> None:
    entry = main.body.block
    for argument in entry.args:
        Rewriter.replace_value_with_new_type(argument, buffer_type(argument.type))
    for op in list(entry.ops):
        if isinstance(op, KernelOp):
            _launch_kernel(op, devices)
        elif not isinstance(op, func.ReturnOp | arith.ConstantOp):
            _refuse_tensors(op)
    inputs, outputs = main.function_type.inputs, main.function_type.outputs
    main.function_type = FunctionType.from_lists(_buffer_types(inputs), _buffer_types(outputs))


def _launch_kernel(op: KernelOp, devices: _Devices) -> None:
    block = op.parent
    assert block is not None
    arguments: list[SSAValue] = list(op.inputs)
    outputs = list(op.outputs)
    device, name = devices.get(op)
    for output in outputs:
        buffer = buffer_type(output.type)
        assert isinstance(buffer, MemRefType)
        alloc = AllocOp(cast(MemRefType, buffer))
        alloc.location = op.location
        alloc.result.name_hint = output.name_hint
        block.insert_op_before(alloc, op)
        output.replace_all_uses_with(alloc.result)
        arguments.append(alloc.result)
    launch = HostLaunchOp(name, arguments, device.blocks, device.threads)
    launch.location = op.location
    block.insert_op_before(launch, op)
    op.detach()
    op.erase()


def _refuse_tensors(op: Operation) -> None:
    types = (*op.operand_types, *op.result_types)
    if any(isinstance(t, TensorType | MemRefType) for t in types):
        raise DeploError(
            f"{op.name} is not a kernel; every op on tensors must be lowered to loops first "
            "(`tensor-to-loop`)"
        )


def _buffer_types(types: Iterable[Attribute]) -> list[Attribute]:
    return [buffer_type(t) for t in types]


def buffer_type(value: Attribute) -> Attribute:
    """The memref that holds a tensor; an index stays what it is."""
    if not isinstance(value, TensorType):
        return value
    tensor = cast(TensorType, value)
    return MemRefType(tensor.element_type, tensor.get_shape())
