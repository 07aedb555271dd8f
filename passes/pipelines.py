"""The named pipelines: the only place that knows in which order passes run.

A *segment* takes a program from one IR to the next; a pipeline is a row of segments. Each is itself
a pass, so `deplo-opt --pass-pipeline='loop-to-cuda{target=sm_90a}'` and `xdsl-opt -p loop-to-cuda`
both work:

    torch --- tensor --- loop --- tile --- kernel --- cuda     X-to-cuda: the segments from X on
                                     \\
                                      ------- scf --- llvm     X-to-llvm: leaves the road at `tile`
                                      ------- mlir             X-to-mlir: the same, for others to compile

The passes of `scf-to-llvm` look at one kernel at a time: they may run on each alone.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from string import Template
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.transforms import get_all_passes as get_xdsl_passes
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline

from ..dialects.schedule import SWITCHES, parse_choices, split_schedules
from ..errors import UsageError
from ..machine.targets import get_target
from . import get_all_passes

DEFAULT_CUDA_TARGET = "sm_90a"
DEFAULT_CPU_TARGET = "cpu"

_SEGMENTS: dict[str, tuple[str, ...]] = {
    "torch-to-tensor": ("outline-repeats", "decompose-torch{target=$target}"),
    "tensor-to-loop": (
        "expand-scatter{target=$target}",
        "expand-sort{target=$target}",
        "masks-to-conditions",
        "compose-index-maps",
        "canonicalize",
        "cse",
        "lift-to-loops",
        "prove-indices",
        "fuse-loops{target=$target$fusion}",
        "merge-siblings",
        "narrow-results",
        "transpose-results",
        "join-kernels{target=$target}",
        "collapse-reduce",
        "coalesce-axes",
        "hoist-invariants",
        "share-sweeps",
        "dedup-loads",
        "prove-indices",
        "name-kernels",
    ),
    "tile-to-kernel": (
        "materialize-tile",
        "vectorize-accesses",
        "merge-guards",
        "merge-accesses",
        "exchange-stores",
        "elide-barriers",
        "overlap-products",
        "roll-registers",
        "choose-index-width",
        "inline-calls",
        "group-launches",
        "assign-arena",
    ),
    "kernel-to-cuda": ("lower-to-cuda",),
    "tile-to-scf": ("lower-tile-to-scf", "inline-calls", "group-launches", "assign-arena"),
    "scf-to-llvm": (
        "clip-loops",
        "interchange-columns",
        "relax-maxima{target=$target}",
        "keep-in-output",
        "cut-loops",
        "split-at-sizes",
        "narrow-searches",
        "invert-divisors",
        "prefetch-sweeps",
        "tile-windows{target=$target}",
        "unroll-windows",
        "unswitch-loops",
        "split-at-sizes",
        "hide-strides",
        "widen-integers",
        "jam-rows",
        "mask-tails",
        "block-sums",
        "small-angles",
        "mark-independent",
        "expand-math{target=$target}",
        "loops-to-branches",
        "convert-to-llvm",
    ),
    "tile-to-mlir": (
        "lower-tile-to-scf{vectors=false}",
        "clip-loops",
        "interchange-columns",
        "keep-in-output",
        "cut-loops",
        "split-at-sizes",
        "block-sums",
        "inline-calls",
        "canonicalize",
        "cse",
        "convert-to-mlir",
        "canonicalize",
    ),
}
"""Segment -> the specs of its passes; `$target` and what starts with `$` after it stand for options."""

_LOOP_TO_TILE: dict[bool, tuple[str, ...]] = {
    True: (
        "apply-schedules",
        "drop-unit-axes",
        "flatten-windows{target=$target}",
        "tileify",
        "split-axes{target=$target}",
        "deepen-launch{target=$target}",
        "scan-rows{target=$target}",
        "join-lines{target=$target}",
        "online-softmax{target=$target}",
        "schedule{target=$target$choices}",
        "split-matmul-k{target=$target$splitting}",
        "chunk-matmul-k",
        "distribute-sweeps{target=$target}",
        "flatten-sweeps{target=$target}",
        "split-reduce{target=$target}",
        "chunk-reduce{target=$target}",
        "cooperative-reduce{target=$target}",
        "keep-rows{target=$target}",
        "stage-transposes{target=$target}",
        "blockify-launch{target=$target}",
        "stage-inputs{target=$target}",
        "widen-slabs",
        "warpgroup-mma",
        "tensor-cores{target=$target}",
        "permute-register-tile",
        "register-tile{target=$target}",
        "tma-copy{target=$target}",
        "split-inner-for-swizzle",
        "async-copy",
        "pad-smem",
        "double-buffer{target=$target}",
        "pipeline-k-outer",
        "mark-unroll",
        "form-clusters",
        "order-blocks{target=$target}",
    ),
    False: (
        "apply-schedules",
        "transpose-weights",
        "tileify",
        "split-axes{target=$target}",
        "share-prefixes",
        "deepen-launch{target=$target}",
        "online-softmax{target=$target}",
        "collapse-rows",
        "schedule-cpu{target=$target}",
        "strip-channels",
        "order-windows",
        "pack-operands",
        "register-tile{target=$target}",
        "split-reduce{target=$target}",
        "split-sweeps",
        "schedule-rows{target=$target}",
        "blockify-launch{target=$target}",
        "stage-windows",
        "split-loops",
        "transpose-tiles",
        "straighten-indices",
    ),
}
"""The specs of `loop-to-tile`: for a GPU, and for a CPU."""

_PLACES = {"fuse-loops": "fusion", "split-matmul-k": "splitting"}
"""Pass that a switch belongs to -> the place in its spec; `choices` is that of `schedule`."""

_BOTH = ("torch-to-tensor", "tensor-to-loop", "loop-to-tile")
"""The segments that every road has, whatever the target."""

_CUDA_ROAD = (*_BOTH, "tile-to-kernel", "kernel-to-cuda")
_CPU_ROAD = (*_BOTH, "tile-to-scf", "scf-to-llvm")
_MLIR_ROAD = (*_BOTH, "tile-to-mlir")


def _roads() -> dict[str, tuple[str, ...]]:
    """Every pipeline with its segments: each segment alone, then each suffix of the three roads."""
    roads: dict[str, tuple[str, ...]] = {}
    for road in (_CUDA_ROAD, _CPU_ROAD, _MLIR_ROAD):
        roads |= {segment: (segment,) for segment in road}
    for end, road in (("cuda", _CUDA_ROAD), ("llvm", _CPU_ROAD), ("mlir", _MLIR_ROAD)):
        for start, segment in enumerate(road):
            roads[f"{segment.split('-to-')[0]}-to-{end}"] = road[start:]
    return roads


PIPELINES = _roads()
"""Pipeline name -> the segments it runs."""


@dataclass(frozen=True)
class NamedPipeline(ModulePass):
    """A pass that runs other passes in order; `deplo-opt` unfolds it so each can be watched."""

    segments: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def target_name(self) -> str:
        """The machine the passes are told to compile for."""

    @property
    def asked_schedule(self) -> str:
        """The choices that schedules are asked to make."""
        return ""

    def __post_init__(self):
        self.passes()

    def passes(self) -> tuple[ModulePass, ...]:
        """The passes this pipeline stands for, options filled in."""
        self._check_family()
        return make_pipeline(self.name, self.target_name, self.asked_schedule)

    def _check_family(self) -> None:
        """Raise UsageError if the road leads to the other family of machines."""
        gpu, target = isinstance(self, CudaPipeline), self.target_name
        if get_target(target).is_gpu == gpu or self.name in _BOTH:
            return
        instead = f"{self.name.partition('-to-')[0]}-to-{'llvm' if gpu else 'cuda'}"
        kinds = ("a GPU", "a CPU") if gpu else ("a CPU", "a GPU")
        hint = f": run {instead}{{target={target}}}" if instead in PIPELINES else ""
        raise UsageError(f"it is for {kinds[0]}, and {target} is {kinds[1]}{hint}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run the passes in order, with no verification between them."""
        for each in self.passes():
            each.apply(ctx, op)


@dataclass(frozen=True)
class CudaPipeline(NamedPipeline):
    """A pipeline on the road to CUDA; `target` is a compute capability such as `sm_90a`.

    `schedule` has choices that contractions are to make: `"BM=16,BN=16"`. Raises UsageError for wrong ones.
    """

    target: str = DEFAULT_CUDA_TARGET
    schedule: str = ""

    @property
    def target_name(self) -> str:
        """The compute capability asked for."""
        return self.target

    @property
    def asked_schedule(self) -> str:
        """The choices that schedules are asked to make."""
        return self.schedule


@dataclass(frozen=True)
class CpuPipeline(NamedPipeline):
    """A pipeline on the road to native code, or to MLIR or C for others; `target` is `cpu`."""

    target: str = DEFAULT_CPU_TARGET

    @property
    def target_name(self) -> str:
        """The CPU asked for."""
        return self.target


def get_all_pipelines() -> dict[str, Callable[[], type[NamedPipeline]]]:
    """Each pipeline's name with a function that returns its pass class."""
    return {name: _loader(name) for name in PIPELINES}


def get_all_available_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Everything a pipeline may name: xDSL's passes, deplo's passes and the named pipelines."""
    return {**get_xdsl_passes(), **get_all_passes(), **get_all_pipelines()}


def make_passes(specs: Iterable[ArgSpec]) -> tuple[ModulePass, ...]:
    """The passes that `specs` name, each with its options; names and options must be right."""
    available = get_all_available_passes()
    return tuple(available[spec.name]().from_spec(spec) for spec in specs)


@lru_cache(maxsize=64)
def make_pipeline(name: str, target: str, schedule: str = "") -> tuple[ModulePass, ...]:
    """The passes that the pipeline or segment `name` runs for `target`; made once, as no pass keeps anything.

    `schedule` has choices that contractions are to make, and schedules of single kernels, a line each. Raises
    UsageError for wrong ones.
    """
    given, choices = split_schedules(schedule)
    specs = (spec for segment in PIPELINES[name] for spec in _specs(segment, target))
    asked = dict.fromkeys(("choices", *_PLACES.values()), "")
    for key, value in parse_choices(choices).items():
        if key in SWITCHES:
            asked[_PLACES[SWITCHES[key]]] += f" {key}={'true' if value else 'false'}"
        else:
            asked["choices"] += f" {key}={value}"
    text = ",".join(Template(spec).substitute(target=f'"{target}"', **asked) for spec in specs)
    lines = "\n".join(f"{kernel}: {steps}" for kernel, steps in given.items())
    passes = make_passes(parse_pipeline(text))
    return tuple(replace(p, given=lines) if p.name == "apply-schedules" else p for p in passes)  # pyright: ignore


def _specs(segment: str, target: str) -> tuple[str, ...]:
    """The specs of a segment's passes for one target."""
    if segment in _SEGMENTS:
        return _SEGMENTS[segment]
    return _LOOP_TO_TILE[get_target(target).is_gpu]


def order_of(segment: str) -> dict[str, tuple[str, ...]]:
    """The names of the passes that a segment runs, in order, by family where these differ, else under ""."""
    targets = {"a GPU": DEFAULT_CUDA_TARGET, "a CPU": DEFAULT_CPU_TARGET}
    found = {
        family: tuple(spec.partition("{")[0] for spec in _specs(segment, target))
        for family, target in targets.items()
    }
    return found if len(set(found.values())) > 1 else {"": found["a GPU"]}


def families_of(name: str) -> set[str]:
    """The families of machines, "a GPU" and "a CPU", whose pipelines run the pass `name`."""
    roads = {
        "a GPU": (_CUDA_ROAD, DEFAULT_CUDA_TARGET),
        "a CPU": (_CPU_ROAD + _MLIR_ROAD, DEFAULT_CPU_TARGET),
    }
    return {
        family
        for family, (road, target) in roads.items()
        for segment in road
        if any(spec.partition("{")[0] == name for spec in _specs(segment, target))
    }


def expand(passes: Iterable[ModulePass]) -> tuple[ModulePass, ...]:
    """`passes` with each named pipeline replaced by what it runs."""
    flat: list[ModulePass] = []
    for each in passes:
        flat.extend(each.passes() if isinstance(each, NamedPipeline) else (each,))
    return tuple(flat)


def _loader(name: str) -> Callable[[], type[NamedPipeline]]:
    def load() -> type[NamedPipeline]:
        if name not in _CLASSES:
            _CLASSES[name] = _make_class(name)
        return _CLASSES[name]

    return load


_CLASSES: dict[str, type[NamedPipeline]] = {}


def _make_class(name: str) -> type[NamedPipeline]:
    base: type[NamedPipeline] = (
        CpuPipeline if name.endswith(("-to-scf", "-to-llvm", "-to-mlir")) else CudaPipeline
    )
    title = "".join(part.capitalize() for part in name.split("-")) + "Pipeline"
    members = {
        "name": name,
        "segments": PIPELINES[name],
        "__doc__": f"Runs {', '.join(PIPELINES[name])}.",
        "__module__": __name__,
    }
    made = dataclass(frozen=True)(type(title, (base,), members))
    return cast(type[NamedPipeline], made)
