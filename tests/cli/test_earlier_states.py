"""States that an earlier version wrote, without counts of targets and without `rest`.

`parts_without_target_counts.zip` holds the reports and states of two parts of six items, written
before these were there: of regression, nmerci and sparsification. The numbers here are those of the
same version over all items at once.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from command import run_uqeval

import uqeval

GOLDEN = Path(__file__).parents[1] / "golden" / "parts_without_target_counts.zip"
WHOLE = {"rmse": 0.5549557973076599, "nmse": 0.06272246874929144, "nll": 0.7523852046300005}
AUSE = 0.37761354326056623
RULES = "\n".join(
    f"{value}: {{max: 9, confidence: 0.9}}"
    for value in ("regression.rmse", "regression.nmse", "nmerci.nmerci", "sparsification.ause")
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of both parts, and of both merged."""
    folder = tmp_path_factory.mktemp("earlier")
    with zipfile.ZipFile(GOLDEN) as golden:
        golden.extractall(folder)
    (folder / "gate.yaml").write_text(RULES)
    merged = run_uqeval("merge", "part1.json", "part2.json", "-o", "m.json", "-q", cwd=folder)
    assert (merged.status, merged.stderr) == (0, "")
    return folder


def test_merge_reads_them(folder: Path) -> None:
    results = json.loads((folder / "m.json").read_text())["results"]
    found = {name: results["regression"][name] for name in WHOLE}
    assert found == pytest.approx(WHOLE, rel=1e-12)
    assert results["sparsification"]["ause"] == pytest.approx(AUSE, rel=2e-3)  # of bins, of parts


def test_gate_reads_them(folder: Path) -> None:
    found = run_uqeval("gate", "m.json", "gate.yaml", cwd=folder)
    assert found.status == 0 and "4 passed" in found.stdout


def test_compare_reads_them(folder: Path) -> None:
    (folder / "other").mkdir()
    for name in ("part1.json", "part1.states.zip"):
        (folder / "other" / name).write_bytes((folder / name).read_bytes())
    found = run_uqeval("compare", "part1.json", "other/part1.json", "-o", "c.json", cwd=folder)
    assert found.status == 0, found.stderr


def test_states_of_schema_4_are_read() -> None:
    """Small items in blocks, and an index that is not compressed: 12 items of one pixel."""
    path = GOLDEN.with_name("schema4.states.zip")
    with zipfile.ZipFile(path) as archive:
        assert "index.json" in archive.namelist()
    merged = uqeval.merge(path)
    found = merged.results["segmentation"]
    assert (found["pixel_accuracy"], found["miou"]) == (0.25, 0.14074074074074075)
    assert [item["name"] for item in merged.items] == [f"i{k:02d}" for k in range(12)]


def test_states_of_schema_5_are_read() -> None:
    """Ranks of two images of 40 × 48 pixels, wide and compressed by zlib."""
    merged = uqeval.merge(GOLDEN.with_name("schema5.states.zip"))
    found = merged.results["failure"]
    scores = {name: found[name] for name in ("auroc", "aurc", "fpr95")}
    assert scores == {
        "auroc": 0.5001602529338203, "aurc": 0.668063608958242, "fpr95": 0.9506656225528582,
    }  # fmt: skip
