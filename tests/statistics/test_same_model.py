"""Which runs evaluated the same predictions, from their saved states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import stack

import uqeval
from uqeval.statistics.same_model import is_same_model
from uqeval.statistics.scoring import Scoring
from uqeval.stores.states.saved import SavedStates

N = 6
#: Nothing is fitted: all scores are of counts.
COUNTS = {"pavpu": {"threshold": 0.7, "curve_range": "0.01:1.38", "deciles": False}}


def scored(
    path: Path, metrics: Any, probs: np.ndarray | None = None, order: Any = range(N)
) -> Scoring:
    """A run of N items, with the fingerprint of an uncompressed store: it is that of the sizes."""
    samples, labels = stack(N)
    samples = samples if probs is None else probs
    uqeval.evaluate(
        samples[order], labels[order], metrics, names=[f"item_{i}" for i in order], states=path
    )
    scoring = Scoring(SavedStates(path))
    scoring.index["inputs"]["predictions"] = [{"fingerprint": "of sizes", "arrays": {"probs": {}}}]
    return scoring


@pytest.mark.parametrize(
    ("metrics", "address"),
    [
        ({"calibration": {"bins": 10}}, "segmentation.miou"),
        ({"calibration": {}, "pavpu": {"window": 8}}, "calibration.ece"),
        ({"pavpu": {}}, "segmentation.miou"),
        ({"calibration": {"temperature": False}}, "segmentation.miou"),
    ],
)
def test_other_settings_of_other_results_are_no_other_model(
    tmp_path: Path, metrics: Any, address: str
) -> None:
    first = scored(tmp_path / "a.zip", {"calibration": {}})
    assert is_same_model([first, scored(tmp_path / "b.zip", metrics)], address)


def test_paths_in_results_are_no_other_model(tmp_path: Path) -> None:
    first, second = (scored(tmp_path / name, COUNTS) for name in ("a.zip", "b.zip"))
    first.index["results"]["pavpu"]["fit_on"] = "fit.txt"
    second.index["results"]["pavpu"]["fit_on"] = "./fit.txt"
    assert is_same_model([first, second], "pavpu.pavpu")


def test_a_prediction_that_changed_a_little_is_another_model(tmp_path: Path) -> None:
    """All scores, of items too, and the fingerprint stay."""
    probs = stack(N)[0]
    changed = probs.copy()
    changed[3, ..., 5, 5] = 0.98 * probs[3, ..., 5, 5] + 0.02 / 4
    first, second = (
        scored(tmp_path / f"{k}.zip", COUNTS, own) for k, own in enumerate((probs, changed))
    )
    assert first.index["results"] == second.index["results"]
    assert first.records == second.records
    for address in ("pavpu.pavpu", "segmentation.miou"):
        assert not is_same_model([first, second], address)


def test_the_same_items_in_another_order(tmp_path: Path) -> None:
    first = scored(tmp_path / "a.zip", "pavpu")
    second = scored(tmp_path / "b.zip", "pavpu", order=range(N)[::-1])
    assert is_same_model([first, second], "pavpu.pavpu")
    fewer = scored(tmp_path / "c.zip", "pavpu", order=range(N - 1))
    assert not is_same_model([first, fewer], "pavpu.pavpu")


def test_another_threshold_is_no_same_count(tmp_path: Path) -> None:
    """The states of the score itself must be in both runs."""
    first = scored(tmp_path / "a.zip", COUNTS)
    other = scored(tmp_path / "b.zip", {"pavpu": COUNTS["pavpu"] | {"threshold": 0.9}})
    assert is_same_model([first, other], "segmentation.miou")
    assert not is_same_model([first, other], "pavpu.pavpu")


def test_another_table_of_items_is_no_same_model(tmp_path: Path) -> None:
    """Columns of a table are not counted: they are in the records of items only."""
    runs = []
    for factor in (1, 2):
        table = tmp_path / f"{factor}.csv"
        rows = "".join(f"item_{i},{factor * i}\n" for i in range(N))
        table.write_text(f"name,q\n{rows}", encoding="utf-8")
        options = {"confidence": "column:q", "item_table": str(table)}
        runs.append(scored(tmp_path / f"{factor}.zip", {"image_failure": options}))
    assert is_same_model(runs, "segmentation.miou")
    assert not is_same_model(runs, "image_failure.aurc")


def test_equal_classes_of_items_of_one_pixel_do_not_show_it(tmp_path: Path) -> None:
    confidence = np.linspace(0.6, 0.9, N)
    probs = np.stack([confidence, 1 - confidence], axis=1).astype("f4")
    labels = np.zeros(N, np.uint8)
    runs = []
    for metrics in ({"pavpu": {"window": 1}}, "calibration", {"pavpu": {"window": 1}}):
        path = tmp_path / f"{len(runs)}.zip"
        uqeval.evaluate(probs, labels, metrics, states=path)
        runs.append(Scoring(SavedStates(path)))
    assert not is_same_model(runs[:2], "segmentation.miou")
    assert is_same_model(runs[::2], "segmentation.miou")


def test_scores_of_whole_items_need_the_same_predictions(tmp_path: Path) -> None:
    """No tally counts them, so that states alone do not show another model."""
    first, same, other = (scored(tmp_path / f"{k}.zip", "image_failure") for k in range(3))
    other.index["inputs"]["predictions"] = [{"fingerprint": "another", "arrays": {"probs": {}}}]
    assert is_same_model([first, same], "image_failure.aurc")
    assert not is_same_model([first, other], "image_failure.aurc")


def test_how_often_a_merged_run_names_a_store_does_not_count(tmp_path: Path) -> None:
    first, other = (scored(tmp_path / f"{k}.zip", COUNTS) for k in range(2))
    other.index["inputs"]["predictions"] *= 2
    assert is_same_model([first, other], "pavpu.pavpu")
