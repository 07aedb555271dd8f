"""What `deplo-opt` asks of a program before it runs passes: that it keeps what its IRs promise.

An op's verifier sees one op. Here whole kernels are looked at: accesses stay inside of their arrays, outputs
are stored once, threads do not race. A broken promise is an error at its operation. One that can be neither
proven nor decided is remembered, and becomes an error where code for a GPU is made, unless `--assume` names
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ..analysis.promises import Open, Promise, open_promises
from ..analysis.stores import KernelFunc
from ..dialects import cuda
from ..dialects.index_map import IndexMapOp
from ..dialects.loop import KernelOp
from ..errors import DeploError, UsageError


class BrokenPromiseError(DeploError):
    """A program does what its IR forbids; `op` does it."""

    def __init__(self, message: str, op: Operation):
        super().__init__(message)
        self.op = op


def parse_assumptions(text: str) -> set[Promise]:
    """The promises named in a list such as `in-bounds,race-free`. Raises UsageError for another name."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if wrong := [name for name in names if name not in list(Promise)]:
        raise UsageError(
            f"--assume: no promise is called '{wrong[0]}'; there are {', '.join(Promise)}"
        )
    return {Promise(name) for name in names}


class Promises:
    """The promises of one program, but for those that are assumed."""

    def __init__(self, module: ModuleOp, assumed: set[Promise]):
        self._assumed = assumed
        self._module = module
        self._has_cuda = _has_cuda(module)
        self._open: list[Open] = []

    def check(self) -> list[BrokenPromiseError]:
        """The promises that are broken; what stays open is kept for `require_proofs`."""
        unproven: list[Open] = []
        on_device = False
        for op in self._module.walk():
            on_device |= isinstance(op, KernelFunc)
            if isinstance(op, KernelOp | IndexMapOp):
                unproven += [
                    each for each in open_promises(op) if each.promise not in self._assumed
                ]
        if not unproven and (not on_device or Promise.RACE_FREE in self._assumed):
            return []
        # Imported here because numpy alone would take a third of the driver's start-up time.
        decide: Any = import_module("..interpreter.promises", __package__).decide
        faults, self._open = decide(self._module, unproven, self._assumed)
        return [BrokenPromiseError(fault.message, fault.op) for fault in faults]

    def require_proofs(self, module: ModuleOp, target: str) -> list[BrokenPromiseError]:
        """The open promises that code for a GPU needs, if that is made: of `target`, or by the passes."""
        if target != "cuda" and (self._has_cuda or not _has_cuda(module)):
            return []
        return [
            BrokenPromiseError(
                f"{_named(each.op)}is not proven to be {each.promise} ({each.reason}); "
                f"--assume={each.promise} takes your word for it",
                each.op,
            )
            for each in self._first_of_each()
        ]

    def _first_of_each(self) -> Sequence[Open]:
        found: dict[tuple[Operation, Promise], Open] = {}
        for each in self._open:
            found.setdefault((each.op, each.promise), each)
        return list(found.values())


def _named(op: Operation) -> str:
    name = getattr(op, "sym_name", None)
    return "" if name is None else f"@{name.data} "


def _has_cuda(module: ModuleOp) -> bool:
    return any(isinstance(op, cuda.FuncOp) for op in module.walk())
