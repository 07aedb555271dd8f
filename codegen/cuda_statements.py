"""CUDA C++ text of instructions, which their rows in `machine/` say, of vectors, atomics and products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from string import Template
from typing import Any, Protocol

from xdsl.dialects import scf
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects import cuda, kernel
from ..dialects.fragments import COLUMNS, ROWS, SUMS, elements_of_registers
from ..dialects.scalars import storage_bytes
from ..dialects.tensor_map import UNIT
from ..dialects.tile import SHARED
from ..dialects.wgmma import GROUP_ROWS, PANEL, ROW_BYTES, STEP, WARPGROUP
from ..machine.matrix_instructions import WGMMA, MatrixInstruction
from ..machine.ptx import Instruction


class Names(Protocol):
    """What the text of an operation is made of; `CudaPrinter` has it."""

    index_type: str
    names: dict[SSAValue, str]
    variables: set[SSAValue]
    placed: set[SSAValue]

    def declared(self, value: SSAValue, type: str) -> str:
        """`const T name`, or the element of registers where a value lies."""
        ...

    def fresh(self, hint: str) -> str:
        """A C++ name that nothing has yet."""
        ...

    def type(self, type: Attribute) -> str:
        """The C++ type of a value."""
        ...

    def name(self, value: SSAValue) -> str:
        """The C++ name of a value."""
        ...

    def indices(self, map: AffineMapAttr, operands: Sequence[SSAValue]) -> list[str]:
        """The C++ text of index expressions."""
        ...

    def element(self, pointer: SSAValue, map: AffineMapAttr, operands: Sequence[SSAValue]) -> str:
        """The C++ text of an element of memory."""
        ...


def asm(text: str, *inputs: tuple[str, str]) -> str:
    """Inline PTX that touches memory, with (register, expression) inputs."""
    listed = ", ".join(f'"{register}"({expression})' for register, expression in inputs)
    between = f" {listed} " if inputs else ""
    return f'asm volatile("{text}" ::{between}: "memory");'


def shared_address(element: str) -> tuple[str, str]:
    """The address of an element of shared memory as an input of PTX."""
    return "r", f"(unsigned)__cvta_generic_to_shared(&{element})"


def instruction_text(names: Names, op: Operation, row: Instruction) -> str:
    """An instruction as its row says it is written."""
    inputs = [each for what in row.inputs for each in _inputs(names, op, what)]
    text = Template(row.text).substitute(_numbers(op))
    return "\n".join(asm(line, *inputs) for line in text.split("\n"))


def _numbers(op: Operation) -> dict[str, object]:
    """What an operation says in numbers."""
    said = op.properties.items()
    numbers: dict[str, object] = {n: a.value.data for n, a in said if isinstance(a, IntegerAttr)}
    if isinstance(op, kernel.AsyncCopyOp):  # only whole units can pass L1 by
        numbers |= {"bytes": op.bytes, "cache": "cg" if op.bytes == UNIT else "ca"}
    if isinstance(op, kernel.BulkCopyOp):
        rank = len(op.box.extents)
        places = ", ".join(f"%{i + 3}" for i in range(rank))
        numbers |= {"rank": rank, "places": places, "mask": (1 << op.receivers) - 1}
    return numbers


def _inputs(names: Names, op: Any, what: str) -> list[tuple[str, str]]:
    """An operand or an index of an operation as inputs of PTX: an address, numbers, or what is copied."""
    for index in op.INDEXED:
        if what not in (index.memory, index.map):
            continue
        map, indices = op.properties[index.map], getattr(op, index.operands)
        if index.memory is None:  # PTX has the innermost first
            texts = names.indices(map, indices)[::-1]
            return [("r", t if names.index_type == "int" else f"(int)({t})") for t in texts]
        memory = getattr(op, index.memory)
        element = names.element(memory, map, indices)
        is_global = isinstance(memory.type, MemRefType) and memory.type.memory_space != SHARED
        return [("l", f"&{element}") if is_global else shared_address(element)]
    name = names.name(getattr(op, what))
    return [("r", f"{name} ? {op.bytes} : 0") if what == "condition" else ("l", f"&{name}")]


def _mbarriers(names: Names, op: kernel.MbarriersOp) -> str:
    return f"__shared__ unsigned long long {names.name(op.result)}[{op.count.value.data}];"


_VECTORS = {
    "bool": "uchar",
    "signed char": "char",
    "unsigned short": "ushort",
    "long long": "longlong",
}
"""The vectors of C++ types that are not named after them."""


def _vector(names: Names, op: kernel.VectorLoadOp | kernel.VectorStoreOp) -> tuple[str, str]:
    """The type and the address of a vector."""
    element = names.type(op.values.types[0])
    vector = f"{_VECTORS.get(element, element)}{len(op.values)}"
    if packed := _in_a_word(op):
        vector = f"uint{len(op.values) // packed}"
    return vector, f"&{names.element(op.memref, op.map, op.indices)}"


def _in_a_word(op: kernel.VectorLoadOp | kernel.VectorStoreOp) -> int:
    """How many elements each word of a vector has that C++ has no vector type for; else 0."""
    if len(op.values) <= len("xyzw"):
        return 0
    return WORD_BYTES // storage_bytes(op.values.types[0])


WORD_BYTES = 4


def _vector_load(names: Names, op: kernel.VectorLoadOp) -> str:
    vector, address = _vector(names, op)
    whole = names.fresh(f"{op.values[0].name_hint or 'v'}_vector")
    lines = [f"const {vector} {whole} = *reinterpret_cast<const {vector}*>({address});"]
    packed = _in_a_word(op) or 1
    for number, value in enumerate(op.values):
        type = names.type(value.type)
        part = f"{whole}.{'xyzw'[number // packed]}"
        if packed == 1:
            names.names[value] = part  # the component is its name
            continue
        part = _unpacked(part, number % packed, type, 8 * WORD_BYTES // packed)
        lines.append(f"const {type} {names.name(value)} = {part};")
    return "\n".join(lines)


def _unpacked(word: str, number: int, type: str, bits: int) -> str:
    """An element of a word, by its number."""
    if type == "bool":
        return f"({word} >> {number * bits} & {(1 << bits) - 1}) != 0"
    return f"({type})({word} >> {number * bits})" if number else f"({type}){word}"


def _packed(name: str, number: int, type: str, bits: int) -> str:
    """The bits of an element in the word that has it with this number."""
    same = type == "unsigned short"
    plain = "" if same else "(unsigned short)" if bits == 16 else "(unsigned char)"
    word = f"(unsigned){plain}{name}"
    return f"{word} << {number * bits}" if number else word


def _vector_store(names: Names, op: kernel.VectorStoreOp) -> str:
    vector, address = _vector(names, op)
    listed = [names.name(value) for value in op.values]
    if packed := _in_a_word(op):
        type, bits = names.type(op.values.types[0]), 8 * WORD_BYTES // packed
        parts = [_packed(name, i % packed, type, bits) for i, name in enumerate(listed)]
        listed = [" | ".join(parts[i : i + packed]) for i in range(0, len(parts), packed)]
    values = ", ".join(listed)
    return f"*reinterpret_cast<{vector}*>({address}) = {vector}{{{values}}};"


def _atomic_add(names: Names, op: kernel.AtomicAddOp) -> str:
    address, value = f"&{names.element(op.memref, op.map, op.indices)}", names.name(op.value)
    if op.value.type == i64:  # C++ has it for unsigned numbers; the bits are the same
        wide = "unsigned long long"
        return f"atomicAdd(reinterpret_cast<{wide}*>({address}), ({wide}){value});"
    return f"atomicAdd({address}, {value});"


_REGISTERS = {"f32": "f", "f64": "d", "i32": "r"}
"""The registers of PTX that hold sums."""


def _mma(names: Names, op: kernel.MmaOp) -> str:
    row, repeats = op.instruction
    type = names.type(op.products[0].type)
    results = [names.name(v) for v in op.products]
    sums = [names.name(v) for v in op.sums] or ["0.0f" if type == "float" else "0"] * len(results)
    rows, columns = _fragments(names, op.rows, row, ROWS), _fragments(names, op.columns, row, COLUMNS)
    letter = _REGISTERS[row.sum_type]
    text = Template(row.text).substitute(type=op.element)
    count = [len(results), len(rows[0]), len(columns[0]), len(sums)]
    if repeats > 1:  # each adds to what the one before gave
        places = _places(count[:3])
        lines = _declared(names, type, op.products, sums)
        text, outputs = f"{text} {', '.join([*places, places[0]])};", _listed(f"+{letter}", results)
        for of_rows, of_columns in zip(rows, columns, strict=True):
            words = _listed(_word(op), [*of_rows, *of_columns])
            lines.append(f'asm volatile("{text}" : {outputs} : {words});')
        return "\n".join(lines)
    text = f"{text} {', '.join(_places(count))};"
    inputs = f"{_listed(_word(op), [*rows[0], *columns[0]])}, {_listed(letter, sums)}"
    outputs = _listed(f"={letter}", results)
    lines = [] if names.placed.issuperset(op.products) else [f"{type} {', '.join(results)};"]
    return "\n".join([*lines, f'asm volatile("{text}" : {outputs} : {inputs});'])


def _declared(
    names: Names, type: str, values: Sequence[SSAValue], initial: Sequence[str]
) -> list[str]:
    """Variables, or elements of registers, that begin as something; nothing if they are that already."""
    pairs = [(names.name(v), text) for v, text in zip(values, initial, strict=True)]
    if all(name == text for name, text in pairs):
        return []
    if not names.placed.issuperset(values):
        return [f"{type} {', '.join(f'{name} = {text}' for name, text in pairs)};"]
    copies = [names.fresh("v") for _ in values]
    declared = ", ".join(f"{copy} = {text}" for copy, text in zip(copies, initial, strict=True))
    return [
        f"{type} {declared};",
        *(f"{name} = {copy};" for (name, _), copy in zip(pairs, copies, strict=True)),
    ]


def _listed(register: str, expressions: Sequence[str]) -> str:
    """Operands of PTX that are in registers of one kind."""
    return ", ".join(f'"{register}"({expression})' for expression in expressions)


def _places(counts: Sequence[int]) -> list[str]:
    """The operands of an instruction, each so many registers in braces."""
    ends = list(accumulate(counts))
    return [
        f"{{{', '.join(f'%{i}' for i in range(end - count, end))}}}"
        for count, end in zip(counts, ends, strict=True)
    ]


def _word(op: kernel.MmaOp) -> str:
    """The registers of PTX that hold what is multiplied."""
    return "d" if storage_bytes(op.element) > WORD_BYTES else "r"


def _fragments(
    names: Names, values: Sequence[SSAValue], row: MatrixInstruction, along: int
) -> list[list[str]]:
    """What a thread holds as each instruction wants it: short elements are several in a register."""
    layout, depth = (row.rows, row.columns)[along == COLUMNS], row.shape[2]
    count = row.held[along == COLUMNS]
    orders = elements_of_registers(layout, count, along, depth, len(values) // count)
    packed = max(WORD_BYTES // storage_bytes(values[0].type), 1)
    type, bits = names.type(values[0].type), 8 * WORD_BYTES // packed
    fragments: list[list[str]] = []
    for order in orders:
        parts = [names.name(values[number]) for number in order]
        if packed > 1:
            parts = [_packed(part, i % packed, type, bits) for i, part in enumerate(parts)]
        fragments.append([" | ".join(parts[i : i + packed]) for i in range(0, count, packed)])
    return fragments


_SLAB = (1 << 62) | (8 * ROW_BYTES // 16 << 32)
"""What the tensor cores are told of a slab besides its address: a swizzle of 128 bytes, and how far apart
groups of 8 rows are, in units of 16 bytes (PTX ISA, "Matrix Descriptor Format": the "stride dimension byte
offset", of rows along the reduced axis and of rows that are its positions)."""

_OWN = (1 << 18) - 1
"""The bits of an address that a descriptor has (PTX ISA, "matrix-descriptor-encode")."""

_ALONE = 1
"""The "leading dimension byte offset" of a slab that has no other beside it."""


def _slab(
    names: Names,
    slab: tuple[SSAValue, AffineMapAttr, Sequence[SSAValue]],
    leading: int = _ALONE,
) -> str:
    """The descriptor of a slab, whose next panel is so many units further.

    Bits above those of an address in a block's own memory say which block of a cluster it is.
    """
    address = shared_address(names.element(*slab))[1]
    return f"(unsigned long long)(({address} & {_OWN:#x}) >> 4) | {_SLAB | leading << 16:#x}ull"


def _wgmma(names: Names, op: kernel.WgmmaOp) -> str:
    function = op.parent_op()
    while not isinstance(function, cuda.FuncOp):
        assert function is not None
        function = function.parent_op()
    groups = function.threads.value.data // WARPGROUP
    height, width = op.shape
    lines = _begin(names, op, op.products, op.sums)
    results = [names.name(v) for v in op.products]
    *row_slab, column_slab = op.slabs
    rows, columns = names.fresh("rows") if row_slab else "", names.fresh("columns")
    if row_slab:
        own = f" + threadIdx.x / {WARPGROUP} * {_units(GROUP_ROWS)}" if groups > 1 else ""
        lines.append(f"const unsigned long long {rows} = ({_slab(names, row_slab[0])}){own};")
    is_transposed = op.transposed is not None
    leading = _units(op.depth) if is_transposed and width > PANEL else _ALONE
    lines.append(f"const unsigned long long {columns} = {_slab(names, column_slab, leading)};")
    if not op.joined_to_it:
        lines.append(asm("wgmma.fence.sync.aligned;"))
    each = width // 2
    (order,) = elements_of_registers(WGMMA.sums, each, SUMS)
    sums_text = ", ".join(f"%{i}" for i in range(each))
    told = 1 if row_slab else 4
    rows_text = f"%{each}" if row_slab else f"{{{', '.join(f'%{each + i}' for i in range(4))}}}"
    orders = f"{'0, ' if row_slab else ''}{int(is_transposed)}"
    head = Template(WGMMA.text).substitute(columns=width, type=op.element)
    text = f"{head} {{{sums_text}}}, {rows_text}, %{each + told}, 1, 1, 1, {orders};"
    for step in range(op.depth // STEP):
        place = step * (_units(STEP) if is_transposed else 2)
        for part in range(height // (groups * GROUP_ROWS) if row_slab else 1):
            own = results[part * each : (part + 1) * each]
            totals = _listed("+f", [own[number] for number in order])
            if row_slab:
                inputs = [f'"l"({_further(rows, part * groups * _units(GROUP_ROWS) + step * 2)})']
            else:
                held = op.held[step * WGMMA.held[0] : (step + 1) * WGMMA.held[0]]
                inputs = [_listed("r", _fragments(names, held, WGMMA, ROWS)[0])]
            inputs.append(f'"l"({_further(columns, place)})')
            lines.append(f'asm volatile("{text}" : {totals} : {", ".join(inputs)});')
    if op.joined is None:
        lines.append(asm("wgmma.commit_group.sync.aligned;"))
        groups_left = op.pending // (op.joined_to_it + 1)
        lines.append(asm(f"wgmma.wait_group.sync.aligned {groups_left};"))
    return "\n".join(lines)


def _wgmma_wait(names: Names, op: kernel.WgmmaWaitOp) -> str:
    lines = _begin(names, op, op.results_, op.sums)
    totals = ", ".join(f'"+f"({names.name(v)})' for v in op.results_)
    lines.append(f'asm volatile("wgmma.wait_group.sync.aligned 0;" : {totals} :: "memory");')
    # without it ptxas puts what reads the sums in front of the wait, and has products wait for each other
    lines.append("__threadfence_block();")
    return "\n".join(lines)


def _begin(
    names: Names, op: Operation, results: Sequence[SSAValue], sums: Sequence[SSAValue]
) -> list[str]:
    """Declare results that begin as some sums, or let them be the variables that the sums are.

    A copy of a sum whose product is on its way would have the tensor cores wait for each other.
    """
    if not names.placed.issuperset(results) and all(_is_free(names, value, op) for value in sums):
        names.names.update(zip(results, map(names.name, sums), strict=True))
        names.variables.update(results)
        return []
    return _declared(names, "float", results, [names.name(value) for value in sums])


def _is_free(names: Names, value: SSAValue, user: Operation) -> bool:
    """Whether a value is a variable that `user` alone reads, once for each time that it is assigned."""
    made_in = value.owner if isinstance(value.owner, Block) else value.owner.parent
    block = user.parent
    while block is not None and block is not made_in:
        parent = block.parent_op()
        if parent is None or isinstance(parent, scf.ForOp):
            return False
        block = parent.parent
    return value in names.variables and value.has_one_use()


def _further(slab: str, units: int) -> str:
    """A place so many units of 16 bytes into a slab."""
    return f"{slab} + {units}" if units else slab


def _units(rows: int) -> int:
    """How many units of 16 bytes rows of a slab have."""
    return rows * ROW_BYTES // 16


STATEMENTS: dict[type[Operation], Callable[[Names, Any], str]] = {
    kernel.BarrierOp: lambda names, op: "__syncthreads();",
    kernel.MbarriersOp: _mbarriers,
    kernel.VectorLoadOp: _vector_load,
    kernel.VectorStoreOp: _vector_store,
    kernel.AtomicAddOp: _atomic_add,
    kernel.MmaOp: _mma,
    kernel.WgmmaOp: _wgmma,
    kernel.WgmmaWaitOp: _wgmma_wait,
}
"""The statement of each operation."""
