"""What torch.export says against a program or its dynamic shapes, in the user's words and a line each.

    - You marked b as dynamic but your code specialized it to be a constant (4). If you're using …
    - Not all values of b = L['x'].size()[0] in the specified range satisfy the generated guard 4 <= …

becomes

    b is 4 in this program, whatever is asked
    not every b = x.shape[0] satisfies 4 <= x.shape[0]
"""

from __future__ import annotations

import re

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

_EXTENT = re.compile(r"L\['([^']+)'\]((?:\[[^\]]+\])*)\.size\(\)\[(\d+)\]")
_FIXED = re.compile(r"You marked (.+?) as dynamic but your code specialized it .*?\((\d+)\)")
_GUARD = re.compile(
    r"Not all values of (.+?) in the specified range (.*?)\s*satisfy the generated guard (.+?)\.?$"
)
_BOUNDED = re.compile(r" and \S+ <= IntInfinity\(\)|-?IntInfinity\(\) <= \S+ and ")
_DIFFERENT = re.compile(r".* = \d+ is not equal to .* = \d+")
_EQUAL = re.compile(r"The values of (.+) must always be equal")

MOST_REASONS = 6
"""How many reasons are told; the first are the cause of the others."""


def reason_of(error: Exception) -> str:
    """Why torch.export, or a program in PyTorch, fails: a line that is never empty."""
    match error:
        case GuardOnDataDependentSymNode():
            return "its shapes or its control flow depend on the values in tensors"
        case DataDependentOutputException():
            return f"{error.func} gives Python what depends on the values in tensors"
        case DynamicOutputShapeException():
            return f"the shape that {error.func} gives depends on the values in tensors"
        case UnsupportedOperatorException():
            return f"PyTorch cannot trace {error.func}"
        case SyntaxError(text=str() as line):  # an overload whose name is a keyword of Python
            return f"PyTorch cannot write its graph as code: {line.strip().partition(';')[0]}"
        case _:
            first = str(error).strip().partition("\n")[0]
            return f"{type(error).__name__}: {first or 'PyTorch gives no reason'}"


def sizes_do_not_fit(error: Exception) -> str | None:
    """The message for an export that fails because of its dynamic shapes; None if it does not."""
    text = _EXTENT.sub(r"\1\2.shape[\3]", str(error))
    if (different := _DIFFERENT.match(text)) is not None:
        return f"one name is given to different sizes: {different[0]}"
    if not re.match(r"Constraints violated|Found the following conflicts", text):
        return None
    problems, _, fixes = text.partition("Suggested fixes:")
    found = [_reason(line.strip()[2:]) for line in problems.splitlines() if _is_item(line)]
    reasons = list(dict.fromkeys(found))
    lines = ["this program does not take the dynamic sizes asked for:"]
    lines += [f"  {reason}" for reason in reasons[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        lines.append(f"  and {len(reasons) - MOST_REASONS} more conditions of the same sizes")
    wanted = [line.strip() for line in fixes.partition("\n\n")[0].splitlines() if line.strip()]
    if wanted:
        lines.append(f"PyTorch would take: {'; '.join(wanted)}")
    return "\n".join(lines)


def _is_item(line: str) -> bool:
    return line.strip().startswith("- ")


def _reason(text: str) -> str:
    if (fixed := _FIXED.match(text)) is not None:
        return f"{fixed[1]} is {fixed[2]} in this program, whatever is asked"
    if (guard := _GUARD.match(text)) is not None:
        allowed = f" with {guard[2]}" if guard[2] else ""
        return f"not every {guard[1]}{allowed} satisfies {_BOUNDED.sub('', guard[3])}"
    if (equal := _EQUAL.match(text)) is not None:
        return f"{equal[1]} must be equal: give them one name"
    return text.rstrip(".")
