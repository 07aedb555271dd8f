"""What commands share: loading, capturing and compiling a program, and telling that it takes long."""

from __future__ import annotations

import argparse
import sys
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager

from ..errors import FallbackWarning, UsageError
from ..frontend.capture import Captured, capture
from ..frontend.sources import Program as Source
from ..frontend.sources import load_source
from ..program import Program, choose_target, compile
from .dynamic_option import DYNAMIC_OPTION, dynamic_shapes
from .fallback_option import FALLBACK_OPTION, tell_fallbacks
from .file_source import FileSource, load_file
from .onnx_source import load_onnx
from .precision_option import PRECISION_OPTION
from .schedule_option import add_schedule_options
from .sizes_option import SIZES_OPTION, sizes_of

PATIENCE = 1.0
"""Seconds after which a terminal is told what is being done, and how often after that."""


@contextmanager
def progress(what: str) -> Generator[None]:
    """Say on a terminal what is done and for how long, if it takes long; nothing of it stays."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    start = time.monotonic()

    def tell() -> None:
        width = 0
        while not over.wait(PATIENCE):
            line = f"deplo: {what}, {time.monotonic() - start:.0f} s"
            width = max(width, len(line))
            sys.stderr.write(f"\r{line}")
            sys.stderr.flush()
        if width:
            sys.stderr.write(f"\r{' ' * width}\r")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """What may be asked of any program that is compiled."""
    parser.add_argument("--fallback", **FALLBACK_OPTION)
    parser.add_argument("--dynamic", **DYNAMIC_OPTION)
    parser.add_argument("--sizes", **SIZES_OPTION)
    add_schedule_options(parser)
    parser.add_argument("--precision", **PRECISION_OPTION)


def load(options: argparse.Namespace) -> Source:
    """The program that the options name."""
    if options.sizes and not (options.source or "").endswith(".onnx"):
        raise UsageError("--sizes is for .onnx files; --dynamic names axes of programs of PyTorch")
    with progress("loading"):
        if options.source is not None and options.source.endswith(".mlir"):
            return load_file(options.source)
        if options.source is not None and options.source.endswith(".onnx"):
            return load_onnx(options.source, sizes_of(options.sizes))
        source = load_source(
            options.source,
            code=options.code,
            config=options.config,
            layer=options.layer,
            seq_len=options.seq_len,
        )
    for note in source.notes:
        sys.stderr.write(f"note: {note}\n")
    return source


def capture_source(options: argparse.Namespace, source: Source) -> Captured:
    """The program as Torch IR, with the sizes and the fallback that the options ask for."""
    if isinstance(source, FileSource):
        return _captured_of(source, options)
    shapes = dynamic_shapes(options.dynamic, source)
    with progress(f"capturing {source.title}"):
        return capture(source.program, source.args, source.kwargs, shapes, options.fallback)


def compile_source(options: argparse.Namespace, source: Source) -> tuple[Program, float]:
    """The program compiled, its machine code included, and how many seconds that took."""
    start = time.perf_counter()
    with progress(f"compiling {source.title}"), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)  # told below, in our own words
        program = _compiled(options, source)
        assert program.executable is not None
    seconds = time.perf_counter() - start
    tell_fallbacks(program.fallbacks)
    return program, seconds


def _compiled(options: argparse.Namespace, source: Source) -> Program:
    if isinstance(source, FileSource):
        captured = _captured_of(source, options)
        return Program(captured, choose_target(options.target, captured), options.schedule)
    return compile(
        source.program,
        source.args,
        source.kwargs,
        target=options.target,
        fallback=options.fallback,
        dynamic_shapes=dynamic_shapes(options.dynamic, source),
        schedule=options.schedule,
    )


def _captured_of(source: FileSource, options: argparse.Namespace) -> Captured:
    """The program of a file. Raises UsageError for options that are about capturing one of PyTorch."""
    for name in ("dynamic", "fallback"):
        if getattr(options, name) not in ("", "error"):
            raise UsageError(
                f"--{name} is for programs of PyTorch; {source.title} says its own sizes and calls"
            )
    assert source.captured is not None
    return source.captured
