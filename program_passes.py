"""The passes run on a program, to its plan."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .analysis.fallbacks import fallbacks
from .analysis.plan import build_plan
from .analysis.verify import verify_module
from .codegen.cuda_printer import kernel_texts
from .garbage import fewer_collections
from .machine.host_cpu import host_cpu, lacking
from .machine.targets import Target
from .passes.decisions import recording
from .passes.pipelines import make_pipeline
from .passes.tuned import Lines, tuned_by
from .program_cache import Compiled
from .program_kernels import lower_kernels
from .program_stages import Compilation, make_context, passes_to, stage_of, stages_of


def run_passes(
    module: ModuleOp, target: Target, schedule: str, tuned: Lines, compilation: Compilation
) -> Compiled:
    """Compile a module of Torch IR, which is changed; `compilation` is told of each pass.

    `tuned` has the lines that were found best for kernels. Each stage is verified but that of LLVM IR, whose
    ops are many: LLVM verifies its text.
    """
    context = make_context()
    last = list(stages_of(target))[-1]
    sources: Mapping[str, str] = {}
    with fewer_collections(), recording() as decisions, tuned_by(tuned):
        for stage, passes in passes_to(last, target, schedule, stage_of(module)):
            if stage != "llvm":
                _run(context, module, passes, compilation)
                verify_module(module)
        if not target.is_gpu:
            _run(context, module, make_pipeline("tile-to-scf", target.text), compilation)
            sources = lower_kernels(
                context,
                module,
                make_pipeline("scf-to-llvm", target.text),
                decisions,
                compilation,
                is_run_here=target.name == "cpu" and not lacking(target.cpu or host_cpu()),
            )
    compilation.fallbacks = fallbacks(module)
    start = time.perf_counter()
    if target.is_gpu:
        sources = kernel_texts(module)
    plan = build_plan(module, target.name, sources)
    compilation.seconds.append(("translate", time.perf_counter() - start))
    return Compiled(plan, decisions)


def _run(
    context: Context, module: ModuleOp, passes: Iterable[ModulePass], compilation: Compilation
) -> None:
    for each in passes:
        start = time.perf_counter()
        each.apply(context, module)
        compilation.seconds.append((each.name, time.perf_counter() - start))
