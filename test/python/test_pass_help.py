"""What there is can be found: `--help-pass`, `--list-passes`, `docs/passes.md` and the shells' completion."""

import subprocess

import pytest

from deplo.passes import PASSES
from deplo.passes.levels import LEVELS, levels_of
from deplo.passes.pipelines import PIPELINES, families_of
from deplo.tools.commands import make_parser
from deplo.tools.deplo_opt import run
from deplo.tools.generate_passes import generate, main
from deplo.tools.pass_help import help_text, options_of


def printed(capsys, *arguments):
    """What `deplo-opt` prints for arguments with which it succeeds."""
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_the_page_is_up_to_date():
    assert main(["--check"]) == 0


def test_the_page_notices_a_change(monkeypatch, tmp_path, capsys):
    stale = tmp_path / "passes.md"
    stale.write_text(generate().replace("sm_90a", "cpu", 1))
    monkeypatch.setattr("deplo.tools.generate_passes.PAGE", stale)
    assert main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err


@pytest.mark.parametrize("name", [*PASSES, *PIPELINES])
def test_each_option_has_a_meaning_a_type_and_a_default(name):
    assert all(o.meaning and o.type and o.default for o in options_of(name))


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_for_cpus_alone_is_for_a_cpu_by_default_and_all_others_for_one_gpu(name):
    defaults = {option.default for option in options_of(name) if option.name == "target"}
    assert defaults <= {"cpu" if families_of(name) == {"a CPU"} else "sm_90a"}


@pytest.mark.parametrize("name", PASSES)
def test_the_help_has_the_level_and_more_than_a_line_of_text(name):
    text = help_text(name)
    reads, _ = levels_of(name)
    assert text.startswith(f"{name}: ")
    assert (f"reads {LEVELS[reads].name}" if reads else "any level") in text
    assert len(text.splitlines()) > 8


def test_the_help_of_one_pass(capsys):
    text = printed(capsys, "--help-pass", "blockify-launch")
    assert "target: str = sm_90a" in text
    assert "reads Tile IR (tile.launch)" in text
    assert "tile.launch (%i = 32 : block" in text


def test_the_help_of_a_pass_of_xdsl_and_of_none(capsys):
    text = printed(capsys, "--help-pass", "scf-for-loop-unroll")
    assert text.startswith("scf-for-loop-unroll: ")
    assert run(["--help-pass", "nope"]) == 2
    assert "unknown pass 'nope'; see --list-passes" in capsys.readouterr().err


def test_the_list_has_options_if_asked_for(capsys):
    plain, whole = printed(capsys, "--list-passes"), printed(capsys, "--list-passes=options")
    assert "trips: int = 64" not in plain
    assert "trips: int = 64  Iterations of a loop that is unrolled, at most" in whole
    assert set(plain.splitlines()) < set(whole.splitlines())


def completed(script, function, *words):
    """What bash proposes for the last of some words."""
    quoted = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; {function}; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_completes_options_texts_and_the_last_of_several_passes(capsys):
    pytest.importorskip("shtab")
    script = printed(capsys, "--completion", "bash")
    assert "--print-ir-before-all" in completed(script, "_shtab_deplo_opt", "deplo-opt", "--print")
    passes = completed(script, "_shtab_deplo_opt", "deplo-opt", "-p", "tileify,block")
    assert sorted(passes) == ["tileify,block-sums", "tileify,blockify-launch"]


def test_bash_completes_commands(capsys):
    pytest.importorskip("shtab")
    with pytest.raises(SystemExit):
        make_parser().parse_args(["--completion", "bash"])
    script = capsys.readouterr().out
    assert completed(script, "_shtab_deplo", "deplo", "comp") == ["compile"]
    assert "--stop-after" in completed(script, "_shtab_deplo", "deplo", "compile", "--stop")


@pytest.mark.parametrize("shell", ["zsh", "fish", "tcsh"])
def test_other_shells_have_a_script(shell, capsys):
    pytest.importorskip("shtab")
    assert "deplo-opt" in printed(capsys, "--completion", shell)


def test_without_shtab_the_error_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert run(["--completion", "bash"]) == 4
    assert "pip install 'deplo[completion]'" in capsys.readouterr().err
