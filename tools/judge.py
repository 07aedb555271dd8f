"""Is a result right? Compared with eager PyTorch and with the same program in float64.

A result is right if it has eager's structure, shapes and dtypes; if integers and bools are equal; if NaN
and infinities stand where eager has them; and if every float, and each part of a complex number, is within an
error bound of the float64 result or of eager's, which may itself be far from float64 where a program loses
digits. The bound is that of a sum of K products, K the longest reduction of the program (and more where
factors are rounded before they are multiplied, `analysis/roundings.py`):

    |result - exact| <= (4 * eps(dtype) + K * eps(float32)) * (|exact| + rms(exact))

with float64's eps for float64 outputs (Higham, Accuracy and Stability of Numerical Algorithms, section
3.1). PyTorch's own judge, `torch._dynamo.utils.same`, must agree as well; it is given the float64 result.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.utils import same
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class Verdict:
    """What the judge found; `problem` is None if the result is right."""

    problem: str | None
    error: float | None
    """Largest |result - float64| over all float outputs; None without a float64 reference."""
    eager_error: float | None
    """The same of eager."""
    difference: float
    """Largest |result - eager| over all outputs."""


def float64_reference(
    program: torch.nn.Module | Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any | None:
    """What `program` computes in float64, or None if it cannot run in it."""
    if isinstance(program, torch.nn.Module):
        program = copy.deepcopy(program).double()
        for held in (*program.parameters(), *program.buffers()):
            held.data = _widened(held.data)  # `double` leaves complex ones as they are
    widen = _widened
    try:
        with torch.no_grad():
            return program(
                *pytree.tree_map(widen, tuple(args)), **pytree.tree_map(widen, dict(kwargs))
            )
    except (RuntimeError, TypeError, ValueError):  # e.g. a program that fixes a dtype of its own
        return None


@contextmanager
def same_random_numbers() -> Generator[None]:
    """PyTorch's generator starts the same each time, and is then as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def _widened(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_complex():
        return value.to(torch.complex128)
    return value.double() if value.is_floating_point() else value


def _parts(value: Any, like: Any) -> Any:
    """A complex tensor as a real one with both parts along a last axis, if `like` is complex as well."""
    both = (value, like)
    if all(isinstance(each, torch.Tensor) and each.is_complex() for each in both):
        return torch.view_as_real(value.detach().resolve_conj())
    return value


def judge(eager: Any, result: Any, exact: Any | None, reduction: int) -> Verdict:
    """Compare a result with eager's and the float64 one; `reduction` is K."""
    expected, structure = pytree.tree_flatten(eager)
    actual, its_structure = pytree.tree_flatten(result)
    if structure != its_structure:
        return Verdict(f"structure is {its_structure}, eager's is {structure}", None, None, 0.0)
    references: list[Any] = [None] * len(expected)
    if exact is not None:
        flat, exact_structure = pytree.tree_flatten(exact)
        references = flat if exact_structure == structure else references
    references = [_parts(r, e) for r, e in zip(references, expected, strict=True)]
    compared = zip(actual, expected, strict=True)
    pairs = [(_parts(ours, theirs), _parts(theirs, ours)) for ours, theirs in compared]
    actual, expected = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
    errors: list[float] = []
    eager_errors: list[float] = []
    difference = 0.0
    for position, (ours, theirs, reference) in enumerate(
        zip(actual, expected, references, strict=True)
    ):
        problem = _compare(ours, theirs, reference, reduction)
        if problem is not None:
            return Verdict(f"output {position}: {problem}", None, None, difference)
        if isinstance(ours, torch.Tensor) and ours.numel():
            difference = max(difference, _distance(ours, theirs))
            if ours.is_floating_point() and isinstance(reference, torch.Tensor):
                errors.append(_distance(ours, reference))
                eager_errors.append(_distance(theirs, reference))
    doubles = [_double(r, e) for r, e in zip(references, expected, strict=True)]
    agrees = same(expected, actual, doubles, equal_nan=True, tol=_tolerance(expected))
    problem = None if agrees else "torch._dynamo.utils.same says the result differs from eager"
    return Verdict(problem, max(errors, default=None), max(eager_errors, default=None), difference)


def _double(reference: Any, eager: Any) -> Any:
    """The float64 result of an output if there is one, else eager's."""
    usable = isinstance(reference, torch.Tensor) and isinstance(eager, torch.Tensor)
    same_kind = usable and reference.shape == eager.shape and eager.is_floating_point()
    return reference.detach().double() if same_kind else eager


def _tolerance(outputs: Sequence[Any]) -> float:
    """What PyTorch's benchmarks give `same`: 1e-4, and 1e-2 where half types round the outputs."""
    halves = (torch.float16, torch.bfloat16)
    return 1e-2 if any(getattr(o, "dtype", None) in halves for o in outputs) else 1e-4


def _distance(a: torch.Tensor, b: torch.Tensor) -> float:
    x, y = a.detach().double().cpu(), b.detach().double().cpu()
    finite = torch.isfinite(x) & torch.isfinite(y)
    return float((x - y)[finite].abs().max()) if bool(finite.any()) else 0.0


def _compare(ours: Any, theirs: Any, reference: Any, reduction: int) -> str | None:
    if not isinstance(theirs, torch.Tensor):
        return None if ours == theirs else f"{ours!r} instead of {theirs!r}"
    if not isinstance(ours, torch.Tensor):
        return f"{type(ours).__name__} instead of a tensor"
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)} instead of {list(theirs.shape)}"
    if ours.dtype != theirs.dtype:
        return f"dtype {ours.dtype} instead of {theirs.dtype}"
    if not ours.numel():
        return None
    if not ours.is_floating_point():
        wrong = ours != theirs
    else:
        wrong = _outside_bound(ours, theirs, reference, reduction)
    count = int(wrong.sum())
    if not count:
        return None
    where = tuple(int(i) for i in wrong.nonzero()[0])
    return (
        f"{count} of {wrong.numel()} elements are wrong; the first at {list(where)}: "
        f"{ours[where].item()!r}, eager has {theirs[where].item()!r}"
    )


def error_bound(exact: torch.Tensor, dtype: torch.dtype, reduction: int) -> torch.Tensor:
    """How far from `exact`, a result in float64, each element of it may be in `dtype`."""
    accumulator = torch.float64 if dtype == torch.float64 else torch.float32
    eps = 4 * torch.finfo(dtype).eps + reduction * torch.finfo(accumulator).eps
    finite = torch.isfinite(exact)
    rms = exact[finite].square().mean().sqrt() if bool(finite.any()) else exact.new_zeros(())
    return eps * (exact.abs() + rms)


def _outside_bound(
    ours: torch.Tensor, theirs: torch.Tensor, reference: Any, reduction: int
) -> torch.Tensor:
    x, eager = ours.detach().double(), theirs.detach().double()
    exact = _double(reference, theirs).double()
    bound = error_bound(exact, ours.dtype, reduction)
    # A half type may overflow or underflow where float64 does not: eager then decides.
    close = torch.minimum((x - exact).abs(), (x - eager).abs()) <= bound
    equal = (x == eager) | (torch.isnan(x) & torch.isnan(eager))
    return ~((close & torch.isfinite(x) & torch.isfinite(eager)) | equal)
