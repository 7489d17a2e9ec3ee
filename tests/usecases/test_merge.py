"""Merging saved states: parts give the whole again, and what cannot be joined is refused."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged import reseal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from saved_runs import told
from small_stores import labels, probs, save

import uqeval
from uqeval import StoreError, UsageError
from uqeval.inputs.options import Part
from uqeval.maps import VERSION
from uqeval.metrics._evaluation import Section
from uqeval.report.markdown import to_markdown
from uqeval.statistics.checked_states import checked_states
from uqeval.statistics.merged_states import MergedStates
from uqeval.statistics.run_differences import difference
from uqeval.statistics.saved_counts import sum_states
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import tally_key
from uqeval.stores.states.saved import SavedStates
from uqeval.stores.states.writer import StatesWriter
from uqeval.usecases.merge import merge, states_of
from uqeval.usecases.merged_results import unfitted_evaluations
from uqeval.usecases.rethreshold import _without

ITEMS = 7
NAMES = [f"i{k}" for k in range(ITEMS)]
#: Families whose merged results have the bits of a run of the whole, thresholds being numbers.
EXACT: dict[str, tuple[str, dict[str, Any]]] = {
    "segmentation": ("classes", {}),
    "pavpu": ("classes", {"threshold": ["0.5", "0.9"], "curve_range": "0:1.6", "deciles": False}),
    "regression": ("regression", {}),
    "sparsification": ("classes", {"scope": "item"}),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("merging")
    for kind in ("classes", "regression"):
        save(folder / kind, arrays_of(kind), {"names": NAMES})
    save(folder / "together", arrays_of("classes"), {"names": NAMES}, together=3)
    return folder


def arrays_of(kind: str) -> dict[str, Any]:
    if kind == "classes":
        return {"probs": probs(ITEMS), "labels": labels(ITEMS)}
    rng = np.random.default_rng(0)
    mean = rng.normal(10, 2, (ITEMS, 20, 30)).astype("f4")
    target = mean + rng.normal(0, 1, mean.shape).astype("f4")
    std = rng.uniform(0.5, 2, mean.shape).astype("f4")
    return {"mean": mean, "std": std, "target": target}


def evaluated(store: Path, states: Path, metrics: Any, **options: Any) -> dict[str, Any]:
    report = uqeval.evaluate(store, None, metrics, states=states, workers=1, **options)
    return told(report)


def parts(store: Path, folder: Path, metrics: Any, of: int, **options: Any) -> list[Path]:
    found = []
    for k in range(1, of + 1):
        found.append(folder / f"{k}.states.zip")
        evaluated(store, found[-1], metrics, part=f"{k}/{of}", **options)
    return found


@pytest.mark.parametrize("family", EXACT)
def test_any_parts_have_the_bits_of_the_whole(
    family: str, stores: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kind, options = EXACT[family]
    folder = tmp_path_factory.mktemp(family)
    whole = evaluated(stores / kind, folder / "w.states.zip", {family: options})

    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(of=st.integers(2, ITEMS), order=st.randoms(use_true_random=False),
           store=st.sampled_from([kind, "together"] if kind == "classes" else [kind]))  # fmt: skip
    def check(of: int, order: Any, store: str) -> None:
        files = parts(stores / store, folder, {family: options}, of)
        order.shuffle(files)
        merged = told(merge(files, states=folder / "m.states.zip"))
        for key in ("results", "items", "numerics", "settings", "warnings"):
            assert whole[key] == merged[key], key
        if store == kind:
            assert whole["inputs"] == merged["inputs"]
        assert not merged["partial"]
        # And what is written is as good as what a run writes.
        again = told(merge(folder / "m.states.zip"))
        assert again["results"] == merged["results"]

    check()


def nights(folder: Path, metrics: Any, of: int) -> list[Path]:
    """Runs over stores that hold some of the items each: no shards of one run."""
    files = []
    for k in range(of):
        items = slice(k * ITEMS // of, (k + 1) * ITEMS // of)
        store = folder / f"night{k}.zarr"
        if not store.exists():
            arrays = {"probs": probs(ITEMS)[items], "labels": labels(ITEMS)[items]}
            save(store, arrays, {"names": NAMES[items]})
        files.append(folder / f"night{k}.states.zip")
        evaluated(store, files[-1], metrics)
    return files


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three sequences of four frames, with predictions that are a little wrong."""
    folder = tmp_path_factory.mktemp("video")
    rng = np.random.default_rng(2)
    for sequence in range(3):
        texture = rng.integers(0, 256, (50, 66, 3)).astype(np.uint8)
        ids = np.kron(rng.integers(0, 4, (7, 9)), np.ones((8, 8), int)).astype(np.uint8)
        for kind, image in (("frames", texture), ("predictions", ids), ("labels", ids)):
            (folder / kind).mkdir(exist_ok=True)
            for t in range(4):
                frame = image[t : t + 32, t : t + 48].copy()
                if kind == "predictions":
                    frame[rng.integers(0, 32, 20), rng.integers(0, 48, 20)] = 1
                Image.fromarray(frame).save(folder / kind / f"v{sequence}_{t:03}.png")
    return folder


@pytest.mark.parametrize(("options", "of"), [({}, 4), ({"tracks": True}, 3)])
def test_parts_of_a_video(options: dict[str, Any], of: int, video: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"video": video}
    whole = told(uqeval.evaluate(None, None, {"tc": options}, workers=1, **given))
    files = []
    for k in range(1, of + 1):
        files.append(tmp_path / f"{k}.states.zip")
        uqeval.evaluate(
            None, None, {"tc": options}, states=files[-1], workers=1, part=f"{k}/{of}", **given
        )
    assert told(merge(files[::-1])) == whole


def test_parts_are_balanced_and_cover_everything() -> None:
    for count in range(1, 12):
        for of in range(1, count + 1):
            ranges = [Part(k, of).of_items(count) for k in range(1, of + 1)]
            assert [i for own in ranges for i in own] == list(range(count))
            assert max(map(len, ranges)) - min(map(len, ranges)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "a/b", "1/0", "-1/2", "1/3/4", ""])
def test_what_is_no_part(text: str) -> None:
    with pytest.raises(UsageError, match="expected K/N"):
        Part.parse(text)


def test_more_parts_than_items(stores: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="some would be empty"):
        evaluated(stores / "classes", tmp_path / "x.zip", "segmentation", part="1/99")


def test_a_part_excludes_a_limit(stores: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        evaluated(stores / "classes", tmp_path / "x.zip", "segmentation", part="1/2", limit=1)


def test_ends_of_sequences() -> None:
    assert Part(1, 2).of_items(9, [3, 6, 9]) == range(3)
    assert Part(2, 2).of_items(9, [3, 6, 9]) == range(3, 9)
    for k in range(1, 5):
        with pytest.raises(UsageError, match="not enough sequences"):
            Part(k, 4).of_items(9, [3, 6, 9])


def test_what_is_not_fitted_on_the_whole_is_null_with_a_reason(
    stores: Path, tmp_path: Path
) -> None:
    files = nights(tmp_path, "calibration", 2)
    merged = told(merge(files))
    whole = evaluated(stores / "classes", tmp_path / "w.zip", "calibration")
    found, wanted = merged["results"]["calibration"], whole["results"]["calibration"]
    for field in ("ece", "mce", "classwise_ece", "brier", "nll", "reliability", "per_class"):
        assert found[field] == wanted[field]
    assert found["adaptive_ece"] is None
    assert "needs the pixels" in found["adaptive_ece_reason"]
    assert found["temperature"]["value"] is None
    assert any("adaptive_ece" in text for text in merged["warnings"])
    assert merged["items"] == whole["items"]


@pytest.mark.parametrize("family", ["failure", "sparsification"])
def test_ranks_are_approximate_and_marked(family: str, stores: Path, tmp_path: Path) -> None:
    options = {"threshold": "0.5"} if family == "failure" else {}
    files = nights(tmp_path, {family: options}, 3)
    merged = told(merge(files))
    whole = evaluated(stores / "classes", tmp_path / "w.zip", {family: options})
    score = "auroc" if family == "failure" else "ause"
    value, wanted = (own["results"][family][score] for own in (merged, whole))
    assert value == pytest.approx(wanted, rel=0.02)
    assert merged["metrics"][f"{family}.{score}"]["approximate"] == 2**-10
    assert "approximate" not in whole["metrics"][f"{family}.{score}"]
    assert "approximate" not in merged["metrics"]["segmentation.miou"]
    assert any("relative width" in text for text in merged["warnings"])
    if family == "failure":
        row = merged["results"]["failure"]["per_class"][0]
        assert row["auroc"] is None
        assert "needs the pixels" in row["auroc_reason"]
    assert to_markdown(merge(files))
    assert merged["items"] == whole["items"]


def test_thresholds_of_their_own_are_refused_with_the_pooled_numbers(
    stores: Path, tmp_path: Path
) -> None:
    files = nights(tmp_path, {"pavpu": {"deciles": False}}, 2)
    with pytest.raises(UsageError, match=r"threshold=[0-9.]+ curve_range=") as refused:
        merge(files)
    named = str(refused.value).rstrip(".").replace("'", "").split()[-2:]
    options = {"deciles": False, **dict(word.split("=") for word in named)}
    whole = evaluated(stores / "classes", tmp_path / "w.zip", {"pavpu": {"deciles": False}})
    merged = told(merge(nights(tmp_path, {"pavpu": options}, 2)))
    assert merged["results"] == whole["results"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"threshold": "median"}, "do not hold the threshold of all items"),
        ({"threshold_scope": "class"}, "evaluate all items at once"),
    ],
)
def test_thresholds_that_cannot_be_pooled(
    options: dict[str, str], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=says):
        merge(nights(tmp_path, {"pavpu": options}, 2))


def test_missing_parts_are_named(stores: Path, tmp_path: Path) -> None:
    files = parts(stores / "classes", tmp_path, "segmentation", 4)
    with pytest.raises(UsageError, match="of 4 shards, numbers 2, 4 are missing"):
        merge([files[2], files[0]])
    with pytest.raises(UsageError, match="of 4 shards, number 3 is missing"):
        merge([*files[:2], files[3]])
    report = merge([files[2], files[0]], allow_missing=True)
    assert report.partial
    assert [item["name"] for item in report.items] == ["i0", "i3", "i4"]
    assert report.inputs["missing_parts"] == {"numbers": [2, 4], "of": 4}


def test_one_part_alone_is_not_the_whole(stores: Path, tmp_path: Path) -> None:
    files = parts(stores / "classes", tmp_path, "segmentation", 3)
    with pytest.raises(UsageError, match="of 3 shards, numbers 1, 3 are missing"):
        merge(files[1])
    assert merge(files[1], allow_missing=True).partial
    union = tmp_path / "union.states.zip"
    merge(files[:2], allow_missing=True, states=union)
    again = merge(union)  # of a union it was said that parts are missing
    assert again.partial and again.inputs["missing_parts"] == {"numbers": [3], "of": 3}


def test_what_cannot_be_joined(stores: Path, tmp_path: Path) -> None:
    one, two, three = parts(stores / "classes", tmp_path, "segmentation", 3)
    with pytest.raises(UsageError, match="is given twice"):
        merge([one, one])
    copy = shutil.copy(one, tmp_path / "copy.states.zip")
    with pytest.raises(UsageError, match="are both shard 1 of 3"):
        merge([one, copy, two, three])
    evaluated(stores / "classes", tmp_path / "w.states.zip", "segmentation")
    shutil.copy(tmp_path / "w.states.zip", copy)
    with pytest.raises(UsageError, match=r"share 7 items: i0, i1"):
        merge([tmp_path / "w.states.zip", copy])
    other = tmp_path / "other.states.zip"
    evaluated(stores / "classes", other, "segmentation", part="2/4")
    with pytest.raises(UsageError, match=r"one of 3 shards.*one of 4"):
        merge([one, other])
    evaluated(stores / "together", other, "segmentation", part="2/3")
    with pytest.raises(UsageError, match="their stores differ"):
        merge([one, other, three])
    evaluated(stores / "classes", other, "segmentation", part="2/3", sum_tolerance=0.5)
    with pytest.raises(UsageError, match=r"differ in sum_tolerance: None and 0\.5"):
        merge([one, other, three])
    evaluated(stores / "classes", other, {"pavpu": {"window": 2}}, part="2/3")
    with pytest.raises(UsageError, match="differ in metrics"):
        merge([one, other, three])
    windows = []
    for k in (1, 2):
        windows.append(tmp_path / f"window{k}.states.zip")
        given = {"pavpu": {"threshold": "0.5", "window": k}}
        evaluated(stores / "classes", windows[-1], given, part=f"{k}/2")
    with pytest.raises(UsageError, match="differ in window of pavpu: 1 and 2"):
        merge(windows)
    evaluated(stores / "regression", other, "regression", part="2/3")
    with pytest.raises(UsageError, match="differ in kind"):
        merge([one, other, three])
    evaluated(stores / "classes", other, "segmentation")
    with pytest.raises(UsageError, match="is not; join the shards first"):
        merge([one, other])


def test_states_with_a_number_in_another_spelling_are_joined(stores: Path, tmp_path: Path) -> None:
    """Earlier versions recorded numbers as the user wrote them."""
    first, second = (SavedStates.of_run(path).index for path in parts(
        stores / "classes", tmp_path, {"pavpu": {"threshold": 1, "window": 2}}, 2
    ))  # fmt: skip
    assert first["settings"]["pavpu"]["threshold"] == "1"
    second["settings"]["pavpu"]["threshold"] = "1.0"
    assert difference(first, second) is None
    second["settings"]["pavpu"]["threshold"] = "1.05"
    assert "--threshold of pavpu" in (difference(first, second) or "")
    # Nor does an option differ that has no effect, such as --region-share without a region.
    second["settings"]["pavpu"] |= {"threshold": "1", "region_share": 0.7}
    assert difference(first, second) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"median_scaling": True}, "median_scaling: False and True"),
        ({"baseline_focal": 20.0}, r"baseline_focal: None and 20\.0"),
        ({"invalid": 0}, r"invalid: None and \[0\.0\]"),
        ({"missing_chunks": "fill"}, "missing_chunks: 'error' and 'fill'"),
    ],
)
def test_numbers_of_other_units_are_not_pooled(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    target = np.random.default_rng(1).normal(10, 2, (2, 8, 8)).astype("f4")
    files = []
    for k, chosen in enumerate(({}, options)):
        arrays = {"mean": target + 1, "std": np.ones_like(target), "target": target}
        save(tmp_path / str(k), arrays, {"names": [f"{k}a", f"{k}b"]})
        files.append(tmp_path / f"{k}.states.zip")
        evaluated(tmp_path / str(k), files[-1], "regression", **chosen)
    with pytest.raises(UsageError, match=f"differ in {message}"):
        merge(files)


def test_a_warning_names_the_command_of_the_run(tmp_path: Path) -> None:
    target = np.zeros((4, 8, 8), "f4")
    target[:, 2:] = 5
    arrays = {"mean": target + 1, "std": np.ones_like(target), "target": target}
    path = save(tmp_path / "depths", arrays, {"names": NAMES[:4]})
    whole = evaluated(path, tmp_path / "w.states.zip", "regression")
    assert any(f": uqeval regression {path} --invalid 0" in text for text in whole["warnings"])
    assert told(merge(parts(path, tmp_path, "regression", 2))) == whole


def test_runs_over_different_stores(tmp_path: Path) -> None:
    values, truth = probs(ITEMS), labels(ITEMS)
    files = []
    for night, chosen in enumerate((slice(0, 3), slice(3, 7))):
        arrays = {"probs": values[chosen], "labels": truth[chosen]}
        store = save(tmp_path / f"night{night}.zarr", arrays, {"names": NAMES[chosen]})
        files.append(tmp_path / f"night{night}.states.zip")
        evaluated(store, files[-1], "segmentation")
    save(tmp_path / "all.zarr", {"probs": values, "labels": truth}, {"names": NAMES})
    whole = evaluated(tmp_path / "all.zarr", tmp_path / "w.zip", "segmentation")
    merged = told(merge(files))
    assert merged["results"] == whole["results"]
    assert merged["items"] == whole["items"]
    assert len(merged["inputs"]["predictions"]) == 2
    assert merged["inputs"]["items"] == ITEMS


def test_one_report_is_cut_anew(stores: Path, tmp_path: Path) -> None:
    whole = evaluated(stores / "classes", tmp_path / "w.states.zip", "failure")
    table = tmp_path / "meta.csv"
    rows = [f"{name},{'night' if k % 2 else 'day'}" for k, name in enumerate(NAMES)]
    table.write_text("\n".join(["name,light", *rows]))
    cut = merge(tmp_path / "w.states.zip", ci=0.9, slices=table, draws=100)
    assert told(cut)["results"] == whole["results"]  # exact, since nothing was joined
    assert set(cut.slices) == {"light=day", "light=night"}
    assert cut.intervals["segmentation.miou"]["level"] == 0.9
    run = evaluated(
        stores / "classes", tmp_path / "again.zip", "failure", ci=0.9, slices=table, draws=100
    )
    assert told(cut)["intervals"] == run["intervals"]
    again = merge(tmp_path / "again.zip", ci=0.9, slices=table, draws=100)
    assert told(again)["slices"] == run["slices"]
    for key, own in cut.slices.items():  # of ranks that the first run has not counted
        assert own["approximate"] == ["failure"] and run["slices"][key]["approximate"] == []
        assert own["intervals"].keys() == run["slices"][key]["intervals"].keys()
        assert own["results"]["segmentation"] == run["slices"][key]["results"]["segmentation"]


def test_one_report_keeps_its_warnings(tmp_path: Path) -> None:
    """A merge for intervals says as much about the scores as the run said."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), (8, 4, 6, 6)).transpose(0, 1, 4, 2, 3)
    mean = p.mean(1)
    truth = (mean.argmax(1) + (mean.max(1) > 0.55)) % 3  # certain where it is wrong
    save(tmp_path / "s", {"probs": p, "labels": truth.astype("u1")}, {"names": [*"abcdefgh"]})
    states = tmp_path / "r.states.zip"
    whole = uqeval.evaluate(tmp_path / "s", None, ["failure", "pavpu"], states=states)
    assert [text[:20] for text in whole.warnings] == ["failure: the AUROC is"[:20]]
    merged = merge(states, states=tmp_path / "again.states.zip")
    assert merged.warnings == whole.warnings
    assert merge(tmp_path / "again.states.zip").warnings == whole.warnings
    assert merge(states, threshold="range:0.5").warnings[:1] == whole.warnings


def test_warnings_of_another_threshold_are_left_out() -> None:
    warnings = [
        "pavpu: low.", "pavpu, failure: close.", "pavpu: of a part.",
        "pavpu: recomputed at the threshold 0.5 (0.5) from saved states; it was evaluated at 0.2.",
        "2 items have void labels only: a, b.",
    ]  # fmt: skip
    outdated = {"pavpu": Section({}, [], warnings=["low.", "close."])}
    assert _without(warnings, outdated) == ["failure: close.", warnings[2], warnings[4]]


def test_warnings_with_colons_in_their_text_and_keys_are_left_out_whole() -> None:
    key = "pavpu@map:a: b:1"
    texts = ["the threshold: low.", "low."]
    outdated = {key: Section({}, [], warnings=texts[:1]), "pavpu": Section({}, [], warnings=texts)}
    warnings = [f"{key}, failure: the threshold: low.", f"pavpu, {key}: low.", "x: is new: no."]
    left = ["failure: the threshold: low.", f"{key}: low.", "x: is new: no."]
    assert _without(warnings, outdated) == left


def test_merged_states_are_cut_like_those_of_the_whole(stores: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"ci": 0.9, "draws": 100}
    whole = evaluated(stores / "classes", tmp_path / "w.zip", "segmentation", **options)
    merged = merge(parts(stores / "classes", tmp_path, "segmentation", 3), **options)
    assert told(merged)["intervals"] == whole["intervals"]


# ---- files that are no good


def with_report(folder: Path, label: int) -> Path:
    """A report at `folder/r.json` with its states, of a store with another label of one pixel."""
    folder.mkdir()
    arrays = {"probs": probs(2), "labels": labels(2)}
    arrays["labels"][0, 0, 0] = label
    save(folder / "s", arrays, {"names": NAMES[:2]})
    report = uqeval.evaluate(folder / "s", states=folder / "r.states.zip", metrics="segmentation")
    path = folder / "r.json"
    report.save(path)
    return path


def rewritten(path: Path, to: Path, change: Any) -> Path:
    """A states file with its index changed."""
    saved = SavedStates(path)
    with StatesWriter(to) as writer:
        for parameters in saved.parameters():
            first = 0
            for block in saved.blocks(parameters):
                writer.add(tally_key(parameters), first, block)
                first += block.items
        index = {k: v for k, v in saved.index.items() if k != "schema"}
        change(index)
        writer.finish(index)
    return to


@pytest.fixture
def pair(stores: Path, tmp_path: Path) -> tuple[Path, Path]:
    one, two = parts(stores / "classes", tmp_path, "segmentation", 2)
    return one, two


def test_a_file_cut_short(pair: tuple[Path, Path]) -> None:
    one, two = pair
    data = two.read_bytes()
    for size in (0, 10, len(data) // 2, len(data) - 1):
        two.write_bytes(data[:size])
        with pytest.raises(StoreError, match="is not a states file"):
            merge([one, two])


@pytest.mark.parametrize("key", ["items", "facts", "inputs", "settings", "fitted", "records"])
def test_an_index_without_its_keys(key: str, pair: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = pair
    bad = rewritten(two, tmp_path / "bad.states.zip", lambda index: index.pop(key))
    with pytest.raises(StoreError, match=f"bad.states.zip is damaged: `{key}` is missing"):
        merge([one, bad])


def test_another_version(pair: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = pair
    change = {"uqeval_version": "0.0.9"}
    bad = rewritten(two, tmp_path / "bad.states.zip", lambda index: index.update(change))
    with pytest.raises(UsageError, match="the version of uqeval"):
        merge([one, bad])


def test_what_this_version_computed_of_another(stores: Path, tmp_path: Path) -> None:
    """The version of a report is the one that counted; intervals record their own."""
    states = [tmp_path / f"{name}.states.zip" for name in "ab"]
    old = []
    for file, limit in zip(states, (4, None), strict=True):
        names = tmp_path / f"{file.name}.txt"
        names.write_text("\n".join(f"{file.name}{k}" for k in range(ITEMS)))
        uqeval.evaluate(
            stores / "classes", None, "segmentation", states=file, names=names, limit=limit,
            workers=1,
        )  # fmt: skip
        change = {"uqeval_version": "0.0.9"}
        own = tmp_path / f"old-{file.name}"
        old.append(rewritten(file, own, lambda index, change=change: index.update(change)))
    now = merge(states[:1], ci=0.9)
    assert "uqeval_version" not in now.settings["intervals"]
    assert not any("from the counts" in text for text in [*now.warnings, *merge(old[:1]).warnings])
    for files, options, parts in (
        (old[:1], {"ci": 0.9}, "the intervals"), (old, {}, "the scores"),
        (old, {"ci": 0.9}, "the scores and the intervals"),
    ):  # fmt: skip
        report = merge(files, **options)  # type: ignore[arg-type]
        assert report.uqeval_version == "0.0.9"
        (warning,) = [text for text in report.warnings if "from the counts" in text]
        assert warning.startswith(
            f"uqeval {uqeval.__version__} computed {parts} from the counts of uqeval 0.0.9,"
        )
        recorded = report.settings.get("intervals", {}).get("uqeval_version")
        assert recorded == (uqeval.__version__ if options else None)


def test_another_version_of_the_maps(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """Two builds of one version may give other maps; states of earlier ones do not tell."""
    one, two = pair

    def of_version(path: Path, maps_version: int | None) -> Path:
        change = {"maps_version": maps_version}
        return rewritten(path, tmp_path / f"{maps_version}.zip", lambda i: i.update(change))

    assert SavedStates(one).index["maps_version"] == VERSION
    with pytest.raises(UsageError, match=f"the version of the maps.*: {VERSION} and 3"):
        merge([one, of_version(two, 3)])
    unknown = of_version(two, None)
    assert merge([one, unknown]).results == merge([one, two]).results
    three = of_version(two, 3)
    with pytest.raises(UsageError, match="the version of the maps"):
        MergedStates([SavedStates(unknown), SavedStates(three), SavedStates(one)])


def test_states_of_another_tally(pair: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = pair
    saved = SavedStates(two)
    bad = tmp_path / "bad.states.zip"
    with StatesWriter(bad) as writer:
        for parameters in saved.parameters():
            nonsense = PackedItems.of([b"nonsense"] * len(saved.index["items"]))
            writer.add(tally_key(parameters), 0, nonsense)
        writer.finish({k: v for k, v in saved.index.items() if k != "schema"})
    with pytest.raises(StoreError, match="not of class_counts"):
        merge([one, bad])


def test_states_of_another_run_are_refused(tmp_path: Path) -> None:
    mine = with_report(tmp_path / "mine", 0)
    theirs = with_report(tmp_path / "theirs", 1)
    shutil.copy(theirs.with_suffix(".states.zip"), mine.with_suffix(".states.zip"))
    with pytest.raises(StoreError, match="are not the states of"):
        merge(mine)


def test_a_changed_byte_is_noticed(pair: tuple[Path, Path]) -> None:
    one, two = pair
    data = bytearray(two.read_bytes())
    data[len(data) // 3] ^= 1
    two.write_bytes(data)
    with pytest.raises(StoreError, match="changed or damaged after they were written"):
        merge([one, two])


def test_a_bomb(pair: tuple[Path, Path], tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.states.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("index.json", b" " * 10**8)
    with pytest.raises(StoreError, match="compressed"):
        merge([pair[0], bomb])


def test_names_that_lead_out(pair: tuple[Path, Path], tmp_path: Path) -> None:
    one, two = pair
    with zipfile.ZipFile(two, "a") as file:
        file.writestr("../../outside", b"x")
    reseal(two)
    merge([one, two], states=tmp_path / "m.states.zip")
    assert not (tmp_path.parent.parent / "outside").exists()
    with zipfile.ZipFile(tmp_path / "m.states.zip") as merged:
        assert not any("outside" in name for name in merged.namelist())


def test_a_folder_and_its_reports(stores: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for k in (1, 2):
        states = folder / f"{k}.states.zip"
        report = uqeval.evaluate(
            stores / "classes", None, "segmentation", states=states, part=f"{k}/2"
        )
        report.save(folder / f"{k}.json")
    by_folder = told(merge(folder))
    assert told(merge([folder / "2.json", folder / "1.json"])) == by_folder
    (folder / "1.states.zip").unlink()
    with pytest.raises(StoreError, match="does not exist"):
        merge(folder / "1.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no states files"):
        merge(tmp_path / "empty")
    with pytest.raises(StoreError):
        merge(tmp_path / "none.states.zip")
    with pytest.raises(UsageError, match="nothing to merge"):
        merge([])


def test_a_variant_named_by_a_path_keeps_its_parts(tmp_path: Path) -> None:
    """Its key holds `/`, which divides parts from variants."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (4, 2, 8, 8)).transpose(0, 1, 4, 2, 3).astype("f4")
    names = [tmp_path / name for name in ("a.txt", "b.txt")]
    for i, path in enumerate(names):
        path.write_text(f"{i}\n{i + 1}\n")
    options = {"fit_on": [str(path) for path in names]}
    labels = rng.integers(0, 3, (4, 8, 8)).astype("u1")
    report = uqeval.evaluate(probs, labels, {"calibration": options}, ci=0.9, draws=100)
    other = f"calibration[fit_on={names[1]}]"
    for key in ("calibration", other):
        assert report.results[key]["temperature"]["held_out"]["items"] == 2
    assert any(address.startswith(other) for address in report.intervals)


def test_tables_of_items_are_data(tmp_path: Path) -> None:
    """Each run has the cells of its own items, in a table of any path."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), (6, 8, 8)).transpose(0, 3, 1, 2).astype("f4")
    labels = rng.integers(0, 3, (6, 8, 8)).astype("u1")
    names = [f"i{k}" for k in range(6)]

    def run(part: slice, table: str) -> Path:
        rows = [f"{name},{(names.index(name) - 3) ** 2}" for name in names[part]]
        (tmp_path / table).write_text("\n".join(["name,expert", *rows]))
        options = {"confidence": "column:expert", "item_table": tmp_path / table}
        states = tmp_path / f"{table}.states.zip"
        uqeval.evaluate(
            probs[part], labels[part], {"image_failure": options}, names=names[part], states=states
        )
        return states

    whole = merge([run(slice(6), "all.csv")])
    joined = merge([run(slice(4), "a.csv"), run(slice(4, 6), "b.csv")])
    assert joined.results["image_failure"] == whole.results["image_failure"]
    confidences = [item["image_failure"]["confidence"] for item in joined.items]
    assert confidences == [9, 4, 1, 0, 1, 4]


def test_sums_of_states_leave_items_out(stores: Path, tmp_path: Path) -> None:
    """States are checked and added many items at a time, with the bits of one after another."""
    files = []
    for k in (1, 2, 3):
        path = tmp_path / f"{k}.states.zip"
        families = {"failure": {}, "calibration": {"temperature": False}}
        uqeval.evaluate(stores / "classes", None, families, states=path, part=f"{k}/3")
        files.append(path)
    states = MergedStates(states_of(files))
    evaluations = unfitted_evaluations(states)
    tallies = {t for _, own in evaluations.values() for t in (*own.tallies(), *own.extra_tallies())}
    assert {"ranked_errors", "reliability"} <= {tally.id for tally in tallies}
    for tally in tallies:
        packed = [bytes(data) for data, _ in checked_states(states, tally)]
        for excluded in (set(), {1}, {0, 1, len(packed) - 1}):
            expected = tally.empty()
            kept = [data for k, data in enumerate(packed) if k not in excluded]
            for data in kept:
                tally.merge(expected, tally.load(data))
            result = sum_states(tally, states, excluded)
            for name, values in expected.items():
                assert values.tobytes() == result.total[name].tobytes(), (tally.id, name)
            assert [*map(bytes, result.items)] == (kept if tally.keeps_items else [])


@pytest.mark.parametrize("definition", ["kumar-l2", "kumar-l1"])
def test_bins_that_two_runs_share_by_chance_are_not_those_of_all_items(
    definition: str, tmp_path: Path
) -> None:
    """A run of one pixel has a single bin, two pixels have two."""
    options = {"definition": definition, "adaptive": False, "temperature": False}
    p = np.array([[0.1, 0.9], [0.2, 0.8]], "f4")
    for name, items in (("all", [0, 1]), ("a", [0]), ("b", [1])):
        uqeval.evaluate(
            p[items], np.array(items, "u1"), {"calibration": options}, axes="NC",
            names=[str(i) for i in items], states=tmp_path / f"{name}.zip",
        )  # fmt: skip
    field = definition.replace("-", "_")
    merged = uqeval.merge([tmp_path / "a.zip", tmp_path / "b.zip"]).results["calibration"]
    assert merged[field] is None and "pixels of all items" in merged[f"{field}_reason"]
    alone = uqeval.merge([tmp_path / "a.zip"]).results["calibration"]
    assert field in alone and "pixels of all items" not in alone.get(f"{field}_reason", "")


#: Runs with all parts that are no default; thresholds are numbers, which all runs share.
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    "calibration": ("classes", {"isotonic": True, "vector": True, "estimator": "roelofs-sweep"}),
    "pavpu": ("classes", {"threshold": "0.5", "curve_range": "0:1.6"}),
    "failure": ("classes", {"threshold": "0.5"}),
    "segmentation": ("classes", {}),
    "sparsification": ("classes", {}),
    "regression": ("regression", {"ence": True, "sigma_scale": True, "depth": True}),
    "nmerci": ("regression", {"depth_step": 5}),
}


def missing(record: Any, merged: Any, place: str = "") -> Iterator[str]:
    """Yield the fields of a record that another one lacks. A field that is null there with a
    reason has none inside."""
    for name, value in record.items():
        if name.endswith("_reason") or f"{name}_reason" in merged:
            continue
        if name not in merged:
            yield f"{place}{name}"
        elif isinstance(value, dict):
            yield from missing(value, merged[name], f"{place}{name}.")


@pytest.mark.parametrize("family", PARTS)
def test_each_score_of_separate_runs_has_a_value_or_a_reason(
    family: str, stores: Path, tmp_path: Path
) -> None:
    """Scores that need the pixels of all items stay at their place, as null."""
    kind, options = PARTS[family]
    whole = uqeval.evaluate(stores / kind, None, {family: options})
    for k, items in enumerate((slice(0, 4), slice(4, None))):
        own = {name: values[items] for name, values in arrays_of(kind).items()}
        save(tmp_path / f"{k}", own, {"names": NAMES[items]})
        evaluated(tmp_path / f"{k}", tmp_path / f"{k}.states.zip", {family: options})
    merged = merge([tmp_path / "0.states.zip", tmp_path / "1.states.zip"])
    assert not list(missing(whole.results[family], merged.results[family]))
