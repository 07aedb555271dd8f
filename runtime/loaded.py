"""`deplo.runtime.load`: a program from a file, which runs with numpy alone: no compiler, no PyTorch.

    program = deplo.runtime.load("mlp.deplo")
    program(np.ones((8, 64), np.float32))       # as the program that was saved: same tree, dtypes and shapes

Arguments are numpy arrays, or arrays of other libraries on the CPU (DLPack); results are numpy arrays. An
array of bfloat16 is one of its bits, uint16. A program for a GPU takes arrays that lie there as they are, and
then gives such (`device_arrays.py`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..errors import MissingEnvironmentError, UsageError
from .arrays import NUMPY_DTYPES
from .buckets import Buckets
from .changed_arrays import check_changed
from .outputs import COMPLEX, as_complex, check_value, layout_of, value_of, viewed
from .plan import Plan
from .plan_parts import Argument
from .program_file import WEIGHTS, ProgramFile, read_program_file
from .runners import Runner, module_for, obstacle
from .safetensors import read as read_safetensors
from .sizes import EmptySize
from .trees import count, flatten, unflatten

INVALID = (
    *(KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError),
    *(ArithmeticError, SyntaxError, MemoryError),
)
"""What reading data raises that has not the form it should have."""


def load(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    device: int | None = None,
    public_key: bytes | None = None,
) -> LoadedProgram:
    """The program in a file that `Program.save` or `deplo compile -o x.deplo` wrote.

    Of what it was compiled for, it is the first that this machine can run, or the one named `target`. One
    for a GPU runs on the current GPU, or on number `device`. A file holds machine code: load one only if you
    trust its origin. Digests tell damage, not malice; with a `public_key`, the 32 bytes of an Ed25519 key,
    the file must be signed by its owner. Raises UsageError for what is no sound file, MissingEnvironmentError
    where this machine cannot run it. Nothing is written.
    """
    file = read_program_file(path, public_key)
    try:
        interface = Interface.read(file)
        chosen = _choose(file, target, device)
        return LoadedProgram(file, interface, chosen, module_for(chosen).runner(chosen, device))
    except INVALID as error:
        raise _invalid(file, error) from error


@dataclass(frozen=True)
class Interface:
    """How inputs and outputs stand for the arguments and results of a plan."""

    name: str
    inputs: Any
    """The tree of positional and of named inputs."""
    outputs: Any
    arguments: Sequence[Mapping[str, Any]]
    """Of each, its `name`, and its `input`, a number, or its `weight`, a name."""
    constants: Mapping[int, Any]
    """Inputs that must have these values."""
    strides: Mapping[int, Sequence[int]]
    """Inputs that must have these strides, in elements."""
    values: Sequence[Mapping[str, Any]]
    updates: Sequence[Mapping[str, Any]]
    """Arguments that the program changes: `argument`, the new `value`, and whether it is `assigned`."""

    @staticmethod
    def read(file: ProgramFile) -> Interface:
        """The interface that a file says."""
        said = file.manifest["interface"]
        read = Interface(
            str(said["name"]),
            said["inputs"],
            said["outputs"],
            said["arguments"],
            {int(place): value for place, value in said["constants"].items()},
            {int(place): strides for place, strides in said["strides"].items()},
            said["values"],
            said["updates"],
        )
        inputs = count(read.inputs)
        if not isinstance(said["name"], str) or count(read.outputs) != len(read.values):
            raise ValueError("it has no name, or its outputs have another number than their tree")
        places = [each["input"] for each in read.arguments if "weight" not in each]
        for place in (*places, *read.constants, *read.strides):
            if not isinstance(place, int) or not 0 <= place < inputs:
                raise ValueError("an argument is an input that there is not")
        if any(not isinstance(each["name"], str) for each in read.arguments):
            raise ValueError("an argument has no name")
        return read


def _choose(file: ProgramFile, name: str | None, device: int | None) -> Mapping[str, Any]:
    """What the file holds for this machine, or under a name."""
    reasons: list[str] = []
    for target in file.manifest["targets"]:
        if name not in (None, target["name"]):
            continue
        if (reason := obstacle(target, device)) is None:
            return target
        reasons.append(f"{target['name']} {reason}")
    if not reasons:
        listed = ", ".join(target["name"] for target in file.manifest["targets"])
        raise UsageError(f"{file.path} has no target {name!r}; it has {listed}")
    raise MissingEnvironmentError(f"{file.path} does not run on this machine: {'; '.join(reasons)}")


class LoadedProgram:
    """A program from a file; call it like the one that was saved."""

    def __init__(
        self, file: ProgramFile, interface: Interface, target: Mapping[str, Any], runner: Runner
    ):
        self.file, self.interface = file, interface
        self.target = str(target["name"])
        self._runner = runner
        self._variants = [_Variant(file, each, runner) for each in target["variants"]]
        self._first = self._variants[0]
        plan = self._first.plan
        if len(plan.arguments) != len(interface.arguments):
            raise ValueError("its plan takes other arguments than it says")
        for each in (*interface.values, *(update["value"] for update in interface.updates)):
            counts = {"result": len(plan.results), "argument": len(plan.arguments)}
            check_value(each, counts | {"output": len(interface.values) + len(interface.updates)})
        self._buckets = None
        if len(self._variants) > 1:
            self._buckets = Buckets(plan.sizes, self._first.hints)
        with runner.active():
            self._arrays = self._held()
            _ = self._first.program

    def _held(self) -> list[Any]:
        """The arrays of the arguments that the program holds, and None for its inputs."""
        members = self.file.members
        weights = read_safetensors(members[WEIGHTS]) if WEIGHTS in members else {}
        held: dict[str, Any] = {}
        for argument, said in zip(self.plan.arguments, self.interface.arguments, strict=True):
            if (name := said.get("weight")) is not None and name not in held:
                array = as_complex(weights[name]) if "complex" in said else weights[name]
                held[name] = self._runner.hold(array, argument)
        return [held.get(said.get("weight", "")) for said in self.interface.arguments]

    @property
    def plan(self) -> Plan:
        """The plan that calls run, as long as sizes do not ask for another."""
        return self._first.plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Raises UsageError if the inputs do not fit what it was compiled for."""
        with self._runner.active():
            flat = self._call(flatten(self.interface.inputs, (args, kwargs), "the inputs"))
        return unflatten(self.interface.outputs, iter(flat))

    def _call(self, inputs: Sequence[Any]) -> list[Any]:
        """The flattened outputs for flattened inputs."""
        arguments = self._arguments(inputs)
        changed = {each["argument"] for each in self.interface.updates if not each["assigned"]}
        if changed:
            names = [said["name"] for said in self.interface.arguments]
            check_changed(names, [*map(layout_of, arguments)], changed)
        passed = [
            _parts(argument, value) if "complex" in said else value
            for argument, value, said in zip(
                self.plan.arguments, arguments, self.interface.arguments, strict=True
            )
        ]
        results = self._run(passed)
        try:
            flat = self._returned(results, arguments, changed)
        except INVALID as error:
            raise _invalid(self.file, error) from error
        self._runner.finish()
        said = zip(arguments, self.interface.arguments, strict=True)
        return self._runner.give(flat, [value for value, each in said if "weight" not in each])

    def _run(self, arguments: Sequence[Any]) -> Sequence[Any]:
        variant = self._first
        if self._buckets is not None:
            bucket = self._buckets.of(arguments)
            variant = next((each for each in self._variants if each.hints == bucket), variant)
        given: Sequence[Sequence[Any]] = ()
        while True:
            try:
                return variant.program(*arguments, given=given)
            except EmptySize as found:
                variant, given = variant.without(found.number), found.given

    def _arguments(self, flat: Sequence[Any]) -> list[Any]:
        """The arrays of all arguments of the plan, of the flattened inputs of a call."""
        for place, expected in self.interface.constants.items():
            if type(flat[place]) is not type(expected) or flat[place] != expected:
                raise UsageError(
                    f"input {place} is {flat[place]!r}, but the program was compiled for {expected!r}"
                )
        arguments: list[Any] = []
        take = self._runner.take
        for said, held in zip(self.interface.arguments, self._arrays, strict=True):
            arguments.append(held if "weight" in said else take(said["name"], flat[said["input"]]))
        for place, said in enumerate(self.interface.arguments):
            wanted = self.interface.strides.get(said.get("input", -1))
            if wanted is not None:
                _check_strides(said["name"], arguments[place], wanted)
        return arguments

    def _returned(
        self, results: Sequence[Any], arguments: Sequence[Any], changed: set[int]
    ) -> list[Any]:
        """The flattened outputs; arguments that the program changes get their new values."""
        flat: list[Any] = []
        sources = {"result": results, "argument": arguments, "output": flat}
        for each in self.interface.values:
            flat.append(value_of(each, sources))
        copied: list[tuple[Any, Any]] = []
        for each in self.interface.updates:
            place, said = each["argument"], each["value"]
            value = value_of(said, sources)
            flat.append(value)
            if each["assigned"]:
                self._arrays[place] = value
            elif value is not arguments[place]:
                moves = said.get("from") == "argument" and said["index"] in changed
                copied.append((arguments[place], value.copy() if moves else value))
        for target, value in copied:
            target[...] = value
        return flat[: len(self.interface.values)]


class _Variant:
    """One plan of a program, with its code: for sizes like its hints."""

    def __init__(self, file: ProgramFile, said: Mapping[str, Any], runner: Runner | None = None):
        """`runner` is what runs it, if anything is to."""
        self._file = file
        self._code = said["code"]
        self._runner = runner
        self.hints = tuple(map(int, said["hints"]))
        self.plan = Plan.from_data(json.loads(bytes(file.members[said["plan"]])))
        without = said["without"].items()
        self._empty = {int(n): _Variant(file, each, runner) for n, each in without}

    @cached_property
    def program(self) -> Callable[..., Sequence[Any]]:
        """The plan, ready to run."""
        assert self._runner is not None
        return self._runner.program(self.plan, self._code, self._file.members)

    def described(self, target: Mapping[str, Any]) -> dict[str, Any]:
        """What it is of a target, as JSON data."""
        named = zip((size.name for size in self.plan.sizes), self.hints, strict=True)
        return {
            "kernels": sum(len(plan.kernels) for plan in self.plan.whole),
            "launches": sum(plan.launch_count() for plan in self.plan.whole),
            "hints": dict(named),
            **module_for(target).code_described(self._code, self._file.members),
        }

    def without(self, size: int) -> _Variant:
        """The program for which a size is 0."""
        if size not in self._empty:
            raise UsageError(
                f"'{self.plan.sizes[size].name}' is 0, for which the program was not saved"
            )
        return self._empty[size]


def described(file: ProgramFile) -> dict[str, Any]:
    """What a file holds, as JSON data. Raises UsageError for what is no sound file."""
    try:
        interface = Interface.read(file)
        plans = {
            target["name"]: [_Variant(file, each) for each in target["variants"]]
            for target in file.manifest["targets"]
        }
        (first, *_), *_ = plans.values()
        sizes = [size.name for size in first.plan.sizes]
        held = read_safetensors(file.members[WEIGHTS]) if WEIGHTS in file.members else {}
        return {
            "name": interface.name,
            "deplo": str(file.manifest["deplo"]),
            "bytes": file.path.stat().st_size,
            "inputs": [f"{a.name}: {a.said}" for a in first.plan.arguments if a.kind == "input"],
            "outputs": [first.plan.array(ref).named(sizes) for ref in first.plan.results],
            "weights": [f"{name}: {value.dtype}{list(value.shape)}" for name, value in held.items()],
            "targets": [
                {
                    "name": target["name"],
                    "machine": module_for(target).described(target),
                    "features": target.get("features", []),
                    "runs": obstacle(target),
                    "ir": target.get("ir", {}),
                    "variants": [each.described(target) for each in plans[target["name"]]],
                }
                for target in file.manifest["targets"]
            ],
        }
    except INVALID as error:
        raise _invalid(file, error) from error


def _invalid(file: ProgramFile, error: Exception) -> UsageError:
    what = f"{type(error).__name__}: {error}"
    return UsageError(f"{file.path} is not a program that deplo can load ({what}); save it again")


def _parts(argument: Argument, value: Any) -> Any:
    """A complex array as a real one with an axis more, of the parts of each number, as the plan takes it.

    Raises UsageError for anything else.
    """
    real = NUMPY_DTYPES[argument.array.dtype]
    layout = layout_of(value)
    is_array = isinstance(layout, np.ndarray | np.generic)
    if not is_array or layout.dtype != COMPLEX[real]:
        got = layout.dtype if is_array else type(value).__name__
        raise UsageError(
            f"argument '{argument.name}': expected dtype {COMPLEX[real]}, got {got}; compile the program "
            "again for other arrays"
        )
    if layout is value:
        value = np.ascontiguousarray(value)
    return viewed(value, lambda array: array.view(real).reshape(*layout.shape, 2), reshapes=True)


def _check_strides(name: str, value: Any, wanted: Sequence[int]) -> None:
    """Raise UsageError for an array that lies otherwise in memory than the program reads it."""
    value = layout_of(value)
    if not isinstance(value, np.ndarray) or value.ndim != len(wanted):
        return  # other checks say so
    strides = [stride // value.itemsize for stride in value.strides]
    axes = zip(value.shape, strides, wanted, strict=True)
    if value.size and any(n != 1 and has != needs for n, has, needs in axes):
        raise UsageError(
            f"argument '{name}' must have strides {list(wanted)} in elements, as when compiled; it has "
            f"{strides}: pass a copy that lies so"
        )


