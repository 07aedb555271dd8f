"""Which tilings a contraction on a GPU may have, how their slabs are filled, and which are near one another.

A search starts from the model's choice (`tiling_choice.py`) and goes from neighbour to neighbour; what is
measured decides, the model only says what to measure first.
"""

from __future__ import annotations

from dataclasses import asdict, fields, replace

from ..dialects.schedule import Transport
from ..dialects.tile import MAX_BUFFERS
from ..machine.targets import Target
from .gpu_choices import TilingChoices
from .tiling_choice import choose
from .tiling_cost import cycles
from .tilings import CLUSTER, PADDING, WARPGROUPS, Problem, Tiling

TOGETHER = (("block_m", "thread_m"), ("block_n", "thread_n"))
"""Sizes that grow or shrink at once: the block's threads stay as they are, as those of matrices must."""

OPTIONAL = ("mma", "stages", "cluster_m", "cluster_n")
"""Fields of a tiling that are 0 where there is no such thing."""


def tiling_of(choices: TilingChoices) -> Tiling:
    """The tiling alone."""
    sizes = {field.name: getattr(choices, field.name) for field in fields(Tiling)}
    return Tiling(**sizes | {"stages": choices.stages if choices.transport == Transport.TMA else 0})


def with_buffers(tiling: Tiling, problem: Problem, target: Target) -> TilingChoices:
    """A tiling with its slabs filled as they are where nothing is asked for."""
    stages = min(problem.buffers(tiling, target), MAX_BUFFERS)
    transport = Transport.TMA if tiling.stages else Transport.CP_ASYNC
    return TilingChoices(**asdict(tiling) | {"stages": stages}, transport=transport.value)


def misfit(problem: Problem, choices: TilingChoices, target: Target) -> str | None:
    """Why a contraction cannot be computed so, or None."""
    tiling = tiling_of(choices)
    if min(value for name, value in asdict(tiling).items() if name not in OPTIONAL) < 1:
        return "a size is at least 1"
    if (reason := problem.illegal(tiling, target)) is not None:
        return reason
    if tiling not in problem.splits(tiling, [tiling.split_k]):
        return f"K of {problem.k} has no {tiling.split_k} parts of {tiling.block_k} each"
    if choices.transport not in list(Transport):
        return f"transport = {choices.transport} is none of {', '.join(Transport)}"
    if choices.transport == Transport.TMA and not target.has_copy_engine:
        return f"{target.name} has no copy engine"
    if not 1 <= choices.stages <= MAX_BUFFERS:
        return f"stages = {choices.stages} is not 1 to {MAX_BUFFERS}"
    padding = 0 if choices.transport == Transport.TMA else PADDING
    slab = problem.slab_bytes(tiling) // tiling.block_k * (tiling.block_k + padding)
    if choices.stages > 1 and choices.stages * slab > target.block_shared_bytes:
        return f"{choices.stages} buffers of {slab} bytes exceed the {target.block_shared_bytes} of a block"
    return None


def neighbours(problem: Problem, choices: TilingChoices, target: Target) -> list[TilingChoices]:
    """The legal choices one step away: sizes halved or doubled, a buffer more or less, another transport,
    other clusters.

    And the best tilings of the other kinds, with tensor cores or without.
    """
    tiling = tiling_of(choices)
    tilings = tiling.neighbours()
    for names in TOGETHER:
        sizes = [getattr(choices, name) for name in names]
        tilings.append(replace(tiling, **{n: 2 * v for n, v in zip(names, sizes, strict=True)}))
        if not any(value % 2 for value in sizes):
            tilings.append(
                replace(tiling, **{n: v // 2 for n, v in zip(names, sizes, strict=True)})
            )
    for clusters in ((0, 0), (CLUSTER, 0), (0, CLUSTER)) if tiling.mma == WARPGROUPS else ():
        tilings.append(replace(tiling, cluster_m=clusters[0], cluster_n=clusters[1]))
    found = [
        replace(choices, **asdict(each) | {"stages": each.stages or choices.stages})
        for each in tilings
    ]
    found += [replace(choices, stages=choices.stages + step) for step in (-1, 1)]
    found += [replace(choices, transport=each.value) for each in Transport]
    for kind in {0, 1, WARPGROUPS} - {choices.mma}:
        other = choose(problem, {"mma": kind}, target)
        if isinstance(other, Tiling):
            found.append(with_buffers(other, problem, target))
    different = dict.fromkeys(each for each in found if each != choices)
    return [each for each in different if misfit(problem, each, target) is None]


def estimated_cycles(problem: Problem, choices: TilingChoices, target: Target) -> float:
    """What the model says that the contraction takes, in cycles of a multiprocessor."""
    return cycles(replace(problem, stages=choices.stages), tiling_of(choices), target)
