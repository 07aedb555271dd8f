"""`deplo cache`: what the cache of compiled code holds, and looking after it."""

from __future__ import annotations

import argparse
import time

from ..errors import UsageError
from ..runtime.cache import Cache, cache_directory, open_cache
from .console import write_output

NAME = "cache"
HELP = "show, check or shrink the cache of compiled code"
MIB = 1 << 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument(
        "action",
        choices=("info", "gc", "verify"),
        help="say what there is; remove what was used longest ago; remove what is not sound",
    )
    parser.add_argument(
        "--max-mb", type=float, default=512.0, metavar="N", help="what gc leaves at most (512)"
    )


def main(options: argparse.Namespace) -> int:
    """Do it; `verify` exits with 1 if an entry was not sound."""
    if not 0 <= options.max_mb < float("inf"):
        raise UsageError(f"--max-mb is 0 or more, not {options.max_mb}")
    cache = open_cache()
    if cache.directory is None:
        write_output(f"no cache is used (DEPLO_CACHE, DEPLO_CACHE_DIR; {cache_directory()})\n")
        return 0
    if options.action != "info" and not cache.writable:
        raise UsageError(f"the cache {cache.directory} is read only")
    if options.action == "gc":
        removed = cache.collect(int(options.max_mb * MIB))
        write_output(f"removed {removed} entries\n")
    elif options.action == "verify":
        unsound = cache.verify()
        for path in unsound:
            write_output(f"removed {path.name}: it is not what was written\n")
        write_output(f"{sum(1 for _ in cache.entries())} entries are sound\n")
        return 1 if unsound else 0
    else:
        _info(cache)
    return 0


def _info(cache: Cache) -> None:
    """How many entries of each kind there are, how large, and how long ago the oldest was used."""
    entries = list(cache.entries())
    write_output(f"{cache.directory}{'' if cache.writable else ' (read only)'}\n")
    for kind in sorted({entry.path.name.partition("-")[0] for entry in entries}):
        own = [entry for entry in entries if entry.path.name.startswith(f"{kind}-")]
        days = (time.time() - min(entry.used for entry in own)) / 86400
        size = sum(entry.bytes for entry in own) / MIB
        write_output(
            f"{kind}: {len(own)} entries, {size:.2f} MB, the oldest used {days:.1f} days ago\n"
        )
    if not entries:
        write_output("no entries\n")
