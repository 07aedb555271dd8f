"""Random graphs of tensor operations compute the same before and after every pass, CUDA and native.

Every value is a small whole number, so arithmetic is exact in any order and results must be equal.
`DEPLO_RANDOM_CASES=2000 pytest test/python/test_random_programs.py` tries more of them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import prod

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stages import INSIDE_NATIVE
from test_mutants import execute_any
from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from deplo.analysis.verify import Verifier
from deplo.dialects.index import condition, delinearize, linearize
from deplo.dialects.scalars import Combiner, Function
from deplo.dialects.syntax import scalar_attr, tensor_type
from deplo.dialects.tensor_ir import (
    CastOp,
    ConstantOp,
    ElementwiseOp,
    IndexMapOp,
    IotaOp,
    ReduceOp,
)
from deplo.interpreter import numpy_dtype
from deplo.passes.pipelines import make_pipeline
from deplo.program_stages import make_context
from deplo.tools.check_each_pass import PassChecker

EXTENTS = [0, 1, 2, 3, 5, 7]
MAX_ELEMENTS = 240
LIMIT = 8

ARITHMETIC = (f32, i32, i64, i8)
STORED = (*ARITHMETIC, i1, f16, bf16)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def element_of(value: SSAValue) -> Attribute:
    return tensor_type(value).element_type


@dataclass
class Graph:
    """A program under construction and the choices that make it."""

    draw: st.DrawFn
    builder: Builder
    values: list[SSAValue]

    def pick(self, elements: tuple[Attribute, ...] = STORED, rank: int = 0) -> SSAValue | None:
        found = [v for v in self.values if element_of(v) in elements and len(shape_of(v)) >= rank]
        return self.draw(st.sampled_from(found)) if found else None

    def add(
        self, op: ElementwiseOp | ReduceOp | IndexMapOp | CastOp | ConstantOp | IotaOp
    ) -> SSAValue:
        result = self.builder.insert(op).result
        self.values.append(result)
        return result

    def constant(self, value: float, like: SSAValue) -> SSAValue:
        return self.builder.insert(ConstantOp(value, tensor_type(like))).result

    def clamped(self, value: SSAValue) -> SSAValue:
        """Keep numbers small, so that they stay whole."""
        if element_of(value) == i1:
            return value
        whole = int if element_of(value) != f32 else float
        low = ElementwiseOp(Function.MAX, [value, self.constant(whole(-LIMIT), value)])
        result = self.builder.insert(low).result
        return self.add(ElementwiseOp(Function.MIN, [result, self.constant(whole(LIMIT), value)]))

    def remap(
        self, source: SSAValue, exprs: list[AffineExpr], shape: list[int] | tuple[int, ...]
    ) -> SSAValue | None:
        if prod(shape) > MAX_ELEMENTS:
            return None
        return self.add(IndexMapOp([source], [AffineMap(len(shape), 0, tuple(exprs))], shape))


def dims(count: int) -> list[AffineExpr]:
    return [AffineExpr.dimension(i) for i in range(count)]


# --------------------------------------------------------------------------- steps


def unary(g: Graph) -> None:
    if (x := g.pick((*ARITHMETIC, i1))) is None:
        return
    functions = [Function.NOT] if element_of(x) == i1 else [Function.NEG, Function.ABS]
    g.add(ElementwiseOp(g.draw(st.sampled_from(functions)), [x]))


def binary(g: Graph) -> None:
    if (x := g.pick((*ARITHMETIC, i1))) is None:
        return
    y = g.draw(st.sampled_from([v for v in g.values if v.type == x.type]))
    functions = [Function.MAX, Function.MIN, Function.LT, Function.LE, Function.GT, Function.GE]
    functions += [Function.EQ, Function.NE]
    if element_of(x) == i1:
        functions += [Function.AND, Function.OR, Function.XOR]
    else:
        functions += [Function.ADD, Function.SUB, Function.MUL] * 2
    function = g.draw(st.sampled_from(functions))
    result = ElementwiseOp(function, [x, y])
    if function in (Function.ADD, Function.SUB, Function.MUL):
        g.clamped(g.builder.insert(result).result)
    else:
        g.add(result)


def select(g: Graph) -> None:
    if (condition_ := g.pick((i1,))) is None:
        return
    fitting = [v for v in g.values if shape_of(v) == shape_of(condition_)]
    x = g.draw(st.sampled_from(fitting))
    y = g.draw(st.sampled_from([v for v in fitting if v.type == x.type]))
    g.add(ElementwiseOp(Function.SELECT, [condition_, x, y]))


def reduce(g: Graph) -> None:
    if (x := g.pick((*ARITHMETIC, i1), rank=1)) is None:
        return
    rank = len(shape_of(x))
    axes = g.draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    combiners = [Combiner.ADD, Combiner.MAX, Combiner.MIN]
    if prod(shape_of(x)[a] for a in axes) <= 3:
        combiners.append(Combiner.MUL)
    if element_of(x) == i1:
        combiners = [Combiner.ANY, Combiner.ALL]
    result = g.builder.insert(ReduceOp(g.draw(st.sampled_from(combiners)), x, axes)).result
    g.clamped(result) if element_of(x) != i1 else g.values.append(result)


def cast(g: Graph) -> None:
    if (x := g.pick()) is None:
        return
    element = g.draw(st.sampled_from([e for e in STORED if e != element_of(x)]))
    g.add(CastOp(x, element))


def constant(g: Graph) -> None:
    like = g.draw(st.sampled_from(g.values))
    value: float = g.draw(st.integers(-3, 3))
    if element_of(like) == i1:
        value = bool(value > 0)
    elif element_of(like) in (f32, f16, bf16):
        value = g.draw(st.sampled_from([float(value), -0.0]))
    g.add(ConstantOp(value, tensor_type(like)))


def iota(g: Graph) -> None:
    like = g.draw(st.sampled_from(g.values))
    if shape_of(like) and element_of(like) in (i32, i64):
        axis = g.draw(st.integers(0, len(shape_of(like)) - 1))
        g.add(IotaOp(axis, tensor_type(like)))


def permute(g: Graph) -> None:
    x = g.draw(st.sampled_from(g.values))
    rank = len(shape_of(x))
    order = g.draw(st.permutations(range(rank)))
    exprs = [AffineExpr.dimension(order.index(axis)) for axis in range(rank)]
    g.remap(x, exprs, [shape_of(x)[axis] for axis in order])


def cut(g: Graph) -> None:
    """A slice with a step, possibly backwards."""
    if (x := g.pick(rank=1)) is None:
        return
    shape = list(shape_of(x))
    axis = g.draw(st.integers(0, len(shape) - 1))
    start, step = (
        g.draw(st.integers(0, max(shape[axis] - 1, 0))),
        g.draw(st.sampled_from([1, 2, 3])),
    )
    exprs = dims(len(shape))
    backwards = g.draw(st.booleans())
    room = start + 1 if backwards else shape[axis] - start
    shape[axis] = -(-min(room, shape[axis]) // step) if shape[axis] else 0
    exprs[axis] = exprs[axis] * (-step if backwards else step) + start
    g.remap(x, exprs, shape)


def broadcast(g: Graph) -> None:
    x = g.draw(st.sampled_from(g.values))
    shape = list(shape_of(x))
    if len(shape) < 4 and g.draw(st.booleans()):
        axis = g.draw(st.integers(0, len(shape)))
        exprs = dims(len(shape) + 1)
        del exprs[axis]
        shape.insert(axis, g.draw(st.sampled_from([1, 2, 3])))
        g.remap(x, exprs, shape)
        return
    ones = [axis for axis, extent in enumerate(shape) if extent == 1]
    if ones:
        axis = g.draw(st.sampled_from(ones))
        exprs = dims(len(shape))
        exprs[axis] = AffineExpr.constant(0)
        shape[axis] = g.draw(st.sampled_from(EXTENTS))
        g.remap(x, exprs, shape)


def reshape(g: Graph) -> None:
    x = g.draw(st.sampled_from(g.values))
    count = prod(shape_of(x))
    if not count:
        return
    shape: list[int] = []
    while count > 1 and len(shape) < 4:
        divisors = [d for d in range(1, count + 1) if count % d == 0]
        shape.append(g.draw(st.sampled_from(divisors)) if len(shape) < 3 else count)
        count //= shape[-1]
    if count > 1:
        return
    flat = linearize(dims(len(shape)), shape)
    g.remap(x, list(delinearize(flat, list(shape_of(x)))), shape)


def wrap(g: Graph) -> None:
    """Repeat and roll an axis."""
    if (x := g.pick(rank=1)) is None:
        return
    shape = list(shape_of(x))
    axis = g.draw(st.integers(0, len(shape) - 1))
    if not shape[axis]:
        return
    exprs = dims(len(shape))
    shift = g.draw(st.integers(-3, 3))
    exprs[axis] = (exprs[axis] + shift) % shape[axis]
    shape[axis] *= g.draw(st.sampled_from([1, 2]))
    g.remap(x, exprs, shape)


def join(g: Graph) -> None:
    """Concatenate two values, or pad one."""
    if (x := g.pick(rank=1)) is None:
        return
    shape = list(shape_of(x))
    rank = len(shape)
    axis = g.draw(st.integers(0, rank - 1))
    here = AffineExpr.dimension(axis)
    moved = dims(rank)
    others = [
        v
        for v in g.values
        if element_of(v) == element_of(x)
        and len(shape_of(v)) == rank
        and all(
            a == axis or n == m for a, (n, m) in enumerate(zip(shape, shape_of(v), strict=True))
        )
    ]
    if g.draw(st.booleans()):
        y = g.draw(st.sampled_from(others))
        moved[axis] = here - shape[axis]
        first = condition(rank, [here * -1 + (shape[axis] - 1)])
        maps = [AffineMap.identity(rank), AffineMap(rank, 0, tuple(moved))]
        conditions, sources, fill = [first, condition(rank, [])], [x, y], None
        shape[axis] += shape_of(y)[axis]
    else:
        low, high = g.draw(st.integers(0, 2)), g.draw(st.integers(0, 2))
        moved[axis] = here - low
        inside = condition(rank, [here - low, here * -1 + (low + shape[axis] - 1)])
        maps, conditions, sources = [AffineMap(rank, 0, tuple(moved))], [inside], [x]
        element = element_of(x)
        number: float = g.draw(st.integers(0, 1))
        fill = scalar_attr(
            bool(number)
            if element == i1
            else float(number)
            if element in (f32, f16, bf16)
            else number,
            element,
        )
        shape[axis] += low + high
    if prod(shape) <= MAX_ELEMENTS:
        g.add(IndexMapOp(sources, maps, shape, conditions=conditions, fill=fill))


STEPS = [
    unary,
    binary,
    select,
    reduce,
    cast,
    constant,
    iota,
    permute,
    cut,
    broadcast,
    reshape,
    wrap,
]
STEPS += [join, binary, reduce, join]


@st.composite
def programs(draw: st.DrawFn) -> tuple[ModuleOp, list[np.ndarray]]:
    """A program and inputs for it."""
    types: list[TensorType] = []
    for _ in range(draw(st.integers(1, 3))):
        rank = draw(st.integers(0, 4))
        shape = draw(st.lists(st.sampled_from(EXTENTS), min_size=rank, max_size=rank))
        while prod(shape) > MAX_ELEMENTS:
            shape.pop()
        types.append(TensorType(draw(st.sampled_from((f32, i32, i1, f32))), shape))
    block = Block(arg_types=types)
    for number, argument in enumerate(block.args):
        argument.name_hint = f"x{number}"
    graph = Graph(draw, Builder(InsertPoint.at_end(block)), list(block.args))
    for step in draw(st.lists(st.sampled_from(STEPS), min_size=3, max_size=12)):
        step(graph)
    results = [graph.values[-1], *draw(st.lists(st.sampled_from(graph.values), max_size=2))]
    graph.builder.insert(func.ReturnOp(*results))
    main = func.FuncOp("main", (types, [r.type for r in results]), Region(block))
    module = ModuleOp([main])
    module.verify()
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    inputs = [rng.integers(-3, 4, t.get_shape()).astype(numpy_dtype(t.element_type)) for t in types]
    return module, inputs


def check(module: ModuleOp, inputs: list[np.ndarray], pipeline: str, target: str) -> None:
    module = module.clone()
    checker = PassChecker(lambda line: None, execute=execute_any, inputs=[inputs])
    context, verifier = make_context(), Verifier()
    checker.begin(module)
    passes = make_pipeline(pipeline, target)
    for each in passes:
        each.apply(context, module)
        verifier.verify(module)
        checker.after_pass(each, module)
    assert checker.checked == len(passes) - (len(INSIDE_NATIVE) if target == "cpu" else 0)


CASES = int(os.environ.get("DEPLO_RANDOM_CASES", "160"))

options = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@settings(options, max_examples=CASES)
@given(programs())
def test_every_pass_to_cuda_keeps_what_a_random_program_computes(
    program: tuple[ModuleOp, list[np.ndarray]],
) -> None:
    check(*program, "tensor-to-cuda", "sm_90a")


@settings(options, max_examples=CASES // 2)
@given(programs())
def test_native_code_computes_what_a_random_program_does(
    program: tuple[ModuleOp, list[np.ndarray]],
) -> None:
    check(*program, "tensor-to-llvm", "cpu")
