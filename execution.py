"""`ExecutionPlan`: a compiled program and the arrays it runs on.

It is what `deplo.prepare` gives, and what a `Program` of `deplo.compile` is: these differ in how they say
what is computed and in what their arrays are, not in how it runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from .analysis.sizes import size_hints, with_hints, without_size
from .errors import MissingEnvironmentError, UsageError
from .garbage import fewer_collections
from .machine.host_cpu import lacking
from .machine.targets import Target
from .program_stages import Compilation, asked_schedule, compile_module, texts
from .runtime.buckets import Bucket, Buckets
from .runtime.cpu import CpuProgram
from .runtime.cuda import CudaProgram
from .runtime.plan import Plan
from .runtime.plan_parts import Step
from .runtime.sizes import EmptySize, Extent, evaluate


@dataclass(frozen=True)
class Kernel:
    """One kernel of a program: its name and its text, CUDA C++ or LLVM IR."""

    name: str
    source: str


MAX_BUCKETS = 32
"""Buckets of sizes that a program is compiled for."""


class Code:
    """What a module of Torch IR becomes on a target; made when first needed, shared by all that run it."""

    def __init__(
        self,
        module: ModuleOp,
        target: Target,
        schedule: str | None = None,
        library: str | None = None,
        bucketed: bool = False,
    ):
        """`library` is where results come from if no argument says so.

        With `bucketed`, it is compiled again when sizes are first in another bucket, or above their hints.
        """
        self.module = module
        self.target = target
        self.schedule = asked_schedule(schedule)
        self.compilation = Compilation()
        self._library = library
        self._empty: dict[int, Code] = {}
        self._bucketed = bucketed
        self._suited: dict[Bucket, Code] = {}
        self._latest: CpuProgram | CudaProgram | None = None
        self._lock = threading.Lock()

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The plan as JSON data."""
        return compile_module(self.module, self.target, self.schedule, self.compilation).plan

    @cached_property
    def plan(self) -> Plan:
        """The compiled program as data."""
        return Plan.from_data(self.data)

    @cached_property
    def executable(self) -> CpuProgram | CudaProgram:
        """The machine code of all kernels.

        Raises MissingEnvironmentError where the machine lacks the compiler.
        """
        cpu = self.target.cpu if self.target.name == "cpu" else None
        if cpu is not None and (missing := lacking(cpu)):
            raise MissingEnvironmentError(
                f"the program is compiled for {cpu.text}, and this CPU has no {', '.join(missing)}: it can "
                "be printed, and run with DEPLO_CPU_MODEL unset"
            )
        plan, start = self.plan, time.perf_counter()
        with fewer_collections():
            made = CudaProgram(plan) if self.target.is_gpu else CpuProgram(plan, self._library)
        name = "nvrtc" if self.target.is_gpu else "llvm -O3"
        self.compilation.seconds.append((name, time.perf_counter() - start))
        self.compilation.begun.clear()
        return made

    def run(self, arguments: Sequence[Any], given: Sequence[Sequence[Any]] = ()) -> Sequence[Any]:
        """The results of `@main`; `given` is what its first calls of PyTorch gave."""
        if self._buckets is None:
            return self._run(arguments, given)
        if not given and (results := self.again(arguments)) is not None:
            return results
        if (bucket := self._buckets.of(arguments)) is None:
            return self._run(arguments, given)
        code = self._suited.get(bucket) or self._suit(bucket)
        self._latest = code.executable
        return code._run(arguments, given)

    def again(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """The results of a call like one before in the bucket of the latest one, by the shapes alone."""
        return None if self._latest is None else self._latest.again(arguments)

    def _run(self, arguments: Sequence[Any], given: Sequence[Sequence[Any]]) -> Sequence[Any]:
        try:
            if given:
                return self.executable(*arguments, given=given)
            return self.executable(*arguments)
        except EmptySize as found:
            return self.without(found.number).run(arguments, found.given)

    @cached_property
    def _buckets(self) -> Buckets | None:
        """The buckets of its sizes, if there are any and it is to be compiled for each."""
        sizes = self.plan.sizes
        if not self._bucketed or all(size.argument is None for size in sizes):
            return None
        return Buckets(sizes, tuple(size_hints(self.module)))

    def _suit(self, bucket: Bucket) -> Code:
        """What is compiled for a bucket; this one for its own hints, and where there are too many."""
        assert self._buckets is not None
        with self._lock:
            if bucket not in self._suited:
                suited = self
                if bucket != self._buckets.hints and len(self._suited) < MAX_BUCKETS:
                    module = with_hints(self.module, bucket)
                    suited = Code(module, self.target, self.schedule, self._library)
                self._suited[bucket] = suited
            return self._suited[bucket]

    @property
    def codes(self) -> list[Code]:
        """This one, and those for the buckets that it was compiled for since."""
        return [*dict.fromkeys([self, *self._suited.values()])]

    @property
    def compiled_for(self) -> list[dict[str, int]]:
        """The hints of the sizes of each of `codes`."""
        names = [size.name for size in self.plan.sizes]
        return [dict(zip(names, size_hints(code.module), strict=True)) for code in self.codes]

    def without(self, size: int) -> Code:
        """The program for which a size is 0, compiled when it is first needed."""
        if size not in self._empty:
            module = without_size(self.module, size)
            self._empty[size] = Code(module, self.target, self.schedule, self._library)
        return self._empty[size]


class ExecutionPlan:
    """A compiled program, what it was compiled to and how it runs."""

    def __init__(self, code: Code):
        self.code = code

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self.code.target

    @property
    def schedule(self) -> str:
        """The choices that its contractions were asked to make."""
        return self.code.schedule

    @property
    def compilation(self) -> Compilation:
        """What was decided, and how long it took."""
        return self.code.compilation

    @property
    def plan(self) -> Plan:
        """The compiled program as data."""
        return self.code.plan

    @property
    def executable(self) -> CpuProgram | CudaProgram:
        """The machine code; see `Code.executable`."""
        return self.code.executable

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The program's kernels; one that is launched several times is here once."""
        found = {k.name: k.source for plan in self.plan.whole for k in plan.kernels}
        return tuple(Kernel(name, source) for name, source in found.items())

    def stage(self, stage: str) -> ModuleOp:
        """The module at a stage: torch, tensor, loop, tile, then kernel and cuda, or llvm."""
        return texts().module_at(stage, self.code.module, self.target, self.schedule)

    def ir(self, stage: str) -> str:
        """The text of a stage; that of `cuda` is CUDA C++. Raises UsageError if there is none."""
        return texts().text_of(stage, self.stage(stage), self.target)

    def run(
        self, arguments: Sequence[Any], sizes: Mapping[str, int] | None = None
    ) -> Sequence[Any]:
        """Run the program on all its arguments, in the order of `plan.arguments`.

        With `sizes`, of its dynamic sizes by name, it reads that much of each argument, from the front.
        Raises UsageError if the arguments do not fit, or a size is missing or not allowed.
        """
        return self.code.run(arguments if sizes is None else self._cut(arguments, sizes))

    def _cut(self, arguments: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
        plan = self.plan
        names = [size.name for size in plan.sizes]
        if unknown := set(sizes) - set(names):
            listed = f"its sizes are {', '.join(names)}" if names else "all its sizes are fixed"
            raise UsageError(f"the program has no size '{min(unknown)}'; {listed}")
        if missing := [name for name in names if name not in sizes]:
            raise UsageError(f"'{missing[0]}' needs a value: execute_with({missing[0]}=…)")
        for size in plan.sizes:
            size.check(sizes[size.name])
        values = [sizes[name] for name in names]
        cut: list[Any] = []
        for value, argument in zip(arguments, plan.arguments, strict=True):
            wanted = [evaluate(extent, values) for extent in argument.array.shape]
            if any(has < extent for has, extent in zip(value.shape, wanted, strict=True)):
                said = ", ".join(f"{name} = {sizes[name]}" for name in names)
                raise UsageError(
                    f"argument '{argument.name}' has shape {list(value.shape)}, with {said} the "
                    f"program reads {wanted}: bind a larger one"
                )
            cut.append(value[tuple(map(slice, wanted))])
        return cut

    def report(self) -> dict[str, Any]:
        """What was decided and made, as JSON data; compiles the kernels if NVRTC or LLVM is there."""
        usage: Mapping[str, Any] = {}
        note = None
        try:
            executable = self.executable
            usage = executable.usage if isinstance(executable, CudaProgram) else {}
        except MissingEnvironmentError as error:
            note = str(error)
        whole = self.plan.whole
        steps = {step.kernel: step for plan in whole for step in plan.launches}
        return {
            "target": self.target.name,
            "kernels": [
                {
                    "name": k.name,
                    "blocks": _as_data(steps[k.name].blocks),
                    "threads": steps[k.name].threads,
                    "launches": sum(plan.launch_count(k.name) for plan in whole),
                    **({} if k.name not in usage else vars(usage[k.name])),
                }
                for k in self.kernels
            ],
            "calls": [
                {
                    "operator": f.operator,
                    "count": len(f.where),
                    "where": list(f.where),
                    "reason": f.reason or None,
                }
                for f in self.compilation.fallbacks
            ],
            "groups": [
                [step.kernel for i in group if isinstance(step := self.plan.steps[i], Step)]
                for group in self.plan.groups
                if len(group) > 1
            ],
            "sizes": [
                {"name": size.name, "minimum": size.minimum, "maximum": size.maximum}
                for size in self.plan.sizes
            ],
            "arena_bytes": self.plan.arena_bytes,
            "compiled_for": self.code.compiled_for,
            "decisions": [
                {"pass": d.pass_name, "kernel": d.kernel, "fired": d.fired, "reason": d.reason}
                for d in self.compilation.decisions
            ],
            "seconds": [{"step": n, "seconds": s} for n, s in self.compilation.seconds],
            "note": note,
        }


def _as_data(extent: Extent) -> int | str:
    """An extent as JSON data."""
    return extent if isinstance(extent, int) else str(extent)
