"""The commands of `deplo`: what each takes, and what becomes of their errors.

stdout carries what was asked for and nothing else; everything else goes to stderr. Exit codes: 0 fine,
1 compile error, 2 usage, 3 the result differs from eager, 4 the machine lacks something (a GPU, NVRTC).
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from ..errors import DeploError, MismatchError, UsageError
from . import (
    bench_command,
    cache_command,
    compile_command,
    doctor_command,
    explain_command,
    inspect_command,
    reduce_command,
    report_command,
    repro_command,
    run_command,
    tune_command,
)
from .completion import add_completion
from .precision_option import asked_precision
from .reproducer import Reproducer, of_mismatch, write_directory
from .schedule_option import settle_schedule

EXAMPLES = """\
examples:
  deplo run -c "nn.RMSNorm(2048)(torch.randn(1, 32, 2048))"
  deplo compile -c "x = torch.randn(4, 8); F.softmax(x, dim=-1)" --ir loop
  deplo compile model.py:MLP --target sm_90a --ir cuda -o kernels.cu
  deplo bench -c "F.softmax(torch.randn(64, 1024), -1)"
  deplo run hf:llama --config hidden_size=256,num_attention_heads=8 --layer 0 --seq-len 32

-c and FILE.py:NAME run the Python code they name; nothing else does.
"""

Handler = Callable[[argparse.Namespace], int]
"""What runs a command with its options, and gives its exit code."""

SOURCE_HELP = (
    "FILE.py:NAME, FILE.onnx, FILE.mlir, or hf:ARCHITECTURE such as hf:llama, or a model whose configuration "
    "is built in: hf:tinyllama-1.1b, hf:qwen2.5-7b, or their names on the Hugging Face Hub"
)


def _source_options() -> argparse.ArgumentParser:
    """The options that name a program, shared by all commands."""
    options = argparse.ArgumentParser(add_help=False)
    source = options.add_argument_group("program")
    source.add_argument("source", nargs="?", metavar="PROGRAM", help=SOURCE_HELP)
    source.add_argument(
        "-c",
        "--code",
        dest="code",
        metavar="CODE",
        help="Python code with torch, nn and F in scope; the program is its last expression, with what "
        "computes it from tensors",
    )
    source.add_argument(
        "--config", default="", metavar="K=V,...", help="configuration of an hf: architecture"
    )
    source.add_argument("--layer", type=int, metavar="N", help="only layer N of an hf: model")
    source.add_argument(
        "--seq-len", type=int, default=128, metavar="S", help="tokens of an hf: input (128)"
    )
    options.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr; -vv: every change"
    )
    options.add_argument("--timing", action="store_true", help="seconds by pass, on stderr")
    return options


def make_parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    parser = argparse.ArgumentParser(
        prog="deplo",
        description="Compile PyTorch programs to CUDA and native CPU code, and run them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_completion(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (compile_command, explain_command, report_command, run_command, bench_command):
        command = commands.add_parser(
            module.NAME,
            parents=[_source_options()],
            help=module.HELP,
            description=module.HELP,
            epilog="-c and FILE.py:NAME run the Python code they name.",
        )
        module.add_options(command)
        command.set_defaults(handler=_with_program(module.main))
    command = commands.add_parser(
        tune_command.NAME,
        parents=[_source_options()],
        help=tune_command.HELP,
        description=tune_command.HELP,
    )
    tune_command.add_options(command)
    command.set_defaults(handler=tune_command.main)
    for module in (inspect_command, cache_command, doctor_command, repro_command, reduce_command):
        command = commands.add_parser(module.NAME, help=module.HELP, description=module.HELP)
        module.add_options(command)
        command.set_defaults(handler=module.main, verbose=0)
    return parser


def _with_program(main: Handler) -> Handler:
    """A command that needs exactly one program, compiled with one schedule."""

    def checked(options: argparse.Namespace) -> int:
        if (options.source is None) == (options.code is None):
            raise UsageError("name one program: -c CODE, FILE.py:NAME or hf:ARCHITECTURE")
        settle_schedule(options)
        return main(options)

    return checked


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code."""
    options = make_parser().parse_args(arguments)
    try:
        with asked_precision(options):
            return options.handler(options)
    except DeploError as error:
        sys.stderr.write(f"error: {error}\n")
        if isinstance(error, MismatchError) and error.program:
            sys.stderr.write(f"  a reproducer is in {write_directory(of_mismatch(error), error)}\n")
        if options.verbose > 1:
            traceback.print_exc()
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except Exception as error:
        return _internal_error(error, options.verbose)


def _internal_error(error: Exception, verbose: int) -> int:
    """Write a reproducer for a failure that is deplo's own, and say where it is."""
    program = getattr(error, "deplo_program", "")
    pipeline = getattr(error, "deplo_pipeline", "")
    directory = write_directory(Reproducer(program, pipeline), error)
    what = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
    where = f" in pass '{pipeline.split(',')[0]}'" if pipeline else ""
    sys.stderr.write(
        f"error: internal error{where}: {what}\n"
        f"  This is a defect of deplo. A reproducer is in {directory}; see deplo repro, deplo reduce\n"
    )
    if verbose > 1:
        traceback.print_exc()
    return 1
