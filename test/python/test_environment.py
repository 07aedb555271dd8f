"""Environment variables: each choice of a schedule has one, and one that is unknown is an error."""

from __future__ import annotations

import re

import pytest
import torch
from conftest import ROOT

import deplo
from deplo.environment import VARIABLES, environment_choices, knobs
from deplo.errors import UsageError
from deplo.program_stages import asked_schedule

MACROS = {"DEPLO_TENSOR_MAP"}
"""Names of the C preprocessor in printed CUDA."""


def test_every_variable_that_the_sources_read_is_known() -> None:
    files = [*ROOT.glob("*.py"), ROOT / "Makefile", ROOT / "README.md", *ROOT.glob("docs/*.md")]
    files += [path for room in ROOT.glob("*/__init__.py") for path in room.parent.rglob("*.py")]
    own = {path for path in files if ROOT / "test" not in path.parents}
    named = {name for path in own for name in re.findall(r"\bDEPLO_[A-Z_]+\b", path.read_text())}
    assert named - MACROS - set(VARIABLES) - set(knobs()) == set()


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({"DEPLO_FM": "2"}, "thread_m=2"),
        ({"DEPLO_THREAD_M": "2"}, "thread_m=2"),
        ({"DEPLO_SCHEDULE": "BM=16", "DEPLO_BN": "16"}, "BM=16\nblock_n=16"),
        ({"DEPLO_TRANSPORT": "cp_async", "DEPLO_ATOMICS": "1"}, "transport=cp_async\natomics=1"),
        ({"DEPLO_CACHE": "0"}, ""),
    ],
)
def test_variables_ask_for_choices(
    variables: dict[str, str], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment_choices() == asked
    assert asked_schedule(None) == asked
    assert asked_schedule("FN=4") == "FN=4"


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"DEPLO_FMM": "2"}, "no environment variable DEPLO_FMM; did you mean DEPLO_FM?"),
        ({"DEPLO_CACHE_DIRS": "x"}, "did you mean DEPLO_CACHE_DIR?"),
        ({"DEPLO_FM": "2", "DEPLO_SCHEDULE": "FM=4"}, "thread_m is given twice"),
        ({"DEPLO_FM": "two"}, "thread_m is a number"),
        ({"DEPLO_ATOMICS": "2"}, "atomics is 0 or 1"),
    ],
)
def test_a_wrong_variable_is_an_error(
    variables: dict[str, str], error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=re.escape(error)):
        deplo.compile(torch.relu, (torch.ones(2),), target="sm_90a")
