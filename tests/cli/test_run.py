"""`uqeval run` through the real executable: with a file, with paths, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_videos
import zarr
from command import TIMEOUT, as_json, refused, run_uqeval, run_watched, run_well
from number_stores import NAMES, numbers
from PIL import Image
from small_stores import labels, probs, save, save_label_folder, save_predictions

import uqeval

CITY = "city: {predictions: preds.zarr, labels: labels/}"
STORES = f"""\
stores:
  {CITY}
  depth: {{predictions: depth.zarr}}
  drive: {{video: video/}}
"""
ASKED = """\
evaluate:
  city:  {pavpu: {window: [4, 8], uncertainty: [entropy, mutual_information]}, calibration: }
  drive: {tc: {flow: dis}}
output: out/
"""
ENDINGS = ("json", "states.zip", "csv", "html")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    save_predictions(folder / "preds.zarr")
    save_label_folder(folder / "labels")
    save(folder / "depth.zarr", numbers(1), {"names": NAMES})
    small_videos.save_folder(folder / "video", small_videos.video())
    return folder


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    """A working folder with links to the stores, where nothing is left by other tests."""
    for path in data.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


def write(folder: Path, *parts: str) -> None:
    (folder / "uqeval.yaml").write_text("".join(parts))


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def loaded(folder: Path, name: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return report


def test_reports_of_other_stores_in_the_folder_are_named(folder: Path) -> None:
    """Gate and compare read the whole folder; the page of the run lists only its own stores."""
    run_well("run", "preds.zarr", "labels", "-o", "out", "-q", cwd=folder)
    write(folder, f"stores:\n  {CITY}\nevaluate: {{city: {{pavpu: }}}}\noutput: out/\n")
    (folder / "out" / "notes.json").write_text("[]")
    done = run_well("run", cwd=folder)
    assert (
        "warning: an earlier run left out/preds.json, of another store. Commands that read the "
        "whole folder out, such as gate and compare, read it too. If you do not need it: rm -r "
        "out/preds.json out/preds.states.zip out/preds.csv out/preds.html\n"
    ) in done.stderr
    assert "earlier run" not in run_well("run", "-q", cwd=folder).stderr
    command = done.stderr.partition("do not need it: ")[2].splitlines()[0]
    subprocess.run(["sh", "-c", command], cwd=folder, check=True)
    assert "earlier run" not in run_well("run", cwd=folder).stderr
    assert left(folder / "out") >= {f"city.{ending}" for ending in ENDINGS} | {"notes.json"}


def test_a_file(folder: Path) -> None:
    write(folder, STORES, ASKED)
    done = run_well("run", cwd=folder)
    files = {f"{name}.{e}" for name in ("city", "depth", "drive") for e in ENDINGS}
    assert left(folder / "out") == files | {"index.html"}
    city, depth, drive = (loaded(folder / "out", name) for name in ("city", "depth", "drive"))
    assert set(city["results"]) == {
        "segmentation", "calibration", "pavpu", "pavpu[window=8]", "pavpu[mutual_information]",
        "pavpu[mutual_information,window=8]",
    } or "pavpu[window=8,mutual_information]" in city["results"]  # fmt: skip
    # Of a store without a word under evaluate:, all that applies.
    assert set(depth["results"]) >= {"regression", "nmerci", "sparsification"}
    assert set(drive["results"]) == {"temporal"}
    assert city["states"] == "out/city.states.zip"
    for name, words in (("city", "PAvPU"), ("depth", "n-MeRCI"), ("drive", "mTC")):
        assert f"{name}: " in done.stdout and words in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("wrote out/index.html") and all(file in last for file in files)
    page = (folder / "out/index.html").read_text()
    assert all(f'href="{name}.html"' in page for name in ("city", "depth", "drive"))
    assert "data:image/png" in (folder / "out/city.html").read_text()
    assert run_well("report", "out", "-o", "all.html", cwd=folder).stdout == ""


def test_each_store_is_read_once(folder: Path) -> None:
    write(folder, STORES)
    run_well("run", "-q", cwd=folder)
    for name, arguments in (
        ("city", ["pavpu", "preds.zarr", "labels"]),
        ("depth", ["regression", "depth.zarr"]),
        ("drive", ["tc", "video"]),
    ):
        run_well(*arguments, "-o", "one.json", "-q", cwd=folder)
        one, every = loaded(folder, "one"), loaded(folder / "uqeval-report", name)
        assert every["timing"]["bytes_read"] == one["timing"]["bytes_read"] > 0
        for key, own in one["results"].items():
            assert every["results"][key] == own


def test_without_a_file(folder: Path) -> None:
    done = run_well("run", "preds.zarr", "labels", cwd=folder)
    families = {"segmentation", "pavpu", "calibration", "failure", "sparsification"}
    assert families <= set(loaded(folder / "uqeval-report", "preds")["results"])
    assert done.stdout.splitlines()[-1].startswith("wrote uqeval-report/index.html")
    assert "uqeval calibration --fit-on FILE names other items" in done.stderr
    assert run_well("run", "depth.zarr", "-o", "a/b", "-q", cwd=folder).stdout == ""
    assert set(loaded(folder / "a/b", "depth")["results"]) >= {"regression", "nmerci"}
    run_well("run", "--video", "video", "-o", "c", "--limit", "2", cwd=folder)
    assert loaded(folder / "c", "video")["partial"] is True


def test_predicted_ids_of_a_video_need_no_labels(folder: Path) -> None:
    """A folder of PNGs of ids alone is predictions, unless they may be labels of others."""
    shutil.copytree(folder / "video" / "frames", folder / "camera")
    shutil.copytree(folder / "video" / "predictions", folder / "ids")
    done = run_well("run", "ids", "--video", "camera", "-o", "out", cwd=folder)
    assert "labels:" not in done.stdout
    result = loaded(folder / "out", "ids")["results"]["temporal"]
    assert 0 < result["mtc"] <= 1 and "miou_mean" not in result
    done = run_well("run", "ids", "ids", "--video", "camera", "-o", "out", cwd=folder)
    assert re.search(r"^ids: .*; labels: ids$", done.stdout, re.MULTILINE)
    assert loaded(folder / "out", "ids")["results"]["temporal"]["miou_mean"] > 0
    refused(
        run_uqeval("run", "ids", "--video", "video", cwd=folder),
        "ids may be labels or predictions, and video has predictions, too",
        "uqeval tc video --labels ids", "uqeval tc video ids",
    )  # fmt: skip
    refused(run_uqeval("run", "ids", cwd=folder), "ids holds labels; give the predictions before")


def test_a_class_name_with_a_slash_is_the_same_in_all_commands(folder: Path) -> None:
    names = "a/b," + ",".join(f"c{n}" for n in range(1, probs().shape[-3]))
    paths = ("preds.zarr", "labels", "--class-names", names, "-q")
    run_well("run", *paths, "-o", "d", cwd=folder)
    run_well("pavpu", *paths, "-o", "p.json", cwd=folder)
    alone = json.loads((folder / "p.json").read_text())["results"]["pavpu"]["per_class"]
    assert loaded(folder / "d", "preds")["results"]["pavpu"]["per_class"] == alone
    assert alone[0]["name"] == "a/b"


def test_several_stores_are_called_one_ensemble(folder: Path) -> None:
    shutil.copytree(folder / "preds.zarr", folder / "more.zarr")
    done = run_well("run", "preds.zarr", "more.zarr", "labels", "-o", "both", cwd=folder)
    assert "preds: 2 stores as members of one ensemble, " in done.stdout
    done = run_well("run", "preds.zarr", "labels", "-o", "alone", cwd=folder)
    assert "members" not in done.stdout


def test_what_applies_to_maps_alone(folder: Path) -> None:
    ids = labels()
    ids[ids == 255] = 0
    arrays = {"predictions": ids, "confidence": probs().mean(1).max(1), "labels": labels()}
    save(folder / "maps.zarr", arrays, {"class_names": list("abcde")})
    done = run_well("run", "maps.zarr", cwd=folder)
    assert "pavpu, failure left out: " in done.stderr or "left out: " in done.stderr
    assert "no map 'entropy'" in done.stderr
    save(folder / "bare.zarr", {"probs": probs()})
    refused(
        run_uqeval("run", "bare.zarr", cwd=folder),
        "bare: bare.zarr has no labels",
        printed=True,
    )


def test_a_sweep_and_a_divergence(folder: Path) -> None:
    stores = f"stores: {{{CITY.replace('}', ', reference: other.zarr}')}}}\n"
    save_predictions(folder / "other.zarr", probs(seed=3))
    asked = "evaluate: {city: {pavpu: , divergence: , sweep: {samples: [1, 4], repeats: 2}}}\n"
    write(folder, stores, asked)
    run_well("run", cwd=folder)
    report = loaded(folder / "uqeval-report", "city")
    assert set(report["results"]) == {"segmentation", "pavpu", "divergence", "sweep"}
    assert report["results"]["sweep"]["pavpu.pavpu"]["m"] == [1, 4]
    assert report["settings"]["sweep"]["families"]["pavpu"]["window"] == 4
    assert report["timing"]["bytes_read"] > report["timing"]["sweep_bytes_read"] > 0
    header = (folder / "uqeval-report/city.csv").read_text().splitlines()[0]
    assert "pavpu.pavpu" in header and "divergence.kl" in header
    stores = f"stores: {{{CITY}}}\n"
    write(folder, stores, "evaluate: {city: {sweep: {samples: '2'}}}\n")
    run_well("run", "-o", "alone", cwd=folder)
    assert set(loaded(folder / "alone", "city")["results"]) == {"sweep"}


def test_the_gate_decides(folder: Path) -> None:
    write(
        folder,
        STORES,
        ASKED,
        "gate:\n  city/pavpu.pavpu: {min: 0.99}\n  temporal.mtc: {min: 0.001}\n",
    )
    done = run_uqeval("run", cwd=folder)
    assert done.status == 1 and done.stderr.count("Traceback") == 0
    assert "gate failed: 1 passed, 1 failed" in done.stdout
    assert "city/pavpu.pavpu" in (folder / "out/index.html").read_text()
    _, after = done.stdout.split("gate failed")
    assert done.stdout.count("Next") == after.count("Next, ") == 3
    (step,) = re.findall(r"Next, city: (.*?)\n\S", after, re.DOTALL)
    step, _, _ = step.partition(" (`threshold:`")  # the page has the option
    assert step.startswith("city/pavpu.pavpu fails its rule.")
    page = unescape(re.sub("<[^>]*>", "", (folder / "out/city.html").read_text()))
    assert " ".join(step.split()) in " ".join(page.split())
    verdicts = json.loads((folder / "out/verdicts.json").read_text())
    assert verdicts["passed"] is False
    assert run_uqeval("gate", "out", "uqeval.yaml", cwd=folder).status == 1
    run_well("run", "--no-gate", "-o", "other", cwd=folder)
    assert "verdicts.json" not in left(folder / "other")
    write(folder, STORES, ASKED, "gate: {pavpu.pavpu: {max_drop: 0.01, confidence: 0.9}}\n")
    again = run_well("run", "--baseline", "other", cwd=folder)
    assert "gate passed: 1 passed" in again.stdout
    write(folder, STORES, ASKED, "gate: {failure.auroc: {min: 0.5}}\n")
    done = run_uqeval("run", cwd=folder)
    refused(done, "uqeval.yaml:9: failure.auroc: the address matches nothing")
    assert "city: " not in done.stdout  # told before anything was evaluated
    refused(run_uqeval("run", "preds.zarr", "labels", "--baseline", "other", cwd=folder), "rules")


def test_a_baseline_is_not_written_over(folder: Path) -> None:
    write(folder, f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\noutput: out/\n")
    run_well("run", "-q", cwd=folder)
    (folder / "link").symlink_to("out")
    (folder / "linked").mkdir()
    (folder / "linked/city.json").symlink_to(folder / "out/city.json")
    with (folder / "uqeval.yaml").open("a") as file:
        file.write("gate: {pavpu.pavpu: {max_drop: 0.01}}\n")
    before = (folder / "out/city.json").read_bytes()
    for baseline in ("out", "./out/", "link", "out/city.json", "link/city.json", "linked"):
        done = run_uqeval("run", "--baseline", baseline, cwd=folder)
        refused(done, "are the same folder")
    refused(run_uqeval("run", "--baseline", "out", "-o", "link", cwd=folder), "the same folder")
    assert (folder / "out/city.json").read_bytes() == before
    assert run_well("run", "--baseline", "out", "-o", "new", cwd=folder).status == 0


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("pavpu.pavpu: {max_drop: 0.1}", "max_drop needs a baseline; give --baseline REPORT"),
        ("pavpu.pavpu: {max_drop_relative: 0.1}", "max_drop_relative needs a baseline"),
        ("cty/pavpu.pavpu: {min: 0.001}", "there is no store 'cty'; did you mean 'city'?"),
        ("city.pavpu.pavpu: {min: 0.1}", "did you mean city/pavpu.pavpu?"),
        ("drive/pavpu.pavpu: {min: 0.001}", "no metric 'pavpu' is evaluated for drive"),
        ("'pavpu[window=9].pavpu': {min: 0.001}", "did you mean 'pavpu[window=8]'?"),
        ("failure.auroc: {min: 0.001}", "no metric 'failure' is evaluated for city, drive"),
        ("failure.auroc: {min: 0.001}", "Add `failure: {}` to evaluate.city of the file."),
        (
            "'failure@boundary:2.auroc': {min: 0.001}",
            "`uqeval failure PREDS LABELS --region boundary:2 -o REPORT.json` evaluates it.",
        ),
        ("pavpu.pavpu@weather=wet: {min: 0.001}", "is of a slice, and the file has no slices"),
        ("pavpu.pavpuu: {min: 0.001}", "Did you mean pavpu.pavpu?"),
        ("pavpu.pavpu: {min: 78}", "min: 78 cannot hold: values of pavpu.pavpu are from 0 to 1"),
        ("pavpu.uncertainty: {min: 0.001}", "is 'entropy', which is not a number"),
        (
            "temporal.mtcc: {min: 0.001}",
            "the address matches nothing in this run: there is no field of temporal",
        ),
    ],
)
def test_rules_that_cannot_be_judged(folder: Path, rule: str, says: str) -> None:
    stores = f"stores: {{{CITY}, drive: {{video: video/}}}}\n"
    write(folder, stores, ASKED, f"gate:\n  {rule}\n")
    done = run_uqeval("run", cwd=folder)
    refused(done, says)
    assert "uqeval.yaml:7: " in done.stderr
    assert "drive/" not in rule or "Add" not in done.stderr  # a video has no such metric
    assert not (folder / "out").exists() or not left(folder / "out")


def test_a_senseless_limit_stops_the_run_before_it_evaluates(folder: Path) -> None:
    """Also beside a rule that can be judged: a typing error is not found after hours."""
    rules = "gate:\n  pavpu.pavpu: {min: 0.001}\n  pavpu.p_accurate: {min: 55}\n"
    write(folder, f"stores: {{{CITY}}}\n", "evaluate: {city: {pavpu: }}\noutput: out/\n", rules)
    message = refused(run_uqeval("run", cwd=folder), "min: 55 cannot hold", "write min: 0.55")
    assert "uqeval.yaml:6" in message and not (folder / "out").exists()
    assert run_uqeval("run", "--no-gate", "-q", cwd=folder).status == 0


def test_a_rule_of_a_store_left_out(folder: Path) -> None:
    write(folder, STORES, ASKED, "gate: {city/pavpu.pavpu: {min: 0.001}}\n")
    refused(run_uqeval("run", "--store", "drive", cwd=folder), "which --store leaves out")
    assert run_well("run", "--store", "drive", "--no-gate", cwd=folder).status == 0


def test_what_rules_may_name_is_what_reports_hold(folder: Path) -> None:
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.evaluate import evaluate
    from uqeval.usecases.plans import everything
    from uqeval.usecases.run.preflight import metric_keys

    for paths in ((folder / "preds.zarr", folder / "labels"), (folder / "depth.zarr", None)):
        inputs = open_inputs(*paths, InputOptions())
        families = everything(inputs)[0]
        assert metric_keys(inputs, families) == set(evaluate(*paths, metrics=families).results)


def test_one_table_over_several_stores(folder: Path) -> None:
    rows = [f"{name},{'wet' if name == 'bonn' else 'dry'}" for name in NAMES]
    (folder / "items.csv").write_text("\n".join(["name,weather", *rows]))
    stores = f"stores: {{{CITY}, drive: {{video: video/}}}}\n"
    asked = "evaluate: {city: {pavpu: }, drive: {tc: {flow: dis}}}\noutput: out/\n"
    write(folder, stores, asked, "slices: items.csv\nci: 0.9\n")
    done = run_well("run", cwd=folder)
    assert set(loaded(folder / "out", "city")["slices"]) == {"weather=dry", "weather=wet"}
    assert "items.csv has no row for any of its items: evaluated without slices." in done.stderr
    drive = loaded(folder / "out", "drive")
    assert not drive["slices"] and drive["intervals"]
    line = next(line for line in done.stdout.splitlines() if "city: " in line)
    assert " read, intervals " in line and ", slices " in line
    # A command without paths does the same.
    done = run_well("tc", "-o", "single.json", cwd=folder)
    assert "items.csv has no row for any of its items: evaluated without slices." in done.stderr
    single = loaded(folder, "single")
    assert (single["results"], single["slices"]) == (drive["results"], {})
    refused(
        run_uqeval("tc", "--slices", "items.csv", cwd=folder), "items.csv: 4 of 4 items have no row"
    )

    (folder / "items.csv").write_text("\n".join(["name,weather", *rows[1:]]))
    done = run_uqeval("run", "-o", "part", cwd=folder)
    refused(done, "uqeval: city: uqeval.yaml:4: slices.table: items.csv: 1 of", printed=True)
    assert not list((folder / "part").glob("city*"))
    (folder / "items.csv").write_text("name,weather\nnobody,dry\n")
    done = run_uqeval("run", "-o", "none", cwd=folder)
    refused(
        done, "table: items.csv: 3 of 3 items", "drive: uqeval.yaml:4: slices.table", printed=True
    )
    assert not list((folder / "none").glob("*"))


def test_intervals_and_slices(folder: Path) -> None:
    rows = ["name,weather", *(f"{name},{'wet' if name == 'bonn' else 'dry'}" for name in NAMES)]
    (folder / "items.csv").write_text("\n".join(rows))
    cut = "slices: {table: items.csv, by: [weather]}\nci: 0.9\n"
    write(folder, f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\n", cut)
    run_well("run", cwd=folder)
    report = loaded(folder / "uqeval-report", "city")
    assert set(report["slices"]) == {"weather=dry", "weather=wet"}
    assert report["intervals"]["pavpu.pavpu"]["level"] == 0.9


def test_the_page_of_a_run_is_not_written_over_by_default(folder: Path) -> None:
    """It has the link to all stores, which the page of `uqeval report` lacks."""
    write(folder, f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\noutput: out/\n")
    run_well("run", "-q", cwd=folder)
    page = folder / "out" / "city.html"
    before = page.read_bytes()
    done = run_uqeval("report", "out/city.json", cwd=folder)
    refused(done, "out/city.html is the page that uqeval run wrote", "-o FILE.html")
    run_well("report", "out/city.json", "-o", "out/other.html", cwd=folder)
    assert page.read_bytes() == before
    run_well("report", "out/city.json", "-o", "out/city.html", cwd=folder)
    assert page.read_bytes() != before
    run_well("report", "out/city.json", cwd=folder)  # this page is none of a run


def test_the_next_step_of_a_run_keeps_its_page(folder: Path) -> None:
    shifted = (probs().mean(1).argmax(1) + 1) % 5  # no pixel is right
    save_label_folder(folder / "wrong", shifted.astype(np.uint8))
    done = run_well("run", "preds.zarr", "wrong", "-o", "out", cwd=folder)
    command = "uqeval report out/preds.json --gallery 3 -o out/preds-pictures.html --predictions"
    assert command in done.stdout


def test_a_slice_without_items_is_refused_before_reading(folder: Path) -> None:
    rows = ["name,weather", *(f"{name},{'wet' if name == 'bonn' else 'dry'}" for name in NAMES)]
    (folder / "items.csv").write_text("\n".join(rows))
    gate = "slices: items.csv\ngate: {pavpu.pavpu@weather=wett: {min: 0.001}}\n"
    write(folder, f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\n", gate)
    done = run_uqeval("run", cwd=folder)
    refused(done, "there is no slice 'weather=wett'; the nearest is 'weather=wet'")
    assert not left(folder / "uqeval-report")


def test_a_class_of_a_rule_is_looked_up_after_the_evaluation(folder: Path) -> None:
    gate = "gate: {pavpu.per_class.9.pavpu: {min: 0.001}, pavpu.pavpu: {min: 0.001}}\n"
    write(folder, f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\n", gate)
    done = run_uqeval("run", cwd=folder)
    messages = done.stderr.replace("not evaluated: ", "")
    assert done.status == 2
    assert "pavpu.per_class.9.pavpu: the address matches nothing in the reports" in messages
    assert "gate incomplete: 1 passed, 0 failed, 1 not evaluated" in done.stdout


def test_what_can_be_judged_is_where_a_rule_cannot_be(folder: Path) -> None:
    """A change without a baseline and an unknown metric are listed; the other limits are judged."""
    gate = "gate:\n  pavpu.pavpu: {min: 0.001, max_drop: 0.1}\n  failure.auroc: {min: 0.001}\n"
    waived = "  pavpu.p_accurate: {min: 1, waive: {until: 2030-01-31, by: Ann, why: known}}\n"
    write(
        folder,
        f"stores: {{{CITY}}}\n",
        "evaluate: {city: {pavpu: }}\noutput: out/\n",
        gate + waived,
    )
    done = run_uqeval("run", "--today", "2030-01-31", cwd=folder)
    assert done.status == 2 and "Traceback" not in done.stderr
    assert "gate incomplete: 1 waived, 1 passed, 0 failed, 2 not evaluated" in done.stdout
    early = done.stderr[: done.stderr.index("waivers were checked for 2030-01-31 (--today)")]
    assert "pavpu.pavpu: not evaluated: max_drop needs a baseline; give --baseline" in early
    assert "no metric 'failure' is evaluated for city" in early
    assert done.stderr.count("max_drop needs a baseline") == 1
    assert done.stderr.count("no metric 'failure' is evaluated") == 1
    verdicts = json.loads((folder / "out/verdicts.json").read_text())
    assert [own["kind"] for own in verdicts["verdicts"]] == ["min", "min"]
    lost = [(own["address"], own["limits"]) for own in verdicts["not_evaluated"]]
    assert lost == [("pavpu.pavpu", {"max_drop": 0.1}), ("failure.auroc", {"min": 0.001})]
    assert "needs a baseline" in (folder / "out/index.html").read_text()
    expired = run_uqeval("run", "--today", "2030-02-01", cwd=folder)
    assert "1 passed, 1 failed, 2 not evaluated" in expired.stdout
    refused(run_uqeval("run", "--today", "2030-02-30", cwd=folder), "no such day")
    for option, value in (("--today", "2030-01-01"), ("--baseline", "out")):
        of_rules = f"{option} is for the rules under gate: of a file"
        done = run_uqeval("run", option, value, "--no-gate", "-o", "new", cwd=folder)
        refused(done, f"{of_rules}; --no-gate leaves them out")
        done = run_uqeval("run", option, value, "--part", "1/2", "-o", "new", cwd=folder)
        refused(done, f"{of_rules}; a shard (--part) does not judge them")


def test_draws_of_the_file(folder: Path) -> None:
    said = f"stores: {{{CITY}}}\nevaluate: {{city: {{pavpu: }}}}\nci: 0.9\n"
    write(folder, said, "draws: 150\nseed: 7\n")

    def drawn(*options: str) -> tuple[Any, Any, Any]:
        run_well("run", *options, cwd=folder)
        report = loaded(folder / "uqeval-report", "city")
        own = report["settings"]["intervals"]
        return own["draws"], own["seed"], report["intervals"]["pavpu.pavpu"]

    assert drawn()[:2] == (150, 7)
    assert drawn("--draws", "2000", "--seed", "0")[:2] == (2000, 0)
    alone = run_well("pavpu", "-o", "-", "-q", cwd=folder)
    assert json.loads(alone.stdout)["settings"]["intervals"]["draws"] == 150
    write(folder, said, "draws: 50\n")
    refused(run_uqeval("run", cwd=folder), "uqeval.yaml:4", "draws", "100")


def test_one_bad_store_among_three(folder: Path) -> None:
    broken = STORES.replace("depth.zarr", "nowhere.zarr")
    write(folder, broken, ASKED, "gate: {pavpu.pavpu: {min: 0.001}, regression.rmse: {max: 0}}\n")
    (folder / "out").mkdir()
    earlier = {
        "depth.json": '{"schema": "uqeval.report/1"}',
        "verdicts.json": '{"schema": "uqeval.verdicts/1"}',
    }
    for name, text in earlier.items():
        (folder / "out" / name).write_text(text)
    done = run_uqeval("run", cwd=folder)
    assert done.status == 2 and "Traceback" not in done.stderr
    assert (folder / "out/depth.json.old").read_text() == earlier["depth.json"]
    first = "uqeval: depth: uqeval.yaml:3: stores.depth.predictions: nowhere.zarr: there is nothing"
    assert first in done.stderr
    assert "uqeval: 1 of 3 stores could not be evaluated: depth." in done.stderr
    assert "gate incomplete: 1 passed, 0 failed, 2 not evaluated" in done.stdout
    files = {"city.json", "drive.json", "index.html", "verdicts.json"}
    assert files <= left(folder / "out")
    assert "depth.json" not in left(folder / "out") and "verdicts.json.old" not in left(
        folder / "out"
    )
    page = (folder / "out/index.html").read_text()
    assert "nowhere.zarr" in page and "not evaluated" in page
    verdicts = json.loads((folder / "out/verdicts.json").read_text())
    assert not verdicts["passed"] and verdicts["counts"]["not_evaluated"] == 2
    lost = verdicts["not_evaluated"][1]
    assert lost["address"] == "depth/regression.rmse" and lost["limits"] == {"max": 0.0}
    assert "nowhere.zarr: there is nothing here" in lost["reason"]


def test_a_failed_night_leaves_nothing_of_yesterday_to_be_taken_for_today(folder: Path) -> None:
    write(folder, f"stores: {{{CITY}}}\n", "evaluate: {city: {pavpu: }}\noutput: out/\n",
          "gate: {pavpu.pavpu: {min: 0.001}}\n")  # fmt: skip
    run_well("run", cwd=folder)
    good = left(folder / "out")
    assert {"city.json", "city.html", "city.csv", "index.html", "verdicts.json"} <= good
    assert not any(name.endswith(".old") for name in good)
    (folder / "preds.zarr").rename(folder / "away.zarr")
    assert run_uqeval("run", cwd=folder).status == 2
    now = left(folder / "out")
    old = {"city.json", "city.states.zip", "city.html", "city.csv", "index.html", "verdicts.json"}
    assert now == {f"{name}.old" for name in old} | {"city.states.zip"}
    (folder / "away.zarr").rename(folder / "preds.zarr")
    run_well("run", cwd=folder)
    assert left(folder / "out") == good


def test_a_store_that_breaks_while_it_is_read(folder: Path) -> None:
    values = probs()
    values[2, 0, 0, 5, 6] = np.nan
    save_predictions(folder / "nan.zarr", values)
    write(folder, STORES.replace("preds.zarr", "nan.zarr"))
    done = run_uqeval("run", cwd=folder)
    assert done.status == 2 and "uqeval: city: nan.zarr" in done.stderr
    assert not {n for n in left(folder / "uqeval-report") if "city" in n}
    assert {"depth.json", "drive.json"} <= left(folder / "uqeval-report")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("city: {nmerci: }", "uqeval.yaml:6: evaluate.city.nmerci: preds.zarr holds class "
         "predictions; nmerci evaluates predicted numbers only."),
        ("city: {tc: }", "uqeval.yaml:6: evaluate.city.tc: preds.zarr holds class predictions"),
        ("drive: {pavpu: }", "uqeval.yaml:6: evaluate.drive.pavpu: "),
        ("drive: {sweep: }", "uqeval.yaml:6: evaluate.drive.sweep: "),
        ("city: {pavpu: , sweep: {metric: no}}", "uqeval.yaml:6: evaluate.city.sweep: metric no"),
        ("city: {pavpu: , sweep: {samples: 99}}", "evaluate.city.sweep: `samples: 99`"),
        ("city: {divergence: }", "needs a reference to compare with"),
        ("city: {pavpu: {uncertainty: energy}}", "has no map 'energy'"),
        ("city: {}", "uqeval.yaml:2: stores.city: evaluate lists no command"),
    ],
)  # fmt: skip
def test_a_metric_of_another_kind(folder: Path, asked: str, says: str) -> None:
    write(folder, STORES, f"evaluate:\n  {asked}\n")
    refused(run_uqeval("run", cwd=folder), says, printed=True)
    bad = asked.partition(":")[0]
    assert not {name for name in left(folder / "uqeval-report") if bad in name}
    assert "depth.json" in left(folder / "uqeval-report")


def test_what_cannot_be(folder: Path) -> None:
    write(folder, STORES)
    (folder / "file").write_text("")
    both = "stores: {a: {predictions: preds.zarr, labels: labels, target: depth.zarr}}"
    (folder / "both.yaml").write_text(both)
    (folder / "index.yaml").write_text("stores: {index: {predictions: preds.zarr}}")
    (folder / "none.yaml").write_text("output: out/")
    (folder / "empty").mkdir()
    cases: list[tuple[list[str], str]] = [
        (
            ["--store", "nobody"],
            "--store nobody is not a store of uqeval.yaml; its stores are city, depth",
        ),
        (["-o", "file"], "file cannot be made a folder: File exists."),
        (["-o", "file/below"], "file/below cannot be made a folder: Not a directory."),
        (["-o", "all.json"], "all.json is the name of a file, and a folder for several files"),
        (["-o", "preds.zarr"], "preds.zarr is an input; give another folder with -o DIR."),
        (["--ignore-index", "0"], "--ignore-index has no effect with a file"),
        (["uqeval.yaml", "preds.zarr"], "give only the file"),
        (["preds.zarr", "labels", "--store", "city"], "--store chooses a store of a settings file"),
        (["labels"], "labels holds labels; give the predictions before them."),
        (["nowhere.yaml"], "nowhere.yaml cannot be read"),
        (["both.yaml"], "both.yaml:1: stores.a has both labels and a target; give one of them."),
        (["index.yaml"], "index.yaml:1: stores.index: its report would be written over"),
        (["none.yaml"], "none.yaml has no stores; give one under stores:."),
        (["--baseline", "out"], "--baseline is for the rules under gate: of a file"),
        (["preds.zarr", "labels", "--sum-tolerance", "3.7"], "--sum-tolerance 3.7; expected a"),
        (["--workers", "0"], "--workers 0"),
        (["--memory", "much"], "--memory 'much'"),
        (["--ci", "2"], "--ci 2"),
    ]  # fmt: skip
    for arguments, says in cases:
        refused(run_uqeval("run", *arguments, cwd=folder), says)
        assert not (folder / "uqeval-report").exists()
    refused(run_uqeval("run", cwd=folder / "empty"), "no paths given, and no uqeval.yaml")


def test_a_run_that_is_interrupted_keeps_what_is_done(folder: Path) -> None:
    arrays = {"probs": np.repeat(probs(1), 400, 0), "labels": np.repeat(labels(1), 400, 0)}
    save(folder / "long.zarr", arrays)
    windows = [4, 5, 6, 7, 8, 9, 10, 11]
    asked = f"evaluate: {{long: {{pavpu: {{window: {windows}, stride: 1}}}}}}\n"
    write(folder, f"stores: {{{CITY}, long: {{predictions: long.zarr}}}}\n", asked)
    out = folder / "uqeval-report"

    def watch(pid: int) -> None:
        until = time.monotonic() + TIMEOUT
        while not any(out.glob(".long.states.zip.partial*")) and time.monotonic() < until:
            os.kill(pid, 0)  # an error if it ended before it could be interrupted
            time.sleep(0.01)
        os.kill(pid, signal.SIGINT)

    done = run_watched(watch, "run", "--workers", "1", cwd=folder)
    assert done.status == 130 and "uqeval: interrupted before the end." in done.stderr
    assert left(out) == {f"city.{ending}" for ending in ENDINGS}


# ---- single commands with the file


def test_a_single_command_takes_the_file(folder: Path) -> None:
    write(folder, STORES, ASKED)
    run_well("pavpu", "--window", "6", "-o", "one.json", cwd=folder)
    report = loaded(folder, "one")
    assert set(report["results"]) == {"segmentation", "pavpu", "pavpu[mutual_information]"}
    assert report["settings"]["pavpu"]["window"] == 6
    assert run_well("nmerci", "--format", "json", cwd=folder).stdout.startswith("{")
    done = as_json("tc", cwd=folder)
    assert done["settings"]["temporal"]["flow"].startswith("dis")
    done = as_json("tc", "--flow", "farneback", cwd=folder)
    assert done["settings"]["temporal"]["flow"].startswith("farneback")
    several = "uqeval.yaml has several stores for sparsification: city, depth; give --store NAME."
    refused(run_uqeval("sparsification", cwd=folder), several)
    run_well("sparsification", "--store", "depth", cwd=folder)
    refused(run_uqeval("sparsification", "--store", "x", cwd=folder), "--store x is not a store of")
    refused(run_uqeval("nmerci", "--store", "city", cwd=folder), "holds class predictions")
    refused(run_uqeval("pavpu", "preds.zarr", "--store", "city", cwd=folder), "leave out paths")
    refused(run_uqeval("tc", "video", "--store", "drive", cwd=folder), "leave out a VIDEO")


def test_a_divergence_takes_the_file(folder: Path) -> None:
    save_predictions(folder / "other.zarr", probs(seed=3))
    city = CITY.replace("}", ", reference: other.zarr}")
    asked = "evaluate: {city: {divergence: {clip: 0.01}}}\nci: 0.9\nmemory: 100MB\n"
    write(folder, f"stores: {{{city}, plain: {{predictions: preds.zarr}}}}\n", asked)
    report = as_json("divergence", cwd=folder)
    assert report["settings"]["divergence"]["clip"] == 0.01
    assert report["intervals"]["divergence.kl"]["level"] == 0.9
    own = ["--clip", "0.02", "--ci", "0.8", "--memory", "200MB", "--format", "json"]
    report = json.loads(run_well("divergence", *own, cwd=folder).stdout)
    assert report["settings"]["divergence"]["clip"] == 0.02
    assert report["intervals"]["divergence.kl"]["level"] == 0.8
    paths = ["preds.zarr", "other.zarr", "--clip", "0.02", "--format", "json"]
    alone = json.loads(run_well("divergence", *paths, cwd=folder).stdout)
    assert alone["results"] == report["results"]

    lacks = run_uqeval("divergence", "--store", "plain", cwd=folder)
    refused(lacks, "uqeval.yaml:1: stores.plain has no reference; add one, or give PREDS REFER")
    refused(run_uqeval("divergence", "preds.zarr", cwd=folder), "no REFERENCE given with preds")
    # Where none asks for it, the only store that has a reference.
    write(folder, f"stores: {{{city}, plain: {{predictions: preds.zarr}}}}\n")
    run_well("divergence", cwd=folder)
    write(folder, f"stores: {{{city}, {city.replace('city', 'two')}}}\n")
    refused(run_uqeval("divergence", cwd=folder), "several stores for divergence: city, two; give")
    write(folder, STORES)
    refused(run_uqeval("divergence", cwd=folder), "uqeval.yaml has no store that divergence evalu")
    refused(run_uqeval("divergence", "--store", "drive", cwd=folder), "stores.drive holds video d")
    refused(run_uqeval("divergence", cwd=folder / "video"), "no PREDS REFERENCE given, and no uqev")


def test_a_sweep_takes_the_file(folder: Path) -> None:
    save_predictions(folder / "other.zarr", probs(seed=3))
    stores = STORES.replace("labels/}", "labels/, reference: other.zarr, limit: 2}")
    sweep = "evaluate: {city: {sweep: {samples: [1, 4], repeats: 2, metric: segmentation}}}\n"
    write(folder, stores, sweep, "ci: 0.9\n")
    report = as_json("sweep", cwd=folder)
    said = report["settings"]["sweep"]
    assert said["samples"] == [1, 4] and said["repeats"] == [2, 1] and report["partial"]
    families = {name.partition(".")[0] for name in report["results"]["sweep"]}
    assert families == {"segmentation", "divergence"}
    own = ["--samples", "2", "--repeats", "3", "--metric", "pavpu", "--limit", "1"]
    report = as_json("sweep", *own, cwd=folder)
    assert report["settings"]["sweep"]["samples"] == [2]
    assert report["settings"]["sweep"]["repeats"] == [3] and len(report["items"]) == 1
    assert "pavpu.pavpu" in report["results"]["sweep"]

    at_input = run_uqeval("sweep", "--csv", "other.zarr", cwd=folder)
    refused(at_input, "other.zarr")
    refused(run_uqeval("sweep", "--store", "drive", cwd=folder), "stores.drive holds video data")
    refused(run_uqeval("sweep", "preds.zarr", "--store", "city", cwd=folder), "leave out paths")
    write(folder, STORES)
    several = "uqeval.yaml has several stores for sweep: city, depth; give --store NAME."
    refused(run_uqeval("sweep", cwd=folder), several)


def test_a_reduction_takes_the_file(folder: Path) -> None:
    write(folder, STORES.replace("labels/}", "labels/, limit: 1}"), "ci: 0.9\n")
    done = run_well("reduce", "-o", "maps.zarr", cwd=folder)
    assert "warning: ignoring limit: of uqeval.yaml" in done.stderr
    run_well("reduce", "preds.zarr", "labels", "-o", "same.zarr", cwd=folder)
    reports = [run_well("pavpu", at, "--format", "json", cwd=folder).stdout
               for at in ("maps.zarr", "same.zarr")]  # fmt: skip
    one, other = (json.loads(text) for text in reports)
    assert one["items"] == other["items"] and len(one["items"]) == 3
    other_kind = (
        "uqeval.yaml:4: stores.drive holds video data; reduce takes class predictions only."
    )
    refused(run_uqeval("reduce", "-o", "m.zarr", "--store", "drive", cwd=folder), other_kind)
    of_numbers = run_uqeval("reduce", "-o", "m.zarr", "--store", "depth", cwd=folder)
    refused(of_numbers, "holds predicted numbers; reduce takes probabilities.")
    elsewhere = run_uqeval("reduce", "-o", "m.zarr", cwd=folder / "video")
    refused(elsewhere, "no PREDS [LABELS] given, and no uqeval.yaml in this folder")


def test_the_command_line_wins_over_the_file(folder: Path) -> None:
    store = CITY.replace("}", ", limit: 1, missing_chunks: fill}")
    write(folder, f"stores: {{{store}}}\n", "ci: 0.9\nmemory: 3kB\n")
    refused(run_uqeval("failure", cwd=folder), "uqeval.yaml:3: memory: `memory: 3kB` is too small")
    done = run_well("failure", "--memory", "512MB", "--format", "json", cwd=folder)
    report = json.loads(done.stdout)
    assert report["partial"] and report["inputs"]["options"]["missing_chunks"] == "fill"
    more = ["--limit", "2", "--missing-chunks", "error", "--ci", "0.8", "--memory", "512MB"]
    report = as_json("failure", *more, cwd=folder)
    assert report["inputs"]["evaluated"] == 2 and report["settings"]["intervals"]["level"] == 0.8
    assert report["inputs"]["options"]["missing_chunks"] == "error"
    write(folder, "stores: {drive: {video: video}}")
    refused(run_uqeval("failure", cwd=folder), "uqeval.yaml has no store that failure evaluates")
    (folder / "uqeval.yaml").unlink()
    refused(run_uqeval("tc", cwd=folder), "no VIDEO given, and no uqeval.yaml in this folder")


# ---- in Python


@pytest.mark.usefixtures("undrawn")
def test_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    write(folder, STORES, ASKED, "gate: {pavpu.pavpu: {min: 0.001}}\n")
    with pytest.raises(uqeval.UsageError, match="option of stores or metrics; set it in the file"):
        uqeval.run_config("uqeval.yaml", ignore_index=3)
    outcome = uqeval.run_config("uqeval.yaml", workers=1)
    assert outcome.status == 0 and list(outcome.reports) == ["city", "depth", "drive"]
    assert outcome.judgement is not None and outcome.judgement.passed and not outcome.failed
    assert all(path.is_file() for path in outcome.files)
    report = uqeval.evaluate("preds.zarr", "labels", "all")
    assert {"pavpu", "calibration", "failure", "sparsification"} <= set(report.results)
    assert "temporal" in uqeval.evaluate(video="video", metrics="all").results
    both = uqeval.evaluate("preds.zarr", "labels", "all", reference="preds.zarr")
    assert both.results["divergence"]["kl"] == 0 and "pavpu" in both.results
    alone = uqeval.evaluate("preds.zarr", None, "all", reference="preds.zarr")
    assert set(alone.results) == {"divergence"}
    assert any("left out: preds.zarr has no labels" in text for text in alone.warnings)


def test_images_of_the_file_are_shown(folder: Path) -> None:
    """Beside the other pictures; none for any item is refused before data are read."""
    (folder / "photos").mkdir()
    grey = np.full((4, 4, 3), 77, np.uint8)
    Image.fromarray(grey).save(folder / "photos" / "aachen.jpg")
    with_images = CITY.replace("labels/}", "labels/, images: photos}")
    write(folder, f"stores:\n  {with_images}\nevaluate:\n  city: {{calibration: }}\noutput: out/\n")
    run_well("run", "--gallery", "2", cwd=folder)
    page = (folder / "out" / "city.html").read_text("utf-8")
    assert page.count("<figcaption>image</figcaption>") == 1
    (folder / "photos" / "aachen.jpg").rename(folder / "photos" / "other.jpg")
    refused(
        run_uqeval("run", cwd=folder),
        "stores.city.images: photos: none of the",
        "has its image",
        "other.jpg",
    )


def test_images_that_may_be_of_another_sequence_are_told(folder: Path) -> None:
    """On stderr, in the report, and once on the page."""
    names: Any = zarr.open_group(folder / "preds.zarr", mode="r").attrs["names"]
    (folder / "names.txt").write_text("".join(f"s1/{name}\n" for name in names))
    (folder / "photos/s2").mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(folder / f"photos/s2/{names[0]}.png")
    store = CITY.replace("labels/}", "labels/, images: photos, names: names.txt}")
    write(folder, f"stores:\n  {store}\nevaluate:\n  city: {{calibration: }}\noutput: out/\n")
    done = run_well("run", "--gallery", "2", cwd=folder)
    text = "1 item and their image files are in folders of different names"
    assert done.stderr.count(text) == 1
    assert sum(text in own for own in loaded(folder / "out", "city")["warnings"]) == 1
    assert (folder / "out" / "city.html").read_text("utf-8").count(text) == 1
