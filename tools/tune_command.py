"""`deplo tune`: search for schedules of a program's kernels by measuring, and look after what was found."""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from ..errors import MissingEnvironmentError, UsageError, counted
from ..machine.host_cpu import find_target
from ..machine.targets import TARGETS
from ..program import choose_target, module_for
from ..tune import exports
from ..tune.book import machine_text, versions_text
from ..tune.database import Tuning
from ..tune.session import open_database, tune
from ..tune.settings import Settings, seconds_of
from .compiling import capture_source, load, progress
from .console import write_output
from .dynamic_option import DYNAMIC_OPTION
from .fallback_option import FALLBACK_OPTION
from .precision_option import PRECISION_OPTION
from .sizes_option import SIZES_OPTION
from .target_option import add_machine_option

NAME = "tune"
HELP = "measure schedules of a program's kernels on this machine, and keep the best for later compilations"

HELD_BY_SETTINGS = {field.name: field for field in fields(Settings)}


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    defaults = Settings()
    parser.add_argument(
        "--budget", default="60s", metavar="TIME", help="how long to search: 60s, 5m, 1h (60s)"
    )
    for name, what in (
        ("beam", "tilings whose neighbours are looked at next"),
        ("generations", "how often, at most"),
        ("candidates", "neighbours that are measured each time"),
        ("rounds", "turns of a candidate and of the model's choice"),
        ("timeout", "seconds that a candidate may take"),
        ("gain", "by which part a candidate must be faster to count"),
    ):
        default = getattr(defaults, name)
        parser.add_argument(
            f"--{name}",
            type=type(default),
            default=default,
            metavar="N",
            help=f"{what} ({default})",
        )
    add_machine_option(parser, "tune for")
    parser.add_argument("--fallback", **FALLBACK_OPTION)
    parser.add_argument("--dynamic", **DYNAMIC_OPTION)
    parser.add_argument("--sizes", **SIZES_OPTION)
    parser.add_argument("--precision", **PRECISION_OPTION)
    parser.add_argument(
        "--show", action="store_true", help="print what was found so far, and leave"
    )
    parser.add_argument("--export", metavar="FILE", help="write what was found as JSON, and leave")
    parser.add_argument(
        "--import", dest="load", metavar="FILE", help="take what --export wrote, and leave"
    )


def main(options: argparse.Namespace) -> int:
    """Search, or do what is asked with what was found."""
    named = options.source is not None or options.code is not None
    asked = [name for name in ("show", "export", "load") if getattr(options, name)]
    if len(asked) + named != 1 or (options.source is not None and options.code is not None):
        raise UsageError("name one program to tune, or give one of --show, --export and --import")
    if named:
        return _tune(options)
    database = open_database()
    try:
        if options.show:
            write_output(
                "".join(f"{line}\n" for line in map(_line, database.all())) or "nothing yet\n"
            )
        elif options.export:
            Path(options.export).write_text(exports.export(database), encoding="utf-8")
        else:
            text = Path(options.load).read_text(encoding="utf-8")
            count = exports.load(database, text)
            write_output(f"took {counted(count, 'tuning')}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read or write {options.export or options.load}: {error}"
        ) from error
    finally:
        database.close()
    return 0


def _tune(options: argparse.Namespace) -> int:
    settings = Settings(**{name: getattr(options, name) for name in HELD_BY_SETTINGS})
    seconds = seconds_of(options.budget)
    source = load(options)
    captured = capture_source(options, source)
    target = choose_target(options.target, captured)
    with progress(f"tuning {source.title}"):
        done = tune(module_for(captured, target), target, seconds, settings, _tell)
    for name, why in done.others.items():
        sys.stderr.write(f"{name}: not tuned: {why}\n")
    lines = [_line(tuning) for tuning in done.tunings]
    write_output("".join(f"{line}\n" for line in lines) or "no kernel to tune\n")
    write_output(f"measured {counted(done.compiled, 'candidate')}\n")
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _line(tuning: Tuning) -> str:
    """A tuning in words."""
    if tuning.schedule is None or tuning.ratio is None:
        said = "the model's choice is best"
    else:
        said = f"{1 / tuning.ratio:.2f} times as fast with {tuning.schedule}"
    state = "" if tuning.finished else ", to be continued"
    where = "" if _is_here(tuning) else ", not for here and now"
    return f"{tuning.name} ({tuning.key.kernel[:8]}): {said}{state}{where}"


def _is_here(tuning: Tuning) -> bool:
    """Whether compiling uses a tuning on this machine."""
    target = tuning.key.machine.partition(" ")[0].partition(":")[0]
    if target not in TARGETS:
        return False
    try:
        here = machine_text(find_target(target)), versions_text(find_target(target))
    except MissingEnvironmentError:
        return False
    return (tuning.key.machine, tuning.key.versions) == here
