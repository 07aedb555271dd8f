"""The standard's extension for linear algebra: products and norms are expressions, factorizations numpy's."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from .calls import computed
from .functions import Axes, astype, axes_of, call, checking, meet, result, tensor
from .linear import matmul, matrix_transpose, tensordot, vecdot
from .manipulation import broadcast_shape, broadcast_to, moveaxis, reshape
from .reductions import sum as total
from .tensor import Tensor

Function = TypeVar("Function", bound=Callable[..., Any])

LINALG: dict[str, Callable[..., Any]] = {}
"""The functions of `array_api.linalg`, by name."""


def entered(function: Function) -> Function:
    """Enter a function, whose errors then start with its name."""
    LINALG[function.__name__] = checking(function, f"linalg.{function.__name__}")
    return function


for _function in (matmul, matrix_transpose, tensordot, vecdot):
    entered(_function)


class Slogdet(NamedTuple):
    """What `slogdet` gives."""

    sign: Tensor
    logabsdet: Tensor


class Eigh(NamedTuple):
    """What `eigh` gives."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QR(NamedTuple):
    """What `qr` gives."""

    Q: Tensor
    R: Tensor


class SVD(NamedTuple):
    """What `svd` gives."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _matrices(x: Tensor, name: str, kind: str = "floating") -> Tensor:
    if len(tensor(x, kind, name).shape) < 2:
        raise ValueError(f"{name} takes matrices, not a tensor of {x.ndim} axes")
    return x


def _square(x: Tensor, name: str) -> Tensor:
    if _matrices(x, name).shape[-1] != x.shape[-2]:
        raise ValueError(f"{name} takes square matrices, not {list(x.shape[-2:])}")
    return x


# --------------------------------------------------------------------------- expressions


@entered
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of all elements of a vector with all of another."""
    for x in (x1, x2):
        if len(tensor(x, "numeric", "outer").shape) != 1:
            raise ValueError(f"outer takes vectors, not a tensor of {x.ndim} axes")
    return reshape(x1, (x1.size, 1)) * reshape(x2, (1, x2.size))


@entered
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross product of vectors of three elements along an axis."""
    one, other = (Tensor.of(node) for node in meet("cross", "numeric", [x1, x2]))
    for x in (one, other):
        if not -x.ndim <= axis < x.ndim or x.shape[axis] != 3:
            raise ValueError(f"cross takes vectors of 3 along axis {axis}, not {list(x.shape)}")
    shape = broadcast_shape(one.shape, other.shape)
    (dim,) = axes_of(axis, len(shape))
    a, b = (moveaxis(broadcast_to(x, shape), dim, 0) for x in (one, other))
    parts = [a[i] * b[j] - a[j] * b[i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return call("stack", parts, axis=dim)


@entered
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """The elements on the diagonal of matrices, or so many columns beside it."""
    rows, columns = map(int, _matrices(x, "diagonal", "any").shape[-2:])
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if count <= 0:
        return x[..., 0, :0] if rows else x[..., :0, 0] if columns else reshape(x, x.shape[:-1])
    return result("diagonal.default", x.node, offset=offset, dim1=-2, dim2=-1)


@entered
def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal."""
    _matrices(x, "trace", "numeric")
    return total(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@entered
def vector_norm(
    x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of vectors along axes, or of all elements."""
    axes = axes_of(axis, len(tensor(x, "floating", "vector_norm").shape))
    size = abs(x)
    given: dict[str, Any] = {"axis": axes, "keepdims": keepdims}
    if ord == inf:
        return call("max", size, **given)
    if ord == -inf:
        return call("min", size, **given)
    if ord == 0:
        return total(astype(size != 0.0, size.dtype), **given)
    if ord == 1:
        return total(size, **given)
    if ord == 2:
        return call("sqrt", total(size * size, **given))
    return total(size ** float(ord), **given) ** (1 / ord)


@entered
def matrix_norm(
    x: Tensor,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> Tensor:
    """The norm of matrices."""
    _matrices(x, "matrix_norm")
    axes = (x.ndim - 2, x.ndim - 1)
    if ord in ("fro", None):
        return vector_norm(x, axis=axes, keepdims=keepdims)
    fold = "max" if ord in (1, 2, inf) else "min"
    if ord in (1, -1, inf, -inf):
        of, over = (-2, -1) if abs(float(ord)) == 1 else (-1, -2)
        found = call(fold, total(abs(x), axis=of, keepdims=True), axis=over, keepdims=True)
    elif ord in (2, -2):
        found = call(fold, svdvals(x), axis=-1, keepdims=True)[..., None]
    elif ord == "nuc":
        found = total(svdvals(x), axis=-1, keepdims=True)[..., None]
    else:
        raise ValueError(f"matrix_norm: {ord!r} is no norm of matrices")
    return found if keepdims else reshape(found, x.shape[:-2])


# --------------------------------------------------------------------------- numpy's


@entered
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices; numpy's."""
    lower = computed(np.linalg.cholesky, _square(x, "cholesky"))
    return call("conj", matrix_transpose(lower)) if upper else lower


@entered
def det(x: Tensor, /) -> Tensor:
    """The determinant; numpy's."""
    return computed(np.linalg.det, _square(x, "det"))


@entered
def eigh(x: Tensor, /) -> Eigh:
    """The eigenvalues and eigenvectors of Hermitian matrices; numpy's."""
    return Eigh(*computed(_tuple(np.linalg.eigh), _square(x, "eigh")))


@entered
def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices; numpy's."""
    return computed(np.linalg.eigvalsh, _square(x, "eigvalsh"))


@entered
def inv(x: Tensor, /) -> Tensor:
    """The inverse; numpy's."""
    return computed(np.linalg.inv, _square(x, "inv"))


@entered
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """The product of n of a matrix; numpy's."""
    return computed(np.linalg.matrix_power, _square(x, "matrix_power"), n)


@entered
def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values are above `rtol` times the largest; numpy's."""
    values = svdvals(_matrices(x, "matrix_rank"))
    if 0 in values.shape:
        return call("zeros", x.shape[:-2], dtype="int64")
    bound = call("max", values, axis=-1) * _tolerance(x, rtol)
    return total(astype(values > bound[..., None], "int64"), axis=-1)


def _tolerance(x: Tensor, rtol: float | Tensor | None) -> float | Tensor:
    if rtol is not None:
        return rtol
    return float(np.finfo(x.dtype.storage).eps) * max(map(int, x.shape[-2:]))


@entered
def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The pseudo-inverse, of singular values above `rtol` times the largest; numpy's."""
    return computed(np.linalg.pinv, _matrices(x, "pinv"), _tolerance(x, rtol))


@entered
def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QR:
    """A unitary and an upper triangular factor; numpy's."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    return QR(*computed(_tuple(np.linalg.qr), _matrices(x, "qr"), mode))


@entered
def slogdet(x: Tensor, /) -> Slogdet:
    """The sign of the determinant, and the logarithm of its absolute value; numpy's."""
    return Slogdet(*computed(_tuple(np.linalg.slogdet), _square(x, "slogdet")))


@entered
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """X with x1 @ X = x2, where x2 is one vector or matrices; numpy's."""
    one, other = (Tensor.of(node) for node in meet("solve", "floating", [x1, x2]))
    _square(one, "solve")
    columns = other[:, None] if other.ndim == 1 else other
    batch = broadcast_shape(one.shape[:-2], columns.shape[:-2])
    columns = broadcast_to(columns, (*batch, *columns.shape[-2:]))
    found = computed(np.linalg.solve, broadcast_to(one, (*batch, *one.shape[-2:])), columns)
    return found[..., 0] if other.ndim == 1 else found


@entered
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVD:
    """Unitary factors, and singular values in descending order; numpy's."""
    return SVD(*computed(_tuple(np.linalg.svd), _matrices(x, "svd"), full_matrices))


@entered
def svdvals(x: Tensor, /) -> Tensor:
    """The singular values in descending order; numpy's."""
    return computed(np.linalg.svd, _matrices(x, "svdvals"), compute_uv=False)


def _tuple(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    return lambda *args: tuple(function(*args))
