"""Descriptors of tensors in global memory, of which the GPU's copy engine copies boxes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr, MemRefType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .alignment import divisor
from .scalars import storage_bytes, verify_bits
from .schedule import SWIZZLE_BYTES
from .sizes import extent_expr, shape_of
from .tile import SHARED

MAX_RANK = 5
MAX_EXTENT = 256
UNIT = 16
"""Rows of a box and strides of a tensor are whole units of so many bytes."""

SWIZZLES = (0, *SWIZZLE_BYTES)
"""Widths in bytes of the rows within which units may be exchanged; 0 is none.

All limits here are from the CUDA driver API, "cuTensorMapEncodeTiled"."""


@irdl_attr_definition
class TensorMapType(ParametrizedAttribute, TypeAttribute):
    """The descriptor of a tensor, and the box that one copy takes of it.

    `!kernel.tensor_map<16x64xf32>`; `!kernel.tensor_map<16x32xf32, swizzle 128>`.
    """

    name = "kernel.tensor_map"

    box: ArrayAttr[IntAttr]
    element: Attribute
    swizzle_bytes: IntAttr

    def __init__(self, extents: Sequence[int], element: Attribute, swizzle: int = 0):
        super().__init__(ArrayAttr([IntAttr(n) for n in extents]), element, IntAttr(swizzle))

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of the box along each axis of the tensor."""
        return tuple(n.data for n in self.box)

    @property
    def swizzle(self) -> int:
        """The width of the swizzle in bytes; 0 is none."""
        return self.swizzle_bytes.data

    @property
    def count(self) -> int:
        """Elements of the box."""
        return prod(self.extents)

    @property
    def bytes(self) -> int:
        """Bytes of the box, which every copy brings: what lies outside of the tensor is zeros."""
        return self.count * storage_bytes(self.element)

    @property
    def alignment(self) -> int:
        """What the address of a box in shared memory is a multiple of: where its pattern repeats."""
        return max(8 * self.swizzle, 128)

    def verify(self) -> None:
        verify_bits(self.element)
        if not 1 <= len(self.extents) <= MAX_RANK:
            raise VerifyException(f"a box has 1 to {MAX_RANK} axes, not {len(self.extents)}")
        if not all(1 <= n <= MAX_EXTENT for n in self.extents):
            raise VerifyException(
                f"extents of a box are 1 to {MAX_EXTENT}, not {', '.join(map(str, self.extents))}"
            )
        if self.swizzle not in SWIZZLES:
            raise VerifyException(f"swizzle is 32, 64 or 128 bytes wide, not {self.swizzle}")
        row = self.extents[-1] * storage_bytes(self.element)
        if row % UNIT:
            raise VerifyException(f"rows of a box are multiples of {UNIT} bytes, not {row}")
        if self.swizzle and row > self.swizzle:
            raise VerifyException(
                f"rows of a box are at most as wide as its swizzle, {self.swizzle} bytes, not {row}"
            )

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{n}x" for n in self.extents))
            printer.print_attribute(self.element)
            if self.swizzle:
                printer.print_string(f", swizzle {self.swizzle}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            extents, element = parser.parse_ranked_shape()
            swizzle = 0
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("swizzle")
                swizzle = parser.parse_integer(allow_boolean=False)
        return (ArrayAttr(map(IntAttr, extents)), element, IntAttr(swizzle))


def verify_describes(map: TensorMapType, tensor: MemRefType) -> None:
    """Raise unless the tensor is one of which the map's box can be copied."""
    if tensor.memory_space == SHARED:
        raise VerifyException(f"describes global memory, got {tensor}")
    shape = shape_of(tensor)
    if len(shape) != len(map.extents) or tensor.element_type != map.element:
        raise VerifyException(f"{map} is no box of {tensor}")
    for axis in range(1, len(shape)):
        stride = divisor(extent_expr(prod(shape[axis:])), ()) * storage_bytes(map.element)
        if stride % UNIT:
            raise VerifyException(
                f"the stride of axis {axis - 1} of {tensor} is not proven to be a multiple of "
                f"{UNIT} bytes"
            )


def swizzled(offset: int, swizzle: int) -> int:
    """Where the byte at `offset` of a box lies, if the box is aligned to where its pattern repeats.

    The 16-byte units of a row are exchanged by the number of its 128 bytes (CUDA driver API,
    "CUtensorMapSwizzle").
    """
    return offset ^ (offset >> 3 & swizzle - UNIT) if swizzle else offset
