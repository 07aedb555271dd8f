"""`fill`: says how a block fills its slabs, the copies that `stage` made.

    %xs = tile.stage %x[%i * 64, %k * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
    %ws = tile.stage %w[%j * 64, %k * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
becomes, by `fill{via=cp_async buffers=3 pad=2,0}`,
    %xs = tile.stage %x[...] pad 2 buffers 3 via cp_async : memref<512x3584xf32> -> memref<64x16xf32, ...>
    %ws = tile.stage %w[...] buffers 3 via cp_async : memref<512x3584xf32> -> memref<64x16xf32, ...>

| option | what it says of a slab |
|---|---|
| `via` | who copies: `sync` and `cp_async`, threads, now or while they compute; `tma`, the copy engine |
| `row` | elements of its rows, more than are read, for wider copies |
| `pad` | elements by which its rows lie further apart than they are long |
| `buffers` | how many of it the iterations of a loop fill in turn |
| `swizzle` | bytes within which the copy engine exchanges units of 16 |
| `multicast` | blocks of a cluster that it is the same for, each of which brings a part |

An option has a value for each slab, in their order, or one for all; 0 takes it back. The pass declines what
the copies cannot do: rows that are no whole numbers of copies, boxes that the engine cannot take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.utils.exceptions import VerifyException

from ...analysis.copies import bulk_refusal, copy_elements
from ...dialects.inside import ops_of
from ...dialects.loop import ForOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import Transport, TransportAttr
from ...dialects.sizes import static_shape
from ...dialects.tile import PIPELINED, LaunchOp, StageOp
from ..replacing import replace
from .primitive import Primitive, check_word

NUMBERS = ("pad", "buffers", "swizzle", "multicast")
"""The options that are properties of a copy, and numbers."""


def slabs_of(launch: LaunchOp) -> list[StageOp]:
    """The copies that the threads of a block make together, in order."""
    return ops_of(launch, StageOp)


def _row_of(stage: StageOp) -> int:
    assert isinstance(stage.slab.type, MemRefType)
    return static_shape(stage.slab.type)[-1]


def value_of(stage: StageOp, option: str) -> int | str:
    """What an option says of a slab as it is."""
    if option == "via":
        return stage.transport.value
    if option == "row":
        return _row_of(stage)
    number = stage.properties.get(option)
    return number.value.data if isinstance(number, IntegerAttr) else 0


def _set(stage: StageOp, option: str, value: int | str) -> None:
    """Let an option, which is not `row`, say something of a slab."""
    if option == "via":
        stage.via = None if value == Transport.SYNC else TransportAttr(Transport(str(value)))
    elif value:
        stage.properties[option] = IntegerAttr(int(value), i64)
    else:
        stage.properties.pop(option, None)


def why_not(stage: StageOp, **options: int | str) -> str | None:
    """Why a slab cannot be filled so, or None if it can; leaves it as it is."""
    row = int(options.pop("row", 0) or _row_of(stage))
    if row < _row_of(stage):
        return f"rows of {_row_of(stage)} elements are read, not of {row}"
    if "buffers" in options and PIPELINED in getattr(stage.parent_op(), "attributes", ()):
        return "its loop copies ahead already"
    before = {option: value_of(stage, option) for option in options}
    for option, value in options.items():
        _set(stage, option, value)
    try:
        stage.verify_()
        return _obstacle(stage)
    except VerifyException as error:
        return str(error).strip()
    finally:
        for option, value in before.items():
            _set(stage, option, value)


def _obstacle(stage: StageOp) -> str | None:
    """Why what fills a slab cannot do it, or None."""
    if stage.transport is Transport.TMA:
        loop = stage.parent_op()
        around = loop.parent_op() if isinstance(loop, ForOp) else loop
        if not isinstance(around, LaunchOp):
            return "it is filled in a loop inside another or under a condition"
        if stage.multicast and (not isinstance(loop, ForOp) or loop.limit is not None):
            return "not all blocks of a cluster run its loop equally often"
        return bulk_refusal(stage, stage.swizzle_bytes)
    if stage.transport is Transport.CP_ASYNC and copy_elements(stage, stage.padding) is None:
        assert isinstance(stage.slab.type, MemRefType)
        size = storage_bytes(stage.slab.type.element_type)
        return f"rows are not proven to be whole numbers of 4 bytes, in elements of {size}"
    return None


@dataclass(frozen=True)
class FillPass(Primitive):
    """Say how slabs are filled. Raises UsageError for a transport that there is not."""

    name = "fill"
    rewrites_axes: ClassVar[bool] = False

    via: tuple[str, ...] = ()
    """Who copies: sync, cp_async or tma."""
    row: tuple[int, ...] = ()
    """Elements of rows, more than are read."""
    pad: tuple[int, ...] = ()
    """Elements by which rows lie further apart than they are long."""
    buffers: tuple[int, ...] = ()
    """How many the iterations of a loop fill in turn."""
    swizzle: tuple[int, ...] = ()
    """Bytes within which units of 16 are exchanged: 32, 64 or 128."""
    multicast: tuple[int, ...] = ()
    """Blocks of a cluster that it is the same for."""

    def __post_init__(self):
        for word in self.via:
            check_word("via", word, [each.value for each in Transport])

    @property
    def given(self) -> dict[str, tuple[int, ...] | tuple[str, ...]]:
        """The options that say something, by name."""
        values = {option: getattr(self, option) for option in ("via", "row", *NUMBERS)}
        return {option: each for option, each in values.items() if each}

    @property
    def done(self) -> str:
        """What was said."""
        return ", ".join(f"{o} {','.join(map(str, values))}" for o, values in self.given.items())

    def change(self, launch: LaunchOp) -> str | None:
        """Say it; gives why not."""
        slabs = slabs_of(launch)
        if not slabs:
            return "nothing is staged"
        if not self.given:
            return "it says nothing: no option is given"
        names = [slab.slab.name_hint or "a slab" for slab in slabs]
        for option, values in self.given.items():
            if len(values) not in (1, len(slabs)):
                return f"{option} has {len(values)} values; the slabs are {', '.join(names)}"
        wanted = [
            {option: values[n % len(values)] for option, values in self.given.items()}
            for n in range(len(slabs))
        ]
        for name, slab, options in zip(names, slabs, wanted, strict=True):
            changed = {key: each for key, each in options.items() if each != value_of(slab, key)}
            if changed and (reason := why_not(slab, **changed)) is not None:
                return f"{name}: {reason}"
        for slab, options in zip(slabs, wanted, strict=True):
            widened = _widened(slab, int(options.pop("row", 0)))
            for option, value in options.items():
                _set(widened, option, value)
        return None


def _widened(stage: StageOp, row: int) -> StageOp:
    """A slab with rows of so many elements, in its place; 0 leaves it as it is."""
    if row in (0, _row_of(stage)):
        return stage
    assert isinstance(stage.slab.type, MemRefType)
    shape = [*static_shape(stage.slab.type)[:-1], row]
    wide = StageOp(stage.source, list(stage.map.data.results), list(stage.origin), shape)
    wide.properties |= {key: value for key, value in stage.properties.items() if key != "map"}
    replace(stage, wide)
    return wide
