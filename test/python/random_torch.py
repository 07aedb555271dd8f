"""Random PyTorch programs over the contract: up to twelve operators on tensors of uneven shapes.

A program is a list of steps; each names an operator and the values it reads. Every value that another
step reads is a small whole number, so that arithmetic is exact in any order and results must be equal.
Operators that round (softmax, norms, transcendental functions) end a chain: their results are returned,
and judged against float64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

import torch
import torch.nn.functional as F
from hypothesis import strategies as st

EXTENTS = [0, 1, 2, 3, 5, 7]
MAX_ELEMENTS = 300
LIMIT = 8
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8)
DTYPES = (torch.float32, torch.float32, *FLOATS, *INTEGERS, torch.bool)

Draw = st.DrawFn
Tensor = torch.Tensor
Run = Callable[..., Tensor | tuple[Tensor, ...]]


@dataclass(frozen=True)
class Step:
    """One operator: `run(*values)`, of the values so far at `reads`; gives one or several values."""

    name: str
    run: Run
    reads: tuple[int, ...]
    ends: bool

    def __str__(self) -> str:
        return f"{self.name}{list(self.reads)}"


@dataclass(frozen=True)
class RandomProgram:
    """A program, called with its inputs; it gives what no step reads, and what ends a chain."""

    inputs: tuple[Tensor, ...]
    steps: tuple[Step, ...]

    def __call__(self, *inputs: Tensor) -> list[Tensor]:
        values = list(inputs)
        used: set[int] = set()
        for step in self.steps:
            result = step.run(*(values[i] for i in step.reads))
            used.update(step.reads)
            values += result if isinstance(result, tuple) else (result,)
        return [v for i, v in enumerate(values) if i >= len(inputs) and i not in used]

    def __repr__(self) -> str:
        shapes = ", ".join(f"{i.dtype}{list(i.shape)}" for i in self.inputs)
        return f"<{shapes}: {'; '.join(map(str, self.steps))}>"


def _clamped(value: Tensor) -> Tensor:
    return value if value.dtype == torch.bool else value.clamp(-LIMIT, LIMIT)


class Maker:
    """The values so far, as they are for the inputs drawn, and the choices still to be made."""

    def __init__(self, draw: Draw, inputs: list[Tensor]):
        self.draw = draw
        self.values = list(inputs)
        self.open = set(range(len(inputs)))
        self.steps: list[Step] = []

    def pick(self, fits: Callable[[Tensor], bool] = lambda t: True) -> int | None:
        """A value that another step may read."""
        found = [i for i in sorted(self.open) if fits(self.values[i])]
        return self.draw(st.sampled_from(found)) if found else None

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def axis(self, value: Tensor) -> int:
        return self.integer(-value.dim(), value.dim() - 1)

    def add(self, name: str, run: Run, *reads: int, ends: bool = False) -> None:
        """Append a step unless its result is too large, or not small whole numbers."""
        result = run(*(self.values[i] for i in reads))
        results = result if isinstance(result, tuple) else (result,)
        if any(r.numel() > MAX_ELEMENTS for r in results):
            return
        for value in results:
            if not ends:
                self.open.add(len(self.values))
            self.values.append(value)
        self.steps.append(Step(name, run, reads, ends))


def _number(t: Tensor) -> bool:
    return t.dtype != torch.bool


def _has_axis(t: Tensor) -> bool:
    return t.dim() > 0


def _filled(t: Tensor) -> bool:
    return t.dim() > 0 and t.numel() > 0


def _float(t: Tensor) -> bool:
    return t.dtype in FLOATS


# --------------------------------------------------------------------------- exact steps


def unary(m: Maker) -> None:
    if (x := m.pick(_number)) is not None:
        choices = {"neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "relu": torch.relu}
        name = m.draw(st.sampled_from(sorted(choices)))
        m.add(name, choices[name], x)


def binary(m: Maker) -> None:
    if (x := m.pick()) is None:
        return
    shape = m.values[x].shape

    def fits(t: Tensor) -> bool:
        try:
            torch.broadcast_shapes(shape, t.shape)
        except RuntimeError:
            return False
        return True

    y = m.pick(fits)
    assert y is not None
    names = ["add", "mul", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"]
    both = m.values[x].dtype, m.values[y].dtype
    if torch.bool not in both:
        names += ["sub", "add", "mul", "sub"]
    if not any(d in FLOATS for d in both):
        names += ["bitwise_and", "bitwise_or", "bitwise_xor"]
    name = m.draw(st.sampled_from(names))
    function = getattr(torch, name)
    m.add(name, lambda a, b: _clamped(function(a, b)), x, y)


def division(m: Maker) -> None:
    # The remainder of f64 values is refused.
    if (x := m.pick(lambda t: _number(t) and t.dtype != torch.float64)) is not None:
        divisor = m.draw(st.sampled_from([-3, -2, 2, 3, 5]))
        name = m.draw(st.sampled_from(["floor_divide", "remainder", "fmod"]))
        function = getattr(torch, name)
        m.add(f"{name}({divisor})", lambda a: function(a, divisor), x)


def number(m: Maker) -> None:
    if (x := m.pick(_number)) is not None:
        value = m.integer(-3, 3)
        name = m.draw(st.sampled_from(["add", "sub", "mul", "rsub"]))
        function = getattr(torch, name)
        m.add(f"{name}({value})", lambda a: _clamped(function(a, value)), x)


def where(m: Maker) -> None:
    c = m.pick(lambda t: t.dtype == torch.bool)
    if c is None:
        return
    shape = m.values[c].shape
    x = m.pick(lambda t: t.shape == shape)
    y = m.pick(lambda t: t.shape == shape)
    assert x is not None
    assert y is not None
    m.add("where", torch.where, c, x, y)


def reduction(m: Maker) -> None:
    if (x := m.pick(_filled)) is None:
        return
    axis, keep = m.axis(m.values[x]), m.draw(st.booleans())
    if m.values[x].dtype == torch.bool:
        name = m.draw(st.sampled_from(["any", "all", "sum"]))
    else:
        name = m.draw(st.sampled_from(["sum", "amax", "amin", "argmax", "argmin", "sum", "all"]))
    function = getattr(torch, name)
    m.add(f"{name}({axis}, {keep})", lambda a: _clamped(function(a, axis, keepdim=keep)), x)


def empty_sum(m: Maker) -> None:
    if (x := m.pick(lambda t: _number(t) and _has_axis(t))) is not None:
        axes = tuple(range(m.integer(1, m.values[x].dim())))
        m.add(f"sum{axes}", lambda a: _clamped(a.sum(axes)), x)


def extremum(m: Maker) -> None:
    """Values and indices of a maximum: an operator of two results."""
    if (x := m.pick(lambda t: _filled(t) and _number(t))) is not None:
        axis = m.axis(m.values[x])
        m.add(f"max({axis})", lambda a: tuple(torch.max(a, axis)), x)


def scan(m: Maker) -> None:
    if (x := m.pick(_filled)) is not None:
        axis = m.axis(m.values[x])
        m.add(f"cumsum({axis})", lambda a: _clamped(torch.cumsum(a, axis)), x)


def cast(m: Maker) -> None:
    if (x := m.pick()) is not None:
        dtype = m.draw(st.sampled_from(DTYPES))
        m.add(f"to({dtype})", lambda a: a.to(dtype), x)


def product(m: Maker) -> None:
    """A matrix product with a transposed or plain second operand, batched or not."""
    x = m.pick(lambda t: t.dtype == torch.float32 and t.dim() in (2, 3))
    if x is None:
        return
    a = m.values[x]
    y = m.pick(lambda t: t.dtype == a.dtype and t.dim() == 2 and t.shape[-1] == a.shape[-1])
    if y is not None:
        m.add("linear", lambda a, b: _clamped(F.linear(a, b)), x, y)
        return
    y = m.pick(lambda t: t.dtype == a.dtype and t.dim() == 2 and t.shape[0] == a.shape[-1])
    if y is not None:
        m.add("matmul", lambda a, b: _clamped(a @ b), x, y)
    else:
        m.add("gram", lambda a: _clamped(a @ a.mT), x)


def pick_rows(m: Maker) -> None:
    """Rows of one value by the numbers of another."""
    x, i = m.pick(_filled), m.pick(lambda t: t.dtype == torch.int64 and t.dim() == 1)
    if x is not None and i is not None:
        rows = m.values[x].shape[0]
        m.add("index_select", lambda a, k: torch.index_select(a, 0, k.remainder(rows)), x, i)


def gather(m: Maker) -> None:
    x = m.pick(lambda t: _filled(t) and t.dtype == torch.int64)
    if x is not None:
        axis = m.axis(m.values[x])
        extent = m.values[x].shape[axis]
        m.add(f"gather({axis})", lambda a: torch.gather(a, axis, a.remainder(extent)), x)


def layout(m: Maker) -> None:
    x = m.pick(_has_axis)
    if x is None:
        return
    a = m.values[x]
    axis, shift = m.axis(a), m.integer(-2, 2)
    start, step = m.integer(-3, 3), m.integer(1, 3)
    order = m.draw(st.permutations(range(a.dim())))
    choices: dict[str, Run] = {
        f"permute{order}": lambda a: a.permute(order),
        f"flip({axis})": lambda a: a.flip(axis),
        f"roll({shift}, {axis})": lambda a: a.roll(shift, axis),
        f"slice({start}, {step}, {axis})": lambda a: a.movedim(axis, 0)[start::step].movedim(
            0, axis
        ),
        f"unsqueeze({axis})": lambda a: a.unsqueeze(axis),
        "squeeze": lambda a: a.squeeze(),
        "flatten": lambda a: a.flatten(),
        f"repeat({axis})": lambda a: a.repeat_interleave(2, axis),
        "pad": lambda a: F.pad(a, (1, 2), value=1),
        "tril": lambda a: a.tril() if a.dim() > 1 else a,
        "view": lambda a: a.reshape(-1, a.shape[0]) if a.numel() else a,
    }
    name = m.draw(st.sampled_from(list(choices)))
    m.add(name, choices[name], x)


def expand(m: Maker) -> None:
    if (x := m.pick(lambda t: t.dim() < 4)) is not None:
        extent = m.draw(st.sampled_from(EXTENTS))
        m.add(f"expand({extent})", lambda a: a.unsqueeze(0).expand(extent, *a.shape), x)


def join(m: Maker) -> None:
    if (x := m.pick(_has_axis)) is None:
        return
    a = m.values[x]
    y = m.pick(lambda t: t.shape == a.shape)
    assert y is not None
    axis = m.axis(a)
    if m.draw(st.booleans()):
        m.add(f"cat({axis})", lambda a, b: torch.cat([a, b, a], axis), x, y)
    else:
        m.add(f"stack({axis})", lambda a, b: torch.stack([a, b], axis), x, y)


def split(m: Maker) -> None:
    if (x := m.pick(_filled)) is not None:
        axis = m.axis(m.values[x])
        m.add(f"split({axis})", lambda a: tuple(torch.split(a, 2, axis)), x)


def convolution(m: Maker) -> None:
    x = m.pick(
        lambda t: t.dtype == torch.float32 and t.dim() == 3 and t.shape[2] > 2 and _filled(t)
    )
    if x is not None:
        stride, padding = m.integer(1, 2), m.integer(0, 1)
        m.add(
            f"conv1d({stride}, {padding})",
            lambda a: _clamped(F.conv1d(a, a[:1, :, :3].sign(), stride=stride, padding=padding)),
            x,
        )


EXACT = [unary, binary, binary, binary, division, number, where, reduction, reduction, empty_sum]
EXACT += [extremum, scan, cast, product, product, pick_rows, gather, layout, layout, layout]
EXACT += [expand, join, split, convolution]

# --------------------------------------------------------------------------- steps that round


def ending(m: Maker) -> None:
    x = m.pick(lambda t: t.dtype in (torch.float32, torch.float64) and _has_axis(t))
    if x is None:
        return
    axis = m.axis(m.values[x])
    choices: dict[str, Run] = {
        "exp": lambda a: torch.exp(a.clamp(-4, 4)),
        "tanh": torch.tanh,
        "sigmoid": torch.sigmoid,
        "gelu": F.gelu,
        "silu": F.silu,
        "rsqrt": lambda a: torch.rsqrt(a.abs() + 1),
        f"softmax({axis})": lambda a: torch.softmax(a, axis),
        f"log_softmax({axis})": lambda a: torch.log_softmax(a, axis),
        f"mean({axis})": lambda a: a.mean(axis),
        "layer_norm": lambda a: F.layer_norm(a, a.shape[-1:], eps=0.5),
        "rms_norm": lambda a: F.rms_norm(a, a.shape[-1:], eps=0.5),
        f"logsumexp({axis})": lambda a: torch.logsumexp(a, axis),
    }
    name = m.draw(st.sampled_from(list(choices)))
    m.add(name, choices[name], x, ends=True)


@st.composite
def programs(draw: Draw) -> RandomProgram:
    """A random program of one to twelve steps with its inputs."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    inputs: list[Tensor] = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(st.sampled_from(EXTENTS), max_size=4))
        while prod(shape) > MAX_ELEMENTS:
            shape.pop()
        numbers = torch.randint(-3, 4, shape, generator=generator)
        value = numbers.to(draw(st.sampled_from(DTYPES)))
        if value.dim() > 1 and draw(st.booleans()):
            value = value.mT.contiguous().mT  # the same numbers, other strides
        inputs.append(value)
    maker = Maker(draw, inputs)
    for step in draw(st.lists(st.sampled_from([*EXACT, ending, ending]), min_size=6, max_size=12)):
        step(maker)
    if not maker.steps:
        maker.add("neg", lambda a: a.to(torch.float32).neg(), 0)
    return RandomProgram(tuple(inputs), tuple(maker.steps))
