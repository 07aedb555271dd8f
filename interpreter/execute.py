"""Execute a module's `@main` on arrays, whatever IR it is in; inputs to do so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    IntegerType,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ..analysis.sizes import SizeError, instantiate, sizes_of, solve_sizes, types_at
from ..dialects.calls import TensorCallOp
from ..dialects.inside import ops_in
from ..dialects.kernel import AllocOp, CallOp, LaunchOp, LoopOp, TensorMapOp
from ..dialects.loop import KernelOp
from ..dialects.multiples import multiple_of
from ..dialects.part_calls import CHOICE, part_functions
from ..dialects.sizes import shape_of, static_shape
from ..dialects.tensor_ir_scan import ScanOp
from ..errors import DeploError
from .accesses import Accesses, AccessRow
from .arena import Arena
from .history import History
from .launches import launch
from .loop import evaluate_kernel
from .numpy_types import Array, convert, numpy_dtype
from .poison import poisoned
from .product import Value, as_array, as_bits, from_bits
from .repeats import scan, turns
from .scalar_ops import NotExecutable
from .simt import find_kernel
from .tensor_ir import ProgramError, evaluate_tensor_op
from .views import MAX_ELEMENTS, TooWide, require

MAX_TURNS = 200
"""Turns of a loop, each of a few milliseconds, after which it counts as one that does not end."""


def main_function(module: ModuleOp) -> func.FuncOp:
    """The function `@main` of a module; NotExecutable if it has none."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main" and op.body.blocks:
            return op
    raise NotExecutable("the module has no function @main")


Call: TypeAlias = Callable[[TensorCallOp | CallOp, Sequence[Array]], Sequence[Array]]
"""Runs an operator of PyTorch on arrays. Raises ProgramError where it fails."""


def _no_call(op: TensorCallOp | CallOp, inputs: Sequence[Array]) -> Sequence[Array]:
    raise NotExecutable(f"PyTorch runs {op.callee.data}")


def _run_call(
    call: Call, history: History, op: TensorCallOp | CallOp, inputs: Sequence[Array]
) -> Sequence[Array]:
    """What a call gives: `call` runs operators of PyTorch, parts of the program run here."""
    functions = part_functions(op, op.callee.data, op.call_arguments)
    if not functions:
        return call(op, inputs)
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    run = _Run(module, history, partial(_run_call, call, history))

    def part(number: int, values: Sequence[Array]) -> list[Array]:
        results = run.function(functions[number], [np.array(value) for value in values])
        return [np.array(as_array(value, MAX_ELEMENTS)) for value in results]

    if op.callee.data == CHOICE:
        predicate, *values = inputs
        return part(0 if predicate.all() else 1, values)
    carried, shared = list(inputs[: len(_call_types(op))]), inputs[len(_call_types(op)) :]
    for _ in range(MAX_TURNS):
        if not part(0, [*carried, *shared])[0].all():
            return carried
        carried = part(1, [*carried, *shared])
    raise NotExecutable(f"after {MAX_TURNS} turns a loop has not ended")


def execute(
    module: ModuleOp,
    inputs: Sequence[Array],
    history: History | None = None,
    call: Call = _no_call,
) -> list[Array]:
    """The results of `@main` on `inputs`, arrays as `numpy_types` describes.

    `history`, of the same inputs at an earlier stage, lets large launches execute a sample of their blocks;
    `call` runs operators of PyTorch.
    Raises NotExecutable where an operation has no interpreter, ProgramError where the program fails.
    """
    history = history or History()
    sizes = _Sizes(module, inputs, partial(_run_call, call, history))
    while True:
        history.begin()
        fixed = sizes.instantiate()
        # Kernels store through their arguments, so the caller's arrays are not handed out.
        arguments = [np.array(value) for value in inputs]
        history.memo.name_arguments(arguments)
        try:
            results = _Run(fixed, history, sizes.call).function(main_function(fixed), arguments)
        except _Found:
            continue
        except ProgramError as error:
            history.end(error)
            raise
        history.end()
        return [np.array(as_array(value, MAX_ELEMENTS)) for value in results]


class _Found(Exception):
    """A call found a size; the program starts again with it."""


class _Sizes:
    """The sizes of a module for some inputs: what their shapes say, and what its calls find one by one.

    What calls gave before the program starts again is given again.
    """

    def __init__(self, module: ModuleOp, inputs: Sequence[Array], call: Call):
        main = main_function(module)
        said = solve_sizes(main.function_type.inputs.data, [value.shape for value in inputs])
        self._module = module
        self._sizes: list[int | None] = [*said]
        self._sizes += [None] * (len(sizes_of(main)) - len(said))
        self._axes = [
            [shape_of(type) for type in _call_types(op)]
            for op in ops_in(main)
            if isinstance(op, TensorCallOp | CallOp)
        ]
        self._call = call
        self._given: list[Sequence[Array]] = []
        self._next = 0

    def instantiate(self) -> ModuleOp:
        """The module with numbers in place of its sizes; those not found yet are 1."""
        self._next = 0
        if not self._sizes:
            return self._module
        return instantiate(self._module, [1 if size is None else size for size in self._sizes])

    def call(self, op: TensorCallOp | CallOp, inputs: Sequence[Array]) -> Sequence[Array]:
        """What a call gives. Raises _Found if that says a size."""
        number, self._next = self._next, self._next + 1
        if None not in self._sizes:
            return self._given[number] if number < len(self._given) else self._call(op, inputs)
        if number == len(self._given):
            self._given.append(self._call(op, inputs))
        news = False
        for extents, value in zip(self._axes[number], self._given[number], strict=True):
            for extent, length in zip(extents, value.shape, strict=True):
                said = multiple_of(extent)
                if said is None or self._sizes[said[0]] is not None:
                    continue
                symbol, multiple = said
                if (size := multiple.size(length)) is None:
                    raise SizeError(f"{op.name} gives an axis of {length}, which is no {extent}")
                self._sizes[symbol], news = size, True
        if news:
            raise _Found
        return self._given[number]


def _call_types(op: TensorCallOp | CallOp) -> list[TensorType | MemRefType]:
    values = op.outputs if isinstance(op, CallOp) else op.results
    return [cast("TensorType | MemRefType", value.type) for value in values]


def access_rows(module: ModuleOp, inputs: Sequence[Array]) -> list[AccessRow]:
    """How each access of each kernel suits a GPU's memory, of a module in Kernel IR or CUDA form."""
    history = History(accesses=Accesses())
    execute(module, inputs, history)
    assert history.accesses is not None
    return history.accesses.rows()


@dataclass(frozen=True)
class _Run:
    """One execution of a module."""

    module: ModuleOp
    history: History
    call: Call

    def function(self, function: func.FuncOp, arguments: Sequence[Value]) -> list[Value]:
        """The results of a function of one block."""
        block = _only_block(function)
        values: dict[SSAValue, Value] = dict(zip(block.args, arguments, strict=True))
        results = self._block(block, values, Arena(function))
        if results is None:
            raise NotExecutable(f"@{function.sym_name.data} has no return")
        return results

    def _block(
        self, block: Block, values: dict[SSAValue, Value], arena: Arena
    ) -> list[Value] | None:
        """Run a block; gives what it returns, None if it does not."""
        for op in block.ops:
            operands = [values[v] for v in op.operands]
            arena.run(op)
            match op:
                case func.ReturnOp():
                    return operands
                case func.CallOp():
                    results = self.function(self._callee(op.callee), operands)
                case ScanOp():
                    step = partial(self.function, self._callee(op.step))
                    results = scan(op, operands, step)
                case LoopOp():
                    results = self._loop(op, values, arena)
                case TensorMapOp():
                    results = operands
                case LaunchOp():
                    results = self._launch(op, operands, arena)
                case TensorCallOp():
                    given = [as_array(value, MAX_ELEMENTS) for value in operands]
                    results = self.call(op, given)
                    _check_shapes(op, results)
                case CallOp():
                    made = self.call(op, [as_array(values[v], MAX_ELEMENTS) for v in op.inputs])
                    _check_shapes(op, made)
                    values.update(zip(op.outputs, made, strict=True))
                    results = []
                case _:
                    results = _evaluate(op, operands, self.history)
            values.update(zip(op.results, results, strict=True))
        return None

    def _loop(self, op: LoopOp, values: dict[SSAValue, Value], arena: Arena) -> list[Value]:
        for _ in turns(op, values, arena):
            self._block(op.body.block, values, arena)
        for stack in op.stacks:
            self.history.memo.forget(values[stack])
        return []

    def _launch(self, op: LaunchOp, operands: Sequence[Value], arena: Arena) -> list[Value]:
        device = find_kernel(self.module, op)
        arena.launch(op, device)
        arrays = [as_array(value, MAX_ELEMENTS) for value in operands]
        bits = [as_array(as_bits(each), MAX_ELEMENTS) for each in arrays]
        launch(device, bits, self.history)
        return []

    def _callee(self, name: SymbolRefAttr) -> func.FuncOp:
        callee = SymbolTable.lookup_symbol(self.module, name)
        assert isinstance(callee, func.FuncOp)
        return callee


def _only_block(function: func.FuncOp) -> Block:
    """The body of a function. Raises NotExecutable if it has none, or branches."""
    if len(blocks := function.body.blocks) != 1:
        how = "branches from block to block" if blocks else "has no body"
        raise NotExecutable(f"@{function.sym_name.data} {how}")
    return blocks[0]


def _check_shapes(op: TensorCallOp | CallOp, results: Sequence[Array]) -> None:
    for value, type in zip(results, _call_types(op), strict=True):
        if value.shape != (expected := static_shape(type)):
            raise DeploError(
                f"{op.callee.data} gave {list(value.shape)}, the program says {list(expected)}"
            )


def _evaluate(op: Operation, operands: Sequence[Value], history: History) -> Sequence[Value]:
    """The results of an operation that is no launch."""
    try:
        match op:
            case KernelOp():
                given = [as_bits(value) for value in operands]
                outputs = history.memo.run(
                    op,
                    given,
                    lambda: evaluate_kernel(op, given),
                    [cast("MemRefType", argument.type).element_type for argument in op.output_args],
                )
                history.add(outputs)
                elements = [type.element_type for type in op.outputs.types]
                return [from_bits(*each) for each in zip(outputs, elements, strict=True)]
            case AllocOp():
                memref = op.result.type
                assert isinstance(memref, MemRefType)
                shape = static_shape(memref)
                require(shape, MAX_ELEMENTS)
                buffer = poisoned(memref.element_type, shape)
                history.memo.tag(buffer, ("poison", ()))
                return [buffer]
            case _:
                results = evaluate_tensor_op(op, operands)
                if results is None:
                    raise NotExecutable(f"'{op.name}' in @main")
                return results
    except TooWide as error:
        name = f"@{op.sym_name.data}" if isinstance(op, KernelOp) else f"'{op.name}'"
        raise NotExecutable(f"{name}: {error}") from error


# --------------------------------------------------------------------------- inputs

_SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 100.0, -100.0, 1e-4]
"""100 overflows `exp` in f32 and its cube overflows f16. Larger values would make a softmax of their sums so
ill-conditioned that another order of summation is another result."""


def _random_array(type: Attribute, rng: np.random.Generator, adversarial: bool) -> Array:
    if not isinstance(type, TensorType | MemRefType):
        raise NotExecutable(f"no random input of type {type}")
    shape, element = static_shape(type), type.element_type
    require(shape, MAX_ELEMENTS)
    if isinstance(element, IntegerType):
        if element.width.data == 1:
            return rng.integers(0, 2, shape).astype(np.bool_)
        low, high = (-5, 6) if adversarial else (0, 2)
        return rng.integers(low, high, shape).astype(numpy_dtype(element))
    values = rng.standard_normal(shape)
    if adversarial and values.size:
        chosen = rng.random(shape) < min(0.1, 3 / values.size)
        values = np.where(chosen, rng.choice(_SPECIAL, shape), values)
    return convert(values.astype(np.float64), element)


def random_inputs(module: ModuleOp, seed: int = 0) -> list[list[Array]]:
    """Sets of inputs for `@main`: an ordinary one, then one with special values.

    Where there are dynamic sizes, the first set has the sizes of the hints, the second has primes, and a
    third, ordinary one has the smallest sizes.
    """
    types = main_function(module).function_type.inputs.data
    rng = np.random.default_rng(seed)
    choices = random_sizes(module, rng)
    return [
        [_random_array(t, rng, adversarial) for t in types_at(types, sizes)]
        for sizes, adversarial in zip(choices, (False, True, False), strict=False)
    ]


PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


def random_sizes(module: ModuleOp, rng: np.random.Generator) -> list[list[int]]:
    """Choices of the program's sizes: the hints, primes at random, the smallest; or twice none."""
    sizes = sizes_of(main_function(module))
    if not sizes:
        return [[], []]
    primes = [int(p) for p in rng.choice(PRIMES, len(sizes))]
    return [
        [size.hint.data for size in sizes],
        [min(max(p, s.minimum.data), s.largest) for p, s in zip(primes, sizes, strict=True)],
        [size.minimum.data for size in sizes],
    ]
