"""`test/SKIPS.md` lists every test that may be skipped or is expected to fail, and nothing else."""

import re
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PATTERN = re.compile(
    r"pytest\.(?:skip|importorskip|xfail)\(|pytest\.mark\.(?:skip|skipif|xfail)\b"
    r"|^(?://|#|;) *(?:XFAIL|UNSUPPORTED|REQUIRES):",
    re.MULTILINE,
)


def in_the_tree() -> Counter[str]:
    """File -> how many skips its text has."""
    found: Counter[str] = Counter()
    for path in sorted(TESTS.rglob("*")):
        if path.suffix in (".py", ".mlir", ".test") and path != Path(__file__).resolve():
            if count := len(PATTERN.findall(path.read_text(encoding="utf-8", errors="replace"))):
                found[path.relative_to(TESTS).as_posix()] = count
    return found


def test_the_list_of_skips_is_complete() -> None:
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in (TESTS / "SKIPS.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert all(len(row) == 4 and all(row) for row in rows), "each row: file, skips, when, why"
    assert {row[0]: int(row[1]) for row in rows} == dict(in_the_tree())
