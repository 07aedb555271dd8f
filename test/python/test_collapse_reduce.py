"""Reductions of which one iteration tells the result: bit by bit what the loop computes."""

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from ir_programs import parse
from stages import assert_stages_agree

import deplo
from deplo.frontend.sources import Program as Source
from deplo.interpreter import execute
from deplo.passes.decisions import recording
from deplo.passes.loop.collapse_reduce import CollapseReducePass

NASTY = [0.0, -0.0, 1.5, -3.0, np.nan, np.inf, -np.inf, 3.4e38, 1e-45, -1e-45]
NEUTRAL = {
    ("add", "f32"): ["0.0", "-0.0"],
    ("mul", "f32"): ["1.0"],
    ("max", "f32"): ["0xFF800000"],
    ("min", "f32"): ["0x7F800000"],
    ("add", "i32"): ["0"],
    ("mul", "i32"): ["1"],
    ("max", "i32"): [str(-(2**31))],
    ("min", "i32"): [str(2**31 - 1)],
}


def same_bits(one, other):
    """Whether arrays have the same elements, zeros of the same sign, NaN where the other has it."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    signs = np.isnan(one) | (np.signbit(one) == np.signbit(other))
    return np.array_equal(one, other, equal_nan=True) and signs.all()


def collapsed(text, inputs):
    """What a program computes before and after the pass, and whether this fired."""
    before = parse(text)
    after = parse(text)
    with recording() as decisions:
        CollapseReducePass().apply(None, after)
    after.verify()
    return execute(before, inputs), execute(after, inputs), decisions[0].fired


@st.composite
def selections(draw):
    """A reduction of what an equality selects, as text, and its inputs."""
    count = draw(st.sampled_from([1, 2, 3, 7, 100, 127, 128, 300]))
    combiner, element = draw(st.sampled_from(list(NEUTRAL)))
    neutral = draw(st.sampled_from(NEUTRAL[combiner, element]))
    width = draw(st.sampled_from([8, 16, 32, 64]))
    slope, offset = draw(st.sampled_from([1, -1])), draw(st.integers(-5, 200))
    near = [offset + slope * k for k in (-1, 0, 1, count - 1, count)]
    far = [-(2 ** (width - 1)), 2 ** (width - 1) - 1, 0, 256, 65536]
    ids = [v for v in near + far if -(2 ** (width - 1)) <= v < 2 ** (width - 1)]
    extra = draw(st.sampled_from(["", "plus", "minus"]))
    unequal, masked = draw(st.booleans()), draw(st.booleans())
    arms = f"%neutral, %v : {element}" if unequal else f"%v, %neutral : {element}"
    predicate = "ne" if unequal else "eq"
    condition = "%hit"
    lines = [f"%c = arith.cmpi {predicate}, %m, %id : i{width}"]
    if extra:
        op = "addi" if extra == "plus" else "subi"
        lines.insert(0, f"%m = arith.{op} %n, %id : i{width}")
    else:
        lines.insert(0, f"%zero = arith.constant 0 : i{width}")
        lines.insert(1, f"%m = arith.addi %zero, %n : i{width}")
    condition = "%c"
    if masked and not unequal:
        lines += ["%b = loop.load %mask[%k] : memref<@xi1>", "%both = arith.andi %b, %c : i1"]
        condition = "%both"
    body = "\n".join(lines).replace("@", str(count))
    types = [f"{count}x{element}", f"{len(ids)}xi{width}", f"{count}xi1", f"{len(ids)}x{element}"]
    x, keys, mask, out = (f"tensor<{each}>" for each in types)
    buffers = zip(("x", "ids", "mask", "out"), types, strict=True)
    arguments = ", ".join(f"%{name}: memref<{each}>" for name, each in buffers)
    text = f"""
func.func @main(%x: {x}, %ids: {keys}, %mask: {mask}) -> {out} {{
  %y = loop.kernel @k(%x, %ids, %mask) : ({x}, {keys}, {mask}) -> {out} {{
  ^bb0({arguments}):
    loop.for %i = 0 to {len(ids)} {{
      %id = loop.load %ids[%i] : memref<{len(ids)}xi{width}>
      %s = loop.for %k = 0 to {count} reduce({combiner}) -> {element} {{
        %o = loop.index [%k * {slope} + {offset}]
        %n = arith.index_cast %o : index to i{width}
        {body}
        %v = loop.load %x[%k] : memref<{count}x{element}>
        %neutral = arith.constant {neutral} : {element}
        %w = arith.select {condition}, {arms}
        loop.yield %w : {element}
      }}
      loop.store %s, %out[%i] : memref<{len(ids)}x{element}>
    }}
  }}
  func.return %y : {out}
}}"""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if element == "f32":
        values = rng.choice(np.array(NASTY, np.float32), count)
    else:
        values = rng.integers(-(2**31), 2**31, count, dtype=np.int32)
    inputs = [values, np.array(ids, f"int{width}"), rng.integers(0, 2, count).astype(bool)]
    return text, inputs, count < 2 ** (width - 1)


@examples(100)
@given(selections())
def test_what_is_selected_is_what_the_loop_gives(case):
    text, inputs, fits = case
    with np.errstate(all="ignore"):
        (before,), (after,), fired = collapsed(text, inputs)
    assert fired == fits
    assert same_bits(before, after)


@examples(60)
@given(
    st.integers(1, 300),
    st.sampled_from(["f32", "f64", "i8", "i32", "i64"]),
    st.sampled_from(["add", "max", "min"]),
)
def test_equal_terms_are_counted(count, element, combiner):
    if element[0] == "f":  # of which a sum of 300 is exact, or infinite in both
        limits = np.finfo(f"float{element[1:]}")
        ends = [limits.max, limits.smallest_subnormal, -limits.smallest_subnormal]
        values = np.array([0.0, -0.0, 1.5, -3.0, np.nan, np.inf, -np.inf, *ends], limits.dtype)
    else:
        values = np.array([0, 1, -1, 7, 127, -128], f"int{element[1:]}")
    n = len(values)
    text = f"""
func.func @main(%x: tensor<{n}x{element}>) -> tensor<{n}x{element}> {{
  %y = loop.kernel @k(%x) : (tensor<{n}x{element}>) -> tensor<{n}x{element}> {{
  ^bb0(%x: memref<{n}x{element}>, %out: memref<{n}x{element}>):
    loop.for %i = 0 to {n} {{
      %s = loop.for %k = 0 to {count} reduce({combiner}) -> {element} {{
        %v = loop.load %x[%i] : memref<{n}x{element}>
        loop.yield %v : {element}
      }}
      loop.store %s, %out[%i] : memref<{n}x{element}>
    }}
  }}
  func.return %y : tensor<{n}x{element}>
}}"""
    with np.errstate(all="ignore"):
        (before,), (after,), fired = collapsed(text, [values])
    assert fired
    assert same_bits(before, after)


IDS = torch.tensor([3, 0, -1, 8, 7, 3, 2**62, -(2**63)])
TABLE = torch.randn(8, 5)
TABLE[1], TABLE[2, 0], TABLE[7, 0], TABLE[3, 1] = torch.nan, torch.inf, -torch.inf, -0.0

PROGRAMS = {
    "rows of a table": lambda ids, table: torch.where(
        (torch.arange(8) == ids[:, None])[:, :, None], table, 0.0
    ).sum(1),
    "rows of a table of halves": lambda ids, table: torch.where(
        (torch.arange(8) == ids[:, None])[:, :, None], table.half(), 0.0
    ).sum(1),
    "how often": lambda ids, table: (torch.arange(8) == ids[:, None]).sum(1),
    "whether": lambda ids, table: (torch.arange(8) == ids[:, None]).any(1),
    "the largest": lambda ids, table: torch.where(
        torch.arange(8) == ids[:, None], table[:, 1], -torch.inf
    ).amax(1),
    "a diagonal": lambda ids, table: torch.where(
        torch.eye(8, dtype=torch.bool)[:, :5], table, 0.0
    ).sum(0),
    "a sum of repeated rows": lambda ids, table: table[:, None].expand(8, 33, 5).sum(1),
    "a mean of repeated rows": lambda ids, table: table[:, None].expand(8, 3, 5).mean((1, 2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_programs_compute_what_eager_does_at_every_stage(name, target, capsys):
    program, args = PROGRAMS[name], (IDS, TABLE)
    compiled = deplo.compile(program, args, target=target)
    decisions = [d for d in compiled.report()["decisions"] if d["pass"] == "collapse-reduce"]
    assert any(decision["fired"] for decision in decisions), decisions
    assert_stages_agree(compiled, Source(program, args), capsys)
    if target == "cpu":
        expected, result = program(*args), compiled(*args)
        torch.testing.assert_close(result, expected, equal_nan=True)
        if result.is_floating_point():
            zeros = expected == 0
            assert torch.equal(result.signbit() & zeros, expected.signbit() & zeros)


def test_one_hot_rows_times_what_is_infinite_stay_a_product():
    def program(ids, table):
        return (torch.arange(8) == ids[:, None]).float() @ table

    compiled = deplo.compile(program, (IDS, TABLE))
    assert not any(d["fired"] for d in compiled.report()["decisions"] if "collapse" in d["pass"])
    torch.testing.assert_close(compiled(IDS, TABLE), program(IDS, TABLE), equal_nan=True)


def test_ids_that_nothing_selects_with_are_checked_all_the_same():
    """Only five rows are read, but an index of another row is out of range."""

    def program(ids, places, table):
        hit = torch.arange(8) == ids[places][:, None]
        return torch.where(hit[:5, :, None], table, 0.0).sum(1)

    ids, places, table = torch.arange(20) % 8, torch.arange(20), torch.randn(8, 500)
    compiled = deplo.compile(program, (ids, places, table))
    torch.testing.assert_close(compiled(ids, places, table), program(ids, places, table))
    places[15] = 99
    with pytest.raises(IndexError):
        compiled(ids, places, table)
