"""What must stay cheap: importing the package and starting the driver."""

import json
import textwrap

from deplo.garbage import OBJECTS

HEAVY = {"torch", "numpy", "llvmlite", "transformers", "cuda"}


def modules_after(python, code):
    done = python(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_deplo_imports_nothing_heavy(python):
    assert not modules_after(python, "import deplo") & (HEAVY | {"xdsl"})


def test_the_driver_imports_nothing_heavy(python, tmp_path):
    program = tmp_path / "a.mlir"
    program.write_text("func.func private @f()\n")
    code = f"from deplo.tools.deplo_opt import run\nrun([{str(program)!r}, '-p', 'cse'])"
    assert not modules_after(python, code) & HEAVY


def test_a_command_imports_pytorch_only_once_garbage_is_collected_less_often(python):
    code = """
        import gc, json, sys
        import deplo.tools.deplo
        assert "torch" not in sys.modules
        class Watch:
            def find_spec(self, name, *_):
                if name == "torch":
                    print(json.dumps(gc.get_threshold()[0]))
        sys.meta_path.insert(0, Watch())
        sys.argv = ["deplo", "cache", "info"]
        deplo.tools.deplo.main()
    """
    done = python(textwrap.dedent(code))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[0]) >= OBJECTS


def test_naming_a_pipeline_imports_no_pass(python):
    code = "from deplo.universe import DEPLO\nDEPLO.all_passes['torch-to-cuda']()"
    loaded = modules_after(python, code)
    assert not {name for name in loaded if name.startswith("deplo.passes.loop")}


def test_a_program_that_is_kept_needs_neither_passes_nor_printers(python, tmp_path, monkeypatch):
    monkeypatch.setenv("DEPLO_CACHE", "1")
    monkeypatch.setenv("DEPLO_CACHE_DIR", str(tmp_path / "cache"))
    code = "import torch, deplo\ndeplo.compile(torch.nn.ReLU(), (torch.ones(4),)).kernels"
    needed = {"deplo.program_passes", "deplo.passes.loop.fuse_loops", "deplo.dialects.cuda"}
    assert needed - {"deplo.dialects.cuda"} <= modules_after(python, code)
    assert not modules_after(python, code) & needed
