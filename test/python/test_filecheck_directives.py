"""FileCheck ignores a directive it does not know, so a misspelt one is a test that cannot fail."""

import re
from difflib import get_close_matches
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOUND = [p for e in ("*.mlir", "*.test") for p in (ROOT / "test").rglob(e)]
FILES = sorted(p for p in FOUND if "Inputs" not in p.parts)
SUFFIX = r"(?:-(?:NEXT|SAME|DAG|NOT|LABEL|EMPTY|COUNT-\d+))?(?:\{LITERAL\})?:"
FIRST_WORD = re.compile(r"\s*(?://|#|;)?\s*(?P<word>[A-Z][A-Z0-9_-]*)(?P<colon>\s*:)?(?=\W|$)")
RESERVED = {"RUN", "REQUIRES", "UNSUPPORTED", "XFAIL", "END"}


def prefixes(text: str) -> set[str]:
    """The words that start FileCheck's directives in `text`."""
    found = {"CHECK"}
    for flags in re.findall(r"--?check-prefix(?:es)?[= ]([\w,-]+)", text):
        found.update(flags.split(","))
    return found


def misspelt(text: str) -> list[str]:
    """The lines of `text` that begin with almost a directive."""
    known = prefixes(text)
    directive = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(known, key=len)))}){SUFFIX}")
    return [line.strip() for line in text.splitlines() if _is_misspelt(line, known, directive)]


def _is_misspelt(line: str, known: set[str], directive: re.Pattern[str]) -> bool:
    match = FIRST_WORD.match(line)
    if match is None or match["word"] in RESERVED or directive.match(line, match.start("word")):
        return False
    word = match["word"]
    first = word.partition("-")[0]
    if word in known or any(word.startswith(f"{prefix}-") for prefix in known):
        return True
    return match["colon"] is not None and bool(get_close_matches(first, known, cutoff=0.75))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_directive_is_one(path):
    assert misspelt(path.read_text()) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_file_runs_and_checks_something(path):
    text = path.read_text()
    assert "RUN:" in text
    for prefix in prefixes(text) - {"CHECK"}:
        assert re.search(rf"\b{re.escape(prefix)}{SUFFIX}", text), f"no directive uses {prefix}"
    if re.search(r"FileCheck(?!.*check-prefix)", text):
        assert re.search(rf"\bCHECK{SUFFIX}", text), "FileCheck has nothing to check"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_only_features_of_both_filechecks_are_used(path):
    """LLVM's FileCheck knows more than PyPI's, which is the one a fresh machine has."""
    text = path.read_text()
    assert "[[#@" not in text, "PyPI's filecheck has no numeric expressions"
    assert "--implicit-check-not" not in text


@pytest.mark.parametrize(
    "line",
    ["// CHECK-NXT: a", "// CHEK: a", "// CHECK a", "// CHECK-LABLE: a", "# CHECK-COUNT: a"],
)
def test_misspellings_are_found(line):
    assert misspelt(line) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "// CHECK: a",
        "// CHECK-COUNT-2: a",
        "//CHECK-SAME{LITERAL}: [[a",
        "// A sentence: with colon",
    ],
)
def test_directives_and_prose_pass(line):
    assert misspelt(line) == []
