"""The operations of the `torch` dialect, one class per ATen overload of the contract.

The classes are made from the schemas in `torch_contract.txt` when this module is imported:

    PointwiseOp promoted aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor

is the class

    @irdl_op_definition
    class SubOp(PointwiseOp):
        name = "torch.sub"
        ATEN: ClassVar[str] = "sub.Tensor"
        ELEMENTS: ClassVar[str] = "promoted"

        input = operand_def(TensorType)
        other = operand_def(TensorType)
        alpha = prop_def(SCALAR, default_value=argument_attr(1))
        result = result_def(TensorType)

        traits = traits_def(Pure())

The first overload listed of an operator is `torch.<operator>`; any further one is
`torch.<operator>_<overload>` in lower case. The schema's `self` is called `input`, as an attribute of a
Python class cannot be called `self`.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import new_class
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from . import (
    torch_found_shapes,
    torch_layout_shapes,
    torch_scatter_shapes,
    torch_shapes,
    torch_sort_shapes,
    torch_window_shapes,
)
from .torch_base import (
    BOOL,
    DTYPE,
    EXTENT,
    EXTENTS,
    FLOAT,
    INT,
    INTS,
    SCALAR,
    STR,
    Kind,
    TorchOp,
    argument_attr,
)
from .torch_contract import CONTRACT, Item, Schema, read_contract
from .torch_elements import RULES

WITHOUT_EFFECT = (
    "memory_format",
    "non_blocking",
    "cudnn_enable",
    "implicit",
    "sparse",
    "scale_grad_by_freq",
    "sparse_grad",
)
"""Arguments with no effect on the values of a result, dropped by the front end."""

CHECKED = ("layout", "device", "pin_memory", *WITHOUT_EFFECT)
"""Arguments with no place in the IR: the front end checks them and drops them."""

_KINDS: dict[str, Kind[Any]] = {
    "int": INT,
    "float": FLOAT,
    "bool": BOOL,
    "Scalar": SCALAR,
    "ScalarType": DTYPE,
    "str": STR,
    "int[]": INTS,
    "SymInt": EXTENT,
    "SymInt[]": EXTENTS,
}
"""The kind of attribute for each type of the schemas that is not a tensor's."""

_FAMILIES: dict[str, type[TorchOp]] = {
    name: value
    for module in (
        torch_found_shapes,
        torch_layout_shapes,
        torch_scatter_shapes,
        torch_shapes,
        torch_sort_shapes,
        torch_window_shapes,
    )
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, TorchOp)
}


def _op_names(overloads: list[str]) -> Iterator[str]:
    """The name of the operation, without `torch.`, for each overload."""
    taken: set[str] = set()
    for qualified in overloads:
        operator, overload = qualified.split(".")
        yield f"{operator}_{overload.lower()}" if operator in taken else operator
        taken.add(operator)


def _class_name(op_name: str) -> str:
    """`where_self` becomes `WhereSelfOp`, and `_to_copy` becomes `InternalToCopyOp`."""
    words = op_name.split("_")
    return "".join(word.capitalize() if word else "Internal" for word in words) + "Op"


def _argument_field(argument: Item) -> Any:
    """The definition of one argument: an operand or a property."""
    if argument.type == "Tensor":
        return (opt_operand_def if argument.optional else operand_def)(TensorType)
    if argument.type == "Tensor[]" and not argument.optional:
        return var_operand_def(TensorType)
    kind = _KINDS.get(argument.type)
    if kind is None:
        raise ValueError(f"argument {argument.name}: no kind stands for type {argument.type}")
    if argument.default is not None:
        return prop_def(kind, default_value=argument_attr(argument.default))
    return (opt_prop_def if argument.optional else prop_def)(kind)


def _result_fields(results: tuple[Item, ...]) -> dict[str, Any]:
    """The definitions of the results by name."""
    types = [result.type for result in results]
    if types == ["Tensor[]"]:
        return {"pieces": var_result_def(TensorType)}
    if set(types) != {"Tensor"}:
        raise ValueError(f"results {types} are not tensors")
    if len(results) == 1:
        return {"result": result_def(TensorType)}
    return {r.name or f"result{i}": result_def(TensorType) for i, r in enumerate(results)}


def _op_class(schema: Schema, op_name: str) -> type[TorchOp]:
    """Make the class of one overload."""
    family = _FAMILIES.get(schema.family)
    if family is None:
        raise ValueError(f"{schema.overload}: no family is called {schema.family}")
    unknown = set(schema.elements.split("/")).difference(RULES)
    if unknown:
        raise ValueError(f"{schema.overload}: no rule is called {unknown.pop()}")
    represented = [a for a in schema.arguments if a.name not in CHECKED]
    checked = [a.name for a in schema.arguments if a.name in CHECKED]
    note = f"\n\nNot represented: {', '.join(checked)}." if checked else ""
    fields: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"`{schema.text}`{note}",
        "__annotations__": {"ATEN": ClassVar[str], "ELEMENTS": ClassVar[str]},
        "name": f"torch.{op_name}",
        "ATEN": schema.overload,
        "ELEMENTS": schema.elements,
        **{"input" if a.name == "self" else a.name: _argument_field(a) for a in represented},
        **_result_fields(schema.results),
        "traits": traits_def(Pure()),
    }
    if sum(a.type == "Tensor[]" or (a.type == "Tensor" and a.optional) for a in represented) > 1:
        fields["irdl_options"] = (AttrSizedOperandSegments(as_property=True),)
    made = new_class(_class_name(op_name), (family,), exec_body=lambda body: body.update(fields))
    return irdl_op_definition(cast(type[TorchOp], made))


def _op_classes() -> list[type[TorchOp]]:
    """Make the class of every overload, in the contract's order."""
    schemas = read_contract()
    names = _op_names([schema.overload for schema in schemas])
    return [_op_class(schema, name) for schema, name in zip(schemas, names, strict=True)]


TORCH_OPS = _op_classes()
"""The class of every overload, in the contract's order."""

globals().update({op.__name__: op for op in TORCH_OPS})


def __getattr__(name: str) -> Any:
    """Raise AttributeError for an unknown class; to a type checker, declares the classes made above."""
    raise AttributeError(f"the contract in {CONTRACT.name} gives no class {name}")
