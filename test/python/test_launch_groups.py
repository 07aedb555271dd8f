"""Launches that run at once: which may, where their buffers lie, and that they run."""

import ctypes
import random
import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
import torch
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DictionaryAttr, FunctionType, IntAttr, MemRefType, ModuleOp, f32
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineExpr

import deplo
from deplo import DeploError
from deplo.dialects.kernel import AllocOp, CallOp, LaunchOp
from deplo.dialects.loop import LoadOp, StoreOp
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source
from deplo.passes.kernel.assign_arena import AssignArenaPass
from deplo.passes.kernel.group_launches import GroupLaunchesPass
from deplo.runtime import cpu, threads
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.cpu_kernels import TIMED_CALLS
from deplo.runtime.gpus import TorchGpu
from deplo.runtime.plan_parts import Step

UNIT = 64
"""Bytes of the oracle's unit of memory."""
PLANS = 1000
ZERO = [AffineExpr.constant(0)]


# --------------------------------------------------------------------------- random plans


def kernel_function(name, reads, writes):
    """A function of so many buffers that loads the first element of some and stores to that of others."""
    count = max((*reads, *writes)) + 1
    block = Block(arg_types=[MemRefType(f32, [1])] * count)
    loads = [LoadOp(block.args[i], ZERO, []) for i in reads]
    value = loads[0].result
    stores = [StoreOp(value, block.args[i], ZERO, []) for i in writes]
    block.add_ops([*loads, *stores, func.ReturnOp()])
    return func.FuncOp(name, ([a.type for a in block.args], []), Region(block))


@dataclass
class Does:
    """What a step does, by the numbers of arrays; 0 is the program's argument."""

    reads: list[int]
    writes: list[int]
    called: bool


def random_plan(rng):
    """A module whose `@main` runs random steps, and what these do."""
    x = MemRefType(f32, [16])
    main = Block(arg_types=[x])
    arrays, steps, functions = [main.args[0]], [], {}
    for number in range(rng.randint(2, 14)):
        reads = sorted(rng.sample(range(len(arrays)), min(len(arrays), rng.randint(1, 3))))
        made = range(len(arrays), len(arrays) + rng.choice((1, 1, 1, 2)))
        for _ in made:
            alloc = AllocOp(MemRefType(f32, [rng.randint(1, 100)]))
            main.add_op(alloc)
            arrays.append(alloc.result)
        touched = [*reads, *made]
        called = rng.random() < 0.05
        again = [i for i in reads if i and not called and rng.random() < 0.1]
        writes = [*made, *again]
        operands = [arrays[i] for i in touched]
        if called:
            inputs = operands[: len(reads)]
            step = CallOp("aten.any.default", DictionaryAttr({}), inputs, operands[len(reads) :])
        else:
            positions = tuple(touched.index(i) for i in writes)
            name = f"k{len(reads)}_{len(touched)}_{'_'.join(map(str, positions))}"
            if name not in functions:
                functions[name] = kernel_function(name, range(len(reads)), positions)
            step = LaunchOp(name, operands, 1, 1)
        step.attributes["number"] = IntAttr(number)
        main.add_op(step)
        steps.append(Does(reads, writes, called))
    returned = rng.sample(range(1, len(arrays)), rng.randint(0, 2))
    main.add_op(func.ReturnOp(*(arrays[i] for i in returned)))
    types = FunctionType.from_lists([x], [arrays[i].type for i in returned])
    host = func.FuncOp("main", types, Region(main))
    return ModuleOp([*functions.values(), host]), host, arrays, steps, returned


# --------------------------------------------------------------------------- the oracle


class Memory:
    """Which version of which array each unit of memory holds."""

    def __init__(self, arrays):
        self.places = {}
        self.content = {}
        for number, value in enumerate(arrays):
            size = -(-value.type.get_shape()[0] * 4 // UNIT)
            offset = value.owner.offset if isinstance(value.owner, AllocOp) else None
            own = ("apart", number) if offset is None else "arena"
            first = 0 if offset is None else offset.data // UNIT
            self.places[number] = [(own, unit) for unit in range(first, first + size)]

    def write(self, number, version):
        self.content |= dict.fromkeys(self.places[number], (number, version))

    def holds(self, number, version):
        return all(self.content.get(unit) == (number, version) for unit in self.places[number])


def in_turn(steps):
    """What each step finds and leaves where all run one after the other; and the last versions."""
    versions, wanted = {0: 0}, []
    for step in steps:
        found = {i: versions[i] for i in step.reads}
        versions |= {i: versions.get(i, 0) + 1 for i in step.writes}
        wanted.append((found, {i: versions[i] for i in step.writes}))
    return wanted, versions


def groups_in(host):
    """The numbers of the steps, in order, group by group."""
    groups = []
    for op in host.body.block.ops:
        if isinstance(op, LaunchOp | CallOp):
            group = op.attributes.get("group")
            if group is None or not groups or groups[-1][0] != group:
                groups.append((group, []))
            groups[-1][1].append(op.attributes["number"].data)
    return [group for _, group in groups]


def run_group(memory, group, wanted):
    """Run steps at once: what one writes may come before another reads, or after."""
    for when in ("before", "after"):
        for n in group:
            for i, version in wanted[n][0].items():
                kept = when == "before" or i not in wanted[n][1]
                if kept and not memory.holds(i, version):
                    return f"step {n} does not find array {i} {when} its group wrote"
        if when == "before":
            writes = [each for n in group for each in wanted[n][1].items()]
            for each in writes:
                memory.write(*each)
            if not all(memory.holds(*each) for each in writes):
                return "two steps wrote to one place"
    return None


def run(host, arrays, steps, returned):
    """Run a plan's groups; a str says what is wrong."""
    wanted, versions = in_turn(steps)
    groups = groups_in(host)
    order = [n for group in groups for n in group]
    calls = [n for n in order if steps[n].called]
    if sorted(order) != list(range(len(steps))) or calls != sorted(calls):
        return "a step is missing, or calls of PyTorch changed their order"
    memory = Memory(arrays)
    memory.write(0, 0)
    for group in groups:
        if wrong := run_group(memory, group, wanted):
            return wrong
    kept = all(memory.holds(i, versions[i]) for i in returned)
    return None if kept else "a result is not there at the end"


@pytest.fixture(scope="module")
def plans():
    rng = random.Random(0)
    context, made = Context(), []
    for _ in range(PLANS):
        plan = random_plan(rng)
        GroupLaunchesPass().apply(context, plan[0])
        made.append(plan)
        AssignArenaPass().apply(context, plan[0])
    return made


def test_no_two_buffers_overlap_while_both_are_needed(plans):
    assert [run(*plan[1:]) for plan in plans] == [None] * PLANS
    grouped = sum("group" in step.attributes for plan in plans for step in plan[1].body.block.ops)
    shared = sum(b.offset is not None for p in plans for b in p[1].walk() if isinstance(b, AllocOp))
    assert grouped > 3 * PLANS
    assert shared > 3 * PLANS


def test_the_oracle_finds_what_is_wrong():
    found = []
    for seed in range(40):
        module, *plan = random_plan(random.Random(seed))
        for op in plan[0].walk():
            if isinstance(op, LaunchOp):  # all at once, whatever they need
                op.attributes["group"] = IntAttr(0)
        found.append(run(*plan))
    assert any(found)
    for seed in range(40):
        module, *plan = random_plan(random.Random(seed))
        GroupLaunchesPass().apply(Context(), module)
        for op in plan[0].walk():
            op.attributes = {k: v for k, v in op.attributes.items() if k != "group"}
        AssignArenaPass().apply(Context(), module)
        GroupLaunchesPass().apply(Context(), module)
        found.append(run(*plan))
    assert any(found[40:])  # the arena must know the groups


# --------------------------------------------------------------------------- a model's arena


def test_the_arena_of_a_model_is_little_more_than_what_is_alive():
    small = "hidden_size=64,intermediate_size=176,num_attention_heads=4,num_key_value_heads=2,vocab_size=100"
    source = load_source("hf:llama", config=f"{small},num_hidden_layers=4", seq_len=32)
    captured = capture(source.program, source.args, source.kwargs)
    plan = deplo.Program(captured, deplo.program.find_target("cpu")).plan
    assert max(map(len, plan.groups)) > 1
    uses = {}
    for time, step in enumerate(plan.steps):  # one after the other
        for ref in step.arguments:
            if ref.kind == "buffer" and plan.buffers[ref.index].offset is not None:
                uses.setdefault(ref.index, []).append(time)
    alive = [
        sum(plan.buffers[i].array.nbytes for i, at in uses.items() if at[0] <= time <= at[-1])
        for time in range(len(plan.steps))
    ]
    assert max(alive) <= plan.arena_bytes <= 1.25 * max(alive)


# --------------------------------------------------------------------------- running


def two_chains(a, b, c, rows):
    return (a @ b).softmax(-1) @ (c @ b), a[rows].exp().sum(0)


def inputs(size=64):
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(size, size, generator=generator) for _ in range(3)]
    return [*drawn, torch.tensor([0, 5, size - 1])]


@pytest.fixture(scope="module")
def chains():
    return deplo.compile(two_chains, inputs())


@pytest.mark.parametrize("has_team", [True, False])
def test_groups_run_on_all_threads(chains, monkeypatch, has_team):
    """With a team also as a prepared call."""
    found = threads.sharing()
    assert found.team is not None
    shared = replace(found, threads=3, worth_seconds=0.0, team=found.team if has_team else None)
    monkeypatch.setattr(cpu, "sharing", lambda: shared)
    monkeypatch.setattr(threads, "thread_count", lambda: 3)
    program = CpuProgram(chains.plan)
    given = inputs()
    alone = chains.executable(*given)
    for _ in range(TIMED_CALLS + 2):
        for got, expected in zip(program(*given), alone, strict=True):
            assert torch.equal(got, expected)
    assert bool(program._prepared) == has_team
    given[3][1] = 64
    with pytest.raises(IndexError, match="out of range"):
        program(*given)
    program._prepared = ()
    with pytest.raises(IndexError, match="out of range"):
        program(*given)


def test_a_group_is_handed_over_where_its_launches_alone_are_not(chains, monkeypatch):
    found = threads.sharing()
    groups = []
    real = threads.Sharing.run_together
    monkeypatch.setattr(
        threads.Sharing,
        "run_together",
        lambda self, tasks: (groups.append(len(tasks)), real(self, tasks)),
    )
    monkeypatch.setattr(cpu, "sharing", lambda: replace(found, threads=2, worth_seconds=1e-9))
    program = CpuProgram(chains.plan)
    for _ in range(3):
        program(*inputs())
    assert set(groups) == {len(group) for group in chains.plan.groups if len(group) > 1}


class Meeting:
    """In the place of a program's kernels, functions whose first calls wait until all of them are called."""

    def __init__(self, program, seconds):
        self.barrier = threading.Barrier(len(program._kernels))
        self.seconds = seconds
        self.called: set[str] = set()
        self.missed = 0
        self.functions = []
        for step in program.plan.launches:
            kernel = program._kernels[step.kernel]
            # The arrays, the blocks to run and where a failed check is written.
            words = len(step.arguments) + 3
            kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * words)
            self.functions.append(function := kind(self.meet(step.kernel)))
            kernel.address = ctypes.cast(function, ctypes.c_void_p).value
            kernel.seconds_per_block = 1.0

    def meet(self, name):
        """A kernel that computes nothing."""

        def kernel(*_):
            if name not in self.called:
                self.called.add(name)
                try:
                    self.barrier.wait(self.seconds)
                except threading.BrokenBarrierError:
                    self.missed += 1

        return kernel


@pytest.fixture(scope="module")
def products():
    """Two products of 512 by 512 that do not depend on each other."""
    arguments = [torch.randn(512, 512) for _ in range(4)]
    return deplo.compile(lambda a, b, c, d: (a @ b, c @ d + 1), arguments), arguments


@pytest.mark.parametrize("has_team", [True, False])
def test_two_products_run_at_once_on_two_threads(products, monkeypatch, has_team):
    """Neither ends before the other begins."""
    compiled, arguments = products
    found = threads.sharing()
    assert found.team is not None
    shared = replace(found, threads=2, worth_seconds=0.0, team=found.team if has_team else None)
    monkeypatch.setattr(cpu, "sharing", lambda: shared)
    monkeypatch.setattr(threads, "thread_count", lambda: 2)
    program = CpuProgram(compiled.plan)
    meeting = Meeting(program, 60.0)
    for _ in range(TIMED_CALLS + 2):  # with a team the last ones are prepared calls
        meeting.called.clear()
        program(*arguments)
        assert len(meeting.called) == 2
    assert meeting.missed == 0
    assert bool(program._prepared) == has_team


def test_launches_in_turn_do_not_meet(products, monkeypatch):
    compiled, arguments = products
    shared = replace(threads.sharing(), threads=2, worth_seconds=0.0)
    monkeypatch.setattr(cpu, "sharing", lambda: shared)
    steps = (replace(s, group=None) if isinstance(s, Step) else s for s in compiled.plan.steps)
    program = CpuProgram(replace(compiled.plan, steps=tuple(steps)))
    meeting = Meeting(program, 0.1)
    program(*arguments)
    assert meeting.missed == 2


def test_a_plan_whose_groups_share_memory_is_refused(chains):
    plan = chains.plan
    group = next(group for group in plan.groups if len(group) > 1)
    first, second = (plan.steps[i] for i in group[:2])

    def refused(steps):
        data = [*plan.steps]
        for position, step in zip(group[:2], steps, strict=True):
            data[position] = step
        with pytest.raises(DeploError, match="run at once, and one writes"):
            replace(plan, steps=tuple(data)).check()

    (written,) = first.writes
    refused([first, replace(second, arguments=(first.arguments[written], *second.arguments[1:]))])
    own = second.arguments[:-1]
    refused([first, replace(second, arguments=(*own, first.arguments[written]))])
    plan.check()


class FakeStream:
    """A stream that writes down who waits for whom."""

    made = 0

    def __init__(self, told, device=None):
        self.told, self.cuda_stream = told, FakeStream.made
        FakeStream.made += 1

    def wait_stream(self, other):
        self.told.append((self.cuda_stream, "waits for", other.cuda_stream))


@pytest.mark.parametrize("capturing", [True, False])
def test_a_recorded_graph_has_branches(capturing):
    told = []
    FakeStream.made = 0
    current = FakeStream(told)
    fake = SimpleNamespace(
        Stream=lambda device: FakeStream(told, device),
        current_stream=lambda device: current,
        is_current_stream_capturing=lambda: capturing,
    )
    gpu = TorchGpu(SimpleNamespace(cuda=fake), SimpleNamespace(index=0))
    for _ in range(2):  # the second time with the same streams
        with gpu.branches(3) as streams:
            told.append(list(streams))
    once = [(1, "waits for", 0), (2, "waits for", 0), [0, 1, 2]]
    once += [(0, "waits for", 1), (0, "waits for", 2)]
    assert told == (once * 2 if capturing else [[0], [0]])
