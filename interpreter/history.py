"""What is known of a program's kernels from earlier executions, when it is executed again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .accesses import Accesses
from .memo import Memo
from .product import Value
from .scalar_ops import NotExecutable
from .tensor_ir import ProgramError


@dataclass
class History:
    """What the loop kernels of a program computed when it was last executed, in the order they ran.

    The launches of a lowered program correspond to them one to one.
    """

    kernels: list[Sequence[Value]] = field(default_factory=list[Sequence[Value]])
    failure: ProgramError | None = None
    """How the program failed after these kernels, if it did."""
    remarks: list[str] = field(default_factory=list[str])
    """What the execution after that passed over."""
    accesses: Accesses | None = None
    """Collects how kernels access memory, if it is there."""
    memo: Memo = field(default_factory=Memo)
    _new: list[Sequence[Value]] = field(default_factory=list[Sequence[Value]])
    _launches: int = 0
    _sampled: bool = False

    def begin(self) -> None:
        """An execution begins."""
        self._new, self._launches, self._sampled, self.remarks = [], 0, False, []
        self.memo.begin()

    def end(self, failure: ProgramError | None = None) -> None:
        """It has ended; raises NotExecutable if its launches turn out not to be the kernels known."""
        if self._new:
            self.kernels, self.failure = self._new, failure
        elif self._sampled and failure is None and self._launches != len(self.kernels):
            raise NotExecutable(f"{self._launches} launches of {len(self.kernels)} kernels")
        if failure is None:
            self.memo.end()

    def add(self, outputs: Sequence[Value]) -> None:
        """A loop kernel was executed."""
        self._new.append(outputs)

    def next_launch(self) -> int:
        """The number of a launch."""
        self._launches += 1
        return self._launches - 1

    def expected(self, number: int) -> Sequence[Value]:
        """What a launch that is to be sampled should compute; raises how the program failed there."""
        if number < len(self.kernels):
            self._sampled = True
            return self.kernels[number]
        raise self.failure or NotExecutable("there are more launches than there were kernels")
