"""What `tuning.py` measured, as text."""

from __future__ import annotations

import json
from math import nan
from typing import Any

from deplo.tools.measuring import geometric_mean

CLOSE = 1.1
"""The model's choice is close to the best found if it takes at most so many times as long."""
OTHERS = ", other inputs"
"""What is called so takes other inputs each time."""
TYPICAL = "typical"
"""The program of a model that knows nothing which was measured of this core."""


def gain(row: dict[str, Any], over: str = "model") -> float | None:
    """How many times as long another program takes as the tuned one; None if that was not measured."""
    found = [each for inputs in ("", OTHERS) if (each := gain_on(row, inputs, over)) is not None]
    return geometric_mean(found) if found else None


def gain_on(row: dict[str, Any], inputs: str, over: str = "model") -> float | None:
    """The same on some inputs only."""
    times = row.get("median_us", {})
    other, tuned = times.get(f"{over}{inputs}"), times.get(f"deplo{inputs}")
    if other is None or tuned is None:
        return None
    return other / tuned if row["changed"] or over != "model" else 1.0


def table(result: dict[str, Any]) -> str:
    """The result as text."""
    lines = [
        f"{'':33}{'model':>11}{'tuned':>11}{'gain':>7}{'others':>8}{'candidates':>12}  kernels"
    ]
    for name, row in result["cases"].items():
        found = gain(row)
        if found is None:
            lines.append(f"{name:33} {row.get('failed') or 'wrong: ' + json.dumps(row['error'])}")
            continue
        times = row["median_us"]
        kernels = ", ".join(
            "as the model says" if k["ratio"] is None else f"{1 / k['ratio']:.2f}"
            for k in row["kernels"]
        )
        more = "" if row["second_run"] == 0 else ", to be continued"
        lines.append(
            f"{name:33}{times['model']:11.1f}{times['deplo']:11.1f}"
            f"{gain_on(row, '') or nan:7.2f}{gain_on(row, OTHERS) or nan:8.2f}"
            f"{row['candidates']:12}  {kernels}{more}"
        )
    lines.append(mean_line("geometric mean of both", result["cases"]))
    others = {n: row for n, row in result["cases"].items() if "convolution" not in n}
    if 0 < len(others) < len(result["cases"]):
        lines.append(mean_line("without convolutions", others))
    if any(gain(row, TYPICAL) for row in others.values()):
        lines.append(mean_line("the same over the model of a typical core", others, TYPICAL))
    where = result["machine"]
    device = where.get("device") or f"{where['threads']} threads of {where['cpu']}"
    lines.append(
        f"microseconds, medians of {result['rounds']} rounds, {result['budget']:.0f} s of tuning each, "
        f"{device}, {where['commit']}"
    )
    return "\n".join(lines)


def mean_line(title: str, cases: dict[str, dict[str, Any]], over: str = "model") -> str:
    """What some cases gain together over a program, as a line."""
    gains = {name: found for name, row in cases.items() if (found := gain(row, over)) is not None}
    close = sum(each <= CLOSE for each in gains.values())
    slower = [name for name, each in gains.items() if each < 1]
    return (
        f"{title:55}{geometric_mean([*gains.values()]):11.2f}; the model is within {CLOSE - 1:.0%} of what "
        f"was found in {close} of {len(gains)} cases; slower: {', '.join(slower) or 'none'}"
    )
