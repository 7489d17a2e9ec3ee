"""Temporal consistency read again: pooled counts and tracks to the bit, means by the items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from read_again import Reread

import uqeval
from uqeval.metrics import temporal_scores as ts
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import intervals
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.weighting import Weighting

C, SIZE = 4, (32, 40)


def video(cut: bool = False) -> dict[str, Any]:
    """Two sequences of a texture that moves, ids of it with errors, and labels."""
    rng = np.random.default_rng(3)
    frames, ids, names = [], [], []
    for sequence in "ab":
        wide = rng.integers(0, 256, (16, 20, 3), np.uint8).repeat(5, 0).repeat(5, 1)
        regions = rng.integers(0, C, (8, 10), np.uint8).repeat(10, 0).repeat(10, 1)
        for t in range(5):
            if cut and t == 3:
                wide = 255 - wide[::-1]
            window = slice(2 * t, 2 * t + SIZE[0]), slice(3 * t, 3 * t + SIZE[1])
            frames.append(wide[window])
            ids.append(regions[window])
            names.append(f"{sequence}_{t}")
    truth = np.stack(ids)
    wrong = np.where(rng.random(truth.shape) < 0.1 * np.arange(1, 11)[:, None, None] / 10,
                     (truth + 1) % C, truth)  # fmt: skip
    wrong[rng.random(truth.shape) < 0.05] = 255
    return {"frames": np.stack(frames), "ids": wrong.astype("u1"), "labels": truth, "names": names}


def run(path: Path, made: dict[str, Any], **settings: Any) -> Reread:
    np.savez(path / "video.npz", frames=made["frames"], names=made["names"])
    np.savez(path / "ids.npz", predictions=made["ids"], names=made["names"])
    np.savez(path / "labels.npz", labels=made["labels"], names=made["names"])
    return Reread(path, path / "ids.npz", path / "labels.npz", video=str(path / "video.npz"),
                  metrics={"tc": {"flow": "dis:fast", **settings}})  # fmt: skip


def read(record: Any, address: str) -> Any:
    for name in address.split("."):
        record = record[name]
    return record


def mean(found: Reread, field: str, items: Any = None) -> float | None:
    records = [item["temporal"] for item in found.report.items]
    left_out = found.evaluations["temporal"].over_items().leaves_out
    chosen = [r for r in records if not (left_out and r[left_out])]
    return ts.mean(r[field] for r in chosen)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"average": "pooled", "occlusion": "fb"},
    {"definition": "vspw", "occlusion": "fb"},
    {"occlusion": "fb", "tracks": True, "track_everywhere": True, "track_step": 4},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_all_items_have_the_results_of_the_run(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = run(tmp_path, video(), **settings)
    expected, again = found.results("temporal"), found.evaluations["temporal"]
    scores = found.scores("temporal")
    for name, value in scores.items():
        if isinstance(value, dict) and name != "tracks":
            for own in value:
                assert value[own] == expected[name][own]
        else:
            assert value == expected[name], name
    for name, field in again.over_items().means.items():
        assert mean(found, field) == read(expected, name)
    both = {*again.over_items().means, *scores} | {
        f"occluded.{own}" for own in scores.get("occluded", {})
    }
    assert {"mtc", "mtc_no_warp", "mtc_pooled", "coverage", "per_class"} <= both
    assert {f"occluded.{own}" for own in expected.get("occluded", {})} <= both
    assert not {*again.over_items().means} & {*scores}
    assert ("tracks" in scores) == bool(settings.get("tracks"))
    assert again.approximate == frozenset()
    ((name, of_fields),) = again.over_items().of_fields.items()
    pairs = [tuple(item["temporal"][f] for f in of_fields.fields) for item in found.report.items]
    assert ts.correlation(pairs)[0] == read(expected, name)


def test_some_items_pool_their_counts(tmp_path: Path) -> None:
    found = run(tmp_path, video(), tracks=True, track_everywhere=True)
    rows = {row["sequence"]: row for row in found.results("temporal")["sequences"]}
    records = [item["temporal"] for item in found.report.items]
    for sequence, row in rows.items():
        items = [i for i, r in enumerate(records) if r["sequence"] == sequence]
        scores = found.scores("temporal", items)
        assert scores["mtc_pooled"] == row["mtc_pooled"]
        twice = found.scores("temporal", items * 2)
        assert twice["mtc_pooled"] == row["mtc_pooled"]
        assert scores["tracks"]["tracks"] > 0
        of_sequence = {name: scores["tracks"][name] for name in row["tracks"]}
        assert row["tracks"] == of_sequence and of_sequence.keys() >= {"consistency"}
        assert twice["tracks"]["tracks"] == 2 * scores["tracks"]["tracks"]
        assert twice["tracks"]["consistency"] == scores["tracks"]["consistency"]
    nothing = found.scores("temporal", [])
    assert nothing["mtc_pooled"] is None
    assert nothing["mtc_pooled_reason"]


def test_dropped_cuts_are_in_no_mean(tmp_path: Path) -> None:
    found = run(tmp_path, video(cut=True), drop_cuts=True)
    expected, again = found.results("temporal"), found.evaluations["temporal"]
    assert expected["cuts"] > 0
    assert any("left out of the means (drop_cuts)." in text for text in found.report.warnings)
    assert again.over_items().leaves_out == "cut"
    assert mean(found, "tc") == expected["mtc"]
    # Nor are their counts in the pooled ones.
    assert again.over_items().kept_only == set(again.tallies())
    kept = [i for i, item in enumerate(found.report.items) if not item["temporal"]["cut"]]
    assert found.scores("temporal", kept)["mtc_pooled"] == expected["mtc_pooled"]
    assert found.scores("temporal")["mtc_pooled"] != expected["mtc_pooled"]
    whole = Scoring(found.saved).whole()["temporal"]
    for name in ("mtc", "mtc_pooled", "miou_mean", "per_class"):
        assert whole[name] == (
            expected[name] if isinstance(expected[name], list) else pytest.approx(expected[name])
        ), name
    (tmp_path / "b").mkdir()
    plain = run(tmp_path / "b", video(), drop_cuts=True)
    expected = plain.results("temporal")
    assert expected["cuts"] == 0
    assert plain.scores("temporal")["mtc_pooled"] == expected["mtc_pooled"]


@pytest.mark.parametrize("drop_cuts", [False, True])
def test_slices_count_their_pairs_and_cuts(tmp_path: Path, drop_cuts: bool) -> None:
    found = run(tmp_path, video(cut=True), drop_cuts=drop_cuts)
    records = {item["name"]: item["temporal"] for item in found.report.items}
    rows = "".join(f"{name},{record['sequence']}\n" for name, record in records.items())
    (tmp_path / "table.csv").write_text(f"name,sequence\n{rows}", "utf-8")
    later = uqeval.merge(found.saved.path, slices=tmp_path / "table.csv")
    sequences = found.results("temporal")["sequences"]
    assert len(later.slices) == len(sequences) > 1
    cuts = 0
    for row in sequences:
        scores = later.slices[f"sequence={row['sequence']}"]["results"]["temporal"]
        own = [record for record in records.values() if record["sequence"] == row["sequence"]]
        assert scores["pairs"] == row["pairs"] == len(own)
        assert scores["cuts"] == sum(record["cut"] for record in own)
        cuts += scores["cuts"]
        for name in ("flow", "step", "gaps", "sequences"):
            assert scores[name] is None
            assert scores[f"{name}_reason"] == "is a value of the whole set, not of a slice"
    assert cuts == found.results("temporal")["cuts"] > 0


@pytest.mark.parametrize("cuts", [False, True])
def test_the_mean_over_frames_and_pooled_scores_have_intervals(tmp_path: Path, cuts: bool) -> None:
    found = run(tmp_path, video(cut=cuts), drop_cuts=cuts)
    expected, scoring = found.results("temporal"), Scoring(found.saved)
    by_pair = Samples.of_run(scoring, Resampling(scoring.names, 200))
    drawn = intervals(by_pair, 0.9)
    for name in ("miou_mean", "mtc_pooled", "mtc"):
        own = drawn[f"temporal.{name}"]
        assert own["low"] <= expected[name] <= own["high"] and own["low"] < own["high"], name
    # A frame that begins a run is there with its pair, and as often.
    items, states = [0, 0, 2, 7], found.evaluations["temporal"].over_items().of_states
    ((name, (tally, scores)),) = states.items()
    packed = list(found.saved.states(tally.parameters(), tally.most_bytes))
    weights = Weighting(np.bincount(items, minlength=len(packed))[None])
    values = [v for i in items for v in scores(tally.unpack(packed[i])) if v is not None]
    assert name == "miou_mean" and len(values) == 6
    (value,) = scoring.table(weights, ["temporal.miou_mean"])[:, 0]
    assert value == pytest.approx(np.mean(values), rel=1e-12)
