"""Runs the node tests of the package `onnx` on `deplo.from_onnx`, and counts what comes of them.

    python test/python/onnx_nodes.py            # all of them, one process
    python test/python/onnx_nodes.py softmax    # those whose names have a word

A case passes if every output is as near to ONNX's as its own tolerance says, or of half types within two
units in the last place. Inputs that say shapes are fixed when a model needs them to be known. A case is
refused if deplo says that it does not compute it. Wrong values and any other exception are failures.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

import deplo
from deplo.onnx_import.model_files import load_proto
from deplo.onnx_import.program import OnnxProgram

TWO_UNITS = {"bfloat16": 2.0**-6, "float16": 2.0**-9}
"""Two units in the last place: what ONNX's runner allows bfloat16, and what float16 needs as well.

ONNX Runtime, too, differs by more than 1e-3 from what ONNX says of `test_attention_4d_causal_fp16`.
"""


def outcome(case: Any) -> tuple[str, str]:
    """What comes of a case, passed, refused, wrong or crashed, and why."""
    names = [value.name for value in case.model.graph.input]
    try:
        program, fixed = loaded(case, names)
    except (deplo.UnsupportedOpError, deplo.UsageError) as error:
        lines = str(error).splitlines()
        return "refused", " + ".join(line.strip() for line in lines[1:] or lines)
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"
    takes = {value.name for value in program.inputs}
    for given, expected in case.data_sets:
        arrays = {n: array_of(x) for n, x in zip(names, given, strict=False) if n in takes}
        try:
            found = program(**arrays)
        except Exception as error:
            return "crashed", f"{type(error).__name__}: {error}"
        results = found if isinstance(found, tuple) else (found,)
        for name, ours, theirs in zip(program.outputs, results, expected, strict=True):
            if (problem := difference(ours, array_of(theirs), case.rtol, case.atol)) is not None:
                return "wrong", f"{name.name}: {problem}"
    return "passed", "inputs fixed" if fixed else ""


def loaded(case: Any, names: list[str]) -> tuple[OnnxProgram, bool]:
    """The program of a case, and whether inputs that say shapes are fixed, as they must be for it."""
    try:
        return OnnxProgram(load_proto(case.model)), False
    except deplo.UnsupportedOpError as error:
        if "must be known" not in str(error):
            raise
        arrays = zip(names, case.data_sets[0][0], strict=False)
        fixed = {name: array_of(x) for name, x in arrays if says_shapes(name, x)}
        if not fixed:
            raise
        return OnnxProgram(load_proto(case.model, constants=fixed)), True


def array_of(value: Any) -> Any:
    """A value of a case as an array."""
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value)


def says_shapes(name: str, value: Any) -> bool:
    """Whether an input may be one that says shapes: a number, or a list of integers or bools."""
    array = array_of(value)
    return (
        name in ("scales", "roi")
        or array.ndim == 0
        or (array.ndim == 1 and array.dtype.kind in "biu")
        or array.size == 0
    )


def difference(ours: Any, theirs: Any, rtol: float, atol: float) -> str | None:
    """How an output differs from what it should be, if it does."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype} {ours.shape}, not {theirs.dtype} {theirs.shape}"
    if ours.dtype.kind in "biu":
        wrong = ours != theirs
    else:
        rtol = max(rtol, TWO_UNITS.get(ours.dtype.name, 0.0))
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        wrong = ~np.isclose(ours, theirs, rtol, atol, equal_nan=True)
    if not np.any(wrong):
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(np.count_nonzero(wrong))} of {wrong.size}; at {list(at)} {ours[at]}, not {theirs[at]}"


def cases(words: list[str]) -> list[Any]:
    """The node tests whose names have one of the words, or all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return [case for case in found if not words or any(word in case.name for word in words)]


def main(words: list[str]) -> int:
    """Run cases and print what came of them; gives 1 if one is wrong or crashed."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    start = time.perf_counter()
    for case in cases(words):
        begin = time.perf_counter()
        kind, why = outcome(case)
        took = time.perf_counter() - begin
        counts[kind] += 1
        counts[why if kind == "passed" else ""] += 1
        if kind == "refused":
            for reason in why.split(" + "):
                reasons[reason.rpartition(": ")[0] or reason] += 1
        if kind in ("wrong", "crashed") or words or took > 20:
            print(f"{kind} {case.name} {took:.1f} s {why[:300]}", flush=True)
    print(f"\n{time.perf_counter() - start:.0f} s")
    for reason, number in reasons.most_common():
        print(f"{number:5} {reason[:150]}")
    print(f"of those that passed, {counts['inputs fixed']} with inputs fixed that say shapes")
    print(", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "refused", "wrong", "crashed")))
    return int(bool(counts["wrong"] or counts["crashed"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
