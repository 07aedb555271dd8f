"""The plan: read off the host function, checked when it is read back."""

import copy
import json
from typing import Any

import pytest
from cpu_programs import lower

from deplo.analysis.plan import build_plan
from deplo.errors import DeploError
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Array, Ref

HOST = """
llvm.func @k(%x: !llvm.ptr) attributes {deplo.kernel, deplo.messages = ["index out of range"]} {
  llvm.return
}
func.func @main(%x: memref<4x8xf32>, %p: memref<8xbf16> {deplo.parameter = "fc.weight"})
    -> (memref<4xi1>, memref<4x8xf32>) {
  %a = kernel.alloc at 64 : memref<4xf32>
  kernel.launch @k(%x, %p, %a) blocks(4) threads(1) : memref<4x8xf32>, memref<8xbf16>, memref<4xf32>
  %y = kernel.alloc : memref<4xi1>
  kernel.launch @k(%a, %a, %y) blocks(2) threads(32) : memref<4xf32>, memref<4xf32>, memref<4xi1>
  func.return %y, %x : memref<4xi1>, memref<4x8xf32>
}
"""


@pytest.fixture
def data() -> dict[str, Any]:
    module = lower(HOST, "canonicalize")
    return json.loads(json.dumps(build_plan(module, "cpu", {"k": "source of k"})))


def test_a_host_function_becomes_a_plan(data: dict[str, Any]) -> None:
    assert data["arguments"] == [
        {"name": "x", "kind": "input", "dtype": "f32", "shape": [4, 8]},
        {"name": "fc.weight", "kind": "parameter", "dtype": "bf16", "shape": [8]},
    ]
    assert data["buffers"] == [
        {"dtype": "f32", "shape": [4], "offset": 64},
        {"dtype": "i1", "shape": [4], "offset": None},
    ]
    assert [step["arguments"] for step in data["steps"]] == [
        [{"argument": 0}, {"argument": 1}, {"buffer": 0}],
        [{"buffer": 0}, {"buffer": 0}, {"buffer": 1}],
    ]
    assert data["results"] == [{"buffer": 1}, {"argument": 0}]
    assert data["arena_bytes"] == 80
    assert data["kernels"][0]["messages"] == ["index out of range"]


def test_a_plan_is_read_back(data: dict[str, Any]) -> None:
    plan = Plan.from_data(data)
    assert plan.array(Ref("argument", 1)) == Array("bf16", (8,))
    assert plan.array(Ref("buffer", 0)).nbytes == 16
    assert (plan.steps[1].blocks, plan.steps[1].threads) == (2, 32)


def edited(data: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    copied = copy.deepcopy(data)
    place: Any = copied
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return copied


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("version",), 99, "plan version 99 cannot be read; expected 3"),
        (("arguments", 0, "dtype"), "f12", "unknown dtype f12"),
        (("steps",), None, "not a valid plan: TypeError"),
        (("results", 0), {"buffer": 7}, "there is no buffer 7"),
        (("results", 0), {"register": 0}, "there is no register 0"),
        (("results", 0), {"buffer": 0}, "a result lies in the arena"),
        (("steps", 0, "kernel"), "lost", "there is no kernel @lost"),
        (("steps", 0, "threads"), 0, "@k has an impossible grid"),
        (("arena_bytes",), 70, "a buffer at 64 is not in the arena"),
        (("buffers", 0, "offset"), 4, "a buffer at 4 is not in the arena"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(
    data: dict[str, Any], path: tuple[Any, ...], to: Any, message: str
) -> None:
    with pytest.raises(DeploError, match=message):
        Plan.from_data(edited(data, *path, to=to))


def test_a_kernel_without_source_is_refused() -> None:
    with pytest.raises(DeploError, match="@k is launched but there is no source"):
        build_plan(lower(HOST, "canonicalize"), "cpu", {})


def test_a_module_without_a_host_function_is_refused() -> None:
    with pytest.raises(DeploError, match="no host function @main"):
        build_plan(lower("builtin.module {}", "canonicalize"), "cpu", {})


LOOP = """
llvm.func @k(%x: !llvm.ptr) attributes {deplo.kernel} {
  llvm.return
}
func.func @main(%h: memref<4xf32>, %x: memref<9x4xf32>) -> memref<9x4xf32> {
  %hs = kernel.alloc : memref<9x4xf32>
  kernel.loop reversed carried(%before = %h) slices(%x_t = %x) stacks(%h_t = %hs)
      : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32> {
    %a = kernel.alloc at 0 : memref<4xf32>
    kernel.launch @k(%before, %x_t, %a) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>, memref<4xf32>
    kernel.launch @k(%a, %h_t) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  }
  kernel.launch @k(%hs) blocks(1) threads(1) : memref<9x4xf32>
  func.return %hs : memref<9x4xf32>
}
"""


@pytest.fixture
def looped() -> dict[str, Any]:
    module = lower(LOOP, "canonicalize")
    return json.loads(json.dumps(build_plan(module, "cpu", {"k": "source of k"})))


def test_a_loop_is_some_of_the_steps_on_places_that_move(looped: dict[str, Any]) -> None:
    assert looped["loops"] == [{"trips": 9, "reversed": True, "begin": 0, "end": 2}]
    assert looped["places"] == [
        {"of": {"buffer": 0}, "loop": 0, "first": {"argument": 0}},
        {"of": {"argument": 1}, "loop": 0},
        {"of": {"buffer": 0}, "loop": 0},
    ]
    assert [step["arguments"] for step in looped["steps"]] == [
        [{"place": 0}, {"place": 1}, {"buffer": 1}],
        [{"buffer": 1}, {"place": 2}],
        [{"buffer": 0}],
    ]
    plan = Plan.from_data(looped)
    assert plan.array(Ref("place", 1)) == Array("f32", (4,))


@pytest.mark.parametrize(
    ("path", "to", "message"),
    [
        (("loops", 0, "end"), 4, "no loop of launches from 0 to 4"),
        (("loops", 0, "begin"), 2, "no loop of launches from 2 to 2"),
        (("loops", 0, "end"), 1, "step 1 gets a place of another loop"),
        (("loops", 0, "trips"), 8, "has no slice for each of 8 turns"),
        (("places", 0, "loop"), 1, "there is no loop 1"),
        (("places", 0, "of"), {"buffer": 2}, "there is no buffer 2"),
        (("places", 1, "of"), {"argument": 0}, "has no slice for each of 9 turns"),
        (("places", 0, "first"), {"argument": 1}, "is no slice of"),
        (("steps", 0, "arguments", 0), {"place": 3}, "there is no place 3"),
        (("steps", 2, "arguments", 0), {"place": 2}, "step 2 gets a place of another loop"),
        (("buffers", 0, "dtype"), "bf16", "is no slice of"),
    ],
)
def test_a_loop_that_cannot_run_is_refused(
    looped: dict[str, Any], path: tuple[Any, ...], to: Any, message: str
) -> None:
    with pytest.raises(DeploError, match=message):
        Plan.from_data(edited(looped, *path, to=to))


def test_calls_of_pytorch_in_a_loop_are_refused() -> None:
    text = LOOP.replace(
        "kernel.launch @k(%a, %h_t) blocks(1) threads(1) : ",
        'kernel.call "aten.exp.default"(input = %a) into(%h_t) : ',
    )
    with pytest.raises(DeploError, match=r"kernel\.call in a loop is not part of a plan"):
        build_plan(lower(text, "canonicalize"), "cpu", {"k": "source of k"})
