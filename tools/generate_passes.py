"""Writes `docs/passes.md`: what each pass reads and leaves, its options, the IR before and after.

    python -m deplo.tools.generate_passes            # writes the page
    python -m deplo.tools.generate_passes --check    # fails if the page is out of date

The page is made from the passes themselves, as is `deplo-opt --help-pass`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..passes import PASSES
from ..passes.levels import LEVELS, levels_of
from ..passes.pipelines import PIPELINES, order_of
from .generated_file import write_or_check
from .pass_help import markdown

PAGE = Path(__file__).parent.parent / "docs" / "passes.md"

HEAD = """\
# Passes

Written by `python -m deplo.tools.generate_passes` from the passes; do not edit.

`deplo-opt --help-pass NAME` prints the same of one pass, `deplo-opt --list-passes` all names,
`deplo-opt --list-passes=options` their options. The option `target` of a pass is the machine
to compile for; `deplo-opt`'s own option `-t` is the text to write.

## Levels

A pass looks for the operations of one level. Of a program without them, `deplo-opt --remarks` says so, and
which pipeline makes them.
"""

ORDER = """\
## Order

A segment takes a program from one IR to the next, and runs these passes in this order; a pipeline is a row of
segments.
"""

KERNELS = """\
## Functions of a CPU

The passes that read CPU code change each `func.func` that has the attribute `deplo.kernel`, as
`lower-tile-to-scf` leaves it. A function that a person wrote gets the attribute by hand,
`attributes {deplo.kernel}`, if

* the buffers among its arguments, and those that it allocates, lie apart in memory: no store to one of them
  changes what is loaded from another;
* it loads and stores by `loop.load`, `loop.store`, `vector.load` and `vector.store`, with indices inside.

`clip-loops` to `mark-independent`, `expand-math` and `convert-to-llvm` need no more. `convert-to-mlir` and
deplo's runtime also need the last three arguments `%begin: index, %end: index, %status: memref<1xi64>`, and
one `scf.for` over the blocks from `%begin` to `%end`.
"""


def generate() -> str:
    """The page."""
    rows = [
        f"| {level.name} | {level.mark} | {f'`{level.pipeline}`' if level.pipeline else ''} |"
        for level in LEVELS.values()
    ]
    parts = [HEAD, "\n".join(["| level | known by | made by |", "|---|---|---|", *rows]) + "\n"]
    parts += [ORDER, _order(), KERNELS]
    for name, level in {**LEVELS, "": None}.items():
        passes = [each for each in PASSES if levels_of(each)[0] == name]
        title = f"Passes that read {level.name}" if level else "Passes that read any level"
        if passes:
            parts += [f"## {title}\n", *(f"{markdown(each)}\n" for each in passes)]
    parts += ["## Pipelines\n", *(f"{markdown(each)}\n" for each in PIPELINES)]
    return "\n".join(parts)


def _order() -> str:
    """A table of the passes of each segment."""
    rows: list[str] = []
    for segment in [name for name, segments in PIPELINES.items() if segments == (name,)]:
        for family, passes in order_of(segment).items():
            title = f"`{segment}` for {family}" if family else f"`{segment}`"
            rows.append(f"| {title} | {', '.join(f'`{each}`' for each in passes)} |")
    return "\n".join(["| segment | passes |", "|---|---|", *rows]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page or, with `--check`, compare it."""
    return write_or_check(PAGE, generate, "generate_passes", arguments)


if __name__ == "__main__":
    sys.exit(main())
