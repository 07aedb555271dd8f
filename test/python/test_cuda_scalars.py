"""The C++ text of each operation on scalars, compiled by g++, computes what the interpreter does.

Inline PTX is left to NVRTC, and rows of `index` to the kernels of the corpus.
"""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from ir_programs import parse

from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects.cuda import FuncOp
from deplo.dialects.cuda_scalars import form_of
from deplo.interpreter.scalar_ops import evaluate
from deplo.machine.cuda_scalars import FORMS, ScalarForm

DTYPES = {f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)} | {
    f"i{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)
}
DTYPES["i1"] = np.dtype(bool)

MARKED = ("arith.subf product", "arith.divf zero", "math.exp2 afn")
"""What its operands or flags make another operation; `lower-to-cuda.mlir` and the corpus have them."""

Key = tuple[str, str, str]


def is_for_host(key: Key, form: ScalarForm) -> bool:
    is_ptx = any(text.startswith("asm") for _, text in form.steps)
    known = all(type in DTYPES for type in key[1:] if type)
    return not is_ptx and known and key[0] not in MARKED and is_legal(key)


def is_legal(key: Key) -> bool:
    """Whether `arith` has a conversion: integers are extended to wider ones, and cut to narrower ones."""
    growth = {"arith.extui": 1, "arith.extsi": 1, "arith.trunci": -1}.get(key[0])
    return growth is None or (int(key[2][1:]) - int(key[1][1:])) * growth > 0


KEYS = [key for key, form in FORMS.items() if is_for_host(key, form)]

SHIM = """
#include <math.h>
#include <stdio.h>
#include <string.h>
#define __global__
#define __launch_bounds__(...)
static struct { int x; } threadIdx;
static float rsqrtf(float x) { return 1.0f / sqrtf(x); }
static double rsqrt(double x) { return 1.0 / sqrt(x); }
"""

MAIN = """
static char buffers[4][%d];
int main() {
    for (auto &buffer : buffers) fread(buffer, 1, sizeof buffer, stdin);
    auto kernel = (void (*)(void *, void *, void *, void *))k;
    for (threadIdx.x = 0; threadIdx.x < %d; ++threadIdx.x)
        kernel(buffers[0], buffers[1], buffers[2], buffers[3]);
    fwrite(buffers[3], 1, sizeof buffers[3], stdout);
}
"""


def operation(key: Key, count: int) -> tuple[str, list[str], str]:
    """The text of an operation on `%a`, `%b`, `%c`, the types of its operands, and that of its result."""
    (name, *predicate), operand, result = key[0].split(), *key[1:]
    given = ", ".join(["%a", "%b", "%c"][:count])
    if result:
        return f"{name} {given} : {operand} to {result}", [operand], result
    if name == "arith.select":
        return f"{name} {given} : {operand}", ["i1", operand, operand], operand
    first = "".join(f"{each}, " for each in predicate)
    return f"{name} {first}{given} : {operand}", [operand] * count, "i1" if predicate else operand


def values(key: Key, types: list[str]) -> list[np.ndarray]:
    """Operands with all special values against each other, divisors and shifts that C++ defines."""
    lists: list[np.ndarray] = []
    for position, type in enumerate(types):
        dtype = DTYPES[type]
        if type == "i1":
            chosen = np.array([False, True])
        elif dtype.kind == "f":
            special = [0.0, -0.0, -1.5, 2.0, 3e9, -3e9, 1e19, np.nan, np.inf, -np.inf]
            with np.errstate(over="ignore"):
                chosen = np.array(special).astype(dtype)
        elif position == 1 and key[0] in ("arith.divsi", "arith.remsi"):
            chosen = np.array([1, 2, -3, 7], dtype)
        elif position == 1 and key[0].startswith("arith.sh"):
            chosen = np.array([0, 1, 3, 7], dtype)
        else:
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            chosen = np.array([0, 1, -1, 2, -7, 77, low, high], dtype)
        lists.append(chosen)
    return [grid.reshape(-1) for grid in np.meshgrid(*lists, indexing="ij")]


def compute(key: Key, directory: Path, old: str = "", new: str = "") -> tuple[np.ndarray, ...]:
    """What the compiled text of an operation, `old` in it replaced, and the interpreter give."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    count = 1 + max(i for i, o in enumerate("abc") if f"{{{o}}}" in str(FORMS[key].steps))
    text, types, result = operation(key, count)
    operands = values(key, types)
    size = len(operands[0])
    named = dict(zip("abc", [*types, "i8", "i8"], strict=False))
    head = ", ".join(f"%p{n}: memref<{size}x{t}>" for n, t in [*named.items(), ("r", result)])
    loads = [f"%{n} = loop.load %p{n}[%t] : memref<{size}x{named[n]}>" for n in "abc"[:count]]
    store = f"loop.store %r, %pr[%t] : memref<{size}x{result}>"
    body = "\n".join(["%t = kernel.thread_id", *loads, f"%r = {text}", store])
    module = parse(f"cuda.func @k({head}) blocks(1) threads({size}) index(i32) {{\n{body}\n}}")
    module.verify()
    (function,) = [op for op in module.walk() if isinstance(op, FuncOp)]
    (op,) = [op for op in function.walk() if form_of(op) is FORMS[key]]
    source = cuda_source(module)
    assert old in source
    main = MAIN % (size * 8, size)
    changed = source.replace(old, new) if old else source
    (directory / "k.cpp").write_text(SHIM + changed + main)
    checks = ["-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error"]
    command = ["g++", "-w", "-O1", "-ffp-contract=off", *checks, "-o", "k", "k.cpp"]
    subprocess.run(command, cwd=directory, check=True)
    buffers = [each.tobytes().ljust(size * 8, b"\0") for each in operands]
    given = b"".join([*buffers, *[bytes(size * 8)] * (4 - count)])
    done = subprocess.run([directory / "k"], input=given, capture_output=True, check=True)
    computed = np.frombuffer(done.stdout[: size * DTYPES[result].itemsize], DTYPES[result])
    expected = evaluate(op, operands)
    assert expected is not None
    return computed, expected


def check(key: Key, directory: Path, old: str = "", new: str = "") -> None:
    computed, expected = compute(key, directory, old, new)
    rtol = 0 if key[0].startswith("arith.") else 4 * np.finfo(expected.dtype).eps
    np.testing.assert_allclose(computed, expected, rtol=rtol, atol=0)


@pytest.mark.sample(24)
@pytest.mark.parametrize("key", KEYS, ids=lambda key: "-".join(key).replace(" ", "-").rstrip("-"))
def test_an_operation_computes_what_its_text_says(key: Key, tmp_path: Path) -> None:
    check(key, tmp_path)


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        (("arith.muli", "i32", ""), "unsigned", "int"),
        (("arith.cmpf ole", "f32", ""), "<=", "<"),
        (("arith.maximumf", "f64", ""), "v | v_1", "v"),
        (("arith.uitofp", "i1", "f32"), "(float)", "-(float)"),
    ],
    ids=["a sum overflows", "an equality is lost", "NaN is lost", "true is -1"],
)
def test_a_wrong_text_is_caught(key: Key, old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, subprocess.CalledProcessError)):
        check(key, tmp_path, old, new)
