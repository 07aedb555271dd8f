"""The operation of `tensor_ir` that is every change of layout: `index_map`.

    %w_bc = tensor_ir.index_map (i, j, k) -> %w[k] : (tensor<8xf32>) -> tensor<1x4x8xf32>
    %cat  = tensor_ir.index_map (i) -> %a[i] if i < 4 else %b[i - 4]
                : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>

For each element of the result it says which element of which operand stands there, or that a fill value
does.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from ..index.text import (
    parse_constraint,
    parse_index_expr,
    print_condition,
    print_index_expr,
    symbol_of,
)
from .index import affine_map, condition, verify_symbols
from .sizes import Extent, shape_of, tensor_of
from .syntax import (
    Scalar,
    parse_scalar,
    parse_signature,
    print_scalar,
    print_signature,
    repeated,
    resolve_scalar,
    tensor_type,
)


@irdl_op_definition
class IndexMapOp(IRDLOperation):
    """Every change of layout: each position of the result reads one position of one source, or a fill.

    The first source whose condition holds is read. The last source may have no condition; if it has
    one, a fill value must follow.
    ```
    %t   = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %cat = tensor_ir.index_map (i) -> %a[i] if i < 4 else %b[i - 4]
             : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %pad = tensor_ir.index_map (i) -> %a[i - 1] if i >= 1 and i < 5 else 0.0
             : (tensor<4xf32>) -> tensor<6xf32>
    ```
    """

    name = "tensor_ir.index_map"

    sources = var_operand_def(TensorType)
    maps = prop_def(ArrayAttr[AffineMapAttr])
    conditions = prop_def(ArrayAttr[AffineSetAttr])
    fill = opt_prop_def(IntegerAttr | FloatAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        sources: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        shape: Sequence[Extent],
        *,
        conditions: Sequence[AffineSet] | None = None,
        fill: Scalar | None = None,
    ):
        if conditions is None:
            conditions = [condition(len(shape), ())] * len(sources)
        properties: dict[str, Attribute | None] = {
            "maps": ArrayAttr([AffineMapAttr(m) for m in maps]),
            "conditions": ArrayAttr([AffineSetAttr(c) for c in conditions]),
            "fill": fill,
        }
        super().__init__(
            operands=[sources],
            properties=properties,
            result_types=[tensor_of(tensor_type(sources[0]).element_type, shape)],
        )

    def verify_(self) -> None:
        result = tensor_type(self.result)
        shape_of(result)
        if not self.sources:
            raise VerifyException("needs at least one source")
        if not len(self.sources) == len(self.maps) == len(self.conditions):
            raise VerifyException(
                f"{len(self.sources)} sources need as many maps and conditions, got "
                f"{len(self.maps)} and {len(self.conditions)}"
            )
        for source, map_attr, set_attr in zip(
            self.sources, self.maps, self.conditions, strict=True
        ):
            self._verify_source(tensor_type(source), map_attr.data, set_attr.data)
        unconditional = [not c.data.constraints for c in self.conditions]
        if any(unconditional[:-1]):
            raise VerifyException("a source without a condition must be the last")
        if unconditional[-1] == (self.fill is not None):
            raise VerifyException("needs a fill value exactly when its last source has a condition")
        if self.fill is not None and self.fill.type != result.element_type:
            raise VerifyException(f"fill is {self.fill.type}, result holds {result.element_type}")

    def _verify_source(self, source: TensorType, index_map: AffineMap, guard: AffineSet) -> None:
        result = tensor_type(self.result)
        rank = result.get_num_dims()
        shape_of(source)
        if source.element_type != result.element_type:
            raise VerifyException(
                f"source holds {source.element_type}, result {result.element_type}"
            )
        verify_symbols(index_map)
        verify_symbols(guard)
        if index_map.num_dims != rank or guard.num_dims != rank:
            raise VerifyException(f"maps and conditions must have {rank} dims, one per result axis")
        if len(index_map.results) != source.get_num_dims():
            raise VerifyException(
                f"{len(index_map.results)} indices into rank-{source.get_num_dims()} {source}"
            )

    def print(self, printer: Printer) -> None:
        names = _dim_names(tensor_type(self.result).get_num_dims())

        def dim(position: int) -> None:
            printer.print_string(names[position])

        def source(i: int) -> None:
            printer.print_ssa_value(self.sources[i])
            with printer.in_square_brackets():
                printer.print_list(
                    self.maps.data[i].data.results, lambda e: print_index_expr(printer, e, dim)
                )
            if self.conditions.data[i].data.constraints:
                printer.print_string(" if ")
                print_condition(printer, self.conditions.data[i].data, dim, " and ")

        printer.print_string(f" ({', '.join(names)}) -> ")
        printer.print_list(range(len(self.sources)), source, " else ")
        if self.fill is not None:
            printer.print_string(" else ")
            print_scalar(printer, self.fill)
        printer.print_op_attributes(self.attributes)
        print_signature(printer, self.sources, self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> IndexMapOp:
        pos = parser.pos
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_identifier)
        if taken := [name for name in names if symbol_of(name) is not None]:
            parser.raise_error(f"{taken[0]} names a size; name the axis otherwise", pos)
        if twice := repeated(names):
            parser.raise_error(f"{twice} names two axes; name one of them otherwise", pos)
        rank = len(names)

        def dim() -> AffineExpr | None:
            for position, name in enumerate(names):
                if parser.parse_optional_keyword(name):
                    return AffineExpr.dimension(position)
            return None

        parser.parse_punctuation("->")
        operands: list[tuple[object, AffineMap]] = []
        sources, conditions = [], []
        fill: tuple[int | float, int] | None = None
        while fill is None:
            operand = parser.parse_optional_unresolved_operand()
            if operand is None:
                fill = parse_scalar(parser)
                break
            exprs = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: parse_index_expr(parser, dim)
            )
            constraints: list[AffineExpr] = []
            if parser.parse_optional_keyword("if"):
                constraints.append(parse_constraint(parser, dim))
                while parser.parse_optional_keyword("and"):
                    constraints.append(parse_constraint(parser, dim))
            sources.append(operand)
            operands.append((operand, affine_map(rank, exprs)))
            conditions.append(condition(rank, constraints))
            if not parser.parse_optional_keyword("else"):
                break
        attributes = parser.parse_optional_attr_dict()
        pos = parser.pos
        types, result = parse_signature(parser)
        fill_attr = None if fill is None else resolve_scalar(parser, *fill, result.element_type)
        op = cls.build(
            operands=[parser.resolve_operands(sources, types, pos)],
            properties={
                "maps": ArrayAttr([AffineMapAttr(m) for _, m in operands]),
                "conditions": ArrayAttr([AffineSetAttr(c) for c in conditions]),
                "fill": fill_attr,
            },
            result_types=[result],
        )
        op.attributes |= attributes
        return op


def _dim_names(rank: int) -> list[str]:
    letters = "ijklmnopqrstuvwxyz"
    return [letters[d] if d < len(letters) else f"i{d}" for d in range(rank)]
