"""The dynamic sizes of a program: what they are, what a call's shapes say they are, what the program is then.

    sizes = solve_sizes(types, [(2, 32)])    # [2, 32], for an argument of type tensor<?x?xf32, …<s0, s1>>
    fixed = instantiate(module, sizes)       # the program with 2 for s0 and 32 for s1

A program with dynamic sizes means what it means with numbers in their place. The interpreters execute such
programs, so they need not know of sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    DictionaryAttr,
    MemRefType,
    ModuleOp,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineSymExpr
from xdsl.rewriter import Rewriter

from ..dialects.allowed_sizes import SIZES, SizeAttr
from ..dialects.inside import ops_in
from ..dialects.multiples import Multiple, multiple_of
from ..dialects.sizes import (
    Extent,
    ExtentAttr,
    ExtentsAttr,
    Size,
    evaluate,
    extent_expr,
    extent_of,
    memref_of,
    shape_of,
    tensor_of,
)
from ..errors import DeploError
from ..index.affine import affine_map, condition, condition_exprs, leaves, replace_symbols
from ..index.simplify import always_holds


class SizeError(DeploError):
    """The arguments' shapes do not fit what the program says of its sizes."""


def sizes_of(main: func.FuncOp) -> Sequence[SizeAttr]:
    """What each symbol of a program stands for; where it does not say that, any size under its own name."""
    said = main.attributes.get(SIZES)
    if isinstance(said, ArrayAttr):
        return [size for size in said if isinstance(size, SizeAttr)]
    extents = [n for shape in _shapes(main.function_type.inputs) for n in shape]
    symbols = {s for n in extents if isinstance(n, Size) for s in n.symbols}
    return [SizeAttr(f"s{i}") for i in range(max(symbols, default=-1) + 1)]


def size_limits(module: ModuleOp, user: Operation) -> list[tuple[int, int]]:
    """Smallest and largest value of the symbols that `user` depends on, and of those before them."""
    mains = [o for o in module.ops if isinstance(o, func.FuncOp) and o.sym_name.data == "main"]
    said = [size for main in mains for size in sizes_of(main)]
    said += [SizeAttr(f"s{i}") for i in range(len(said), max(symbols_used(user), default=-1) + 1)]
    return [(size.least, size.largest) for size in said]


POSITIVE = "sym.positive"
"""The attribute of `@main` that lists extents, each a `#sym.extent`, which must be at least 1."""


def positive_extents(main: func.FuncOp) -> list[Size]:
    """The extents inside a program that it needs to be at least 1."""
    said = main.attributes.get(POSITIVE)
    extents = (
        [e.data for e in said if isinstance(e, ExtentAttr)] if isinstance(said, ArrayAttr) else []
    )
    return [extent for extent in extents if isinstance(extent, Size)]


def require_positive(module: ModuleOp) -> None:
    """Let `@main` say which extents of a module's tensors are not surely at least 1."""
    for main in module.ops:
        if isinstance(main, func.FuncOp) and main.sym_name.data == "main":
            types = [
                type for op in ops_in(module) for value in _values(op) for type in [value.type]
            ]
            extents = dict.fromkeys(n for shape in _shapes(types) for n in shape)
            open_ = [n for n in extents if isinstance(n, Size) and not _surely_positive(n)]
            if open_:
                main.attributes[POSITIVE] = ArrayAttr([ExtentAttr(n) for n in open_])


def _surely_positive(extent: Size) -> bool:
    return always_holds(extent.expr + -1, ())


def _shapes(types: Iterable[Attribute]) -> list[tuple[Extent, ...]]:
    """The extents of each type; none for what has no shape."""
    return [shape_of(t) if isinstance(t, TensorType | MemRefType) else () for t in types]


def solve_sizes(types: Sequence[Attribute], shapes: Sequence[Sequence[int]]) -> list[int]:
    """The value of each symbol where arguments of `types` have `shapes`.

    An extent that is a symbol, or a multiple of one and a number, defines it; the others must then agree.
    Raises SizeError if they do not, if nothing defines a symbol, or if arguments or axes are missing.
    """
    if len(types) != len(shapes):
        raise SizeError(f"expected {len(types)} arguments, got {len(shapes)}")
    for argument, (extents, shape) in enumerate(zip(_shapes(types), shapes, strict=True)):
        if len(extents) != len(shape):
            raise SizeError(f"argument {argument}: expected {len(extents)} axes, got {len(shape)}")
    known: dict[int, int] = {}
    multiples: list[tuple[int, Multiple, str, int]] = []
    pairs = [
        (argument, axis, said, actual)
        for argument, (extents, shape) in enumerate(zip(_shapes(types), shapes, strict=True))
        for axis, (said, actual) in enumerate(zip(extents, shape, strict=True))
    ]
    for argument, axis, said, actual in pairs:
        if (found := multiple_of(said)) is not None:
            multiples.append((*found, f"argument {argument}, axis {axis}", actual))
    for symbol, multiple, place, actual in sorted(
        multiples, key=lambda each: each[1] != Multiple()
    ):
        if symbol not in known:
            if (size := multiple.size(actual)) is None:
                raise SizeError(
                    f"{place}: expected {multiple.extent(Size.symbol(symbol))}, got {actual}"
                )
            known[symbol] = size
    symbols = [known.get(i, 0) for i in range(max(known, default=-1) + 1)]
    for argument, axis, said, actual in pairs:
        if isinstance(said, Size) and (missing := said.symbols - set(known)):
            raise SizeError(f"the size s{min(missing)} is the extent of no axis of an argument")
        if (expected := evaluate(said, symbols)) != actual:
            raise SizeError(
                f"argument {argument}, axis {axis}: expected {said} = {expected}, got {actual}"
            )
    return symbols


def symbols_used(op: Operation) -> list[int]:
    """The symbols that `op` and what it holds depend on, in order."""
    found = _Symbols()
    for inner in ops_in(op):
        for held in (*inner.properties.values(), *inner.attributes.values()):
            found.attribute(held)
        for value in _values(inner):
            found.attribute(value.type)
    return sorted(found.symbols)


class _Symbols:
    """Collects the symbols of attributes."""

    def __init__(self) -> None:
        self.symbols: set[int] = set()
        self._seen: set[int] = set()

    def attribute(self, attribute: Attribute) -> None:
        """Add the symbols of an attribute, which operations hold as long as this is used."""
        if id(attribute) in self._seen:  # its hash is that of all that is in it
            return
        self._seen.add(id(attribute))
        match attribute:
            case ExtentsAttr(data=sizes):
                self._add(size.expr for size in sizes)
            case ExtentAttr(data=Size(expr=expr)):
                self._add([expr])
            case AffineMapAttr(data=data):
                self._add(data.results)
            case AffineSetAttr(data=data):
                self._add(condition_exprs(data))
            case ArrayAttr():
                for each in attribute:
                    self.attribute(each)
            case DictionaryAttr():
                for each in attribute.data.values():
                    self.attribute(each)
            case ParametrizedAttribute():
                for each in attribute.parameters:
                    self.attribute(each)
            case _:
                pass

    def _add(self, exprs: Iterable[AffineExpr]) -> None:
        found = (leaf for expr in exprs for leaf in leaves(expr))
        self.symbols.update(leaf.position for leaf in found if isinstance(leaf, AffineSymExpr))


def instantiate(module: ModuleOp, symbols: Sequence[Extent]) -> ModuleOp:
    """A copy of `module` in which symbol `i` is `symbols[i]`: a number, or an extent over other symbols."""
    return _Instantiation(symbols).module(module.clone())


def without_size(module: ModuleOp, number: int) -> ModuleOp:
    """A copy of `module` for which size `number` is 0; those behind it move up."""
    (main,) = (o for o in module.ops if isinstance(o, func.FuncOp) and o.sym_name.data == "main")
    sizes = list(sizes_of(main))
    before = [Size.symbol(i) for i in range(number)]
    behind = [Size.symbol(i) for i in range(number, len(sizes) - 1)]
    copy = instantiate(module, [*before, 0, *behind])
    del sizes[number]
    for function in copy.ops:
        if isinstance(function, func.FuncOp) and function.sym_name.data == "main":
            function.attributes[SIZES] = ArrayAttr(sizes)
            function.attributes.pop(POSITIVE, None)
    return copy


def size_hints(module: ModuleOp) -> list[int]:
    """The hint of each size of a program."""
    mains = [o for o in module.ops if isinstance(o, func.FuncOp) and o.sym_name.data == "main"]
    return [size.hint.data for main in mains for size in sizes_of(main)]


def with_hints(module: ModuleOp, hints: Sequence[int]) -> ModuleOp:
    """A copy of `module` that is to be fast where size `i` is `hints[i]`."""
    copy = module.clone()
    for main in copy.ops:
        if isinstance(main, func.FuncOp) and main.sym_name.data == "main":
            sizes = [size.with_hint(hint) for size, hint in zip(sizes_of(main), hints, strict=True)]
            main.attributes[SIZES] = ArrayAttr(sizes)
    return copy


def types_at(types: Sequence[Attribute], symbols: Sequence[Extent]) -> list[Attribute]:
    """`types` in which symbol `i` is `symbols[i]`."""
    replaced = _Instantiation(symbols)
    return [replaced.attribute(type) for type in types]


class _Instantiation:
    def __init__(self, symbols: Sequence[Extent]):
        self._values = [extent_expr(extent) for extent in symbols]
        self._attributes: dict[Attribute, Attribute] = {}

    def module(self, module: ModuleOp) -> ModuleOp:
        for op in ops_in(module):
            for held in (op.properties, op.attributes):
                for name, value in held.items():
                    held[name] = self.attribute(value)
            for value in _values(op):
                type = self.attribute(value.type)
                if type != value.type:
                    Rewriter.replace_value_with_new_type(value, type)
        return module

    def attribute(self, attribute: Attribute) -> Attribute:
        if attribute not in self._attributes:
            self._attributes[attribute] = self._replaced(attribute)
        return self._attributes[attribute]

    def _replaced(self, attribute: Attribute) -> Attribute:
        match attribute:
            case TensorType(encoding=ExtentsAttr()):
                return tensor_of(attribute.element_type, self._shape(shape_of(attribute)))
            case MemRefType(memory_space=ExtentsAttr()):
                return memref_of(attribute.element_type, self._shape(shape_of(attribute)))
            case ExtentAttr(data=extent):
                return ExtentAttr(self._extent(extent))
            case AffineMapAttr(data=data):
                return AffineMapAttr(affine_map(data.num_dims, map(self._expr, data.results)))
            case AffineSetAttr(data=data):
                exprs = [self._expr(e) for e in condition_exprs(data)]
                return AffineSetAttr(condition(data.num_dims, exprs))
            case ArrayAttr(data=data):
                return ArrayAttr([self.attribute(each) for each in data])
            case DictionaryAttr(data=data):
                return DictionaryAttr({k: self.attribute(v) for k, v in data.items()})
            case ParametrizedAttribute():
                return attribute.new([self.attribute(p) for p in attribute.parameters])
            case _:
                return attribute

    def _shape(self, shape: Sequence[Extent]) -> list[Extent]:
        return [self._extent(extent) for extent in shape]

    def _extent(self, extent: Extent) -> Extent:
        return extent_of(self._expr(extent.expr)) if isinstance(extent, Size) else extent

    def _expr(self, expr: AffineExpr) -> AffineExpr:
        return replace_symbols(expr, self._values)


def _values(op: Operation) -> Iterator[SSAValue]:
    blocks: list[Block] = [block for region in op.regions for block in region.blocks]
    yield from op.results
    for block in blocks:
        yield from block.args
