"""Items behind cells and bins, against pixels counted one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import C, run, stack

import uqeval.statistics.items_behind_cell as by_class
from uqeval.errors import StoreError
from uqeval.report.page.items_behind_cell import cell_items
from uqeval.statistics.checked_states import checked_arrays, checked_states
from uqeval.statistics.items_behind_cell import items_by_cell, most
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.states_of_report import states_of
from uqeval.tallies._contract import Tally


def test_the_most_of_each_cell() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (20, 3, 2))
    found = most([counts[:1], counts[1:17], counts[17:]], 5)
    assert len(found) == 6
    for cell, items in found.items():
        own = counts[:, *cell].tolist()
        order = sorted(range(20), key=lambda i: (-own[i], i))[:5]
        assert items == [(i, own[i]) for i in order if own[i]]


def test_none_and_fewer_items_than_places() -> None:
    assert most([np.array([[0, 3], [0, 1]])]) == {(0,): [], (1,): [(0, 3), (1, 1)]}


def test_wrong_pixels_of_cells_and_bins(tmp_path: Path) -> None:
    metrics = {"pavpu": {"uncertainty": ["entropy", "confidence"]}, "calibration": {"bins": 5}}
    report, path = run(tmp_path, 4, metrics)
    found = items_by_cell(states_of(path, report), report.results)
    assert set(found) == {"pavpu", "pavpu[confidence]", "calibration"}
    probs, truth = stack(4)
    mean = probs.astype("f8").mean(axis=1)
    wrong = (mean.argmax(axis=1) != truth) & (truth != 255)
    for key in ("pavpu", "pavpu[confidence]"):
        for row in report.results[key]["accuracy_by_uncertainty"]["rows"]:
            c = row["class"]
            for item in range(4):
                cells = [dict(found[key][c, x]).get(item, 0) for x in range(len(row["pixels"]))]
                assert sum(cells) == (wrong & (mean.argmax(axis=1) == c))[item].sum()
            for x, (n, accuracy) in enumerate(zip(row["pixels"], row["accuracy"], strict=True)):
                in_all = sum(count for _, count in found[key][c, x])
                assert in_all == (n - round(accuracy * n) if n else 0)
    bins = np.ceil(mean.max(axis=1) * 5).astype(int) - 1
    for b in range(5):
        counts = (wrong & (bins == b)).sum(axis=(1, 2)).tolist()
        order = sorted(range(4), key=lambda i: (-counts[i], i))
        assert found["calibration"][(b,)] == [(i, counts[i]) for i in order if counts[i]]


def test_every_cell_with_pixels_has_a_pile(tmp_path: Path) -> None:
    report, path = run(tmp_path, 3, ["pavpu", "calibration"])
    found = cell_items(report, items_by_cell(states_of(path, report), report.results))
    rows = report.results["pavpu"]["accuracy_by_uncertainty"]["rows"]
    assert len(rows) == C
    assert len(found["pavpu"]) == sum(n > 0 for row in rows for n in row["pixels"])
    counts = report.results["calibration"]["reliability"]["count"]
    assert len(found["calibration"]) == sum(n > 0 for n in counts)
    first = found["pavpu"][0]
    assert first.anchor == "behind-1-0-0" and first.title.endswith(" × 0–10 %")


def test_states_of_another_report_are_refused(tmp_path: Path) -> None:
    report, path = run(tmp_path / "a", 3)
    other, _ = run(tmp_path / "b", 2)
    with pytest.raises(StoreError, match="are not the states of"):
        items_by_cell(states_of(path, other), other.results)
    (tmp_path / "a" / "report.states.zip").write_bytes(b"no zip")
    with pytest.raises(StoreError, match="is not a states file"):
        items_by_cell(states_of(path, report), report.results)


def test_pixels_of_the_classes_of_each_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, path = run(tmp_path, 4, ["pavpu"])
    found = by_class.items_by_class(states_of(path, report))
    probs, truth = stack(4)
    wrong = probs.astype("f8").mean(axis=1).argmax(axis=1) != truth
    expected = []
    for item in range(4):
        pairs = [(c, truth[item] == c) for c in range(C)]
        counts = [(c, int(own.sum()), int((own & wrong[item]).sum())) for c, own in pairs]
        expected.append([entry for entry in counts if entry[1]])
    assert found == expected
    monkeypatch.setattr(by_class, "MOST_ENTRIES", 3)  # too many for a page
    assert by_class.items_by_class(states_of(path, report)) is None


@pytest.mark.parametrize("most_numbers", [1, 1000, 1 << 20])
def test_states_of_many_items_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_numbers: int
) -> None:
    """Sparse fields, too; and none is loaded by itself, unless it is sparse."""
    report, path = run(tmp_path, 5, ["pavpu", "calibration", "failure"])
    saved = states_of(path, report)
    tallies = Scoring(saved).tallies
    expected = [[state for _, state in checked_states(saved, tally)] for tally in tallies]
    monkeypatch.setattr("uqeval.statistics.checked_states._MOST_NUMBERS", most_numbers)
    for tally, states in zip(tallies, expected, strict=True):
        found = list(checked_arrays(saved, tally))
        for name in tally.fields:
            together = np.concatenate([state[name] for state in found])
            assert together.dtype == states[0][name].dtype
            np.testing.assert_array_equal(together, [state[name] for state in states])
    cells = items_by_cell(saved, report.results)

    def load(*_: Any) -> None:
        raise AssertionError("a state was loaded by itself")

    monkeypatch.setattr(Tally, "load", load)
    assert items_by_cell(saved, report.results) == cells
    assert by_class.items_by_class(saved) is not None
