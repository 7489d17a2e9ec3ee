"""A sample of `benchmarks/random_routes.py`: each report is computed in two ways, and compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.on_disk


def test_reports_are_the_same_by_any_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import random_routes

    without_cluster = [name for name in random_routes.ROUTES if name != "dask"]
    found = list(random_routes.trials(16, seed=0, routes=without_cluster))
    assert [text for trial in found for text in trial.problems or ()] == []
    compared = {trial.route for trial in found if trial.problems is not None}
    assert len(compared) > 6
