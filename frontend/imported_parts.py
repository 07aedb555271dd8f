"""How the importer reads calls that run parts of the program: `scan`, and loops and choices by data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dialects.allowed_sizes import allowing
from ..dialects.calls import OperandAttr
from ..dialects.multiples import multiple_of
from ..dialects.sizes import shape_of
from ..dialects.syntax import tensor_type
from ..dialects.torch import CallOp
from ..dialects.torch_base import argument_attr
from ..dialects.torch_ops import FlipOp
from ..dialects.torch_scan import ScanOp, YieldOp
from .arguments import tensor_inputs
from .part_calls import PartCall, read_part_call, results_of
from .scans import SCAN, read_scan
from .sizes import Refused, is_symbolic
from .unsupported import location_of

if TYPE_CHECKING:
    from .importer import Importer


def import_parts(importer: Importer, node: torch.fx.Node) -> None:
    """Import a call that runs parts of the program, or note why it cannot be."""
    noted = importer.unsupported.count
    try:
        call = None if node.target is SCAN else read_part_call(node)
        if any(n not in importer.values for n in tensor_inputs(node)):
            return  # the cause is noted
        if call is None:
            _add_scan(importer, node)
        else:
            _add_part_call(importer, node, call)
    except (Refused, VerifyException) as reason:
        if importer.unsupported.count == noted:
            importer.unsupported.add(node, str(reason))


def _read_part(inner: Importer, graph: torch.fx.Graph) -> list[SSAValue]:
    """Import a part; the values that it gives. Raises Refused."""
    for each in graph.nodes:
        if each.op == "placeholder" and not is_symbolic(each.meta["val"]):
            inner.add_argument(each, each.meta["val"], each.name, {})
        elif each.op == "call_function":
            inner.add_call(each)
    given = results_of(graph)
    if not all(isinstance(each, torch.fx.Node) and each in inner.values for each in given):
        raise Refused("a part that gives what is no tensor, or is not supported")
    return [inner.values[each][0] for each in given]


def _add_scan(importer: Importer, node: torch.fx.Node) -> None:
    scan = read_scan(node)
    inner = importer.inside("error")  # a loop of launches calls no operator of PyTorch
    inner.block.add_op(YieldOp(*_read_part(inner, scan.body)))
    groups = [_values(importer, group) for group in (scan.carried, scan.slices, scan.shared)]
    types = importer.result_types(node)
    op = ScanOp.of_body(groups, types, Region(inner.block), reversed=scan.reversed)
    _add(importer, op, node)
    if scan.reversed:
        for i in range(len(scan.carried), len(op.results_)):
            stack = op.results_[i]
            flip = FlipOp.build_op([stack], {"dims": argument_attr([0])}, [stack.type])
            importer.block.add_op(flip)
            importer.values[node][i] = flip.result


def _add_part_call(importer: Importer, node: torch.fx.Node, call: PartCall) -> None:
    carried, shared = _values(importer, call.carried), _values(importer, call.shared)
    # A part has the program's sizes, and says of each which axis it is.
    sources = _sources_of_sizes(importer, [*carried, *shared])
    arguments: dict[str, Attribute] = {}
    predicate = [] if call.predicate is None else _values(importer, [call.predicate])
    for role, graph in call.parts.items():
        inner = importer.inside(importer.fallback)
        given = _read_part(inner, graph)
        for source in sources:
            inner.block.insert_arg(source.type, len(inner.block.args))
        inner.block.add_op(ReturnOp(*given))
        types = [a.type for a in inner.block.args], [value.type for value in given]
        name = importer.fresh(f"{node.name}_{role}")
        importer.functions.append(FuncOp(name, types, Region(inner.block), visibility="private"))
        arguments[role] = StringAttr(name)
    operands = [*predicate, *carried, *shared, *sources]
    named = [OperandAttr(i) for i in range(len(operands))]
    if predicate:
        arguments = {"predicate": named[0], **arguments, "shared": ArrayAttr(named[1:])}
    else:
        arguments["carried"] = ArrayAttr(named[: len(carried)])
        arguments["shared"] = ArrayAttr(named[len(carried) :])
    _add(importer, CallOp(call.callee, arguments, operands, importer.result_types(node)), node)


def _values(importer: Importer, nodes: Sequence[Any]) -> list[SSAValue]:
    """The values of nodes, but for numbers that the part knows as sizes. Raises Refused for others."""
    for each in nodes:
        if not isinstance(each, torch.fx.Node):
            raise Refused(f"a part of it gets {each}, which is no tensor")
    return [importer.values[each][0] for each in nodes if each in importer.values]


def _sources_of_sizes(importer: Importer, given: Sequence[SSAValue]) -> list[SSAValue]:
    """Arguments that a part needs besides, to know all sizes of the program. Raises Refused."""
    known, sources = _said(given), list[SSAValue]()
    for number, size in enumerate(importer.sizes.attributes):
        if number in known:
            continue
        source = next((a for a in importer.block.args if number in _said([a])), None)
        if source is None:
            raise Refused(f"the size {size.label.data} is no axis of an argument")
        sources.append(source)
        known |= _said([source])
    return sources


def _said(values: Iterable[SSAValue]) -> set[int]:
    """The sizes that axes say."""
    extents = (extent for value in values for extent in shape_of(tensor_type(value)))
    return {said[0] for extent in extents if (said := multiple_of(extent)) is not None}


def _add(importer: Importer, op: Operation, node: torch.fx.Node) -> None:
    """Add an operation that is well formed. Raises VerifyException."""
    op.location = location_of(node)
    with allowing(importer.sizes.attributes):
        op.verify()
    importer.append(op, node)
