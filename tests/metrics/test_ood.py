"""Out-of-distribution detection against plain oracles and scikit-learn: sets, masks and items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import naive_metrics
import naive_ood
import numpy as np
import pytest
import small_stores
from command import refused
from PIL import Image
from scenes import softmax
from sklearn.metrics import average_precision_score, roc_auc_score

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.inputs.opening import open_inputs
from uqeval.inputs.options import InputOptions
from uqeval.maps.views import OneOfSets
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units import resampling_for
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.merge import merge
from uqeval.usecases.reduce import reduce
from uqeval.usecases.verify.verifying import verify

SIZE = (8, 10)


def probs(seed: int, items: int, sharp: float = 1.0) -> Any:
    p = softmax(seed, items, 2, 3, *SIZE).astype("f8") ** sharp
    return (p / p.sum(axis=2, keepdims=True)).astype("f4")


INSIDE, FOG, RAIN = probs(1, 7, 2.0), probs(2, 6), probs(3, 6, 0.7)


def entropy(p: Any) -> Any:
    return naive_metrics.Classes(p, np.zeros((len(p), *SIZE), "u1")).entropy


def save(folder: Path) -> list[Path]:
    """The three sets as stores with names."""
    for name, p in (("in", INSIDE), ("fog", FOG), ("rain", RAIN)):
        names = np.array([f"{name}_{i}" for i in range(len(p))])
        np.savez(folder / f"{name}.npz", probs=p, names=names)
    return [folder / f"{name}.npz" for name in ("in", "fog", "rain")]


def test_each_set_and_all_together(tmp_path: Path) -> None:
    first, *others = save(tmp_path)
    report = uqeval.evaluate(first, None, {"ood": {"aggregation": ["mean", "max"]}}, out=others)
    record = report.results["ood"]
    inside, fog, rain = (entropy(p) for p in (INSIDE, FOG, RAIN))
    both = np.concatenate([fog, rain])
    pairs = [(record, both), (record["per_set"]["fog"], fog), (record["per_set"]["rain"], rain)]
    for found, outside in pairs:
        for name, value in naive_ood.ood(inside.ravel(), outside.ravel()).items():
            bound = found.get(f"{name}_bound", 0.0) + 1e-9
            assert abs(found[name] - value) <= bound, name
        assert found["pixels_in"] == inside.size and found["pixels_out"] == outside.size
    out = np.repeat([0, 1], [inside.size, both.size])
    u = np.concatenate([inside.ravel(), both.ravel()])
    assert record["auroc"] == pytest.approx(roc_auc_score(out, u), abs=1e-4)
    assert record["aupr_in"] == pytest.approx(average_precision_score(1 - out, -u), abs=1e-4)
    for key, score in (("ood", np.mean), ("ood[aggregation=max]", np.max)):
        values = [[float(score(own.astype("f8"))) for own in maps] for maps in (inside, both)]
        images = report.results[key]["images"]
        for name, value in naive_ood.ood(*values).items():
            assert images[name] == pytest.approx(value, abs=1e-12), name
        assert [item[key]["score"] for item in report.items] == pytest.approx(
            [*values[0], *values[1]]
        )
    assert [item["ood"]["set"] for item in report.items][6:8] == ["in", "fog"]
    assert report.inputs["sets"][2] == {"name": "rain", "items": 6}
    assert report.inputs["classes"] == 3


def test_images_of_each_set(tmp_path: Path) -> None:
    """Another set does not change the scores or the interval."""
    first, *others = save(tmp_path)
    report = uqeval.evaluate(
        first, None, {"ood": {"aggregation": "max"}}, out=others, ci=0.9,
        states=tmp_path / "s.states.zip",
    )  # fmt: skip
    sets = report.results["ood"]["per_set"]
    assert list(sets) == ["fog", "rain"]
    inside = [float(own.max()) for own in entropy(INSIDE)]
    for name, p in (("fog", FOG), ("rain", RAIN)):
        images = sets[name]["images"]
        expected = naive_ood.ood(inside, [float(own.max()) for own in entropy(p)])
        assert images == pytest.approx(expected | {"items_in": 7, "items_out": 6}, abs=1e-12)
    alone = uqeval.evaluate(first, None, {"ood": {"aggregation": "max"}}, out=others[:1], ci=0.9)
    own = {k: v for k, v in alone.results["ood"]["images"].items() if k != "aggregation"}
    assert sets["fog"]["images"] == own
    for field in ("auroc", "aupr_out"):
        interval = report.intervals[f"ood.per_set.fog.images.{field}"]
        single = alone.intervals[f"ood.images.{field}"]
        ends = [interval["low"], interval["high"], single["low"], single["high"]]
        assert ends[:2] == pytest.approx(ends[2:], abs=1e-12) and None not in ends
    assert "ood.per_set.rain.images.auroc" in report.intervals
    for text, interval in report.intervals.items():  # scores of pixels come from bins
        assert interval["approximate"] == (text.startswith("ood.") and ".images." not in text), text
    scoring = Scoring(SavedStates(tmp_path / "s.states.zip"))
    again = scoring.whole()["ood"]["per_set"]
    merged = merge([tmp_path / "s.states.zip"]).results["ood"]["per_set"]
    fog_alone = scoring.whole([0, 1, 2, *range(7, 13)])["ood"]["per_set"]
    assert fog_alone["rain"]["images"]["auroc"] is None
    assert fog_alone["fog"]["images"]["auroc"] is not None
    for name, record in sets.items():
        for field in ("auroc", "aupr_in", "aupr_out", "fpr95", "detection_error"):
            expected = record["images"][field]
            assert again[name]["images"][field] == pytest.approx(expected, abs=1e-12)
            assert merged[name]["images"][field] == pytest.approx(expected, abs=1e-12)


def test_a_mask_inside_the_images(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (7, *SIZE)).astype("u1")
    labels[:, :2] = 255
    mask = (rng.random(labels.shape) < 0.2).astype("u1") * 7
    mask[:, -1] = 255
    u = entropy(INSIDE)
    by_id = uqeval.evaluate(INSIDE, labels, ["ood"], ood_mask=2)
    known = labels != 255
    expected = naive_ood.ood(u[known & (labels != 2)], u[labels == 2])
    names = [f"seq{k % 2}/images/{k // 2}" for k in range(7)]
    for name, plane, y in zip(names, mask, labels, strict=True):
        for folder, ids in (("masks", plane), ("labels", y)):
            path = tmp_path / folder / f"{name.replace('images', folder)}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(ids).save(path)
    masks, store = tmp_path / "masks", tmp_path / "labels"
    by_mask = uqeval.evaluate(INSIDE, store, ["ood"], ood_mask=masks, names=names)
    counted = (mask != 255) & known
    masked = naive_ood.ood(u[counted & (mask == 0)], u[counted & (mask == 7)])
    for report, values in ((by_id, expected), (by_mask, masked)):
        record = report.results["ood"]
        for name, value in values.items():
            assert abs(record[name] - value) <= record.get(f"{name}_bound", 0) + 1e-9, name
        assert "images" not in record
    assert by_mask.numerics["ood"]["void"] == np.count_nonzero(~counted)
    assert by_mask.inputs["classes"] == by_id.inputs["classes"] == 3


@pytest.mark.parametrize("with_labels", [True, False])
def test_the_void_id_of_a_mask_is_its_own(tmp_path: Path, with_labels: bool) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (7, *SIZE)).astype("u1")
    labels[:, :2] = 19 if with_labels else 0
    mask = (rng.random(labels.shape) < 0.2).astype("u1") * 7
    mask[:, -1] = 200
    given = {"labels": mask, "ignore_index": 200}
    options: dict[str, Any] = {"ignore_index": 19} if with_labels else {}
    for ood_mask, more in (
        (given, {}), (np.where(mask == 200, 255, mask).astype("u1"), {}),
        (mask, {"ignore_index": 200}),
    ):  # fmt: skip
        if more and with_labels:
            continue
        own = uqeval.evaluate(
            INSIDE, labels if with_labels else None, ["ood"], ood_mask=ood_mask, **options | more
        ).results["ood"]
        counted = (mask != 200) & (labels != 19)
        assert own["pixels_out"] == np.count_nonzero(counted & (mask == 7))
        assert own["pixels_in"] == np.count_nonzero(counted & (mask == 0))
    with pytest.raises(UsageError, match="its void id is 0, which is the id of IN pixels"):
        uqeval.evaluate(INSIDE, None, ["ood"], ood_mask=mask, ignore_index=0)


def test_labels_that_neither_a_class_nor_out_has() -> None:
    """They may be out of distribution too, so they do not count as in-distribution."""
    labels = np.random.default_rng(0).integers(0, 3, (7, *SIZE)).astype("u1")
    labels[:, 0], labels[:, 1], labels[2, 5] = 254, 255, 200
    message = r"16 of .* pixels have labels outside the 3 classes .* and ood_mask=254: 200"
    with pytest.raises(UqevalError, match=message.replace("16", str(SIZE[1]))):
        uqeval.evaluate(INSIDE, labels, ["ood"], ood_mask=254)
    labels[2, 5] = 0
    by_text, by_number = (
        uqeval.evaluate(INSIDE, labels, ["ood"], ood_mask=mask) for mask in ("254", 254)
    )
    assert by_text.inputs["options"] == by_number.inputs["options"]
    assert by_text.inputs["options"]["ood_mask"] == by_text.inputs["ood_mask"] == 254
    assert by_text.results["ood"] == by_number.results["ood"]
    assert by_text.results["ood"]["pixels_out"] == labels[:, 0].size


def test_out_pixels_that_are_void() -> None:
    labels = np.random.default_rng(0).integers(0, 3, (7, *SIZE)).astype("u1")
    for void in (2, 255):
        with pytest.raises(UsageError, match=f"ood_mask={void} is the void id of the labels"):
            uqeval.evaluate(INSIDE, labels, ["ood"], ood_mask=void, ignore_index=void)
    labels[:, 0] = 255  # nobody says that 255 is void
    report = uqeval.evaluate(INSIDE, labels, ["ood"], ood_mask=255)
    assert report.results["ood"]["pixels_out"] == labels[:, 0].size


def test_merged_runs_and_draws_keep_the_sets(tmp_path: Path) -> None:
    first, *others = save(tmp_path)
    whole = uqeval.evaluate(
        first, None, ["ood"], out=others, ci=0.9, states=tmp_path / "all.states.zip"
    )
    for part, chosen in (("a", slice(0, 3)), ("b", slice(3, None))):
        (tmp_path / part).mkdir()
        for path in (first, *others):
            arrays = np.load(path)
            np.savez(tmp_path / part / path.name, **{n: arrays[n][chosen] for n in arrays})
        inside, *out = (tmp_path / part / path.name for path in (first, *others))
        uqeval.evaluate(inside, None, ["ood"], out=out, states=tmp_path / f"{part}.states.zip")
    merged = merge([tmp_path / f"{part}.states.zip" for part in "ab"], ci=0.9)
    for name in ("auroc", "fpr95"):
        assert merged.results["ood"][name] == pytest.approx(whole.results["ood"][name], abs=0.01)
        ends = [(r.intervals[f"ood.{name}"]["low"], r.intervals[f"ood.{name}"]["high"])
                for r in (merged, whole)]  # fmt: skip
        assert ends[0] == pytest.approx(ends[1], abs=1e-6)
    images, expected = (r.results["ood"]["images"] for r in (merged, whole))
    assert images["auroc"] == pytest.approx(expected["auroc"], abs=1e-12)
    scoring = Scoring(SavedStates(tmp_path / "all.states.zip"))
    resampling = resampling_for(scoring, 100)
    assert sorted(len(own) for own in resampling.members) == [6, 6, 7]
    for weights in resampling.drawn():
        for own in resampling.members:
            assert (weights.weights[:, own].sum(axis=1) == own.size).all()
    units = whole.intervals["ood.per_set.fog.auroc"]["units"]
    assert units == {"name": "item", "drawn": 19, "defined": 6}


def test_members_of_an_ensemble(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", probs=INSIDE)
    np.savez(tmp_path / "b.npz", probs=INSIDE[:, ::-1].copy())
    np.savez(tmp_path / "out.npz", probs=FOG)
    np.savez(tmp_path / "out_twice.npz", probs=np.concatenate([FOG, FOG], axis=1))
    one = uqeval.evaluate(tmp_path / "a.npz", None, ["ood"], out=tmp_path / "out.npz")
    members = f"{tmp_path / 'a.npz'}+{tmp_path / 'b.npz'}"
    both = uqeval.evaluate(members, None, ["ood"], out=tmp_path / "out_twice.npz")
    assert both.results["ood"]["auroc"] == pytest.approx(one.results["ood"]["auroc"], abs=1e-6)
    assert len(both.inputs["predictions"]) == 3
    assert [item["name"] for item in one.items][6:8] == ["in/6", "out/0"]


def test_one_kind_of_pixels_is_undefined() -> None:
    y = np.zeros((7, *SIZE), "u1")
    report = uqeval.evaluate(INSIDE, y, ["ood"], ood_mask=9)
    record = report.results["ood"]
    for name in ("auroc", "aupr_in", "aupr_out", "fpr95", "detection_error"):
        assert record[name] is None and "out of it" in record[f"{name}_reason"]
    assert "no out-of-distribution pixel" in report.warnings[-1]
    assert "255" not in report.warnings[-1]


def test_masks_that_mark_out_with_the_void_id() -> None:
    mask = np.zeros((7, *SIZE), "u1")
    mask[:, 0] = 255
    warning = uqeval.evaluate(INSIDE, None, ["ood"], ood_mask=mask).warnings[-1]
    assert "no out-of-distribution pixel" in warning
    assert f"{7 * SIZE[1]} pixels are void" in warning and "OUT pixels with 1, not 255" in warning


def test_same_images_without_names_are_a_warning(tmp_path: Path) -> None:
    """Stores without names, or with others, can hold the same images."""
    mixed = np.concatenate([FOG[:2], INSIDE[4:5], RAIN[:1]])
    states = tmp_path / "s.states.zip"
    report = uqeval.evaluate(INSIDE, None, ["ood"], out=[mixed, FOG[2:]], states=states)
    (warning,) = (text for text in report.warnings if "same images" in text)
    assert "1 of 8 OUT images have exactly" in warning
    items = {item["name"]: item["ood"]["score"] for item in report.items}
    first, second = (name for name in items if repr(name) in warning)
    assert items[first] == items[second] and list(items).index(first) == 4
    assert warning in merge(states).warnings
    constant = np.full_like(INSIDE, 1 / 3)  # all images have the same mean
    small = INSIDE[..., :7, :9]
    for inside, out in ((INSIDE, FOG), (constant, constant), (small, small)):
        report = uqeval.evaluate(inside, None, ["ood"], out=[out.copy()])
        assert not any("same images" in text for text in report.warnings)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"same": True}, ["shares 7 of its 7 items", "in_0"]),
        ({"out": [FOG], "ood_mask": 3}, ["ood_mask", "OUT"]),
        ({"ood_mask": 3}, ["ood_mask=3", "LABELS"]),
        ({"out": [FOG], "region": "boundary:2"}, ["no regions of classes", "box:"]),
        ({"out": [FOG], "region": "class:out"}, ["no regions of classes"]),
        ({"out": [FOG], "region": "depth:0-9"}, ["depth_map=FOLDER"]),
        ({"out": [FOG], "region": "map:areas"}, ["no path areas", "folder of PNGs"]),
        ({"out": [FOG], "depth_map": "d.npy"}, ["depth_map d.npy has no effect"]),
        (
            {},
            ["ood evaluates out-of-distribution data: give out, a list of stores", "ood_mask, the"],
        ),
    ],
)
def test_bad_inputs(tmp_path: Path, options: dict[str, Any], words: list[str]) -> None:
    first, _, _ = save(tmp_path)
    if "same" in options:
        np.savez(tmp_path / "same.npz", probs=INSIDE, names=[f"in_{i}" for i in range(7)])
        options = {"out": [tmp_path / "same.npz"]}
    with pytest.raises(UqevalError) as caught:
        uqeval.evaluate(first, None, ["ood"], **options)
    for word in words:
        assert word in str(caught.value)


def test_sets_of_another_network_are_refused(tmp_path: Path) -> None:
    """More classes have a higher entropy, so AUROC would compare the networks."""
    first, fog, _ = save(tmp_path)
    np.savez(tmp_path / "other.npz", probs=softmax(4, 6, 2, 5, *SIZE))
    for name, classes in (("maps", 3), ("other_maps", 5)):
        mean_probs = softmax(5, 6, 1, classes, *SIZE)[:, 0]
        arrays = {"predictions": mean_probs.argmax(1).astype("u1"), "mean_probs": mean_probs}
        np.savez(tmp_path / f"{name}.npz", **arrays)
    maps, other_maps, other = (tmp_path / f"{name}.npz" for name in ("maps", "other_maps", "other"))
    assert uqeval.evaluate(first, None, ["ood"], out=[fog, maps]).inputs["classes"] == 3
    for out in ([other], [fog, other], [other_maps], [maps, other_maps]):
        message = refused(lambda own=out: uqeval.evaluate(first, None, ["ood"], out=own))
        assert f"different numbers of classes: 3 in {first}, 5 in {out[-1]}." in message
    # A part without items of IN and of the other OUT set.
    options: dict[str, Any] = {"part": "3/3", "states": tmp_path / "s.states.zip"}
    refused(
        lambda: uqeval.evaluate(first, None, ["ood"], out=[fog, other], **options), "of classes"
    )


def test_a_set_without_predictions_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", probs=np.full((2, 2, 4, 4), 0.5, np.float32))
    np.savez(tmp_path / "labels.npz", labels=np.zeros((2, 4, 4), np.uint8))
    given = {"metrics": {"ood": {}}, "out": tmp_path / "labels.npz"}
    with pytest.raises(StoreError, match=r"labels\.npz holds labels, and no predictions"):
        uqeval.evaluate(tmp_path / "in.npz", **given)


def test_sets_of_other_numbers_of_samples_are_refused(tmp_path: Path) -> None:
    """The mutual information of fewer samples is lower, so AUROC would compare the numbers. Maps
    have the number that they record; maps that record none can be of any."""
    stores: dict[int, list[Any]] = {}
    for samples in (1, 2, 5):
        p = softmax(7, 6, samples, 3, *SIZE)
        path = tmp_path / str(samples)
        small_stores.save(path, {"probs": p}, {"names": [f"{samples}/{i}" for i in range(len(p))]})
        reduce(open_inputs(path, None, InputOptions()), tmp_path / f"maps{samples}")
        stores[samples] = [path, tmp_path / f"maps{samples}"]
    first, *_ = save(tmp_path)
    for out in stores[2]:
        assert uqeval.evaluate(first, None, ["ood"], out=out).inputs["samples"] == 2
    np.savez(tmp_path / "unknown.npz", predictions=FOG[:, 0].argmax(1), mean_probs=FOG[:, 0])
    for samples, of_samples in [(1, stores[1]), (5, stores[5])]:
        for out in of_samples:
            refused(
                lambda own=out: uqeval.evaluate(first, None, ["ood"], out=own),
                f"different numbers of samples: 2 in {first}, {samples} in {out}.",
            )
    uqeval.evaluate(tmp_path / "unknown.npz", None, ["ood"], out=stores[5][1], classes=3)
    out = [stores[2][1], stores[5][1]]
    refused(
        lambda: uqeval.evaluate(tmp_path / "unknown.npz", None, ["ood"], out=out),
        f"2 in {out[0]}, 5 in {out[1]}.",
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"aggregation": "share"}, ["aggregation share", "patch-max"]),
        ({"aggregation": "p200"}, ["p200"]),
        ({"patch": 3}, ["patch has no effect", "patch-max"]),
        ({"definition": "bravo"}, ["ood_mask"]),
        ({"uncertainty": "prediction"}, ["prediction"]),
    ],
)
def test_bad_settings(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UqevalError) as caught:
        uqeval.evaluate(INSIDE, None, {"ood": settings}, out=[FOG])
    for word in words:
        assert word in str(caught.value)


def test_bravo_is_made_of_the_formulas_of_its_toolkit() -> None:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, (7, *SIZE)).astype("u1")
    labels[:, 0] = 255
    masks = (rng.random(labels.shape) < 0.3).astype("u1")
    settings = {"ood": {"definition": "bravo"}}
    report = uqeval.evaluate(INSIDE, labels, settings, ood_mask=masks)
    own = naive_metrics.Masked(naive_metrics.Classes(INSIDE, labels), masks).ood["bravo"]
    for name, value in own.items():
        assert report.results["ood"]["bravo"][name] == pytest.approx(value, abs=1e-4), name
    known, out = labels != 255, masks > 0
    confidence, prediction = INSIDE.mean(axis=1).max(axis=1), INSIDE.mean(axis=1).argmax(axis=1)
    hit = (prediction == labels)[known & ~out]
    sure = confidence[known & ~out]
    assert own["auroc"] == pytest.approx(roc_auc_score(hit, sure), abs=1e-4)
    assert own["aupr_error"] == pytest.approx(average_precision_score(~hit, -sure), abs=1e-3)
    assert own["ood_auroc"] == pytest.approx(
        roc_auc_score(out[known], -confidence[known]), abs=1e-3
    )


def test_sets_with_names_are_verified(tmp_path: Path) -> None:
    first, *others = save(tmp_path)
    report = uqeval.evaluate(first, None, ["ood"], out=others)
    report.save(tmp_path / "r.json")
    found = verify(tmp_path / "r.json", [first, *others], everything=True)
    assert found.passed and {"auroc", "per_set", "images"} < set(found.fields["ood"])


def test_sets_in_memory_give_the_scores_of_stores(tmp_path: Path) -> None:
    first, *others = save(tmp_path)
    of_files = uqeval.evaluate(first, None, ["ood"], out=others)
    arrays = [{name: np.load(path)[name] for name in ("probs", "names")} for path in others]
    inside = {name: np.load(first)[name] for name in ("probs", "names")}
    report = uqeval.evaluate(inside, None, ["ood"], out=arrays)
    assert report.results["ood"]["auroc"] == of_files.results["ood"]["auroc"]
    assert report.inputs["options"]["out"] == ["arrays in memory"] * len(others)


def test_sets_whose_classes_have_another_order(tmp_path: Path) -> None:
    """The uncertainty of another network has another scale, also with as many classes."""
    paths = []
    for name, p, classes in (
        ("in", INSIDE, ["road", "sky", "car"]), ("fog", FOG, ["sky", "road", "car"])
    ):  # fmt: skip
        paths.append(small_stores.save(tmp_path / name, {"probs": p}, {"class_names": classes}))
    for order in (1, -1):
        first, out = paths[::order]
        refused(lambda: uqeval.evaluate(first, None, "ood", out=[out]),  # noqa: B023
                "classes have other numbers", str(first), str(out), error=StoreError)  # fmt: skip
        names = ["a", "b", "c"]
        assert uqeval.evaluate(first, None, "ood", out=[out], class_names=names).results["ood"]


def test_a_slice_of_in_is_compared_with_all_of_out(tmp_path: Path) -> None:
    """As a run on the IN items of the slice, without rows for OUT; also merged from states."""
    first, *others = save(tmp_path)
    table = tmp_path / "t.csv"
    rows = [f"in_{i},{'wet' if i % 3 else 'dry'}\n" for i in range(len(INSIDE))]
    table.write_text("".join(["name,weather\n", *rows]))
    metrics = {"ood": {"aggregation": ["mean"]}}
    options: dict[str, Any] = {"slices": table, "ci": 0.9, "draws": 100}
    report = uqeval.evaluate(
        first, None, metrics, out=others, states=tmp_path / "o.states.zip", **options
    )
    assert merge(tmp_path / "o.states.zip", **options).slices == report.slices
    assert list(report.slices) == ["weather=dry", "weather=wet"]
    for key, inside in (("dry", INSIDE[::3]), ("wet", np.delete(INSIDE, slice(0, None, 3), 0))):
        found = report.slices[f"weather={key}"]
        names = np.array([f"in_{i}" for i in range(len(inside))])
        np.savez(tmp_path / "alone.npz", probs=inside, names=names)
        alone = uqeval.evaluate(
            tmp_path / "alone.npz", None, metrics, out=others, ci=0.9, draws=100
        )
        assert found["items"] == len(inside) + len(FOG) + len(RAIN) and not found["approximate"]
        assert found["results"]["ood"]["auroc"] is not None
        expected = alone.results["ood"]
        for record in (expected, *expected["per_set"].values()):  # slices do not count images
            del record["images"]["items_in"], record["images"]["items_out"]
        assert found["results"] == {"ood": expected}
        for address, interval in alone.intervals.items():
            ends = [own.get("low") for own in (found["intervals"][address], interval)]
            assert ends[0] == (None if ends[1] is None else pytest.approx(ends[1], rel=1e-9))
    report.save(tmp_path / "r.json")
    found = verify(tmp_path / "r.json", [first, *others], everything=True)
    assert found.passed, found.problems()
    plain = uqeval.evaluate(first, None, metrics, out=others, slices=table)
    wet, dry = (plain.slices[f"weather={value}"]["names"] for value in ("wet", "dry"))
    wet.append("in_0")  # of the other slice
    del wet[wet.index("fog_1")], dry[dry.index("fog_1")]
    plain.save(tmp_path / "r.json")
    said = " ".join(verify(tmp_path / "r.json", [first, *others], everything=True).problems())
    assert "the slice of 1 item (fog_1) is missing" in said
    assert "the number of slices that have in_0 is 2, recomputed 1" in said
    by_group = {"group_by": "weather", **options}
    refused(
        lambda: uqeval.evaluate(first, None, metrics, out=others, **by_group),
        "12 of 19 items have no value in the column 'weather' of group_by: fog_0",
        "Fill it in, with rows for out-of-distribution items;",
    )


def test_slices_of_a_case_are_one_unit(tmp_path: Path) -> None:
    """Also if only one of the sets has cases."""
    first, fog = tmp_path / "in.npz", tmp_path / "fog.npz"
    np.savez(first, probs=INSIDE[:, 0])
    np.savez(fog, probs=FOG[:, 0])
    (tmp_path / "scans").mkdir()
    for k in range(3):
        np.savez(
            tmp_path / "scans" / f"case{k}.npz",
            probabilities=FOG[2 * k : 2 * k + 2, 0].swapaxes(0, 1),
        )
    plain = uqeval.evaluate(first, None, "ood", out=[fog], ci=0.9, draws=200)
    report = uqeval.evaluate(first, None, "ood", out=[tmp_path / "scans"], ci=0.9, draws=200)
    assert plain.settings["intervals"]["units"] == 7 + 6
    settings = report.settings["intervals"]
    assert (settings["unit"], settings["units"]) == ("group", 7 + 3)
    assert settings["groups"][7:] == ["case0", "case0", "case1", "case1", "case2", "case2"]


@pytest.mark.parametrize("form", ["dict", "npz", "folder", "maps"])
def test_labels_of_out_stores_do_not_count(form: str, tmp_path: Path) -> None:
    """What is unknown has no class of the network: its labels are other ids, or void."""
    labels = np.random.default_rng(0).integers(0, 3, (7, *SIZE)).astype("u1")
    labels[:, 0] = 255
    unknown = labels[:6].copy()
    unknown[0, 1:4] = 77

    def store(name: str, p: Any, ids: Any) -> Any:
        arrays = {"probs": p, "names": np.array([f"{name}_{i}" for i in range(len(p))])}
        arrays |= {} if ids is None else {"labels": ids}
        if form == "dict":
            return arrays
        path = tmp_path / f"{name}.npz"
        np.savez(path, **arrays)
        if form == "folder":
            (tmp_path / name).mkdir()
            for i, item in enumerate(p):
                own = {} if ids is None else {"labels": ids[i]}
                np.savez(tmp_path / name / f"{name}_{i}.npz", probs=item, **own)
            return tmp_path / name
        return path

    out = store("fog", FOG, unknown)
    if form == "maps":  # reduce refuses labels of no class
        unknown[0, 1:4] = 255
        np.savez(out, probs=FOG, labels=unknown, names=np.array([f"fog_{i}" for i in range(6)]))
        reduce(open_inputs(out, None, InputOptions()), tmp_path / "fog.zarr")
        out = tmp_path / "fog.zarr"
    report = uqeval.evaluate(store("in", INSIDE, labels), None, ["ood"], out=[out])
    counted = labels != 255  # void pixels of IN do not count
    expected = naive_ood.ood(entropy(INSIDE)[counted], entropy(FOG).ravel())
    found = report.results["ood"]
    assert (found["pixels_in"], found["pixels_out"]) == (counted.sum(), FOG[:, 0, 0].size)
    assert found["fpr95"] == pytest.approx(expected["fpr95"], abs=1e-12)
    assert report.inputs["labels"] is not None


def test_a_limit_takes_items_of_each_set(tmp_path: Path) -> None:
    first, *others = save(tmp_path)
    ids = np.zeros((19, *SIZE), "u1")
    ids[[0, 1, 7, 8], :4] = 1  # of the chosen items
    np.savez(tmp_path / "areas.npz", labels=ids)
    areas = f"map:{tmp_path / 'areas.npz'}"
    report = uqeval.evaluate(first, None, ["ood"], out=others, limit=2, region=[areas])
    assert [item["name"] for item in report.items] == [
        "in_0", "in_1", "fog_0", "fog_1", "rain_0", "rain_1",
    ]  # fmt: skip
    assert report.partial and report.inputs["evaluated"] == 6 and report.inputs["items"] == 19
    expected = naive_ood.ood(
        entropy(INSIDE[:2]).ravel(), np.concatenate([entropy(FOG[:2]), entropy(RAIN[:2])]).ravel()
    )
    assert report.results["ood"]["fpr95"] == pytest.approx(expected["fpr95"], abs=1e-12)
    (area,) = (key for key in report.results if key.endswith((":1", ":1'")))
    found = report.results[area]
    assert (found["pixels_in"], found["pixels_out"]) == (2 * 40, 2 * 40)


def drives(folder: Path) -> Path:
    """A table in which each of six drives has an item of each set, and IN has a seventh drive."""
    rows = [f"{name}_{k},drive_{k}" for name, n in (("in", 7), ("fog", 6)) for k in range(n)]
    (folder / "drives.csv").write_text("name,drive\n" + "\n".join(rows) + "\n")
    return folder / "drives.csv"


def test_a_group_of_items_of_several_sets_is_one_unit(tmp_path: Path) -> None:
    first, fog, _ = save(tmp_path)
    grouped: dict[str, Any] = {"ci": 0.9, "slices": drives(tmp_path), "group_by": "drive"}
    states = tmp_path / "r.states.zip"
    report = uqeval.evaluate(first, None, ["ood"], out=[fog], states=states, **grouped)
    settings = report.settings["intervals"]
    assert (settings["unit"], settings["units"]) == ("group", 7)
    assert report.intervals["ood.auroc"]["units"]["drawn"] == 7
    scoring = Scoring(SavedStates(states))
    units = resampling_for(scoring, groups=settings["groups"])
    assert units.strata is None
    report.save(tmp_path / "r.json")
    found = verify(tmp_path / "r.json", [first, fog], everything=True)
    assert found.passed, found.problems()
    # Drives of one set each are drawn within their set.
    apart = [f"{'in' if k < 7 else 'fog'}/{group}" for k, group in enumerate(settings["groups"])]
    assert resampling_for(scoring, groups=apart).strata is not None


def test_the_covariance_of_two_sets_counts(tmp_path: Path) -> None:
    """Drives whose IN and OUT images vary together: the interval is that of their difference."""
    rng = np.random.default_rng(1)
    shared = rng.uniform(-1, 1, 20)

    def of(shift: float) -> Any:
        z = np.zeros((20, 1, 2, 4, 4), "f4")
        noise = rng.normal(0, 0.02, (20, 4, 4))
        z[:, 0, 0] = 2 + shared[:, None, None] - shift + noise
        return z

    for name, shift in (("in", 0.0), ("fog", 0.1)):
        names = [f"{name}_{k}" for k in range(20)]
        np.savez(tmp_path / f"{name}.npz", logits=of(shift), names=np.array(names))
    rows = [f"{name}_{k},{k}" for name in ("in", "fog") for k in range(20)]
    (tmp_path / "t.csv").write_text("name,drive\n" + "\n".join(rows) + "\n")
    paths = tmp_path / "in.npz", tmp_path / "fog.npz"
    errors = [
        uqeval.evaluate(
            paths[0], None, {"ood": {"uncertainty": "confidence"}}, out=[paths[1]], ci=0.9, **more
        ).intervals["ood.images.auroc"]["standard_error"]
        for more in ({}, {"slices": tmp_path / "t.csv", "group_by": "drive"})
    ]
    assert errors[1] < errors[0] / 2


def test_an_image_of_another_set_is_one_void_pixel() -> None:
    maps = {"label": np.full(SIZE, 2, "u1"), "entropy": np.ones((3, *SIZE))}
    maps["label"][0] = 255
    found = OneOfSets(1).maps(maps)
    assert found["label"].tolist() == [[255]] and found["entropy"].shape == (3, 1, 1)
    of_own = OneOfSets(2).maps(maps)
    np.testing.assert_array_equal(of_own["label"], maps["label"])


def test_pixels_to_count_grow_with_the_number_of_sets_and_not_with_its_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each set has a view of all images; those of the other sets have no pixel in it."""
    pixels: list[int] = []
    maps_of_view, line_of_view = OneOfSets.maps, OneOfSets.line

    def maps_counted(self: OneOfSets, maps: Any) -> Any:
        found = maps_of_view(self, maps)
        pixels.append(found["label"].size)
        return found

    def line_counted(self: OneOfSets, maps: Any, first: Any) -> Any:
        found, places = line_of_view(self, maps, first)
        pixels.append(found["label"].size)
        return found, places

    monkeypatch.setattr(OneOfSets, "maps", maps_counted)
    monkeypatch.setattr(OneOfSets, "line", line_counted)

    def counted_pixels(sets: int) -> int:
        pixels.clear()
        out = [probs(3 + k, 2) for k in range(sets)]
        uqeval.evaluate(INSIDE[:2], None, ["ood"], out=out)
        return sum(pixels)

    assert 0 < counted_pixels(6) < 2.2 * counted_pixels(3)


def test_images_in_one_row_have_the_pixels_that_each_has_alone() -> None:
    rng = np.random.default_rng(1)
    items = [
        {"label": np.full(size, number, "u1"), "entropy": rng.random(size)}
        for number, size in enumerate([(1, 1), (2, 3), (1, 4), (3, 3), (1, 1)])
    ]
    items[2]["label"][0, 1:3] = 255
    items[4]["label"][:] = 255
    row = {
        name: np.concatenate([own[name].reshape(1, -1) for own in items], 1) for name in items[0]
    }
    first = np.cumsum([0, *(own["label"].size for own in items)])
    for view in map(OneOfSets, range(1, 5)):
        found, places = view.line(row, first)
        for own, start, stop in zip(items, places[:-1], places[1:], strict=True):
            alone = view.maps(own)
            for name in row:
                np.testing.assert_array_equal(found[name][0, start:stop], alone[name].reshape(-1))
