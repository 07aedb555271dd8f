"""Index expressions as C++ writes them."""

from __future__ import annotations

from xdsl.utils.base_printer import BasePrinter


class IndexText(BasePrinter):
    """Collects index text and writes its operators as C++ does."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        self.parts.append(text)

    def cpp(self) -> str:
        """The text with `/` and `%` for division and remainder."""
        return "".join(self.parts).replace(" floordiv ", " / ").replace(" mod ", " % ")
