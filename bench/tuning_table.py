"""What `tuning.py` measured, as text."""

from __future__ import annotations

import json
from typing import Any

from deplo.tools.measuring import geometric_mean

CLOSE = 1.1
"""The model's choice is close to the best found if it takes at most so many times as long."""
OTHERS = ", other inputs"
"""What is called so takes other inputs each time."""
MEASURED = "measured"
"""The program of the model that knows what was measured of this core."""


def gain(row: dict[str, Any], name: str = "deplo", over: str = "model") -> float | None:
    """How many times as long one program takes as another one; None if that was not measured."""
    found = [gain_on(row, inputs, name, over) for inputs in ("", OTHERS)]
    return geometric_mean([each for each in found if each]) if any(found) else None


def gain_on(
    row: dict[str, Any], inputs: str, name: str = "deplo", over: str = "model"
) -> float | None:
    """The same on some inputs only."""
    times = row.get("median_us", {})
    slow, quick = times.get(f"{over}{inputs}"), times.get(f"{name}{inputs}")
    return None if slow is None or quick is None else slow / quick


def table(result: dict[str, Any]) -> str:
    """The result as text."""
    typical = any(MEASURED in row.get("median_us", {}) for row in result["cases"].values())
    besides = f"{MEASURED:>10}" if typical else ""
    lines = [
        f"{'':33}{'model':>11}{'tuned':>11}{'gain':>7}{'others':>8}{besides}{'candidates':>12}  kernels"
    ]
    for name, row in result["cases"].items():
        if gain(row) is None:
            lines.append(f"{name:33} {row.get('failed') or 'wrong: ' + json.dumps(row['error'])}")
            continue
        times = row["median_us"]
        kernels = ", ".join(
            "as the model says" if k["ratio"] is None else f"{1 / k['ratio']:.2f}"
            for k in row["kernels"]
        )
        more = "" if row["second_run"] == 0 else ", to be continued"
        lines.append(
            f"{name:33}{times['model']:11.1f}{times['deplo']:11.1f}{number(gain_on(row, '')):>7}"
            f"{number(gain_on(row, OTHERS)):>8}"
            + (f"{number(gain(row, MEASURED)):>10}" if typical else "")
            + f"{row['candidates']:12}  {kernels}{more}"
        )
    cases = {name: row for name, row in result["cases"].items() if gain(row)}
    lines.append(mean_line("tuned", cases))
    others = {name: row for name, row in cases.items() if "convolution" not in name}
    if 0 < len(others) < len(cases):
        lines.append(mean_line("tuned, without convolutions", others))
    if typical:
        lines.append(mean_line(f"the {MEASURED} model, without convolutions", others, MEASURED))
        lines.append(mean_line("tuned, over that model", others, over=MEASURED))
    where = result["machine"]
    device = where.get("device") or f"{where['threads']} threads of {where['cpu']}"
    lines.append(
        f"microseconds, medians of {result['rounds']} rounds, {result['budget']:.0f} s of tuning each, "
        f"{device}{', a typical core to the model' if typical else ''}, {where['commit']}"
    )
    return "\n".join(lines)


def number(gained: float | None) -> str:
    """A gain as text; nothing if there is none."""
    return f"{gained:.2f}" if gained else ""


def mean_line(
    title: str, cases: dict[str, dict[str, Any]], name: str = "deplo", over: str = "model"
) -> str:
    """What some cases gain together by a program over another one, as a line."""
    gains = {case: gain(row, name, over) or 0.0 for case, row in cases.items()}
    close = sum(each <= CLOSE for each in gains.values())
    slower = [f"{case} {each:.2f}" for case, each in gains.items() if each < 1]
    return (
        f"{title:45}{geometric_mean([*gains.values()]):8.2f}; at most {CLOSE} in {close} of {len(gains)} "
        f"cases; slower: {', '.join(slower) or 'none'}"
    )
