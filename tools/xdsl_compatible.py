"""`deplo-opt --xdsl-compatible`: xDSL's own driver with the dialects, passes and checks of deplo.

xDSL's `run` parses, prints and decides on exit codes; so the installed version's rules hold. Deplo adds
hexadecimal floats, the check of dominance, its pipelines and instruments. Errors are the last part of what
Python would print, without a traceback.
"""

from __future__ import annotations

import dataclasses
import sys
import traceback
import warnings
from importlib.metadata import version
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..analysis.dominance import check_dominance
from ..errors import UsageError
from ..passes.decisions import Decision, recording
from ..passes.pipeline_text import unanchored
from ..passes.pipelines import expand
from .deplo_opt import EXIT_ERROR, EXIT_FINE, DeploOptMain
from .hex_floats import HexFloatParser
from .instrumentation import Instrument

_REFUSED = ("crash_reproducer", "run_reproducer")
"""Options that would change what xDSL's driver reads or does when a pass fails."""


class XdslCompatibleMain(DeploOptMain):
    """The driver behind `--xdsl-compatible`."""

    _watching: list[Instrument]

    def register_all_frontends(self) -> None:
        """One frontend: MLIR's text."""
        self.available_frontends["mlir"] = self._parse

    def execute(self) -> int:
        """Run xDSL's driver; an error goes to stderr as Python names it."""
        if self.args.list_passes or self.args.list_dialects:
            return super().execute()
        if self.args.version or self.args.verbose:
            print(self.version_format.format(xdsl_version=version("xdsl")))
            return EXIT_FINE
        for name in _REFUSED:
            if getattr(self.args, name):
                option = name.replace("_", "-")
                raise UsageError(f"--{option} does not go together with --xdsl-compatible")
        warnings.filterwarnings("default", category=DeprecationWarning)
        warnings.formatwarning = _warning
        try:
            with recording() as decisions:
                self._make_pipeline(decisions)
                self.run()
        except (Exception, ArgSpecParseError) as error:
            sys.stdout.flush()
            sys.stderr.write("".join(traceback.format_exception_only(error)))
            return EXIT_ERROR
        if self.args.timing:
            self.timing.report()
        return EXIT_FINE

    def _make_pipeline(self, decisions: list[Decision]) -> None:
        """xDSL's pipeline with deplo's named pipelines expanded, watched and checked."""
        text = unanchored(self.args.passes)
        pipeline = PassPipeline.parse_spec(self.available_passes, text, self._between)
        self.pipeline = dataclasses.replace(pipeline, passes=expand(pipeline.passes))
        self._watching = self._instruments(None, decisions)

    def _parse(self, stream: IO[bytes]) -> ModuleOp:
        parser = HexFloatParser(self.ctx, stream.read(), self.get_input_name())
        return parser.parse_module(not self.args.no_implicit_module)

    def _between(
        self, previous: ModulePass | None, module: ModuleOp, following: ModulePass | None
    ) -> None:
        """Check the program between two passes, or before the first, and tell the instruments."""
        if not self.args.disable_verify and (previous is None or self.args.verify_each):
            module.verify()
            check_dominance(module)
        if previous is None:
            for instrument in self._watching:
                instrument.begin(module)
        else:
            for instrument in reversed(self._watching):
                instrument.after_pass(previous, module)
        for instrument in self._watching:
            if following is not None:
                instrument.before_pass(following, module)
            else:
                instrument.end()


def _warning(message: Warning | str, category: type[Warning], *_: object) -> str:
    return f"{category.__name__}: {message}\n"
