"""The commands of `docs/articles.md` give what its tables say."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from functools import cache, partial
from unittest.mock import patch

import pytest
from conftest import ROOT

from deplo.tools import bench_command
from deplo.tools.commands import run

ROW = re.compile(r"^\| `(.*?)` \| `(.*?)` \| (.*) \|$", re.MULTILINE)
ROWS = [
    tuple(cell.replace("\\|", "|") for cell in row)
    for row in ROW.findall((ROOT / "docs/articles.md").read_text())
]
"""The article's command, the same here, and what comes out, with quotations of it."""

SMALLER = {
    "run": [(r"\b18944\b", "64"), (r"\b512\b", "16"), (r"\b2048\b", "8")],
    "TinyLlama": [
        ("$", " --config hidden_size=256,intermediate_size=512,num_attention_heads=4,num_key_value_heads=4")
    ],
}
"""What is in a command -> replacements that make its program small, where it takes long."""


def command_here(article: str) -> str:
    """A command of the article in deplo's spelling."""
    return article.replace("DEPLODOCK_", "DEPLO_").replace("deplodock ", "deplo ")


@cache
def outputs(command: str) -> tuple[str, str]:
    """What a `deplo` command writes to stdout and to stderr; it must succeed."""
    for part, changes in SMALLER.items():
        if re.search(rf"\b{part}\b", command):
            for old, new in changes:
                command = re.sub(old, new, command)
    words = shlex.split(command)
    variables = dict(word.split("=") for word in words[: words.index("deplo")])
    out, err = io.StringIO(), io.StringIO()
    without_inductor = partial(bench_command.measure, with_inductor=False)
    with (
        patch.dict("os.environ", variables),
        patch.object(bench_command, "measure", without_inductor),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(words[words.index("deplo") + 1 :])
    assert code == 0, err.getvalue()
    return out.getvalue(), err.getvalue()


def printed(pipe: str) -> str:
    """What a command prints, filtered by `grep` or `awk`, which also may read its stderr."""
    command, _, reader = pipe.partition(" | ")
    out, err = outputs(command.removesuffix(" 2>&1"))
    if not reader:
        return out
    text = err + out if command.endswith("2>&1") else out
    done = subprocess.run(shlex.split(reader), input=text, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_a_command_prints_what_is_quoted(row: int) -> None:
    _, here, said = ROWS[row]
    actual = printed(here)
    quoted = [each.replace('\\"', '"') for each in re.findall(r"`(.*?)`", said)]
    assert quoted
    assert not [each for each in quoted if each not in actual], actual[-3000:]


def test_only_filters_and_what_the_page_names_are_spelt_otherwise() -> None:
    for article, here, _ in ROWS:
        wanted, _, reader = command_here(article).partition(" | ")
        actual = here.removeprefix("DEPLO_TRANSPORT=tma ").partition(" | ")[0]
        assert actual == wanted + (" 2>&1" if reader else "")
