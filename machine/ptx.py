"""The instructions by which threads of a GPU copy, wait and meet: one row each, as PTX has them.

Source: PTX ISA, the section that is called as the instruction is. Products of matrices are in
`matrix_instructions.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """An instruction, or several that follow each other, a line each.

    `text` has `%0`, `%1`, ... in place of `inputs`, which are the names of an operation's operands and maps,
    and `$name` in place of a number that the operation says.
    """

    text: str
    inputs: tuple[str, ...] = ()
    since: int = 0
    """The first compute capability that has it, 80 for 8.0."""


FORMS = ("condition", "cluster", "relaxed", "multicast")
"""What an operation may have that makes it another instruction."""

_BOX = ("destination", "tensor_map", "barriers", "box_map")

INSTRUCTIONS = {
    "kernel.async_copy": Instruction(
        "cp.async.$cache.shared.global [%0], [%1], $bytes;", ("destination", "source"), 80
    ),
    "kernel.async_copy condition": Instruction(
        "cp.async.$cache.shared.global [%0], [%1], $bytes, %2;",
        ("destination", "source", "condition"),
        80,
    ),
    "kernel.async_commit": Instruction("cp.async.commit_group;", since=80),
    "kernel.async_wait": Instruction("cp.async.wait_group $pending;", since=80),
    "kernel.named_barrier": Instruction("bar.sync $number, $threads;"),
    "kernel.barrier cluster": Instruction(
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;", since=90
    ),
    "kernel.barrier cluster relaxed": Instruction(
        "barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;", since=90
    ),
    "kernel.mbarrier_init": Instruction("mbarrier.init.shared.b64 [%0], $number;", ("barriers",), 80),
    "kernel.mbarrier_expect_bytes": Instruction(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], $number;", ("barriers",), 90
    ),
    "kernel.mbarrier_wait": Instruction(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; "
        "@!done bra again; }",
        ("barriers", "parity"),
        90,
    ),
    "kernel.fence": Instruction("fence.proxy.async.shared::cta;", since=90),
    "kernel.fence cluster": Instruction(
        "fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;", since=90
    ),
    "kernel.bulk_copy": Instruction(
        "cp.async.bulk.tensor.${rank}d.shared::cta.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {$places}], [%2];",
        _BOX,
        90,
    ),
    "kernel.bulk_copy multicast": Instruction(
        "cp.async.bulk.tensor.${rank}d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {$places}], [%2], $mask;",
        _BOX,
        90,
    ),
}
"""The instruction of an operation by its name and the forms that it has."""


def find_instruction(operation: str, has: Iterable[str]) -> Instruction | None:
    """The instruction of an operation that has some operands and properties; None if it has no row."""
    given = set(has)
    return INSTRUCTIONS.get(" ".join([operation, *(form for form in FORMS if form in given)]))
