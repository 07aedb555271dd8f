"""Deliberate defects in copies of the lowerings: the pass checker catches every one.

A mutant is a pass whose source text, or that of a module it imports, has one snippet replaced. It runs in
the place of the original on programs for which the defect matters.
"""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from ir_programs import DYNAMIC_PROGRAMS, TILE_PROGRAMS, make_context, parse
from programs import compiled, make
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from deplo import interpreter
from deplo.analysis.verify import Verifier
from deplo.errors import DeploError
from deplo.passes import PASSES
from deplo.passes.pipelines import make_pipeline
from deplo.tools.check_each_pass import PassChecker
from deplo.tools.executors import array_of, make_executor, run_native

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Mutant:
    """A defect in `module`: `old`, which occurs once, becomes `new`; seen through the pass `victim`."""

    victim: str
    module: str
    old: str
    new: str
    programs: tuple[str, ...]
    target: str = "sm_90a"
    through: tuple[str, ...] = ()
    """The modules between, that import `module` and that the victim imports, in this order."""


def mutated_pass(mutant: Mutant) -> ModulePass:
    """The victim with the defect; the installed modules stay as they are."""
    where, _, name = PASSES[mutant.victim].partition(":")
    chain = dict.fromkeys(
        f"deplo.passes.{module}" for module in (mutant.module, *mutant.through, where[1:])
    )
    before = {full: importlib.import_module(full) for full in chain}
    try:
        for full in chain:
            path = ROOT.joinpath(*full.split(".")[1:]).with_suffix(".py")
            text = path.read_text()
            if full.endswith(mutant.module):
                assert text.count(mutant.old) == 1, "the snippet must occur exactly once"
                text = text.replace(mutant.old, mutant.new)
            made = ModuleType(full)
            _install(full, made)
            made.__dict__.update(__package__=full.rpartition(".")[0], __file__=str(path))
            exec(compile(text, str(path), "exec"), made.__dict__)
        return getattr(sys.modules[f"deplo.passes{where}"], name)()
    finally:
        for full, module in before.items():
            _install(full, module)


def _install(full: str, module: ModuleType) -> None:
    """Make both `import a.b` and `from a import b` find `module`."""
    package, _, leaf = full.rpartition(".")
    sys.modules[full] = module
    setattr(sys.modules[package], leaf, module)


def execute_any(
    module: ModuleOp, inputs: Sequence[np.ndarray], history: interpreter.History
) -> Sequence[np.ndarray]:
    """Run any stage below Torch IR; the LLVM stage as native code."""
    if any(isinstance(op, llvm.FuncOp) for op in module.walk()):
        return run_native(module, "cpu", inputs)
    return interpreter.execute(module, inputs, history)


def check(
    name: str,
    target: str,
    mutant: ModulePass | None,
    tell: Callable[[str], None] = lambda line: None,
) -> None:
    """Check each pass on a program, the mutant in its place. Raises what the checks raise."""
    end = "llvm" if target == "cpu" else "cuda"
    if name in TILE_PROGRAMS or name in DYNAMIC_PROGRAMS:
        module = parse((TILE_PROGRAMS | DYNAMIC_PROGRAMS)[name])
        start = "tile" if name in TILE_PROGRAMS else "tensor"
        passes = make_pipeline(f"{start}-to-{end}", target)
        checker = PassChecker(tell, execute=execute_any)
    else:
        program, args = make(name)
        captured = compiled(name).captured
        module = captured.module.clone()
        flat = captured.flatten_inputs(args, {})
        values = [
            array_of(captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index])
            for a in captured.arguments
        ]
        passes = make_pipeline(f"torch-to-{end}", target)
        execute = make_executor(captured, program, target)
        checker = PassChecker(tell, execute=execute, inputs=[values])
    if mutant is not None:
        assert mutant.name in [each.name for each in passes]
    context, verifier = make_context(), Verifier()
    checker.begin(module)
    for each in passes:
        if mutant is not None and each.name == mutant.name:
            each = type(mutant)(**vars(each))
        each.apply(context, module)
        verifier.verify(module)
        checker.after_pass(each, module)


MATERIALIZE = ("materialize-tile", "kernel.materialize_tile")
STAGES = ("materialize-tile", "kernel.stage_copies")
FOLDS = ("materialize-tile", "kernel.thread_folds")
LOOPS = ("materialize-tile", "lower_loops")
WIDTH = ("choose-index-width", "kernel.choose_index_width")
LIFT = ("lift-to-loops", "loop.lift_to_loops")
SCALAR_CODE = ("lift-to-loops", "loop.scalar_code")
MERGE = ("fuse-loops", "loop.merging")
DEDUP = ("dedup-loads", "loop.dedup_loads")
SPLIT = ("blockify-launch", "schedule.split")
cooperate = partial(
    Mutant, "cooperative-reduce", "schedule.partial_threads", through=("schedule.partial",)
)
SIBLINGS = ("merge-siblings", "loop.merge_siblings")
JOIN = ("join-kernels", "loop.join_kernels")
SHARE = ("share-sweeps", "loop.share_sweeps")
tile_threads = partial(
    Mutant, "register-tile", "tile.thread_tiles", through=("schedule.tensorize",)
)
COMPOSE = ("compose-index-maps", "tensor_ir.compose_index_maps")
LAYOUT = ("decompose-torch", "torch.layout")
ARENA = ("assign-arena", "kernel.assign_arena")
CUDA_INDICES = ("lower-to-cuda", "kernel.cuda_indices")
ACCESSES = ("convert-to-llvm", "llvm.accesses")

ELIDE = ("elide-barriers", "kernel.elide_barriers")

BARRIER = "builder.insert(BarrierOp())\n"

MUTANTS = {
    "no barrier before a slab is filled again": Mutant(
        *STAGES, "builder.insert(self._barrier())  # the last", "pass  # the last", ("restaged",)
    ),
    "no barrier after a slab is filled": Mutant(
        *STAGES, f"{BARRIER}        self._redirect", "self._redirect", ("staged",)
    ),
    "no barrier before the parts are stored again": Mutant(
        *FOLDS, f"    {BARRIER}    writer", "    pass\n    writer", ("recombined",)
    ),
    "no barrier after the parts are stored": Mutant(
        *FOLDS, f"{BARRIER}    return buffer", "return buffer", ("combined",)
    ),
    "butterfly starts at the wrong lane mask": Mutant(
        *FOLDS, "mask = lanes // 2", "mask = lanes // 4", ("combined",)
    ),
    "butterfly stops one step early": Mutant(
        *FOLDS, "while mask:", "while mask > 1:", ("grouped",)
    ),
    "two threads of a warp write its part": Mutant(
        *FOLDS, "D0 % stride)", "D0 % (stride // 2))", ("combined",)
    ),
    "parts of the wrong group are folded": Mutant(*FOLDS, "* parts + D0\n", "+ D0\n", ("seven",)),
    "cooperative copy without its tail guard": Mutant(
        *STAGES, "if count % threads:", "if count < 0:", ("staged",)
    ),
    "cooperative copy one element short": Mutant(
        *STAGES, "(count - 1)", "(count - 2)", ("staged",)
    ),
    "slab indices swapped": Mutant(
        *STAGES,
        "StoreOp(value, self.memory[stage], place, operands)",
        "StoreOp(value, self.memory[stage], place[::-1], operands)",
        ("staged_transposed",),
    ),
    "block axes swapped": Mutant(
        *MATERIALIZE,
        "delinearize(D0, extents), strict",
        "delinearize(D0, extents)[::-1], strict",
        ("two_block_axes",),
    ),
    "one block fewer": Mutant(
        *MATERIALIZE,
        "blocks = launch.num_blocks if",
        "blocks = launch.num_blocks - 1 if",
        ("matrix_product",),
    ),
    "reduction starts from the identity of another combiner": Mutant(
        *LOOPS,
        "identity(combiner, element)",
        "identity(Combiner.ADD, element)",
        ("two_block_axes",),
    ),
    "maximum folds as minimum": Mutant(
        *LOOPS, "MAX: arith.MaximumfOp", "MAX: arith.MinimumfOp", ("where_amax",)
    ),
    "loop one iteration short": Mutant(
        *LOOPS,
        "constants.get(op.extent.data)",
        "constants.get(op.extent.data - 1)",
        ("exp_of_sum",),
    ),
    "an index at the extent passes the check": Mutant(
        *LOOPS, 'wide, limit, "ult"', 'wide, limit, "ugt"', ("embedding",)
    ),
    "strides swapped": Mutant(
        *CUDA_INDICES,
        "linearize(exprs, shape_of(memref.type))",
        "linearize(exprs, shape_of(memref.type)[::-1])",
        ("cat_transposed",),
        through=("kernel.cuda_instructions",),
    ),
    "a negative index is divided as C++ does": Mutant(
        *CUDA_INDICES,
        "shift = -(low // rhs.value)",
        "shift = 0",
        ("negative_dividend",),
        through=("kernel.cuda_instructions",),
    ),
    "32-bit indices where they do not fit": Mutant(
        *WIDTH, "if most >= LIMIT)", "if most >= LIMIT * LIMIT)", ("huge_index",)
    ),
    "a reduction one contribution short": Mutant(
        *LIFT,
        "ForOp(extent, Region(block), combiners",
        "ForOp(extent - 1, Region(block), combiners",
        ("exp_of_sum",),
    ),
    "a dropped cast": Mutant(
        *LIFT,
        "return emit_cast(nest.builder, value, target, unsigned=source == ui8)",
        "return value",
        ("softmax_bf16",),
    ),
    "a piece is read without its condition": Mutant(
        *LIFT, "condition_exprs(op.conditions.data[position].data)", "[]", ("pad",)
    ),
    "false instead of true under the condition": Mutant(
        *LIFT, "then, otherwise = regions", "otherwise, then = regions", ("pad",)
    ),
    "a bool that is extended with its sign": Mutant(
        *SCALAR_CODE,
        "arith.UIToFPOp if is_bool(source)",
        "arith.SIToFPOp if is_bool(source)",
        ("mean_of_bools_as_float",),
    ),
    "hoisted past the guard": Mutant(
        *MERGE, "or isinstance(parent, scf.IfOp)", "", ("cat_of_computed",)
    ),
    "axes of the producer swapped": Mutant(
        *MERGE,
        "load.map.data.results[axis]",
        "load.map.data.results[::-1][axis]",
        ("square_transposed",),
    ),
    "the wrong arm of a known condition": Mutant(
        *MERGE,
        "self.known[op.result] = not open_",
        "self.known[op.result] = bool(open_)",
        ("known_condition",),
    ),
    "what another iteration stores taken for its own": Mutant(
        *JOIN, "if stored is None or _element(load, here) != stored:", "if 0:", ("saved_norm",)
    ),
    "a kernel joined with one that needs it already": Mutant(
        *JOIN, "order[reader] > order[second] for", "True for", ("saved_norm",)
    ),
    "an output that is read not stored": Mutant(
        *JOIN,
        "if not value.uses]\n    if not unread",
        "if n == 0]\n    if not unread",
        ("saved_norm",),
    ),
    "different loads taken for one": Mutant(
        *DEDUP,
        "tuple(sorted(op.properties.items(), key=lambda item: item[0])),\n"
        "        tuple(op.attributes.items()),",
        "tuple(op.attributes.items()),",
        ("differences",),
    ),
    "ragged tail without its guard": Mutant(
        *SPLIT, "guard(launch, *inside)", "pass", ("longer_than_a_block",)
    ),
    "ragged tail one element long": Mutant(
        *SPLIT,
        "expr * -1 + extent_expr(extent - 1), counters",
        "expr * -1 + extent_expr(extent), counters",
        ("longer_than_a_block",),
    ),
    "ragged tail left out": Mutant(
        *SPLIT, "(extent + (by - 1)) // by", "extent // by", ("longer_than_a_block",)
    ),
    "parts overlap": Mutant(
        *SPLIT,
        "product(outer, extent_expr(by)) + inner",
        "outer + inner",
        ("longer_than_a_block",),
    ),
    "the tail of a shared sweep without its mask": cooperate(
        "if visits * lanes != units:", "if units < 0:", ("sum_keeps_half",)
    ),
    "all lanes visit the same elements": cooperate(
        "AffineExpr.dimension(0) * lanes + AffineExpr.dimension(1)",
        "AffineExpr.dimension(0) * lanes",
        ("rms_norm",),
    ),
    "every thread stores the result of a row": cooperate(
        '_guard(op, "first", *sharing.inside(AffineExpr.dimension(0) * -1, [lane]))',
        "pass",
        ("sum_keeps_half",),
    ),
    "outputs of siblings swapped": Mutant(
        *SIBLINGS,
        "iter(merged.output_args)",
        "iter(list(merged.output_args)[::-1])",
        ("siblings",),
    ),
    "a sibling that reads the other's result": Mutant(
        *SIBLINGS,
        "position[owner] >= position[first]",
        "position[owner] >= len(position)",
        ("a_sum_and_a_sum_of_it",),
    ),
    "results of a shared sweep swapped": Mutant(
        *SHARE,
        "[*end.arguments, *other_end.arguments]",
        "[*other_end.arguments, *end.arguments]",
        ("siblings",),
    ),
    "a sweep runs before what it reads": Mutant(*SHARE, "late.add(op)", "pass", ("softmax",)),
    "elements of a register tile overlap": tile_threads(
        "AffineExpr.dimension(axis) * strip + start",
        "AffineExpr.dimension(axis) + start",
        ("linear_odd",),
        "cpu",
    ),
    "a buffer takes the place of one that its kernel reads": Mutant(
        *ARENA,
        "self.first <= other.last and other.first <= self.last",
        "self.first < other.last and other.first < self.last",
        ("chain",),
    ),
    "a buffer takes a place that is too small": Mutant(
        *ARENA, "if offset + size <= first:", "if offset <= first:", ("chain",)
    ),
    "a buffer of dynamic size takes a slot that is in use": Mutant(
        *ARENA, "not any(user.meets(lifetime)", "not any(False", ("dynamic_arena",)
    ),
    "a slot of dynamic size begins inside the one before": Mutant(
        *ARENA, "end = end + lifetime.size", "end = end + 64", ("dynamic_arena",)
    ),
    "the tail of a dynamic axis without its guard": Mutant(
        *SPLIT,
        "if parts * by == extent:",
        "if not isinstance(extent, int) or parts * by == extent:",
        ("dynamic_product",),
    ),
    "a dynamic sweep without its mask": cooperate(
        "if visits * lanes != units:",
        "if isinstance(units, int):",
        ("dynamic_arena",),
    ),
    "a barrier between a store and a load goes": Mutant(
        *ELIDE,
        "self.writes & (other.reads | other.writes) or both & other.writes",
        "self.writes & other.writes and both",
        ("combined",),
    ),
    "loops are taken to run once": Mutant(
        *ELIDE, "if trips != 1:", "if trips == 0:", ("restaged", "recombined")
    ),
    "no access is seen": Mutant(
        *ELIDE, "map(touched, self.between(barrier, edges))", "()", ("staged",)
    ),
    "native: every dynamic size is 1": Mutant(
        *ACCESSES,
        "return self.sizes[position]",
        "return constant(self.builder, 1)",
        ("dynamic_attention",),
        "cpu",
    ),
    "composition forgets the outer map": Mutant(
        *COMPOSE,
        "substitute(e, piece.exprs, self.ranges) for e in p.exprs",
        "e for e in p.exprs",
        ("permute_slice_flip",),
    ),
    "composition forgets the outer condition": Mutant(
        *COMPOSE, "                    *piece.conditions,\n", "", ("cat_of_slices",)
    ),
    "a fill hides the pieces after it": Mutant(
        *COMPOSE, "if not last or (", "if False and (", ("cat_of_padded",)
    ),
    "sign of a slice's offset": Mutant(
        *LAYOUT, "* step + extent_expr(start)", "* step + extent_expr(-start)", ("exp_neg_slice",)
    ),
    "flip off by one": Mutant(
        *LAYOUT,
        "extent_expr(e.shape[axis] - 1)",
        "extent_expr(e.shape[axis])",
        ("permute_slice_flip",),
    ),
    "native: strides swapped": Mutant(
        *ACCESSES,
        "linearize(exprs, shape_of(type))",
        "linearize(exprs, shape_of(type)[::-1])",
        ("cat_transposed",),
        "cpu",
    ),
    "native: < for <=": Mutant(*ACCESSES, '"sge", zero', '"sgt", zero', ("two_conditions",), "cpu"),
    "native: the second condition is forgotten": Mutant(
        *ACCESSES, "for each in tests[1:]", "for each in tests[2:]", ("two_conditions",), "cpu"
    ),
    "native: a negative index is divided towards zero": Mutant(
        *ACCESSES,
        "self.emit(product(divisor, -1) + 1)",
        "self.emit(AffineExpr.constant(0))",
        ("negative_dividend",),
        "cpu",
    ),
    "native: a negative remainder": Mutant(
        *ACCESSES,
        "self._negative(rest), raised, rest",
        "self._negative(rest), rest, rest",
        ("negative_dividend",),
        "cpu",
    ),
}

CAUGHT = (DeploError, VerifyException, interpreter.ProgramError)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    victim = mutated_pass(mutant)
    caught = []
    for program in mutant.programs:
        try:
            check(program, mutant.target, victim)
        except CAUGHT as error:
            caught.append(error)
    assert caught, f"{name}: survives on {', '.join(mutant.programs)}"


ROADS = sorted(
    {(p, m.target) for m in MUTANTS.values() for p in m.programs}
    | {(p, "sm_90a") for p in TILE_PROGRAMS}
)


@pytest.mark.sample(16)
@pytest.mark.parametrize(("program", "target"), ROADS)
def test_the_passes_themselves_are_not_accused(program: str, target: str) -> None:
    check(program, target, None)
