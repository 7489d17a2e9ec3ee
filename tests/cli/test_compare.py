"""`uqeval compare` as it is run: status, streams, files, and bad input."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import Outcome, refused, run_forked, run_uqeval, run_well
from small_stores import probs, save_complete, save_predictions

from uqeval.cli.compare import join_replicates


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, stores: Path) -> Path:
    """Reports `mc.json`, `ens.json`, `seeds/1.json` … `seeds/3.json`, and `wide.json`."""
    made = tmp_path_factory.mktemp("compare")
    (made / "seeds").mkdir()
    for n, name in enumerate(("mc", "ens", "seeds/1", "seeds/2", "seeds/3")):
        store = save_predictions(made / "preds.zarr", probs(seed=n))
        run_well("pavpu", store, stores / "labels", "--threshold", "0.7", "-o",
                 made / f"{name}.json", "-q")  # fmt: skip
        shutil.rmtree(store)
    run_well("pavpu", save_complete(made / "wide.zarr"), "--window", "8", "-o", made / "wide.json",
             "-q")  # fmt: skip
    return made


def compare(folder: Path, *arguments: str) -> Outcome:
    draws = () if "--no-intervals" in arguments else ("--draws", "100")
    return run_uqeval("compare", *arguments, *draws, cwd=folder)


def record(outcome: Outcome) -> dict[str, Any]:
    assert outcome.status == 0, outcome.stderr
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("failure.auroc", "no report has 'failure'; evaluate it with `uqeval failure PREDS LABELS "
         "-o REPORT.json`."),
        ("pavpu[bald].pavpu", "no two models have it; evaluate it with `uqeval pavpu PREDS LABELS "
         "--uncertainty entropy --uncertainty bald -o REPORT.json`."),
        ("pavpu.pavpu@weather=night", "no report has slices; add them with `uqeval merge REPORT "
         "--slices FILE.csv -o NEW.json`."),
        ("pavpu.pavpuu", "no two models have it; the nearest is pavpu.pavpu."),
    ],
)  # fmt: skip
def test_a_score_that_no_report_has(folder: Path, address: str, says: str) -> None:
    done = compare(folder, "mc.json", "ens.json", "--metric", address)
    refused(done, f"--metric {address}: {says}")


def test_tables(folder: Path, tmp_path: Path) -> None:
    outcome = compare(folder, "mc.json", "ens.json")
    assert outcome.status == 0
    for words in ("Scores", "★", "Difference from mc", "3 items", "[", "pavpu.surplus ↑"):
        assert words in outcome.stdout
    assert "no word: no difference seen" in " ".join(outcome.stdout.split())
    assert "Ranks" not in outcome.stdout  # the differences of two models say which is better
    for name in ("mc.json", "mc.states.zip"):
        shutil.copy(folder / name, tmp_path / name)
    names = [part for name in "abc" for part in ("--name", name)]
    three = compare(folder, "mc.json", "ens.json", str(tmp_path / "mc.json"), *names)
    assert "Ranks" in three.stdout
    assert "warning: intervals come from 3 items; below 30" in outcome.stderr
    quiet = compare(folder, "mc.json", "ens.json", "-q")
    assert (quiet.status, quiet.stdout, quiet.stderr) == (0, "", "")


def test_the_same_model_twice(folder: Path, tmp_path: Path) -> None:
    for name in ("mc.json", "mc.states.zip"):
        shutil.copy(folder / name, tmp_path / name)
    found = record(compare(folder, "mc.json", str(tmp_path / "mc.json"), "--format", "json",
                           "--name", "a", "--name", "b"))  # fmt: skip
    for score in found["scores"]:
        own = score["models"]["b"]
        if own["value"] is not None:
            assert own["difference"] == 0
            assert own["verdict"] in ("no difference seen", None)


def test_swapped_models_negate(folder: Path) -> None:
    found = [
        record(compare(folder, *names, "--all", "--format", "json"))["scores"]
        for names in (("mc.json", "ens.json"), ("ens.json", "mc.json"))
    ]
    pairs = [
        (a["models"]["ens"], b["models"]["mc"])
        for a, b in zip(*found, strict=True)
        if a["models"]["ens"].get("low") is not None
    ]
    assert len(pairs) == 10
    for one, other in pairs:
        assert one["difference"] == -other["difference"]
        assert (one["low"], one["high"]) == pytest.approx((-other["high"], -other["low"]))


def test_every_format_says_the_same(folder: Path, tmp_path: Path) -> None:
    arguments = ("mc.json", "ens.json", "--metric", "pavpu.pavpu")
    files = {form: tmp_path / f"table.{form}" for form in ("json", "csv", "md", "tex")}
    for path in files.values():
        outcome = compare(folder, *arguments, "-o", str(path), "-q")
        assert (outcome.status, outcome.stdout) == (0, "")
    text = {form: path.read_text("utf-8") for form, path in files.items()}
    found = json.loads(text["json"])
    assert found["schema"] == "uqeval.comparison/1"
    assert found["baseline"] == "mc"
    (score,) = found["scores"]
    rows = list(csv.DictReader(io.StringIO(text["csv"])))
    assert [row["model"] for row in rows] == ["mc", "ens"]
    for row in rows:
        own = score["models"][row["model"]]
        assert float(row["value"]) == own["value"]
        assert f"{own['value']:.4f}" in text["md"]
        assert f"{own['value']:.4f}" in text["tex"]
    assert float(rows[1]["low"]) == score["models"]["ens"]["low"]
    for form, name in (("json", "json"), ("csv", "csv"), ("markdown", "md"), ("latex", "tex")):
        assert compare(folder, *arguments, "--format", form).stdout == text[name]
    assert compare(folder, *arguments, "-o", "-").stdout == text["json"]
    assert "\\toprule" in text["tex"]
    assert "PAvPU $\\uparrow$ &" in text["tex"]


def test_replicates(folder: Path) -> None:
    seeds = [f"seeds/{n}.json" for n in (1, 2, 3)]
    alone = record(compare(folder, "--replicates", *seeds, "--format", "json"))
    assert [model["trainings"] for model in alone["models"]] == [3]
    from_folder = record(compare(folder, "--replicates", "seeds", "--format", "json"))
    assert [s["models"]["replicates"] for s in from_folder["scores"]] == [
        s["models"]["replicates"] for s in alone["scores"]
    ]
    beside = record(compare(folder, "mc.json", "--replicates", *seeds, "--name", "mc", "--name",
                            "ours", "--format", "json"))  # fmt: skip
    for one, other in zip(alone["scores"], beside["scores"], strict=True):
        assert one["models"]["replicates"]["value"] == other["models"]["ours"]["value"]
    assert "low" in beside["scores"][0]["models"]["ours"]
    noted = compare(folder, "--replicates", *seeds).stderr
    assert "--draws has no effect on one model" in " ".join(noted.split())
    assert "no effect" not in compare(folder, "mc.json", "--replicates", *seeds).stderr
    table = compare(folder, "mc.json", "--replicates", *seeds)
    assert " ± " in table.stdout
    shown = " ".join(table.stdout.split())
    assert "mean ± t·s/√n over n = 3 trainings (Student's t with 2 degrees of freedom" in shown
    assert "mc: n = 1 training, no interval over trainings" in shown
    own, single = (beside["scores"][0]["models"][name] for name in ("ours", "mc"))
    mean, interval = own["value"], own["over_trainings"]
    reach = 4.30265272975 * own["std"] / 3**0.5
    assert interval["high"] - mean == pytest.approx(reach) == mean - interval["low"]
    assert interval["units"] == {"name": "training", "drawn": 3, "defined": 3}
    assert own["units"] == {"name": "item", "drawn": 3, "defined": 3}
    assert single["over_trainings"] is None and "one training" in single["over_trainings_reason"]
    spread = compare(folder, "--replicates", *seeds, "--no-intervals").stdout
    assert "mean ± sample standard deviation over n = 3 trainings" in " ".join(spread.split())


def test_the_paths_of_replicates_are_joined() -> None:
    assert join_replicates(["a", "--replicates", "b", "c", "-q", "d"]) == [
        "a", "--replicates", "b\0c", "-q", "d"
    ]  # fmt: skip
    args = ["--replicates=b", "c", "--replicates", "d", "--", "e", "--replicates"]
    assert join_replicates(args) == [
        "--replicates", "b\0c", "--replicates", "d", "--", "e", "--replicates"
    ]  # fmt: skip
    assert join_replicates(["--replicates"]) == ["--replicates"]


def test_a_folder_of_reports_is_of_models(folder: Path) -> None:
    found = record(compare(folder, "seeds", "--format", "json", "--no-intervals"))
    assert [model["name"] for model in found["models"]] == ["1", "2", "3"]
    assert "low" not in found["scores"][0]["models"]["2"]
    assert not found["warnings"]


def test_other_settings_are_named(folder: Path) -> None:
    outcome = compare(folder, "mc.json", "wide.json")
    assert outcome.status == 0
    assert "warning: pavpu: left out: stride is 4 in mc.json and 8 in wide.json" in outcome.stderr
    assert "segmentation.miou" in outcome.stdout
    assert "pavpu.pavpu" not in outcome.stdout
    refused(compare(folder, "mc.json", "wide.json", "--metric", "pavpu.pavpu"), "stride is 4", "8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("mc.json",), ("nothing to compare",)),
        ((), ("nothing to compare",)),
        (("mc.json", "mc.json"), ("given twice",)),
        (("mc.json", "gone.json"), ("gone.json", "No such file")),
        (("mc.json", "mc.states.zip"), ("mc.states.zip", "(not JSON)")),
        (("mc.json", "ens.json", "--against", "x"), ("'x'", "mc, ens")),
        (("mc.json", "ens.json", "--name", "x"), ("1 name for 2",)),
        (("mc.json", "ens.json", "--metric", "pavpu.pavp"), ("nearest is pavpu.pavpu",)),
        (("mc.json", "ens.json", "--metric", "pavpu"), ("not an address",)),
        (("mc.json", "ens.json", "--ci", "95"), ("--ci 95",)),
        (("mc.json", "ens.json", "--ci", "nan"), ("nan; expected a finite number",)),
        (("mc.json", "ens.json", "--seed", "-1"), ("--seed -1",)),
        (("mc.json", "ens.json", "-o", "mc.json"), ("is an input",)),
        (("mc.json", "ens.json", "-o", "no/such/x.json"), ("does not exist",)),
        (("mc.json", "--replicates", "ens.json"), ("no standard deviation",)),
        (("mc.json", "--replicates"), ("--replicates",)),
        (("mc.json", "ens.json", "--format", "html"), ("html",)),
        (("mc.json", "ens.json", "-o", "x.html", "--layout", "models"), ("not to a page",)),
        (
            ("mc.json", "--replicates", "seeds/1.json", "seeds/2.json", "-o", "x.html"),
            ("a page has one report of each model", "has 2"),
        ),
    ],
)
def test_bad_input(folder: Path, arguments: tuple[str, ...], says: tuple[str, ...]) -> None:
    refused(run_uqeval("compare", *arguments, cwd=folder), *says)


def test_damaged_states_are_an_error(folder: Path, tmp_path: Path) -> None:
    for name in ("mc.json", "ens.json", "mc.states.zip"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / "ens.states.zip").write_bytes(b"PK\x03\x04 nothing")
    refused(compare(tmp_path, "mc.json", "ens.json"), "ens.states.zip")
    (tmp_path / "ens.states.zip").unlink()
    outcome = compare(tmp_path, "mc.json", "ens.json")
    assert outcome.status == 0
    message = "ens.states.zip does not exist, but ens.json needs these states. Put the file there"
    assert outcome.stderr.count(message) == 1
    (tmp_path / "gate.yaml").write_text(
        "segmentation.miou: {max_drop: 0.5, confidence: 0.95}\n"
        "segmentation.pixel_accuracy: {max_drop: 0.5, confidence: 0.95}\n"
    )
    gate = run_uqeval("gate", "ens.json", "gate.yaml", "--baseline", "mc.json", cwd=tmp_path)
    assert gate.stderr.count(message) == 1
    assert "gate.yaml:1: segmentation.miou and 1 more (line 2): the interval" in gate.stderr
    with (tmp_path / "gate.yaml").open("a") as file:
        file.write("segmentation.pixels: {min: 1}\n")
    gate = run_uqeval("gate", "ens.json", "gate.yaml", "--baseline", "mc.json", cwd=tmp_path)
    assert gate.stderr.count(message) == 1 and "and 1 more (line 2): not eval" in gate.stderr


def test_a_report_and_its_states_may_be_copied_to_a_new_name(folder: Path, tmp_path: Path) -> None:
    """The digest in the report shows that they belong together."""
    for name in ("mc", "ens"):
        for ending in ("json", "states.zip"):
            shutil.copy(folder / f"{name}.{ending}", tmp_path / f"{name}2.{ending}")
    expected = compare(folder, "mc.json", "ens.json", "--format", "json").stdout
    outcome = compare(tmp_path, "mc2.json", "ens2.json", "--format", "json")
    assert outcome.status == 0 and "no intervals" not in outcome.stderr
    assert "ens2" in outcome.stdout
    assert outcome.stdout.replace("ens2", "ens").replace("mc2", "mc") == expected


def test_a_page_of_reports_shows_the_differences(folder: Path, tmp_path: Path) -> None:
    run_forked("report", "mc.json", "ens.json", "-o", tmp_path / "page.html", cwd=folder)
    page = (tmp_path / "page.html").read_text("utf-8")
    target = tmp_path / "compared.html"
    run_forked("compare", "mc.json", "ens.json", "-o", target, "-q", cwd=folder)
    assert (tmp_path / "compared.html").read_text("utf-8") == page
    assert "Difference from mc" in page
    # A line for the difference, one for its interval, one for its verdict.
    cell = (
        r"<td>[+-]?[\d.e-]+\s*<span class=\"interval\">(≈ )?\[\S+, \S+\]†?</span>\s*"
        r'<span class="interval( differs)?">p [\d.]+( better| worse)?</span></td>'
    )
    assert len(re.findall(cell, page)) > 3
    assert "swapping the two models item by item, adjusted for" in page


def test_every_output_has_the_warnings_and_marks_nothing_that_cannot_be_compared(
    folder: Path, tmp_path: Path
) -> None:
    report = json.loads((folder / "ens.json").read_text("utf-8"))
    report["settings"]["pavpu"]["stride"] = 8
    report["states"] = report["states_digest"] = None
    (tmp_path / "ens.json").write_text(json.dumps(report), "utf-8")
    paths = (str(folder / "mc.json"), "ens.json")
    text = f"pavpu: left out: stride is 4 in {paths[0]} and 8 in ens.json"
    for ending in ("html", "csv", "json", "md", "tex"):
        compare(tmp_path, *paths, "-o", f"both.{ending}", "-q")
        assert text in (tmp_path / f"both.{ending}").read_text("utf-8")
    pages = []
    for command in ("report", "compare"):  # forked alike: only first runs draw figures
        assert run_forked(command, *paths, "-o", "page.html", "-q", cwd=tmp_path).status == 0
        pages.append((tmp_path / "page.html").read_text("utf-8"))
    page = pages[0]
    assert page == pages[1]
    tables = dict(re.findall(r'<section id="(pavpu|segmentation)"(.*?)</section>', page, re.DOTALL))
    assert "★" in tables["segmentation"] and "★" not in tables["pavpu"]
    rows = csv.DictReader(io.StringIO((tmp_path / "both.csv").read_text("utf-8")))
    assert all(text in row["warnings"] for row in rows)


def test_a_page_says_why_reports_have_no_differences(folder: Path, tmp_path: Path) -> None:
    for name in ("mc", "wide"):
        report = json.loads((folder / f"{name}.json").read_text("utf-8"))
        report["results"] = {"pavpu": report["results"]["pavpu"]}
        report["states"] = report["states_digest"] = None
        (tmp_path / f"{name}.json").write_text(json.dumps(report), "utf-8")
    run_well("report", "mc.json", "wide.json", "-o", "page.html", "-q", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "no differences: " in page and "stride is 4 in mc.json and 8 in wide.json" in page
    assert page.count("★") == 1  # the legend
