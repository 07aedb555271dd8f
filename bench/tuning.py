"""What tuning gains on this CPU: rows and contractions of `bench/cpu.py`, as modelled and as tuned.

    python bench/tuning.py               # tunes and measures, writes bench/results/tuning.json
    python bench/tuning.py --only linear # prints the cases whose name or group is this, writes nothing
    python bench/tuning.py --show        # prints the results file

Each case is tuned from nothing, in a cache of its own, and a second time, which must measure nothing where
the first was finished. Then both programs take turns, and the median counts; where the model's choices stay,
they are one and the same program, and nothing is gained. With the budget that there is by default all of it
takes about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
from cpu import TOLERANCE  # noqa: E402
from cpu_cases import cases  # noqa: E402

import deplo  # noqa: E402
from deplo.analysis.targets import get_target  # noqa: E402
from deplo.frontend.capture import capture  # noqa: E402
from deplo.tools.measuring import ROOT, Case, compare, geometric_mean, machine  # noqa: E402
from deplo.tune.session import tune  # noqa: E402
from deplo.tune.settings import Settings  # noqa: E402

RESULT = ROOT / "bench" / "results" / "tuning.json"
ROUNDS = 31
BUDGET = 60.0
GROUPS = ("rows", "contractions", "rows of models", "contractions of models")
CLOSE = 1.1
"""The model's choice is close to the best found if it takes at most so many times as long."""


def measure(case: Case, seconds: float, rounds: int) -> dict[str, Any]:
    """Tune a case, then compare the model's program with the tuned one."""
    plain = deplo.compile(case.program, case.args, case.kwargs, target="cpu")
    plain(*case.args, **case.kwargs)
    captured = capture(case.program, case.args, case.kwargs)
    start = time.perf_counter()
    session = tune(captured.module, get_target("cpu"), seconds, Settings())
    spent = time.perf_counter() - start
    finished = all(each.finished for each in session.tunings)
    again = tune(captured.module, get_target("cpu"), seconds, Settings()) if finished else None
    tuned = deplo.compile(case.program, case.args, case.kwargs, target="cpu")
    calls = {
        "model": lambda: plain(*case.args, **case.kwargs),
        "deplo": lambda: tuned(*case.args, **case.kwargs),
    }
    changed = any(each.choices is not None for each in session.tunings)
    row = compare(case, calls, rounds if changed else 1, TOLERANCE)
    kernels = [
        {
            "kernel": each.name,
            "choices": None if each.choices is None else dict(each.choices),
            "ratio": each.ratio,
            "finished": each.finished,
        }
        for each in session.tunings
    ]
    return {
        **row,
        "changed": changed,
        "kernels": kernels,
        "candidates": session.compiled,
        "second_run": None if again is None else again.compiled,
        "tuning_seconds": spent,
    }


def gain(row: dict[str, Any]) -> float | None:
    """How many times as long the model's program takes; 1 where it is the same program."""
    times = row.get("median_us", {})
    if len(times) != 2:
        return None
    return times["model"] / times["deplo"] if row["changed"] else 1.0


def table(result: dict[str, Any]) -> str:
    """The result as text."""
    lines = [f"{'':33}{'model':>11}{'tuned':>11}{'gain':>7}{'candidates':>12}  kernels"]
    gains: list[float] = []
    for name, row in result["cases"].items():
        found = gain(row)
        if found is None:
            lines.append(f"{name:33} {row.get('failed') or 'wrong: ' + json.dumps(row['error'])}")
            continue
        gains.append(found)
        times = row["median_us"]
        kernels = ", ".join(
            "as the model says" if k["ratio"] is None else f"{1 / k['ratio']:.2f}"
            for k in row["kernels"]
        )
        lines.append(
            f"{name:33}{times['model']:11.1f}{times['deplo']:11.1f}{found:7.2f}"
            f"{row['candidates']:12}  {kernels}{'' if row['second_run'] == 0 else ', to be continued'}"
        )
    slower = [n for n, row in result["cases"].items() if (found := gain(row)) and found < 1]
    close = sum(each <= CLOSE for each in gains)
    lines.append(
        f"{'geometric mean':55}{geometric_mean(gains):7.2f}; the model is within "
        f"{CLOSE - 1:.0%} of what was found in {close} of {len(gains)} cases; "
        f"slower: {', '.join(slower) or 'none'}"
    )
    where = result["machine"]
    lines.append(
        f"microseconds, medians of {result['rounds']} rounds, {result['budget']:.0f} s of tuning each, "
        f"{where['threads']} threads of {where['cpu']}, {where['commit']}"
    )
    return "\n".join(lines)


def main() -> int:
    """Tune and measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument(
        "--only", metavar="NAME", help="cases whose name holds this, or of this group; no file"
    )
    parser.add_argument("--budget", type=float, default=BUDGET, help=f"seconds each ({BUDGET:.0f})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    options = parser.parse_args()
    if options.show:
        if not RESULT.exists():
            parser.error(f"there is no {RESULT.relative_to(ROOT)} yet; run without --show")
        print(table(json.loads(RESULT.read_text())))
        return 0
    torch.set_num_threads(THREADS)
    result: dict[str, Any] = {
        "rounds": options.rounds,
        "budget": options.budget,
        "machine": {**machine(), "threads": THREADS},
        "cases": {},
    }
    for group, name, make in cases():
        asked = options.only
        if group not in GROUPS if asked is None else asked != group and asked not in name:
            continue
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DEPLO_CACHE_DIR"] = cache
            with torch.no_grad():
                result["cases"][name] = measure(make(), options.budget, options.rounds)
        print(name, gain(result["cases"][name]), flush=True)
    if options.only is None:
        Path(RESULT).write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
