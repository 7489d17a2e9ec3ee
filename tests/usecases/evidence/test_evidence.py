"""`uqeval.usecases.evidence`: which files belong together, and what is written of them."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.errors import OutputError, StoreError, UsageError
from uqeval.gate.saved_verdicts import checksum_of
from uqeval.records.folder import digests_of, load_reports
from uqeval.records.report import Report
from uqeval.usecases.evidence.collecting import collect
from uqeval.usecases.evidence.readme import _data
from uqeval.usecases.evidence.results import add_selftest, add_verifications
from uqeval.usecases.evidence.statement import sorted_tests, title_of
from uqeval.usecases.evidence.writing import check_library, environment, packages, write_evidence
from uqeval.usecases.selftest import synthetic_data

RULES = "regression.rmse: {max: 100, id: R-1}\nnmerci.nmerci: {max: -1}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a report, its states, rules, verdicts and a self-test."""
    monkeypatch.chdir(tmp_path)
    np.savez("depth.npz", **synthetic_data.numbers("evidence", items=2))
    evaluated("report", ["regression", "nmerci"])
    Path("rules.yaml").write_text(RULES)
    judged("report", "verdicts")
    record = {"schema": "uqeval.selftest/1", "result": "PASSED", "checks": [],
              "uqeval_version": uqeval.__version__, "finished": "today"}  # fmt: skip
    Path("selftest.json").write_text(json.dumps(record))
    return tmp_path


def evaluated(name: str, metrics: list[str]) -> None:
    report = uqeval.evaluate(
        "depth.npz", metrics=metrics, states=f"{name}.states.zip", workers=1
    )  # fmt: skip
    report.save(f"{name}.json")


def judged(report: str, verdicts: str) -> None:
    from uqeval.config import load_rules_file
    from uqeval.gate import judge
    from uqeval.report.verdict_files import to_json

    reports = load_reports(f"{report}.json")
    rules = load_rules_file("rules.yaml")
    found = judge(reports, rules.rules, [], None)  # type: ignore[arg-type]
    read = {"report": f"{report}.json", "sha256": digests_of(reports, [], rules.sha256)}
    Path(f"{verdicts}.json").write_text(to_json(found, read))


def whole(**given: Any) -> Any:
    found = collect(
        ["report.json"], **({"verdicts": "verdicts.json", "rules": "rules.yaml"} | given)
    )
    add_verifications(found, (), 2)
    add_selftest(found, "selftest.json")
    return found


def changed(file: str, change: Any) -> None:
    """Change a file, and its checksum where it has one."""
    record = json.loads(Path(file).read_text())
    change(record)
    if "checksum" in record:
        record["checksum"] = checksum_of(record)
    Path(file).write_text(json.dumps(record))


def test_the_statement_names_every_file_by_its_digest(folder: Path) -> None:
    names = write_evidence(whole(), "out")
    assert sorted(names) == sorted(path.name for path in Path("out").iterdir())
    statement = json.loads(Path("out/statement.intoto.json").read_text())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    subjects = {own["name"]: own["digest"] for own in statement["subject"]}
    for name in set(names) - {"statement.intoto.json"}:
        data = (Path("out") / name).read_bytes()
        assert subjects.pop(name) == {"sha256": hashlib.sha256(data).hexdigest()}
    states = hashlib.sha256(Path("report.states.zip").read_bytes()).hexdigest()
    assert subjects.pop("states/report.states.zip") == {"sha256": states}
    inputs = json.loads(Path("report.json").read_text())["inputs"]
    assert subjects == {
        "predictions: depth.npz": {"uqevalFingerprint": inputs["predictions"][0]["fingerprint"]},
        "target: depth.npz": {"uqevalFingerprint": inputs["target"]["fingerprint"]},
    }
    predicate = statement["predicate"]
    assert predicate["result"] == "FAILED"
    assert "[R-1] report/regression.rmse: at most 100" in predicate["passedTests"]
    assert {"uqeval selftest", "uqeval verify report"} <= set(predicate["passedTests"])
    assert predicate["warnedTests"] == []
    assert predicate["failedTests"] == ["report/nmerci.nmerci: at most -1"]
    rules = hashlib.sha256(RULES.encode()).hexdigest()
    assert {"name": "rules", "digest": {"sha256": rules}} in predicate["configuration"]


def test_the_environment_is_valid_cyclonedx(monkeypatch: pytest.MonkeyPatch) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    listed = {own["name"]: own.get("version") for own in json.loads(environment())["components"]}
    assert listed["numpy"] == np.__version__
    assert set(packages()) - {"uqeval"} <= set(listed)
    few = {name: version for name, version in packages().items() if name in ("uqeval", "numpy")}
    monkeypatch.setattr("uqeval.usecases.evidence.writing.packages", lambda: few)
    text = environment().decode()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None


def test_the_readme_says_what_a_reviewer_asks(folder: Path) -> None:
    changed("report.json", lambda r: r["warnings"].append("mind the | pipe"))
    judged("report", "verdicts")
    write_evidence(whole(), "out")
    text = Path("out/README.md").read_text()
    for words in (
        "Result: **FAILED**", "depth.npz", "2 items", "R-1", "at most 100", "| target | lower |",
        "not recomputed", "mind the", "cosign sign-blob --bundle", "Stored files are decoded",
    ):  # fmt: skip
        assert words in text, words
    assert "| 2 items | pass (passed) |" in text


def test_the_readme_has_the_interval_of_a_region_with_dots(folder: Path) -> None:
    """Under the address that a gate rule takes."""
    score = 'regression@"depth:0.5-20.5".rmse'

    def change(record: Any) -> None:
        record["results"]["regression@depth:0.5-20.5"] = {"rmse": 0.9999997}
        record["intervals"][score] = {"level": 0.9, "low": 0.25, "high": 2.0, "method": "expanded"}

    changed("report.json", change)
    judged("report", "verdicts")
    write_evidence(whole(), "out")
    text = Path("out/README.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith(f"| {score} ("))
    assert "| 0.9999997 | target | lower | 0.250000 to 2.000000 at level 0.9, expanded |" in row


def test_the_readme_has_the_void_ids_of_labels_and_of_each_model(folder: Path) -> None:
    def change(record: Any) -> None:
        record["inputs"] |= {"labels": {"path": "l", "fingerprint": "f"}, "ignore_index": 7}
        of_models = {f"temporal[{i}]": {"model": str(i), "ignore_index": i} for i in (3, 4)}
        record["settings"] |= of_models

    changed("report.json", change)
    text = "\n".join(_data("report", Report.load("report.json")))
    assert [line.split(" is void")[0] for line in text.splitlines() if "is void" in line] == [
        "Label 7", "Predicted id 3", "Predicted id 4",
    ]  # fmt: skip


def test_the_readme_names_the_version_that_made_it(folder: Path) -> None:
    changed("selftest.json", lambda r: r.update(uqeval_version="0.0.1"))
    write_evidence(whole(), "out")
    assert f" by uqeval {uqeval.__version__}." in Path("out/README.md").read_text()


#: What a waiver changes in a verdict that fails.
WAIVED = {
    "status": "waived", "counts_as": "pass",
    "waiver": {"outcome": "waived", "note": "by A. Keller", "instead_of": "fail"},
}  # fmt: skip


def test_waived_and_let_pass_are_warnings(folder: Path) -> None:
    def change(record: Any) -> None:
        first, second = record["verdicts"]
        first |= {"status": "inconclusive", "counts_as": "pass", "reason": "few"}
        second |= WAIVED
        record["passed"] = True

    changed("verdicts.json", change)
    tests = sorted_tests(whole())
    assert len(tests["warned"]) == 2 and not tests["failed"]
    write_evidence(whole(), "out")
    assert "WARNED" in Path("out/README.md").read_text()


def test_waived_rules_are_listed_with_who_and_why(folder: Path) -> None:
    def change(record: Any) -> None:
        waive = {"until": "2020-01-31", "by": "A. Keller", "why": "camera B", "at_most": 3}
        record["verdicts"][1] |= WAIVED | {"waive": waive}
        record["passed"] = all(own["counts_as"] == "pass" for own in record["verdicts"])
        record["warnings"].append("judged as of 2020-01-01")

    changed("verdicts.json", change)
    write_evidence(whole(), "out")
    text = Path("out/README.md").read_text()
    assert "A. Keller | 2020-01-31 | at most 3 | camera B |" in text
    assert "was valid until 2020-01-31 and has expired" in text and "as of 2020-01-01" in text
    assert text.index("| report/nmerci.nmerci") < text.index("R-1")
    predicate = json.loads(Path("out/statement.intoto.json").read_text())["predicate"]
    assert [(own["by"], own["why"]) for own in predicate["waivers"]] == [("A. Keller", "camera B")]


def test_reasons_and_notes_are_below_the_verdicts(folder: Path) -> None:
    """Also the notes on a pass; with the ids of rules that were not evaluated."""
    Path("rules.yaml").write_text(f"{RULES}gone/nmerci.nmerci: {{max: 1, id: R-9}}\n")
    judged("report", "verdicts")

    def change(record: Any) -> None:
        record["verdicts"][0] |= {"why": "braking distance", "notes": ["few items"]}
        waive = {"until": "2099-01-31", "by": "A. Keller", "why": "camera B"}
        record["verdicts"][1] |= WAIVED | {"waive": waive}

    changed("verdicts.json", change)
    write_evidence(whole(), "out")
    text = Path("out/README.md").read_text()
    verdicts = text[text.index("## Verdicts") : text.index("### Waived rules")]
    for words in (
        "regression.rmse: at most 100: braking distance", "rmse: at most 100: few items",
        "R-9] gone/nmerci.nmerci | – |", "R-9] gone/nmerci.nmerci: ",
    ):  # fmt: skip
        assert words in verdicts, words


def test_files_that_do_not_belong_together_are_refused(folder: Path) -> None:
    evaluated("other", ["regression"])
    Path("report.states.zip").write_bytes(Path("other.states.zip").read_bytes())
    with pytest.raises(StoreError, match="are not the states of"):
        collect(["report.json"])
    with pytest.raises(UsageError, match="no given report has its SHA-256"):
        collect(["other.json"], "verdicts.json")
    Path("rules.yaml").write_text("regression.rmse: {max: 5}\n")
    evaluated("report", ["regression", "nmerci"])  # its time is another, so is its digest
    with pytest.raises(UsageError, match="no given report has its SHA-256"):
        collect(["report.json"], "verdicts.json", "rules.yaml")


@pytest.mark.parametrize("key", ["value", "units", "more_units", "id", "limit", "line", "notes"])
def test_edited_verdicts_are_refused(folder: Path, key: str) -> None:
    record = json.loads(Path("verdicts.json").read_text())
    verdict = record["verdicts"][0]
    edits = {
        "value": verdict["value"] * 1.0001,
        "units": {"name": "item", "drawn": 500, "defined": 500, "lag1": None, "effective": None},
        "more_units": {"count": 3, "low": 2, "high": 9, "unit": "item"},
        "id": "R-9", "limit": verdict["limit"] * 1.0001, "line": 99, "notes": ["all is well"],
    }  # fmt: skip
    assert verdict[key] != edits[key]
    verdict[key] = edits[key]
    Path("verdicts.json").write_text(json.dumps(record))
    with pytest.raises(
        StoreError, match=r"`checksum` is .* but the content gives .* The file was edited"
    ):
        collect(["report.json"], "verdicts.json")


def test_values_are_those_of_the_report(folder: Path) -> None:
    def change(record: Any) -> None:
        record["verdicts"][0]["value"] *= 1.0001

    changed("verdicts.json", change)
    with pytest.raises(UsageError, match=r"is of the value .* the report has"):
        collect(["report.json"], "verdicts.json")
    changed("verdicts.json", lambda record: record.pop("checksum"))
    with pytest.raises(UsageError, match="has no checksum"):
        collect(["report.json"], "verdicts.json")


def test_layout_is_no_edit(folder: Path) -> None:
    record = json.loads(Path("verdicts.json").read_text())
    text = json.dumps(dict(reversed(record.items())), indent=7, ensure_ascii=False)
    Path("verdicts.json").write_text(text)
    assert collect(["report.json"], "verdicts.json").verdicts is not None


def test_other_rules_and_rules_alone_are_refused(folder: Path) -> None:
    Path("rules.yaml").write_text("regression.rmse: {max: 5}\n")
    with pytest.raises(UsageError, match="does not hold the rules of the verdicts"):
        collect(["report.json"], "verdicts.json", "rules.yaml")
    with pytest.raises(UsageError, match="rules need their verdicts"):
        collect(["report.json"], None, "rules.yaml")


def test_verdicts_without_digests_are_refused(folder: Path) -> None:
    changed("verdicts.json", lambda r: r.pop("sha256"))
    with pytest.raises(UsageError, match="does not give the SHA-256"):
        collect(["report.json"], "verdicts.json")
    with pytest.raises(StoreError, match="schema"):
        collect(["report.json"], "report.json")


def test_partial_reports_are_refused(folder: Path) -> None:
    changed("report.json", lambda r: r.update(partial=True))
    with pytest.raises(UsageError, match="partial report"):
        collect(["report.json"])


def test_a_verification_of_another_report_is_refused(folder: Path) -> None:
    from uqeval.usecases.verify.verifying import verify

    Path("verification.json").write_text(verify("report.json").to_json())
    found = collect(["report.json"])
    add_verifications(found, ["verification.json"], None)
    assert found.verifications["report"]["result"] == "PASSED"
    evaluated("report", ["regression"])
    with pytest.raises(UsageError, match="verifies a report, but no given report has its SHA-256"):
        add_verifications(collect(["report.json"]), ["verification.json"], 1)


def test_families_that_are_not_recomputed_are_a_warning(folder: Path) -> None:
    """No value of `nmerci` was compared."""
    metrics = {"regression": {}, "nmerci": {"over": "kept"}}
    uqeval.evaluate("depth.npz", metrics=metrics, workers=1).save("report.json")
    found = collect(["report.json"])
    add_verifications(found, (), None)
    add_selftest(found, "selftest.json")
    assert sorted_tests(found) == {
        "passed": ["uqeval selftest"], "failed": [],
        "warned": ["uqeval verify report: not recomputed: nmerci"],
    }  # fmt: skip


def test_another_version_and_a_merge_are_stated(folder: Path) -> None:
    uqeval.merge("report.json", states="merged.states.zip")
    merged = uqeval.merge("report.json")
    Path("merged.json").write_text(merged.to_json())
    changed("report.json", lambda r: r.update(uqeval_version="0.0.1"))
    found = collect(["report.json", "merged.json"])
    add_verifications(found, (), 1)
    said = "\n".join(found.statements)
    assert "report was written by uqeval 0.0.1" in said
    assert "merged is merged from saved states" in said
    assert "report: not verified" in said
    add_selftest(found, "selftest.json")
    assert sorted_tests(found)["warned"] == ["uqeval verify report: not verified"]


def test_the_folder_is_written_whole_and_holds_no_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = whole()
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("keep")
    with pytest.raises(OutputError, match="holds other files"):
        write_evidence(found, "mine")
    with pytest.raises(UsageError, match="holds the input"):
        write_evidence(found, ".")
    with pytest.raises(OutputError, match="is a file"):
        write_evidence(found, "depth.npz")
    left = Path(f".out.{2**22 + 1}-0")  # of a killed process: ids are smaller
    left.mkdir()
    (left / "README.md").write_text("half")
    write_evidence(found, "out")
    assert not left.exists()
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("uqeval.usecases.evidence.writing.sync_tree", broken)
    with pytest.raises(OutputError, match="No space left"):
        write_evidence(found, "out")
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert not [path for path in Path().iterdir() if path.name.startswith(".out")]


def test_without_the_library_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cyclonedx", None)
    monkeypatch.setitem(sys.modules, "cyclonedx.model", None)
    monkeypatch.setitem(sys.modules, "cyclonedx.model.bom", None)
    with pytest.raises(UsageError, match="pip install cyclonedx-python-lib"):
        check_library()


def test_stores_outside_the_working_folder_are_named_in_a_command_that_works(folder: Path) -> None:
    changed("report.json", lambda r: r["inputs"]["predictions"][0].update(path="../p q.npz"))
    with pytest.raises(UsageError) as error:
        add_verifications(collect(["report.json"]), [], None)
    said = str(error.value)
    command = "uqeval verify report.json '../p q.npz' depth.npz -o verification.json"
    assert f"run: {command}; then give --verify verification.json to uqeval evidence." in said
    assert said.count("uqeval verify") == 1 and "outside the working folder" in said


@pytest.mark.parametrize("name", ["statement.intoto", "selftest", "environment.cdx"])
def test_reports_do_not_replace_files_of_the_evidence(folder: Path, name: str) -> None:
    Path("selftest.json").rename("passed.json")
    Path("report.json").rename(f"{name}.json")
    found = collect([f"{name}.json"])
    add_selftest(found, "passed.json")
    with pytest.raises(UsageError, match=rf"the name of another file, {name}\.json; rename"):
        write_evidence(found, "out")
    assert not Path("out").exists()


def test_relative_limits_are_in_percent_as_in_the_gate() -> None:
    record = {"address": "a/b.c", "id": "R-1", "kind": "max_rise_relative", "limit": 0.01}
    assert title_of(record) == "[R-1] a/b.c: rise at most 1 % of the baseline"
