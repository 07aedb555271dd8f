"""The `kernel` dialect: what a GPU does, without a vendor, over `scf`, `arith` and `math`.

    kernel.func @k_sum(%x: memref<32x256xf32>, %y: memref<32xf32>) blocks(32) threads(256) {
      %row = kernel.block_id
      %lane = kernel.thread_id
      %v = loop.load %x[%row, %lane] : memref<32x256xf32>
      %s = kernel.shuffle %v xor 16 : f32
      ...
    }
    func.func @main(%x: memref<32x256xf32>) -> memref<32xf32> {
      %y = kernel.alloc : memref<32xf32>
      kernel.launch @k_sum(%x, %y) blocks(32) threads(256) : memref<32x256xf32>, memref<32xf32>
      func.return %y : memref<32xf32>
    }

Memory is read and written by `loop.load` and `loop.store`, whose index expressions stay affine, several
elements at once by `kernel_vector.py`, atomically by `kernel_atomic.py`, and copied while threads compute by
`kernel_async.py` and `kernel_bulk.py`; warps multiply matrices by `kernel_mma.py`. Each kernel runs on a
one-dimensional grid of one-dimensional blocks. The host side is here too: allocation, launches and calls of
PyTorch, in order, and loops of launches. On the CPU a kernel is a `func.func` that runs a range of blocks.
"""

from __future__ import annotations

from xdsl.ir import Dialect

from .kernel_async import AsyncCommitOp, AsyncCopyOp, AsyncWaitOp
from .kernel_atomic import AtomicAddOp
from .kernel_barriers import WARP, BarrierOp, NamedBarrierOp
from .kernel_bulk import BulkCopyOp, TensorMapOp
from .kernel_device import (
    AssertOp,
    BlockIdOp,
    FuncOp,
    ShuffleOp,
    ThreadIdOp,
)
from .kernel_host import (
    AllocOp,
    CallOp,
    LaunchOp,
    parse_bounds,
    parse_geometry,
    parse_index_type,
    print_bounds,
    print_geometry,
    verify_bounds,
    verify_geometry,
)
from .kernel_loop import LoopOp
from .kernel_mma import MmaOp, WgmmaWaitOp
from .kernel_shared import MAX_SHARED_BYTES, MAX_STATIC_SHARED_BYTES, SharedOp
from .kernel_vector import VectorLoadOp, VectorStoreOp
from .kernel_wgmma import WgmmaOp
from .mbarriers import (
    FenceOp,
    MbarrierExpectBytesOp,
    MbarrierInitOp,
    MbarriersOp,
    MbarriersType,
    MbarrierWaitOp,
)
from .tensor_map import TensorMapType

Kernel = Dialect(
    "kernel",
    [
        FuncOp,
        BlockIdOp,
        ThreadIdOp,
        SharedOp,
        BarrierOp,
        NamedBarrierOp,
        ShuffleOp,
        AssertOp,
        AsyncCopyOp,
        AsyncCommitOp,
        AsyncWaitOp,
        MbarriersOp,
        MbarrierInitOp,
        MbarrierExpectBytesOp,
        MbarrierWaitOp,
        FenceOp,
        BulkCopyOp,
        TensorMapOp,
        VectorLoadOp,
        VectorStoreOp,
        AtomicAddOp,
        MmaOp,
        WgmmaOp,
        WgmmaWaitOp,
        AllocOp,
        LaunchOp,
        CallOp,
        LoopOp,
    ],
    [MbarriersType, TensorMapType],
)

__all__ = [
    "MAX_SHARED_BYTES",
    "MAX_STATIC_SHARED_BYTES",
    "WARP",
    "AllocOp",
    "AssertOp",
    "AsyncCommitOp",
    "AsyncCopyOp",
    "AsyncWaitOp",
    "AtomicAddOp",
    "BarrierOp",
    "BlockIdOp",
    "BulkCopyOp",
    "CallOp",
    "FenceOp",
    "FuncOp",
    "Kernel",
    "LaunchOp",
    "LoopOp",
    "MbarrierExpectBytesOp",
    "MbarrierInitOp",
    "MbarrierWaitOp",
    "MbarriersOp",
    "MbarriersType",
    "MmaOp",
    "NamedBarrierOp",
    "SharedOp",
    "ShuffleOp",
    "TensorMapOp",
    "TensorMapType",
    "ThreadIdOp",
    "VectorLoadOp",
    "VectorStoreOp",
    "WgmmaOp",
    "WgmmaWaitOp",
    "parse_bounds",
    "parse_geometry",
    "parse_index_type",
    "print_bounds",
    "print_geometry",
    "verify_bounds",
    "verify_geometry",
]
