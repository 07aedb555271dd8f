"""`--check-each-pass`: run the program before and after each pass and compare what it computes.

The program runs on random and adversarial inputs in the interpreter: operators of PyTorch as what
`decompose-torch` makes of them. A stage that the interpreter
cannot run is passed over with a remark, and the next stage that runs is compared with the last one
that ran; so a wrong result is blamed on the passes between the two. A pass that changed nothing is not
followed by another run, and a kernel that did not change is not executed again on the same arrays
(`interpreter/memo.py`). Of a launch that would take too long, a sample of the blocks runs
(`interpreter/launches.py`), which is remarked on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ContainerType,
    FunctionType,
    MemRefType,
    ModuleOp,
    TensorType,
    bf16,
    f32,
    tf32,
)
from xdsl.ir import Attribute
from xdsl.passes import ModulePass

from .. import interpreter
from ..analysis.cost import elements
from ..analysis.equivalence import equivalent
from ..analysis.verify import Snapshot
from ..dialects.products import rounded_products
from ..dialects.torch import CallOp
from ..dialects.torch_base import TorchOp
from ..errors import DeploError, MismatchError
from ..passes.torch.decompose_torch import DecomposeTorchPass
from .instrumentation import Instrument
from .promises import BrokenPromiseError

Array: TypeAlias = npt.NDArray[Any]
Execute: TypeAlias = Callable[[ModuleOp, Sequence[Array], interpreter.History], Sequence[Array]]
"""Runs a module on inputs, given the history of earlier runs on them. Raises `interpreter.NotExecutable`
for a stage it does not know, and `interpreter.ProgramError` where the program itself fails."""

Outcome: TypeAlias = Sequence[Array] | interpreter.ProgramError
"""What one set of inputs leads to."""

SEED = 0
MAX_INPUT_ELEMENTS = 1 << 26
"""A program with more input than this is not run: it would take gigabytes and minutes."""


def decomposed(module: ModuleOp) -> ModuleOp:
    """A module that the interpreter knows: one in Torch IR as what its operators are decomposed to.

    Raises `interpreter.NotExecutable` where one cannot be.
    """
    if not any(isinstance(op, TorchOp | CallOp) for op in module.walk()):
        return module
    copy = module.clone()
    try:
        DecomposeTorchPass().apply(Context(), copy)
    except DeploError as error:
        raise interpreter.NotExecutable(str(error)) from error
    return copy


def _execute(
    module: ModuleOp, inputs: Sequence[Array], history: interpreter.History
) -> Sequence[Array]:
    return interpreter.execute(decomposed(module), inputs, history)


class PassChecker(Instrument):
    """Compares the program's results around each pass; raises `MismatchError` when they differ.

    `execute` may know more stages than the interpreter does (torch, native code). `inputs` are the
    input sets to run on; without them the interpreter chooses. `tell` receives a line for each
    stage passed over and for each kernel of which a sample ran. An input that breaks what its IR promises
    raises `BrokenPromiseError`, unless something is `assumed` of it.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        execute: Execute = _execute,
        inputs: Sequence[Sequence[Array]] | None = None,
        assumed: bool = False,
    ):
        self._tell = tell
        self._execute = execute
        self._given = inputs
        self._assumed = assumed
        self._inputs: Sequence[Sequence[Array]] = ()
        self._histories: list[interpreter.History] = []
        self._executed: ModuleOp | None = None
        self._snapshot: Snapshot | None = None
        self._executed_before: ModuleOp | None = None
        self._expected: list[Outcome] | None = None
        self._elements: Sequence[Attribute | None] = ()
        self._since: list[ModulePass] = []
        self.checked = 0
        """How many stages compute what the one before does."""
        self.unchanged = 0
        """How many of them are the one before, unchanged."""

    @property
    def summary(self) -> str:
        """What was found."""
        return f"{self.checked} stages compute the same, {self.unchanged} of them unchanged"

    def begin(self, module: ModuleOp) -> None:
        """Run the program as it came in."""
        self._executed = None
        self._expected = None
        self._since = []
        try:
            self._inputs = self._given or _random_inputs(module)
        except interpreter.NotExecutable as error:
            self._inputs = ()
            self._tell(f"check-each-pass: nothing is checked: {error}")
            return
        self._elements = _result_elements(module)
        if rounded := set(rounded_products(module).values()):
            # Another order of sums may round the factor that a sum becomes to its other neighbour.
            coarse = bf16 if bf16 in rounded else tf32
            self._elements = [coarse if element == f32 else element for element in self._elements]
        self._histories = [interpreter.History() for _ in self._inputs]
        self._expected = self._run(module, "the input")
        for outcome in self._expected or ():
            if isinstance(outcome, interpreter.ProgramFault):
                self._refuse(outcome)
                break

    def _refuse(self, fault: interpreter.ProgramFault) -> None:
        """Report that the input itself is wrong; with assumptions about it, its checks go on."""
        if not self._assumed:
            raise BrokenPromiseError(fault.message, fault.op)
        self._tell(f"check-each-pass: the input: {fault}")

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Run the program as `each` left it, and compare with the last time it ran."""
        if self._executed is not None and self._is_as_executed(module):
            self.checked += 1
            self.unchanged += 1
            self._since = []
            return
        self._since.append(each)
        self._executed_before = self._executed
        outcomes = self._run(module, f"after {each.name}")
        if outcomes is None:
            return
        if self._expected is not None:
            self._compare(self._expected, outcomes)
            self.checked += 1
        self._expected = outcomes
        self._since = []

    def _is_as_executed(self, module: ModuleOp) -> bool:
        """Whether a module says what the one did that ran; most passes leave most modules as they are."""
        assert self._executed is not None and self._snapshot is not None
        return self._snapshot.same(Snapshot(module)) or equivalent(self._executed, module)

    def _run(self, module: ModuleOp, stage: str) -> list[Outcome] | None:
        outcomes: list[Outcome] = []
        for inputs, history in zip(self._inputs, self._histories, strict=True):
            try:
                with np.errstate(all="ignore"):
                    copies = [array.copy() for array in inputs]
                    outcomes.append(self._execute(module, copies, history))
            except interpreter.ProgramError as error:
                outcomes.append(error)
            except interpreter.NotExecutable as error:
                self._tell(f"check-each-pass: {stage}: not executed: {error}")
                return None
        remarks = dict.fromkeys(remark for h in self._histories for remark in h.remarks)
        for remark in remarks:
            self._tell(f"check-each-pass: {stage}: {remark}")
        self._executed = module.clone() if outcomes else None
        self._snapshot = Snapshot(module)
        return outcomes or None

    def _compare(self, expected: list[Outcome], outcomes: list[Outcome]) -> None:
        for number, (before, after) in enumerate(zip(expected, outcomes, strict=True)):
            if (problem := self._difference(before, after)) is None:
                continue
            passes = " or ".join(f"'{each.name}'" for each in self._since)
            raise MismatchError(
                f"the program computes something else after pass {passes} "
                f"(input set {number}): {problem}",
                "" if self._executed_before is None else str(self._executed_before),
                tuple(str(each.spec()) for each in self._since),
            )

    def _difference(self, before: Outcome, after: Outcome) -> str | None:
        """What differs, or `None`; where the program failed before, anything may come after."""
        if isinstance(before, interpreter.ProgramError):
            return None
        if isinstance(after, interpreter.ProgramError):
            return f"it fails: {after}"
        if len(before) != len(after):
            return f"{len(before)} results became {len(after)}"
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            element = self._elements[index] if index < len(self._elements) else None
            if (problem := interpreter.compare(left, right, element)) is not None:
                return f"result {index}: {problem}"
        return None


def _random_inputs(module: ModuleOp) -> Sequence[Sequence[Array]]:
    main = _main_type(module)
    inputs = main.inputs.data if main else ()
    if (
        sum(elements(t) for t in inputs if isinstance(t, TensorType | MemRefType))
        > MAX_INPUT_ELEMENTS
    ):
        raise interpreter.NotExecutable("the inputs are too large")
    return interpreter.random_inputs(module, SEED)


def _result_elements(module: ModuleOp) -> list[Attribute | None]:
    """The element types of the results of `@main`; bf16 results are judged more leniently."""
    main = _main_type(module)
    outputs = main.outputs if main is not None else ()
    return [t.get_element_type() if isinstance(t, ContainerType) else None for t in outputs]


def _main_type(module: ModuleOp) -> FunctionType | None:
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == "main":
            return op.function_type
    return None
