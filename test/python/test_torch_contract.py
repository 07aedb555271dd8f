"""The contract of Torch IR: what its lines say, and that PyTorch says the same."""

import pickle

import pytest
import torch
from xdsl.dialects.builtin import Float64Type, FloatAttr

from deplo.dialects import torch_ops
from deplo.dialects.torch import ALL_OPS, OPS_BY_ATEN
from deplo.dialects.torch_contract import CONTRACT, Item, read_contract, read_schema
from deplo.tools import update_torch_contract


def item(name, type, optional=False, default=None):
    return Item(name, type, optional, default)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Tensor self", item("self", "Tensor")),
        ("Tensor(a) self", item("self", "Tensor")),
        ("Tensor(a -> *) self", item("self", "Tensor")),
        ("Tensor? bias=None", item("bias", "Tensor", optional=True)),
        ("Tensor[] tensors", item("tensors", "Tensor[]")),
        ("SymInt[] size", item("size", "SymInt[]")),
        ("int[1]? dim", item("dim", "int[]", optional=True)),
        ("int[2] stride=[]", item("stride", "int[]", default=[])),
        ("int[2] stride=[1, 2]", item("stride", "int[]", default=[1, 2])),
        ("int[3] padding=0", item("padding", "int[]", default=[0, 0, 0])),
        ("bool descending=False", item("descending", "bool", default=False)),
        ("int dim=-1", item("dim", "int", default=-1)),
        ('str approximate="none"', item("approximate", "str", default="none")),
    ],
)
def test_an_argument_is_read(text, expected):
    first, read, last = read_schema(f"F same aten::f(int x, {text}, *, bool y) -> Tensor").arguments
    assert (first.name, read, last.name) == ("x", expected, "y")


@pytest.mark.parametrize("text", ["float p=1", "float p=1.", "Scalar p=1.0"])
def test_a_float_has_a_float_for_a_default(text):
    (argument,) = read_schema(f"F same aten::f({text}) -> Tensor").arguments
    assert type(argument.default) is float


def test_results_are_read():
    named = read_schema("F same aten::f.dim(Tensor self) -> (Tensor values, Tensor indices)")
    assert [result.name for result in named.results] == ["values", "indices"]
    assert named.overload == "f.dim"
    one = read_schema("F same aten::f(Tensor self) -> Tensor(a)")
    assert one.results == (item("", "Tensor"),)
    assert one.overload == "f.default"


@pytest.mark.parametrize(
    "line",
    [
        "aten::f(Tensor self) -> Tensor",
        "F aten::f(Tensor self) -> Tensor",
        "F same aten::f",
        "F same aten::f(Tensor?[] indices) -> Tensor",
        "F same aten::f(Tensor(a!) self) -> Tensor",
        "F same aten::f(int x=[1) -> Tensor",
    ],
)
def test_a_line_that_cannot_be_read_is_refused(line):
    with pytest.raises(ValueError, match="expected"):
        read_schema(line)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NoOp same aten::f(Tensor self) -> Tensor", "no family is called NoOp"),
        ("PointwiseOp odd aten::f(Tensor self) -> Tensor", "no rule is called odd"),
        ("PointwiseOp same aten::f(Stream s) -> Tensor", "no kind stands for type Stream"),
        ("PointwiseOp same aten::f(Tensor self) -> bool", "are not tensors"),
    ],
)
def test_a_schema_that_no_class_stands_for_is_refused(line, message):
    with pytest.raises(ValueError, match=message):
        torch_ops._op_class(read_schema(line), "f")


def test_each_overload_has_one_operation():
    assert len(OPS_BY_ATEN) == len(ALL_OPS)
    assert OPS_BY_ATEN["add.Tensor"].name == "torch.add"
    assert OPS_BY_ATEN["add.Scalar"].name == "torch.add_scalar"
    assert OPS_BY_ATEN["_to_copy.default"].__name__ == "InternalToCopyOp"


def test_classes_are_attributes_of_the_module_and_are_pickled_by_name():
    op = torch_ops.LayerNormOp
    assert op.__module__ == torch_ops.__name__
    assert pickle.loads(pickle.dumps(op)) is op
    eps = op.get_irdl_definition().properties["eps"].default_value
    assert eps == FloatAttr(1e-5, Float64Type())
    with pytest.raises(AttributeError, match="gives no class LayerNomOp"):
        _ = torch_ops.LayerNomOp


# --------------------------------------------------------------------------- PyTorch


def test_the_contract_is_what_pytorch_says(monkeypatch, tmp_path):
    if CONTRACT.read_text().splitlines()[0] != update_torch_contract.header():
        pytest.skip("the contract is of another PyTorch")
    assert update_torch_contract.main(["--check"]) == 0
    stale = tmp_path / "torch_contract.txt"
    stale.write_text(CONTRACT.read_text().replace("alpha=1", "alpha=2", 1))
    monkeypatch.setattr(update_torch_contract, "CONTRACT", stale)
    assert update_torch_contract.main(["--check"]) == 1


def test_an_overload_is_completed_from_pytorch():
    text = update_torch_contract.updated("# PyTorch 2.0\n# why\nPointwiseOp same aten::angle\n")
    schema = "PointwiseOp same aten::angle(Tensor self) -> Tensor"
    assert text == f"{update_torch_contract.header()}\n# why\n{schema}\n"
    with pytest.raises(SystemExit, match=r"no overload angle\.nothing"):
        update_torch_contract.updated("#\nPointwiseOp same aten::angle.nothing")


def test_every_schema_of_the_contract_is_an_overload_of_this_pytorch():
    for schema in read_contract():
        operator, overload = schema.overload.split(".")
        known = getattr(getattr(torch.ops.aten, operator), overload)._schema
        names = [argument.name for argument in known.arguments]
        assert [argument.name for argument in schema.arguments] == names, schema.overload
