"""Options that `uqeval verify` does not know: it supports their default only."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from changed_reports import read

import uqeval
from uqeval.metrics import FAMILIES, FAMILIES_IN_REPORTS
from uqeval.metrics.failure import FailureSettings
from uqeval.settings import documented, option
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.options import supported_options
from uqeval.usecases.verify.verifying import verify


def test_every_option_of_a_family_is_in_a_list() -> None:
    for family in FAMILIES_IN_REPORTS.values():
        options = set(family.settings_type.__dataclass_fields__)
        known = supported_options(family.in_reports)
        for name in options - known:
            pytest.fail(
                f"{name} of {family.settings_type.__name__}: add it to a list of "
                "uqeval/usecases/verify/options.py, or verify supports its default only"
            )
        assert known <= options, f"{family.in_reports} has no options {known - options}"


@documented
@dataclasses.dataclass(frozen=True)
class NewSettings(FailureSettings):
    """The settings of failure detection with an option that changes numbers."""

    shift: int = option(0, "Add this to each number.")


@pytest.mark.parametrize("shift", [0, 1])
def test_an_unknown_option_is_supported_with_its_default_only(
    shift: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("classes.npz", **synthetic_data.classes("verify"))
    uqeval.evaluate("classes.npz", metrics=["failure", "segmentation"], workers=1).save("r.json")
    report = read("r.json")
    report["settings"]["failure"]["shift"] = shift
    report["results"]["failure"]["auroc"] += 0.01 * shift
    Path("r.json").write_text(json.dumps(report))
    changed = dataclasses.replace(FAMILIES["failure"], settings_type=NewSettings)
    monkeypatch.setitem(FAMILIES, "failure", changed)
    found = verify("r.json", everything=True)
    assert found.passed, found.problems()
    assert ("failure" in found.fields) == (shift == 0)
    text = "failure: --shift 1 is not supported by uqeval verify"
    assert any(text in line for line in found.not_verified) == (shift == 1)
