"""`tensorize`: instructions compute a nest of a launch, each thread with a tile of the results.

    tile.launch (%i = 8 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 { ... %a[%i, %k] * %b[%j, %k] ... }
      loop.store %s, %c[%i, %j]
    }
becomes, by `tensorize{axes=i,j by=2,2}`,
    tile.launch (%i = 4 : thread, %j = 32 : thread) {
      %s00, %s01, %s10, %s11 = loop.for %k = 0 to 256 reduce(add, add, add, add) -> f32, f32, f32, f32 {
        ...                                  // 2 elements of %a and 2 of %b for 4 products
      }
      loop.store %s00, %c[%i * 2, %j * 2]
      ...
    }

| instr | what computes | what it needs | shown in `passes/tile/` |
|---|---|---|---|
| `fma` | a thread, element by element | tiles that divide the axes | `thread_tiles.py` |
| `m16n8k16`, … | warps, matrices in registers | products of its types in slabs | `warp_tiles.py` |
| `wgmma` | warpgroups, slabs | rows of 128 bytes that the copy engine can bring | `warpgroup_tiles.py` |

Threads that multiply alone compute neighbours, or `strips` of so many neighbours as far apart as all threads'
strips are long. What follows the sweep is done for each element. Sums are folded in the order that they had,
but in the registers of tensor cores.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.inside import ops_in
from ...dialects.loop import KernelOp
from ...dialects.tile import CombineOp, LaunchOp, Level, PackOp, PrefixOp
from ...dialects.tile_mma import MmaOp, WgmmaOp
from ...errors import UsageError
from ...machine.matrix_instructions import MMA, WGMMA
from ..loop.dedup_loads import dedup_kernel
from ..loop.share_sweeps import share_in_block
from ..tile.named_axes import find_axis
from ..tile.thread_tiles import tile_registers
from ..tile.warp_tiles import find_product, use_warps
from ..tile.warpgroup_tiles import find_slabs, use_warpgroups
from .primitive import Primitive, check_word

INSTRUCTIONS = ("fma", "wgmma", *dict.fromkeys(row.name for row in MMA))
"""What may multiply; an instruction of a warp is called by its shape."""


@dataclass(frozen=True)
class TensorizePass(Primitive):
    """Give threads tiles and instructions. Raises UsageError for tiles that no launch can have."""

    name = "tensorize"

    axes: tuple[str, ...] = ()
    """The axes of rows and of columns, by the names of their counters."""
    by: tuple[int, ...] = ()
    """How many of each a thread computes."""
    strips: tuple[int, ...] = ()
    """How many of these are neighbours; all if nothing is said."""
    instr: str = "fma"
    """What multiplies."""

    def __post_init__(self):
        check_word("instr", self.instr, INSTRUCTIONS)
        if not self.axes or len(set(self.axes)) < len(self.axes) or len(self.by) != len(self.axes):
            raise UsageError("axes are names, each once, and by has a number for each")
        if self.instr != "fma" and (len(self.axes) != 2 or self.strips):
            raise UsageError(f"{self.instr} has axes of rows and of columns, and strips of its own")
        strips = self.strips or self.by
        if len(strips) != len(self.by):
            raise UsageError("strips has a number for each axis")
        if any(s < 1 or strip < 1 or s % strip for s, strip in zip(self.by, strips, strict=True)):
            raise UsageError("by and strips are 1 or more, and strips divide by")

    @property
    def done(self) -> str:
        """What a thread computes."""
        return f"each thread computes {' by '.join(map(str, self.by))} elements by {self.instr}"

    def settled(self, launch: LaunchOp) -> str | None:
        """Why threads have no tiles of their own, or None: they may copy slabs together."""
        if any(isinstance(op, CombineOp | PrefixOp) for op in ops_in(launch)):
            return "its threads exchange values"
        if any(isinstance(op, MmaOp | WgmmaOp) for op in ops_in(launch)):
            return "its threads multiply together already"
        if any(isinstance(op, PackOp) for op in ops_in(launch)):
            return "its blocks read packed copies, which are made for its axes"
        return None

    def change(self, launch: LaunchOp) -> str | None:
        """Give threads tiles; gives why not."""
        positions: list[int] = []
        for name, size in zip(self.axes, self.by, strict=True):
            if isinstance(found := find_axis(launch, name), str):
                return found
            axis = launch.axes.data[found]
            extent = axis.extent.data
            if axis.level.data is not Level.THREAD:
                return f"{name} does not count threads"
            if extent % size != 0:
                return f"no tiles of {size} divide the {extent} points of {name}"
            positions.append(found)
        kernel = launch.parent_op()
        assert isinstance(kernel, KernelOp)
        return self._tile(launch, kernel, positions)

    def _tile(self, launch: LaunchOp, kernel: KernelOp, positions: list[int]) -> str | None:
        """Make the tiles, along axes at these positions; gives why not."""
        if self.instr == "fma":
            tiles = {axis: size for axis, size in zip(positions, self.by, strict=True) if size > 1}
            strips = dict(zip(positions, self.strips or self.by, strict=True))
            tile_registers(launch, tiles, strips)
            while share_in_block(launch.body.block):
                dedup_kernel(kernel)
            return None
        rows = [WGMMA] if self.instr == "wgmma" else [row for row in MMA if row.name == self.instr]
        (m, n), (height, width) = positions, self.by
        found = find_product(launch, rows, (m, n), (height, width))
        if isinstance(found, str):
            return found
        if self.instr != "wgmma":
            use_warps(found)
        elif isinstance(slabs := find_slabs(found), str):
            return slabs
        else:
            use_warpgroups(found, slabs)
        dedup_kernel(kernel)
        return None
