"""Generates `dialects/torch_ops.py`, the operations of the `torch` dialect, from PyTorch's schemas.

    python -m deplo.tools.generate_torch_dialect            # writes the file
    python -m deplo.tools.generate_torch_dialect --check    # fails if the file is out of date

To add an operator, add its line to `CONTRACT`, run this, and give it a lowering in `passes/torch`.

Naming: the first overload listed of an operator is `torch.<operator>`; any further one is
`torch.<operator>_<overload>` in lower case, so list the common one first. The schema's `self` is
called `input`, as an attribute of a Python class cannot be called `self`.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CONTRACT = """
PointwiseOp     add.Tensor add.Scalar sub.Tensor sub.Scalar rsub.Scalar mul.Tensor mul.Scalar
PointwiseOp     div.Tensor div.Scalar div.Tensor_mode div.Scalar_mode
PointwiseOp     remainder.Tensor remainder.Scalar fmod.Tensor fmod.Scalar
PointwiseOp     pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar
PointwiseOp     maximum.default minimum.default clamp.default clamp.Tensor
PointwiseOp     neg.default abs.default sign.default floor.default ceil.default round.default
PointwiseOp     trunc.default exp.default exp2.default expm1.default log.default log2.default
PointwiseOp     log1p.default sqrt.default rsqrt.default reciprocal.default sin.default cos.default
PointwiseOp     tan.default tanh.default erf.default sigmoid.default relu.default silu.default
PointwiseOp     gelu.default leaky_relu.default hardtanh.default elu.default
PointwiseOp     bitwise_and.Tensor bitwise_and.Scalar bitwise_or.Tensor bitwise_or.Scalar
PointwiseOp     bitwise_xor.Tensor bitwise_xor.Scalar bitwise_not.default
PointwiseOp     bitwise_left_shift.Tensor bitwise_right_shift.Tensor
PointwiseOp     asin.default acos.default atan.default atan2.default sinh.default cosh.default
PointwiseOp     asinh.default acosh.default atanh.default log10.default
PointwiseOp     fmax.default fmin.default copysign.Tensor
PointwiseOp     where.self binary_cross_entropy.default
PointwiseOp     _to_copy.default clone.default alias.default lift_fresh_copy.default
PredicateOp     eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar
PredicateOp     gt.Tensor gt.Scalar ge.Tensor ge.Scalar isnan.default isinf.default
PredicateOp     signbit.default
PredicateOp     logical_not.default logical_and.default logical_or.default logical_xor.default
ReductionOp     sum.dim_IntList sum.default mean.dim mean.default amax.default amin.default
ReductionOp     prod.dim_int prod.default any.dim any.dims any.default all.dim all.dims all.default
ReductionOp     max.default min.default argmax.default argmin.default var.correction
ReductionOp     max.dim min.dim var_mean.correction linalg_vector_norm.default
ReductionOp     std.correction std_mean.correction
ViewShapeOp     view.default _unsafe_view.default
PermuteShapeOp  permute.default
TransposeShapeOp transpose.int t.default
SliceShapeOp    slice.Tensor
SelectShapeOp   select.int
UnsqueezeShapeOp unsqueeze.default
SqueezeShapeOp  squeeze.dims squeeze.dim squeeze.default
ExpandShapeOp   expand.default
CatShapeOp      cat.default
StackShapeOp    stack.default
SplitShapeOp    split_with_sizes.default
RepeatShapeOp   repeat.default
PadShapeOp      constant_pad_nd.default
SameShapeOp     flip.default tril.default triu.default cumsum.default
SameShapeOp     cumprod.default copy.default
DiagonalShapeOp diagonal.default
UnfoldShapeOp   unfold.default
SameShapeOp     softmax.int _softmax.default log_softmax.int _log_softmax.default
LinearShapeOp   linear.default
MatmulShapeOp   matmul.default
MatrixShapeOp   mm.default bmm.default addmm.default baddbmm.default
NormShapeOp     rms_norm.default layer_norm.default native_layer_norm.default
SameShapeOp     native_group_norm.default _native_batch_norm_legit_no_training.default
SameShapeOp     _native_batch_norm_legit.no_stats
ConvolutionShapeOp convolution.default
PoolShapeOp     avg_pool2d.default max_pool2d_with_indices.default
Pool3dShapeOp   avg_pool3d.default max_pool3d_with_indices.default
AdaptivePoolShapeOp _adaptive_avg_pool2d.default _adaptive_avg_pool3d.default
AdaptivePoolShapeOp adaptive_max_pool2d.default adaptive_max_pool3d.default
AttentionShapeOp scaled_dot_product_attention.default
EmbeddingShapeOp embedding.default
GatherShapeOp   gather.default
ScatterShapeOp  scatter.src scatter.value scatter_add.default scatter_reduce.two
IndexReduceShapeOp index_reduce.default index_add.default
MaskedScatterShapeOp masked_scatter.default
DiagonalScatterShapeOp diagonal_scatter.default
StridedShapeOp  as_strided.default as_strided_copy.default
IndexSelectShapeOp index_select.default
SortShapeOp     sort.default sort.stable topk.default
OrderShapeOp    kthvalue.default median.default median.dim nanmedian.default nanmedian.dim
SortShapeOp     cummax.default cummin.default
SameShapeOp     logcumsumexp.default
SearchShapeOp   searchsorted.Tensor searchsorted.Scalar bucketize.Tensor bucketize.Scalar
ArangeShapeOp   arange.start_step arange.default
SizedOp         full.default zeros.default ones.default scalar_tensor.default
SizedOp         empty.memory_format empty_permuted.default
SameShapeOp     full_like.default zeros_like.default ones_like.default
"""
"""Family (a base class in `torch_shapes.py`) and overloads, one group a line."""

CHECKED = {
    "layout": "strided only",
    "device": "the inputs' device only",
    "pin_memory": "not pinned only",
    "memory_format": "row-major only",
    "non_blocking": "has no effect on values",
    "cudnn_enable": "has no effect on values",
    "implicit": "has no effect on values",
    "sparse": "has no effect on values",
    "scale_grad_by_freq": "has no effect on values",
    "sparse_grad": "has no effect on values",
}
"""Arguments with no place in the IR: the front end checks them and drops them."""

KINDS = {
    "int": "INT",
    "float": "FLOAT",
    "bool": "BOOL",
    "number": "SCALAR",
    "Scalar": "SCALAR",
    "ScalarType": "DTYPE",
    "str": "STR",
    "List[int]": "INTS",
}

SYMBOLIC_KINDS = {"INT": "EXTENT", "INTS": "EXTENTS"}
"""The kind of an argument that the schema says to be SymInt: it may be a dynamic size."""

HEADER = '''\
"""Generated by tools/generate_torch_dialect.py from the schemas of PyTorch {version}; do not edit.

The operations of the `torch` dialect, one class per ATen overload of the contract.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from .torch_base import (
    BOOL,
    DTYPE,
    EXTENT,
    EXTENTS,
    FLOAT,
    INT,
    INTS,
    SCALAR,
    STR,
    TorchOp,
    argument_attr,
)
{families}
'''

MODULES = {
    "torch_layout_shapes": {
        "CatShapeOp",
        "ExpandShapeOp",
        "PadShapeOp",
        "PermuteShapeOp",
        "RepeatShapeOp",
        "SelectShapeOp",
        "SliceShapeOp",
        "SplitShapeOp",
        "SqueezeShapeOp",
        "StackShapeOp",
        "TransposeShapeOp",
        "UnsqueezeShapeOp",
        "ViewShapeOp",
    },
    "torch_scatter_shapes": {
        "DiagonalScatterShapeOp",
        "IndexReduceShapeOp",
        "MaskedScatterShapeOp",
        "ScatterShapeOp",
        "StridedShapeOp",
    },
    "torch_sort_shapes": {"OrderShapeOp", "SearchShapeOp", "SortShapeOp"},
    "torch_window_shapes": {
        "AdaptivePoolShapeOp",
        "ConvolutionShapeOp",
        "DiagonalShapeOp",
        "Pool3dShapeOp",
        "PoolShapeOp",
        "UnfoldShapeOp",
    },
}
"""The families that do not stand in `torch_shapes.py`, by the module that they stand in."""


def contract() -> list[tuple[str, str]]:
    """(overload, family) for each line's entries, in order."""
    entries: list[tuple[str, str]] = []
    for line in CONTRACT.strip().splitlines():
        family, *overloads = line.split()
        entries += [(overload, family) for overload in overloads]
    return entries


def op_names(overloads: list[str]) -> dict[str, str]:
    """The name of the operation, without `torch.`, for each overload."""
    taken: set[str] = set()
    names: dict[str, str] = {}
    for qualified in overloads:
        operator, overload = qualified.split(".")
        names[qualified] = f"{operator}_{overload.lower()}" if operator in taken else operator
        taken.add(operator)
    return names


def class_name(op_name: str) -> str:
    """`where_self` becomes `WhereSelfOp`, and `_to_copy` becomes `InternalToCopyOp`."""
    words = op_name.split("_")
    return "".join(word.capitalize() if word else "Internal" for word in words) + "Op"


def field(argument: Any) -> str | None:
    """The class attribute for one schema argument, or None for an argument that is only checked."""
    if argument.name in CHECKED:
        return None
    name = "input" if argument.name == "self" else argument.name
    # real_type tells ScalarType from int, which `type` does not, and its `str` SymInt
    type_text = str(argument.real_type)
    optional = type_text.startswith("Optional[")
    inner = type_text[len("Optional[") : -1] if optional else type_text
    if inner == "Tensor":
        return f"{name} = {'opt_operand_def' if optional else 'operand_def'}(TensorType)"
    if inner == "List[Tensor]" and not optional:
        return f"{name} = var_operand_def(TensorType)"
    if inner not in KINDS:
        raise SystemExit(f"argument {argument.name}: no kind stands for schema type {type_text}")
    kind = KINDS[inner]
    if argument.real_type.str().startswith("SymInt"):
        kind = SYMBOLIC_KINDS[kind]
    if argument.has_default_value() and argument.default_value is not None:
        default = repr(argument.default_value).replace("'", '"')
        return f"{name} = prop_def({kind}, default_value=argument_attr({default}))"
    return f"{name} = {'opt_prop_def' if optional else 'prop_def'}({kind})"


def results(schema: Any) -> list[str]:
    """The class attributes for the results."""
    types = [str(r.real_type) for r in schema.returns]
    if types == ["List[Tensor]"]:
        return ["pieces = var_result_def(TensorType)"]
    if any(t != "Tensor" for t in types):
        raise SystemExit(f"{schema.name}: results {types} are not tensors")
    names = (
        ["result"]
        if len(types) == 1
        else [r.name or f"result{i}" for i, r in enumerate(schema.returns)]
    )
    return [f"{name} = result_def(TensorType)" for name in names]


def op_class(qualified: str, family: str, op_name: str) -> list[str]:
    """The source lines of one operation class."""
    import torch

    operator, overload = qualified.split(".")
    schema: Any = getattr(getattr(torch.ops.aten, operator), overload)._schema
    fields = [f for argument in schema.arguments if (f := field(argument)) is not None]
    checked = [a.name for a in schema.arguments if a.name in CHECKED]
    lines = ["@irdl_op_definition", f"class {class_name(op_name)}({family}):"]
    lines += _wrapped(f'    """`{schema}`', last="" if checked else '"""')
    if checked:
        lines += ["", f"    Not represented: {', '.join(checked)}.", '    """']
    lines += ["", f'    name = "torch.{op_name}"', f'    ATEN: ClassVar[str] = "{qualified}"', ""]
    lines += [f"    {f}" for f in (*fields, *results(schema))]
    variadic = sum("opt_operand_def" in f or "var_operand_def" in f for f in fields)
    lines.append("")
    if variadic > 1:
        lines.append("    irdl_options = (AttrSizedOperandSegments(as_property=True),)")
    lines.append("    traits = traits_def(Pure())")
    return lines


def _wrapped(text: str, last: str) -> list[str]:
    """`text` and `last` as lines of at most 100 columns."""
    lines = textwrap.wrap(
        text + last, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return ["    " + lines[0].lstrip(), *lines[1:]]


def _listed(names: Iterable[str]) -> str:
    return "\n".join(f"    {name}," for name in sorted(names))


def generate() -> str:
    """The text of the generated file."""
    import torch

    entries = contract()
    names = op_names([overload for overload, _ in entries])
    families = {family for _, family in entries}
    plain = families.difference(*MODULES.values())
    imports = {"torch_shapes": plain} | {m: families & known for m, known in MODULES.items()}
    lines = [f"from .{m} import (\n{_listed(known)}\n)" for m, known in sorted(imports.items())]
    version = ".".join(torch.__version__.split("+")[0].split(".")[:2])
    header = HEADER.format(version=version, families="\n".join(lines))
    parts = [header]
    for overload, family in entries:
        parts.append("\n".join(op_class(overload, family, names[overload])) + "\n")
    classes = [class_name(names[overload]) for overload, _ in entries]
    listed = "\n".join(f"    {c}," for c in classes)
    parts.append(f"TORCH_OPS: list[type[TorchOp]] = [\n{listed}\n]\n")
    return "\n\n".join(parts)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare with the file")
    options = parser.parse_args(argv)
    path = Path(__file__).parent.parent / "dialects" / "torch_ops.py"
    text = generate()
    if not options.check:
        path.write_text(text)
        return 0
    if path.read_text() == text:
        return 0
    remedy = "run python -m deplo.tools.generate_torch_dialect"
    print(f"{path} is out of date: {remedy}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
