"""`fallback="eager"`: what deplo does not support runs in PyTorch, exactly, and is told."""

import copy
import inspect
import json
import warnings

import pytest
import torch
import torch.nn.functional as F
from stages import assert_stages_agree
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import deplo
from deplo.frontend.sources import Program as Source
from deplo.program import Program
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.plan import Plan
from deplo.tools import deplo as command

X = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))


def compile_quietly(program, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", deplo.FallbackWarning)
        return deplo.compile(program, args, target="cpu", fallback="eager")


def operators(program):
    return {call["operator"]: call["count"] for call in program.report()["calls"]}


def refusal(program, *args):
    with pytest.raises(deplo.UnsupportedOpError) as raised:
        compile_quietly(program, *args)
    return str(raised.value)


def spectral(x):
    first = torch.linalg.eigvals(x)
    second = torch.linalg.eigvals(torch.exp(x))
    u = torch.linalg.svd(x)[0]
    return u, first.real + second.real


def line_of(function, text):
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, line in enumerate(lines) if text in line)


# --------------------------------------------------------------------------- values


def test_svd_and_eigenvalues_run_between_kernels():
    program = compile_quietly(spectral, X)
    for actual, expected in zip(program(X), spectral(X), strict=True):
        torch.testing.assert_close(actual, expected)
    names = [kernel.name for kernel in program.kernels]
    assert names[:2] == ["k_exp_pointwise", "k_add_pointwise"]
    assert all(name.endswith("_in_memory_layout") for name in names[2:])  # eager's strides


@pytest.mark.parametrize("bins", [[2, 3], 4, (torch.linspace(-2, 2, 4), torch.linspace(-1, 1, 3))])
def test_results_may_be_nested(bins):
    def program(x):
        counts, (rows, columns) = torch.histogramdd(x, bins)
        return counts * 2, {"columns": columns, "rows": rows + 1}

    x = X[:, :2].contiguous()
    torch.testing.assert_close(compile_quietly(program, x)(x), program(x))


def test_it_is_the_same_at_every_stage(capsys):
    program = compile_quietly(spectral, X)
    assert_stages_agree(program, Source(spectral, (X,)), capsys)


def test_random_numbers_are_the_same_at_every_stage(capsys):
    def noisy(x):
        return F.dropout(torch.exp(x), 0.5) * 2 + torch.rand(4)

    assert_stages_agree(compile_quietly(noisy, X), Source(noisy, (X,)), capsys)


def numbers(x):  # ints, floats, infinities, bools, lists, None, absent tensors, lists of tensors
    a = torch.linalg.vander(x[0], N=3)
    b = torch.histc(x.half(), bins=5, min=-1.0, max=2.5)
    c = torch.nan_to_num(torch.special.bessel_j1(x), nan=float("inf"))
    d = torch.ops.aten._upsample_bilinear2d_aa(x[None, None], [5, 7], False)
    return a, b, c, d, torch.linalg.pinv(x, hermitian=True)


def dtypes(x):
    wide, half = (x.abs().to(dtype) for dtype in (torch.bfloat16, torch.half))
    return torch.igamma(wide, wide), torch.erfinv(x.double() / 10), torch.igammac(half, half).isnan()


def bytes_inside(
    x,
):  # uint8 is deplo's too: what a call gives kernels read, and the other way round
    mask = torch.special.bessel_j1(x.abs()).to(torch.uint8) + 250
    return mask.sum(), torch.histc(mask.float() * 2), torch.ops.aten.bucketize.Tensor(mask, x[0])


def complex_inside(x):
    z = torch.complex(x, x.exp())
    w = torch.view_as_complex(torch.stack([x, x + 1], -1)) * z.conj()
    return z.tan().abs(), w.sinh().imag, (w[:, 1:3] @ z[:2].asin()).real


@pytest.mark.parametrize("program", [numbers, dtypes, bytes_inside, complex_inside])
def test_arguments_and_dtypes(program):
    compiled = compile_quietly(program, X)
    assert operators(compiled)
    with torch.no_grad():
        expected = program(X)
    for actual, wanted in zip(compiled(X), expected, strict=True):
        torch.testing.assert_close(actual, wanted)


def test_layers_that_repeat_call_as_often_as_eager():
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 4), nn.GELU())
    stack = nn.Sequential(*[layer for _ in range(5)], *[layer for _ in range(5)]).train()
    program = compile_quietly(stack, X)
    assert list(operators(program).values()) == [10]
    torch.manual_seed(7)
    actual = program(X)
    torch.manual_seed(7)
    with torch.no_grad():
        torch.testing.assert_close(actual, stack(X))


def test_inputs_may_be_strided_and_empty():
    program = compile_quietly(lambda x: torch.special.i1(x) + 1, X.t()[::2])
    torch.testing.assert_close(program(X.t()[::2]), torch.special.i1(X.t()[::2]) + 1)
    empty = compile_quietly(lambda x: torch.special.i1(x) + 1, torch.empty(0, 3))
    assert empty(torch.empty(0, 3)).shape == (0, 3)


def test_a_view_that_only_pytorch_has():
    program = compile_quietly(lambda x: (torch.ops.aten.view.dtype(x, torch.int32), x + 1), X)
    result, _ = program(X)
    assert result.data_ptr() == X.data_ptr()
    assert torch.equal(result, X.view(torch.int32))


@torch.library.custom_op("deplo_test::product", mutates_args=())
def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    seen.append((w.data_ptr(), w.stride()))
    return x @ w


@product.register_fake
def _(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


seen = []


def test_views_with_exchanged_axes_reach_pytorch_as_such():
    w = torch.randn(3, 4, 5)
    program = compile_quietly(lambda x, w: product(x, w.permute(2, 0, 1).mT) + 1, X, w)
    torch.testing.assert_close(program(X, w), X @ w.permute(2, 1, 0) + 1)
    assert seen[-1] == (w.data_ptr(), (1, 5, 20))
    # What the user made contiguous stays so: an operator may rely on it.
    program = compile_quietly(lambda x, w: product(x, w.permute(2, 1, 0).contiguous()), X, w)
    torch.testing.assert_close(program(X, w), X @ w.permute(2, 1, 0))
    assert seen[-1][1] == (12, 3, 1)
    program = compile_quietly(lambda x, w: product(x, w.permute(0, 2, 1).mT), X, w)
    torch.testing.assert_close(program(X, w), X @ w)
    assert seen[-1] == (w.data_ptr(), (20, 5, 1))


def test_a_result_is_never_the_argument():
    program = compile_quietly(lambda x: torch.ops.aten.view.dtype(x, torch.int32) + 1, X)
    assert torch.equal(program(X), X.view(torch.int32) + 1)


class Operators(TorchDispatchMode):
    """Notes what PyTorch runs."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_a_result_with_memory_of_its_own_is_not_copied():
    program = compile_quietly(lambda x: torch.special.zeta(x + 3, x + 2) * 2, X.abs())
    for _ in range(3):
        with Operators() as ran:
            result = program(X.abs())
        torch.testing.assert_close(result, torch.special.zeta(X.abs() + 3, X.abs() + 2) * 2)
    assert [name for name in ran.names if "zeta" in name]
    assert not [name for name in ran.names if "copy_" in name or "clone" in name]


@pytest.mark.parametrize(
    ("function", "wrong"),
    [
        (torch.linalg.cholesky, -torch.eye(4)),
        (lambda x: torch.linalg.tensorinv(x.reshape(2, 2, 4), 2) + 1, torch.zeros(4, 4)),
    ],
    ids=["cholesky", "tensorinv"],
)
def test_what_the_operator_raises_is_raised(function, wrong):
    program = compile_quietly(function, torch.eye(4))
    torch.testing.assert_close(program(torch.eye(4)), function(torch.eye(4)))
    with pytest.raises(torch.linalg.LinAlgError):
        program(wrong)


# --------------------------------------------------------------------------- random numbers


def drawing(x):
    first = F.dropout(x, 0.5)
    second = torch.rand(4) + torch.randn_like(x)
    third = torch.empty(4).uniform_(1.0, 2.0)
    return first + second, third, torch.bernoulli(torch.sigmoid(x)), F.rrelu(x, training=True)


def test_random_numbers_are_those_of_eager_and_so_is_the_generator_after():
    program = compile_quietly(drawing, X)
    torch.manual_seed(7)
    expected, after = drawing(X), torch.get_rng_state()
    torch.manual_seed(7)
    for actual, wanted in zip(program(X), expected, strict=True):
        torch.testing.assert_close(actual, wanted)
    assert torch.equal(torch.get_rng_state(), after)
    assert not torch.equal(program(X)[1], expected[1]), "the next call draws the next numbers"


def test_a_draw_that_nothing_uses_is_not_dropped_silently():
    def program(x):
        torch.rand(3)
        return x + torch.rand(4)

    compiled = compile_quietly(program, X)
    torch.manual_seed(7)
    expected = program(X)
    torch.manual_seed(7)
    torch.testing.assert_close(compiled(X), expected)

    def in_place(x):
        torch.rand(3)
        return x + torch.empty(4).uniform_()

    assert "draws random numbers in 2 places but uses those of 1 only" in refusal(in_place, X)


def test_dropout_that_does_nothing_needs_no_call():
    program = compile_quietly(nn.Sequential(nn.Dropout(0.5), nn.RReLU()).eval(), X)
    assert operators(program) == {}


# --------------------------------------------------------------------------- what is told


def test_one_warning_names_each_operator_once():
    with pytest.warns(deplo.FallbackWarning) as caught:
        deplo.compile(spectral, (X,), target="cpu", fallback="eager")
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("deplo: 3 operators run in PyTorch: aten.linalg_eig \u00d72 (")
    for marker in ("first = ", "second = ", "u = "):
        assert f"test_fallback.py:{line_of(spectral, marker)}" in text
    assert "aten._linalg_svd \u00d71" in text
    assert warning.filename == __file__


def test_nothing_is_told_where_nothing_falls_back():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = deplo.compile(torch.exp, (X,), target="cpu", fallback="eager")
    assert program.report()["calls"] == []


def test_an_operator_of_the_contract_falls_back_for_its_arguments_only_and_says_why():
    def program(x, i):
        return torch.remainder(x.double(), 0.5), torch.remainder(x, 0.5), i**2

    compiled = compile_quietly(program, X, torch.arange(4))
    (call,) = compiled.report()["calls"]
    assert call["operator"] == "aten.remainder.Scalar"
    assert call["count"] == 1
    assert call["reason"] == "the remainder of f64 values, which deplo cannot give exactly"
    assert call["where"][0].endswith(f"test_fallback.py:{line_of(program, 'return')}")
    for actual, wanted in zip(
        compiled(X, torch.arange(4)), program(X, torch.arange(4)), strict=True
    ):
        torch.testing.assert_close(actual, wanted)


def test_a_reason_found_by_the_front_end_is_told_too():
    calls = compile_quietly(lambda x: torch.complex(x, x).tan().real, X).report()["calls"]
    reasons = {call["operator"]: call["reason"] for call in calls}
    assert reasons["aten.tan.default"] == "complex numbers"


def test_without_fallback_the_error_offers_it():
    with pytest.raises(deplo.UnsupportedOpError, match=r"fallback='eager'"):
        deplo.compile(spectral, (X,), target="cpu")


@pytest.mark.parametrize("verb", ["run", "compile"])
def test_the_command_line_tells_it_on_stderr(verb, capsys):
    code = "torch.linalg.svd(torch.ones(3, 3).exp())[1] + 1"
    assert command.run([verb, "-c", code, "--target", "cpu", "--fallback", "eager"]) == 0
    out, err = capsys.readouterr()
    assert err == "deplo: 1 operator runs in PyTorch: aten._linalg_svd \u00d71 (<command line>:1)\n"
    marker = 'kernel.call "aten._linalg_svd.default"' if verb == "compile" else "PyTorch    1 calls"
    assert marker in out


def test_the_command_line_refuses_by_default(capsys):
    assert command.run(["run", "-c", "torch.linalg.svd(torch.ones(3, 3))[1]"]) == 1
    assert "aten._linalg_svd.default" in capsys.readouterr().err


def test_the_command_line_judges_random_programs_by_the_same_numbers(capsys):
    code = "F.dropout(torch.ones(100), 0.5) + torch.rand(100)"
    assert command.run(["run", "-c", code, "--fallback", "eager", "--check-each-pass"]) == 0
    assert "agrees with eager" in capsys.readouterr().out


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (lambda x: x.to(torch.complex32), "dtype = torch.complex32"),
        (lambda x: x.as_strided_scatter(x[:2, :2], (2, 2), (1, 1)), "goes by strides"),
        (lambda x: torch.einsum("ij,jk->ik", x, x).to("meta"), "device = meta"),
        (lambda x: torch.special.bessel_j1(x).to(torch.uint16).float(), "dtype = torch.uint16"),
        (lambda x: (torch.special.bessel_j1(x[0, 0]).item(), x), "not a tensor"),
    ],
    ids=["complex", "strides", "device", "uint16", "item"],
)
def test_what_cannot_be_called_is_one_error(program, reason):
    message = refusal(program, X)
    assert reason in message
    assert "fallback=" not in message


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
def test_an_input_changes_beside_a_call():
    def program(x):
        return x.add_(torch.special.bessel_j1(x))

    mine, eager = X.clone(), X.clone()
    assert deplo.compile(program, (X,), fallback="eager")(mine) is mine
    torch.testing.assert_close(mine, program(eager))


def test_an_unknown_fallback_is_a_usage_error():
    with pytest.raises(deplo.UsageError, match="'error' or 'eager', not 'torch'"):
        deplo.compile(torch.exp, (X,), fallback="torch")  # pyright: ignore[reportArgumentType]


# --------------------------------------------------------------------------- the plan


def test_the_plan_is_plain_data():
    program = compile_quietly(numbers, X)
    calls = [vars(step) for step in program.plan.calls]
    called = {call["operator"] for call in calls}
    assert called >= {"aten.histc.default", "aten._upsample_bilinear2d_aa.default"}
    histc = next(c for c in calls if c["operator"] == "aten.histc.default")
    assert histc["arguments"]["bins"] == 5
    assert histc["arguments"]["max"] == 2.5


@pytest.fixture
def data():
    from deplo.analysis.plan import build_plan
    from deplo.codegen.llvm_sources import llvm_sources

    def program(x):
        return torch.special.bessel_j0(x.exp()), torch.clamp_min(torch.special.bessel_j1(x), float("-inf"))

    module = compile_quietly(program, X).stage("llvm")
    return json.loads(json.dumps(build_plan(module, "cpu", llvm_sources(module)), allow_nan=False))


def test_a_plan_with_calls_is_read_back(data):
    j0, j1 = CpuProgram(Plan.from_data(data))(X)
    torch.testing.assert_close(j0, torch.special.bessel_j0(X.exp()))
    torch.testing.assert_close(j1, torch.special.bessel_j1(X))


def test_numpy_arrays_cannot_be_called_with(data):
    with pytest.raises(
        deplo.UsageError, match=r"PyTorch run aten\.\w+\.default: pass torch tensors"
    ):
        CpuProgram(Plan.from_data(data))(X.numpy())


def _permuted(call, axes):
    call["arguments"]["input"]["axes"] = axes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda call: call["results"][0].update(buffer=99), "there is no buffer 99"),
        (lambda call: call["arguments"].update(input={"buffer": 77}), "there is no buffer 77"),
        (lambda call: call["arguments"].update(x={"open": "file"}), "cannot have the argument"),
        (lambda call: _permuted(call, [0, 0]), r"\[0, 0\] does not name each axis once"),
        (lambda call: _permuted(call, [0, 2, 1]), r"no axes \(0, 2, 1\) of f32\[4, 4\]"),
        (lambda call: call.update(results=[{"argument": 0}]), "a call gives an argument"),
    ],
    ids=["result", "operand", "argument", "permutation", "rank", "writes an argument"],
)
def test_a_wrong_call_is_refused(data, change, message):
    wrong = copy.deepcopy(data)
    change(next(step for step in wrong["steps"] if "call" in step))
    with pytest.raises(deplo.DeploError, match=message):
        Plan.from_data(wrong)


def test_an_array_of_a_call_is_not_in_the_arena(data):
    call = next(step for step in data["steps"] if "call" in step)
    data["buffers"][call["results"][0]["buffer"]]["offset"] = 0
    data["arena_bytes"] = 1024
    with pytest.raises(deplo.DeploError, match="lies in the arena"):
        Plan.from_data(data)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aten.no_such_operator.default", "has no operator aten.no_such_operator"),
        ("aten.argmax.default", "gave"),
        ("aten.matmul.default", "needs an argument other"),
    ],
)
def test_a_call_that_does_not_fit_this_pytorch_is_an_error(data, name, message):
    call = next(step for step in data["steps"] if "call" in step)
    call["call"] = name
    with pytest.raises(deplo.DeploError, match=message):
        CpuProgram(Plan.from_data(data))(X)


def test_a_gpu_program_keeps_its_calls():
    captured = compile_quietly(spectral, X).captured
    from deplo.machine.targets import get_target

    assert len(Program(captured, get_target("sm_90a")).plan.calls) == 5


@pytest.mark.parametrize("message", [(), ("not so",)])
def test_an_assertion_that_pytorch_runs_is_not_dropped(message):
    def program(x):
        torch._assert_async((x > 0).all(), *message)
        return x * 2

    compiled = compile_quietly(program, X.abs() + 1)
    assert torch.equal(compiled(X.abs() + 1), (X.abs() + 1) * 2)
    with pytest.raises(RuntimeError):
        compiled(-X.abs())


def test_kernels_that_run_at_once_behind_a_call_are_called_again_and_again():
    """The numbers of a plan's steps count its calls, too."""
    x = torch.randn(256, 256, generator=torch.Generator().manual_seed(2))

    def independent(x):
        turned = torch.linalg.eigh(x + x.T)[1]
        return turned @ x, turned.T @ x, turned @ x[5:].T

    program = compile_quietly(independent, x)
    assert program.report()["calls"]
    assert max(map(len, program.report()["groups"])) > 1
    expected = independent(x)
    for _ in range(9):
        for mine, eager in zip(program(x), expected, strict=True):
            torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-2)


class _Operators(TorchDispatchMode):
    """Which operators PyTorch runs."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.name())
        return func(*args, **(kwargs or {}))


def test_a_graph_that_pytorch_has_to_run_is_that_of_eager():
    """Not what it was taken apart to: that would be more operators, and slower than without a compiler."""

    def program(x, weight):
        y = F.layer_norm(F.gelu(x), (8,), weight)
        return y.as_strided_scatter(x[:2, :2], (2, 2), (1, 1)) * x.sum()  # writes an element twice

    x, weight = (torch.randn(shape, requires_grad=True) for shape in ((4, 8), (8,)))
    compiled = torch.compile(program, backend="deplo")
    with (
        pytest.warns(deplo.FallbackWarning, match="a graph of .* runs in PyTorch"),
        torch.no_grad(),
    ):
        compiled(x, weight)
    with torch.no_grad(), _Operators() as ran:
        result = compiled(x, weight)
    assert "aten::native_layer_norm" in ran.names
    assert torch.equal(result, program(x, weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", deplo.FallbackWarning)
        compiled(x, weight).sum().backward()
    gradients = x.grad, weight.grad
    x.grad = weight.grad = None
    program(x, weight).sum().backward()
    assert all(map(torch.equal, gradients, (x.grad, weight.grad)))
