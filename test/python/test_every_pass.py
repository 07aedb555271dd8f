"""No pass of `deplo-opt` is silent: of a program of each level, it changes it or says why it does not."""

import contextlib
import io

import pytest
from level_programs import PROGRAMS

from deplo.passes import PASSES
from deplo.passes.levels import LEVELS, levels_of
from deplo.passes.pipelines import PIPELINES
from deplo.tools.deplo_opt import run


@pytest.fixture
def opt(tmp_path, monkeypatch):
    """Run `deplo-opt` in this process; gives the exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def driver(text, *arguments):
        path = tmp_path / "program.mlir"
        path.write_text(text)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run([str(path), *arguments])
        return code, out.getvalue(), err.getvalue()

    return driver


def faults(code, out, err, before):
    """What is wrong with a run that prints `before` if it changes nothing; "" if nothing is."""
    errors = [line for line in err.splitlines() if "error: " in line]
    if "internal error" in err or "reproducer" in err:
        return errors[0]
    if code:
        return "" if len(errors) == 1 and not out else f"{len(errors)} errors, {len(out)} bytes"
    remarks = [line.partition("remark: ")[2] for line in err.splitlines() if "remark: " in line]
    if out == before and not remarks:
        return "neither a change nor a remark"
    told = [r for r in remarks if not any(no in r for no in (" declined: ", ": no ", " nothing"))]
    return f"nothing changed, but {told[0]}" if out == before and told else ""


@pytest.mark.parametrize("level", PROGRAMS)
def test_every_pass_changes_the_program_or_says_why_not(level, opt):
    _, before, _ = opt(PROGRAMS[level])
    runs = {name: opt(PROGRAMS[level], "-p", name, "--remarks") for name in PASSES}
    assert {name: why for name, each in runs.items() if (why := faults(*each, before))} == {}


@pytest.mark.parametrize("level", PROGRAMS)
def test_a_pass_of_another_level_names_the_operations_that_it_looks_for(level, opt):
    crossing = ("lift-to-loops", "schedule", "merge-guards", "assign-arena", "cut-loops")
    for name in crossing:
        wanted, _ = levels_of(name)
        code, _, err = opt(PROGRAMS[level], "-p", name, "--remarks")
        assert code == 0
        host = wanted == "host" and level in ("kernel", "scf")
        assert (f"{name}: no {LEVELS[wanted].mark}" in err) == (wanted != level and not host)


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("level", PROGRAMS)
def test_every_pipeline_changes_the_program_or_says_why_not(level, name, opt):
    _, before, _ = opt(PROGRAMS[level])
    assert faults(*opt(PROGRAMS[level], "-p", name, "--remarks"), before) == ""


@pytest.mark.parametrize(
    ("level", "target", "said"),
    [
        ("torch", "cuda", "this is Torch IR: run torch-to-cuda first"),
        ("tensor_ir", "c", "this is Tensor IR: run tensor-to-mlir first"),
        ("loop", "llvm", "this is Loop IR: run loop-to-llvm first"),
        ("tile", "cuda", "this is Tile IR: run tile-to-cuda first"),
        ("kernel", "cuda", "this is Kernel IR: run kernel-to-cuda first"),
        ("kernel", "c", "this is Kernel IR: start from Loop IR, with loop-to-mlir"),
        ("scf", "cuda", "start from Loop IR, with loop-to-cuda"),
        ("scf", "c", "run convert-to-mlir first"),
        ("mlir", "cuda", "the program has none"),
        ("loop", "wgsl", "writes operations of gpu, and the program has none"),
        ("loop", "riscv-asm", "writes operations of riscv, and the program has none"),
    ],
)
def test_a_text_of_another_level_is_refused_with_the_pipeline_that_makes_it(
    level, target, said, opt
):
    code, out, err = opt(PROGRAMS[level], "-t", target)
    assert (code, out) == (1, "")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("level", "pipeline", "target"),
    [("loop", "loop-to-llvm", "llvm"), ("llvm", "", "llvm"), ("mlir", "", "c"), ("cuda", "", "cuda")],
)
def test_a_text_of_its_level_is_written(level, pipeline, target, opt):
    code, out, err = opt(PROGRAMS[level], "-p", pipeline, "-t", target, "--assume=race-free")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) > 5


@pytest.mark.parametrize(
    ("level", "pipeline", "said"),
    [
        ("loop", "loop-to-cuda{target=cpu}", "for a GPU, and cpu is a CPU: run loop-to-llvm{target=cpu}"),
        ("loop", "loop-to-llvm{target=sm_90a}", "run loop-to-cuda{target=sm_90a}"),
        ("tile", "tile-to-mlir{target=sm_120}", "run tile-to-cuda{target=sm_120}"),
        ("loop", "convert-to-mlir", "run loop-to-tile{target=cpu},lower-tile-to-scf first"),
        ("kernel", "convert-to-mlir", "this is Kernel IR; lower-tile-to-scf makes it of Tile IR"),
        ("torch", "materialize-tile", "no tile.launch in @main: run torch-to-tensor,tensor-to-loop,tileify"),
        ("loop", "lower-tile-to-scf", "run `tileify` first"),
    ],
)
def test_a_mistake_is_one_error_that_names_the_remedy(level, pipeline, said, opt):
    code, _, err = opt(PROGRAMS[level], "-p", pipeline)
    assert code
    assert said in err
    assert "internal" not in err


def test_more_threads_than_a_block_has_are_refused(opt):
    text = PROGRAMS["loop"].replace("8", "4096")
    code, _, err = opt(text, "-p", "tileify,materialize-tile")
    assert code == 1
    assert "a block has at most 1024 threads, not 4096; run `blockify-launch` first" in err


@pytest.mark.parametrize("asked", ["sm_90a", "cpu"])
def test_a_machine_is_no_text(asked, opt):
    code, _, err = opt(PROGRAMS["loop"], "-t", asked)
    assert code == 2
    assert f"{{target={asked}}}' -t" in err
