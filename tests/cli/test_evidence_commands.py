"""`uqeval selftest`, `verify` and `evidence` through the executable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_uqeval, run_well


@pytest.fixture(scope="module")
def selftest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a self-test. Without it, each `uqeval evidence` repeats the self-test."""
    path = tmp_path_factory.mktemp("selftest") / "selftest.json"
    outcome = run_well("selftest", "-o", path)
    assert "passed" in outcome.stdout and "Golden reports" in outcome.stdout
    return path


def test_selftest_verify_and_evidence(stores: Path, selftest: Path, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(stores)
    run_well("failure", "data/complete.zarr", "-o", "report.json", cwd=tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text("failure.auroc: {min: 0.1, id: R-1}\n")
    run_well("gate", "report.json", "rules.yaml", "-o", "verdicts.json", cwd=tmp_path)

    record = json.loads(selftest.read_text())
    assert record["result"] == "PASSED"
    assert {"numpy", "numba", "zarr", "uqeval"} <= set(record["versions"])
    assert len(record["groups"]) == 5

    outcome = run_well("verify", "report.json", "--all", "-o", "verified.json", cwd=tmp_path)
    assert "Not verified" in outcome.stdout and "predictions: data/complete.zarr" in outcome.stdout
    assert json.loads((tmp_path / "verified.json").read_text())["result"] == "PASSED"

    given = ("report.json", "--verdicts", "verdicts.json", "--rules", "rules.yaml")
    more = ("--selftest", selftest, "--verify", "verified.json")
    outcome = run_well("evidence", *given, *more, "-o", "out", cwd=tmp_path)
    assert "PASSED: 3 passed, 0 warned, 0 failed" in outcome.stdout
    assert (tmp_path / "out/statement.intoto.json").is_file()

    rules.write_text("failure.auroc: {min: 0.2, id: R-1}\n")
    refused(
        run_uqeval("evidence", *given, *more, "-o", "new", cwd=tmp_path), "does not hold the rules"
    )
    assert not (tmp_path / "new").exists()

    report = json.loads((tmp_path / "report.json").read_text())
    report["items"][2]["failure"]["auroc"] += 1e-3
    (tmp_path / "report.json").write_text(json.dumps(report))
    outcome = run_uqeval("verify", "report.json", "--all", cwd=tmp_path)
    assert outcome.status == 2
    assert "failure.auroc is" in outcome.stderr and "Traceback" not in outcome.stderr


def test_a_difference_found_by_selftest_is_3_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import sys

    from uqeval.cli.start import main
    from uqeval.usecases.selftest import record
    from uqeval.usecases.selftest.record import Check, Selftest

    bad = Selftest(
        [Check("Kernels", "logarithm", False, 1, "found 1.0, expected 2.0")], {"uqeval": "0"}, {},
        "now", 0.1, {"Kernels": 0.1},
    )  # fmt: skip
    monkeypatch.setattr(record, "selftest", lambda **_: bad)
    monkeypatch.setattr(sys, "argv", ["uqeval", "selftest", "-o", str(tmp_path / "s.json")])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 3
    captured = capsys.readouterr()
    assert "logarithm: found 1.0, expected 2.0" in captured.err
    assert "Traceback" not in captured.err
    record: dict[str, Any] = json.loads((tmp_path / "s.json").read_text())
    assert record["result"] == "FAILED"


def test_evidence_of_rules_that_fail_and_of_none(
    stores: Path, selftest: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").symlink_to(stores)
    run_well("failure", "data/complete.zarr", "-q", "-o", "report.json", cwd=tmp_path)
    (tmp_path / "rules.yaml").write_text(
        "failure.auroc: {min: 1, id: R-1, why: it must see all errors}\n"
        "gone/failure.auroc: {min: 0.1, id: R-2}\n"
    )
    assert run_uqeval("gate", "report.json", "rules.yaml", "-o", "v.json", cwd=tmp_path).status == 2
    outcome = run_well("verify", "report.json", "-o", "-", cwd=tmp_path)
    assert json.loads(outcome.stdout)["result"] == "PASSED"
    (tmp_path / "verified.json").write_text(outcome.stdout)
    given = ("evidence", "report.json", "--verify", "verified.json")
    outcome = run_well(*given, "--verdicts", "v.json", "-o", "failed", cwd=tmp_path)
    assert "FAILED: 2 passed, 0 warned, 2 failed" in outcome.stdout
    assert "failed: [R-2] gone/failure.auroc: not evaluated" in outcome.stdout
    assert "warning: Only the SHA-256 of the rules is given" in outcome.stderr
    readme = (tmp_path / "failed" / "README.md").read_text()
    assert "it must see all errors" in readme and "not evaluated" in readme
    given = (*given, "--selftest", str(selftest))
    assert run_well(*given, "-q", "-o", "none", cwd=tmp_path).stderr == ""
    assert "verdicts" not in run_well(*given, "-o", "other", cwd=tmp_path).stderr
    (tmp_path / "v.json").rename(tmp_path / "verdicts.json")  # as `uqeval run` calls them
    assert (
        "warning: the evidence has no verdicts, and verdicts.json is next to the reports. To "
        "include it, give --verdicts verdicts.json --rules FILE.\n"
    ) in run_well(*given, "-o", "without", cwd=tmp_path).stderr
    assert "No verdicts were given" in (tmp_path / "none" / "README.md").read_text()
