"""Whole runs: the same report however it is computed, memory, states, errors."""

from __future__ import annotations

import re
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scenes

import uqeval
from uqeval.errors import DataError, OutputError, StoreError, UqevalError, UsageError
from uqeval.records.report import now
from uqeval.stores.states.saved import SavedStates
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.patches import ItemPatchCounts, PatchCounts, Patches
from uqeval.tallies.ranks import Moments, Ranks
from uqeval.tallies.segmentation import AccuracyByUncertainty, ClassCounts

N, T, C, H, W = 7, 3, 4, 20, 24
NAMES = [f"drive_{i}" for i in range(N)]
#: Every kind of pass: one, two and three of them, ranks of patches, thresholds of items.
EVERYTHING = {
    "pavpu": {
        "uncertainty": ["mutual_information", "entropy"],
        "threshold": ["median", "mean", "max-surplus"],
        "window": 3,
    }
}


@pytest.fixture(scope="module")
def scene() -> tuple[Any, Any]:
    """Samples that know something of the errors, and labels with void."""
    truth = scenes.labels(0, N, H, W, classes=C)
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, T, C, H, W)) + 1.5 * rng.normal(size=(N, 1, C, H, W))
    z += 2 * (truth[:, None, None] == np.arange(C)[:, None, None])
    p = np.exp(z)
    return (p / p.sum(2, keepdims=True)).astype("f2"), truth


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def store(path: Path, p: Any, chunks: Any) -> Path:
    return scenes.zarr_group(path, {"probs": (p, {"chunks": chunks})}, names=NAMES)


def conclusions(report: Any) -> dict[str, Any]:
    """The results that must not depend on the way of computing."""
    record = report.record()
    return {
        k: v for k, v in record.items() if k not in ("timing", "inputs", "states", "states_digest")
    }


# The same report


def test_any_workers(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    reports = [uqeval.evaluate(path, truth, EVERYTHING, workers=n) for n in (1, 2, 4)]
    for report, workers in zip(reports, (1, 2, 4), strict=True):
        assert conclusions(report) == conclusions(reports[0])
        assert report.timing["workers"] == workers


def test_a_report_says_when_it_was_finished(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    parts = [tmp_path / f"{k}.zip" for k in (1, 2)]
    first = now()
    asked: dict[str, Any] = {"metrics": "segmentation", "names": NAMES}
    reports = [uqeval.evaluate(p, truth, **asked)]
    for k, states in enumerate(parts, 1):
        reports.append(uqeval.evaluate(p, truth, **asked, part=f"{k}/2", states=states))
    reports.append(uqeval.merge(parts))
    reports.append(uqeval.sweep(p, truth, "calibration", samples=[1], repeats=1, names=NAMES))
    times = [first, *(report.timing["finished"] for report in reports), now()]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}(-\d\d){2}T\d\d:\d\d:\d\dZ", time) for time in times)


def test_any_chunks(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    expected = conclusions(uqeval.evaluate(p, truth, EVERYTHING, names=NAMES))
    for i, chunks in enumerate(
        [(1, 1, C, 7, 24), (3, T, C, H, W), (2, 2, 2, 16, 9), (7, 1, 1, 9, 9)]
    ):
        path = store(tmp_path / str(i), p, chunks)
        assert conclusions(uqeval.evaluate(path, truth, EVERYTHING)) == expected


def test_any_place_of_the_scratch(scene: Any, tmp_path: Path, folder: Path) -> None:
    p, truth = scene
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    plain = uqeval.evaluate(path, truth, EVERYTHING)
    assert list(folder.iterdir()) == []

    used: list[str] = []

    class Watch:
        """Looks into the temporary folder."""

        def begin(self, what: str, items: int) -> None:
            used.extend(p.name for p in folder.rglob("*") if p.is_file())

        def advance(self, nbytes: int, items: int) -> None: ...

        def end(self) -> None:
            used.extend(p.name for p in folder.rglob("*") if p.is_file())

    memory = needed(path, truth)
    uqeval.evaluate(path, truth, "segmentation", memory=memory, progress=Watch())
    assert not used, "maps were kept that no later pass reads"
    small = uqeval.evaluate(path, truth, EVERYTHING, memory=memory, workers=2, progress=Watch())
    assert conclusions(small) == conclusions(plain)
    assert used, "the scratch was meant to be on disk"
    assert small.timing["bytes_read"] == plain.timing["bytes_read"] == p.nbytes
    assert small.timing["passes"] == plain.timing["passes"] == 3
    assert list(folder.iterdir()) == []


def needed(path: Any, truth: Any) -> int:
    """The least memory that a refusal names."""
    with pytest.raises(UsageError) as caught:
        uqeval.evaluate(path, truth, EVERYTHING, memory=1)
    found = re.search(r"Give memory=(\d+)(MB|kB|B)", str(caught.value))
    assert found
    return int(found[1]) * {"MB": 10**6, "kB": 10**3, "B": 1}[found[2]]


@pytest.mark.parametrize("chunks", [(1, T, C, H, W), (4, 1, 2, H, W)])
def test_the_memory_that_a_refusal_names_is_enough(scene: Any, tmp_path: Path, chunks: Any) -> None:
    p, truth = scene
    path = store(tmp_path / "p", p, chunks)
    enough = needed(path, truth)
    report = uqeval.evaluate(path, truth, EVERYTHING, memory=enough, workers=8)
    assert report.timing["workers"] == 1
    assert conclusions(report) == conclusions(uqeval.evaluate(path, truth, EVERYTHING))
    with pytest.raises(UsageError, match="memory"):
        uqeval.evaluate(path, truth, EVERYTHING, memory=enough // 2)


@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_a_maps_store_gives_the_same_report(scene: Any, tmp_path: Path, dtype: str) -> None:
    from uqeval.inputs import InputOptions, open_inputs
    from uqeval.usecases.reduce import reduce

    p, truth = scene[0].astype(dtype), scene[1]
    if dtype == "f4":
        p /= p.sum(2, keepdims=True)
    metrics = {"pavpu": {**EVERYTHING["pavpu"], "top_k": [1, 2]}}
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    expected = uqeval.evaluate(path, truth, metrics)
    reduced = reduce(open_inputs(path, truth, InputOptions()), tmp_path / "maps")
    found = uqeval.evaluate(reduced, None, metrics)
    assert conclusions(found) == conclusions(expected)
    # Without the maps of labels, ranks come from the mean probabilities.
    alone = reduce(open_inputs(path, None, InputOptions()), tmp_path / "alone")
    assert conclusions(uqeval.evaluate(alone, truth, metrics)) == conclusions(expected)
    # By hand, from the public function.
    from uqeval.maps.reduction import reduce_array

    maps = [reduce_array(item) for item in p]
    arrays = {name: np.stack([m[name] for m in maps]) for name in maps[0]}
    mine = scenes.zarr_group(tmp_path / "mine", arrays, names=NAMES)
    assert conclusions(uqeval.evaluate(mine, truth, metrics)) == conclusions(expected)


def test_an_ensemble_gives_the_report_of_one_stack(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    np.save(tmp_path / "b.npy", p[:, 2:])
    members = [store(tmp_path / "a", p[:, :2], (1, 1, C, H, 9)), tmp_path / "b.npy"]
    expected = uqeval.evaluate(p, truth, EVERYTHING, names=NAMES)
    assert conclusions(uqeval.evaluate(members, truth, EVERYTHING, names=NAMES)) == conclusions(
        expected
    )


def test_labels_in_any_order_and_place(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    path = store(tmp_path / "p", p, (2, T, C, H, W))
    expected = conclusions(uqeval.evaluate(path, truth, EVERYTHING))
    order = [3, 0, 6, 1, 5, 4, 2]
    shuffled = scenes.zarr_group(
        tmp_path / "truth", {"labels": truth[order]}, names=[NAMES[i] for i in order]
    )
    assert conclusions(uqeval.evaluate(path, shuffled, EVERYTHING)) == expected
    both = scenes.zarr_group(tmp_path / "both", {"probs": p, "labels": truth}, names=NAMES)
    assert conclusions(uqeval.evaluate(both, None, EVERYTHING)) == expected


# States

TALLIES = {
    t.id: t
    for t in (AccuracyByUncertainty, ClassCounts, ItemPatchCounts, Moments, PatchCounts, Ranks)
}


def tally_of(parameters: dict[str, Any]) -> Any:
    """The tally that its parameters name."""

    def rebuilt(name: str, value: Any) -> Any:
        if isinstance(value, dict):
            kind = Patches if "window" in value else Uncertainty
            return kind(**{k: rebuilt(k, v) for k, v in value.items()})
        if isinstance(value, list):
            return tuple(rebuilt(name, v) for v in value)
        return value

    given = {k: rebuilt(k, v) for k, v in parameters.items() if k != "id"}
    return TALLIES[parameters["id"]](**given)


def test_states_fold_to_the_report(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    path = tmp_path / "states.zip"
    report = uqeval.evaluate(p, truth, EVERYTHING, names=NAMES, states=path, workers=2)
    saved = SavedStates(path)
    index = saved.index
    assert report.states == str(path)
    assert index["items"] == NAMES
    assert len(index["fingerprint"]) == 64
    ids = [parameters["id"] for parameters in saved.parameters()]
    assert {"class_counts", "moments", "ranks", "patch_counts"} <= set(ids)
    tallies = [tally_of(parameters) for parameters in saved.parameters()]
    totals = []
    for tally in tallies:
        total = tally.empty()
        for data in saved.states(tally.parameters(), tally.most_bytes):
            tally.merge(total, tally.unpack(data))
        totals.append(total)

    segmentation = report.results["segmentation"]
    counted = totals[ids.index("class_counts")]
    assert counted["labelled"].tolist() == [row["pixels"] for row in segmentation["per_class"]]
    patches = [
        (tally, total)
        for tally, total, id_ in zip(tallies, totals, ids, strict=True)
        if id_ == "patch_counts"
    ]
    for key, found in report.results.items():
        if key == "segmentation":
            continue
        said = report.settings[key]
        mine = [
            total["counts"].sum(0).tolist()
            for tally, total in patches
            if tally.patches.uncertainty.name == said["uncertainty"]
            and tally.threshold == (found["uncertainty_threshold"],)
        ]
        expected = [[found["n_ic"], found["n_iu"]], [found["n_ac"], found["n_au"]]]
        assert expected in mine


def test_states_are_the_same_file_for_any_workers(scene: Any, tmp_path: Path) -> None:
    p, truth = scene
    files = []
    for workers in (1, 3):
        path = tmp_path / f"{workers}.zip"
        uqeval.evaluate(p, truth, EVERYTHING, states=path, workers=workers)
        files.append(path.read_bytes())
    assert files[0] == files[1]


def test_no_state_is_written_twice(tmp_path: Path) -> None:
    # The best Surplus lies at the lowest threshold, which was counted to find it.
    arrays = {
        "predictions": np.array([[[0, 1, 1, 1]]], "u1"),
        "labels": np.zeros((1, 1, 4), "u1"),
        "entropy": np.array([[[0.0, 1.0, 1.0, 0.5]]], "f4"),
    }
    path = scenes.zarr_group(tmp_path / "s", arrays, class_names=["a", "b"])
    settings = {"window": 1, "threshold": ["max-surplus", "range:0", "p0", "median"]}
    states = tmp_path / "states.zip"
    report = uqeval.evaluate(path, metrics={"pavpu": settings}, states=states)
    assert report.results["pavpu"]["uncertainty_threshold"] == 0.0
    import zipfile

    names = zipfile.ZipFile(states).namelist()
    # The run, the index, and each tally's parameters and its state of the one item.
    assert len(names) == len(set(names))
    by_item = [name for name in names if not name.startswith("totals/")]
    assert len(by_item) == 2 * len(SavedStates(states).parameters()) + 2


def test_states_that_cannot_be_written(scene: Any, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist; make it"):
        uqeval.evaluate(*scene, states=tmp_path / "none" / "s.zip")


# Errors


def test_an_error_leaves_nothing_behind(scene: Any, tmp_path: Path, folder: Path) -> None:
    p, truth = scene[0].copy(), scene[1]
    p[5, 1, 0, 3, 3] = np.nan
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    states = tmp_path / "out"
    states.mkdir()
    threads = threading.active_count()
    for workers in (1, 2, 4):
        with pytest.raises(DataError, match=r"item drive_5.* 1 of .* NaN"):
            uqeval.evaluate(path, truth, EVERYTHING, workers=workers, states=states / "s.zip")
    assert list(states.iterdir()) == []
    assert list(folder.iterdir()) == []
    assert threading.active_count() == threads


def test_the_first_bad_item_is_the_one_that_is_named(scene: Any, tmp_path: Path) -> None:
    p, truth = scene[0].copy(), scene[1]
    for item in (2, 3, 6):
        p[item, 0, 0, 0, 0] = -1
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    for _ in range(3):
        with pytest.raises(DataError, match="item drive_2"):
            uqeval.evaluate(path, truth, workers=4)


def test_a_progress_that_raises_ends_the_run(scene: Any, folder: Path) -> None:
    class Impatient:
        """Gives up while bytes come in."""

        ended = 0

        def begin(self, what: str, items: int) -> None: ...

        def advance(self, nbytes: int, items: int) -> None:
            raise KeyboardInterrupt

        def end(self) -> None:
            self.ended += 1

    progress = Impatient()
    with pytest.raises(KeyboardInterrupt):
        uqeval.evaluate(*scene, EVERYTHING, progress=progress)
    assert progress.ended == 1
    assert list(folder.iterdir()) == []


def test_progress_of_a_run(scene: Any) -> None:
    told: list[Any] = []

    class Teller:
        """Records its calls."""

        def begin(self, what: str, items: int) -> None:
            told.append((what, items))

        def advance(self, nbytes: int, items: int) -> None:
            told.append((nbytes, items))

        def end(self) -> None:
            told.append("end")

    report = uqeval.evaluate(*scene, EVERYTHING, progress=Teller())
    begun = [entry for entry in told if isinstance(entry[0], str) and entry != "end"]
    assert begun == [(f"pass {k}", N) for k in (1, 2, 3)]
    assert told.count("end") == 3
    counts = [entry for entry in told if isinstance(entry[0], int)]
    assert sum(nbytes for nbytes, _ in counts) == report.timing["bytes_read"] == scene[0].nbytes
    assert sum(items for _, items in counts) == 3 * N


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metrics": ("pavp",)}, "pavp"),
        ({"metrics": ()}, "no metrics are given; expected some of"),
        ({"metrics": {"pavpu": {"windw": 2}}}, "windw"),
        ({"window": 3}, "Give it with the metric: metrics={'pavpu': {'window': 3}}."),
        (
            {"metrics": "failure", "uncertainty": "std"},
            "metrics={'failure': {'uncertainty': 'std'}}.",
        ),
        ({"resume": True}, "resume needs the states of the earlier run; give states=FILE."),
        (
            {"metrics": "tc"},
            "tc evaluates video only: give video, the frames of these predictions.",
        ),
        ({"metrics": "regression"}, "Try metrics='pavpu' with the same other arguments."),
        ({"workers": 0}, "workers=0"),
        ({"limit": 0}, "limit=0"),
        ({"missing_chunks": "skip"}, "missing_chunks"),
    ],
)
def test_options_that_cannot_be(scene: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        uqeval.evaluate(*scene, **options)
    assert words in str(caught.value)


def test_no_labels(scene: Any) -> None:
    with pytest.raises(UqevalError, match="labels"):
        uqeval.evaluate(scene[0])


def test_no_predictions(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no predictions"):
        uqeval.evaluate([])
    with pytest.raises(StoreError, match="nothing here"):
        uqeval.evaluate(tmp_path / "nowhere")


# Parts and void


@pytest.mark.parametrize("chunks", [(1, T, C, H, W), (3, T, C, H, W)])
def test_a_limit_is_partial(scene: Any, tmp_path: Path, chunks: Any) -> None:
    p, truth = scene
    path = store(tmp_path / "p", p, chunks)
    report = uqeval.evaluate(path, truth, EVERYTHING, limit=4)
    whole = uqeval.evaluate(p[:4], truth[:4], EVERYTHING, names=NAMES[:4])
    assert report.partial and not whole.partial
    assert report.results == whole.results
    assert report.items == whole.items
    assert any("partial: 4 of 7 items" in text for text in report.warnings)
    assert (report.inputs["items"], report.inputs["evaluated"]) == (7, 4)
    assert not uqeval.evaluate(path, truth, limit=7).partial


def test_one_void_item_is_a_warning(scene: Any) -> None:
    p, truth = scene[0], scene[1].copy()
    truth[2] = 255
    report = uqeval.evaluate(p, truth, EVERYTHING, names=NAMES)
    assert [t for t in report.warnings if "void" in t] == [
        "1 of 7 items have void labels only: drive_2."
    ]
    item = report.items[2]
    assert item["name"] == "drive_2"
    assert item["pavpu"]["pavpu"] is None
    assert item["pavpu"]["pavpu_reason"] == "no patch"
    rest = [i for i in range(N) if i != 2]
    others = uqeval.evaluate(p[rest], truth[rest], EVERYTHING, names=[NAMES[i] for i in rest])
    assert report.results == others.results


def test_a_set_of_void_is_refused(scene: Any) -> None:
    p, truth = scene[0], np.full_like(scene[1], 3)
    with pytest.raises(DataError, match=r"nothing is left to evaluate.*ignore_index 3"):
        uqeval.evaluate(p, truth, ignore_index=3)


def test_a_report_says_what_it_is_of(scene: Any, tmp_path: Path) -> None:
    p, truth = scene[0].copy(), scene[1]
    path = store(tmp_path / "p", p, (1, T, C, H, W))
    report = uqeval.evaluate(path, truth)
    assert report.inputs["predictions"][0]["path"] == str(path)
    assert (report.inputs["classes"], report.inputs["samples"]) == (C, T)
    assert [item["name"] for item in report.items] == NAMES
    assert set(report.metrics) >= {"pavpu.surplus", "segmentation.miou"}
    p[0, 0, :, 0, 0] = p[0, 0, ::-1, 0, 0]
    other = uqeval.evaluate(store(tmp_path / "q", p, (1, T, C, H, W)), truth)
    fingerprints = [r.inputs["predictions"][0]["fingerprint"] for r in (report, other)]
    assert fingerprints[0] != fingerprints[1]
    report.save(tmp_path / "report.json")
    assert uqeval.Report.load(tmp_path / "report.json") == report


@pytest.mark.parametrize("metrics", [{"pavpu": {}}, ["pavpu"], ("pavpu",)])
def test_metrics_in_the_place_of_labels(metrics: Any) -> None:
    with pytest.raises(UsageError, match=r"found the metrics pavpu; .*predictions, metrics="):
        uqeval.evaluate({"probs": np.ones((1, 2, 3, 4)) / 2}, metrics)


def test_an_iterator_is_an_option_as_a_list_is() -> None:
    """Options are read more than once: an iterator counted as no value the second time."""
    rng = np.random.default_rng(0)
    mean = rng.normal(5, 1, (3, 6, 6)).astype("f4")
    target = mean + 0.1
    target[:, 0] = 0
    arrays = {"mean": mean, "std": np.ones_like(mean), "target": target}
    options: dict[str, Any] = {"invalid": [0], "region": ["box:0:0.5,0:1"]}
    expected = uqeval.evaluate(arrays, metrics="regression", workers=1, **options)
    assert expected.results["regression"]["pixels"] == 90
    found = uqeval.evaluate(
        arrays, metrics="regression", workers=1, **{name: iter(v) for name, v in options.items()}
    )
    assert found.results == expected.results
