"""Every listing in README.md and docs/ is true.

A fenced block is checked by what it is:

    <!-- from: COMMAND -->              it is what COMMAND prints; a line `...` stands for any lines
    <!-- fails: COMMAND -->             the same of a command that fails, with what it writes to stderr
    <!-- file: NAME -->                 it is written to NAME, for the commands of all pages and in the copy
    <!-- new: PATH -->                  it is a new file of a copy of the checkout, the page's own
    <!-- insert: PATH after LINE -->    it is inserted into a file of that copy
    <!-- scratch -->                    with ```sh: its commands succeed in that copy
    <!-- prints: COMMAND -->            it is what COMMAND prints in that copy, as of `from`
    <!-- example: REASON -->            it is not checked, for REASON
    <!-- operations: DIALECT -->        not a block: a table of the dialect's operations follows
    ```sh                               each `deplo` or `deplo-opt` command in it succeeds
    ```python with >>>                  a doctest

COMMAND is a pipe of `deplo`, `deplo-opt` and `python`, or `make run`; no shell is involved. Numbers that
differ between machines compare equal to any number: those before s, us, %, x, GB/s, GFLOP/s or registers, and
all of the lines in which `deplo run` gives times and errors.

    python test/python/test_docs.py     # brings all listings without `...` up to date, names the others
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from conftest import ROOT, script

from deplo.dialects import get_all_dialects
from deplo.tools import deplo

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"(?:<!-- (?P<kind>[a-z]+)(?:: (?P<what>.*?))? -->\n *)?```(?P<language>\w*)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]\d+)?"
VOLATILE = re.compile(rf"{NUMBER}(?= (?:s|us|%|x|GB/s|GFLOP/s|registers)\b)|{NUMBER}(?= %)")
MEASURED = re.compile(r"^(?:compiled|latency|error|result) ")


@dataclass(frozen=True)
class Listing:
    page: Path
    line: int
    kind: str
    what: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


def listings() -> list[Listing]:
    found: list[Listing] = []
    for page in PAGES:
        text = page.read_text()
        for match in FENCE.finditer(text):
            kind = match["kind"] or match["language"]
            line = text.count("\n", 0, match.start("text"))
            body = textwrap.dedent(match["text"])
            found.append(Listing(page, line, kind, match["what"] or "", body))
    return found


LISTINGS = listings()


def of_kind(*kinds: str) -> list[Listing]:
    return [listing for listing in LISTINGS if listing.kind in kinds]


def masked(line: str) -> str:
    if MEASURED.match(line):
        return re.sub(NUMBER, "#", line)
    return re.sub(r" +", " ", VOLATILE.sub("#", line)) if VOLATILE.search(line) else line


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether `expected`, in which `...` stands for any lines, is `actual`."""
    parts: list[list[str]] = [[]]
    for line in expected:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return actual == parts[0]
    first, last = parts[0], parts[-1]
    if len(first) + len(last) > len(actual) or actual[: len(first)] != first:
        return False
    if last and actual[-len(last) :] != last:
        return False
    position, end = len(first), len(actual) - len(last)
    for part in parts[1:-1]:
        while position + len(part) <= end and actual[position : position + len(part)] != part:
            position += 1
        if position + len(part) > end:
            return False
        position += len(part)
    return True


@pytest.fixture(scope="module")
def workshop(tmp_path_factory) -> Path:
    """A directory with the files that the pages show."""
    directory = tmp_path_factory.mktemp("docs")
    for listing in of_kind("file"):
        (directory / listing.what).write_text(listing.text)
    return directory


def default_code() -> str:
    return re.search(r"^CODE\s*\?= (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]


@cache
def output_of(command: str, directory: Path) -> str:
    """What a pipe of commands prints; each must succeed."""
    if command == "make run":
        command = f"deplo run -c {shlex.quote(default_code())}"
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    text, part = "", []
    for word in [*lexer, "|"]:
        if word != "|":
            part.append(word)
            continue
        text, part = run(part, text, directory), []
    return text


def run(words: list[str], text: str, directory: Path) -> str:
    name, *arguments = words
    if name == "deplo":
        out, err = io.StringIO(), io.StringIO()
        with contextlib.chdir(directory):
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = deplo.run(arguments)
        assert code == 0, err.getvalue()
        return out.getvalue()
    program = [sys.executable] if name == "python" else [script(name)]
    where = ROOT if name == "python" else directory
    done = subprocess.run(
        [*program, *arguments], input=text, capture_output=True, text=True, cwd=where, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_listing_is_of_a_kind_that_is_checked():
    known = {"from", "fails", "file", "new", "insert", "scratch", "prints", "example", "sh", "python"}
    assert not [f"{each} is {each.kind!r}" for each in LISTINGS if each.kind not in known]
    assert len(of_kind("example")) <= 4


@pytest.mark.parametrize("listing", of_kind("from"), ids=str)
def test_a_listing_is_what_its_command_prints(listing, workshop):
    actual = output_of(listing.what, workshop)
    expected = [masked(line) for line in listing.text.splitlines()]
    assert matches(expected, [masked(line) for line in actual.splitlines()]), actual


@pytest.mark.parametrize("listing", of_kind("fails"), ids=str)
def test_a_failing_command_prints_what_is_shown(listing, workshop):
    name, *arguments = shlex.split(listing.what)
    done = subprocess.run(
        [script(name), *arguments], capture_output=True, text=True, cwd=workshop, check=False
    )
    assert done.returncode
    assert matches(listing.text.splitlines(), (done.stdout + done.stderr).splitlines())


@pytest.mark.parametrize("listing", of_kind("sh"), ids=str)
def test_commands_succeed(listing, workshop):
    for line in listing.text.replace("\\\n", "").splitlines():
        if line.split()[0] in ("deplo", "deplo-opt"):
            output_of(line, workshop)


def scratch_copy(page: Path, parent: Path) -> Path:
    """A copy of the checkout with what `page` adds to it."""
    copy = parent / "deplo"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "docs", "__pycache__")
    shutil.copytree(ROOT, copy, ignore=ignored)
    for listing in LISTINGS:
        if listing.page == page and listing.kind in ("new", "file"):
            (copy / listing.what).write_text(listing.text)
        elif listing.page == page and listing.kind == "insert":
            path, _, anchor = listing.what.partition(" after ")
            lines = (copy / path).read_text().splitlines(keepends=True)
            place = lines.index(f"{anchor}\n") + 1
            indented = (
                textwrap.indent(listing.text, "    ") if anchor[-1] in "{(" else listing.text
            )
            (copy / path).write_text("".join([*lines[:place], indented, *lines[place:]]))
    return copy


@pytest.mark.parametrize("page", dict.fromkeys(each.page for each in of_kind("scratch")), ids=str)
def test_the_steps_of_a_page_work_in_a_copy_of_the_checkout(page, tmp_path):
    copy = scratch_copy(page, tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run_there(command: str) -> str:
        name, *arguments = shlex.split(command)
        program = [sys.executable] if name == "python" else [script(name)]
        done = subprocess.run(
            [*program, *arguments],
            capture_output=True,
            text=True,
            cwd=copy,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    for listing in of_kind("scratch", "prints"):
        if listing.page == page and listing.kind == "prints":
            actual = run_there(listing.what)
            assert matches(listing.text.splitlines(), actual.splitlines()), actual
        elif listing.page == page:
            for line in listing.text.splitlines():
                run_there(line)


HARDWARE = "add-an-instruction.md"


@pytest.mark.parametrize("section", ["An instruction", "A machine"])
def test_new_hardware_takes_few_lines_and_no_pass(section):
    """What a section of the page adds to the checkout is as long as it says: fewer than 60 lines of data."""
    text = (ROOT / "docs" / HARDWARE).read_text()
    start = text.index(f"## {section}")
    lines = range(text.count("\n", 0, start), text.count("\n", 0, text.index("\n## ", start)) + 1)
    added = [
        listing
        for listing in of_kind("file", "new", "insert")
        if listing.page.name == HARDWARE and listing.line in lines
    ]
    count = sum(listing.text.count("\n") for listing in added)
    assert f"{count} lines" in text[start:]
    assert 0 < count < 60
    assert not [listing.what for listing in added if listing.what.startswith("passes/")]


@pytest.mark.parametrize("listing", of_kind("python"), ids=str)
def test_python_sessions_are_as_shown(listing):
    test = doctest.DocTestParser().get_doctest(listing.text, {}, str(listing), None, listing.line)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    runner.run(test, out=report.write)
    assert test.examples
    assert not runner.failures, report.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#]+)", page.read_text())
    own = [target for target in targets if not target.startswith("http")]
    assert not [target for target in own if not (page.parent / target).exists()]


PAGE_HAS_IT = "; see the dialect's example"
OPERATIONS = re.compile(r"<!-- operations: (\w+) -->\n(.*?)<!-- end of operations -->\n", re.DOTALL)


def table_of(dialect: str) -> str:
    """The operations of a dialect, each with the first sentence that its class says of it."""
    rows = [
        f"| `{op.name}` | {op.__doc__.partition(chr(10))[0].replace(PAGE_HAS_IT, '').strip()} |"
        for op in get_all_dialects()[dialect]().operations
    ]
    return "\n".join(["", "| operation | |", "|---|---|", *rows, "", ""])


@pytest.mark.parametrize("dialect", ["tensor_ir", "loop", "tile", "kernel", "cuda", "amx"])
def test_the_page_of_a_language_lists_its_operations(dialect):
    text = (ROOT / f"docs/ir-{dialect.replace('_', '-')}.md").read_text()
    assert OPERATIONS.findall(text) == [(dialect, table_of(dialect))]


@pytest.mark.parametrize(
    ("pattern", "lines", "expected"),
    [
        ("a b", "a b", True),
        ("a b", "a b c", False),
        ("a ... c", "a b b c", True),
        ("... c", "a c", True),
        ("a ...", "a b", True),
        ("a ... b ... c", "a x b y c", True),
        ("a ... b ... c", "a x c", False),
        ("a ... a", "a", False),
    ],
)
def test_dots_stand_for_any_lines(pattern, lines, expected):
    assert matches(pattern.split(), lines.split()) is expected


def update() -> None:
    """Rewrite the listings and tables that are out of date."""
    for page in PAGES:
        text = page.read_text()
        new = OPERATIONS.sub(
            lambda m: f"<!-- operations: {m[1]} -->\n{table_of(m[1])}<!-- end of operations -->\n",
            text,
        )
        if new != text:
            page.write_text(new)
            print(f"{page.name}: tables rewritten")
            LISTINGS[:] = listings()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for listing in of_kind("file"):
            (directory / listing.what).write_text(listing.text)
        for listing in of_kind("from"):
            new = output_of(listing.what, directory)
            old, actual = listing.text.splitlines(), new.splitlines()
            if matches([masked(line) for line in old], [masked(line) for line in actual]):
                continue
            if "..." in map(str.strip, old):
                print(f"{listing}: shorten this by hand: {listing.what}")
                continue
            text = listing.page.read_text()
            assert text.count(listing.text) == 1
            listing.page.write_text(text.replace(listing.text, new.rstrip() + "\n"))
            print(f"{listing}: rewritten")


if __name__ == "__main__":
    update()
