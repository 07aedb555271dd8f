"""Makes a program that fails smaller, as long as it fails in the same way.

A failure is told by the pass it happens in and the kind of error. Tried are, in turn: fewer passes behind and
in front of the one that fails, no other functions than `@main`, fewer results of a function, arguments in
place of what operations compute, for many operations at once and then for few (Zeller and Hildebrandt,
"Simplifying and Isolating Failure-Inducing Input", 2002), and operands in place of what is computed of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, get_all_dialects
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass
from xdsl.traits import IsTerminator

from ..analysis.verify import verify_module
from ..dialects import get_all_dialects as get_own_dialects
from ..errors import DeploError
from ..passes.pipelines import expand, get_all_available_passes
from .check_each_pass import PassChecker
from .instrumentation import Instrument, PassFailedError, run_passes
from .located_parser import LocatedParser
from .pipeline_text import parse_passes, pipeline_text
from .reproducer import Reproducer

Passes = tuple[ModulePass, ...]


@dataclass(frozen=True)
class Failure:
    """How a pipeline fails: two failures of the same pass and kind count as the same one."""

    pass_name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} in pass '{self.pass_name}'"


def make_context() -> Context:
    """A context with all dialects."""
    context = Context()
    for name, factory in {**get_all_dialects(), **get_own_dialects()}.items():
        context.register_dialect(name, factory)
    return context


def parse(program: str) -> ModuleOp:
    """The module that `program` is; raises xDSL's ParseError."""
    return LocatedParser(make_context(), program, "input.mlir").parse_module()


def failure_of(module: ModuleOp, passes: Passes, check: bool) -> Failure | None:
    """How `passes` fail on a copy of `module`; with `check` also by computing something else."""
    instruments: list[Instrument] = [PassChecker(lambda line: None)] if check else []
    try:
        run_passes(make_context(), module.clone(), passes, instruments)
    except PassFailedError as error:
        return Failure(error.failed.name, "invalid IR" if error.invalid else _kind(error.__cause__))
    except Exception as error:  # what an instrument raises belongs to no pass
        return Failure("(check)", _kind(error))
    return None


def _kind(error: BaseException | None) -> str:
    return type(error).__name__


class Reduction:
    """Shrinks one reproducer; `program` and `passes` are the smallest that are known to fail."""

    def __init__(self, reproducer: Reproducer, seconds: float):
        """Raises DeploError if it does not fail."""
        self._check = reproducer.check
        self.program = parse(reproducer.program)
        self.passes = expand(parse_passes(reproducer.pipeline, get_all_available_passes()))
        self._end = time.monotonic() + seconds
        self.tried = 0
        failure = failure_of(self.program, self.passes, self._check)
        if failure is None:
            raise DeploError("this reproducer does not fail: there is nothing to reduce")
        self.failure = failure

    @property
    def reproducer(self) -> Reproducer:
        """What is left."""
        return Reproducer(str(self.program), pipeline_text(self.passes), self._check)

    def run(self) -> None:
        """Shrink until nothing helps any more, or the time is over."""
        self._fewer_passes()
        size = -1
        while size != (size := _size(self.program)):
            for candidates in (_fewer_functions, _fewer_results, _fewer_operations, _forwarded):
                self._take_all(candidates)

    def _fails(self, program: ModuleOp, passes: Passes) -> bool:
        self.tried += 1
        return failure_of(program, passes, self._check) == self.failure

    def _fewer_passes(self) -> None:
        """End with the pass that fails, and start from what the passes before it make of the program."""
        names = [each.name for each in self.passes]
        if self.failure.pass_name in names:
            last = names.index(self.failure.pass_name) + 1
            if self._fails(self.program, self.passes[:last]):
                self.passes = self.passes[:last]
        while len(self.passes) > 1 and time.monotonic() < self._end:
            module = self.program.clone()
            self.passes[0].apply(make_context(), module)
            if not self._fails(module, self.passes[1:]):
                return
            self.program, self.passes = module, self.passes[1:]

    def _take_all(self, candidates: Callable[[ModuleOp], Iterator[ModuleOp]]) -> None:
        """Take the first candidate that fails, and look again from there."""
        found = True
        while found:
            found = False
            for candidate in candidates(self.program):
                if time.monotonic() >= self._end:
                    return
                if _is_valid(candidate) and self._fails(candidate, self.passes):
                    self.program, found = candidate, True
                    break


def reduce(reproducer: Reproducer, seconds: float) -> Reduction:
    """The smallest that `reproducer` could be made in that time. Raises DeploError if it does not fail."""
    reduction = Reduction(reproducer, seconds)
    reduction.run()
    return reduction


def _size(module: ModuleOp) -> int:
    return sum(1 for _ in module.walk())


def _is_valid(module: ModuleOp) -> bool:
    try:
        verify_module(module)
    except Exception:  # a verifier may fail in any way on what no front end makes
        return False
    return True


def _fewer_functions(module: ModuleOp) -> Iterator[ModuleOp]:
    """Copies without one of the symbols that are not `@main`."""
    for index, op in enumerate(module.ops):
        if not (isinstance(op, func.FuncOp) and op.sym_name.data == "main"):
            copy = module.clone()
            unwanted = list(copy.ops)[index]
            unwanted.detach()
            unwanted.erase(safe_erase=False)
            yield copy


def _functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.ops if isinstance(op, func.FuncOp) and op.body.blocks]


def _fewer_results(module: ModuleOp) -> Iterator[ModuleOp]:
    """Copies in which a function returns one value less, or does not take an argument it does not use."""
    for number, function in enumerate(_functions(module)):
        last = function.body.block.last_op
        for index in range(len(last.operands) if isinstance(last, func.ReturnOp) else 0):
            copy = module.clone()
            shorter = _functions(copy)[number]
            returned = shorter.body.block.last_op
            assert isinstance(returned, func.ReturnOp)
            kept = [v for i, v in enumerate(returned.operands) if i != index]
            shorter.body.block.erase_op(returned)
            shorter.body.block.add_op(func.ReturnOp(*kept))
            yield _retyped(copy, shorter)
        for index, argument in enumerate(function.body.block.args):
            if not argument.uses:
                copy = module.clone()
                narrower = _functions(copy)[number]
                block = narrower.body.block
                block.erase_arg(block.args[index])
                if narrower.arg_attrs is not None:
                    kept = [a for i, a in enumerate(narrower.arg_attrs) if i != index]
                    narrower.arg_attrs = ArrayAttr(kept)
                yield _retyped(copy, narrower)


def _retyped(module: ModuleOp, function: func.FuncOp) -> ModuleOp:
    block = function.body.block
    outputs = [] if block.last_op is None else [value.type for value in block.last_op.operands]
    function.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    return module


def _fewer_operations(module: ModuleOp) -> Iterator[ModuleOp]:
    """Copies in which some operations are gone; what they computed are arguments, where it is used."""
    blocks = _blocks(module)
    for number, block in enumerate(blocks):
        count = sum(1 for _ in _removable(block))
        size = count
        while size:
            for start in range(0, count, size):
                copy = module.clone()
                found = _blocks(copy)[number]
                if _remove(found, list(_removable(found))[start : start + size]):
                    parent = found.parent_op()
                    yield _retyped(copy, parent) if isinstance(parent, func.FuncOp) else copy
            size //= 2


def _forwarded(module: ModuleOp) -> Iterator[ModuleOp]:
    """Copies in which an operand stands for what an operation computes of it."""
    for number, block in enumerate(_blocks(module)):
        for index, op in enumerate(_removable(block)):
            for position, operand in enumerate(op.operands):
                if [result.type for result in op.results] == [operand.type]:
                    copy = module.clone()
                    unwanted = list(_removable(_blocks(copy)[number]))[index]
                    unwanted.results[0].replace_all_uses_with(unwanted.operands[position])
                    unwanted.detach()
                    unwanted.erase(safe_erase=False)
                    yield copy


def _blocks(module: ModuleOp) -> list[Block]:
    """All blocks inside of functions, outer ones first."""
    return [
        block
        for function in _functions(module)
        for op in function.walk()
        for region in op.regions
        for block in region.blocks
    ]


def _removable(block: Block) -> Iterator[Operation]:
    return (op for op in block.ops if not op.has_trait(IsTerminator))


def _remove(block: Block, unwanted: Sequence[Operation]) -> bool:
    """Remove operations; whether that was possible."""
    is_function = isinstance(block.parent_op(), func.FuncOp)
    for op in reversed(unwanted):
        for result in op.results:
            if not result.uses:
                continue
            if not is_function:
                return False
            argument = block.insert_arg(result.type, len(block.args))
            argument.name_hint = result.name_hint
            result.replace_all_uses_with(argument)
            function = block.parent_op()
            assert isinstance(function, func.FuncOp)
            if function.arg_attrs is not None:
                function.arg_attrs = ArrayAttr([*function.arg_attrs, DictionaryAttr({})])
        op.detach()
        op.erase(safe_erase=False)
    return True
