"""The `torch` dialect: the captured program, one operation per ATen operator.

    %rms_norm = torch.rms_norm %x, %p_weight {normalized_shape = [2048], eps = 1.1920929e-07 : f64}
      : (tensor<1x32x2048xf32>, tensor<2048xf32>) -> tensor<1x32x2048xf32>

`torch_ops.py` makes the classes from the schemas in `torch_contract.txt`; nothing here needs PyTorch. What
the classes share is in `torch_base.py`, their text form in `torch_syntax.py`, their checks of shapes in
`torch_shapes.py` and its neighbours.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

from .calls import TensorCallOp
from .torch_base import BOOL, INT, TorchOp, argument_attr
from .torch_found_shapes import IndexShapeOp
from .torch_ops import TORCH_OPS
from .torch_scan import ScanOp, YieldOp
from .torch_scatter_shapes import IndexPutShapeOp


@irdl_op_definition
class IndexOp(IndexShapeOp):
    """`aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor`

    Not in `torch_contract.txt`: the schema's list may have gaps, this one has none and starts at axis `dim`.
    ```
    %y = torch.index %x, [%i, %j] {dim = 1}
      : (tensor<2x8x9xf32>, tensor<4x1xi64>, tensor<3xi64>) -> tensor<2x4x3xf32>
    ```
    """

    name = "torch.index"
    ATEN: ClassVar[str] = "index.Tensor"

    input = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    dim = prop_def(INT, default_value=argument_attr(0))
    result = result_def(TensorType)

    traits = traits_def(Pure())


@irdl_op_definition
class IndexPutOp(IndexPutShapeOp):
    """`aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor`

    Not in `torch_contract.txt`, for the same reason as `torch.index`.
    ```
    %y = torch.index_put %x, [%i, %j], %v {dim = 1, accumulate = true}
      : (tensor<2x8x9xf32>, tensor<4x1xi64>, tensor<3xi64>, tensor<2x4x3xf32>) -> tensor<2x8x9xf32>
    ```
    """

    name = "torch.index_put"
    ATEN: ClassVar[str] = "index_put.default"

    input = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    values = operand_def(TensorType)
    dim = prop_def(INT, default_value=argument_attr(0))
    accumulate = prop_def(BOOL, default_value=argument_attr(False))
    result = result_def(TensorType)

    traits = traits_def(Pure())


ALL_OPS: list[type[TorchOp]] = [*TORCH_OPS, IndexOp, IndexPutOp]
"""Every operation that stands for an ATen overload."""

OPS_BY_ATEN: dict[str, type[TorchOp]] = {op.ATEN: op for op in ALL_OPS}
"""The operation class for each ATen overload of the contract, such as `add.Tensor`."""


@irdl_op_definition
class CallOp(TensorCallOp):
    """The explicit escape: PyTorch itself runs the operator.

    ```
    %u, %s = torch.call "aten.linalg_eigh.default"(input = %x, UPLO = "L")
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    ```
    """

    name = "torch.call"


Torch = Dialect("torch", [*ALL_OPS, ScanOp, YieldOp, CallOp], [])
