"""Shards of a run in rounds: the report of a single run to the bit, for every family at default
settings, and what does not fit together is refused."""

from __future__ import annotations

import json
import shutil
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_videos
from command import refused
from group_files import items
from saved_runs import told
from scenes import softmax

import uqeval
from uqeval import Report, StoreError, UsageError
from uqeval.engine.scheduler import Scheduler
from uqeval.inputs import InputOptions, open_inputs
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import tally_key
from uqeval.stores.states.fitted import _digest
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.rounds.shard import ShardRound
from uqeval.usecases.sweep.plan import draw

N, T, C, H, W = 4, 2, 3, 12, 16


def classes(folder: Path, void: slice = slice(0)) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    label = rng.integers(0, C, (N, H // 4, W // 4)).repeat(4, 1).repeat(4, 2).astype("u1")
    label[void] = 255
    hit = label[:, None, None] == np.arange(C)[:, None, None]
    z = np.exp(rng.normal(size=(N, T, C, H, W)) + 1.5 * hit)
    np.savez(folder / "p.npz", probs=(z / z.sum(2, keepdims=True)).astype("f4"), labels=label)
    return {"predictions": folder / "p.npz"}


def half_void(folder: Path) -> dict[str, Any]:
    """The first shard of two has nothing to evaluate."""
    return classes(folder, slice(N // 2))


def numbers(folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    mean = rng.normal(10, 2, (N, H, W)).astype("f4")
    target = (mean + rng.normal(0, 1, mean.shape)).astype("f4")
    std = rng.uniform(0.5, 2, mean.shape).astype("f4")
    np.savez(folder / "r.npz", mean=mean, std=std, target=target)
    return {"predictions": folder / "r.npz"}


def both(folder: Path) -> dict[str, Any]:
    data = classes(folder)
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 1, (N, C, H, W)).astype("f4")
    np.savez(folder / "q.npz", probs=p / p.sum(1, keepdims=True))
    return data | {"reference": folder / "q.npz"}


def video(folder: Path) -> dict[str, Any]:
    names = [name for sequence in "abc" for name in small_videos.numbered(3, sequence)]
    return {"video": small_videos.save_folder(folder / "video", small_videos.video(names))}


def two_sets(folder: Path) -> dict[str, Any]:
    """Items in-distribution, with labels and samples, and maps of items out of it."""
    labels = np.random.default_rng(4).integers(0, 4, (4, 8, 10)).astype("u1")
    labels[labels == 3] = 255
    np.savez(folder / "in.npz", probs=softmax(0, 4, 3, 3, 8, 10), labels=labels)
    mean_probs = softmax(1, 4, 3, 8, 10)
    np.savez(folder / "out.npz", predictions=mean_probs.argmax(1), mean_probs=mean_probs)
    return {"predictions": folder / "in.npz", "out": [folder / "out.npz"]}


def rated(folder: Path) -> dict[str, Any]:
    """Labels of three annotators."""
    labels = np.random.default_rng(3).integers(0, 3, (8, 3, 8, 10)).astype("u1")
    np.savez(folder / "rated.npz", probs=softmax(3, 8, 2, 3, 8, 10), labels=labels)
    return {"predictions": folder / "rated.npz"}


Data = Callable[[Path], dict[str, Any]]
#: Kind of data, metrics, options of inputs, and the passes that they need.
CASES: dict[str, tuple[Data, dict[str, Any], dict[str, Any], int]] = {
    "segmentation": (classes, {"segmentation": {}}, {}, 1),
    "pavpu": (classes, {"pavpu": {}}, {}, 3),
    "variants": (
        classes,
        {"pavpu": {"threshold": ["median", "max-surplus"], "threshold_scope": "class"}},
        {}, 3,
    ),
    "fixed": (
        classes, {"pavpu": {"threshold": "0.5", "curve_range": "0:1.4", "deciles": False}}, {}, 1
    ),
    "calibration": (classes, {"calibration": {}}, {}, 3),
    "samples": (classes, {"calibration": {"temperature_of": "samples"}}, {}, 4),
    "recalibration": (classes, {"calibration": {
        "temperature": False, "adaptive": False, "isotonic": True}}, {}, 2),
    "failure": (classes, {"failure": {}}, {}, 3),
    "region": (classes, {"failure": {}}, {"region": "boundary:2"}, 3),
    "images": (classes, {"image_failure": {}, "failure": {}}, {}, 3),
    "scope": (classes, {"pavpu": {"threshold_scope": "region"}}, {"region": "class:0"}, 3),
    "sparsification": (classes, {"sparsification": {}}, {}, 2),
    "brier": (classes, {"sparsification": {"error": "brier"}}, {}, 2),
    "ood": (two_sets, {"ood": {}}, {}, 3),
    "annotators": (rated, {"annotators": {}}, {}, 1),
    "divergence": (both, {"divergence": {}}, {}, 1),
    "regression": (numbers, {"regression": {}}, {}, 1),
    "rmse": (numbers, {"sparsification": {}}, {}, 2),
    "nmerci": (numbers, {"nmerci": {}}, {}, 2),
    "public-code": (numbers, {"nmerci": {"definition": "public-code"}}, {}, 3),
    "depth": (numbers, {"nmerci": {"depth_step": 2.0}}, {}, 5),
    "tc": (video, {"tc": {}}, {}, 1),
    "tracks": (video, {"tc": {"tracks": True}}, {}, 1),
    "void": (half_void, {"pavpu": {}, "failure": {}, "calibration": {}}, {}, 3),
    "several": (classes, {"pavpu": {}, "failure": {}, "calibration": {}}, {}, 3),
}  # fmt: skip


def shard(folder: Path, k: int, of: int, metrics: Any, given: dict[str, Any]) -> Report:
    states = folder / f"{k}.states.zip"
    return uqeval.evaluate(metrics=metrics, states=states, part=f"{k}/{of}", workers=1, **given)


def in_rounds(folder: Path, metrics: Any, given: dict[str, Any], of: int = 2) -> int:
    """Count all passes of all shards; return how many rounds it took."""
    fitted: dict[str, Any] = {}
    for passes in range(1, 10):
        for k in range(1, of + 1):
            shard(folder, k, of, metrics, given | fitted)
        found = uqeval.fit_shards(folder, folder / "fitted.json")
        assert found.passes == passes
        if not found.unfinished:
            return passes
        fitted = {"fitted": folder / "fitted.json"}
    raise AssertionError("no end")


def check_rounds(folder: Path, metrics: Any, given: dict[str, Any]) -> int:
    """Assert that two shards in rounds have the report of a run; return the number of rounds."""
    (folder / "shards").mkdir()
    passes = in_rounds(folder / "shards", metrics, given)
    whole = uqeval.evaluate(metrics=metrics, workers=1, **given)
    assert told(uqeval.merge(folder / "shards")) == told(whole)
    return passes


@pytest.mark.parametrize("case", CASES)
def test_rounds_have_the_bits_of_a_single_run(case: str, tmp_path: Path) -> None:
    make, metrics, options, passes = CASES[case]
    assert check_rounds(tmp_path, metrics, make(tmp_path) | options) == passes


def test_only_counts_of_one_turn_are_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many regions as there are, counted one after the other where memory is small."""
    given = classes(tmp_path) | {"region": ["class:0", "class:1", "class:2"], "memory": "1MB"}
    states: list[weakref.ref[np.ndarray]] = []
    alive: list[int] = []

    def watched(count: Any, *arguments: Any) -> Any:
        alive.append(sum(state() is not None for state in states))
        result = count(*arguments)
        counted = result.values() if isinstance(result, dict) else [result]
        states.extend(weakref.ref(array) for own in counted if own for array in own.total.values())
        return result

    for name, of in (("_count", Scheduler), ("_shared", ShardRound)):
        counting = getattr(of, name)
        monkeypatch.setattr(of, name, lambda *given, own=counting: watched(own, *given))
    shards = tmp_path / "shards"
    shards.mkdir()
    assert in_rounds(shards, "failure", given) == 3
    of_shards = max(alive)
    assert len(alive) > 3 * 2 * 4
    states.clear()
    alive.clear()
    uqeval.evaluate(metrics="failure", workers=1, **given)
    assert of_shards <= max(alive)


SMALL = {"a": (4, 4), "b": (5, 4), "c": (3, 3), "d": (4, 4)}
PIXELS = {"a": (8, 8), "b": (8, 8), "c": (1, 1), "d": (1, 1)}


@pytest.mark.parametrize(
    ("sizes", "metrics", "options"),
    [
        (SMALL, "all", {}),
        (PIXELS, "calibration", {"region": "boundary:2"}),
        (PIXELS, {"pavpu": {"window": 2, "border": "partial"}}, {}),
    ],
)
def test_a_shard_decides_from_the_sizes_of_all_items(
    sizes: dict[str, tuple[int, int]], metrics: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    """Only one shard has the small items."""
    given = {"predictions": items(tmp_path / "p.zarr", sizes)} | options
    shards = tmp_path / "shards"
    shards.mkdir()
    in_rounds(shards, metrics, given)
    assert told(uqeval.merge(shards)) == told(uqeval.evaluate(metrics=metrics, workers=1, **given))


@pytest.mark.parametrize("make", [classes, numbers, two_sets, video])
def test_a_shard_has_names_and_sizes_of_all_items(
    make: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    given = make(tmp_path)
    predictions = given.pop("predictions", None)
    whole, *shards = (
        open_inputs(predictions, None, InputOptions(part=part, **given)).info()
        for part in (None, "1/2", "2/2")
    )
    assert not whole.names_digest
    for info in shards:
        assert tuple(info.names_and_sizes) == tuple(whole.names_and_sizes)
        assert info.names_digest == shards[0].names_digest != ""


def test_shards_with_other_names_are_refused(tmp_path: Path) -> None:
    """The names of the first shard and of the second are not those of one run."""
    names = ["abcd", "bacd"]
    (tmp_path / "fit.txt").write_text("a\nc\n")
    metrics = {"conformal": {"alpha": 0.5, "fit_on": str(tmp_path / "fit.txt")}}
    given = [classes(tmp_path) | {"names": list(text)} for text in names]
    for k in (1, 2):
        shard(tmp_path, k, 2, metrics, given[k - 1])
    with pytest.raises(UsageError, match=r"differ in the names of the items \(names\)\."):
        uqeval.merge(tmp_path)
    shard(tmp_path, 2, 2, metrics, given[0])
    fitted = {"fitted": tmp_path / "fitted.json"}
    uqeval.fit_shards(tmp_path, fitted["fitted"])
    with pytest.raises(UsageError, match=r"differ in the names of the items \(names\)\."):
        shard(tmp_path, 2, 2, metrics, given[1] | fitted)


def test_rounds_of_a_single_shard(tmp_path: Path) -> None:
    given = classes(tmp_path)
    shards = tmp_path / "shards"
    shards.mkdir()
    assert in_rounds(shards, "failure", given, of=1) == 3
    merged, whole = uqeval.merge(shards), uqeval.evaluate(metrics="failure", workers=1, **given)
    assert told(merged) == told(whole)
    assert merged.inputs == whole.inputs


SWEPT = {"metrics": ["pavpu", "segmentation"], "samples": [1, 2], "repeats": 1}


def swept(folder: Path, k: int, **options: Any) -> Report:
    states = folder / f"{k}.states.zip"
    given: dict[str, Any] = SWEPT | options
    return uqeval.sweep(folder / "p.npz", part=f"{k}/2", states=states, **given)


def test_rounds_of_a_sweep(tmp_path: Path) -> None:
    classes(tmp_path)
    fitted: dict[str, Any] = {}
    for left in (("pavpu",), ()):
        for k in (1, 2):
            swept(tmp_path, k, **fitted)
        assert uqeval.fit_shards(tmp_path, tmp_path / "f.json").unfinished == left
        if left:
            with pytest.raises(UsageError, match="pavpu: the shards have counted 1 pass"):
                uqeval.merge(tmp_path)
        fitted = {"fitted": tmp_path / "f.json"}
    given: dict[str, Any] = SWEPT
    assert told(uqeval.merge(tmp_path)) == told(uqeval.sweep(tmp_path / "p.npz", **given))
    with pytest.raises(UsageError, match="without intervals"):
        uqeval.merge(tmp_path, ci=0.9)
    with pytest.raises(UsageError, match="give states=FILE"):
        uqeval.sweep(tmp_path / "p.npz", part="1/2", **given)


def test_shards_of_a_sweep_in_one_pass(tmp_path: Path) -> None:
    classes(tmp_path)
    for k in (1, 2):
        swept(tmp_path, k, metrics=["segmentation"])
    given: dict[str, Any] = SWEPT | {"metrics": ["segmentation"]}
    assert told(uqeval.merge(tmp_path)) == told(uqeval.sweep(tmp_path / "p.npz", **given))
    assert not uqeval.fit_shards(tmp_path, tmp_path / "f.json").unfinished


@pytest.mark.parametrize("unused", [{"map_cache": "m"}, {"states": "s.zip"}, {"resume": True}])
def test_a_sweep_of_all_items_saves_nothing(tmp_path: Path, unused: dict[str, Any]) -> None:
    classes(tmp_path)
    given: dict[str, Any] = SWEPT | unused
    with pytest.raises(UsageError, match=next(iter(unused))):
        uqeval.sweep(tmp_path / "p.npz", **given)


def drawn(seed: int) -> list[list[tuple[int, ...]]]:
    return draw(T, [1, 2], [1, 1], seed)


def test_other_subsets_are_another_sweep(tmp_path: Path) -> None:
    classes(tmp_path)
    for k in (1, 2):
        swept(tmp_path, k)
    uqeval.fit_shards(tmp_path, tmp_path / "f.json")
    seeds = (seed for seed in range(1, 20) if drawn(seed) != drawn(0))
    seed = next(seeds)
    with pytest.raises(UsageError, match="of sweep: "):
        swept(tmp_path, 1, fitted=tmp_path / "f.json", seed=seed)
    assert swept(tmp_path, 1, seed=seed).timing["items_reused"] == 0


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the states of the first round of three shards, and `fitted.json` of it."""
    folder = tmp_path_factory.mktemp("first")
    given = classes(folder)
    for k in (1, 2, 3):
        shard(folder, k, 3, {"failure": {}}, given)
    uqeval.fit_shards(folder, folder / "fitted.json")
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def copied(first: Path, folder: Path) -> Path:
    for path in first.iterdir():
        shutil.copy(path, folder)
    return folder


def again(folder: Path, k: int = 1, of: int = 3, metrics: Any = None, **options: Any) -> Report:
    """Count the second pass of a shard."""
    given = {"predictions": folder / "p.npz", "fitted": folder / "fitted.json", **options}
    return shard(folder, k, of, metrics or {"failure": {}}, given)


def test_what_a_shard_says(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    report = again(own)
    assert report.partial and set(report.results) == {"segmentation"}
    assert any("failure: 2 passes are counted" in text for text in report.warnings)
    assert set(report.settings) == {"segmentation", "failure"}
    assert [item["name"] for item in report.items] == ["0"]
    assert report.timing["passes"] == 1


def test_a_round_may_be_repeated(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    again(own)
    again(own)
    again(own, 2), again(own, 3)
    assert uqeval.fit_shards(own, own / "fitted.json").passes == 2


def test_shards_of_different_rounds(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    again(own, 2)
    with pytest.raises(UsageError, match=r"has counted 2 passes, .*1\.states\.zip only 1.*shard 1"):
        uqeval.merge(own)
    with pytest.raises(UsageError, match="different rounds"):
        uqeval.fit_shards(own, own / "g.json")
    assert not (own / "g.json").exists()


@pytest.mark.parametrize("other", [(2,), (1, 2)])
def test_shards_on_other_processors(
    other: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second round of some shards is counted where exp has other last digits."""
    given, fitted = numbers(tmp_path), tmp_path / "fitted.json"
    for options in ({}, {"fitted": fitted}):
        for k in (1, 2):
            with monkeypatch.context() as patch:
                if options and k in other:
                    patch.setattr("uqeval.engine.scheduler.last_digits", lambda: "other")
                shard(tmp_path, k, 2, "nmerci", given | options)
        states = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
        warnings = uqeval.fit_shards(states, fitted).warnings
        assert bool(warnings) == bool(options)
    which = "shards 2 and 1 were" if other == (2,) else "rounds of the shards were"
    assert warnings[0].startswith(f"{which} counted on different kinds of processors")
    merged = uqeval.merge(states, states=tmp_path / "m.zip")
    assert merged.warnings.count(warnings[0]) == 1
    again = uqeval.merge(tmp_path / "m.zip")
    assert again.warnings.count(warnings[0]) == 1


def test_shards_after_different_fits(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    again(own, 1)
    fitted = json.loads((own / "fitted.json").read_text())
    fitted["unfinished"].append("other")
    write_fitted(own / "fitted.json", fitted)
    again(own, 2), again(own, 3)
    with pytest.raises(UsageError, match="follow from different files of `uqeval merge --fit`"):
        uqeval.merge(own)


def write_fitted(path: Path, record: dict[str, Any]) -> None:
    """Write a file of fits with its digest."""
    record = {name: value for name, value in record.items() if name != "digest"}
    path.write_text(json.dumps(record | {"digest": _digest(record)}))


def test_a_later_round_needs_the_states(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    fitted = {"part": "1/3", "fitted": own / "fitted.json", "workers": 1}
    refused(
        lambda: uqeval.evaluate(own / "p.npz", metrics="failure", **fitted),
        "continues from the states of the previous round, but without states there are none. Give "
        "the same states as in the first round of shard 1.",
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"metrics": {"failure": {"threshold": "0.5"}}},
            "threshold of failure: 'mean' and '0.5'",
        ),
        ({"metrics": {"pavpu": {}}}, "differ in metrics"),
        ({"of": 4}, "is of 3 shards, part names one of 4"),
        ({"k": 2, "states": "1"}, "the states of other items than shard 2"),
        ({"states": "none"}, "does not exist. Give the same states"),
        ({"ignore_index": 0}, r"the void id \(ignore_index\): 255 and 0"),
        ({"fitted": "none.json"}, "No such file"),
    ],
)
def test_what_does_not_fit(options: dict[str, Any], says: str, first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    before = files(own)
    options = {"k": 1, "of": 3, "metrics": {"failure": {}}, "fitted": own / "fitted.json"} | options
    k, of = options.pop("k"), options.pop("of")
    states = own / f"{options.pop('states', k)}.states.zip"
    with pytest.raises((UsageError, StoreError), match=says):
        uqeval.evaluate(own / "p.npz", part=f"{k}/{of}", states=states, **options)
    assert files(own) == before


def test_another_store(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    classes(own, slice(1))
    with pytest.raises(UsageError, match="differ in the content of the stores"):
        again(own)


def test_states_that_the_fits_were_not_made_from(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    fitted = json.loads((own / "fitted.json").read_text())
    fitted["shards"][0] = "0" * 64
    write_fitted(own / "fitted.json", fitted)
    with pytest.raises(UsageError, match="was counted in another round"):
        again(own)


NAN = float("nan")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"schema": "uqeval.fitted/9"}, "its schema is 'uqeval.fitted/9'"),
        ({"passes": "1"}, "`passes` is '1'"),
        ({"passes": 0}, "`passes` is 0; expected a number of at least 1"),
        ({"shards": [1, 2, 3]}, r"`shards\.0` is 1; expected a text"),
        ({"totals": {"a": {"total": "*"}}}, "its totals are damaged"),
        ({"totals": {"a": 5}}, r"`totals\.a` is 5; expected a record"),
        ({"run": {}}, r"`run\.uqeval_version` is missing"),
        ({"unfinished": []}, "all passes are counted"),
        (None, "was changed after it was written"),
        ({"passes": NAN}, "NaN is not a number that this file may hold"),
        ({"run": NAN}, "NaN is not a number that this file may hold"),
        ("text", "is not a file of `uqeval merge --fit`"),
    ],
)
def test_damaged_fits(change: Any, says: str, first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    path = own / "fitted.json"
    record = json.loads(path.read_text())
    if change is None:
        path.write_text(json.dumps(record | {"passes": 2}))
    elif isinstance(change, str):
        path.write_text(change)
    elif change == {"run": NAN}:
        path.write_text(json.dumps(record | {"run": record["run"] | {"more": NAN}}))
    else:
        write_fitted(path, record | change)
    before = files(own)
    with pytest.raises((StoreError, UsageError), match=says):
        again(own)
    assert files(own) == before


def test_fits_of_another_version_of_the_maps(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    record = json.loads((own / "fitted.json").read_text())
    record["run"]["maps_version"] -= 1
    write_fitted(own / "fitted.json", record)
    with pytest.raises(UsageError, match=r"is of another run: .* the version of the maps"):
        again(own)


def test_a_forged_run(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    record = json.loads((own / "fitted.json").read_text())
    del record["run"]["facts"]
    write_fitted(own / "fitted.json", record)
    with pytest.raises(StoreError, match=r"`run\.facts` is missing"):
        again(own)


def test_forged_totals(first: Path, tmp_path: Path) -> None:
    """Totals of another tally, and impossible ones, are refused before they are used."""
    own = copied(first, tmp_path)
    record = json.loads((own / "fitted.json").read_text())
    names = list(record["totals"])
    record["totals"][names[0]], record["totals"][names[-1]] = (
        record["totals"][names[-1]], record["totals"][names[0]],
    )  # fmt: skip
    write_fitted(own / "fitted.json", record)
    with pytest.raises(StoreError, match=r"the total of .* is damaged"):
        again(own)


def test_fits_that_lack_totals(first: Path, tmp_path: Path) -> None:
    """Shards count the first pass again, and the next fit has it."""
    own = copied(first, tmp_path)
    record = json.loads((own / "fitted.json").read_text())
    write_fitted(own / "fitted.json", record | {"totals": {}})
    for k in (1, 2, 3):
        assert again(own, k).timing["passes"] == 1
    assert uqeval.fit_shards(own, own / "g.json").totals.keys() == record["totals"].keys()


def test_intervals_of_a_shard_are_those_of_the_merge(first: Path, tmp_path: Path) -> None:
    own = copied(first, tmp_path)
    report = again(own, ci=0.9)
    assert not report.intervals
    assert any("`uqeval merge SHARDS --ci LEVEL --" in text for text in report.warnings)
    with pytest.raises(UsageError, match="give states=FILE"):
        uqeval.evaluate(own / "p.npz", None, "failure", part="1/3", ci=0.9)


def test_the_states_of_a_merge_are_those_of_a_run(tmp_path: Path) -> None:
    """Without the states that only rounds need, and with totals: a later run reuses them."""
    given = numbers(tmp_path)
    shards, metrics = tmp_path / "shards", {"sparsification": {}}
    shards.mkdir()
    in_rounds(shards, metrics, given)
    merged, whole = tmp_path / "m.states.zip", tmp_path / "w.states.zip"
    uqeval.merge(shards, states=merged)
    uqeval.evaluate(metrics=metrics, states=whole, workers=1, **given)
    assert contents(merged) == contents(whole)
    of_shard, of_whole = SavedStates(shards / "1.states.zip"), SavedStates(whole)
    assert len(of_shard.parameters()) > len(of_whole.parameters())
    index = SavedStates(merged).index
    for key in of_whole.index.keys() - {"stamps"}:  # of files that are just written there are none
        assert index[key] == of_whole.index[key], key
    assert index.keys() == of_whole.index.keys()


def contents(path: Path) -> dict[Any, Any]:
    """States by tally, and totals by name."""
    saved = SavedStates(path)
    states = {tally_key(p): list(saved.states(p, 1 << 30)) for p in saved.parameters()}
    return states | {
        name: PackedItems(saved.total_named(name), 1).states(1 << 30) for name in saved.totals()
    }


@pytest.mark.parametrize(
    ("family", "options", "made"),
    [
        ("calibration", {"adaptive": False}, classes),
        ("conformal", {"alpha": 0.5}, classes),
        ("conformal", {"alpha": 0.5}, numbers),
        ("regression", {"sigma_scale": True}, numbers),
    ],
)
def test_fits_on_items_of_other_shards(
    family: str, options: dict[str, Any], made: Callable[[Path], dict[str, Any]], tmp_path: Path
) -> None:
    given = made(tmp_path)
    (tmp_path / "fit.txt").write_text("0\n3\n")  # one in each shard
    metrics = {family: options | {"fit_on": str(tmp_path / "fit.txt")}}
    check_rounds(tmp_path, metrics, given)


def test_a_file_of_fit_items_is_compared_by_its_names(tmp_path: Path) -> None:
    """Its path may differ from machine to machine; other names in the same file are refused."""
    given, folder = classes(tmp_path), tmp_path / "shards"
    folder.mkdir()
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]

    def run(round_of: dict[str, Any], k: int) -> Report:
        options = {"adaptive": False, "fit_on": str(paths[k - 1])}
        return shard(folder, k, 2, {"calibration": options}, given | round_of)

    fitted: dict[str, Any] = {}
    unfinished = ["calibration"]
    while unfinished:
        for k, path in enumerate(paths, start=1):
            path.write_text("0\n3\n")
            run(fitted, k)
        unfinished = uqeval.fit_shards(folder, folder / "fitted.json").unfinished
        fitted = {"fitted": folder / "fitted.json"}
    metrics = {"calibration": {"adaptive": False, "fit_on": str(paths[0])}}
    whole = uqeval.evaluate(metrics=metrics, workers=1, **given)
    assert told(uqeval.merge(folder)) == told(whole)
    paths[1].write_text("0\n2\n")
    with pytest.raises(UsageError, match=r"fit_on of calibration: \['0', '3'\] and \['0', '2'\]"):
        run(fitted, 2)


def test_regions_of_numbers(tmp_path: Path) -> None:
    """A region may be empty, and has no warnings of its own, also after a merge."""
    given = numbers(tmp_path) | {"region": ["box:0:0.5,0:1", "depth:1000-inf"]}
    metrics = {"regression": {"sigma_scale": True}, "nmerci": {}, "sparsification": {}}
    check_rounds(tmp_path, metrics, given)


def test_intervals_of_regions_of_a_video(tmp_path: Path) -> None:
    """The states of a region count its pixels alone."""
    given = video(tmp_path) | {"region": "box:0:0.5,0:1"}
    (tmp_path / "shards").mkdir()
    in_rounds(tmp_path / "shards", "tc", given)
    whole = uqeval.evaluate(metrics="tc", workers=1, ci=0.9, draws=100, **given)
    assert any("box" in address for address in whole.intervals)
    assert told(uqeval.merge(tmp_path / "shards", ci=0.9, draws=100)) == told(whole)


def test_shards_of_another_mask_or_reference_are_refused(tmp_path: Path) -> None:
    """Their paths are the same, and so are the predictions; the content has changed."""
    data = both(tmp_path)
    masks, reference = tmp_path / "m.npy", data.pop("reference")
    mask = np.zeros((N, H, W), "u1")
    mask[:, 3:5] = 1
    np.save(masks, mask)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ood_mask": masks}, "ood"), ({"reference": reference}, "divergence"),
    ]  # fmt: skip
    for options, metric in cases:
        folder = tmp_path / metric
        folder.mkdir()
        shard(folder, 1, 2, [metric], data | options)
        if metric == "ood":
            np.save(masks, 1 - mask)
        else:
            np.savez(reference, probs=np.load(reference)["probs"][:, ::-1])
        shard(folder, 2, 2, [metric], data | options)
        with pytest.raises(UsageError, match="shards of different data"):
            if metric == "divergence":  # it needs one pass
                uqeval.merge(folder)
            else:
                uqeval.fit_shards(folder, folder / "f.json")
