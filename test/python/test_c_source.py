"""C sources: gcc compiles them without a warning, they compute what PyTorch does, and check themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from c_programs import build, run_in_c
from programs import CORPUS, compiled, make

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.errors import DeploError
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source
from deplo.machine.host_cpu import find_target
from deplo.program import Program
from deplo.tools.judge import float64_reference, judge
from deplo.tools.standalone_c import standalone_c_source

PROGRAMS = (
    "softmax_bf16",
    "layer_norm_f16",
    "mlp",
    "linear_bf16",
    "grouped_causal_attention",
    "attention_bool_mask",
    "division_by_negatives",
    "int8_wraps",
    "int32_wraps",
    "casts",
    "integer_casts",
    "zero_sized_rows_sum",
    "scalar_sum",
    "special_functions",
    "special_values_f16",
    "comparisons_of_special_values",
    "extremes_with_nan",
    "huge_sums",
    "one_output_twice",
    "output_is_the_input",
    "outputs_are_views",
    "strange_bool_arithmetic",
    "scatter_folds",
    "topk_bf16",
    "cat_of_padded",
    "depthwise",
    "strided_pool",
)
"""Those of the corpus whose C has a form of its own."""


def source_of(code, file=None, config="", layer=None):
    source = load_source(file, code=code, config=config, layer=layer, seq_len=8)
    captured = capture(source.program, source.args, source.kwargs)
    return standalone_c_source(Program(captured, find_target("cpu")), source, code or file)


def run(path):
    return subprocess.run([path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gcc_computes_what_pytorch_does(name, tmp_path):
    program, args = make(name)
    ours = compiled(name)
    exact = float64_reference(program, args, {})
    with torch.no_grad():
        result = run_in_c(ours, tmp_path, args)
        verdict = judge(program(*args), result, exact, longest_reduction(ours.stage("loop")))
    assert verdict.problem is None


def test_halves_are_rounded_as_pytorch_rounds_them(tmp_path):
    bits = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
    halves = [bits.view(torch.float16), bits.view(torch.bfloat16)]
    near = torch.cat([h.float().nan_to_num(7.0, 65520.0, -65520.0) for h in halves])
    step = torch.randint(
        -(1 << 14), 1 << 14, near.shape, generator=torch.Generator().manual_seed(1)
    )
    singles = (near.view(torch.int32) + step.to(torch.int32)).view(torch.float32)
    doubles = torch.cat([near.double(), (halves[0].double() + halves[0].roll(1).double()) / 2])
    doubles = torch.cat([doubles, doubles * (1 + 2.0**-40), doubles * (1 - 2.0**-40)])

    def both(a, b, x, y):
        narrow = [v.to(t) for v in (x, y) for t in (torch.float16, torch.bfloat16)]
        return a.float(), b.float(), a.double() + 0, *narrow

    args = (*halves, singles, doubles)
    ours = run_in_c(deplo.compile(both, args, target="cpu"), tmp_path, args, "-O2")
    for mine, theirs in zip(ours, both(*args), strict=True):
        assert mine.dtype == theirs.dtype
        assert torch.equal(mine.isnan(), theirs.isnan())
        assert torch.equal(mine[~mine.isnan()], theirs[~theirs.isnan()])


def test_a_source_finds_that_it_is_right_and_that_it_is_wrong(tmp_path):
    text = source_of("x=torch.randn(37,33); F.softmax(x*x+1,-1)")
    wrong = text.replace("/= softmax_exp;", "/= 1.01f * softmax_exp;")
    assert wrong != text
    for mutant, last, code in ((text, "agrees", 0), (wrong, "differs", 3)):
        done = run(build(mutant, tmp_path / last))
        assert done.stdout.splitlines()[-1] == last, done.stdout
        assert done.returncode == code


def test_an_index_out_of_range_ends_the_program(tmp_path):
    text = source_of("i=torch.tensor([1,4,2]); torch.randn(5,7)[i]")
    assert text.count("{1LL, 4LL, 2LL}") == 1
    assert run(build(text, tmp_path / "right")).returncode == 0
    done = run(build(text.replace("{1LL, 4LL, 2LL}", "{1LL, 5LL, 2LL}"), tmp_path / "wrong"))
    assert done.returncode == 1
    assert done.stderr == "error: index out of range: expected 0 <= index < 5\n"


def test_a_layer_of_llama_agrees(tmp_path):
    pytest.importorskip("transformers")
    config = "hidden_size=64,intermediate_size=96,num_attention_heads=4,num_key_value_heads=2"
    done = run(build(source_of(None, "hf:llama", config, 0), tmp_path / "layer", "-O1"))
    assert done.stdout.splitlines()[-1] == "agrees", done.stdout


@pytest.mark.parametrize(
    "code",
    [
        "nn.Conv2d(3, 16, 3, padding=1)(torch.randn(1, 3, 30, 58))",
        "nn.Conv2d(3, 16, 5, stride=2, padding=2)(torch.randn(1, 3, 30, 58))",
        "nn.Conv1d(8, 16, 3, stride=3)(torch.randn(2, 8, 50))",
        "x=torch.randn(2,16,8,20); F.conv2d(x.mT, torch.randn(4,16,20,8), stride=2)",
        "x=torch.randn(2,3,17,31); g=torch.randn(2,8,9,16); "
        "torch.nn.grad.conv2d_weight(x, (8,3,3,3), g, stride=2, padding=1)",
    ],
)
def test_convolutions_name_no_vectors(code, tmp_path):
    done = run(build(source_of(code), tmp_path / "convolution"))
    assert done.stdout.splitlines()[-1] == "agrees", done.stdout
    source = load_source(None, code=code)
    program = Program(capture(source.program, source.args, source.kwargs), find_target("cpu"))
    assert "vector" not in program.ir("mlir")


def test_what_has_no_c_form_is_refused():
    shapes = ({0: torch.export.Dim("batch", max=64)},)
    args = (torch.randn(4, 3),)
    program = deplo.compile(lambda x: x.exp(), args, target="cpu", dynamic_shapes=shapes)
    with pytest.raises(DeploError, match="constant shapes only, and batch may change"):
        program.ir("c")
    program = deplo.compile(torch.linalg.det, (torch.randn(3, 3),), target="cpu", fallback="eager")
    with pytest.raises(DeploError, match="the program calls aten"):
        program.ir("mlir")
    with pytest.raises(DeploError, match="target sm_80 has no stage 'c'"):
        deplo.compile(torch.exp, (torch.randn(4),), target="sm_80").ir("c")


def test_mlir_opt_accepts_programs(tmp_path):
    tools = [shutil.which("mlir-opt"), *sorted(Path("/usr/lib").glob("llvm-*/bin/mlir-opt"))]
    if not any(tools):
        pytest.skip("no mlir-opt")
    for name in CORPUS:
        path = tmp_path / f"{name}.mlir"
        path.write_text(compiled(name).ir("mlir"))
        done = subprocess.run(
            [next(filter(None, tools)), "--verify-each", path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
