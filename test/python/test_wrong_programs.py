"""What a person may write wrongly is refused at its line, on every level, and never becomes CUDA."""

from pathlib import Path

import pytest
from wrong_kernels import WRONG_KERNELS
from wrong_programs import WRONG
from wrong_tiles import WRONG_TILES

from deplo.tools.deplo_opt import run

ALL = WRONG | WRONG_TILES | WRONG_KERNELS


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_program_is_refused_at_its_line(name, tmp_path: Path, capfd):
    wrong = ALL[name]
    path = tmp_path / "wrong.mlir"
    path.write_text(wrong.text)
    line = 1 + next(n for n, text in enumerate(wrong.text.split("\n")) if "// WRONG" in text)
    pipeline = "" if wrong.level == "cuda" else f"{wrong.level}-to-cuda"
    assert run([str(path), "-p", pipeline, "-t", "cuda"]) == 1
    output = capfd.readouterr()
    assert f"wrong.mlir:{line}:" in output.err
    assert "error: " in output.err
    assert wrong.message in output.err
    assert "internal error" not in output.err
    assert output.out == ""
