"""Machine code of a whole plan in one shared object, which was linked when the program was saved.

It is loaded from memory: nothing is written to disk, and no compiler is there.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

from ..errors import DeploError, MissingEnvironmentError
from . import native_code
from .plan import Plan
from .prepared import RUN


def texts_of(plan: Plan) -> dict[str, str]:
    """All functions that run a plan and its parts, by name, as `compile_kernel` is asked for them.

    These are its kernels, and what launches them.
    """
    whole = plan.whole
    steps = [step for each in whole for step in each.launches]
    counts = sorted({len(step.arguments) + len(step.sizes) for step in steps})
    texts = {kernel.name: kernel.source for each in whole for kernel in each.kernels}
    texts |= dict(map(native_code.driver_text, counts))
    if any(len(group) > 1 for each in whole for group in each.groups):
        texts["deplo_drive_group"] = native_code.GROUP
    return texts | {"deplo_run": RUN}


def load_code(code: memoryview, texts: Mapping[str, str]) -> None:
    """Load a shared object that has a function for each of `texts`: these are then not compiled any more.

    Its descriptor stays open, for the system's loader tells libraries apart by their paths. Raises DeploError
    if a function is missing, MissingEnvironmentError where code cannot be loaded from memory.
    """
    if all(native_code.is_known(*each) for each in texts.items()):
        return
    if not hasattr(os, "memfd_create"):
        raise MissingEnvironmentError("machine code in a file can be loaded on Linux only")
    try:
        file = os.memfd_create("deplo", os.MFD_CLOEXEC)
        with open(file, "wb", closefd=False) as memory:
            memory.write(code)
        library = ctypes.CDLL(f"/proc/self/fd/{file}")
        addresses = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p) for name in texts}
    except (OSError, AttributeError) as error:
        raise DeploError(f"the machine code cannot be loaded: {error}") from error
    for name, text in texts.items():
        address = addresses[name].value
        assert address is not None
        native_code.adopt(name, text, address, library)
