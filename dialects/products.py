"""How products of f32 may be rounded: the attribute `deplo.products` of a module.

    builtin.module attributes {deplo.products = {matmul = tf32, convolution = tf32}} { ... }

What is multiplied is rounded to that type first; sums stay in f32. A kind of product that is not named is
computed in f32.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, bf16, tf32
from xdsl.ir import Attribute
from xdsl.utils.str_enum import StrEnum

from ..errors import UsageError

PRODUCTS = "deplo.products"

ROUNDED: tuple[Attribute, ...] = (bf16, tf32)
"""What factors in f32 may be rounded to."""


class Product(StrEnum):
    """Kinds of products that PyTorch has a setting for each."""

    MATMUL = "matmul"
    CONVOLUTION = "convolution"


def rounded_products(module: ModuleOp) -> Mapping[Product, Attribute]:
    """What a module rounds factors to. Raises UsageError where its attribute says something else."""
    attribute = module.attributes.get(PRODUCTS, DictionaryAttr({}))
    kinds = [kind.value for kind in Product]
    if (
        not isinstance(attribute, DictionaryAttr)
        or not set(attribute.data) <= set(kinds)
        or any(element not in ROUNDED for element in attribute.data.values())
    ):
        types = " or ".join(map(str, ROUNDED))
        raise UsageError(
            f"{PRODUCTS} gives for each of {', '.join(kinds)} the type {types}, not {attribute}"
        )
    return {Product(kind): element for kind, element in attribute.data.items()}
