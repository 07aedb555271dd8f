"""Schedules that people give: what `explain --schedule-only` prints gives the same kernels again."""

import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xdsl.parser import Parser

from deplo import interpreter
from deplo.analysis.launches import kernels_of
from deplo.dialects.schedule import split_schedules
from deplo.errors import DeploError, UsageError
from deplo.frontend.capture import capture
from deplo.machine.host_cpu import find_target
from deplo.passes.pipelines import expand, make_pipeline
from deplo.passes.schedule.partial_blocks import make_partial, parts_of
from deplo.passes.tile.tileify import TileifyPass
from deplo.program import Program
from deplo.program_stages import make_context
from deplo.tools.explanation import lines_of


class Columns(nn.Module):
    def forward(self, x):
        return (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt()


class Mean(nn.Module):
    def forward(self, x):
        return x.mean()


class Strips(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, F.pad(y, (1, 2))], 1)


class Running(nn.Module):
    def forward(self, x):
        return x.cumsum(1)


class Turned(nn.Module):
    def forward(self, x, y):
        return x.T + y


class ChannelsLast(nn.Module):
    def forward(self, x, w):
        return F.conv2d(x.permute(0, 3, 1, 2), w, groups=32).permute(0, 2, 3, 1)


class Attention(nn.Module):
    def forward(self, query, key, value):
        return F.scaled_dot_product_attention(query, key, value)


def tensors(*shapes, dtype=torch.float32) -> tuple[torch.Tensor, ...]:
    """Arguments of a program."""
    return tuple(torch.randn(shape, dtype=dtype) for shape in shapes)


PROGRAMS = {
    "GELU of 10 x 1003": (nn.GELU(), tensors((10, 1003))),
    "GELU of 1024 x 1024": (nn.GELU(), tensors((1024, 1024))),
    "RMSNorm of 3 x 512": (nn.RMSNorm(512), tensors((3, 512))),
    "softmax of 77 x 1000": (nn.Softmax(-1), tensors((77, 1000))),
    "softmax of 3 x 30000": (nn.Softmax(-1), tensors((3, 30000))),
    "layer norm over the columns of 100 x 60": (Columns(), tensors((100, 60))),
    "mean of 600003": (Mean(), tensors((600003,))),
    "max pooling, 2 x 2, of 2 x 3 x 8 x 8": (nn.MaxPool2d(2), tensors((2, 3, 8, 8))),
    "concatenation with a padded 6 x 7": (Strips(), tensors((6, 10), (6, 7))),
    "batch norm of 2 x 6 x 14 x 14": (nn.BatchNorm2d(6).eval(), tensors((2, 6, 14, 14))),
    "running sum of 16 x 4096": (Running(), tensors((16, 4096))),
    "transpose of 1000 x 600 and add": (Turned(), tensors((1000, 600), (600, 1000))),
    "transpose of 60 x 100 and add": (Turned(), tensors((60, 100), (100, 60))),
    "linear layer of 2048 x 512 to 2048 in f32": (nn.Linear(512, 2048), tensors((2048, 512))),
    "linear layer of 512 x 1024 to 1024 in bf16": (
        nn.Linear(1024, 1024, dtype=torch.bfloat16),
        tensors((512, 1024), dtype=torch.bfloat16),
    ),
    "linear layer of 32 x 4096 to 256": (nn.Linear(4096, 256), tensors((32, 4096))),
    "attention of 2 x 4 x 256 x 64 in bf16": (
        Attention(),
        tensors(*[(2, 4, 256, 64)] * 3, dtype=torch.bfloat16),
    ),
    "convolution of 2 x 16 x 28 x 28, 3 x 3": (
        nn.Conv2d(16, 32, 3, padding=1),
        tensors((2, 16, 28, 28)),
    ),
    "depthwise convolution of 64 x 56 x 56, 3 x 3": (
        nn.Conv2d(64, 64, 3, padding=1, groups=64),
        tensors((1, 64, 56, 56)),
    ),
    "depthwise convolution of 20 x 20 x 32, channels last": (
        ChannelsLast(),
        tensors((1, 20, 20, 32), (32, 1, 3, 3)),
    ),
    "attention of one query to 512 keys": (
        Attention(),
        tensors((1, 12, 1, 64), *[(1, 12, 512, 64)] * 2),
    ),
}
ROW = re.compile(r"\| ([^|]+) \| ((?:sm_|cpu:)[^|]+) \| (`[^|]+`) \|")


def rows() -> list[tuple[str, str, list[str]]]:
    """The table of the docs: a program, the last target of a row, and the lines of its kernels."""
    text = (Path(__file__).parents[2] / "docs" / "schedules.md").read_text()
    return [
        (program, targets.split(", ")[-1], lines.strip("`").split("`<br>`"))
        for program, targets, lines in ROW.findall(text)
    ]


def given_back(program, inputs, target: str) -> tuple[list[str], Program, Program]:
    """A program's lines, the program, and the one that these lines give."""
    captured = capture(program, inputs)
    first = Program(captured, find_target(target))
    lines = lines_of(first)
    return lines, first, Program(captured, find_target(target), "\n".join(lines))


@pytest.mark.sample(24)
@pytest.mark.parametrize(("name", "target", "said"), rows())
def test_the_line_of_a_kernel_gives_the_same_kernel(name, target, said):
    lines, first, again = given_back(*PROGRAMS[name], target)
    end = "cuda" if target.startswith("sm") else "llvm"
    assert lines == said
    assert again.ir(end) == first.ir(end)
    assert lines_of(again) == lines


def test_the_table_has_every_program():
    assert {name for name, _, _ in rows()} == PROGRAMS.keys()


EDITS = [
    ("linear layer of 512 x 1024 to 1024 in bf16", "j by=64 into", "j by=32 into"),
    ("linear layer of 512 x 1024 to 1024 in bf16", "buffers=2", "buffers=4"),
    ("linear layer of 512 x 1024 to 1024 in bf16", "via=cp_async", "via=sync"),
    ("linear layer of 2048 x 512 to 2048 in f32", "strips=8,1", "strips=1,4"),
    ("linear layer of 32 x 4096 to 256", "parts=43", "parts=8"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "rows=16", "rows=32"),
]


@pytest.mark.parametrize(("name", "step", "edited"), EDITS)
def test_an_edited_step_gives_another_kernel_or_the_reason(name, step, edited):
    program, inputs = PROGRAMS[name]
    captured, target = capture(program, inputs), find_target("sm_80")
    first = Program(captured, target)
    (line,) = lines_of(first)
    assert step in line
    by = {"j by=32 into": "by=4,8"}.get(edited, "by=4,16")  # four threads share a row of sums
    line = line.replace(step, edited).replace("by=4,16", by)
    again = Program(captured, target, line)
    assert again.ir("cuda") != first.ir("cuda")
    assert lines_of(again) == [line]


REFUSED = [
    ("linear layer of 512 x 1024 to 1024 in bf16", "by=4,16", "by=4,12", "no tiles of 12 divide"),
    ("linear layer of 512 x 1024 to 1024 in bf16", "m16n8k16", "wgmma", "only what goes by tma"),
    ("linear layer of 512 x 1024 to 1024 in bf16", "via=cp_async", "via=tma", "pad must be absent"),
    ("linear layer of 2048 x 512 to 2048 in f32", "by=8,8", "by=8,8 instr=m16n8k16", "strips of its own"),
    ("linear layer of 32 x 4096 to 256", "parts=43", "parts=5000", "not 5000"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "rows=16", "rows=24", "rows is one of"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "_sum_reduce+", "_sum_reducer+", "is named"),
]


@pytest.mark.parametrize(("name", "step", "edited", "reason"), REFUSED)
def test_a_step_that_is_not_legal_is_an_error_that_says_why(name, step, edited, reason):
    program, inputs = PROGRAMS[name]
    captured, target = capture(program, inputs), find_target("sm_80")
    (line,) = lines_of(Program(captured, target))
    assert step in line
    with pytest.raises(UsageError, match=reason):
        Program(captured, target, line.replace(step, edited))


CPU_EDITS = [
    ("linear layer of 2048 x 512 to 2048 in f32", "block_m=684", "block_m=60"),
    ("linear layer of 32 x 4096 to 256", "block_k=592", "block_k=64"),
    ("convolution of 2 x 16 x 28 x 28, 3 x 3", "block_k=144", "block_k=27"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "block_m=258", "block_m=6"),
    ("attention of one query to 512 keys", "bind{axis=j to=block}", "bind{axis=j to=serial}"),
]


@pytest.mark.parametrize(("name", "step", "edited"), CPU_EDITS)
def test_an_edited_step_gives_another_kernel_with_the_same_results(name, step, edited):
    program, inputs = PROGRAMS[name]
    captured, host = capture(program, inputs), find_target("cpu")
    (line,) = lines_of(Program(captured, find_target("cpu:znver4:cores=2")))
    assert step in line
    first, again = Program(captured, host, line), Program(captured, host, line.replace(step, edited))
    assert again.ir("llvm") != first.ir("llvm")
    assert lines_of(again) == [line.replace(step, edited)]
    near = 2e-2 if inputs[0].dtype == torch.bfloat16 else 1e-4
    torch.testing.assert_close(again(*inputs), program(*inputs), rtol=near, atol=near)


CPU_REFUSED = [
    ("linear layer of 2048 x 512 to 2048 in f32", "block_m=684", "block_m=64", "made of register tiles"),
    ("linear layer of 2048 x 512 to 2048 in f32", "thread_n=64", "thread_n=56", "multiple of the 16"),
    ("linear layer of 2048 x 512 to 2048 in f32", "block_k=512 ", "", "every size must be at least 1"),
    ("linear layer of 2048 x 512 to 2048 in f32", "avx512", "avx1", "vectors is one of amx"),
    ("linear layer of 512 x 1024 to 1024 in bf16", "vectors=avx512", "vectors=neon", "no instruction"),
    ("convolution of 2 x 16 x 28 x 28, 3 x 3", "block_k=144", "block_k=28", "or the 9 of whole windows"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "block_m=258", "block_m=64", "not made of register tiles"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "block_m=258 ", "", "block_m, block_k, thread_m"),
    ("attention of 2 x 4 x 256 x 64 in bf16", "online-softmax{", "online-softmax{rows=1 ", "share columns"),
    ("attention of one query to 512 keys", "bind{axis=j to=block}", "bind{axis=j to=cluster}", "packed"),
]


@pytest.mark.parametrize(("name", "step", "edited", "reason"), CPU_REFUSED)
def test_a_step_of_a_cpu_that_is_not_legal_is_an_error_that_says_why(name, step, edited, reason):
    program, inputs = PROGRAMS[name]
    captured, target = capture(program, inputs), find_target("cpu:znver4:cores=2")
    (line,) = lines_of(Program(captured, target))
    assert step in line
    with pytest.raises(UsageError, match=reason):
        Program(captured, target, line.replace(step, edited))


def test_pairs_are_refused_on_a_cpu_without_their_instruction():
    captured = capture(*PROGRAMS["linear layer of 512 x 1024 to 1024 in bf16"])
    (line,) = lines_of(Program(captured, find_target("cpu:znver4:cores=2")))
    with pytest.raises(UsageError, match="cpu:avx2 has no instruction for pairs of bf16"):
        Program(captured, find_target("cpu:avx2"), line)


@pytest.mark.parametrize("name", [name for name, *_ in CPU_EDITS])
def test_a_schedule_of_a_cpu_is_refused_on_a_gpu(name):
    captured = capture(*PROGRAMS[name])
    (line,) = lines_of(Program(captured, find_target("cpu:znver4:cores=2")))
    with pytest.raises(DeploError, match="is scheduled for a CPU"):
        Program(captured, find_target("sm_90a"), line)


@pytest.mark.parametrize(
    "name",
    [
        "linear layer of 512 x 1024 to 1024 in bf16",
        "linear layer of 2048 x 512 to 2048 in f32",
    ],
    ids=["warpgroups", "copy engine"],
)
def test_a_schedule_for_a_machine_that_can_more_is_refused(name):
    captured = capture(*PROGRAMS[name])
    lines = lines_of(Program(captured, find_target("sm_90a")))
    with pytest.raises(DeploError, match="needs sm_90 or later, the target is sm_80"):
        Program(captured, find_target("sm_80"), "\n".join(lines))


LOOPS = """
func.func @main(%x: tensor<6x40xf32>) -> (tensor<6x40xf32>, tensor<6xf32>) {
  %y = loop.kernel @double(%x) : (tensor<6x40xf32>) -> tensor<6x40xf32> {
  ^bb0(%x: memref<6x40xf32>, %y: memref<6x40xf32>):
    loop.for %i = 0 to 6 {
      loop.for %j = 0 to 40 {
        %v = loop.load %x[%i, %j] : memref<6x40xf32>
        %w = arith.addf %v, %v : f32
        loop.store %w, %y[%i, %j] : memref<6x40xf32>
      }
    }
  } ATTRIBUTES
  %z = loop.kernel @sum(%y) : (tensor<6x40xf32>) -> tensor<6xf32> {
  ^bb0(%y: memref<6x40xf32>, %z: memref<6xf32>):
    loop.for %i = 0 to 6 {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %v = loop.load %y[%i, %k] : memref<6x40xf32>
        loop.yield %v : f32
      }
      loop.store %s, %z[%i] : memref<6xf32>
    }
  }
  func.return %y, %z : tensor<6x40xf32>, tensor<6xf32>
}"""


def scheduled(schedule: str, attributes: str = "", target: str = "sm_90a"):
    """The loops as Tile IR, under a schedule."""
    module = Parser(make_context(), LOOPS.replace("ATTRIBUTES", attributes)).parse_module()
    for each in expand(make_pipeline("loop-to-tile", target, schedule)):
        each.apply(make_context(), module)
    module.verify()
    return module


def test_one_kernel_has_a_schedule_and_the_other_a_recipe():
    text = str(scheduled("double: tileify,split{axis=j by=7},bind{axis=i to=block}"))
    assert "%i = 6 : block, %j_outer = 6 : thread, %j_inner = 7 : thread" in text
    assert "tile.combine add" in text


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_an_attribute_says_the_same(target):
    steps = "tileify,bind{axis=j to=block},bind{axis=i to=serial}"
    by_attribute = scheduled("", f'attributes {{schedule = "{steps}"}}', target)
    assert str(by_attribute) == str(scheduled(f"double: {steps}", "", target))


def test_a_kernel_that_becomes_two_keeps_what_it_computes():
    steps = (
        "tileify,partial{across=block parts=3 grain=4},bind{axis=i to=block},"
        "partial{across=thread kernel=sum_fold parts=2}"
    )
    module = scheduled(f"sum: {steps}")
    assert re.findall(r"loop.kernel @(\w+)", str(module)) == ["double", "sum_partial", "sum_fold"]
    inputs = [(8 * x).round() for x in interpreter.random_inputs(module)[-1]]
    doubled, sums = interpreter.execute(module, inputs)
    assert (doubled == 2 * inputs[0]).all()
    assert (sums == doubled.sum(1)).all()


WRONG = {
    "tripel: tileify": "no kernel is named tripel; there are double, sum",
    "double: bind{axis=i to=block}": "schedule of double: bind: there is no launch",
    "double: tileify,bind{axis=q to=block}": "bind: no axis of the launch is named q; its axes are i, j",
    "double: tileify,split{axis=j by=0}": "pass 'split': by is a number of points",
    "double: tileify,flip{axis=j}": "unknown pass 'flip'",
    "double: tileify,dedup-loads": "'dedup-loads' is no step of a schedule",
    "double: tileify,split{axis=j": "malformed pass pipeline",
    "double: drop-unit-axes": "schedule of double: drop-unit-axes:",
    "sum: tileify,partial{across=thread parts=1024}": "6144 threads exceed the 1024 a block can hold",
    "double: tileify; double: tileify": "double has two",
}


@pytest.mark.parametrize("schedule", WRONG)
def test_a_step_that_is_not_legal_is_an_error_that_names_it(schedule):
    with pytest.raises(UsageError, match=re.escape(WRONG[schedule])):
        scheduled(schedule)


def test_parts_that_are_declined_leave_no_reader_behind():
    module = Parser(make_context(), LOOPS.replace("ATTRIBUTES", "")).parse_module()
    TileifyPass().apply(make_context(), module)
    _, kernel = kernels_of(module)
    before = list(kernel.inputs[0].uses)
    assert make_partial(kernel, parts_of(40, 2), lambda launch, sweep: "no") == "no"
    assert list(kernel.inputs[0].uses) == before


def test_an_attribute_that_is_no_text_is_refused():
    with pytest.raises(UsageError, match="the attribute is a text of steps, not 4"):
        scheduled("", "attributes {schedule = 4 : i64}")


def test_choices_stand_beside_schedules():
    given, choices = split_schedules("k: tileify,bind{axis=i to=block}; BM=16\nl: tileify\nFM=2")
    assert given == {"k": "tileify,bind{axis=i to=block}", "l": "tileify"}
    assert choices == " BM=16,FM=2"
