"""Who may import whom. Read from the source, so that a lazy import counts too."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from deplo.program_cache import DECIDING

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    "errors": set(),
    "index": {"errors"},
    "machine": {"errors"},
    "dialects": {"errors", "index", "machine"},
    "codegen": {"errors", "index", "machine", "dialects"},
    "analysis": {"errors", "index", "machine", "dialects"},
    "passes": {"errors", "index", "machine", "dialects", "analysis"},
    "interpreter": {"errors", "index", "machine", "dialects", "analysis"},
    "runtime": {"errors"},
    "frontend": {"errors", "index", "dialects", "analysis"},
    "generation": {"errors"},
}
"""Room -> the other rooms it may import from; a room that is not listed may import any."""
FOREIGN = {
    "torch": {
        *("frontend", "tools", "tune", "program", "runtime", "saving", "torch_backend"),
        "generation",
    },
    "transformers": {"frontend", "tools"},
    "xdsl": {
        *("index", "dialects", "codegen", "analysis", "passes", "interpreter"),
        *("frontend", "lazy", "onnx_import", "report", "tools", "tune", "universe"),
        "execution",
        *("program", "program_cache", "program_kernels", "program_passes", "program_stages"),
        "program_texts",
    },
    "llvmlite": {"machine", "runtime", "passes", "tools"},
    "cuda": {"runtime", "tools"},
    "onnx": {"onnx_import"},
}
"""Heavy library -> the rooms that may import it; `runtime` uses torch's memory where it is there."""
MAX_LINES = 600


def sources() -> list[Path]:
    rooms = [p for p in ROOT.iterdir() if p.is_dir() and (p / "__init__.py").exists()]
    nested = [p for room in rooms if room.name != "test" for p in room.rglob("*.py")]
    own = [p for p in ROOT.glob("*.py") if p.name not in ("lit.cfg.py",)]
    return sorted(own + nested)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("deplo", *(parts[:-1] if parts[-1] == "__init__" else parts)))


def imports(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Each import statement of a file with the absolute name of a module it imports from."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if not node.level:
                yield node, node.module or ""
                continue
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            name = ".".join(part for part in base if part)
            for alias in node.names:
                is_module = (ROOT / Path(*name.split(".")[1:], f"{alias.name}.py")).exists()
                yield node, f"{name}.{alias.name}" if is_module else name


def room_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


MODULES = {module_name(path): path for path in sources()}


@pytest.mark.parametrize("module", MODULES)
def test_a_room_imports_only_the_rooms_below_it(module):
    room = room_of(module)
    for node, target in imports(MODULES[module]):
        top = target.split(".")[0]
        where = f"{MODULES[module]}:{node.lineno} imports {target}"
        if top == "deplo" and room in ALLOWED:
            assert room_of(target) in ALLOWED[room] | {room}, where
        assert room in FOREIGN.get(top, {room}), where


@pytest.mark.parametrize("module", MODULES)
def test_imports_inside_the_package_are_relative_and_at_the_top(module):
    path = MODULES[module]
    tree = ast.parse(path.read_text())
    nested = [n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)]
    for node in nested:
        is_own = isinstance(node, ast.ImportFrom) and node.level > 0
        assert not is_own, f"{path}:{node.lineno} imports deplo inside a function"
    for node, target in imports(path):
        if target.split(".")[0] == "deplo":
            assert getattr(node, "level", 0), f"{path}:{node.lineno} imports deplo by its name"


def test_the_digest_of_the_compiler_holds_whatever_its_rooms_import():
    for module, path in MODULES.items():
        for _, target in imports(path):
            if room_of(module) in DECIDING and target.startswith("deplo."):
                assert room_of(target) in {*DECIDING, "errors"}, f"{module} imports {target}"


def test_there_are_no_import_cycles():
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text())
        lines = {node.lineno for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)}
        graph[module] = {
            target
            for node, target in imports(path)
            if node.lineno in lines and target in MODULES and target != module
        }
    TopologicalSorter(graph).prepare()


def test_a_file_is_one_idea():
    """Longer than `MAX_LINES` is two ideas, or one that is not told well yet."""
    lengths = {
        name: len((ROOT / name).read_text().splitlines())
        for name in (str(path.relative_to(ROOT)) for path in MODULES.values())
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > MAX_LINES}
    assert not too_long
