"""States that an earlier version wrote, without counts of targets and without `rest`.

`parts_without_target_counts.zip` holds the reports and states of two parts of two items, written
before these were there: of regression, nmerci and sparsification. The numbers here are those of the
same version over both items at once.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from command import run_uqeval

GOLDEN = Path(__file__).parents[1] / "golden" / "parts_without_target_counts.zip"
WHOLE = {"rmse": 0.7723866271613063, "nmse": 0.12169496722471411, "nll": 0.9854981936978041}
AUSE = 0.1872609202160901
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
    assert {name: results["regression"][name] for name in WHOLE} == WHOLE
    assert results["sparsification"]["ause"] == AUSE


def test_gate_reads_them(folder: Path) -> None:
    found = run_uqeval("gate", "m.json", "gate.yaml", cwd=folder)
    assert found.status == 0 and "4 passed" in found.stdout


def test_compare_reads_them(folder: Path) -> None:
    (folder / "other").mkdir()
    for name in ("part1.json", "part1.states.zip"):
        (folder / "other" / name).write_bytes((folder / name).read_bytes())
    found = run_uqeval("compare", "part1.json", "other/part1.json", "-o", "c.json", cwd=folder)
    assert found.status == 0, found.stderr
