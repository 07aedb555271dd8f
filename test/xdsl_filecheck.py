"""Run xDSL's own file-check tests with `deplo-opt --xdsl-compatible` in place of `xdsl-opt`.

    make test-xdsl                                 about 15 minutes on one core
    python test/xdsl_filecheck.py --plain          deplo-opt without the switch: a count, no verdict
    python test/xdsl_filecheck.py transforms       the tests below a directory

The tests come with the source distribution of the installed xdsl, which pip downloads into build/xdsl. Each
test that passes with `xdsl-opt` must pass, except those in `EXCEPTIONS`, which must fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "xdsl"
SCRIPTS = Path(sys.executable).parent

_EQSAT = "transforms/apply-eqsat-pdl-interp"
EXCEPTIONS = {
    "an e-graph in a function has cycles; a function's body is no graph region": [
        f"{_EQSAT}/apply_eqsat_pdl_interp_extra_file.mlir",
        f"{_EQSAT}/egg_example.mlir",
        f"{_EQSAT}/rebuilding.mlir",
        "transforms/eqsat-add-costs/eqsat-add-costs-with-default.mlir",
        "transforms/eqsat-add-costs/eqsat-add-costs.mlir",
        "transforms/eqsat-extract.mlir",
        "transforms/eqsat-serialize-egraph-cycle.mlir",
    ],
    "a block uses an argument of a block that does not dominate it": [
        "dialects/x86/x86_assembly_emission.mlir",
        "dialects/x86/x86_ops.mlir",
        "parser-printer/graph_region.mlir",
    ],
    "the pass uses a value outside the region that defines it": [
        "transforms/lower-csl-stencil.mlir",
    ],
}
"""Why a test fails -> the tests."""


def main() -> int:
    """Run the tests twice and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", nargs="?", default=".", help="run the tests below it")
    parser.add_argument("--plain", action="store_true", help="deplo-opt without --xdsl-compatible")
    parser.add_argument("-j", "--jobs", default="1", help="tests at a time")
    args = parser.parse_args()
    tests = _source() / "tests" / "filecheck" / args.directory
    passed = _run(tests, args.jobs, "xdsl-opt", None)
    flags = "" if args.plain else " --xdsl-compatible"
    kept = _run(tests, args.jobs, "deplo-opt", f'exec "{SCRIPTS}/deplo-opt"{flags} "$@"')
    failed = passed - kept
    print(f"{len(passed)} tests pass with xdsl-opt, {len(passed & kept)} with deplo-opt{flags}")
    if args.plain:
        return 0
    excepted = {test for each in EXCEPTIONS.values() for test in each}
    for test in sorted(failed - excepted):
        print(f"fails: {test}")
    stale = sorted(excepted & kept)
    for test in stale:
        print(f"passes, but is an exception: {test}")
    return 1 if failed - excepted or stale else 0


def _source() -> Path:
    """The unpacked source distribution of the installed xdsl."""
    name = f"xdsl-{version('xdsl')}"
    if not (WORK / name).is_dir():
        WORK.mkdir(parents=True, exist_ok=True)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        download += ["--no-binary", ":all:", "--dest", str(WORK), f"xdsl=={version('xdsl')}"]
        subprocess.run(download, check=True)
        with tarfile.open(WORK / f"{name}.tar.gz") as archive:
            archive.extractall(WORK, filter="data")
    return WORK / name


def _run(tests: Path, jobs: str, name: str, script: str | None) -> set[str]:
    """The tests that pass with `script`, a line of shell, in place of `xdsl-opt`."""
    path = [str(SCRIPTS), os.environ["PATH"]]
    if script is not None:
        shim = WORK / "bin" / "xdsl-opt"
        shim.parent.mkdir(parents=True, exist_ok=True)
        pythonpath = os.environ.get("PYTHONPATH", "")
        shim.write_text(f'#!/bin/sh\nexport PYTHONPATH="{pythonpath}"\n{script}\n')
        shim.chmod(0o755)
        path.insert(0, str(shim.parent))
    report = WORK / f"{name}.json"
    lit = [str(SCRIPTS / "lit"), "-q", f"-j{jobs}", "--no-progress-bar", "--ignore-fail"]
    environment = {**os.environ, "PATH": os.pathsep.join(path)}
    log = WORK / f"{name}.log"
    with log.open("w") as stream:
        subprocess.run(
            [*lit, "--output", str(report), str(tests)],
            check=True,
            env=environment,
            stdout=stream,
            stderr=stream,
        )
    results = json.loads(report.read_text())["tests"]
    return {each["name"].split(" :: ")[1] for each in results if each["code"] == "PASS"}


if __name__ == "__main__":
    sys.exit(main())
