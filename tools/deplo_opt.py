"""`deplo-opt`: parse a program, run passes on it, print it; an mlir-opt for these dialects."""

from __future__ import annotations

import argparse
import inspect
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from xdsl.dialects import get_all_dialects as get_xdsl_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.targets import get_all_targets as get_xdsl_targets
from xdsl.transforms import get_all_passes as get_xdsl_passes
from xdsl.utils.arg_spec import parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from ..analysis.promises import Promise
from ..analysis.verify import verify_module
from ..errors import DeploError, MismatchError, UsageError
from ..passes.decisions import Decision, recording
from ..passes.pipelines import expand
from ..universe import DEPLO
from .console import run_console, write_output
from .deplo_opt_options import add_options, versions
from .diagnostics import Diagnostic, Diagnostics, describe, render
from .expected_diagnostics import find_expectations, unmet
from .input_text import Chunk, InvalidUtf8Error, read_text, split
from .instrumentation import (
    Instrument,
    PassFailedError,
    PrintChanges,
    PrintIR,
    Timing,
    WriteTree,
    run_passes,
)
from .located_parser import LocatedParser
from .pass_help import help_text, list_text
from .pipeline_text import parse_passes, pipeline_text
from .promises import BrokenPromiseError, Promises, parse_assumptions
from .remarks import Remarks
from .reproducer import Reproducer, file_of, of_mismatch, read_reproducer, write_directory
from .text_targets import check_written, llvm_target, no_text
from .xdsl_options import is_shrink, report_shrink, xdsl_instruments

if TYPE_CHECKING:
    from .check_each_pass import PassChecker

EXIT_FINE, EXIT_ERROR = 0, 1


class DeploOptMain(xDSLOptMain):
    """The driver; `execute` does everything and returns the exit code."""

    def __init__(self, args: Sequence[str]):
        self.diagnostics = Diagnostics()
        self.passes: tuple[ModulePass, ...] = ()
        self._assumed: set[Promise] = set()
        self.timing = Timing(sys.stderr)
        self.can_shrink = False
        super().__init__("", args)

    def register_all_dialects(self) -> None:
        """xDSL's dialects and deplo's; other plug-ins are not searched for, which takes long."""
        for name, factory in {**get_xdsl_dialects(), **DEPLO.all_dialects}.items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        """xDSL's passes and deplo's."""
        self.available_passes.update({**get_xdsl_passes(), **DEPLO.all_passes})

    def register_all_targets(self) -> None:
        """xDSL's targets and deplo's, and the machine that `--run` takes."""
        own = {**DEPLO.all_targets, "llvm": llvm_target, "cpu": get_xdsl_targets()["mlir"]}
        self.available_targets.update({**get_xdsl_targets(), **own})

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        """Deplo's own options instead of xDSL's."""
        add_options(arg_parser)

    def setup_pipeline(self) -> None:
        """Pipelines are made in `execute`: a reproducer's stands in the input."""

    def execute(self) -> int:
        """Read, compile, write; all errors become diagnostics."""
        if self.args.version:
            print(versions())
            return EXIT_FINE
        if self.args.list_passes:
            sys.stdout.write(list_text(options=self.args.list_passes == "options"))
            return EXIT_FINE
        if self.args.help_pass is not None:
            sys.stdout.write(help_text(self.args.help_pass))
            return EXIT_FINE
        if self.args.list_dialects:
            sys.stdout.write("\n".join(sorted(self.ctx.registered_dialect_names)) + "\n")
            return EXIT_FINE
        self._check_target()
        self._assumed = parse_assumptions(self.args.assume)
        name, text = self._read_input()
        self.passes = expand(parse_passes(self.args.passes, self.available_passes))
        self.diagnostics.sources[name] = text
        self.diagnostics.collect = self.args.verify_diagnostics
        code, outputs = self._process(split(text, self.args.split_input_file), name)
        if self.args.timing:
            self.timing.report()
        if self.args.verify_diagnostics:
            code = self._check_diagnostics(text, name)
        self._write_output("// -----\n".join(outputs), code)
        return report_shrink(self.can_shrink) if self.args.shrink else code

    def _check_target(self) -> None:
        """Refuse options that the target does not have before any work is done."""
        if self._runs:
            if self.args.target not in ("mlir", "cpu"):
                raise UsageError("--run: the program runs in the interpreter, or with --target cpu")
            return
        if self.args.target == "cpu":
            raise UsageError(f"-t: {no_text(self.args.target)}")
        spec = parse_spec(self.args.target)
        factory = self.available_targets[spec.name]
        if not spec.parameters or inspect.signature(factory).parameters:
            return
        try:
            cast(Callable[[], type[Target]], factory)().from_spec(spec)
        except ValueError as error:
            raise UsageError(f"target '{spec.name}': {error}") from error

    def _read_input(self) -> tuple[str, str]:
        path: str | None = self.args.input_file
        if self.args.run_reproducer and path is not None:
            path = str(file_of(Path(path)))
        text = read_text(path)
        name = path if path not in (None, "-") else "<stdin>"
        if self.args.run_reproducer:
            reproducer = read_reproducer(text, name)
            self.args.passes = reproducer.pipeline
            self.args.check_each_pass |= reproducer.check
        return name, text

    def _process(self, chunks: Sequence[Chunk], name: str) -> tuple[int, list[str]]:
        """The first error's exit code (0 if none) and the output of each chunk that has one."""
        code = EXIT_FINE
        outputs: list[str] = []
        for index, chunk in enumerate(chunks):
            try:
                outputs.append(self._compile(chunk, name, index if len(chunks) > 1 else None))
            except Exception as error:
                if self.args.shrink and is_shrink(error):
                    self.can_shrink = True
                elif self.args.parsing_diagnostics and isinstance(error, ParseError):
                    outputs.append(render(describe(error), self.diagnostics.sources))
                else:
                    failure = self._report(error, chunk)
                    code = code or failure
        return code, outputs

    def _compile(self, chunk: Chunk, name: str, index: int | None) -> str:
        start = time.perf_counter()
        module = LocatedParser(self.ctx, chunk.text, name).parse_module(
            not self.args.no_implicit_module
        )
        self._lap("(parse)", start)
        if not self.args.disable_verify:
            start = time.perf_counter()
            verify_module(module)
            self._lap("(verify)", start)
        promises = Promises(module, self._assumed)
        if not self.args.disable_verify:
            start = time.perf_counter()
            self._refuse(promises.check())
            self._lap("(promises)", start)
        self._run_passes(module, index)
        if not self._runs:
            self._refuse(promises.require_proofs(module, self.args.target))
        start = time.perf_counter()
        text = self._execute(module) if self._runs else self._print(module)
        self._lap("(run)" if self._runs else "(print)", start)
        return text

    @property
    def _runs(self) -> bool:
        return self.args.run or self.args.compare is not None

    def _execute(self, module: ModuleOp) -> str:
        """Run a program, and say what it computes."""
        # Imported here because numpy alone would take a third of the driver's start-up time.
        running = import_module(".running", __package__)
        args, other = self.args, None
        if args.compare is not None:
            text = read_text(args.compare)
            self.diagnostics.sources[args.compare] = text
            other = LocatedParser(self.ctx, text, args.compare).parse_module()
            verify_module(other)
        machine = "interpreter" if args.target == "mlir" else args.target
        run = running.Run(args.entry, args.inputs, machine, args.print_results)
        report: str = run.report(self.ctx, module, other)
        return report

    def _refuse(self, broken: Sequence[BrokenPromiseError]) -> None:
        """Report what is wrong with a program; the last of it is raised."""
        for each in broken[:-1]:
            self.diagnostics.emit(describe(each))
        if broken:
            raise broken[-1]

    def _print(self, module: ModuleOp) -> str:
        target = parse_spec(self.args.target).name
        check_written(target, module)
        # xDSL's printers assert what they can write; an assertion of deplo's own is a defect.
        theirs = () if target in DEPLO.all_targets else (AssertionError,)
        try:
            return self.output_resulting_program(module).rstrip("\n") + "\n"
        except (NotImplementedError, *theirs) as error:
            raise DeploError(f"cannot be written as '{self.args.target}': {error}") from error

    def _lap(self, name: str, start: float) -> None:
        self.timing.add(name, time.perf_counter() - start)

    def _run_passes(self, module: ModuleOp, index: int | None) -> None:
        keep = _KeepText() if self.args.crash_reproducer else None
        verify = self.args.verify_each and not self.args.disable_verify
        with recording() as decisions:
            instruments = [*self._instruments(index, decisions), *([keep] if keep else [])]
            try:
                run_passes(self.ctx, module, self.passes, instruments, verify_each=verify)
            except PassFailedError as failure:
                if keep is not None:
                    self._write_crash_reproducer(keep.text, failure)
                raise

    def _instruments(self, index: int | None, decisions: list[Decision]) -> list[Instrument]:
        args = self.args
        chosen: list[Instrument] = []
        if args.print_ir_before_all or args.print_ir_after_all:
            before, after = args.print_ir_before_all, args.print_ir_after_all
            chosen.append(PrintIR(sys.stderr, before, after and not args.print_ir_after_change))
        if args.print_ir_after_change:
            chosen.append(PrintChanges(sys.stderr))
        if args.print_ir_tree_dir is not None:
            directory = args.print_ir_tree_dir
            chosen.append(WriteTree(directory / f"{index:03}" if index is not None else directory))
        if args.check_each_pass:
            chosen.append(self._checker())
        if args.remarks or args.verbose:
            chosen.append(Remarks(self.diagnostics, decisions))
        chosen += xdsl_instruments(args)
        chosen.append(self.timing)
        return chosen

    def _checker(self) -> PassChecker:
        # Imported here because numpy alone would take a third of the driver's start-up time.
        module = import_module(".check_each_pass", __package__)
        checker: PassChecker = module.PassChecker(self._remark, assumed=bool(self._assumed))
        return checker

    def _remark(self, line: str) -> None:
        self.diagnostics.emit(Diagnostic("remark", line))

    def _report(self, error: Exception, chunk: Chunk) -> int:
        """Turn `error` into a diagnostic, an internal one into a reproducer too."""
        if self.args.verbose > 1:
            traceback.print_exception(error)
        cause = error.__cause__ if isinstance(error, PassFailedError) else error
        assert cause is not None
        failure = error if isinstance(error, PassFailedError) else None
        if isinstance(cause, RecursionError):
            where = f"pass '{failure.failed.name}'" if failure is not None else "deplo-opt"
            cause = DeploError(f"the program is nested too deeply for {where}")
        expected = isinstance(cause, ParseError | DiagnosticException | DeploError)
        if expected and not (failure is not None and failure.invalid):
            prefix = f"{failure.failed.name}: " if failure is not None else ""
            self.diagnostics.emit(describe(cause, prefix))
            if isinstance(cause, MismatchError) and cause.program:
                self._leave(of_mismatch(cause), cause)
            return cause.exit_code if isinstance(cause, DeploError) else EXIT_ERROR
        self._report_internal(cause, failure, chunk)
        return EXIT_ERROR

    def _report_internal(
        self, error: BaseException, failure: PassFailedError | None, chunk: Chunk
    ) -> None:
        where = f"pass '{failure.failed.name}'" if failure is not None else "deplo-opt"
        what = f"internal error in {where}: "
        if failure is not None and failure.invalid:
            what += "it left an invalid program: "
        else:
            what += f"{type(error).__name__}: "
        self.diagnostics.emit(describe(error, what))
        self._leave(Reproducer(chunk.text.lstrip("\n"), pipeline_text(self.passes)), error)

    def _leave(self, reproducer: Reproducer, error: BaseException) -> None:
        """Write a reproducer, unless this is one, and say where it is."""
        if self.args.run_reproducer:
            return
        directory = write_directory(reproducer, error)
        sys.stderr.write(
            f"note: a reproducer is in {directory}; run it with deplo repro {directory}\n"
        )

    def _write_crash_reproducer(self, program: str, failure: PassFailedError) -> None:
        path: Path = self.args.crash_reproducer
        path.write_text(Reproducer(program, pipeline_text(failure.remaining)).text)
        sys.stderr.write(f"note: a reproducer for '{failure.failed.name}' is in {path}\n")

    def _check_diagnostics(self, text: str, name: str) -> int:
        try:
            expectations = find_expectations(text, name)
        except ValueError as error:
            raise UsageError(str(error)) from error
        problems = unmet(expectations, self.diagnostics.collected)
        for problem in problems:
            self.diagnostics.show(problem)
        return EXIT_ERROR if problems else EXIT_FINE

    def _write_output(self, text: str, code: int) -> None:
        if self.args.output_file is None:
            write_output(text)
            return
        try:
            if code == EXIT_FINE:
                Path(self.args.output_file).write_text(text, encoding="utf-8")
        except OSError as error:
            raise DeploError(f"cannot write the output: {error.strerror}") from error


class _KeepText(Instrument):
    """Keeps the text of the program before the pass that runs."""

    text = ""

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        self.text = str(module)


def run(args: Sequence[str]) -> int:
    """Run `deplo-opt` with `args` and return its exit code; nothing is ever raised."""
    try:
        main = DeploOptMain(args)
        if main.args.xdsl_compatible:
            main = import_module(".xdsl_compatible", __package__).XdslCompatibleMain(args)
        return main.execute()
    except SystemExit as request:
        return request.code if isinstance(request.code, int) else EXIT_ERROR
    except InvalidUtf8Error as error:
        sys.stderr.write(f"{error}\n")
        return EXIT_ERROR
    except DeploError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except ArgSpecParseError as error:
        lines = str(error).strip().splitlines()
        sys.stderr.write(f"error: malformed option of --target: {lines[-1].strip()}\n")
        return UsageError.exit_code
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return EXIT_ERROR
    except Exception as error:
        if "-vv" in args:
            traceback.print_exception(error)
        sys.stderr.write(f"error: internal error in deplo-opt: {type(error).__name__}: {error}\n")
        return EXIT_ERROR


def main() -> None:
    """The console script."""
    run_console(run)


if __name__ == "__main__":
    main()
