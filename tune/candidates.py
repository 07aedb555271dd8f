"""The candidates of one kernel, compiled by a worker: those that come next, too, while the GPU measures."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from xdsl.parser import Parser

from ..analysis.plan import build_plan
from ..analysis.verify import verify_module
from ..codegen.cuda_printer import kernel_texts
from ..codegen.llvm_sources import llvm_sources
from ..errors import DeploError
from ..machine.host_cpu import find_target
from ..program_stages import make_context
from ..runtime.cpu import CpuProgram
from ..runtime.cuda import CudaProgram
from ..runtime.nvrtc import MAX_THREADS
from ..runtime.plan import Plan
from ..runtime.threads import thread_count
from .database import Choices, choices_text
from .kernels import passes_below, passes_with

Program = CpuProgram | CudaProgram

AHEAD_SECONDS = 10.0
"""Seconds of passes, at most, for candidates that come next: the one that is asked for waits meanwhile."""


def plan_kernel(text: str, scheduled_by: str, choices: Choices | None, target: str) -> Plan:
    """Kernels that become one, with choices asked of the pass `scheduled_by`, else as the model decides.

    The text is Loop IR. Raises DeploError.
    """
    context, machine = make_context(), find_target(target)
    module = Parser(context, text).parse_module()
    for each in [*passes_with(machine, scheduled_by, choices), *passes_below(machine)]:
        each.apply(context, module)
    verify_module(module)
    sources = kernel_texts(module) if machine.is_gpu else llvm_sources(module)
    return Plan.from_data(json.loads(json.dumps(build_plan(module, target, sources))))


def program_of(plan: Plan) -> Program:
    """The machine code of a plan. Raises DeploError."""
    return CudaProgram(plan) if find_target(plan.target).is_gpu else CpuProgram(plan, "torch")


class Candidates:
    """Compiles a kernel as `scheduled_by` decides.

    Passes are Python, and run before a measurement; NVRTC is not, and goes on during one. So nothing is
    compiled ahead on a CPU, which LLVM would keep from measuring.
    """

    def __init__(self, module: str, scheduled_by: str, target: str):
        self._kernel = module, scheduled_by
        self._target = target
        self._pool = ThreadPoolExecutor(min(thread_count(), MAX_THREADS))
        self._begun: dict[str, Future[Program]] = {}

    def get(self, choices: Choices | None, ahead: Sequence[Choices] = ()) -> Program:
        """A candidate, or the model's choice; `ahead` are candidates that come next. Raises DeploError."""
        if choices is None:
            return program_of(self._plan(None))
        mine = self._begin(choices)
        start = time.monotonic()
        for each in ahead if find_target(self._target).is_gpu else ():
            if time.monotonic() - start > AHEAD_SECONDS:
                break
            self._begin(each)
        del self._begun[choices_text(choices)]
        return mine.result()

    def _begin(self, choices: Choices) -> Future[Program]:
        name = choices_text(choices)
        if name not in self._begun:
            try:
                made = self._pool.submit(program_of, self._plan(choices))
            except DeploError as error:
                made = Future[Program]()
                made.set_exception(error)
            self._begun[name] = made
        return self._begun[name]

    def _plan(self, choices: Choices | None) -> Plan:
        return plan_kernel(*self._kernel, choices, self._target)
