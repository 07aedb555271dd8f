"""Functions of ONNX: operators that a model, or ONNX itself, defines by other operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto, defs, helper

from ..dialects.sizes import Extent
from .rules import Refused

Type = tuple[int, tuple[Extent, ...]]
"""An element type and a shape."""


@dataclass(frozen=True)
class Function:
    """A function, and the version of each domain that its nodes mean."""

    body: FunctionProto
    opsets: Mapping[str, int]


def opsets_of(imports: Sequence[object]) -> dict[str, int]:
    """The version of each domain, by name; ONNX's own is ''."""
    found: dict[str, int] = {}
    for each in imports:
        domain, version = getattr(each, "domain"), getattr(each, "version")  # noqa: B009
        found["" if domain == "ai.onnx" else domain] = version
    return found


def function_of(
    schema: Any, version: int, node: NodeProto, types: Sequence[Type | None]
) -> Function | None:
    """What ONNX defines an operator by, for inputs of types; None if it does not.

    The schema is one of `onnx.defs`, whose stubs do not say that it has functions.
    """
    if not has_function(schema):
        return None
    if schema.has_function:
        body = schema.function_body
    else:
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= version]
        chosen = max(versions, default=schema.since_version)
        protos = [_type_proto(type).SerializeToString() for type in types]
        text = schema.get_context_dependent_function_with_opset_version(
            chosen, node.SerializeToString(), protos
        )
        if not text:
            return None
        body = FunctionProto()
        body.ParseFromString(text)
    opsets = opsets_of(body.opset_import)
    return Function(body, opsets or {schema.domain: schema.since_version})


def has_function(schema: Any) -> bool:
    """Whether ONNX defines an operator by others."""
    return schema.has_function or schema.has_context_dependent_function


def _type_proto(type: Type | None) -> TypeProto:
    if type is None:
        return TypeProto()
    element, shape = type
    return helper.make_tensor_type_proto(
        element, [n if isinstance(n, int) else str(n) for n in shape]
    )


def resolved(node: NodeProto, given: Mapping[str, AttributeProto] | None) -> NodeProto:
    """A node of a function with the attributes that its call gives. Raises Refused outside a function."""
    if not any(each.ref_attr_name for each in node.attribute):
        return node
    if given is None:
        raise Refused("an attribute that refers to one of a function")
    made = NodeProto()
    made.CopyFrom(node)
    del made.attribute[:]
    for each in node.attribute:
        if not each.ref_attr_name:
            made.attribute.append(each)
        elif each.ref_attr_name in given:
            value = AttributeProto()
            value.CopyFrom(given[each.ref_attr_name])
            value.name = each.name
            made.attribute.append(value)
    return made


def attributes_of(
    body: FunctionProto, node: NodeProto, schema: defs.OpSchema | None
) -> dict[str, AttributeProto]:
    """The attributes of a function where a node calls it: the node's, else the function's defaults."""
    found = {each.name: each for each in body.attribute_proto}
    if schema is not None:
        found |= {
            name: each.default_value
            for name, each in schema.attributes.items()
            if each.default_value.name
        }
    found |= {each.name: each for each in node.attribute}
    named = {*body.attribute, *(each.name for each in body.attribute_proto)}
    if schema is None and (strange := sorted({each.name for each in node.attribute} - named)):
        raise Refused(f"attribute '{strange[0]}', which the function does not have")
    return found
