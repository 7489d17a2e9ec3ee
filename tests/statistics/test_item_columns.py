"""Fields of many items: sparse entries and split columns have the sums of one array."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from saved_runs import run

from uqeval.compare import Choice, compare, load_models
from uqeval.report.comparison_files import to_json
from uqeval.statistics import item_columns

METRICS = ("pavpu", "calibration", "failure", "sparsification")


def leaves(value: Any, place: str = "") -> dict[str, Any]:
    """The values of a record by place, without texts, which name files."""
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return {k: v for at, part in parts for k, v in leaves(part, f"{place}/{at}").items()}
    return {} if isinstance(value, str) else {place: value}


def results(folder: Path) -> dict[str, Any]:
    """Intervals of a run, and its comparison with another one."""
    paths = []
    for seed, name in enumerate("ab"):
        options: dict[str, Any] = {} if seed else {"ci": 0.9, "draws": 100}
        report, path = run(folder / name, 9, METRICS, seed, **options)
        paths.append(str(path))
        if not seed:
            intervals = report.intervals
    compared = compare(load_models(paths), Choice(every=True, draws=100))
    return leaves({"intervals": intervals, "compared": json.loads(to_json(compared))})


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return results(tmp_path_factory.mktemp("dense"))


@pytest.mark.parametrize(
    "limits",
    [
        {"_DENSE_BYTES": 0, "_SPARSE": 2.0},
        {"_WIDE": 0},
        {"_WIDE": 0, "LIGHT_WEIGHT": 2**16},
        {"_WIDE": 0, "LIGHT_WEIGHT": 2**30},
    ],
    ids=["sparse", "float32", "both", "float64"],
)
def test_results_do_not_depend_on_the_form_of_states(
    limits: dict[str, float], expected: dict[str, Any], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name, value in limits.items():
        monkeypatch.setattr(item_columns, name, value)
    found = results(tmp_path)
    assert found.keys() == expected.keys()
    for place, value in expected.items():
        close = None if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)
        assert found[place] == close, place
