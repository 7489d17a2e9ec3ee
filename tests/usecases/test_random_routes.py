"""A sample of `benchmarks/random_routes.py`: each report is computed in two ways, and compared."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_reports_are_the_same_by_any_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import random_routes

    without_cluster = [name for name in random_routes.ROUTES if name != "dask"]
    found = list(random_routes.trials(16, seed=0, routes=without_cluster))
    assert [text for trial in found for text in trial.problems or ()] == []
    compared = {trial.route for trial in found if trial.problems is not None}
    assert len(compared) > 6
