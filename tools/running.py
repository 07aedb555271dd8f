"""`deplo-opt --run`: execute a program that stands in a file, on any level, and say what it computes.

The interpreter executes it, which reports races and accesses out of bounds; with `--target cpu` it is
compiled for this CPU. `--compare` runs a second program on the same inputs, in the interpreter where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from typing_extensions import TypeIs
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ContainerType, MemRefType, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute

from .. import interpreter
from ..analysis.sizes import SizeError, size_hints, solve_sizes, types_at
from ..dialects.sizes import static_shape
from ..errors import DeploError, MismatchError, UsageError
from ..interpreter.execute import main_function
from ..interpreter.views import MAX_ELEMENTS, require
from ..passes.levels import furthest, levels_in
from .check_each_pass import Array, decomposed
from .native import lower_for_cpu, run_native
from .promises import BrokenPromiseError

NATIVE = ("scf", "llvm")
"""The levels that run as native code only."""


@dataclass(frozen=True)
class Run:
    """How to execute a program: on which inputs, where, and what to say of it."""

    entry: str = "main"
    inputs: str = "random:0"
    machine: str = "interpreter"
    values: bool = False
    """Whether to print the elements of the results."""

    def report(self, ctx: Context, module: ModuleOp, other: ModuleOp | None = None) -> str:
        """The lines that say what a program computes, and that another one computes the same if it is given.

        Raises DeploError where it fails or cannot be executed, MismatchError where the other one differs.
        """
        module = with_entry(module, self.entry)
        main = main_function(module)
        given = make_inputs(main, self.inputs)
        where = "on this CPU" if self.machine == "cpu" else "in the interpreter"
        lines = [f"@{self.entry} on {self.inputs}, {where}"]
        results = self.execute(ctx, module, given)
        types = main.function_type.outputs.data
        for position, (value, type) in enumerate(zip(results, types, strict=True)):
            lines.append(f"result #{position}: {type}{summary(value)}")
            if self.values:
                lines.append(np.array2string(value, threshold=MAX_PRINTED))
        if other is not None:
            lines.append(self._compare(ctx, with_entry(other, self.entry), given, results, types))
        return "\n".join(lines) + "\n"

    def _compare(
        self,
        ctx: Context,
        other: ModuleOp,
        given: Sequence[Array],
        results: Sequence[Array],
        types: Sequence[Attribute],
    ) -> str:
        native = furthest(levels_in(other)) in NATIVE
        machine = "cpu" if native else "interpreter"
        takes = main_function(other).function_type.inputs.data
        try:
            solve_sizes(takes, [value.shape for value in given])
        except SizeError as error:
            raise UsageError(f"--compare: the other program takes other inputs: {error}") from error
        theirs = replace(self, machine=machine).execute(ctx, other, given)
        if len(theirs) != len(results):
            raise MismatchError(f"the other program has {len(theirs)} results, not {len(results)}")
        for position, (mine, other_value) in enumerate(zip(results, theirs, strict=True)):
            type = types[position]
            element = type.get_element_type() if isinstance(type, ContainerType) else None
            if (problem := interpreter.compare(other_value, mine, element)) is not None:
                raise MismatchError(f"the programs differ: result #{position}: {problem}")
        return "the other program computes the same"

    def execute(self, ctx: Context, module: ModuleOp, given: Sequence[Array]) -> list[Array]:
        """The results of `@main`. Raises DeploError where it fails or cannot be executed."""
        copies = [array.copy() for array in given]
        try:
            with np.errstate(all="ignore"):
                if self.machine == "cpu":
                    return run_native(lower_for_cpu(ctx, module), "cpu", copies)
                return interpreter.execute(decomposed(module), copies)
        except interpreter.ProgramFault as fault:
            raise BrokenPromiseError(fault.message, fault.op) from fault
        except interpreter.ProgramError as error:
            raise DeploError(f"the program fails: {error}") from error
        except interpreter.NotExecutable as error:
            raise DeploError(self._advice(module, error)) from error
        except SizeError as error:
            raise UsageError(f"--inputs: {error}") from error

    def _advice(self, module: ModuleOp, error: interpreter.NotExecutable) -> str:
        if self.machine == "interpreter" and furthest(levels_in(module)) in NATIVE:
            return f"the interpreter cannot execute it: {error}; --target cpu compiles and runs it"
        return f"it cannot be executed: {error}"


MAX_PRINTED = 1000
"""Elements of a result that `--print-results` prints before it leaves out the middle."""


def summary(value: Array) -> str:
    """The range and the mean of an array, and how many of its elements are not finite."""
    if not value.size:
        return ", empty"
    if value.dtype.kind not in "fiu":
        return f", {int(np.count_nonzero(value))} of {value.size} true"
    finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    text = f", {value.size - finite.size} not finite" if finite.size < value.size else ""
    if not finite.size:
        return text
    low, high, mean = finite.min(), finite.max(), finite.mean(dtype=np.float64)
    return f", from {low:.6g} to {high:.6g}, mean {mean:.6g}{text}"


def with_entry(module: ModuleOp, name: str) -> ModuleOp:
    """The module, or a copy in which another function is `@main`. Raises UsageError if there is none."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    if name not in functions or not functions[name].body.blocks:
        listed = ", ".join(f"@{each}" for each in functions) or "none"
        raise UsageError(
            f"--run: the program has no function @{name} with a body; its functions: {listed}"
        )
    if name == "main":
        return module
    copy = module.clone()
    for op in copy.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data in ("main", name):
            op.sym_name = StringAttr("main" if op.sym_name.data == name else "main (not run)")
    return copy


def make_inputs(main: func.FuncOp, said: str) -> list[Array]:
    """The inputs of a function as `--inputs` says: random:SEED, ones, or a file of numpy's."""
    module = main.parent_op()
    assert isinstance(module, ModuleOp)
    kind, _, rest = said.partition(":")
    types = main.function_type.inputs.data
    if wrong := [t for t in types if not is_memory(t)]:
        raise DeploError(f"--run: arguments are tensors or memrefs, not {wrong[0]}")
    try:
        if kind == "random" and (not rest or (rest.isascii() and rest.isdigit())):
            return interpreter.random_inputs(module, int(rest or 0))[0]
        if said == "ones":
            tensors = [t for t in types_at(types, size_hints(module)) if is_memory(t)]
            return [_ones(tensor) for tensor in tensors]
    except interpreter.NotExecutable as error:
        raise DeploError(f"--run: the arguments cannot be made: {error}") from error
    if said.endswith(".npz"):
        return _from_file(main, Path(said))
    raise UsageError(f"--inputs: random:SEED, ones or FILE.npz, not {said!r}")


def is_memory(type: Attribute) -> TypeIs[TensorType | MemRefType]:
    """Whether values of a type are arrays."""
    return isinstance(type, TensorType | MemRefType)


def _ones(type: TensorType | MemRefType) -> Array:
    shape = static_shape(type)
    require(shape, MAX_ELEMENTS)
    return np.ones(shape, interpreter.numpy_dtype(type.element_type))


def _from_file(main: func.FuncOp, path: Path) -> list[Array]:
    """The arrays of a file, by the arguments' names or in their order."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array; np.savez writes the file of several that is needed")
        with file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile) as error:
        raise UsageError(f"--inputs: cannot read {path}: {error}") from error
    names = [argument.name_hint or f"arg_{argument.index}" for argument in main.body.block.args]
    if len(arrays) != len(names):
        raise UsageError(
            f"--inputs: {path} has {len(arrays)} arrays, @main has {len(names)} arguments"
        )
    named = set(arrays) == set(names)
    if not named and (both := sorted(set(arrays) & set(names))):
        strange = sorted(set(arrays) - set(names))
        raise UsageError(f"--inputs: {path} has %{both[0]} by name, but @main has no %{strange[0]}")
    given = [arrays[name] for name in names] if named else list(arrays.values())
    types = main.function_type.inputs.data
    try:
        sizes = solve_sizes(types, [value.shape for value in given])
    except SizeError as error:
        raise UsageError(f"--inputs: {path}: {error}") from error
    for name, value, type in zip(names, given, types_at(types, sizes), strict=True):
        assert isinstance(type, TensorType | MemRefType)
        dtype = interpreter.numpy_dtype(type.element_type)
        if value.shape != static_shape(type) or value.dtype != dtype:
            raise UsageError(
                f"--inputs: %{name} is a {type}, but {path} has {value.dtype} of shape {list(value.shape)}"
            )
    return given
