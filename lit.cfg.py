"""lit's configuration: `lit test` runs every .mlir and .test file under test/."""

# ruff: noqa: F821 (lit defines `config`)

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import lit.formats

ROOT = Path(__file__).resolve().parent
SCRIPTS = Path(sys.executable).parent


def find_filecheck():
    """LLVM's FileCheck where there is one, as it is quick; else the one from PyPI."""
    if "FILECHECK" in os.environ:
        return os.environ["FILECHECK"]
    for folder in sorted(Path("/usr/lib").glob("llvm-*/bin"), reverse=True):
        if (folder / "FileCheck").exists():
            return str(folder / "FileCheck")
    return shutil.which("FileCheck") or str(SCRIPTS / "filecheck")


def find_mlir_opt():
    """LLVM's own tool, where it is installed."""
    folders = sorted(Path("/usr/lib").glob("llvm-*/bin"), reverse=True)
    found = [str(f / "mlir-opt") for f in folders if (f / "mlir-opt").exists()]
    return shutil.which("mlir-opt") or next(iter(found), None)


config.name = "deplo"
config.test_format = lit.formats.ShTest(execute_external=False)  # lit's own shell has `not`
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output", "build", ".venv", "python", "gpu"]
config.test_source_root = str(ROOT)
config.test_exec_root = str(ROOT / "build" / "lit")
# Console scripts are found where the Python that runs lit lives, but for those of test/tool_server.py.
SERVED = Path(tempfile.mkdtemp(prefix="lit-tools-"))
atexit.register(shutil.rmtree, SERVED, ignore_errors=True)
config.environment["PATH"] = os.pathsep.join([str(SERVED), str(SCRIPTS), os.environ["PATH"]])
config.environment["PYTHONHASHSEED"] = "0"
config.environment["DEPLO_CACHE"] = "0"  # what is tested is compiled now
for name in ("DEPLO_CPU_MODEL", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.substitutions += [(r"\bFileCheck\b", find_filecheck()), ("%python", sys.executable)]
if mlir_opt := find_mlir_opt():
    config.available_features.add("mlir-opt")
    config.substitutions.append((r"%mlir-opt", mlir_opt))
if importlib.util.find_spec("transformers"):
    config.available_features.add("transformers")
sys.path.insert(0, str(ROOT / "test"))
for tool, module in (("deplo-opt", "deplo.tools.deplo_opt"), ("deplo", "deplo.tools.deplo")):
    import_module("tool_server").start(SERVED, tool, module, dict(config.environment))
