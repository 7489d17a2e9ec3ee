"""`uqeval report` in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command import obey_modes, refused, run_uqeval, run_well
from PIL import Image
from small_stores import CLASS_NAMES, NAMES, labels, probs

import uqeval
from uqeval.report.page.files import link_to


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report, the arrays that it is of, and images."""
    folder = tmp_path_factory.mktemp("made")
    np.save(folder / "preds.npy", probs())
    np.save(folder / "labels.npy", labels())
    (folder / "names.json").write_text(json.dumps(NAMES))
    report = uqeval.evaluate(
        folder / "preds.npy", folder / "labels.npy", names=folder / "names.json"
    )
    report.save(folder / "report.json")
    (folder / "images").mkdir()
    for name in NAMES:
        Image.new("RGB", (64, 48), "teal").save(folder / "images" / f"{name}.png")
    return folder


def test_the_page_lies_beside_the_report(made: Path) -> None:
    done = run_uqeval("report", made / "report.json")
    assert (done.status, done.stdout) == (0, "")
    page = (made / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>") and page.endswith("</html>")
    assert str(made / "report.html") in done.stderr
    assert not [path for path in made.iterdir() if path.name.startswith(".")]


def test_stdout_and_figures(made: Path, tmp_path: Path) -> None:
    done = run_uqeval(
        "report", made / "report.json", "-o", "-", "--figures", tmp_path / "figures",
        "--figure-format", "png", "--figure-format", "pdf",
    )  # fmt: skip
    assert done.status == 0 and done.stdout.startswith("<!doctype html>")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"pavpu-threshold.png", "pavpu-threshold.pdf"} <= names


def test_reports_of_several_folders_are_compared_in_the_working_folder(
    made: Path, tmp_path: Path
) -> None:
    for name in ("a", "b", "working"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        (tmp_path / name / f"{name}.json").write_bytes((made / "report.json").read_bytes())
    run_well("report", "../a/a.json", "../b/b.json", cwd=tmp_path / "working")
    assert {path.name for path in tmp_path.rglob("*.html")} == {"comparison.html"}
    assert (tmp_path / "working" / "comparison.html").is_file()


def test_several_reports_and_folders_are_compared(made: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_bytes((made / "report.json").read_bytes())
    assert run_uqeval("report", tmp_path).status == 0
    assert "2 reports side by side" in (tmp_path / "comparison.html").read_text("utf-8")
    (tmp_path / "comparison.html").unlink()
    assert run_uqeval("report", tmp_path / "a.json", tmp_path / "b.json").status == 0
    assert (tmp_path / "comparison.html").is_file()
    done = run_uqeval("report", tmp_path / "a.json", tmp_path / "b.json", "-o", "-", "-q")
    assert "2 reports side by side" in done.stdout and done.stderr == ""


def test_the_gallery(made: Path, tmp_path: Path) -> None:
    done = run_uqeval(
        "report", made / "report.json", "--gallery", "2", "--predictions", made / "preds.npy",
        "--labels", made / "labels.npy", "--names", made / "names.json",
        "--images", made / "images", "-o", tmp_path / "page.html",
    )  # fmt: skip
    assert done.status == 0, done.stderr
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<article") == 3
    for title in ("image", "prediction", "label", "errors", "patches"):
        assert page.count(f"<figcaption>{title}</figcaption>") == 3
    assert page.count("data:image/png;base64,") == 18
    assert CLASS_NAMES[0] not in page  # an array holds no names of classes


def test_pictures_without_labels_name_the_option(made: Path, tmp_path: Path) -> None:
    """The labels of a report are an option, not an argument after the predictions."""
    stores = ["--predictions", made / "preds.npy", "--names", made / "names.json"]
    for given in (["--gallery", "2"], ["--item", NAMES[1], "--figures", tmp_path / "f"]):
        done = run_uqeval("report", made / "report.json", *given, *stores)
        refused(done, "has no labels", "Give --labels LABELS: a folder of label PNGs")
        assert "after the predictions" not in done.stderr
    mean = np.ones((2, 4, 4), np.float32)
    np.savez(tmp_path / "n.npz", mean=mean, std=mean)
    np.save(tmp_path / "t.npy", mean + 1)
    done = run_uqeval(
        "regression", tmp_path / "n.npz", tmp_path / "t.npy", "-o", tmp_path / "n.json"
    )
    assert done.status == 0, done.stderr
    given = ["report", tmp_path / "n.json", "--gallery", "1", "--predictions", tmp_path / "n.npz"]
    refused(run_uqeval(*given), "has no target", "Give --target TARGET: a store")
    done = run_uqeval(*given, "--target", tmp_path / "t.npy", "-o", tmp_path / "n.html")
    assert done.status == 0, done.stderr


def test_figures_of_an_item(made: Path, tmp_path: Path) -> None:
    """Of two reports, each with its predictions."""
    (tmp_path / "other.json").write_bytes((made / "report.json").read_bytes())
    done = run_uqeval(
        "report", made / "report.json", tmp_path / "other.json", "--item", NAMES[1], "--figures",
        tmp_path / "f", "--predictions", made / "preds.npy", "--predictions", made / "preds.npy",
        "--labels", made / "labels.npy", "--names", made / "names.json", "--maps",
        "label,entropy:p95,accurate", "--by", "pavpu.pavpu", "-o", tmp_path / "page.html",
        "--gallery", "1",
    )  # fmt: skip
    assert done.status == 0, done.stderr
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("<article") == 1 and "Differs 1</span> by difference of p(acc" in page
    assert page.count("<figcaption>label</figcaption>") == 1  # both models have the same
    assert page.count('data-group="report"') == page.count('data-group="other"') == 4
    drawn = (tmp_path / "f" / f"item-{NAMES[1]}.svg").read_text("utf-8")
    assert drawn.count("entropy ≥ p95<") == 2 and drawn.count(">label<") == 1
    assert "other: PAvPU" in drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--item", "a"], "has an effect only with --figures DIR"),
        (["--maps", "label"], "has an effect only with --item NAME"),
        (["--item", "a", "--figures", "f"], "give --predictions"),
        (["--item", "a", "--figures", "f", "--box", "0:2,0:1"], "fractions of height and width"),
        (["--item", "a/b", "--item", "a b", "--figures", "f"], "to the same file, item-a-b"),
        (["--gallery", "1"], "give --predictions"),
        (["--images", "x"], "for --gallery"),
        (["--gallery", "1", "--predictions", "preds.npy", "--labels", "labels.npy"], "the first"),
        (["-o", "report.json"], "is an input"),
        (["-o", "nowhere/page.html"], "does not exist"),
    ],
)
def test_what_cannot_be(made: Path, arguments: list[str], message: str) -> None:
    before = (made / "report.json").read_bytes()
    done = run_uqeval("report", "report.json", *arguments, cwd=made)
    assert done.status == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert (made / "report.json").read_bytes() == before


def test_images_of_other_names(made: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = run_uqeval(
        "report", "report.json", "--gallery", "1", "--predictions", "preds.npy", "--labels",
        "labels.npy", "--names", "names.json", "--images", tmp_path / "empty", "-o",
        tmp_path / "page.html", cwd=made,
    )  # fmt: skip
    assert done.status == 2 and "none of the 3 items has its image" in done.stderr
    assert not (tmp_path / "page.html").exists()


@pytest.fixture(scope="module")
def kept(made: Path) -> Path:
    """A report whose states lie beside it, and verdicts on it."""
    folder = made / "kept"
    folder.mkdir()
    report = uqeval.evaluate(
        made / "preds.npy", made / "labels.npy", names=made / "names.json",
        states=folder / "report.states.zip",
    )  # fmt: skip
    report.save(folder / "report.json")
    (folder / "gate.yaml").write_text("pavpu.pavpu: {min: 1, why: to see it fail}\n")
    done = run_uqeval(
        "gate", folder / "report.json", folder / "gate.yaml", "-o", folder / "v.json", "-q"
    )
    assert done.status == 1
    return folder


def test_cells_lead_to_items_where_the_states_lie_beside(kept: Path, tmp_path: Path) -> None:
    done = run_uqeval("report", kept / "report.json", "-o", "-", "-q")
    assert 'class="cell-items" id="behind-' in done.stdout and done.stderr == ""
    (tmp_path / "report.json").write_bytes((kept / "report.json").read_bytes())
    done = run_uqeval("report", tmp_path / "report.json", "-o", "-")
    assert done.status == 0 and 'class="cell-items"' not in done.stdout and done.stderr == ""
    (tmp_path / "report.states.zip").write_bytes(b"spoiled")
    done = run_uqeval("report", tmp_path / "report.json", "-o", "-")
    assert done.status == 2 and "are not the states of" in done.stderr


def test_verdicts_stand_on_top(kept: Path, tmp_path: Path) -> None:
    done = run_uqeval("report", kept / "report.json", "-o", "-", "--verdicts", kept / "v.json")
    assert done.stdout.index("Gate failed: 0 passed, 1 failed") < done.stdout.index(
        "More headlines</h2>"
    )
    assert "why it matters: to see it fail" in done.stdout
    (tmp_path / "other.json").write_bytes((kept / "report.json").read_bytes())
    done = run_uqeval("report", tmp_path / "other.json", "--verdicts", kept / "v.json")
    assert done.status == 2 and "has verdicts on report, but not on other" in done.stderr
    done = run_uqeval("report", kept / "report.json", "--verdicts", kept / "report.json")
    assert done.status == 2 and "uqeval.verdicts/1" in done.stderr


def test_a_report_in_a_folder_that_cannot_be_written(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    (folder / "report.json").write_bytes((made / "report.json").read_bytes())
    folder.chmod(0o555)
    done = run_uqeval("report", folder / "report.json", preexec_fn=obey_modes)
    refused(done, "cannot be written to", "-o FILE.html")
    run_well("report", folder / "report.json", "-o", tmp_path / "r.html", preexec_fn=obey_modes)


def test_names_that_are_not_utf8(made: Path, tmp_path: Path) -> None:
    """As on disks of older systems; they are no flaw of the report."""
    name = os.fsdecode(b"caf\xe9")
    (tmp_path / f"{name}.json").write_bytes((made / "report.json").read_bytes())
    run_well("report", f"{name}.json", cwd=tmp_path)
    two = (f"{name}.json", made / "report.json")
    run_well("report", *two, "-o", f"{name}.2.html", "--figures", name, cwd=tmp_path)
    run_well("compare", *two, "-o", f"{name}.3.html", cwd=tmp_path)
    pages = {os.fsencode(path.name) for path in tmp_path.glob("*.html")}
    assert pages == {b"caf\xe9.html", b"caf\xe9.2.html", b"caf\xe9.3.html"}
    assert link_to(name) == "caf%E9"
