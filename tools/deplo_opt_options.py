"""The command line of `deplo-opt`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from .completion import add_completion
from .text_targets import text_target
from .xdsl_options import add_xdsl_options

DESCRIPTION = """\
Reads a program (MLIR text), runs passes on it and writes it: the program goes to stdout, everything
else to stderr. Exit codes: 0 fine, 1 the program is at fault, 2 the command line is, 3 a pass
changed what the program computes."""

_Add = Callable[..., argparse.Action]
"""The `add_argument` of a parser or of a group of its options."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add every option of `deplo-opt` to `parser`."""
    parser.prog = "deplo-opt"
    parser.usage = "deplo-opt [options] [input_file]"
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("input_file", nargs="?", help="the program; stdin if absent or -")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the program here")
    parser.add_argument("-v", "--verbose", action="count", default=0, help=_VERBOSE_HELP)
    parser.add_argument("--version", action="store_true", help="show versions and exit")
    add_completion(parser)
    _add_pipeline_options(parser.add_argument_group("what to do").add_argument)
    _add_text_options(parser.add_argument_group("reading and printing").add_argument)
    _add_watching_options(parser.add_argument_group("watching the passes").add_argument)
    _add_checking_options(parser.add_argument_group("checking").add_argument)
    add_xdsl_options(parser)
    _add_running_options(parser.add_argument_group("running").add_argument)


_ASSUME_HELP = """take your word that the program is in-bounds, stored-once, race-free: some of these, with
commas between; neither the text nor executing it proves the promise, and CUDA is not made without"""

_VERBOSE_HELP = "show the passes' remarks; twice: tracebacks of errors too"


def versions() -> str:
    """Deplo's version and xDSL's."""
    return f"deplo-opt {version('deplo')} (xdsl {version('xdsl')})"


def _flag(add: _Add, name: str, text: str) -> None:
    add(f"--{name}", action="store_true", help=text)


def _add_pipeline_options(add: _Add) -> None:
    add(
        "-p",
        "--passes",
        "--pass-pipeline",
        default="",
        metavar="PIPELINE",
        help="passes and pipelines to run: a,b{x=1} or builtin.module(a,b{x=1})",
    )
    add(
        "-t",
        "--target",
        type=text_target,
        default="mlir",
        metavar="TARGET",
        help="what to write: mlir (the program's text), cuda, llvm, c or a target of xDSL; the machine "
        "to compile for is an option of passes: -p 'loop-to-cuda{target=sm_90a}'",
    )
    add(
        "--list-passes",
        nargs="?",
        const="names",
        choices=("names", "options"),
        help="list deplo's passes and pipelines, then xDSL's, and exit; =options: with their options",
    )
    add("--help-pass", metavar="NAME", help="say what a pass does, reads and leaves, and exit")
    _flag(add, "list-dialects", "list the dialects and exit")
    _flag(add, "run-reproducer", "run the pipeline named in the input's first line")


def _add_text_options(add: _Add) -> None:
    _flag(add, "split-input-file", "treat parts between lines '// -----' as programs of their own")
    _flag(add, "print-op-generic", "print every op in the generic form")
    _flag(add, "print-no-properties", "print properties among the attributes")
    _flag(add, "print-debuginfo", "print the location of each op")
    _flag(add, "syntax-highlight", "print in colour")
    _flag(add, "allow-unregistered-dialect", "accept ops of dialects nobody knows")
    _flag(add, "no-implicit-module", "do not wrap the program in a builtin.module")


def _add_watching_options(add: _Add) -> None:
    _flag(add, "print-ir-before-all", "print the program before each pass")
    _flag(add, "print-ir-after-all", "print the program after each pass")
    _flag(add, "print-ir-after-change", "print what each pass changed, as a unified diff")
    add(
        "--print-ir-tree-dir",
        metavar="DIR",
        type=Path,
        help="write the program after each pass here",
    )
    _flag(add, "remarks", "show what each pass did or declined to do, and why")
    _flag(add, "timing", "show how long each pass took")


def _add_checking_options(add: _Add) -> None:
    add(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify the program, dominance included, after each pass",
    )
    _flag(add, "disable-verify", "verify nothing at all")
    add("--assume", metavar="PROMISES", default="", help=_ASSUME_HELP)
    _flag(add, "verify-diagnostics", "check the diagnostics against expected-... comments")
    _flag(add, "check-each-pass", "run the program around each pass and compare the results")
    add(
        "--crash-reproducer",
        metavar="FILE",
        type=Path,
        help="if a pass fails, write the program before it and the rest of the pipeline here",
    )


def _add_running_options(add: _Add) -> None:
    _flag(add, "run", "execute the program instead of writing it; with --target cpu as native code")
    add("--entry", metavar="NAME", default="main", help="the function to execute (main)")
    add(
        "--inputs",
        metavar="INPUTS",
        default="random:0",
        help="random:SEED, ones, or FILE.npz with the arguments by name or in order (random:0)",
    )
    _flag(add, "print-results", "print the elements of the results")
    add("--compare", metavar="FILE", help="execute this program on the same inputs and compare")
