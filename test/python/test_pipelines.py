"""The named pipelines are what their names say, and cheap until they run."""

import pytest
from xdsl.utils.arg_spec import parse_pipeline

from deplo.passes import PASSES, get_all_passes
from deplo.passes.decisions import record, recording
from deplo.passes.pipelines import (
    PIPELINES,
    CpuPipeline,
    expand,
    get_all_available_passes,
    get_all_pipelines,
    make_passes,
)


def passes_of(text):
    return [str(each.spec()) for each in expand(make_passes(parse_pipeline(text)))]


@pytest.mark.parametrize("name", PASSES)
def test_each_pass_loads_under_its_name(name):
    assert get_all_passes()[name]().name == name


@pytest.mark.parametrize("name", PIPELINES)
def test_each_pipeline_expands_to_passes_that_exist(name):
    assert all(spec.partition("{")[0] in get_all_available_passes() for spec in passes_of(name))


def test_pipelines_of_one_road_are_suffixes_of_each_other():
    whole = passes_of("torch-to-cuda{target=sm_80}")
    for start in ("tensor", "loop", "tile", "kernel"):
        part = passes_of(f"{start}-to-cuda{{target=sm_80}}")
        assert whole[-len(part) :] == part
    assert whole[-1].startswith("lower-to-cuda")


def test_target_reaches_the_passes_that_take_one():
    assert 'blockify-launch{target="sm_80"}' in passes_of("loop-to-tile{target=sm_80}")


def test_default_target_is_the_roads_own():
    assert get_all_pipelines()["loop-to-cuda"]()().target == "sm_90a"
    assert issubclass(get_all_pipelines()["loop-to-llvm"](), CpuPipeline)
    assert get_all_pipelines()["loop-to-llvm"]()().target == "cpu"


def test_decisions_reach_every_recording_around_them():
    record("fuse-loops", "k0", True, "nobody listens")
    with recording() as outer:
        record("fuse-loops", "k1", True, "merged")
        with recording() as inner:
            record("fuse-loops", "k2", False, "recomputes too much")
    assert [str(each) for each in inner] == ["fuse-loops: k2: declined: recomputes too much"]
    assert [each.kernel for each in outer] == ["k1", "k2"]
