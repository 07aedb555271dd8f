"""Walks the graph of a model and says each node by its rule; all that is refused is told at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    defs,
    helper,
)
from xdsl.utils.exceptions import VerifyException

from ..dialects.allowed_sizes import MAX_SIZE
from ..dialects.sizes import Extent, Size, UndecidedSize
from ..errors import UnsupportedOpError, UsageError, counted
from ..lazy.dtypes import DType
from ..lazy.expression import LEAF, Node
from ..lazy.variables import Variable, reckoning
from .building import known
from .constants import Constants
from .control import CONTROL
from .dtypes import TO_ONNX, array_of, element_name
from .functions import Function, attributes_of, function_of, has_function, opsets_of, resolved
from .names import identifier
from .rules import RULES, Call, Refused, Rule
from .shapes import Values, fold, shape_values
from .types import schema_of, type_of

UNFIT = (VerifyException, UndecidedSize, ValueError, TypeError, IndexError, OverflowError)
"""What says that the arguments of an operation of Torch IR do not fit it."""

MAX_NODES = 200_000
"""Nodes of a model, those of functions counted each time that they are called."""

MAX_DEPTH = 20
"""Functions within functions."""


@dataclass(frozen=True)
class Imported:
    """A model as expressions."""

    name: str
    inputs: tuple[tuple[str, Node], ...]
    """By name, in the graph's order; what has an initializer is none."""
    outputs: tuple[tuple[str, Node], ...]
    weights: Mapping[Node, str]
    """The names of the initializers that are arrays."""


@dataclass(frozen=True)
class Scope:
    """The values that nodes can name, and what these nodes mean."""

    opsets: Mapping[str, int]
    values: dict[str, Node | None] = field(default_factory=lambda: dict[str, Node | None]())
    """By name; None for what was refused."""
    where: str = ""
    """The calls of functions that these nodes are in."""
    attributes: Mapping[str, AttributeProto] | None = None
    """Those of the function where it is called."""
    types: Mapping[str, TypeProto] = field(default_factory=lambda: dict[str, TypeProto]())
    """What ONNX infers of values."""
    depth: int = 0


class Importer:
    """Imports one model."""

    def __init__(self, model: ModelProto):
        self.model = model
        self.constants = Constants()
        self.refused: dict[str, list[str]] = {}
        """Where, by reason."""
        self.nodes = 0
        self.sizes: dict[str, Variable] = {}
        """What dimensions' names stand for."""
        self.local = {(f.domain, f.name, f.overload): f for f in model.functions}

    def run(self) -> Imported:
        """The model's expressions. Raises UnsupportedOpError, which lists all that is not supported."""
        graph = self.model.graph
        infos = (*graph.value_info, *graph.output, *graph.input)
        types = {each.name: each.type for each in infos}
        scope = Scope(opsets_of(self.model.opset_import), types=types)
        self._initializers(graph, scope)
        weights = {
            node: name
            for name, node in scope.values.items()
            if node is not None and node.operator == LEAF
        }
        inputs: list[tuple[str, Node]] = []
        for each in graph.input:
            if each.name not in scope.values:
                scope.values[each.name] = node = self._input(each)
                inputs += [] if node is None else [(each.name, node)]
        self._nodes(graph.node, scope)
        outputs = [(each.name, self._value(each.name, scope)) for each in graph.output]
        if self.refused:
            raise UnsupportedOpError(self._message())
        given = tuple((name, node) for name, node in outputs if node is not None)
        if len(given) < len(outputs) or not given:
            raise UsageError("the model has outputs that no node computes")
        return Imported(graph.name, tuple(inputs), given, weights)

    def _message(self) -> str:
        lines = [
            f"  {reason}: {', '.join(where[:4])}"
            + (f" and {len(where) - 4} more" if len(where) > 4 else "")
            for reason, where in self.refused.items()
        ]
        number = counted(len(lines), "thing")
        return "\n".join([f"deplo does not compute {number} of this model", *lines])

    def _refuse(self, where: str, reason: str) -> None:
        self.refused.setdefault(reason, []).append(where)

    # ---- values

    def _value(self, name: str, scope: Scope) -> Node | None:
        """A value by its name, None if it was refused. Raises UsageError if there is none."""
        if name not in scope.values:
            raise UsageError(f"the model has no value '{name}'")
        return scope.values[name]

    def _initializers(self, graph: GraphProto, scope: Scope) -> None:
        for each in graph.initializer:
            scope.values[each.name] = self._initializer(each)
        for each in graph.sparse_initializer:
            self._refuse(f"initializer '{each.values.name}'", "sparse tensors")
            scope.values[each.values.name] = None

    def _initializer(self, tensor: TensorProto) -> Node | None:
        try:
            return known(*array_of(tensor))
        except (Refused, *UNFIT) as reason:
            self._refuse(f"initializer '{tensor.name}'", str(reason))
            return None

    def _input(self, info: ValueInfoProto) -> Node | None:
        try:
            return self._placeholder(*type_of(info.type, self._size))
        except Refused as reason:
            self._refuse(f"input '{info.name}'", str(reason))
            return None

    def _placeholder(self, dtype: DType, shape: tuple[Extent, ...]) -> Node:
        node = Node(LEAF, (), (), shape, (dtype,))
        self.constants.add_input(node)
        return node

    def _size(self, name: str) -> Extent:
        """The size that a dimension's name stands for."""
        if name not in self.sizes:
            taken = [size.name for size in self.sizes.values()]
            self.sizes[name] = Variable(identifier(name, taken), 1, MAX_SIZE)
        return self.sizes[name]

    # ---- nodes

    def _nodes(self, nodes: Iterable[NodeProto], scope: Scope) -> None:
        for each in nodes:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise UsageError(
                    f"the model has more than {MAX_NODES} nodes, those of functions counted"
                )
            where = (
                f"{scope.where}{each.op_type} '{each.name or ', '.join(filter(None, each.output))}'"
            )
            try:
                node = resolved(each, scope.attributes)
                results = [*self._results(node, scope, where)]
                self._check(node, results, scope)
            except Refused as reason:
                self._refuse(where, str(reason))
                results = self._unknown(each, scope)
            except UNFIT as error:
                self._refuse(where, " ".join(str(error).split()))
                results = self._unknown(each, scope)
            for name, result in zip(each.output, results, strict=False):
                if name:
                    scope.values[name] = result

    def _unknown(self, node: NodeProto, scope: Scope) -> list[Node | None]:
        """Tensors in the place of what was refused, so that those who read them are checked, too."""
        found: list[Node | None] = []
        for name in node.output:
            try:
                dtype, shape = type_of(scope.types[name], self.sizes.__getitem__)
                found.append(self._placeholder(dtype, shape))
            except (Refused, KeyError):
                found.append(None)
        return found

    def _check(self, node: NodeProto, results: Sequence[Node | None], scope: Scope) -> None:
        """Raise Refused for a result of another type than ONNX infers, or one that is missing."""
        for position, name in enumerate(node.output):
            if not name:
                continue
            if position >= len(results):
                raise Refused(f"output {position}")
            result = results[position]
            if result is None or name not in scope.types:
                continue
            inferred = scope.types[name].tensor_type
            extents = [d.dim_value if d.HasField("dim_value") else None for d in inferred.shape.dim]
            same = inferred.elem_type in (0, TO_ONNX[result.dtype])
            if inferred.HasField("shape"):
                same = same and len(extents) == len(result.shape)
                pairs = zip(extents, result.shape, strict=False)
                same = same and all(
                    n == m for n, m in pairs if n is not None and isinstance(m, int)
                )
            if not same:
                said = f"{element_name(inferred.elem_type)} {extents}"
                raise Refused(
                    f"a result {result.dtype} {list(result.shape)} where ONNX infers {said}"
                )

    def _results(self, node: NodeProto, scope: Scope, where: str) -> Sequence[Node | None]:
        """The results of a node; None for each if an input was refused. Raises Refused."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        inputs = [self._value(name, scope) if name else None for name in node.input]
        unknown = any(n is None and name for n, name in zip(inputs, node.input, strict=True))
        if local := self.local.get((node.domain, node.op_type, node.overload)):
            if unknown:
                return self._unknown(node, scope)
            called = Function(local, opsets_of(local.opset_import))
            attributes = attributes_of(local, node, None)
            return self._inlined(called, attributes, inputs, scope, where)
        version = scope.opsets.get(domain)
        title = f"{domain}.{node.op_type}" if domain else node.op_type
        if version is None or not defs.has(node.op_type, domain):
            raise Refused(f"operator {title}")
        schema = schema_of(node.op_type, version, domain)
        control = CONTROL.get(node.op_type) if not domain else None
        if control is not None and schema.since_version in control.versions:
            if unknown:
                return self._unknown(node, scope)
            return self._by_graphs(self._call(node, schema, inputs), scope, where)
        rule = RULES.get((domain, node.op_type))
        if rule is not None and schema.since_version in rule.versions:
            if unknown:
                return self._unknown(node, scope)
            return self._by_rule(rule, self._call(node, schema, inputs))
        if not has_function(schema):
            raise Refused(f"operator {title} of version {schema.since_version}")
        if unknown:
            return self._unknown(node, scope)
        return self._by_function(node, schema, version, inputs, scope, where)

    def _by_function(
        self,
        node: NodeProto,
        schema: defs.OpSchema,
        version: int,
        inputs: Sequence[Node | None],
        scope: Scope,
        where: str,
    ) -> Sequence[Node | None]:
        """The results of an operator that ONNX defines by others. Raises Refused."""
        types = [None if n is None else (TO_ONNX[n.dtype], n.shape) for n in inputs]
        function = function_of(schema, version, node, types)
        if function is None:
            raise Refused(f"operator {schema.name} of version {schema.since_version}")
        attributes = attributes_of(function.body, node, schema)
        results = self._inlined(function, attributes, inputs, scope, where)
        for position, name in enumerate(node.output):
            if name and position >= len(results):
                raise Refused(f"output {position}")
        return results

    def _graph(
        self, graph: GraphProto, given: Sequence[Node], scope: Scope, where: str
    ) -> list[Node | None]:
        """The results of a graph within a node. It reads the values around it, too."""
        if scope.depth >= MAX_DEPTH:
            raise Refused(f"more than {MAX_DEPTH} graphs within graphs")
        if len(given) != len(graph.input):
            raise Refused(f"{len(given)} inputs of a graph of {len(graph.input)}")
        inner = replace(
            scope,
            values=dict(scope.values),
            where=f"{where} > ",
            types={each.name: each.type for each in (*graph.value_info, *graph.output)},
            depth=scope.depth + 1,
        )
        self._initializers(graph, inner)
        inner.values.update(zip((each.name for each in graph.input), given, strict=True))
        self._nodes(graph.node, inner)
        return [self._value(each.name, inner) for each in graph.output]

    def _by_graphs(self, call: Call, scope: Scope, where: str) -> Sequence[Node | None]:
        """The results of an operator whose attributes are graphs. Raises Refused."""
        results = CONTROL[call.operator].function(
            call, lambda graph, given: self._graph(graph, given, scope, where)
        )
        call.check_all_read()
        return results

    def _call(self, node: NodeProto, schema: defs.OpSchema, inputs: Sequence[Node | None]) -> Call:
        """A node as rules see it."""
        defaults = {
            name: helper.get_attribute_value(each.default_value)
            for name, each in schema.attributes.items()
            if each.default_value.name
        }
        said = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        return Call(
            node.op_type,
            schema.since_version,
            inputs,
            defaults | said,
            [bool(name) for name in node.output],
            self.constants.know,
            self.constants.know_extents,
            self.constants.depends,
            frozenset(said),
        )

    def _by_rule(self, rule: Rule, call: Call) -> Sequence[Node | None]:
        """The results of a rule. Raises Refused."""
        with reckoning():
            made = rule.function(call)
        call.check_all_read()
        results = [made] if isinstance(made, Node) else list(made)
        if isinstance(made, Node):
            results = [self._reckon(call, made)]
        for position, wanted in enumerate(call.outputs):
            if wanted and (position >= len(results) or results[position] is None):
                raise Refused(f"output {position}")
        return results

    def _reckon(self, call: Call, result: Node) -> Node:
        """The result, of which elements are kept where they are computed of extents that calls choose."""
        found: Values | None = None
        if call.operator == "Shape":
            found = shape_values(call)
        elif any(node in self.constants.sizes for node in call.inputs if node is not None):
            given = [node for node in call.inputs if node is not None]
            with reckoning(), suppress(*UNFIT):  # what cannot be decided is not known
                found = fold(call, [self.constants.elements(node) for node in given])
        if found is None:
            return result
        if not any(isinstance(n, Size) for n in found.flat):
            return known(found.astype(result.dtype.storage), result.dtype)
        self.constants.sizes[result] = found
        return result

    def _inlined(
        self,
        function: Function,
        attributes: Mapping[str, AttributeProto],
        inputs: Sequence[Node | None],
        scope: Scope,
        where: str,
    ) -> Sequence[Node | None]:
        """The results of a function's nodes."""
        body = function.body
        if scope.depth >= MAX_DEPTH:
            raise Refused(f"more than {MAX_DEPTH} functions within functions")
        if len(inputs) > len(body.input):
            raise Refused(f"{len(inputs)} inputs of a function of {len(body.input)}")
        inner = Scope(
            {**scope.opsets, **function.opsets},
            where=f"{where} > ",
            attributes=attributes,
            depth=scope.depth + 1,
        )
        padded = [*inputs, *[None] * (len(body.input) - len(inputs))]
        absent = {name for name, node in zip(body.input, padded, strict=True) if node is None}
        inner.values.update(zip(body.input, padded, strict=True))
        self._nodes((_without(node, absent) for node in body.node), inner)
        return [inner.values.get(name) for name in body.output]


def _without(node: NodeProto, absent: set[str]) -> NodeProto:
    """A node of a function where inputs of the function are absent."""
    if not absent & set(node.input):
        return node
    made = NodeProto()
    made.CopyFrom(node)
    made.input[:] = ["" if name in absent else name for name in node.input]
    return made
