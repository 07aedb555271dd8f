"""xdsl-opt's options where no text of a program can show them."""

import pytest
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ShrinkException

from deplo.tools.deplo_opt import DeploOptMain
from deplo.tools.xdsl_compatible import XdslCompatibleMain


class RaisesShrink(ModulePass):
    name = "raises-shrink"

    def apply(self, ctx, op):
        raise ShrinkException


@pytest.mark.parametrize("driver", [DeploOptMain, XdslCompatibleMain])
@pytest.mark.parametrize(("passes", "told"), [("raises-shrink", "Success"), ("cse", "Failure")])
def test_shrink_asks_for_the_exception(driver, passes, told, tmp_path, capsys):
    program = tmp_path / "program.mlir"
    program.write_text("builtin.module {}")
    main = driver(["--shrink", "-p", passes, str(program)])
    main.available_passes["raises-shrink"] = lambda: RaisesShrink
    try:
        code = main.execute()
    except SystemExit as request:
        code = request.code
    assert code == (0 if told == "Success" else 1)
    assert told in capsys.readouterr().out.splitlines()[-1]
