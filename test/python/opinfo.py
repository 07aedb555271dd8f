"""Runs PyTorch's own operator database through deplo on the CPU target, and says what became of it.

    python test/python/opinfo.py --dtype float32 --samples 8            # all entries, as `make test-ops`
    python test/python/opinfo.py --dtype float32 --part 0/8 --write results.json

Each sample input of each entry gets one status:

    pass      the compiled program agrees with eager, under the float64 judge
    refused   deplo said in one clear error what it does not support
    WRONG     a result differs from eager's
    CRASH     anything else: an internal error, or a refusal that eager does not deserve

and an entry the worst of its samples, `pass` before `refused` if some pass. Samples that eager itself
cannot run are left out, and so are entries whose results are not determined (`UNDETERMINED`).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch.testing._internal import common_methods_invocations as database
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.tools.judge import float64_reference, judge

DTYPES = {
    name: getattr(torch, name)
    for name in ("float32", "bfloat16", "float16", "int64", "uint8", "bool")
}

UNDETERMINED = (
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
)
"""Entries whose results hold whatever was in memory."""

TIES = {"sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian"}
"""Entries whose positions PyTorch leaves open where values are equal: what stands there is compared."""

EXACT = {"special.ndtr": lambda x: torch.special.erfc(x * -(0.5**0.5)) / 2}
"""Entries that are smaller than PyTorch's error in float64, and what is exact there."""

ILL_CONDITIONED = {
    "grid_sampler_2d": "positions in the image are computed from coordinates in [-1, 1] and lose digits",
    "nn.functional.grid_sample": "the same",
    "_softmax_backward_data": "its samples are no softmax, so it is a difference of products that cancel",
    "nn.functional.interpolate.bicubic": "its weights are differences of cubes, which cancel",
    "special.ndtr": "rounding x loses digits of exp(-x * x / 2), of which eager has none near -8",
}
"""Entries whose float32 results are far from float64 in eager too, and why. Theirs may be twice as far, which
is what `torch._dynamo.utils.same` allows, by the root mean square over an output."""

SEED = 20
"""Chooses the samples' values and, with a part, which entries it holds."""


@dataclass
class Entry:
    """What became of one entry of the database."""

    name: str
    statuses: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """The worst status of any sample; an entry without samples is skipped."""
        for status in ("CRASH", "WRONG"):
            if self.statuses[status]:
                return status
        if self.statuses["pass"]:
            return "partly" if self.statuses["refused"] else "pass"
        return "refused" if self.statuses["refused"] else "skipped"


def full_name(op: OpInfo) -> str:
    """The entry's name and its variant's."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def entries(dtype: torch.dtype, part: int = 0, parts: int = 1) -> list[OpInfo]:
    """The entries that eager supports for `dtype`; with `parts`, a seeded share of them."""
    listed = [
        op
        for op in database.op_db
        if op.supports_dtype(dtype, "cpu") and full_name(op) not in UNDETERMINED
    ]
    order = list(range(len(listed)))
    random.Random(SEED).shuffle(order)
    return [listed[i] for i in sorted(order[part::parts])]


def samples_of(op: OpInfo, dtype: torch.dtype, count: int) -> Iterator[SampleInput]:
    """`count` samples of an entry, spread over those it has."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    listed = list(op.sample_inputs("cpu", dtype))
    step = max(1, len(listed) // count)
    yield from listed[::step][:count]


def clone(value: object) -> object:
    """Inputs of its own for each run, as a program may be one that changes its inputs; they lie as before."""
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return value.clone() if isinstance(value, torch.Tensor) else value
    memory = value.untyped_storage().clone()
    return value.new_empty(0).set_(memory, value.storage_offset(), value.shape, value.stride())


def try_sample(op: OpInfo, sample: SampleInput) -> tuple[str, str]:
    """The status of one sample, and what there is to say about it."""
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)

    def program(*args, **kwargs):
        result = op.op(*args, **kwargs)
        return values_of(op.name, result, args, kwargs) if op.name in TIES else result

    def inputs():
        return pytree.tree_map(clone, args), pytree.tree_map(clone, kwargs)

    try:
        eager_args, eager_kwargs = inputs()
        with torch.no_grad():
            eager = program(*eager_args, **eager_kwargs)
    except Exception as error:
        return "skipped", f"eager: {type(error).__name__}"
    try:
        compiled = deplo.compile(program, args, kwargs, target="cpu")
        result = compiled(*args, **kwargs)
    except deplo.UnsupportedOpError as error:
        return "refused", str(error).partition("\n")[2].partition("\n")[0].strip() or str(error)
    except Exception as error:
        return "CRASH", f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    exact = float64_reference(EXACT.get(op.name, program), *inputs())
    reduction = longest_reduction(compiled.stage("loop"))
    verdict = judge(eager, result, exact, reduction)
    if verdict.problem is None:
        return "pass", ""
    if full_name(op) in ILL_CONDITIONED and twice_as_far_as_eager(result, eager, exact):
        return "pass", ""
    shapes = [tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
    return "WRONG", f"{verdict.problem} (args {shapes}, {kwargs})".replace("\n", " ")[:400]


def values_of(name: str, result: object, args: tuple, kwargs: dict) -> object:
    """The result, with positions replaced by the values that stand there."""
    source = args[0]
    leaves = pytree.tree_leaves(result)
    positions = [v for v in leaves if v.dtype == torch.int64 and v is not leaves[0]]
    if name == "argsort":
        positions = leaves
    if not positions:
        return result
    if not source.ndim:
        return source
    place = {"topk": 2, "kthvalue": 2}.get(name, 1)
    dim = kwargs.get("dim", args[place] if len(args) > place else -1)
    if not isinstance(dim, int) or isinstance(dim, bool):
        dim = -1  # argsort and sort take `stable` or `descending` there
    (position,) = positions
    if position.ndim < source.ndim:
        position = position.unsqueeze(dim)
    taken = source.gather(dim, position)
    return taken if name == "argsort" else (leaves[0], taken)


def twice_as_far_as_eager(result: object, eager: object, exact: object) -> bool:
    """Whether each output's distance from float64 is at most twice that of eager's; all are finite."""
    for ours, theirs, reference in zip(
        *map(pytree.tree_leaves, (result, eager, exact)), strict=True
    ):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return False
        mine, its = ((v.double() - reference).square().mean().sqrt() for v in (ours, theirs))
        if not bool(mine <= 2 * its):  # false for NaN
            return False
    return True


def run_entry(op: OpInfo, dtype: torch.dtype, samples: int) -> Entry:
    """Try `samples` samples of an entry."""
    entry = Entry(full_name(op))
    try:
        listed = list(samples_of(op, dtype, samples))
    except Exception as error:  # the database's own, such as a missing SciPy
        entry.notes.append(f"no samples: {type(error).__name__}")
        return entry
    for sample in listed:
        status, note = try_sample(op, sample)
        entry.statuses[status] += 1
        if note and note not in entry.notes:
            entry.notes.append(note)
    return entry


def main(argv: list[str] | None = None) -> int:
    """Run a part of the database; 1 if anything is WRONG or a CRASH."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--samples", type=int, default=8, help="samples of each entry")
    parser.add_argument("--part", default="0/1", help="I/N: the I-th of N seeded shares")
    parser.add_argument("--only", nargs="*", help="the names of entries; default: all")
    parser.add_argument("--write", type=Path, help="a JSON file to put this dtype's results in")
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # deplo.compile refuses a program that sets the seed, as entries do that draw random numbers.
    database.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    part, parts = map(int, options.part.split("/"))
    dtype = DTYPES[options.dtype]
    totals: Counter[str] = Counter()
    results: dict[str, str] = {}
    for op in entries(dtype, part, parts):
        if options.only and full_name(op) not in options.only:
            continue
        entry = run_entry(op, dtype, options.samples)
        totals[entry.status] += 1
        results[entry.name] = entry.status
        print(f"{entry.status:8} {entry.name}  {'; '.join(entry.notes)}", flush=True)
    print(", ".join(f"{count} {status}" for status, count in sorted(totals.items())))
    if options.write:
        known = json.loads(options.write.read_text()) if options.write.exists() else {}
        known.setdefault(options.dtype, {}).update(results)
        known[options.dtype] = dict(sorted(known[options.dtype].items()))
        options.write.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    return 1 if totals["WRONG"] or totals["CRASH"] else 0


if __name__ == "__main__":
    sys.exit(main())
