"""The element types of an operation's results, by the rule that the contract names for each result.

    PointwiseOp   promoted   aten::add.Tensor(…) -> Tensor
    ReductionOp   same/index aten::max.dim(…) -> (Tensor values, Tensor indices)

A `dtype` argument gives the first result's element type, whatever the rule says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, TypeAlias

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from .scalars import ui8
from .syntax import tensor_type
from .torch_promotion import category, common_element, number_element, promote

Elements: TypeAlias = Sequence[Attribute]
"""The element types that a result may have; empty if it may have any."""

CATEGORIES: Sequence[Elements] = ((i1,), (ui8, i8, i16, i32, i64), (f16, bf16, f32, f64))
"""The element types of each of PyTorch's categories: bool, integer, float."""
FLOATS = CATEGORIES[2]

_PROMOTING = ("input", "other", "exponent", "min", "max", "tensors")
"""The arguments that promote; conditions, factors such as `alpha` and bounds of loss functions do not."""


def _first(op: IRDLOperation) -> Attribute:
    return tensor_type(op.operands[0]).element_type


def _same(op: IRDLOperation) -> Elements:
    """The first tensor's element type."""
    return (_first(op),)


def _promoted(op: IRDLOperation) -> Elements:
    """The type that the arguments promote to.

    Any type of the category where no tensor with axes is of it: a Python number, or the 0-d tensor that
    the front end makes of one, gives the category alone, and PyTorch's default dtype may be f64.
    """
    arguments: list[Any] = []
    for name in _PROMOTING:
        given: Any = getattr(op, name, None)
        arguments += [] if given is None else given if isinstance(given, Sequence) else [given]
    common = common_element(arguments)
    types = [tensor_type(value) for value in arguments if isinstance(value, SSAValue)]
    same = [type for type in types if category(type.element_type) == category(common)]
    decided = any(type.get_num_dims() for type in same)
    return (common,) if decided else CATEGORIES[category(common)]


def _float(op: IRDLOperation) -> Elements:
    """The float type that the arguments promote to; a default float for integers and bools."""
    promoted = _promoted(op)
    return promoted if promoted[0] in FLOATS else FLOATS


def _quotient(op: IRDLOperation) -> Elements:
    """A rounded quotient may be an integer."""
    return _promoted(op) if "rounding_mode" in op.properties else _float(op)


def _sum(op: IRDLOperation) -> Elements:
    """Integers and bools accumulate in i64."""
    return _same(op) if _first(op) in FLOATS else (i64,)


def _truth(op: IRDLOperation) -> Elements:
    """Bools, but PyTorch gives the truth of ui8 as ui8."""
    return (ui8,) if _first(op) == ui8 else (i1,)


def _softmax(op: IRDLOperation) -> Elements:
    widened: Any = op.properties["half_to_float"]
    return (f32,) if widened.value.data else _same(op)


def _places(op: IRDLOperation) -> Elements:
    narrow: Any = op.properties.get("out_int32")
    return (i32,) if narrow is not None and narrow.value.data else (i64,)


def _filled(op: IRDLOperation) -> Elements:
    """The element type of the number `fill_value`."""
    element = number_element(getattr(op, "fill_value"))  # noqa: B009
    return FLOATS if element in FLOATS else (element,)


def _counted(op: IRDLOperation) -> Elements:
    """i64 if all of `start`, `end` and `step` are integers."""
    numbers: list[Any] = [op.properties.get(name) for name in ("start", "end", "step")]
    elements = [number_element(number) for number in numbers if number is not None]
    return FLOATS if reduce(promote, elements, i64) in FLOATS else (i64,)


RULES: Mapping[str, Callable[[IRDLOperation], Elements]] = {
    "any": lambda op: (),
    "same": _same,
    "promoted": _promoted,
    "float": _float,
    "quotient": _quotient,
    "bool": lambda op: (i1,),
    "index": lambda op: (i64,),
    "sum": _sum,
    "truth": _truth,
    "softmax": _softmax,
    "places": _places,
    "filled": _filled,
    "counted": _counted,
    "default": lambda op: FLOATS,
}
"""The rules by the names that the contract has for them."""


def verify_elements(op: IRDLOperation, rules: str) -> None:
    """Raise VerifyException unless each result of `op` has an element type that its rule allows.

    `rules` has a name for each result, or one for all, with `/` between them.
    """
    names = rules.split("/")
    for i, result in enumerate(op.results):
        name = names[i] if len(names) > 1 else names[0]
        given = op.properties.get("dtype") if i == 0 else None
        allowed = RULES[name](op) if given is None else (given,)
        element = tensor_type(result).element_type
        if allowed and element not in allowed:
            listed = " or ".join(map(str, allowed))
            where = f" as result {i}" if i else ""
            raise VerifyException(f"gives {listed} elements{where}, not {element}")
