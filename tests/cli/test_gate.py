"""`uqeval gate` and `uqeval schema` as they are run: status, streams, files, and bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from command import EXECUTABLE, Outcome, refused, run_uqeval, run_well
from small_stores import labels, probs

import uqeval
from uqeval.config.yaml12 import read_yaml

ROOT = Path(__file__).parents[2]
#: Ten million values in a few lines.
BOMB = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 7)
)
NASTY = "<b>bo|ld</b> [red]\x1b[31m\u202e]]> `x` & %0A::error::"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, stores: Path) -> Path:
    """A folder with a real `report.json`, its states, and a folder `out/` of two reports."""
    folder = tmp_path_factory.mktemp("gate")
    run_well("pavpu", stores / "complete.zarr", "-o", folder / "report.json", "--quiet")
    (folder / "out").mkdir()
    for name in ("city", "night"):
        shutil.copy(folder / "report.json", folder / "out" / f"{name}.json")
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def gate(
    folder: Path, rules: str | None, *arguments: str, report: str = "report.json", **env: str
) -> Outcome:
    if rules is not None:
        (folder / "gate.yaml").write_text(rules, "utf-8")
        arguments = ("gate.yaml", *arguments)
    clean = {"GITHUB_ACTIONS": "", "GITHUB_STEP_SUMMARY": ""} | env
    return run_uqeval("gate", report, *arguments, cwd=folder, env=clean)


def changed(folder: Path, **changes: Any) -> None:
    record = json.loads((folder / "report.json").read_text())
    (folder / "report.json").write_text(json.dumps(record | changes))


def value(folder: Path) -> float:
    found: float = json.loads((folder / "report.json").read_text())["results"]["pavpu"]["pavpu"]
    return found


def test_notes_on_biased_and_optimistic_scores(folder: Path) -> None:
    uqeval.evaluate(probs(8), labels(8), ("calibration",), ci=0.9).save(folder / "c.json")
    own = json.loads((folder / "c.json").read_text())["results"]["calibration"]
    limit = (own["ece"] + own["ece_debiased"]) / 2
    rules = f"calibration.ece: {{min: {limit}}}\ncalibration.temperature.ece: {{max: 0.99}}\n"
    done = gate(folder, rules, report="c.json")
    assert done.status == 0
    output = " ".join(done.stdout.split())
    assert "the rule checks the plain value, which is biased upward" in output
    assert "calibration.temperature was fitted on the evaluated items" in output


@pytest.mark.parametrize(
    ("address", "is_optimistic"),
    [("calibration.isotonic.ece", True), ("calibration.vector.nll", True),
     ("calibration.temperature.value", False), ("calibration.isotonic.pixels", False),
     ("regression.sigma_scale.nll", True), ("regression.sigma_scale.nll_before", False)],
)  # fmt: skip
def test_scores_after_a_fit_on_all_items_have_a_note(
    tmp_path: Path, address: str, is_optimistic: bool
) -> None:
    if address.startswith("calibration"):
        metrics: Any = {"calibration": {"isotonic": True, "vector": True}}
        report = uqeval.evaluate(probs(8), labels(8), metrics)
    else:
        target = np.random.default_rng(0).normal(size=(9, 4, 4))
        data = {"mean": target + 0.1, "std": np.ones_like(target), "target": target}
        report = uqeval.evaluate(data, None, {"regression": {"sigma_scale": True}})
    report.save(tmp_path / "c.json")
    done = gate(tmp_path, f"{address}: {{max: 0.99}}", report="c.json")
    says = f"{address.rpartition('.')[0]} was fitted on the evaluated items"
    assert done.status in (0, 1)
    assert (says in " ".join(done.stdout.split())) == is_optimistic


def test_passes(folder: Path) -> None:
    done = gate(folder, "pavpu.pavpu: {min: 0.1, id: R-1, why: because}")
    assert done.status == 0 and done.stderr == ""
    assert "R-1" in done.stdout and "report/pavpu.pavpu" in done.stdout
    assert "gate passed: 1 passed, 0 failed" in done.stdout


def test_fails_and_names_what_moved_it(folder: Path) -> None:
    done = gate(folder, "pavpu.pavpu: {min: 0.999, id: R-1, why: because}")
    assert done.status == 1 and done.stderr == ""
    shown = " ".join(done.stdout.split())
    assert "[R-1] report/pavpu.pavpu: at least 0.999: fail:" in shown
    assert "classes that moved it most:" in shown and "why it matters: because" in shown


def test_files_say_all_and_exactly(folder: Path) -> None:
    rules = "pavpu.pavpu: {min: 0.999, max: 1, id: R-1, why: because}"
    done = gate(folder, rules, "-o", "v.json", "--junit", "g.xml", "--markdown", "g.md", "--quiet")
    assert (done.status, done.stdout, done.stderr) == (1, "", "")
    record = json.loads((folder / "v.json").read_text())
    assert record["schema"] == "uqeval.verdicts/1" and record["passed"] is False
    assert record["counts"] == {
        "waived": 0, "pass": 1, "fail": 1, "inconclusive": 0, "not_evaluated": 0
    }  # fmt: skip
    first, second = record["verdicts"]
    assert first["value"] == value(folder) and first["limit"] == 0.999
    assert (first["id"], first["why"], first["line"]) == ("R-1", "because", 1)
    assert (first["status"], second["status"]) == ("fail", "pass")
    root = ElementTree.parse(folder / "g.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    names = [case.get("name") for case in root.iter("testcase")]
    assert len(set(names)) == 2 and all("R-1" in str(name) for name in names)
    assert "because" in str(next(root.iter("failure")).get("message"))
    assert "| R-1 | report/pavpu.pavpu | fail | at least 0.999 |" in (folder / "g.md").read_text()
    assert {p.name for p in folder.iterdir() if p.name.startswith(".")} == set()


def test_formats(folder: Path) -> None:
    done = gate(folder, "pavpu.pavpu: {min: 0.001}", "--format", "json")
    assert json.loads(done.stdout)["passed"] is True
    assert json.loads(gate(folder, "pavpu.pavpu: {min: 0.001}", "-o", "-").stdout)["passed"] is True
    done = gate(folder, "pavpu.pavpu: {min: 0.001}", "--format", "markdown")
    assert done.stdout.startswith("## uqeval gate passed: 1 passed, 0 failed\n")
    ElementTree.fromstring(gate(folder, "pavpu.pavpu: {min: 0.001}", "--junit", "-").stdout)


def test_a_folder_of_reports_and_the_file_of_the_working_folder(folder: Path) -> None:
    (folder / "out" / "verdicts.json").write_text('{"schema": "uqeval.verdicts/1"}')
    (folder / "uqeval.yaml").write_text(
        "stores: {city: {predictions: x.zarr}}\n"
        "gate:\n  city/pavpu.pavpu: {min: 0.001}\n  pavpu.surplus: {min: -0.99, max_drop: 0}\n"
    )
    shutil.copytree(folder / "out", folder / "main")
    done = gate(folder, None, "--baseline", "main", "--format", "json", report="out")
    assert done.status == 0, done.stderr
    assert "city, night: the baseline has the same results" in done.stderr
    stores = [v["store"] for v in json.loads(done.stdout)["verdicts"]]
    assert stores == ["city", "city", "city", "night", "night"]


def test_reports_of_no_store_of_the_file_are_named(folder: Path) -> None:
    """Reports that an earlier run has left are judged, but not without a word."""
    (folder / "uqeval.yaml").write_text(
        "stores: {city: {predictions: p.zarr}}\ngate: {pavpu.pavpu: {min: 0.001}}\n"
    )
    done = gate(folder, None, "--format", "markdown", report="out")
    text = (
        "warning: the gate also judged out/night.json: uqeval.yaml has no such store. If an "
        "earlier run left this report, remove it, and judge again: rm out/night.json"
    )
    assert done.status == 0 and "night/pavpu.pavpu" in done.stdout
    assert text in done.stderr and f"- {text}" in done.stdout
    shutil.copy(folder / "out" / "night.json", folder / "out" / "an old one.json")
    done = gate(folder, None, report="out")
    assert "left these reports, remove them" in done.stderr
    assert done.stderr.rstrip().endswith("rm 'out/an old one.json' out/night.json")
    command = done.stderr.rpartition("judge again: ")[2]
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    assert gate(folder, None, report="out").stderr == ""


def test_reports_that_no_rule_judges_are_not_named(folder: Path) -> None:
    """Nor those that were chosen on purpose, or judged by a file that lists no stores."""
    (folder / "uqeval.yaml").write_text(
        "stores: {city: {predictions: p.zarr}}\ngate: {city/pavpu.pavpu: {min: 0.001}}\n"
    )
    assert gate(folder, None, report="out").stderr == ""
    (folder / "uqeval.yaml").write_text(
        "stores: {city: {predictions: p.zarr}}\ngate: {pavpu.pavpu: {min: 0.001}}\n"
    )
    assert gate(folder, None, report="out/night.json").stderr == ""
    assert gate(folder, "pavpu.pavpu: {min: 0.001}", report="out").stderr == ""


def test_annotations_and_the_job_summary(folder: Path) -> None:
    (folder / "summary.md").write_text("before\n")
    rules = "pavpu.pavpu:\n  {min: 0.999}\n" + "".join(
        f"pavpu.per_class.{i}.pavpu: {{min: 1, undefined: fail}}\n" for i in range(5)
    ) + "".join(f"segmentation.per_class.{i}.iou: {{min: 1}}\n" for i in range(5))  # fmt: skip
    done = gate(folder, rules, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="summary.md")
    assert done.status == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 10 and all(line.startswith("::error ") for line in lines)
    start = "::error file=gate.yaml,line=1,title=report/pavpu.pavpu%3A at least 0.999::"
    assert lines[0].startswith(f"{start}fail: the value is ") and lines[-1].endswith("::and 2 more")
    summary = (folder / "summary.md").read_text()
    assert summary.startswith("before\n## uqeval gate failed")
    assert gate(folder, rules, "--no-github", GITHUB_ACTIONS="true").stderr == ""
    assert gate(folder, rules, "--github").stderr.startswith("::error ")


def test_names_are_shown_as_text(folder: Path) -> None:
    record = json.loads((folder / "report.json").read_text())
    record["results"]["pavpu"]["per_class"][0]["name"] = NASTY
    for item in record["items"]:
        item["name"] = NASTY + item["name"]
    (folder / "report.json").write_text(json.dumps(record))
    rules = json.dumps({"pavpu.pavpu": {"min": 1, "id": NASTY, "why": NASTY}})
    done = gate(folder, rules, "--junit", "g.xml", "--markdown", "g.md", "--github")
    assert done.status == 1
    for text in (done.stdout, done.stderr, (folder / "g.md").read_text()):
        assert "\x1b[31m" not in text and "\u202e" not in text
    assert "[red]" in done.stdout and "<b>bo|ld</b>" in done.stdout
    assert "<b>" not in (folder / "g.md").read_text() and "o|l" not in (folder / "g.md").read_text()
    assert len([li for li in done.stderr.splitlines() if li.startswith("::error")]) == 1
    assert "%0A" not in done.stderr  # as %250A
    failure = next(ElementTree.parse(folder / "g.xml").getroot().iter("failure"))
    assert "<b>bo|ld</b>" in str(failure.text) and r"\x1b[31m\u202e" in str(failure.text)


def test_undefined_values(folder: Path) -> None:
    record = json.loads((folder / "report.json").read_text())
    record["results"]["pavpu"] |= {"phi": None, "phi_reason": "all patches are certain"}
    (folder / "report.json").write_text(json.dumps(record))
    done = gate(folder, "pavpu.phi: {min: -0.99}", "--junit", "g.xml")
    assert done.status == 1 and "undefined: all patches are certain" in done.stdout
    assert 'type="undefined"' in (folder / "g.xml").read_text()
    done = gate(folder, "pavpu.phi: {min: -0.99, undefined: pass}")
    assert done.status == 0 and "undefined: all patches are certain" in done.stdout


def test_inconclusive_verdicts(folder: Path) -> None:
    low = value(folder) - 0.1
    changed(folder, intervals={"pavpu.pavpu": {"level": 0.9, "low": low, "high": low + 0.2}})
    rules = f"pavpu.pavpu: {{min: {low + 0.05}, confidence: 0.9}}"
    done = gate(folder, rules, "--junit", "g.xml")
    assert done.status == 1 and "inconclusive, counts as fail" in done.stdout
    assert "more items would decide with a power of 80 %" in done.stdout
    assert 'type="inconclusive"' in (folder / "g.xml").read_text()
    done = gate(folder, rules.replace("}", ", inconclusive: pass}"), "--junit", "g.xml", "--github")
    assert done.status == 0 and "inconclusive, counts as pass" in done.stdout
    assert "<skipped" in (folder / "g.xml").read_text()
    assert done.stderr.startswith("::warning ")


def test_an_older_baseline(folder: Path) -> None:
    record = json.loads((folder / "report.json").read_text())
    record["results"]["pavpu"]["pavpu"] += 0.25
    record["items"][0]["pavpu"]["pavpu"] += 0.5
    (folder / "old.json").write_text(json.dumps(record))
    done = gate(folder, "pavpu.pavpu: {max_drop: 0.2}", "--baseline", "old.json")
    assert done.status == 1 and "a change of -0.25" in done.stdout
    assert "items that moved it most" not in done.stdout  # an older baseline has no states
    assert gate(folder, "pavpu.pavpu: {max_drop: 0.25}", "--baseline", "old.json").status == 0
    record["items"][0]["name"] = "other"
    (folder / "old.json").write_text(json.dumps(record))
    done = gate(folder, "pavpu.pavpu: {max_drop: 0.25}", "--baseline", "old.json")
    assert done.status == 0 and "warning: report: the baseline has other items" in done.stderr
    record["settings"]["pavpu"]["window"] = 9
    (folder / "old.json").write_text(json.dumps(record))
    done = gate(folder, "pavpu.pavpu: {max_drop: 0.25}", "--baseline", "old.json")
    refused(done, "window is 4 in this report and 9 in old.json")


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ("pavpu.pavpuu: {min: 0.001}", "gate.yaml:1: pavpu.pavpuu: the address matches nothing"),
        ("pavpu.pavpuu: {min: 0.001}", "Did you mean pavpu.pavpu?"),
        ("pavpu.per_class.raod.pavpu: {min: 0.001}", "Did you mean pavpu.per_class.road.pavpu?"),
        ("pavpu.pavpu@weather=night: {min: 0.1}", "no report has slices; add them with `uqeval"),
        ("nmerci.nmerci: {min: 0.1}", "Evaluate it with `uqeval nmerci PREDS TARGET -o REPORT.jso"),
        ("town/pavpu.pavpu: {min: 0.001}", "there is no report 'town'; the reports are report"),
        ("pavpu.pavpu: {min: 0.001, mx: 1}", "gate.yaml:1: pavpu.pavpu.mx: unknown key"),
        ("pavpu.pavpu: {min: yes}", "expected a number"), ("pavpu.pavpu: {}", "no limit"),
        ("", "is empty"), ("{}", "has no rules"), ("gate: {}", "has no rules"),
        ("a.b: !!python/name:os.system {}", "the tag"),
        (BOMB, "with aliases expanded"),
        ("pavpu.pavpu: {max_drop: 0.1}", "needs a baseline"),
        ("pavpu.pavpu: {min: 0.001, waive: {by: A, why: B}}", "waive lacks the key 'until'"),
        ("pavpu.pavpu: {min: 0.001}\npavpu.pavpu: {max: 0.99}", "given twice"),
        ("stores: {a: {predictions: 'C:/x'}}\ngate: {pavpu.pavpu: {min: 0.001}}", "Windows path"),
    ],
)  # fmt: skip
def test_bad_rules(folder: Path, rules: str, says: str) -> None:
    refused(gate(folder, rules, "-o", "v.json", "--junit", "g.xml"), says)
    assert not (folder / "v.json").exists() and not (folder / "g.xml").exists()


def test_waivers_in_every_output(folder: Path) -> None:
    rules = (
        "pavpu.pavpu: {min: 0.1}\nsegmentation.miou: {min: 1}\npavpu.surplus: {min: 1, "
        "waive: {until: 2027-01-31, by: A. Keller, why: camera B, at_least: -1}}\n"
    )
    arguments = ("--junit", "g.xml", "--markdown", "g.md", "-o", "v.json", "--github")
    done = gate(folder, rules, *arguments, "--today", "2027-01-31")
    assert done.status == 1  # by another rule
    first = next(line for line in done.stdout.splitlines() if "report/" in line)
    assert "report/pavpu.surplus" in first and "waived, until 2027-01-31" in first
    assert "by A. Keller until 2027-01-31, for values of at least -1.0: camera B" in done.stdout
    assert "gate failed: 1 waived, 1 passed, 1 failed" in done.stdout
    assert "warning: waivers were checked for 2027-01-31 (--today)" in done.stderr
    assert done.stderr.startswith("::notice file=gate.yaml,line=3,")
    assert "| report/pavpu.surplus |" in (folder / "g.md").read_text().splitlines()[4]
    record = json.loads((folder / "v.json").read_text())
    assert (record["today"], record["verdicts"][0]["status"]) == ("2027-01-31", "waived")
    assert record["verdicts"][0]["waive"]["by"] == "A. Keller"
    case = next(ElementTree.parse(folder / "g.xml").getroot().iter("testcase"))
    assert case.find("skipped") is not None and "surplus" in str(case.get("name"))
    shown = {own.get("name"): own.get("value") for own in case.iter("property")}
    assert shown["waive_by"] == "A. Keller" and shown["units_drawn"] == "3"
    run_well("report", "report.json", "--verdicts", "v.json", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text()
    assert 'class="waived"' in page and "camera B" in page
    assert gate(folder, rules.replace("min: 1}", "min: 0.001}")).status == 0
    done = gate(folder, rules, "--today", "2027-02-01")
    assert done.status == 1 and "it was valid until 2027-01-31" in done.stdout
    refused(gate(folder, rules, "--today", "tomorrow"), "--today tomorrow: expected a day such as")


def test_one_rule_that_cannot_be_judged_stops_no_other(folder: Path) -> None:
    rules = "pavpu.pavpuu: {min: 0.001}\npavpu.pavpu: {min: 0.001}\npavpu.surplus: {min: 1}\n"
    done = gate(folder, rules, "--junit", "g.xml", "-o", "v.json")
    assert done.status == 2 and "Traceback" not in done.stderr
    assert "gate failed: 1 passed, 1 failed, 1 not evaluated" in done.stdout
    assert done.stderr.startswith(
        "uqeval: gate.yaml:1: pavpu.pavpuu: not evaluated: the address matches nothing"
    )
    said = (done.stdout + done.stderr).count("Did you mean pavpu.pavpu?")
    assert said == 1, "the reason is given once, on stderr"
    (lost,) = json.loads((folder / "v.json").read_text())["not_evaluated"]
    assert lost["reason"].endswith("Did you mean pavpu.pavpu?")
    root = ElementTree.parse(folder / "g.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    done = gate(folder, "pavpu.pavpu: {min: 0.001, max_drop: 0.1}")
    assert done.status == 2 and "gate incomplete: 1 passed, 0 failed, 1 not evaluated" in (
        done.stdout
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"schema": "uqeval.report/2"}', "schema 'uqeval.report/2'"), ("[]", "schema None"),
        ('{"schema": "uqeval.report/1", "results": NaN}', "NaN is not a number"),
        ('{"schema": "uqeval.rep', "not JSON"), ("", "not JSON"), ("[" * 99999, "not JSON"),
        ('{"schema": "uqeval.report/1"}', "is not a uqeval report"),
    ],
)  # fmt: skip
def test_bad_reports(folder: Path, text: str, says: str) -> None:
    (folder / "report.json").write_text(text)
    refused(gate(folder, "pavpu.pavpu: {min: 0.001}"), "report.json", says)
    for name in ("city", "night"):
        (folder / "out" / f"{name}.json").write_text(text)
    if "schema None" not in says:
        refused(gate(folder, "pavpu.pavpu: {min: 0.001}", report="out"), says)


def test_infinity_in_a_report(folder: Path) -> None:
    text = (folder / "report.json").read_text().replace(repr(value(folder)), "1e999")
    (folder / "report.json").write_text(text)
    refused(gate(folder, "pavpu.pavpu: {min: 0.001}"), "not a number that this file may hold")


def test_a_level_that_nothing_holds(folder: Path) -> None:
    (folder / "report.states.zip").unlink()
    done = gate(folder, "pavpu.pavpu: {min: 0.001, confidence: 0.99}")
    refused(
        done, "gate.yaml:1: pavpu.pavpu: report.json has no interval at level 0.99", "--ci 0.99"
    )


def test_what_cannot_be_judged(folder: Path) -> None:
    rules = "pavpu.pavpu: {min: 0.001}"
    changed(folder, partial=True)
    refused(gate(folder, rules), "is partial")
    drop = "pavpu.pavpu: {max_drop: 0}"
    refused(gate(folder, drop, "--baseline", "report.json", report="out/city.json"), "is partial")
    refused(gate(folder, rules, report="none.json"), "none.json")
    (folder / "empty").mkdir()
    refused(gate(folder, rules, report="empty"), "no report in this folder")
    refused(gate(folder, None), "no RULES given", "uqeval.yaml")
    refused(gate(folder, None, "none.yaml"), "none.yaml cannot be read")


def test_bad_outputs(folder: Path) -> None:
    rules = "pavpu.pavpu: {min: 0.001}"
    refused(gate(folder, rules, "-o", "report.json"), "report.json is an input")
    refused(gate(folder, rules, "-o", "x", "--junit", "x"), "two outputs go to x")
    refused(gate(folder, rules, "-o", "-", "--junit", "-"), "two outputs go to stdout")
    refused(gate(folder, rules, "--junit", "-", "--format", "json"), "two outputs go to stdout")
    refused(gate(folder, rules, "--junit", "none/x.xml"), "does not exist")
    assert run_uqeval("gate").status == 2


def test_a_report_in_the_place_of_rules(folder: Path) -> None:
    shutil.copy(folder / "report.json", folder / "two.json")
    done = run_uqeval("gate", "report.json", "two.json", cwd=folder)
    refused(done, "two.json is a report, not rules", "--baseline FILE", "uqeval compare")


@pytest.mark.parametrize(("report", "baseline"), [
    ("report.json", "report.json"), ("out", "out"), ("out", "out/../out"), ("out/city.json", "out"),
    ("report.json", "link.json"), ("out", "linked"),
])  # fmt: skip
def test_a_report_is_not_its_own_baseline(folder: Path, report: str, baseline: str) -> None:
    (folder / "link.json").symlink_to("report.json")
    (folder / "linked").symlink_to("out")
    (folder / "out" / "night.json").unlink()
    done = gate(folder, "pavpu.pavpu: {max_drop: 0}", "--baseline", baseline, report=report)
    refused(done, "is the report to judge itself", "Give an earlier report")


def test_two_folders_may_have_links_to_one_file(folder: Path) -> None:
    """Tools that store versions of data make such links for a model that has not changed."""
    for place in ("now", "before"):
        (folder / place).mkdir()
        (folder / place / "city.json").symlink_to(folder / "out" / "city.json")
    done = gate(folder, "pavpu.pavpu: {max_drop: 0}", "--baseline", "before", report="now")
    assert done.status == 0 and "the baseline has the same results" in done.stderr


def test_the_gate_loads_nothing_heavy(folder: Path) -> None:
    shutil.copy(folder / "report.json", folder / "before.json")
    (folder / "gate.yaml").write_text("pavpu.pavpu: {min: 0.001, max_drop: 0}")
    done = subprocess.run(
        [EXECUTABLE.with_name("python"), "-X", "importtime", EXECUTABLE, "gate", "report.json",
         "gate.yaml", "--baseline", "before.json", "-o", "v.json", "--junit", "x.xml"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not loaded & {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL", "matplotlib"}


def test_schema() -> None:
    schema = json.loads(run_well("schema").stdout)
    assert {"stores", "evaluate", "gate", "output"} <= set(schema["properties"])


def test_schema_says_which_files_are_valid(tmp_path: Path) -> None:
    (tmp_path / "uqeval.yaml").write_text("stores: {a: {predictions: p.zarr}}\n")
    (tmp_path / "rules.yaml").write_text("pavpu.pavpu: {min: 0.1}\n")
    (tmp_path / "bad.yaml").write_text("store: {}\n")
    done = run_well("schema", "uqeval.yaml", "rules.yaml", cwd=tmp_path)
    assert done.stdout == "uqeval.yaml is valid\nrules.yaml is valid\n" and not done.stderr
    both = run_uqeval("schema", "bad.yaml", "uqeval.yaml", cwd=tmp_path)
    refused(both, "uqeval: bad.yaml", printed=True)
    assert both.stdout == "uqeval.yaml is valid\n"


def test_schema_of_a_report(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"schema": "uqeval.report/1", "slices": {}}')
    refused(run_uqeval("schema", tmp_path / "r.json"), "r.json is a report; expected a uqeval")


def test_the_workflow_runs_as_it_stands(stores: Path, tmp_path: Path) -> None:
    workflow = read_yaml(ROOT / "examples" / "github-workflow.yml").data
    assert set(workflow) == {"name", "on", "permissions", "jobs"}  # `on` is no truth value
    steps = workflow["jobs"]["gate"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("uqeval ")]
    assert [command.split()[1] for command in commands] == ["pavpu", "gate"]
    shutil.copytree(stores / "preds.zarr", tmp_path / "preds.zarr")
    shutil.copytree(stores / "labels", tmp_path / "labels")
    shutil.copy(ROOT / "examples" / "gate.yaml", tmp_path)
    run_well("pavpu", "preds.zarr", "labels", "-o", "baseline.json", "--quiet", cwd=tmp_path)
    path = f"{EXECUTABLE.parent}{os.pathsep}{os.environ['PATH']}"
    for command in commands:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": path}, timeout=100,
        )  # fmt: skip
        # What the rules say of these small stores is not the point.
        assert done.returncode in ((0,) if " pavpu " in command else (0, 1)), done.stderr
    kept = next(step for step in steps if "upload-artifact" in step.get("uses", ""))
    assert all((tmp_path / name).is_file() for name in kept["with"]["path"].split())
