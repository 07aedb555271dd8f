"""`deplo compile`: print a program at any stage."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ..analysis.architecture import require_architecture
from ..analysis.eager_calls import EagerCall
from ..analysis.fallbacks import fallbacks
from ..codegen.cuda_printer import kernel_texts
from ..codegen.llvm_sources import llvm_sources
from ..errors import DeploError, UsageError
from ..frontend.capture import Captured
from ..frontend.sources import Program as Source
from ..machine.host_cpu import find_target
from ..machine.targets import Target
from ..passes.decisions import Decision, recording
from ..passes.pipelines import DEFAULT_CUDA_TARGET
from ..program import Program, module_for
from ..program_stages import make_context, passes_to
from ..program_texts import text_of
from . import saving_option
from .compiling import add_compile_options, capture_source, load, progress
from .console import write_output
from .executors import make_checker
from .fallback_option import tell_fallbacks
from .instrumentation import Instrument, PassFailedError, Timing, WriteTree, run_passes
from .pipeline_text import pipeline_text
from .standalone import standalone_source
from .standalone_c import standalone_c_source
from .target_option import add_target_option

NAME = "compile"
HELP = "compile a program, and print it at one stage or save it"

CPU_ENDS = ("llvm", "asm", "mlir", "c")
"""The stages that only programs for the CPU have."""

STAGES = ("torch", "tensor", "loop", "tile", "kernel", "cuda", *CPU_ENDS)

GROUPS = {"tensor": "d", "tile": "t", "kernel": "k", "cuda": "c"}
"""The letter of the passes that lead to a stage; those to Loop IR are o, l and f, those to native code n."""

GROUPS_HELP = (
    "run only the first groups of passes, such as dol: decomposition, optimization, lifting, fusion, tiling, "
    "kernels, and cuda or native code"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument(
        "-t",
        "--ir",
        choices=STAGES,
        help="the stage to print (cuda, or llvm for cpu; asm is the machine code for this CPU, mlir upstream "
        "dialects alone, c those as C11 with OpenMP)",
    )
    add_target_option(parser, several=True)
    parser.add_argument(
        "--stop-after", metavar="PASS", help="print the program as this pass leaves it"
    )
    parser.add_argument("--passes", metavar="LETTERS", help=GROUPS_HELP)
    add_compile_options(parser)
    parser.add_argument("-o", dest="output", metavar="FILE", help=saving_option.HELP)
    parser.add_argument(
        "--as", dest="format", choices=saving_option.FORMATS, help=saving_option.AS_HELP
    )
    parser.add_argument(
        "--with-ir", action="store_true", help="save the program's text at each stage, too"
    )
    parser.add_argument(
        "--dump-dir", metavar="DIR", type=Path, help="write every stage and kernel below DIR"
    )
    parser.add_argument(
        "--standalone",
        action="store_true",
        help="add a program that runs, checks and times the kernels, for nvcc (--ir cuda) or gcc (--ir c)",
    )
    parser.add_argument("--json", action="store_true", help="print the report instead of the IR")
    parser.add_argument(
        "--check-each-pass",
        action="store_true",
        help="execute the program before and after each pass, in an interpreter, and compare",
    )


class Trace(Instrument):
    """`-vv`: what each pass changed as a diff, or why it did not, pass by pass.

    >>> t:001_tileify
    (unified diff)
    <<< t:001_tileify
    --- t:002_blockify_launch skipped at k_exp: the launch is partitioned already
    """

    def __init__(self, stream: TextIO, letter: str, decisions: list[Decision]):
        self.stream = stream
        self.letter = letter
        self.decisions = decisions
        self.seen = len(decisions)
        self.position = 0
        self.before = ""

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Remember the program as it was."""
        self.before = str(module)

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print what became of it."""
        self.position += 1
        label = f"{self.letter}:{self.position:03}_{each.name.replace('-', '_')}"
        after = str(module)
        new, self.seen = self.decisions[self.seen :], len(self.decisions)
        if after != self.before:
            diff = difflib.unified_diff(
                self.before.splitlines(), after.splitlines(), "before", "after", lineterm=""
            )
            body = "\n".join(list(diff)[2:])
            self.stream.write(f">>> {label}\n{body}\n<<< {label}\n")
        for decision in new:
            if not decision.fired:
                self.stream.write(f"--- {label} skipped at {decision.kernel}: {decision.reason}\n")
        if after == self.before and not any(not d.fired for d in new):
            self.stream.write(f"--- {label} skipped at main: nothing to do\n")


def choose(options: argparse.Namespace) -> tuple[Target, str]:
    """The target and the stage asked for, each with its default from the other."""
    name = options.target or ("cpu" if options.ir in CPU_ENDS else DEFAULT_CUDA_TARGET)
    target = find_target(name)
    return target, options.ir or ("cuda" if target.is_gpu else "llvm")


Group = tuple[str, tuple[ModulePass, ...]]
"""A letter and passes."""


def groups_to(stage: str, target: Target, schedule: str) -> list[Group]:
    """The passes that lead to a stage, in groups."""
    groups: list[Group] = []
    for room, passes in passes_to(stage, target, schedule):
        if room == "loop":
            lift = [each.name for each in passes].index("lift-to-loops")
            parts = passes[:lift], passes[lift : lift + 1], passes[lift + 1 :]
            groups += zip("olf", parts, strict=True)
        else:
            groups.append((GROUPS.get(room, "n"), passes))
    return groups


def groups_asked(stage: str, target: Target, options: argparse.Namespace) -> list[Group]:
    """The groups that lead to a stage, cut off where the options say so. Raises UsageError."""
    groups = groups_to(stage, target, options.schedule)
    road = "".join(letter for letter, _ in groups)
    if options.passes is not None:
        if not options.passes or not road.startswith(options.passes):
            raise UsageError(
                f"--passes {options.passes}: only the last groups may be left off; on the way to {stage} "
                f"they are {road}"
            )
        groups = groups[: len(options.passes)]
    stop_after: str | None = options.stop_after
    if stop_after is None:
        return groups
    for position, (letter, passes) in enumerate(groups):
        names = [each.name for each in passes]
        if stop_after in names:
            return [*groups[:position], (letter, passes[: names.index(stop_after) + 1])]
    known = ", ".join(each.name for _, passes in groups for each in passes)
    raise UsageError(f"no pass '{stop_after}' on the way to {stage}; there are {known}")


def lower(
    captured: Captured, source: Source, target: Target, stage: str, options: argparse.Namespace
) -> tuple[ModuleOp, list[Decision]]:
    """The module at a stage, with the tracing, timing, dumps and checks that the options ask for."""
    module = module_for(captured, target).clone()
    context = make_context()
    timing = Timing(sys.stderr)
    checker = make_checker(captured, source, target.name) if options.check_each_pass else None
    whole: list[Instrument] = [WriteTree(options.dump_dir)] if options.dump_dir else []
    whole += [checker] if checker else []
    with recording() as decisions:
        for instrument in whole:
            instrument.begin(module)
        for letter, passes in groups_asked(stage, target, options):
            instruments: list[Instrument] = [timing] if options.timing else []
            if options.verbose > 1:
                instruments.append(Trace(sys.stderr, letter, decisions))
            instruments += [_Continued(instrument) for instrument in whole]
            try:
                run_passes(context, module, passes, instruments)
            except PassFailedError as failure:
                cause = failure.__cause__ or failure
                if isinstance(cause, DeploError):
                    raise cause from None
                cause.deplo_program = str(module)  # pyright: ignore[reportAttributeAccessIssue]
                cause.deplo_pipeline = pipeline_text(  # pyright: ignore[reportAttributeAccessIssue]
                    failure.remaining
                )
                raise cause from None
    if options.timing:
        timing.report()
    if checker is not None:
        sys.stderr.write(f"check-each-pass: {checker.summary}\n")
    return module, decisions


class _Continued(Instrument):
    """An instrument of all segments, which was begun before the first."""

    def __init__(self, instrument: Instrument):
        self.instrument = instrument

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Tell it what `each` did."""
        self.instrument.after_pass(each, module)


def main(options: argparse.Namespace) -> int:
    """Compile, and print or save."""
    if saving_option.is_asked_for(options):
        saving_option.save_program(options)
        return 0
    if options.json and options.check_each_pass:
        raise UsageError("--check-each-pass goes with printing a stage, not with --json")
    target, stage = choose(options)
    cut = options.stop_after or options.passes
    if options.standalone and (stage not in ("cuda", "c") or cut or options.json):
        raise UsageError("--standalone goes with printing CUDA or C source (--ir cuda, --ir c)")
    # A wrong combination is told before the work of capturing.
    asked = groups_asked(stage, target, options)
    if options.dump_dir:
        with _writing(options.dump_dir):
            options.dump_dir.mkdir(parents=True, exist_ok=True)
    source = load(options)
    captured = capture_source(options, source)
    if options.fallback == "eager":
        tell_fallbacks(_fallbacks(captured, target))
    if options.standalone:
        program = Program(captured, target, options.schedule)
        write = standalone_source if target.is_gpu else standalone_c_source
        text = write(program, source, options.code or options.source)
    elif options.json:
        text = json.dumps(Program(captured, target, options.schedule).report(), indent=2) + "\n"
    else:
        # -v and the like write to stderr themselves.
        alone = not (options.verbose or options.timing or options.check_each_pass)
        with progress(f"compiling {source.title}") if alone else nullcontext():
            module, decisions = lower(captured, source, target, stage, options)
        whole = asked == groups_to(stage, target, options.schedule)
        if whole and stage == "cuda":
            require_architecture(module, target.name)
        text = text_of(stage, module, target) if whole else f"{module!s}\n"
        if options.dump_dir:
            _dump_kernels(module, stage, options.dump_dir)
        if options.verbose:
            _summarize(decisions, Program(captured, target, options.schedule))
    if options.output:
        with _writing(options.output):
            Path(options.output).write_text(text, encoding="utf-8")
    else:
        write_output(text)
    return 0


def _fallbacks(captured: Captured, target: Target) -> tuple[EagerCall, ...]:
    """The operators that PyTorch runs, whatever stage is printed."""
    module = module_for(captured, target).clone()
    for _, passes in passes_to("tensor", target):
        for each in passes:
            each.apply(make_context(), module)
    return fallbacks(module)


@contextmanager
def _writing(path: Path | str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _dump_kernels(module: ModuleOp, stage: str, directory: Path) -> None:
    """Write each kernel's text and a manifest beside the stages."""
    texts: dict[str, str] = {}
    if stage == "cuda":
        texts = {f"{name}.cu": text for name, text in kernel_texts(module).items()}
    elif stage in ("llvm", "asm"):
        sources = llvm_sources(module, named=True)
        texts = {f"{name}.ll": text for name, text in sources.items()}
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    stages = sorted(path.name for path in directory.glob("[0-9][0-9][0-9]_*.mlir"))
    manifest = {"stages": stages, "kernels": sorted(texts)}
    (directory / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _summarize(decisions: list[Decision], program: Program) -> None:
    """`-v`: what was decided, and each kernel's launch and resources."""
    for decision in decisions:
        sys.stderr.write(f"{decision}\n")
    report = program.report()
    for kernel in report["kernels"]:
        resources = ""
        if "registers" in kernel:
            spills = kernel["spill_stores"] + kernel["spill_loads"]
            resources = f", {kernel['registers']} registers, {spills} bytes spilled"
        sys.stderr.write(
            f"{kernel['name']}: {kernel['launches']} launches of {kernel['blocks']} blocks of "
            f"{kernel['threads']} threads{resources}\n"
        )
    if report["note"]:
        sys.stderr.write(f"note: {report['note']}\n")
