"""Numpy interpreters: what each IR means, so that every lowering can be checked.

    outputs = execute(module, inputs)

runs `@main` of a module at the tensor, loop, tile, kernel or CUDA level. `random_inputs` makes ordinary and
adversarial inputs for a module, and `compare` judges two results. `access_rows` says of a kernel's accesses
which conflict for banks and which are not coalesced.
"""

from .accesses import AccessRow
from .compare import compare
from .execute import access_rows, execute, random_inputs
from .history import History
from .numpy_types import numpy_dtype, round_to_bfloat16
from .scalar_ops import NotExecutable
from .tensor_ir import ProgramError, ProgramFault

__all__ = [
    "AccessRow",
    "History",
    "NotExecutable",
    "ProgramError",
    "ProgramFault",
    "access_rows",
    "compare",
    "execute",
    "numpy_dtype",
    "random_inputs",
    "round_to_bfloat16",
]
