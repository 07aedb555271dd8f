"""`docs/coverage.md` says what the dialect and the last `make test-ops` say."""

import json

from deplo.dialects.torch import OPS_BY_ATEN
from deplo.passes.torch.decompose_torch import RULES
from deplo.tools.generate_coverage import PAGE, RESULTS, generate, main


def test_the_page_is_up_to_date():
    assert main(["--check"]) == 0


def test_every_operator_of_the_contract_is_on_the_page_and_has_a_rule():
    text = PAGE.read_text()
    for name, op in OPS_BY_ATEN.items():
        assert f"`{name}`" in text
        assert op in RULES, f"{name} has no lowering"


def test_the_results_have_nothing_wrong():
    results = json.loads(RESULTS.read_text())
    bad = {
        f"{name} of {dtype}: {status}"
        for dtype, statuses in results.items()
        for name, status in statuses.items()
        if status in ("WRONG", "CRASH")
    }
    assert not bad


def test_the_page_notices_a_change(monkeypatch, tmp_path):
    stale = tmp_path / "coverage.md"
    stale.write_text(generate().replace("yes", "no", 1))
    monkeypatch.setattr("deplo.tools.generate_coverage.PAGE", stale)
    assert main(["--check"]) == 1
