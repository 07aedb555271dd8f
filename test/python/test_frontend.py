"""The front end: what is captured, under which names, and how a call is organized."""

import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from xdsl.dialects.builtin import FileLineColLoc

import deplo
from deplo.dialects.torch_base import TorchOp
from deplo.dialects.torch_ops import CHECKED
from deplo.errors import UsageError
from deplo.frontend.arguments import CHECKS
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source

X, Y = torch.randn(4, 4), torch.randn(4, 4)


def ops(captured):
    return [op for op in captured.module.walk() if isinstance(op, TorchOp)]


def text(captured):
    return str(captured.module)


def test_arguments_without_a_place_in_the_ir_are_all_checked():
    assert set(CHECKED) == set(CHECKS)


# --------------------------------------------------------------------------- capture


def test_gradient_modes_inside_a_program_leave_no_trace():
    def program(x):
        with torch.no_grad():
            y = x * 2
        with torch.enable_grad():
            return y + 1

    assert [op.name for op in ops(capture(program, (X,)))] == [
        "torch.mul_scalar",
        "torch.add_scalar",
    ]


def test_what_nothing_reads_is_dropped():
    def program(x):
        y = x.masked_fill(x > 0, -2.0)  # is replaced by what it decomposes into
        torch.stack([x, y])
        return y

    names = [op.name for op in ops(capture(program, (X,)))]
    assert names == ["torch.gt_scalar", "torch.scalar_tensor", "torch.where"]


def test_each_operation_has_the_line_that_calls_it():
    class Twice(nn.Module):
        def forward(self, x, again=True):
            y = torch.exp(x)
            return self(y, again=False) if again else y

    first = Twice.forward.__code__.co_firstlineno
    captured = capture(Twice(), (X,))
    assert [op.location.line.data for op in ops(captured)] == [first + 1, first + 1]
    assert {op.location.filename.data for op in ops(captured)} == {__file__}


@pytest.mark.parametrize("where", ["forward", "hook"])
def test_a_program_that_fails_leaves_pytorch_as_it_was(where):
    def fails(*_):
        raise ValueError("no input is good enough")

    model = nn.Sequential(nn.Linear(4, 4))
    if where == "hook":
        model.register_forward_pre_hook(fails)
    else:
        model[0].forward = fails
    with pytest.raises(UsageError, match="no input is good enough"):
        capture(model, (X,))
    assert not torch.overrides._get_current_function_mode_stack()
    assert "forward" not in vars(model)


def test_rms_norm_stays_whole_and_keeps_its_names():
    captured = capture(nn.RMSNorm(8), (torch.randn(2, 8),))
    assert "func.func @main(%x: tensor<2x8xf32>, %p_weight: tensor<8xf32>" in text(captured)
    assert '{deplo.parameter = "weight"}' in text(captured)
    assert "%rms_norm = torch.rms_norm %x, %p_weight {normalized_shape = [8]}" in text(captured)


def test_composite_operators_stay_whole():
    def program(x):
        y = F.silu(F.gelu(F.layer_norm(F.linear(x, x), (4,))))
        return F.scaled_dot_product_attention(y, y, y).softmax(-1) @ F.log_softmax(x, 0)

    names = [op.name.removeprefix("torch.") for op in ops(capture(program, (X,)))]
    assert names == (
        "linear layer_norm gelu silu scaled_dot_product_attention softmax log_softmax matmul".split()
    )


def test_numbers_become_properties():
    assert "torch.mul_scalar %x {other = 0.5 : f64}" in text(capture(lambda x: x * 0.5, (X,)))
    assert "{other = 1, alpha = 2}" in text(capture(lambda x: torch.add(x, 1, alpha=2), (X,)))


def test_operations_have_the_location_of_the_users_line():
    def program(x):
        return torch.exp(x)

    (op,) = ops(capture(program, (X,)))
    assert isinstance(op.location, FileLineColLoc)
    assert op.location.filename.data == __file__
    assert op.location.line.data == program.__code__.co_firstlineno + 1


class Holder(nn.Module):
    """One parameter, one buffer, one constant."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))
        self.offset = torch.arange(4.0)

    def forward(self, x, flag=3, *, extra=None):
        y = self.inner(x) * self.scale + self.offset
        return {"y": y + extra["a"], "same": x, "none": None, "flag": flag, "pair": (y, y)}


def test_parameters_buffers_and_constants_are_arguments():
    program = Holder()
    captured = capture(program, (X,), {"extra": {"a": torch.zeros(4)}})
    sources = {a.name: (a.source, a.target) for a in captured.arguments}
    assert sources == {
        "x": ("input", "x"),
        "extra_a": ("input", "extra_a"),
        "p_inner_weight": ("parameter", "inner.weight"),
        "p_inner_bias": ("parameter", "inner.bias"),
        "b_scale": ("buffer", "scale"),
        "c_offset": ("constant", "offset"),
    }
    assert captured.tensors["p_inner_weight"].data_ptr() == program.inner.weight.data_ptr()
    assert captured.tensors["c_offset"].tolist() == [0, 1, 2, 3]


class Bare(nn.Module):
    """Neither inputs nor state of its own."""

    def forward(self):
        return X + Y, X @ Y


@pytest.mark.parametrize(
    "program", [Bare(), lambda: X + Y, lambda: torch.where(X > 0, X, Y * X)], ids=["module", "sum", "choice"]
)
def test_a_program_without_inputs_reads_tensors_around_it(program):
    captured = capture(program, (), {})
    assert {a.source for a in captured.arguments} == {"constant"}
    assert not isinstance(program, nn.Module) or not list(program.buffers())


def test_inputs_and_outputs_keep_their_organization():
    captured = capture(Holder(), (X, 5), {"extra": {"a": torch.zeros(4)}})
    flat = captured.flatten_inputs((X, 5), {"extra": {"a": torch.ones(4)}})
    assert flat[0] is X
    assert captured.constants == {1: 5}
    arguments = [
        flat[a.flat_index] if a.flat_index is not None else None for a in captured.arguments
    ]
    results = ["first", "second"]
    outputs = captured.unflatten_outputs(results, arguments)
    assert outputs["same"] is X
    assert outputs["none"] is None
    assert outputs["flag"] == 5
    assert outputs["y"] == "first"
    assert outputs["pair"] == ("second", "second")


def test_a_call_must_be_organized_as_captured():
    captured = capture(Holder(), (X, 5), {"extra": {"a": torch.zeros(4)}})
    with pytest.raises(UsageError, match="organized"):
        captured.flatten_inputs((X,), {"extra": {"a": torch.zeros(4)}})
    with pytest.raises(UsageError, match=r"input 1 is 6, but the program was compiled for 5"):
        captured.flatten_inputs((X, 6), {"extra": {"a": torch.zeros(4)}})


def test_keyword_arguments_may_come_in_any_order():
    def program(*, a, b):
        return a - b

    captured = capture(program, (), {"a": X, "b": X + 1})
    flat = captured.flatten_inputs((), {"b": X + 1, "a": X})
    assert torch.equal(flat[captured.arguments[0].flat_index], X)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool]
)
def test_dtypes_are_kept(dtype):
    captured = capture(lambda x: x.flip(0), (torch.zeros(2, 3).to(dtype),))
    (result,) = ops(captured)[-1].results
    assert captured.arguments[0].dtype is dtype
    assert str(result.type).startswith("tensor<2x3x")


def test_zero_dim_and_empty_inputs():
    captured = capture(lambda s, e: (s * 2, e.sum(0)), (torch.tensor(1.0), torch.zeros(0, 3)))
    assert "(%s: tensor<f32>, %e: tensor<0x3xf32>) -> (tensor<f32>, tensor<3xf32>)" in text(
        captured
    )


def test_bound_methods_and_built_in_functions():
    class Scaler:
        factor = 3

        def apply(self, x):
            return x * self.factor

    assert "{other = 3}" in text(capture(Scaler().apply, (X,)))
    assert "torch.exp" in text(capture(torch.exp, (X,)))


# --------------------------------------------------------------------------- -c


def inputs_of(code):
    source = load_source(code=code)
    return source, [a.name for a in capture(source.program, source.args, source.kwargs).arguments]


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("nn.RMSNorm(8)(torch.randn(1, 8))", ["x", "p_weight"]),
        ("nn.Linear(3, 2)(torch.randn(4, 3))", ["input", "p_weight", "p_bias"]),
        ("x=torch.randn(4);0.5*x*(1+torch.tanh(x))", ["x"]),
        ("F.softmax(torch.randn(4,8),dim=-1)", ["x"]),
        ("torch.exp(torch.randn(4,8).sum(-1,True))", ["x"]),
        ("torch.randn(4) + torch.ones(4)", ["x", "x_1"]),
        ("a=torch.randn(3,5);b=torch.randn(7,3);torch.cat([a,b.T],1)", ["a", "b"]),
        ("m=nn.Linear(3,2,bias=False);m(torch.randn(4,3))+1", ["x", "p_m_weight"]),
        ("F.relu(nn.Linear(3,2,bias=False)(torch.randn(4,3)))", ["x", "p_module_weight"]),
        (
            "class M(nn.Module):\n  def forward(self, z): return z + 1\nM()(torch.randn(3))",
            ["z"],
        ),
        ("torch.arange(4)", ["x"]),
    ],
)
def test_code_names_its_inputs(code, names):
    assert inputs_of(code)[1] == names


def test_code_is_the_same_at_each_call():
    first, second = (load_source(code="nn.Linear(3,2)(torch.randn(4,3))") for _ in range(2))
    assert torch.equal(first.args[0], second.args[0])
    assert torch.equal(first.program.weight, second.program.weight)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1+", "invalid syntax"),
        ("x = torch.randn(3)", "ends with an expression"),
        ("1 + 1", "reads a tensor"),
        ("torch.randn(3)[nothing]", "cannot be captured|not defined"),
        ("y = undefined; y", "NameError"),
    ],
)
def test_code_that_is_no_program(code, message):
    with pytest.raises(Exception, match=message):
        inputs_of(code)


def test_locations_of_code_name_its_line():
    source = load_source(code="x = torch.randn(4)\ntorch.exp(x)")
    (op,) = ops(capture(source.program, source.args))
    assert (op.location.filename.data, op.location.line.data) == ("<command line>", 2)


# --------------------------------------------------------------------------- files


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(
        "import torch\nfrom torch import nn\n"
        "class Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.up = nn.Linear(4, 8)\n"
        "    def forward(self, x):\n        return self.up(x).relu()\n"
        "net = Net()\n"
        "def double(a, *, b):\n    return a + b\n"
        "example_inputs = (torch.randn(2, 4),)\n"
        "double_args = lambda: {'a': torch.ones(3), 'b': torch.ones(3)}\n"
        "number = 3\n"
    )
    return path


@pytest.mark.parametrize(
    ("name", "inputs"), [("Net", ["x"]), ("net", ["x"]), ("double", ["a", "b"])]
)
def test_files_give_modules_classes_and_functions(model_file, name, inputs):
    source = load_source(f"{model_file}:{name}")
    captured = capture(source.program, source.args, source.kwargs)
    assert [a.name for a in captured.arguments if a.source == "input"] == inputs
    assert str(model_file.parent) not in sys.path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{file}:missing", "has no missing"),
        ("{file}:number", "not a program"),
        ("{file}", "is not a program"),
        ("nowhere.py:net", "no file nowhere.py"),
    ],
)
def test_names_that_are_no_program(model_file, name, message):
    with pytest.raises(UsageError, match=message):
        load_source(name.format(file=model_file))


# --------------------------------------------------------------------------- Hugging Face

SMALL = "hidden_size=64,num_attention_heads=4,vocab_size=128"


@pytest.mark.parametrize(
    ("name", "config", "operator"),
    [
        ("llama", f"{SMALL},intermediate_size=96,num_key_value_heads=2", "is_causal = true"),
        ("qwen2", f"{SMALL},intermediate_size=96,num_key_value_heads=2", "enable_gqa = true"),
        ("gpt2", "n_embd=64,n_head=4", "torch.addmm"),
        ("bert", f"{SMALL},intermediate_size=96", "torch.layer_norm"),
    ],
)
def test_a_layer_of_an_architecture(name, config, operator):
    pytest.importorskip("transformers")
    source = load_source(f"hf:{name}", config=config, layer=0, seq_len=16)
    captured = capture(source.program, source.args, source.kwargs)
    assert operator in text(captured)
    assert captured.arguments[0].name == "hidden_states"
    assert captured.arguments[0].shape == (1, 16, 64)


def test_presets_have_the_published_shapes():
    pytest.importorskip("transformers")
    source = load_source("hf:tinyllama-1.1b", config="intermediate_size=64", layer=0, seq_len=8)
    attention = source.program.self_attn
    assert attention.q_proj.weight.shape == (2048, 2048)
    assert attention.k_proj.weight.shape == (4 * 64, 2048)


@pytest.mark.parametrize(
    ("name", "config", "shape"),
    [
        ("resnet", "embedding_size=8,hidden_sizes=[8,16],depths=[1,1]", (1, 3, 224, 224)),
        (
            "vit",
            "hidden_size=8,num_attention_heads=2,num_hidden_layers=1,image_size=32",
            (1, 3, 32, 32),
        ),
        ("t5", "d_model=8,num_layers=1,d_ff=8", (1, 16)),
        (
            "whisper",
            "d_model=12,encoder_layers=1,max_source_positions=10,num_mel_bins=8",
            (1, 8, 20),
        ),
    ],
)
def test_an_architecture_gets_the_input_it_takes(
    name: str, config: str, shape: tuple[int, ...]
) -> None:
    source = load_source(f"hf:{name}", config=config, seq_len=16)
    ((value,),) = (source.kwargs.values(),)
    assert value.shape == shape
    with torch.no_grad():
        assert isinstance(source.program(**source.kwargs), torch.Tensor)


@pytest.mark.parametrize(
    ("name", "config", "message"),
    [
        ("hf:lama", "", "did you mean llama"),
        ("hf:llama", "hiden_size=3", "did you mean hidden_size"),
        ("hf:llama", "hidden_size", "name=value"),
    ],
)
def test_misspelt_architectures_and_settings(name, config, message):
    pytest.importorskip("transformers")
    with pytest.raises(UsageError, match=message):
        load_source(name, config=config, layer=0)


def test_an_operator_that_a_library_defines_later_is_decomposed() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.deplo_test.twice(x)

    assert capture(torch.neg, (torch.ones(2),)).arguments
    library = torch.library.Library("deplo_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    text = str(capture(program, (torch.ones(2),)).module)
    assert "torch.add" in text
    assert "torch.call" not in text


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.empty_strided((3, 4), (1, 3)).copy_(x),
        lambda x: x.new_empty_strided((3, 4), (1, 3)).copy_(x) + 1,
        lambda x: x.new_empty_strided((4,), (1,), dtype=torch.int64).fill_(3) + x,
        lambda x: x.new_empty_strided((0, 4), (4, 1)),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_memory_without_values_lies_as_in_eager(program, dynamic):
    x = torch.randn(3, 4)
    options = {"fallback": "error"}
    compiled = torch.compile(program, backend="deplo", dynamic=dynamic, options=options)
    for ours in (compiled(x), deplo.compile(program, (x,), target="cpu")(x)):
        assert torch.equal(ours, program(x))
        assert (ours.stride(), ours.dtype) == (program(x).stride(), program(x).dtype)


def test_memory_with_gaps_is_refused():
    with pytest.raises(deplo.UnsupportedOpError, match="new_empty_strided"):
        deplo.compile(lambda x: x.new_empty_strided((3, 4), (8, 1)).copy_(x), (torch.ones(3, 4),))
