"""Which operators PyTorch's own decompositions replace before import.

The table is that of torch.export, less what the dialect has, plus a few that export keeps whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch._C import (
    _dispatch_get_registrations_for_dispatch_key,  # pyright: ignore[reportPrivateUsage]
)
from torch._decomp import (
    _core_aten_decompositions_post_autograd,  # pyright: ignore[reportPrivateUsage]
    get_decompositions,
)
from torch._ops import OpOverload
from torch.fx.experimental.symbolic_shapes import guard_or_false

from ..dialects.torch import OPS_BY_ATEN
from .aliasing import COMPOSITE, is_composite, may_alias
from .composites import COMPOSITES
from .eager_strides import KERNELS, unlike_fake_tensors, with_eager_strides
from .encoder_layers import ENCODER_LAYERS
from .foreach import foreach_rules
from .gradients import OF_WINDOWS
from .grids import GRIDS
from .histograms import HISTOGRAMS
from .layouts import EMPTIES
from .margins import multilabel_margin_loss
from .numbers_and_bits import NUMBERS_AND_BITS
from .pairs import OF_PAIRS
from .resampling import RESAMPLING
from .special_functions import SPECIAL_FUNCTIONS
from .transposed_convolutions import transposed_convolution

aten = torch.ops.aten

KEPT_BY_EXPORT = (
    aten._batch_norm_with_update_functional.default,
    aten._native_batch_norm_legit_functional.default,
    aten.addmv.default,
    aten.dist.default,
    aten.narrow_copy.default,
    aten.permute_copy.default,
    aten.slice_scatter.default,
    aten.tril_indices.default,
    aten.triu_indices.default,
    aten.unbind_copy.int,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
)
"""Operators that PyTorch can decompose exactly, though export does not."""


def _addbmm(
    value: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    *,
    beta: float = 1,
    alpha: float = 1,
) -> torch.Tensor:
    """beta * value + alpha * the sum over the batch of left @ right, as one longer product."""
    rows = left.permute(1, 0, 2).reshape(left.shape[1], -1)
    columns = right.reshape(-1, right.shape[2])
    return torch.addmm(value, rows, columns, beta=beta, alpha=alpha)


def _rrelu(
    value: torch.Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Any:
    """The mean slope where it is not random; else it stays whole, to draw the numbers that eager draws."""
    if training:
        return NotImplemented
    return torch.nn.functional.leaky_relu(value, (lower + upper) / 2)


def _rrelu_with_noise(
    value: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: torch.Generator | None = None,
) -> Any:
    return _rrelu(value, lower, upper, training, generator)


KEPT_WHOLE = (
    aten.bernoulli.default,  # its decomposition draws other numbers
    *(getattr(rnn, form) for rnn in (aten.lstm, aten.gru) for form in ("input", "data")),
    *(getattr(rnn, form) for rnn in (aten.rnn_tanh, aten.rnn_relu) for form in ("input", "data")),
    aten.inverse.default,
    aten.linalg_cholesky.default,
    aten.linalg_inv.default,
    aten.linalg_ldl_factor.default,
    aten.linalg_lu_factor.default,
    aten.linalg_solve.default,
)
"""Operators whose decomposition does not help: that of a recurrent network is a copy of it per time step,
and those of linear algebra check for failure by an effect."""


def _scatter_reduce(
    value: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, *, reduce: str
) -> torch.Tensor:
    """The older form, which folds into what is there."""
    folds = {"add": "sum", "multiply": "prod"}
    return aten.scatter_reduce(value, dim, index, source, folds[reduce])


def _scatter_number_reduce(
    value: torch.Tensor, dim: int, index: torch.Tensor, number: float, *, reduce: str
) -> torch.Tensor:
    source = torch.full(index.shape, number, dtype=value.dtype, device=value.device)
    return _scatter_reduce(value, dim, index, source, reduce=reduce)


def _put(
    value: torch.Tensor, index: torch.Tensor, source: torch.Tensor, accumulate: bool = False
) -> torch.Tensor:
    """Writes at row-major positions."""
    flat = value.reshape(-1)
    indices = [index.reshape(-1)]
    changed = aten.index_put(flat, indices, source.reshape(-1), accumulate)
    return changed.reshape(value.shape)


def _binary_cross_entropy(
    value: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduction: int = 1,
) -> Any:
    """The losses one by one, which check what they are of, and then their mean or sum."""
    if reduction == 0:
        return NotImplemented
    losses = aten.binary_cross_entropy(value, target, weight, 0)
    return losses.mean() if reduction == 1 else losses.sum()


def _view_copy(value: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """A copy in another shape; PyTorch's rule refuses some that have no view."""
    return value.reshape(size).clone(memory_format=torch.contiguous_format)


_INDEX_COPY: Any = get_decompositions([aten.index_copy.default])[aten.index_copy.default]


def _index_copy(
    value: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor
) -> torch.Tensor:
    """Keeps a negative index out of range: an assignment, not eager, counts it from the end."""
    return _INDEX_COPY(value, dim, torch.where(index < 0, NO_INDEX, index), source)


NO_INDEX = -(2**63)
"""An index that is out of range for all extents, counted from the end as well."""


def _soft_margin_loss(
    value: torch.Tensor, target: torch.Tensor, reduction: int = 1
) -> torch.Tensor:
    """Rounds after each step, as eager does: in half precision a far margin is infinite."""
    losses = (-value * target).exp().log1p()
    return losses if reduction == 0 else losses.mean() if reduction == 1 else losses.sum()


def _eye(rows: int, columns: int | None = None, *, dtype: Any = None, **where: Any) -> torch.Tensor:
    columns = rows if columns is None else columns
    where.pop("layout", None)
    row, column = (torch.arange(n, device=where.get("device")) for n in (rows, columns))
    return (row.unsqueeze(-1) == column).to(dtype or torch.get_default_dtype())


def _is_mask(index: torch.Tensor | None) -> bool:
    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _apart(indices: Sequence[torch.Tensor | None]) -> list[int] | None:
    """The indexed axes and then the others, unless the indexed ones are next to each other."""
    given = [i for i, index in enumerate(indices) if index is not None]
    if not given or given[-1] - given[0] + 1 == len(given):
        return None
    return given


def _index(value: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:
    """With indexed axes that are apart, what is indexed comes first."""
    given = _apart(indices)
    if given is None or any(map(_is_mask, indices)):
        return NotImplemented
    order = given + [i for i in range(value.ndim) if i not in given]
    return aten.index(value.permute(order), [indices[i] for i in given])


def _index_put(
    value: torch.Tensor,
    indices: Sequence[torch.Tensor | None],
    written: torch.Tensor,
    accumulate: bool = False,
) -> Any:
    """One value where a mask holds is a choice; indexed axes that are apart are brought together."""
    masks = [i for i, index in enumerate(indices) if _is_mask(index)]
    if masks:
        given = [i for i, index in enumerate(indices) if index is not None]
        if given != masks or len(masks) > 1 or not guard_or_false(written.numel() == 1):
            return NotImplemented
        mask = indices[masks[0]]
        assert mask is not None
        rest = value.ndim - masks[0] - mask.ndim
        mask = mask.bool().reshape((*mask.shape, *[1] * rest))
        one = written.reshape(())
        return torch.where(mask, value + one if accumulate else one, value)
    if (given := _apart(indices)) is None:
        return NotImplemented
    order = given + [i for i in range(value.ndim) if i not in given]
    moved = aten.index_put(value.permute(order), [indices[i] for i in given], written, accumulate)
    return moved.permute([order.index(i) for i in range(value.ndim)])


def _roll(value: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> torch.Tensor:
    """The end of an axis before its beginning, two copies; of one of any size, a part of it twice."""
    if not dims:
        return _roll(value.reshape(-1), shifts, (0,)).reshape(value.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size = value.shape[dim]
        first = -shift % max(size, 1)
        if isinstance(size, torch.SymInt):
            value = torch.cat([value, value], dim).narrow(dim, first, size)
        else:
            parts = value.narrow(dim, first, size - first), value.narrow(dim, 0, first)
            value = torch.cat(parts, dim)
    return value


def _dropout(value: torch.Tensor, p: float, train: bool) -> Any:
    """Draw the mask in the order of `value` in memory, which PyTorch's own rule forgets."""
    if not train or p in (0, 1):
        return NotImplemented
    return aten.native_dropout.default(value, p, train)[0]


def _embedding_renorm(
    weight: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float
) -> torch.Tensor:
    """A table whose rows that are looked up have a norm of at most `max_norm`."""
    norm = torch.linalg.vector_norm(weight, norm_type, 1)
    used = torch.zeros_like(norm, dtype=torch.bool).index_fill(0, indices.reshape(-1), True)
    factor = torch.where(used & (norm > max_norm), max_norm / (norm + 1e-7), 1)  # as in eager
    return weight * factor.unsqueeze(1)


def _safe_softmax(value: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
    """A softmax whose rows of minus infinities are zeros: their maximum, which it needs anyway, is that."""
    if value.shape and value.shape[dim] == 0:
        return NotImplemented
    is_nothing = value.amax(dim, keepdim=True) == float("-inf")
    return torch.where(is_nothing, 0.0, value.softmax(dim, dtype))


OWN: dict[Any, Callable[..., Any]] = {
    aten._efficientzerotensor.default: torch.zeros,  # a tensor without memory, as the gradient of sgn is
    aten._safe_softmax.default: _safe_softmax,
    aten.addbmm.default: _addbmm,
    aten.binary_cross_entropy.default: _binary_cross_entropy,
    aten.convolution.default: transposed_convolution,
    aten.dropout.default: _dropout,
    aten.embedding_renorm.default: _embedding_renorm,
    aten.eye.default: _eye,
    aten.eye.m: _eye,
    aten.index.Tensor: _index,
    aten.index_copy.default: _index_copy,
    aten.index_put.default: _index_put,
    aten.multilabel_margin_loss.default: multilabel_margin_loss,
    aten.put.default: _put,
    aten.roll.default: _roll,
    aten.rrelu.default: _rrelu,
    aten.rrelu_with_noise.default: _rrelu_with_noise,
    aten.scatter.reduce: _scatter_reduce,
    aten.scatter.value_reduce: _scatter_number_reduce,
    aten.soft_margin_loss.default: _soft_margin_loss,
    aten.view_copy.default: _view_copy,
    **COMPOSITES,
    **EMPTIES,
    **ENCODER_LAYERS,
    **GRIDS,
    **HISTOGRAMS,
    **NUMBERS_AND_BITS,
    **OF_PAIRS,
    **OF_WINDOWS,
    **RESAMPLING,
    **SPECIAL_FUNCTIONS,
}
"""Operators that PyTorch has no decomposition of, or not this one. A rule may leave a call as it is."""


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Operator -> what replaces it, for every operator that the dialect does not have.

    Export asks for all composite ones, of any library.
    """
    composite = _dispatch_get_registrations_for_dispatch_key(COMPOSITE)
    return dict(_decompositions(len(composite)))


@lru_cache(maxsize=1)
def _decompositions(composite: int) -> dict[Any, Callable[..., Any]]:
    """The same while so many operators are composite: libraries that are loaded later add some."""
    return _with_own(dict(torch.export.default_decompositions().items()))


@lru_cache(maxsize=1)
def rules_of_calls() -> dict[Any, Callable[..., Any]]:
    """The same for what is traced call by call, where composite operators come apart by themselves.

    To ask for those takes longer than anything else that is done for a program found in the cache.
    """
    return _with_own(dict(_core_aten_decompositions_post_autograd()))


def _with_own(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    """A table of PyTorch's with what else is replaced, and without what is kept."""
    table |= get_decompositions(list(KEPT_BY_EXPORT))
    table |= foreach_rules() | OWN
    table |= {op: _or_else(rule, op) for op, rule in RESAMPLING.items()}
    table = {op: rule for op, rule in table.items() if not is_kept(op)}
    table |= {op: with_eager_strides(op, rule) for op, rule in table.items() if makes_tensors(op)}
    return table | {op: unlike_fake_tensors(op) for op in KERNELS if op not in table}


def makes_tensors(op: Any) -> bool:
    """Whether the results of an operator are tensors of their own in eager, and not only in a rule for it."""
    return not may_alias(op) and (op in OWN or not is_composite(op))


def _or_else(rule: Callable[..., Any], op: Any) -> Callable[..., Any]:
    """A rule, and PyTorch's own for the calls that it leaves as they are."""
    other: Any = get_decompositions([op]).get(op, op)

    def either(*args: Any, **kwargs: Any) -> Any:
        made = rule(*args, **kwargs)
        return other(*args, **kwargs) if made is NotImplemented else made

    return either


def is_kept(op: Any) -> bool:
    """Whether an operator stays as it is: the dialect has it, or its decomposition does not help."""
    name = f"{op._schema.name.removeprefix('aten::')}.{op._overloadname}"
    return op in KEPT_WHOLE or (name in OPS_BY_ATEN and op not in OWN)


ORIGINAL = "original_aten"
"""What the meta of nodes calls the operator that they are the decomposition of."""


def is_part(node: torch.fx.Node) -> bool:
    """Whether a node is part of the decomposition of an operator that makes tensors: so it is no view."""
    copied = node.meta.get(ORIGINAL)  # AOTAutograd copies what it has in meta
    if not isinstance(copied, OpOverload):
        return False
    op: Any = copied
    return makes_tensors(getattr(op.overloadpacket, op._overloadname))


def is_mutable(op: Any) -> bool:
    """Whether an operator changes one of its arguments."""
    return op._schema.is_mutable
