"""ONNX models: small graphs, what is refused, names, sizes, broken files; a sample of ONNX's node tests."""

import subprocess
import sys
from importlib import import_module

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case import node as node_tests
from onnx_nodes import outcome

import deplo
from deplo.onnx_import import entry
from deplo.onnx_import.model_files import RULES, load_proto
from deplo.onnx_import.program import OnnxProgram
from deplo.tools import deplo as command
from deplo.tools import generate_onnx_operators

RNG = np.random.default_rng(0)
FLOAT = TensorProto.FLOAT


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def value(name, shape, element=FLOAT):
    return helper.make_tensor_value_info(name, element, shape)


def model_of(nodes, inputs, outputs, held=(), opset=17, **more):
    arrays = [numpy_helper.from_array(array, name) for name, array in dict(held).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, arrays)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9, **more)


def program_of(*args, sizes=None, constants=None, **more):
    return OnnxProgram(load_proto(model_of(*args, **more), sizes, constants))


def message_of(*args, **more):
    with pytest.raises(deplo.UnsupportedOpError) as raised:
        program_of(*args, **more)
    return str(raised.value)


# ---- a model from a file


@pytest.fixture
def perceptron(tmp_path):
    """A file with one layer, and its weights."""
    w, b = floats(8, 4), floats(4)
    nodes = [
        helper.make_node("MatMul", ["x.1", "w"], ["m"]),
        helper.make_node("Add", ["m", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    model = model_of(nodes, [value("x.1", [3, 8])], [value("y", [3, 4])], {"w": w, "b": b})
    path = tmp_path / "perceptron.onnx"
    onnx.save(model, path)
    return path, w, b


def test_a_file_is_a_program_on_numpy_arrays(perceptron):
    path, w, b = perceptron
    program = deplo.from_onnx(path)
    x = floats(3, 8)
    expected = np.maximum(x @ w + b, 0)
    np.testing.assert_allclose(program(x), expected, 1e-5, 1e-6)
    np.testing.assert_allclose(program(**{"x.1": x}), expected, 1e-5, 1e-6)
    assert [kernel.name for kernel in program.kernels] == ["k_relu_reduce"]
    assert [(v.name, v.shape) for v in program.inputs] == [("x.1", (3, 8))]
    assert 'deplo.parameter = "w"' in program.ir("torch")


def test_inputs_that_do_not_fit_are_told(perceptron):
    program = deplo.from_onnx(perceptron[0])
    x = floats(3, 8)
    for args, named, said in [
        ((), {}, "input 'x.1' is missing"),
        ((x, x), {}, "2 inputs for a model of 1"),
        ((x,), {"x.1": x}, "given twice"),
        ((), {"z": x}, "no input 'z'; its inputs are x.1"),
        (([1.0],), {}, "expected a numpy array, got list"),
        ((x.astype(np.float64),), {}, "expected dtype float32, got float64"),
        ((x[:2],), {}, "shape"),
    ]:
        with pytest.raises(deplo.UsageError, match=said.replace("[", r"\[")):
            program(*args, **named)


def test_commands_take_files(perceptron, capsys):
    path = str(perceptron[0])
    assert command.run(["run", path]) == 0
    assert "agrees with the interpreter" in capsys.readouterr().out
    assert command.run(["compile", path, "--ir", "torch"]) == 0
    assert "torch.matmul %x, %w" in capsys.readouterr().out
    assert command.run(["compile", path, "--ir", "cuda"]) == 0
    assert "__global__" in capsys.readouterr().out


def test_commands_fix_sizes(tmp_path, capsys):
    path = str(tmp_path / "relu.onnx")
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    onnx.save(model_of(nodes, [value("x", ["n", 3])], [value("y", ["n", 3])]), path)
    assert command.run(["compile", path, "--ir", "torch"]) == 0
    assert "tensor<?x3xf32" in capsys.readouterr().out
    assert command.run(["compile", path, "--ir", "torch", "--sizes", "n=5"]) == 0
    assert "tensor<5x3xf32" in capsys.readouterr().out
    for wrong, why in [("n", "NAME=EXTENT"), ("n=2,n=3", "said twice"), ("k=2", "dimension 'k'")]:
        assert command.run(["compile", path, "--ir", "torch", "--sizes", wrong]) == 2
        assert why in capsys.readouterr().err
    assert command.run(["compile", "-c", "torch.ones(2) + 1", "--sizes", "n=2"]) == 2
    assert "--sizes is for .onnx files" in capsys.readouterr().err


def test_weights_with_names_alike_are_kept_apart(tmp_path, capsys):
    nodes = [
        helper.make_node("Mul", ["x", "w_1"], ["m"]),
        helper.make_node("Add", ["m", "w_2"], ["y"]),
    ]
    held = {"w_1": floats(3), "w_2": floats(3)}
    model = model_of(nodes, [value("x", [3])], [value("y", [3])], held)
    onnx.save(model, tmp_path / "alike.onnx")
    assert command.run(["run", str(tmp_path / "alike.onnx")]) == 0
    x = floats(3)
    expected = x * held["w_1"] + held["w_2"]
    np.testing.assert_allclose(OnnxProgram(load_proto(model))(x), expected, 1e-5)


def test_a_saved_model_is_a_program_file(perceptron, tmp_path, capsys):
    saved = tmp_path / "p.deplo"
    assert command.run(["compile", str(perceptron[0]), "-o", str(saved)]) == 0
    assert saved.stat().st_size > 0


def test_external_data_are_read(perceptron, tmp_path):
    path, w, b = perceptron
    onnx.save(
        *(onnx.load(path), tmp_path / "apart.onnx"),
        save_as_external_data=True,
        location="apart.bin",
        size_threshold=0,
    )
    x = floats(3, 8)
    got = deplo.from_onnx(tmp_path / "apart.onnx")(x)
    np.testing.assert_allclose(got, np.maximum(x @ w + b, 0), 1e-5, 1e-6)


def test_broken_files_are_told_in_one_line(perceptron, tmp_path):
    path = perceptron[0]
    whole = path.read_bytes()
    broken = {
        "cut.onnx": whole[: len(whole) // 2],
        "empty.onnx": b"",
        "noise.onnx": bytes(range(256)) * 4,
    }
    for name, data in broken.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(deplo.UsageError, match="is no right ONNX model") as raised:
            deplo.from_onnx(tmp_path / name)
        assert "\n" not in str(raised.value)
    with pytest.raises(deplo.UsageError, match="no file"):
        deplo.from_onnx(tmp_path / "absent.onnx")


def test_without_the_package_it_is_told(perceptron, monkeypatch):
    monkeypatch.setattr(entry, "find_spec", lambda name: None)
    with pytest.raises(deplo.MissingEnvironmentError, match=r"pip install 'deplo\[onnx\]'"):
        deplo.from_onnx(perceptron[0])


def test_importing_deplo_imports_no_onnx():
    code = "import sys, deplo; deplo.from_onnx; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- what is refused


def test_all_that_is_refused_is_listed_at_once():
    nodes = [
        helper.make_node("NonZero", ["x"], ["n"], name="first"),
        helper.make_node("Unique", ["x"], ["u"], name="second"),
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Softmax", ["r"], ["y"]),
        helper.make_node("Det", ["r"], ["d"], name="third"),
    ]
    outputs = [value("y", [3, 3]), value("d", [])]
    said = message_of(nodes, [value("x", [3, 3])], outputs)
    assert "3 things" in said
    for name in ("NonZero 'first'", "Unique 'second'", "Det 'third'"):
        assert name in said
    assert "Relu" not in said
    assert "Softmax" not in said


def test_dtypes_that_are_refused_name_inputs_and_weights():
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    element = TensorProto.UINT32
    io = [value("x", [2], element)], [value("y", [2], element)]
    said = message_of(nodes, *io, {"w": np.zeros(2, np.uint32)})
    assert "elements of UINT32: initializer 'w', input 'x'" in said


def test_what_a_rule_does_not_read_is_refused():
    nodes = [helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2, 2, 2])]
    shape = [1, 1, 3, 3, 3, 3]
    outputs = [value("y", [1, 1, 2, 2, 2, 2]), value("i", None, TensorProto.INT64)][:1]
    assert "windows of 4 axes" in message_of(nodes, [value("x", shape)], outputs)
    nodes = [helper.make_node("Mod", ["x", "x"], ["y"])]
    assert "float32 without fmod" in message_of(nodes, [value("x", [2])], [value("y", [2])])


def test_an_operator_of_a_newer_version_is_refused():
    name, rule = "Relu", RULES["", "Relu"]
    RULES["", name] = type(rule)(rule.function, (6,), rule.text)
    try:
        # version 14 is a function of ONNX: it is computed by its body
        y = program_of([helper.make_node(name, ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
        assert y(np.array([-1, 2], np.float32)).tolist() == [0, 2]
        x = [value("x", [2])], [value("y", [2])]
        said = message_of([helper.make_node(name, ["x"], ["y"])], *x, opset=13)
        assert "operator Relu of version 13" in said
    finally:
        RULES["", name] = rule


def test_shapes_that_inputs_say_can_be_fixed():
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    inputs = [value("x", [2, 3]), value("s", [2], TensorProto.INT64)]
    outputs = [value("y", ["a", "b"])]
    said = message_of(nodes, inputs, outputs)
    assert "its shape must be known when the model is imported" in said
    fixed = {"s": np.array([3, -1], np.int64)}
    program = program_of(nodes, inputs, outputs, constants=fixed)
    assert [v.name for v in program.inputs] == ["x"]
    assert program(np.arange(6, dtype=np.float32).reshape(2, 3)).shape == (3, 2)
    for wrong, why in [
        ({"z": fixed["s"]}, "no input 'z'"),
        ({"s": np.zeros(3, np.int64)}, "does not take int64"),
        ({"s": np.zeros(2, np.int32)}, "does not take int32"),
        ({"s": [3, 2]}, "must be a numpy array"),
    ]:
        with pytest.raises(deplo.UsageError, match=why):
            program_of(nodes, inputs, outputs, constants=wrong)


# ---- constants and sizes


def indices(*values):
    return np.array(values, np.int64)


def test_shapes_that_are_computed_of_constants_are_known():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Mul", ["n", "two"], ["m"]),
        helper.make_node("Cast", ["m"], ["c"], to=TensorProto.FLOAT),
        helper.make_node("Sqrt", ["c"], ["q"]),
        helper.make_node("Cast", ["q"], ["i"], to=TensorProto.INT64),
        helper.make_node("Concat", ["i", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["y"]),
    ]
    held = {"first": indices(0), "two": indices(2), "rest": indices(-1)}
    program = program_of(nodes, [value("x", [8, 3])], [value("y", ["a", "b"])], held)
    assert program(floats(8, 3)).shape == (4, 6)
    assert len(program.kernels) <= 1


def dynamic():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "two"], ["head"]),
        helper.make_node("ReduceProd", ["head"], ["n"], keepdims=1),
        helper.make_node("Concat", ["n", "last"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
        helper.make_node("Div", ["r", "f"], ["y"]),
    ]
    held = {"zero": indices(0), "two": indices(2), "last": indices(5)}
    return nodes, [value("x", ["batch", "seq len", 5])], [value("y", ["rows", 5])], held


def test_dimensions_with_names_are_sizes_of_the_program():
    program = program_of(*dynamic())
    for shape in [(2, 3, 5), (1, 1, 5), (7, 4, 5)]:
        x = floats(*shape)
        expected = x.reshape(-1, 5) / (shape[0] * shape[1])
        np.testing.assert_allclose(program(x), expected, 1e-6)
    assert [size.name for size in program.plan.sizes] == ["batch", "seq_len"]


@pytest.mark.parametrize("axis", range(5))
def test_sizes_of_several_axes_are_flattened(axis):
    nodes = [helper.make_node("Flatten", ["x"], ["y"], axis=axis)]
    program = program_of(nodes, [value("x", ["a", 3, 4, "b"])], [value("y", ["r", "c"])])
    for shape in [(2, 3, 4, 5), (1, 3, 4, 1)]:
        x = floats(*shape)
        assert (program(x) == x.reshape(int(np.prod(shape[:axis])), -1)).all()


def test_sizes_can_be_fixed():
    program = program_of(*dynamic(), sizes={"batch": 2, "seq len": 3})
    assert program.inputs[0].shape == (2, 3, 5)
    assert not program.plan.sizes
    with pytest.raises(deplo.UsageError, match="no input has a dimension 'rows'"):
        program_of(*dynamic(), sizes={"rows": 2})
    with pytest.raises(deplo.UsageError, match="must be a positive integer"):
        program_of(*dynamic(), sizes={"batch": 0})


def test_names_that_differ_in_signs_alone_are_different_sizes():
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    program = program_of(nodes, [value("x", ["a.b", "a_b"])], [value("y", ["a.b", "a_b"])])
    assert program(floats(2, 3)).shape == (2, 3)


def test_slices_backwards_begin_at_the_first_element():
    held = {"s": indices(-7), "e": indices(-9), "a": indices(0), "t": indices(-1)}
    nodes = [helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"])]
    x = floats(3, 2)
    got = program_of(nodes, [value("x", [3, 2])], [value("y", [1, 2])], held)(x)
    assert (got == x[:1]).all()


def test_a_range_of_a_size_is_computed_by_each_call():
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Range", ["zero", "n", "one"], ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    held = {"zero": np.array(0), "one": np.array(1)}
    program = program_of(nodes, [value("x", ["n"])], [value("y", ["n"])], held)
    for n in (1, 3, 6):
        assert program(np.zeros(n, np.float32)).tolist() == list(range(n))


def test_bfloat16_is_that_of_ml_dtypes():
    bfloat16 = helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)
    element = TensorProto.BFLOAT16
    nodes = [
        helper.make_node("Pow", ["x", "two"], ["p"]),
        helper.make_node("Add", ["p", "w"], ["y"]),
    ]
    held = {"two": np.array(2, bfloat16), "w": np.array([1, 2, 3], bfloat16)}
    io = [value("x", [3], element)], [value("y", [3], element)]
    y = program_of(nodes, *io, held)(np.array([1, 2, -3], bfloat16))
    assert y.dtype == bfloat16
    assert y.astype(np.float32).tolist() == [2, 6, 12]


def branches(held):
    one = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "one", [], [value("t", [2])])
    other = helper.make_graph(
        [helper.make_node("Unique", ["x"], ["e"])], "other", [], [value("e", ["r"])]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=one, else_branch=other)
    return [node], [value("x", [2])], [value("y", [2])], held


def test_the_branch_of_a_known_condition_is_taken():
    program = program_of(*branches({"c": np.array(True)}))
    assert program(np.array([-1, 2], np.float32)).tolist() == [0, 2]
    said = message_of(*branches({"c": np.array(False)}))
    assert "Unique" in said
    assert "If 'y' > " in said
    nodes, inputs, outputs, _ = branches({})
    inputs = [*inputs, value("c", [], TensorProto.BOOL)]
    assert "its condition must be known" in message_of(nodes, inputs, outputs)


def loop(turns, condition=True):
    """A loop that adds 1 as often as it turns, and gives all sums out."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "one"], ["t"]),
            helper.make_node("Identity", ["t"], ["all"]),
            helper.make_node("Less", ["i", "four"], ["on"]),
        ],
        *("body", [value("i", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)]),
        [value("on", [], TensorProto.BOOL), value("t", [2]), value("all", [2])],
    )
    body.input.append(value("s", [2]))
    node = helper.make_node("Loop", ["n", "go", "x"], ["y", "z"], body=body)
    held = {"one": np.array(1, np.float32), "four": np.array(4), "n": np.array(turns)}
    outputs = [value("y", [2]), value("z", ["turns", 2])]
    return [node], [value("x", [2])], outputs, held | {"go": np.array(condition)}


def test_loops_of_known_length_are_taken_apart():
    for turns, expected in [(3, 3), (100, 5)]:  # the condition ends it behind turn 4
        y, z = program_of(*loop(turns))(np.array([0, 10], np.float32))
        assert y.tolist() == [expected, 10 + expected]
        assert z[:, 0].tolist() == list(range(1, expected + 1))
    for turns, condition in [(0, True), (3, False)]:
        assert "results of a loop of no turns" in message_of(*loop(turns, condition))
    nodes, inputs, outputs, held = loop(3)
    del held["n"]
    inputs = [*inputs, value("n", [], TensorProto.INT64)]
    assert "its number of turns must be known" in message_of(nodes, inputs, outputs, held)


def test_scans_are_taken_apart():
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Identity", ["t"], ["all"])],
        *("body", [value("s", [2]), value("e", [2])], [value("t", [2]), value("all", [2])]),
    )
    node = helper.make_node(
        *("Scan", ["s0", "x"], ["last", "sums"]),
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[1],
        scan_output_axes=[1],
    )
    outputs = [value("last", [2]), value("sums", [2, 4])]
    x, s0 = floats(4, 2), floats(2)
    program = program_of([node], [value("s0", [2]), value("x", [4, 2])], outputs)
    last, sums = program(s0, x)
    expected = s0 + np.cumsum(x[::-1], 0)
    np.testing.assert_allclose(sums, expected.T, 1e-5, 1e-6)
    np.testing.assert_allclose(last, expected[-1], 1e-5, 1e-6)


def test_a_file_that_onnx_reads_out_of_bounds_for_is_refused():
    nodes = [helper.make_node("GatherND", ["x", "i"], ["y"], batch_dims=-(2**31))]
    inputs = [value("x", [2, 3]), value("i", [2, 1], TensorProto.INT64)]
    with pytest.raises(deplo.UsageError, match="batch_dims"):
        program_of(nodes, inputs, [value("y", ["a", "b"])])


def test_calls_of_functions_without_end_are_refused():
    calls = [helper.make_node("F", ["a"], ["b"], domain="own") for _ in range(2)]
    function = helper.make_function(
        "own", "F", ["a"], ["b"], calls[:1], [helper.make_opsetid("own", 1)]
    )
    nodes = [helper.make_node("F", ["x"], ["y"], domain="own")]
    with pytest.raises((deplo.UsageError, deplo.UnsupportedOpError)):
        program_of(nodes, [value("x", [2])], [value("y", [2])], functions=[function])


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_short_sequences_of_a_batch_give_0_beyond_their_end(direction):
    """Of an RNN with the identity as weights, of ones: each step adds 1, before Relu."""
    nodes = [
        helper.make_node(
            *("RNN", ["x", "w", "r", "", "n"], ["y", "h"]),
            hidden_size=1,
            direction=direction,
            activations=["Relu"],
        )
    ]
    held = {"w": np.ones((1, 1, 1), np.float32), "r": np.ones((1, 1, 1), np.float32)}
    held["n"] = np.array([1, 3], np.int32)
    outputs = [value("y", [3, 1, 2, 1]), value("h", [1, 2, 1])]
    y, h = program_of(nodes, [value("x", [3, 2, 1])], outputs, held)(np.ones((3, 2, 1), np.float32))
    counts = [[1, 1], [0, 2], [0, 3]] if direction == "forward" else [[1, 3], [0, 2], [0, 1]]
    assert y[:, 0, :, 0].tolist() == counts
    assert h[0, :, 0].tolist() == [1, 3]


# ---- functions, several outputs, aliases


def test_functions_of_a_model_are_inlined():
    body = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Elu", ["b"], ["c"])]
    refers = onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="k")
    body[1].attribute.append(refers)
    function = helper.make_function(
        *("own", "Square", ["a"], ["c"], body), [helper.make_opsetid("", 17)], ["k"]
    )
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="own", k=2.0)]
    program = program_of(nodes, [value("x", [2])], [value("y", [2])], functions=[function])
    assert program(np.array([2, -3], np.float32)).tolist() == [4, 9]
    nodes = [helper.make_node("Square", ["x"], ["y"], domain="own", other=2.0)]
    said = message_of(nodes, [value("x", [2])], [value("y", [2])], functions=[function])
    assert "attribute 'other', which the function does not have" in said


def test_outputs_are_a_tuple_in_their_order_and_never_an_input():
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Split", ["x"], ["a", "b"], axis=0),
    ]
    outputs = [value("b", [1, 2]), value("same", [2, 2]), value("a", [1, 2])]
    x = floats(2, 2)
    b, same, a = program_of(nodes, [value("x", [2, 2])], outputs)(x)
    assert (a == x[:1]).all()
    assert (b == x[1:]).all()
    assert (same == x).all()
    assert not np.may_share_memory(same, x)


def test_weights_are_no_inputs_and_not_handed_out():
    w = floats(3)
    nodes = [helper.make_node("Identity", ["w"], ["y"])]
    program = program_of(nodes, [value("x", [2]), value("w", [3])], [value("y", [3])], {"w": w})
    y = program(floats(2))
    y[:] = 0
    assert (program(floats(2)) == w).all()


def test_old_softmax_folds_all_axes_from_one_on():
    nodes = [helper.make_node("Softmax", ["x"], ["y"], axis=1)]
    x = floats(2, 3, 4)
    got = program_of(nodes, [value("x", [2, 3, 4])], [value("y", [2, 3, 4])], opset=11)(x)
    e = np.exp(x.reshape(2, 12))
    expected = (e / e.sum(1, keepdims=True)).reshape(2, 3, 4)
    np.testing.assert_allclose(got, expected, 1e-5)


# ---- ONNX's own tests

SAMPLE = {
    "add": ("add_bcast",),
    "averagepool": ("averagepool_2d_ceil",),
    "clip": ("clip_default_int8_min",),
    "conv": ("conv_with_strides_and_asymmetric_padding",),
    "convtranspose": ("convtranspose_group_2",),
    "cumsum": ("cumsum_2d_axis_1",),
    "depthtospace": ("depthtospace_crd_mode_example",),
    "einsum": ("einsum_batch_diagonal",),
    "gathernd": ("gathernd_example_int32",),
    "gridsample": ("gridsample_bilinear",),
    "lstm": ("lstm_with_peepholes",),
    "quantizelinear": ("quantizelinear_axis",),
    "resize": ("resize_upsample_sizes_cubic",),
    "gemm": ("gemm_all_attributes",),
    "layernormalization": ("layer_normalization_2d_axis0",),
    "logsoftmax": ("logsoftmax_axis_1",),
    "maxpool": ("maxpool_with_argmax_2d_precomputed_strides",),
    "mod": ("mod_int64_fmod",),
    "pad": ("reflect_pad",),
    "pow": ("pow_types_float32_int64",),
    "reduce_log_sum_exp": ("reduce_log_sum_exp_keepdims_example",),
    "scatterelements": ("scatter_elements_with_duplicate_indices",),
    "slice": ("slice_neg_steps",),
    "split": ("split_variable_parts_2d_opset18",),
    "topk": ("top_k",),
    "where": ("where_long_example",),
}
"""Names of tests, by the modules that they are in."""
REFUSED = {"nonzero": ("nonzero_example",), "sequenceinsert": ("sequence_insert_at_back",)}


def case_of(module, name):
    """One of ONNX's node tests: importing a module makes its tests."""
    import_module(f"{node_tests.__name__}.{module}")
    found = [case for case in node_tests._NodeTestCases if case.name == f"test_{name}"]
    assert found, name
    return found[0]


def pairs(names):
    return [(module, name) for module, several in names.items() for name in several]


@pytest.mark.parametrize(("module", "name"), pairs(SAMPLE))
def test_node_tests_of_onnx_pass(module, name):
    kind, why = outcome(case_of(module, name))
    assert kind == "passed", why


@pytest.mark.parametrize(("module", "name"), pairs(REFUSED))
def test_node_tests_that_are_refused_say_why(module, name):
    kind, why = outcome(case_of(module, name))
    assert kind == "refused"
    assert why


def test_the_table_of_operators_is_up_to_date():
    assert generate_onnx_operators.main(["--check"]) == 0
    assert all(rule.text for rule in RULES.values())
