"""The `deplo` command line: what it prints where, and with which exit code it ends.

Commands run in this process, which has PyTorch already; `test/tools/deplo` runs a few as processes.
"""

import io
import json
import re
import textwrap
import time
from pathlib import Path

import pytest
import torch

from deplo import compile
from deplo.tools import compiling, deplo

EXP = "torch.exp(torch.randn(3))"
RMS_NORM = "nn.RMSNorm(64)(torch.randn(1, 4, 64))"
CUDA_STAGES = ("torch", "tensor", "loop", "tile", "kernel", "cuda")
PROGRAMS = """
    import itertools

    import torch

    CALLS = itertools.count(1)
    example_inputs = (torch.ones(4),)

    def differs(x):
        return x * next(CALLS)  # so export and every later call multiply by another number

    def good(x):
        return x + 1

    def raises(x):
        raise ValueError("bad luck")

    def branches(x):
        return x + 1 if x.sum() > 0 else x

    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(3))
            self.register_buffer("at", torch.tensor([0]))

        def forward(self, x):
            self.seen.index_copy_(0, self.at, x[:1])  # the fourth call in a row would be out of range
            self.at += 1
            return self.seen * 2

    counts = Counts()

    class Sized(torch.nn.Module):
        def __init__(self, size):
            super().__init__()

    class Broken(torch.nn.Module):
        def __init__(self):
            raise RuntimeError("no luck")

    def scale(x):
        return x * 2

    def scale_args():
        return torch.ones(3) + torch.ones(4)

    class NotAProgram:
        pass

    value = 3
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run `deplo` in a directory with some programs: gives exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs.py").write_text(textwrap.dedent(PROGRAMS))
    (tmp_path / "broken.py").write_text("x = undefined\n")
    (tmp_path / "no_inputs.py").write_text("def f(x):\n    return x\n")

    def command(*arguments):
        try:
            code = deplo.run(arguments)
        except SystemExit as leaving:  # argparse
            code = leaving.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return command


# --------------------------------------------------------------------------- what is printed

MARKS = {
    "torch": "torch.rms_norm %x",
    "tensor": "tensor_ir.reduce add",
    "loop": "loop.kernel @k_rms_norm",
    "tile": "tile.launch (",
    "kernel": "kernel.func @k_rms_norm",
    "cuda": "__global__ void",
    "llvm": "llvm.func @k_rms_norm",
}


@pytest.mark.parametrize("stage", MARKS)
def test_each_stage_is_printed(run, stage):
    code, out, err = run("compile", "-c", RMS_NORM, "--ir", stage)
    assert (code, err) == (0, "")
    assert MARKS[stage] in out
    assert out.endswith("}\n")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_is_told_what_takes_long(monkeypatch):
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(compiling, "PATIENCE", 0.01)
    with compiling.progress("waiting"):
        while "\r" not in stderr.getvalue():
            time.sleep(0.001)
    told = stderr.getvalue()
    assert told.startswith("\rdeplo: waiting, 0 s")
    assert told.endswith(f"\r{' ' * len('deplo: waiting, 0 s')}\r")


def test_nothing_is_told_to_a_file(monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(compiling, "PATIENCE", 0.0)
    with compiling.progress("waiting"):
        pass
    assert stderr.getvalue() == ""


def test_machine_code_is_printed(run):
    code, out, err = run("compile", "-c", RMS_NORM, "--ir", "asm")
    assert (code, err) == (0, "")
    assert "k_rms_norm" in out
    assert "ret" in out


def test_the_default_is_the_targets_last_stage(run):
    assert run("compile", "-c", EXP)[1] == run("compile", "-c", EXP, "--ir", "cuda")[1]
    cpu = run("compile", "-c", EXP, "--target", "cpu")[1]
    assert cpu == run("compile", "-c", EXP, "--ir", "llvm")[1]


def test_output_goes_to_the_file_and_not_to_stdout(run, tmp_path):
    expected = run("compile", "-c", EXP)[1]
    assert run("compile", "-c", EXP, "-o", "k.cu") == (0, "", "")
    assert (tmp_path / "k.cu").read_text() == expected


@pytest.mark.parametrize("option", ["-v", "-vv", "--timing"])
def test_stdout_has_the_artifact_only(run, option):
    code, out, err = run("compile", "-c", RMS_NORM, "--ir", "tile", option)
    assert code == 0
    assert out == run("compile", "-c", RMS_NORM, "--ir", "tile")[1]
    assert err


def test_code_may_define_a_class_and_a_function(run):
    code = """
class Twice(nn.Module):
    def forward(self, x):
        return helper(x) * 2
def helper(x):
    return x.exp()
Twice()(torch.randn(4))
"""
    assert "torch.exp" in run("compile", "-c", code, "--ir", "torch")[1]
    assert run("run", "-c", code)[0] == 0


def test_dump_dir_has_every_stage_and_kernel(run, tmp_path):
    code, out, _ = run("compile", "-c", EXP, "--dump-dir", "dump", "--target", "sm_90a")
    assert code == 0
    names = sorted(path.name for path in (tmp_path / "dump").iterdir())
    assert names[0] == "000_input.mlir"
    assert names[1] == "001_outline-repeats.mlir"
    manifest = json.loads((tmp_path / "dump" / "manifest.json").read_text())
    assert manifest["stages"] == [name for name in names if name.endswith(".mlir")]
    assert manifest["kernels"] == [name for name in names if name.endswith(".cu")]
    assert (tmp_path / "dump" / manifest["kernels"][0]).read_text() in out
    last = (tmp_path / "dump" / manifest["stages"][-1]).read_text()
    assert "cuda.func" in last


def test_dump_dir_of_the_cpu_has_llvm_ir(run, tmp_path):
    assert run("compile", "-c", EXP, "--dump-dir", "dump", "--target", "cpu")[0] == 0
    (kernel,) = (tmp_path / "dump").glob("*.ll")
    assert "define" in kernel.read_text()


# --------------------------------------------------------------------------- what is told


def test_v_says_what_was_decided_and_how_kernels_are_launched(run):
    err = run("compile", "-c", RMS_NORM, "-v")[2]
    assert re.search(r"^fuse-loops: k_\w+: merged into k_\w+", err, re.MULTILINE)
    assert re.search(r"^tileify: k_rms_norm\w*: ", err, re.MULTILINE)
    assert re.search(r"^k_rms_norm\w*: 1 launches of \d+ blocks of \d+ threads", err, re.MULTILINE)


def test_vv_shows_each_pass_as_a_diff_or_a_reason(run):
    err = run("compile", "-c", RMS_NORM, "--ir", "kernel", "-vv")[2]
    opened = re.findall(r"^>>> ([dolftkcn]:\d{3}_\w+)$", err, re.MULTILINE)
    closed = re.findall(r"^<<< ([dolftkcn]:\d{3}_\w+)$", err, re.MULTILINE)
    assert opened == closed
    assert any(re.fullmatch(r"t:\d{3}_tileify", label) for label in opened)
    skipped = re.findall(r"^--- ([dolftkcn]:\d{3}_\w+) skipped at [\w$]+: .+$", err, re.MULTILINE)
    assert skipped
    passes = {label.partition("_")[2] for label in opened + skipped}
    assert {"decompose_torch", "compose_index_maps", "cse", "fuse_loops", "tileify"} <= passes
    inside = False
    for line in err.splitlines():
        if line.startswith((">>> ", "<<< ")):
            assert inside is (line[0] == "<")
            inside = not inside
        elif inside:
            assert line[:1] in ("+", "-", " ", "@")


def test_timing_lists_every_pass(run):
    _, _, err = run("compile", "-c", EXP, "--timing")
    assert re.search(r"===- Execution time: [\d.]+ s -===", err)
    rows = re.findall(r"^ +([\d.]+) s +([\d.]+) %  (\S+)$", err, re.MULTILINE)
    assert [row[2] for row in rows][:2] == ["outline-repeats", "decompose-torch"]
    assert sum(float(row[1]) for row in rows) == pytest.approx(100, abs=2)


def test_a_schedule_is_asked_for_by_an_option_the_environment_or_the_api(run, monkeypatch):
    layer = "nn.Linear(64, 64, bias=False)(torch.randn(32, 64))"
    asked = run("compile", "-c", layer, "--schedule", "BM=32,BN=16")[1]
    assert asked != run("compile", "-c", layer)[1]
    monkeypatch.setenv("DEPLO_SCHEDULE", "block_m=32, block_n=16")
    assert run("compile", "-c", layer)[1] == asked
    assert run("compile", "-c", layer, "--schedule", "BM=16")[1] != asked
    model, x = torch.nn.Linear(64, 64, bias=False), torch.randn(32, 64)
    assert compile(model, (x,), target="sm_90a").ir("cuda") == asked
    assert compile(model, (x,), target="sm_90a", schedule="").ir("cuda") != asked


def test_switches_of_passes_are_asked_for_beside_a_schedule(run):
    layer = ["-c", "nn.Linear(96, 64, bias=False)(torch.randn(32, 96))", "--schedule", "SK=2"]
    code, cuda, err = run("compile", *layer, "--atomics", "--check-each-pass")
    assert (code, "atomicAdd(" in cuda, "check-each-pass: " in err) == (0, True, True)
    assert "atomicAdd(" not in run("compile", *layer)[1]
    two = ["-c", "nn.Linear(256, 64)(nn.Linear(64, 256)(torch.randn(8, 64)))", "--ir", "loop"]
    assert run("compile", *two)[1].count("loop.kernel") == 2
    code, merged, _ = run("compile", *two, "--no-fusion-guard", "--check-each-pass")
    assert (code, merged.count("loop.kernel")) == (0, 1)


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_passes_cuts_the_road_after_groups(run, target):
    code = ["-c", "torch.exp(torch.neg(torch.randn(8)))", "--target", target]
    stages = {"d": "tensor", "dolf": "loop", "dolft": "tile"}
    for letters, stage in stages.items():
        assert run("compile", *code, "--passes", letters)[1] == run(
            "compile", *code, "--ir", stage
        )[1]
    assert run("compile", *code, "--passes", "dol")[1].count("loop.kernel") == 2
    whole = "dolftkc" if target != "cpu" else "dolftn"
    assert run("compile", *code, "--passes", whole)[1] == run("compile", *code)[1]


def test_json_of_compile_is_the_report(run):
    code, out, err = run("compile", "-c", RMS_NORM, "--target", "cpu", "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["target"] == "cpu"
    assert {"name", "blocks", "threads", "launches"} <= set(report["kernels"][0])
    assert {"pass", "kernel", "fired", "reason"} == set(report["decisions"][0])
    assert all(step["seconds"] >= 0 for step in report["seconds"])


def test_json_of_run_is_the_verdict(run):
    code, out, err = run("run", "-c", RMS_NORM, "--json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["agrees_with_eager"] is True
    assert report["problem"] is None
    assert report["latency_seconds"].keys() == {"deplo", "eager"}
    assert 0 <= report["max_error_against_float64"]["deplo"] < 1e-5


def test_run_prints_a_table_that_ends_with_the_verdict(run):
    code, out, err = run("run", "-c", EXP)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == (
        "program target compiled latency error result".split()
    )
    assert "agrees with eager" in out.splitlines()[-1]


def test_compile_checks_each_pass_on_the_way_to_a_gpu(run):
    options = ("-c", RMS_NORM, "--target", "sm_90a", "--check-each-pass")
    code, out, err = run("compile", *options)
    assert code == 0
    assert "__global__" in out
    assert int(re.fullmatch(r"check-each-pass: (\d+) stages .* of them unchanged\n", err)[1]) > 10
    code, out, err = run("compile", *options, "--ir", "loop")
    assert (code, "loop.kernel" in out) == (0, True)
    code, _, err = run("compile", *options, "--json")
    assert (code, err) == (
        2,
        "error: --check-each-pass goes with printing a stage, not with --json\n",
    )


def test_run_says_how_many_stages_were_checked(run):
    code, out, _ = run("run", "-c", RMS_NORM, "--check-each-pass")
    assert code == 0
    assert int(re.search(r"^checked +(\d+) stages compute the same, ", out, re.MULTILINE)[1]) > 5


# --------------------------------------------------------------------------- exit codes


def test_a_result_that_differs_from_eager_is_3(run):
    code, out, err = run("run", "programs.py:differs", "--json")
    assert code == 3
    assert json.loads(out)["agrees_with_eager"] is False
    assert "error: the result differs from eager: output 0: 4 of 4 elements are wrong" in err


def test_running_for_a_gpu_that_is_not_there_is_4(run, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    code, out, err = run("run", "-c", EXP, "--target", "sm_90a")
    assert (code, out) == (4, "")
    assert err.startswith("error: no GPU")


def test_what_is_unsupported_is_named_once_with_counts_and_lines(run):
    code, out, err = run(
        "compile",
        "-c",
        "x = torch.randn(4, 4)\ny = torch.linalg.svd(x)[1]\n"
        "def f(x):\n"
        "    a = torch.linalg.eigvals(x)\n"
        "    b = torch.linalg.eigvals(torch.exp(x))\n"
        "    s = torch.linalg.svd(x)[1]\n"
        "    return a.real + b.real, s\n"
        "f(x)",
    )
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "note: left out, nothing reads it: y = torch.linalg.svd(x)[1]",
        "error: deplo does not support 2 things that this program uses:",
        "  aten.linalg_eig.default (from linalg_eigvals), 2 times",
        "    <command line>:4  a = torch.linalg.eigvals(x)",
        "    <command line>:5  b = torch.linalg.eigvals(torch.exp(x))",
        "  aten._linalg_svd.default (from linalg_svd), 1 time",
        "    <command line>:6  s = torch.linalg.svd(x)[1]",
        "Rewrite these lines, leave them out of the function that is compiled, or let PyTorch run "
        "what it can (fallback='eager').",
    ]


def test_what_is_unsupported_does_not_hide_what_uses_its_result(run):
    code = "torch.linalg.svd(torch.polar(torch.randn(4, 4), torch.ones(4, 4)).tan().sinh().real)[1]"
    err = run("compile", "-c", code)[2]
    for name in ("tan", "sinh", "_linalg_svd"):
        assert err.count(f"aten.{name}.default") == 1
    assert "does not support 3 things" in err
    assert (
        "does not support 1 thing "
        in run("compile", "-c", "torch.complex(torch.ones(4), torch.ones(4)).tan() * 2")[2]
    )


def test_control_flow_on_values_is_1(run):
    code, _, err = run("compile", "programs.py:branches")
    assert code == 1
    why, where = err.splitlines()[-2:]
    assert why.endswith("its shapes or its control flow depend on the values in tensors")
    assert "programs.py:" in where


USAGE = {
    "no program": ([], "name one program: -c CODE, FILE.py:NAME or hf:ARCHITECTURE"),
    "two programs": (["-c", EXP, "programs.py:good"], "name one program"),
    "syntax": (["-c", "torch.exp("], "<command line>:1: '(' was never closed: torch.exp("),
    "name": (["-c", "torch.exp(undefined)"], "NameError: name 'undefined' is not defined"),
    "name beside a tensor": (["-c", f"{EXP} + undefined"], "NameError: name 'undefined'"),
    "exception": (["-c", f"x = 1/0; {EXP}"], "ZeroDivisionError: division by zero"),
    "exit": (["-c", f"import sys; sys.exit(0); {EXP}"], "SystemExit: 0"),
    "attribute": (["-c", "torch.nope(torch.ones(3))"], "has no attribute 'nope'"),
    "shapes": (["-c", "torch.ones(3, 4) @ torch.ones(3, 4)"], "fails in PyTorch: RuntimeError"),
    "statement": (["-c", "x = torch.ones(3)"], "code that ends with an expression"),
    "empty": (["-c", ""], "code that ends with an expression"),
    "no tensor": (["-c", "3 + 4"], "an expression that reads a tensor"),
    "not a program": (["nonsense"], "'nonsense' is not a program: give FILE.py:NAME"),
    "no name": (["programs.py"], "'programs.py' is not a program"),
    "no file": (["missing.py:M"], "no file missing.py"),
    "no such name": (["programs.py:nope"], "programs.py has no nope"),
    "a number": (["programs.py:value"], "value of programs.py is a int, not a program"),
    "not callable": (["programs.py:NotAProgram"], "is a NotAProgram, not a program"),
    "a program that raises": (["programs.py:raises"], "fails in PyTorch: ValueError: bad luck"),
    "a class with arguments": (
        ["programs.py:Sized"],
        "Sized of programs.py cannot be made without arguments: TypeError: ",
    ),
    "a class that raises": (["programs.py:Broken"], 'raise RuntimeError("no luck")'),
    "inputs that raise": (
        ["programs.py:scale"],
        "the inputs scale_args of programs.py cannot be made: RuntimeError: ",
    ),
    "a file that raises": (["broken.py:f"], "broken.py cannot be imported: NameError"),
    "no inputs": (["no_inputs.py:f"], "define f_args = "),
    "config without hf": (["-c", EXP, "--config", "a=1"], "--config and --layer describe an hf:"),
    "layer without hf": (["programs.py:good", "--layer", "0"], "--config and --layer describe"),
    "architecture": (["hf:lama"], "no architecture 'lama'; did you mean llama"),
    "setting": (["hf:llama", "--config", "hidden=3"], "no setting 'hidden'; did you mean hidden_"),
    "malformed setting": (["hf:llama", "--config", "hidden_size"], "--config takes name=value"),
    "configuration": (
        ["hf:llama", "--config", "hidden_size=10,num_attention_heads=3", "--layer", "0"],
        "",  # whatever transformers says
    ),
    "layer": (["hf:tinyllama-1.1b", "--layer", "22"], "tinyllama-1.1b has layers 0 to 21"),
    "negative layer": (["hf:llama", "--layer", "-1"], "--layer -1: llama has layers 0 to 31"),
    "sequence": (["hf:llama", "--seq-len", "0"], "--seq-len must be at least 1"),
    "stage of the GPU": (["-c", EXP, "--target", "cpu", "--ir", "cuda"], "cpu has no stage 'cuda'"),
    "stage of the CPU": (["-c", EXP, "--target", "sm_80", "--ir", "llvm"], "no stage 'llvm'"),
    "output": (["-c", EXP, "-o", "no/such/directory.cu"], "cannot write no/such/directory.cu: "),
    "directory": (["-c", EXP, "--dump-dir", "programs.py"], "cannot write programs.py: "),
    "stage": (["-c", EXP, "--ir", "ptx"], "argument -t/--ir: invalid choice: 'ptx'"),
    "schedule": (["-c", EXP, "--schedule", "BM=16,FM=3"], "thread_m = 3 does not divide block_m"),
    "groups": (["-c", EXP, "--passes", "ol"], "to cuda they are dolftkc"),
    "no groups": (["-c", EXP, "--passes", ""], "only the last groups may be left off"),
    "groups after a stage": (["-c", EXP, "--passes", "dolft", "--ir", "loop"], "they are dolf"),
    "standalone groups": (["-c", EXP, "--passes", "dol", "--standalone"], "--standalone goes with"),
    "target": (["-c", EXP, "--target", "sm_75"], "argument --target: invalid choice: 'sm_75'"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_mistake_of_the_user_is_2_and_one_clear_message(run, case):
    arguments, message = USAGE[case]
    if arguments[0:1] and arguments[0].startswith("hf:"):
        pytest.importorskip("transformers")
    code, out, err = run("compile", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "error: " in err
    assert len([line for line in err.splitlines() if "error: " in line]) == 1


def test_a_program_that_changes_its_state_runs_from_the_same_state_each_time(run):
    code, out, err = run("run", "programs.py:counts", "--check-each-pass", "--target", "cpu")
    assert (code, "agrees with eager" in out) == (0, True), err
    code, out, err = run("bench", "programs.py:counts", "--rounds", "2", "--no-inductor")
    assert (code, "not timed" in out) == (0, False), err
    code, _, err = run("compile", "programs.py:counts", "--target", "sm_90a", "--standalone")
    assert (code, "changes its arguments in place" in err) == (2, True)


@pytest.mark.parametrize("command", ["run", "bench", "tune"])
def test_a_core_that_is_not_at_hand_is_told_how_to_run_its_code(run, command):
    code, _, err = run(command, "-c", EXP, "--target", "cpu:znver4")
    assert code == 2
    assert "DEPLO_CPU_MODEL=znver4 has --target cpu run" in err


def test_an_unknown_command_and_no_command_are_2(run):
    assert run("compiel", "-c", EXP)[0] == 2
    assert run()[0] == 2


def test_help_is_0_and_names_the_commands(run):
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert "compile" in out
    assert "run" in out


def test_stop_after_cuts_the_road_and_names_its_passes(run):
    code = "F.softmax(torch.randn(4, 8), dim=-1)"
    lifted = run("compile", "-c", code, "--stop-after", "lift-to-loops")[1]
    fused = run("compile", "-c", code, "--stop-after", "fuse-loops")[1]
    assert lifted.count("loop.kernel") > fused.count("loop.kernel") == 1
    code, out, err = run("compile", "-c", EXP, "--stop-after", "fuse")
    assert (code, out) == (2, "")
    assert "no pass 'fuse'" in err
    assert "fuse-loops" in err


# --------------------------------------------------------------------------- --dynamic


def test_dynamic_names_the_sizes_of_axes(capsys: pytest.CaptureFixture[str]) -> None:
    code = "x, y = torch.randn(4, 6), torch.randn(6); torch.softmax(x + y, 1)"
    dynamic = "x:0=rows:2:64,x:1=columns, y:0=columns::4096"
    assert deplo.run(["compile", "-c", code, "--dynamic", dynamic, "--ir", "tensor"]) == 0
    text = capsys.readouterr().out
    assert "%x: tensor<?x?xf32, #sym.extents<s0, s1>>, %y: tensor<?xf32, #sym.extents<s1>>" in text
    assert '#sym.size<"rows", 2, 64, hint = 4>, #sym.size<"columns", 2, 4096, hint = 6>' in text


@pytest.mark.parametrize(
    ("dynamic", "extents", "sizes"),
    [
        ("x:0=2*half,y:0=half", ("s0 * 2", "s0"), '"half", 2, none, hint = 4'),
        ("x:0=2*half-1:2:9,y:0=half+3", ("s0 * 2 - 1", "s0 + 3"), '"half", 2, 9, hint = 4'),
        ("x:0=3*n-2:2", ("s0 * 3 - 2",), '"n", 2, none, hint = 3'),
        ("x:0=n-1:3", ("s0",), '"x:0", 2, none, hint = 7'),
    ],
)
def test_an_axis_may_be_a_multiple_of_a_size(
    dynamic: str, extents: tuple[str, ...], sizes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, others = 8 if dynamic.startswith("x:0=2*half,") else 7, 7 if "+3" in dynamic else 4
    code = f"x, y = torch.randn({rows}, 6), torch.randn({others}, 6); x.cos().sum(0) + y.sum(0)"
    assert deplo.run(["compile", "-c", code, "--dynamic", dynamic, "--ir", "tensor"]) == 0
    text = capsys.readouterr().out
    for name, extent in zip("xy", extents, strict=False):
        assert f"%{name}: tensor<?x6xf32, #sym.extents<{extent}>>" in text
    assert f"sym.sizes = [#sym.size<{sizes}>]" in text


@pytest.mark.parametrize(
    ("dynamic", "message"),
    [
        ("x:0=0*n", "--dynamic: 0*n is no extent, give a positive factor"),
        ("x:0=2*n-1", "2*n-1 may be less than 1; say the smallest n, as in 2*n-1:1"),
        ("x:0=2*n-4", "2*n-4 may be less than 1; say the smallest n, as in 2*n-4:3"),
        ("x", "--dynamic takes NAME:AXIS=SIZE or NAME:AXIS=SIZE:MIN:MAX; got 'x'"),
        ("z:0=n", "--dynamic: no input 'z'; the inputs are x, y"),
        ("x:5=n", "input 0 has 2 axes, no axis 5"),
        ("x:0=n:8:4", "--dynamic: n has no sizes from 8 to 4"),
        ("x:1=n:2:9,y:0=n:2:8", "--dynamic gives n two ranges"),
        ("x:0=n,x:1=n", "one name is given to different sizes"),
    ],
)
def test_a_wrong_dynamic_is_one_clear_error(
    dynamic: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "x, y = torch.randn(4, 6), torch.randn(6); torch.softmax(x + y, 1)"
    assert deplo.run(["compile", "-c", code, "--dynamic", dynamic, "--ir", "torch"]) in (1, 2)
    told = capsys.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1


def test_inputs_that_consist_of_others_have_names(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "import torch\n"
        "def program(pair, *, named):\n"
        "    return pair[0] + pair[1] * named['scale']\n"
        "program_args = {'pair': (torch.ones(3, 4), torch.ones(3, 4)), 'named': {'scale': torch.ones(4)}}\n"
    )
    dynamic = "pair_0:0=n,pair_1:0=n,pair_0:1=m,pair_1:1=m,named_scale:0=m"
    out = tmp_path / "out.mlir"
    command = ["compile", f"{file}:program", "--dynamic", dynamic, "--ir", "torch", "-o", str(out)]
    assert deplo.run(command) == 0
    assert (
        "tensor<?x?xf32, #sym.extents<s0, s1>>, %named_scale: tensor<?xf32, #sym.extents<s1>>"
        in (out.read_text())
    )
