"""What a report says of a program: where lines came from, steps, accesses, times, graph, memory."""

import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import deplo
from deplo.analysis.bank_conflicts import turns
from deplo.report.data import report_data
from deplo.report.page import page


def root_of_mean(x):
    squares = (x * x).mean(-1, keepdim=True)
    return torch.sqrt(squares + 1e-6) * torch.exp(x)


def reported(program, arguments, target="sm_90a", **options) -> tuple[Any, dict[str, Any]]:
    compiled = deplo.compile(program, arguments, target=target, **options)
    return compiled, report_data(compiled, "a test")


@dataclass
class Stages:
    """The stages of a report, by name."""

    data: dict[str, Any]

    def lines(self, name: str) -> list[str]:
        return self.stage(name)["lines"]

    def stage(self, name: str) -> dict[str, Any]:
        return next(each for each in self.data["stages"] if each["name"] == name)

    def line(self, name: str, pattern: str) -> int:
        return next(n for n, line in enumerate(self.lines(name)) if re.search(pattern, line))

    def came_from(self, name: str, line: int) -> list[str]:
        """The lines of the user's file that a line of a stage came from."""
        names = [each["name"] for each in self.data["stages"]]
        lines = {line}
        for each in reversed(names[1 : names.index(name) + 1]):
            origins = self.stage(each)["from"]
            lines = {origin for here in lines for origin in origins[here] or ()}
        places = [place for here in lines for place in self.stage(names[0])["from"][here] or ()]
        return [self.data["sources"][source]["lines"][line].strip() for source, line in places]


@pytest.fixture(scope="module")
def on_gpu():
    return reported(root_of_mean, (torch.randn(8, 512),))


@pytest.fixture(scope="module")
def on_cpu():
    return reported(root_of_mean, (torch.randn(8, 512),), "cpu")


@pytest.mark.parametrize("stage", ["torch", "tensor", "loop", "tile", "kernel", "cuda"])
def test_the_texts_are_those_that_commands_print(on_gpu, stage):
    program, data = on_gpu
    assert "\n".join(Stages(data).lines(stage)) == program.ir(stage).rstrip("\n")


@pytest.mark.parametrize(
    ("stage", "pattern", "source"),
    [
        ("torch", "torch.exp", "torch.exp(x)"),
        ("tensor", r"elementwise exp\(", "torch.exp(x)"),
        ("tile", "math.sqrt", "torch.sqrt("),
        ("kernel", "math.exp ", "torch.exp(x)"),
        ("cuda", r"expf\(", "torch.exp(x)"),
        ("cuda", r"sqrtf\(", "torch.sqrt("),
        ("cuda", "__shfl", ".mean("),
    ],
)
def test_a_line_came_from_a_line_of_the_users_file(on_gpu, stage, pattern, source):
    stages = Stages(on_gpu[1])
    found = stages.came_from(stage, stages.line(stage, pattern))
    assert any(source in line for line in found), found


@pytest.mark.parametrize(
    ("instruction", "source"),
    [("MUFU.EX2", "torch.exp(x)"), ("MUFU.RSQ", "torch.sqrt("), ("SHFL.BFLY", ".mean(")],
)
def test_an_instruction_of_a_gpu_came_from_a_line_of_the_users_file(on_gpu, instruction, source):
    stages = Stages(on_gpu[1])
    found = stages.came_from("sass", stages.line("sass", instruction))
    assert any(source in line for line in found), found


def test_an_instruction_of_a_cpu_came_from_a_line_of_the_users_file(on_cpu):
    program, data = on_cpu
    stages = Stages(data)
    found = stages.came_from("asm", stages.line("asm", r"\bv?sqrt"))
    assert any("torch.sqrt(" in line for line in found), found
    plain = [line.strip() for line in program.ir("asm").expandtabs(2).splitlines()]
    shown = [line.strip() for line in stages.lines("asm")]
    assert set(shown) <= {*plain, ""}
    placed = sum(1 for origin in stages.stage("asm")["from"] if origin)
    assert placed > len(shown) / 2


def patched(lines: list[str], diff: list[str]) -> list[str]:
    """Lines after a diff with `@ LINE` for hunks."""
    result: list[str] = []
    at = 0
    for line in diff:
        sign, text = line[0], line[1:]
        if sign == "@":
            first = max(int(text) - 1, 0)
            result += lines[at:first]
            at = first
        elif sign == "+":
            result.append(text)
        else:
            assert lines[at] == text
            at += 1
            if sign == " ":
                result.append(text)
    return result + lines[at:]


@pytest.mark.parametrize("target", ["on_gpu", "on_cpu"])
def test_the_steps_of_a_kernel_lead_from_loop_ir_to_tile_ir(target, request):
    _, data = request.getfixturevalue(target)
    stages = Stages(data)
    (kernel,) = data["kernels"]
    fired = [step for step in kernel["steps"] if step["fired"]]
    assert fired
    assert any(not step["fired"] and step["diff"] is None for step in kernel["steps"])

    def own(stage: str) -> list[str]:
        ((first, end),) = stages.stage(stage)["kernels"][kernel["name"]]
        return [line.removeprefix("    ") for line in stages.lines(stage)[first:end]]

    lines = own("loop")
    for step in fired:
        lines = patched(lines, step["diff"] or [])
    # Numbers of unnamed values depend on what else is printed; they are compared without.
    numbers = re.compile(r"%\d+")
    assert [numbers.sub("%", line) for line in lines] == [
        numbers.sub("%", line) for line in own("tile")
    ]


def test_accesses_say_where_each_lane_begins(on_gpu):
    (kernel,) = on_gpu[1]["kernels"]
    stages = Stages(on_gpu[1])
    counted = [(access["operation"], access["count"]) for access in kernel["accesses"]]
    assert counted == [("loop.load", 1), ("loop.store", 1)]
    for access in kernel["accesses"]:
        assert len(access["lanes"]) == 32
        assert access["memory"] in stages.lines("tile")[access["line"]]
        assert access["cost"] >= access["least"]
        if access["space"] == "global":
            width = access["width"] * access["element_bytes"]
            touched = {b // 32 for lane in access["lanes"] for b in range(lane, lane + width)}
            assert len(touched) == access["cost"]


def test_a_transpose_shows_its_turns_of_shared_memory():
    _, data = reported(lambda x: x.t().contiguous() + 1, (torch.randn(512, 512),))
    (kernel,) = data["kernels"]
    shared = [access for access in kernel["accesses"] if access["space"] == "shared"]
    assert shared
    for access in shared:
        size = access["element_bytes"]
        assert turns([lane // size for lane in access["lanes"]], size) == access["cost"]


def test_accesses_of_a_cpu_say_their_strides():
    _, data = reported(lambda x: x.sum(1), (torch.randn(64, 48, 8),), "cpu")
    strides = {
        (access["operation"], access["stride"]) for k in data["kernels"] for access in k["accesses"]
    }
    assert strides & {("loop.load", 1), ("loop.load", 8)}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_copies_of_a_pipelined_loop_are_on_their_way_while_others_multiply(target):
    linear = nn.Linear(256, 128, bias=False).bfloat16()
    _, data = reported(linear, (torch.randn(128, 256).bfloat16(),), target)
    (kernel,) = data["kernels"]
    timeline = kernel["timeline"]
    rows = timeline["rows"]
    events = {row: [e for e in timeline["events"] if rows[e["row"]] == row] for row in rows}
    assert events["copies"]
    overlapping = [
        copy
        for copy in events["copies"]
        for product in events["products"]
        if copy["begin"] <= product["begin"] and product["end"] <= copy["end"]
    ]
    assert overlapping
    lines = Stages(data).lines("kernel")
    for event in timeline["events"]:
        assert 0 <= event["begin"] < event["end"] <= timeline["end"]
        assert event["name"].split()[0] in lines[event["line"]]
    assert "for" in lines[timeline["line"]]


def test_a_kernel_without_a_pipelined_loop_says_so(on_gpu):
    (kernel,) = on_gpu[1]["kernels"]
    assert kernel["timeline"] is None
    assert "no loop that copies" in kernel["no_timeline"]


def mlp():
    return nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_each_array_of_the_graph_goes_from_who_writes_it_to_who_reads_it(target):
    program, data = reported(mlp(), (torch.randn(16, 64),), target)
    nodes, edges = data["graph"]["nodes"], data["graph"]["edges"]
    launched = [node["name"] for node in nodes if node["kind"] == "kernel"]
    assert launched == [step.kernel for step in program.plan.launches]
    assert {node["name"] for node in nodes if node["kind"] == "parameter"} == {
        name for name, _ in mlp().named_parameters()
    }
    for node in nodes:
        reads = [edge for edge in edges if edge["to"] == node["id"]]
        writes = [edge for edge in edges if edge["from"] == node["id"]]
        assert bool(reads) == (node["kind"] in ("kernel", "result"))
        assert bool(writes) == (node["kind"] != "result")
    assert all(edge["bytes"] and edge["from"] != edge["to"] for edge in edges)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_buffers_that_are_there_at_once_do_not_overlap(target):
    program, data = reported(mlp(), (torch.randn(16, 64),), target)
    memory = data["memory"]
    placed = [buffer for buffer in memory["buffers"] if buffer["offset"] is not None]
    assert memory["arena_bytes"] == program.plan.arena_bytes
    assert placed
    taken = np.zeros((len(memory["steps"]), memory["arena_bytes"]), bool)
    for buffer in placed:
        begin, end = buffer["offset"], buffer["offset"] + buffer["bytes"]
        place = taken[buffer["first"] : buffer["last"] + 1, begin:end]
        assert not place.any()
        place[:] = True


def test_what_a_run_measured_is_said_of_each_kernel():
    program = deplo.compile(mlp(), (x := torch.randn(16, 64),), target="cpu")
    seconds = program.executable.launch_seconds(program.arguments((x,), {}), 3)
    rates = {
        "bytes_per_second": 1e10,
        "peaks": [{"name": "f32 vectors", "per_second": 1e11}],
        "source": "a test",
    }
    data = report_data(program, "a test", rates, seconds=seconds)
    total = 0.0
    for kernel in data["kernels"]:
        cost = kernel["cost"]
        assert kernel["measured_seconds"] == seconds[kernel["name"]] > 0
        assert cost["memory_seconds"] == cost["bytes"] / 1e10
        memory_bound = cost["memory_seconds"] >= cost["operations"] / 1e11
        assert cost["bound"] == ("memory" if memory_bound else "compute")
        total += kernel["launches"] * max(cost["memory_seconds"], cost["compute_seconds"])
    assert data["totals"]["least_seconds"] == pytest.approx(total)
    assert data["totals"]["launches"] == len(program.plan.launches)


def test_parts_of_a_kernel_have_its_lines_of_loop_ir_and_its_steps():
    linear = nn.Linear(2048, 64, bias=False)
    _, data = reported(linear, (torch.randn(8, 2048),), "sm_90a")
    parts = {kernel["name"] for kernel in data["kernels"]}
    assert len(parts) == 2
    for kernel in data["kernels"]:
        assert any(step["fired"] and step["diff"] for step in kernel["steps"])
    for stage in data["stages"][2:]:
        assert set(stage["kernels"]) == parts


def test_times_of_the_passes_add_up(on_gpu):
    total = on_gpu[1]["compile"]
    assert total["seconds"] == pytest.approx(sum(part["seconds"] for part in total["children"]))
    names = {each["name"] for part in total["children"] for each in part["children"]}
    assert {"decompose-torch", "tileify", "lower-to-cuda"} <= names


def chosen(x):
    return torch.cond(x.sum() > 0, lambda x: x[x.long()], lambda x: x / 2, (x,))


PROGRAMS = {
    "nothing": (lambda x: x, (torch.randn(3),), {}),
    "no elements": (lambda x: x + 1, (torch.randn(0, 4),), {}),
    "one number": (lambda x: x.exp(), (torch.randn(()),), {}),
    "a size that changes": (
        nn.Linear(8, 4),
        (torch.randn(5, 8),),
        {"dynamic_shapes": ({0: torch.export.Dim("n", min=1, max=100)},)},
    ),
    "a size found in data": (lambda x: x[x > 0], (torch.randn(50),), {}),
    "a choice": (chosen, (torch.rand(4),), {}),
    "a loop over time": (nn.LSTM(4, 4), (torch.randn(3, 2, 4),), {}),
    "a call": (lambda x: torch.linalg.svd(x)[1] * 2, (torch.randn(4, 4),), {"fallback": "eager"}),
    "windows": (nn.Conv2d(3, 4, 3), (torch.randn(1, 3, 8, 8),), {}),
    "attention": (
        F.scaled_dot_product_attention,
        tuple(torch.randn(1, 2, 32, 16) for _ in range(3)),
        {},
    ),
    "layers that repeat": (
        nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(4))),
        (torch.randn(4, 8),),
        {},
    ),
}


ON_GPUS = ("nothing", "a size that changes", "a call", "attention")


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, "cpu") for name in PROGRAMS), *((name, "sm_90a") for name in ON_GPUS)],
)
def test_programs_of_any_kind_have_a_report(name, target):
    program, arguments, options = PROGRAMS[name]
    compiled, data = reported(program, arguments, target, **options)
    assert len(page(data)) < 5e6
    json.dumps(data, allow_nan=False)
    launched = {step.kernel for plan in compiled.plan.whole for step in plan.launches}
    assert {kernel["name"] for kernel in data["kernels"]} == launched
    previous = None
    for stage in data["stages"]:
        assert len(stage["from"]) == len(stage["lines"])
        if previous is not None:
            origins = [line for each in stage["from"] for line in each or ()]
            assert all(0 <= line < len(previous["lines"]) for line in origins)
        for ranges in stage["kernels"].values():
            assert all(0 <= first < end <= len(stage["lines"]) for first, end in ranges)
        previous = stage
    last = data["stages"][-1]
    assert launched <= set(last["kernels"]) or last["name"] == "cuda"
