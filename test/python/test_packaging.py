"""The wheel holds the whole package, and works where the checkout is not."""

import ast
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_SHIPPED = {"lit.cfg.py", "setup.py"}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> Path:
    """A wheel built from a copy of the checkout, so that nothing is written into it."""
    source = tmp_path_factory.mktemp("source")
    target = tmp_path_factory.mktemp("wheel")
    for path in [*shipped_sources(), *shipped_data()]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_bytes((ROOT / path).read_bytes())
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*command, "-w", str(target), str(source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return next(target.glob("deplo-*.whl"))


def shipped_sources() -> list[Path]:
    """Every module of the package, relative to the checkout."""
    found = [p for p in ROOT.glob("*.py") if p.name not in NOT_SHIPPED]
    return sorted(p.relative_to(ROOT) for p in [*found, *in_rooms(".py")])


def shipped_data() -> list[Path]:
    """Every file that a module reads, relative to the checkout."""
    return sorted(p.relative_to(ROOT) for p in in_rooms(".ll", ".txt", ".in"))


def in_rooms(*suffixes: str) -> list[Path]:
    """Every file with one of the suffixes in the package's directories."""
    rooms = [p for p in ROOT.iterdir() if (p / "__init__.py").exists() and p.name != "test"]
    return [p for room in rooms for p in room.rglob("*") if p.suffix in suffixes]


def test_wheel_holds_every_module_and_its_data_and_nothing_else(wheel):
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    shipped = [*shipped_sources(), *shipped_data()]
    assert names == {f"deplo/{path.as_posix()}" for path in shipped}


def test_wheel_names_the_scripts_and_the_universe(wheel):
    archive = zipfile.ZipFile(wheel)
    name = next(n for n in archive.namelist() if n.endswith("entry_points.txt"))
    text = archive.read(name).decode()
    assert "deplo = deplo.tools.deplo:main" in text
    assert "deplo-opt = deplo.tools.deplo_opt:main" in text
    assert "deplo = deplo.universe:DEPLO" in text


def test_every_module_of_the_wheel_can_be_imported(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = f"""
import importlib, pkgutil, sys
sys.path.insert(0, {str(tmp_path)!r})
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in repr(f).lower()]
import deplo
assert deplo.__file__.startswith({str(tmp_path)!r}), deplo.__file__
for module in pkgutil.walk_packages(deplo.__path__, "deplo."):
    importlib.import_module(module.name)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_xdsl_opt_sees_the_dialects_passes_and_target(tmp_path):
    from xdsl.universe import Universe

    universe = Universe.get_multiverse()
    assert {"torch", "tensor_ir", "loop", "tile", "kernel", "cuda"} <= set(universe.all_dialects)
    assert {"lift-to-loops", "torch-to-cuda"} <= set(universe.all_passes)
    assert universe.all_targets["cuda"]().name == "cuda"
    assert universe.all_dialects["loop"]().name == "loop"


def test_entry_points_are_installed():
    scripts = {e.name: e.value for e in entry_points(group="console_scripts")}
    assert scripts["deplo-opt"] == "deplo.tools.deplo_opt:main"


@pytest.mark.parametrize("path", shipped_sources(), ids=str)
def test_every_module_says_what_it_is_for(path):
    tree = ast.parse((ROOT / path).read_text())
    empty_package = path.name == "__init__.py" and not tree.body
    assert empty_package or ast.get_docstring(tree)
