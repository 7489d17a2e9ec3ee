"""`uqeval verify` of conformal, image failure, annotators and out-of-distribution reports."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import Place, add, changed, differences, read
from folders import made_in
from small_stores import equal_dice, labels, probs, save

import uqeval
from uqeval.errors import UsageError
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify import recomputation
from uqeval.usecases.verify.verifying import verify

FIT_ON = [str(i) for i in range(0, 12, 2)]
CONFORMAL = {"conformal": {"fit_on": "fit.json", "alpha": 0.3}}
IMAGES: dict[str, Any] = {"image_failure": {}}

#: By name: stores, metrics with settings, and other options.
RUNS: dict[str, tuple[tuple[str, ...], Mapping[str, Any], Mapping[str, Any]]] = {
    "ood": (("classes.npz",), {"ood": {}}, {"out": ["out.npz"]}),
    "two_sets": (
        ("classes.npz",), {"ood": {"aggregation": ["patch-max", "p90"]}},
        {"out": ["out.npz", "more.npz"]},
    ),
    "members": (("classes.npz",), {"ood": {}}, {"out": ["two.npz+third.npz"]}),
    "mask": (("classes.npz",), {"ood": {}}, {"ood_mask": "mask.npz"}),
    "label_id": (("classes.npz",), {"ood": {"uncertainty": "mutual_information"}},
                 {"ood_mask": 255}),
    "bravo": (("classes.npz",), {"ood": {"definition": "bravo"}}, {"ood_mask": "mask.npz"}),
    "region": (("classes.npz",), {"ood": {"aggregation": ["mean", "patch-max"]}},
               {"out": ["out.npz", "more.npz"], "region": ["box:0:0.5,0:1"]}),
    "region_of_bravo": (
        ("classes.npz",), {"ood": {"definition": "bravo"}},
        {"ood_mask": "mask.npz", "region": ["box:0:0.5,0:1"]},
    ),
    "lac": (("classes.npz",), CONFORMAL, {"region": ["box:0:0.5,0:1"]}),
    "aps": (
        ("classes.npz",), {"conformal": {**CONFORMAL["conformal"], "method": "aps"}},
        {"region": ["box:0:0.001,0:1"]},  # without pixels
    ),
    "fnr": (("classes.npz",), {"conformal": {**CONFORMAL["conformal"], "risk": "fnr:2"}}, {}),
    "intervals": (("numbers.npz",), CONFORMAL, {}),
    "images": (
        ("classes.npz",),
        {"image_failure": {"risk": ["dice", "accuracy"], "confidence": ["p75", "patch-max"]}},
        {"region": ["class:1"]},
    ),
    "equal_risks": (
        ("equal.npz",), {"image_failure": {"risk": "dice", "uncertainty": "u"}}, {},
    ),
    "image_numbers": (("numbers.npz",), IMAGES, {}),
    "image_video": (
        (), {"image_failure": {"risk": "temporal.tc_no_warp", "confidence": "temporal.tc"}},
        {"video": "video.npz"},
    ),
    "annotators": (("classes.npz", "people.npz"), {"annotators": {}}, {}),
    "values": (("classes.npz", "people.npz"), {"annotators": {"definition": "values"}}, {}),
    "entropies": (
        ("classes.npz", "people.npz"),
        {"annotators": {"disagreement": "entropy", "absent": "agree", "distance": "dice"}}, {},
    ),
}  # fmt: skip


def _stores() -> None:
    stores = {name: synthetic_data.classes(name, items=12) for name in ("in", "out", "more")}
    arrays = {name: stores["in"][name] for name in ("probs", "labels")}  # without names
    np.savez("classes.npz", **arrays)
    for name in ("out", "more"):
        flat = stores[name]["probs"][:5].astype(np.float32) ** 0.5
        flat /= flat.sum(axis=2, keepdims=True)
        np.savez(f"{name}.npz", probs=flat.astype(np.float16))
        if name == "out":
            np.savez("two.npz", probs=flat[:, :2].astype(np.float16))
            np.savez("third.npz", probs=flat[:, :1].astype(np.float16))
    labels = stores["in"]["labels"]
    mask = np.zeros_like(labels)
    mask[:, 4:9, 3:20] = 3
    mask[:, 0] = 255
    np.savez("mask.npz", labels=mask)
    np.savez("equal.npz", **equal_dice())
    others = [np.roll(labels, shift, axis=2) for shift in (0, 1, 3)]
    others[2][3] = 255  # an item that one of them left out
    np.savez("people.npz", labels=np.stack(others, axis=1))
    np.savez("numbers.npz", **synthetic_data.numbers("verify", items=12))
    np.savez("video.npz", **synthetic_data.video("verify", frames=8))
    Path("fit.json").write_text(json.dumps(FIT_ON))


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stores and the reports of `RUNS`, with paths relative to it."""
    with made_in(tmp_path_factory, "by_item") as folder:
        _stores()
        for name, (stores, metrics, options) in RUNS.items():
            flow = {"tc": {"flow": "file"}} if "video" in options else {}
            report = uqeval.evaluate(*stores, metrics={**flow, **metrics}, workers=1, **options)
            report.save(f"{name}.json")
    return folder


@pytest.mark.parametrize("name", RUNS)
def test_a_report_follows_from_its_predictions(name: str, folder: Path) -> None:
    record = json.loads(Path(f"{name}.json").read_text())
    found = verify(f"{name}.json", everything=True)
    assert found.passed, found.problems()
    assert set(found.fields) == set(record["results"])
    assert found.compared["set"] >= 8
    assert verify(f"{name}.json", items=1).passed


#: By run, values of the items, and of the set that do not follow from each other: key and steps.
ITEMS: dict[str, list[tuple[int, Place]]] = {
    "ood": [(13, ("ood", "score"))], "two_sets": [(2, ("ood[aggregation=p90]", "score"))],
    "mask": [(1, ("ood", "pixels_out"))], "lac": [(1, ("conformal", "loss"))],
    "fnr": [(1, ("conformal", "loss"))],
    "images": [
        (0, ("image_failure", "risk")), (0, ("image_failure@class:1", "confidence"))
    ],
    "image_numbers": [(0, ("image_failure", "confidence"))],
    "annotators": [(0, ("annotators", "ged"))], "values": [(0, ("annotators", "ncc"))],
}  # fmt: skip
_OF_BRAVO = ("miou", "ece", "auroc", "aupr_error", "aupr_success", "fpr95", "ood_auroc",
             "ood_aupr", "ood_fpr95")  # fmt: skip
SETS: list[tuple[str, list[Place]]] = [
    ("ood", [("ood", "auroc"), ("ood", "images", "fpr95")]),
    ("two_sets", [
        ("ood", "per_set", "more", "aupr_in"), ("ood", "per_set", "out", "images", "fpr95")]),
    # The index follows from the two means, and these from the scores.
    ("bravo", [("ood", "bravo", name) for name in _OF_BRAVO]),
    ("bravo", [("ood", "bravo", name) for name in ("semantic", "ood")]),
    ("bravo", [("ood", "bravo", "bravo_index")]),
    ("mask", [("ood", "detection_error")]),
    ("lac", [
        ("conformal", "mean_loss"), ("conformal", "calibration_loss"),
        ("conformal", "items", "p25"), ("conformal@box:0:0.5,0:1", "size")]),
    ("aps", [("conformal", "size")]), ("intervals", [("conformal", "width")]),
    ("images", [("image_failure", "kendall")]), ("image_video", [("image_failure", "aurc")]),
    ("annotators", [("annotators", "kappa")]), ("entropies", [("annotators", "brier")]),
]  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_changed_values_of_items_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    add(record["items"], [(item, *place) for item, place in ITEMS[name]])
    found = [(own.where, own.field) for own in differences(record)]
    for item, place in ITEMS[name]:
        where = f"item {record['items'][item]['name']}"
        assert (where, ".".join(map(str, place))) in found


@pytest.mark.parametrize(("name", "places"), SETS)
def test_changed_values_of_the_set_are_found(name: str, places: list[Place], folder: Path) -> None:
    record = read(f"{name}.json")
    add(record["results"], places)
    found = [(own.where, own.field) for own in differences(record)]
    for place in places:
        assert ("the set", ".".join(map(str, place))) in found


def test_a_forged_threshold_is_found_with_the_scores_that_fit_it(folder: Path) -> None:
    """A report whose scores follow from another threshold than its calibration items give."""
    record = json.loads(Path("lac.json").read_text())
    other = uqeval.evaluate(
        "classes.npz", metrics={"conformal": {"fit_on": "fit.json", "alpha": 0.2}}, workers=1,
        region=["box:0:0.5,0:1"],
    )  # fmt: skip
    forged = json.loads(other.to_json())
    for key in ("conformal", "conformal@box:0:0.5,0:1"):
        forged["settings"][key] = record["settings"][key]
        forged["results"][key]["alpha"] = 0.3
    Path("forged.json").write_text(json.dumps(forged))
    fields = {own.field for own in verify("forged.json", everything=True).differences}
    assert "conformal.threshold" in fields


def test_single_rows_are_verified(folder: Path) -> None:
    """Items of one pixel: their largest error is their mean error, but for its rounding."""
    numbers = synthetic_data.numbers("rows", items=1)
    rows = {name: values[0, 0, :, None, None] for name, values in numbers.items()}
    np.savez("rows.npz", **rows)
    report = uqeval.evaluate("rows.npz", metrics=["nmerci", "regression"], workers=1)
    assert {item["nmerci"]["nmerci"] for item in report.items} == {None}
    report.save("rows.json")
    found = verify("rows.json", everything=True)
    assert found.passed, found.problems()


def test_intervals_with_a_void_item_are_verified(folder: Path) -> None:
    store = dict(np.load("classes.npz"))
    store["labels"][3] = 255
    np.savez("void.npz", **store)
    report = uqeval.evaluate("void.npz", metrics=["calibration"], ci=0.9, workers=1)
    assert report.intervals["calibration.ece"]["units"]["defined"] == 11
    report.save("void.json")
    found = verify("void.json", everything=True)
    assert found.passed, found.problems()
    assert found.compared["intervals"] > 5


def test_nearly_equal_uncertainties_are_no_difference(folder: Path) -> None:
    """Samples so certain that float32 does not tell their entropies apart, wrong or right."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 3, 4, 12, 12)) * 25
    probs = np.exp(z - z.max(axis=2, keepdims=True))
    probs /= probs.sum(axis=2, keepdims=True)
    labels = rng.integers(0, 4, (2, 12, 12)).astype(np.uint8)
    np.savez("sure.npz", probs=probs, labels=labels)
    sure = {"uncertainty": "expected_entropy"}
    metrics = {"failure": sure, "sparsification": sure}
    uqeval.evaluate("sure.npz", metrics=metrics, workers=1).save("sure.json")
    found = verify("sure.json", everything=True)
    assert found.passed, found.problems()


@pytest.mark.parametrize("name", ["lac", "ood"])
def test_pixels_are_not_kept_if_the_set_is_too_large(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputation, "MOST_BYTES", 0)
    made = []
    for family, kind in list(recomputation._BY_ITEM.items()):
        monkeypatch.setitem(
            recomputation._BY_ITEM, family,  # type: ignore[arg-type]
            lambda *given, kind=kind: made.append(kind(*given)) or made[-1],  # type: ignore[func-returns-value]
        )  # fmt: skip
    found = verify(f"{name}.json", everything=True)
    kept = [own for scores in made for own in vars(scores).values() if isinstance(own, list)]
    assert made and all(isinstance(entry, str) for own in kept for entry in own)
    assert found.passed and not found.compared["set"]
    assert "are too many to recompute in memory" in " ".join(found.not_verified)


def test_scores_of_maps_beside_the_samples_are_recomputed(tmp_path: Path) -> None:
    arrays = {"probs": probs(), "labels": labels(), "mine": probs()[:, 0, 0]}
    for name, seed in (("in", 0), ("out", 1)):
        save(tmp_path / name, arrays | {"probs": probs(seed=seed)})
    own = {"uncertainty": "mine"}
    families = {"failure": own, "pavpu": own, "sparsification": own | {"error": "zero-one"}}
    out = {"out": [tmp_path / "out"], "metrics": {"ood": own}}
    for options in ({"metrics": families}, out):
        uqeval.evaluate(tmp_path / "in", **options).save(tmp_path / "r.json")
        stores = [str(tmp_path / "in"), *map(str, options.get("out", ()))]
        found = verify(tmp_path / "r.json", stores)
        assert found.passed and found.compared["items"] > 0
        assert not any("mine" in text for text in found.not_verified)


def test_a_fingerprint_that_was_removed_is_a_problem(tmp_path: Path) -> None:
    save(tmp_path / "in", {"probs": probs(), "labels": labels()})
    uqeval.evaluate(tmp_path / "in", metrics="failure").save(tmp_path / "r.json")
    document = json.loads((tmp_path / "r.json").read_text())
    document["inputs"]["labels"]["fingerprint"] = None
    (tmp_path / "r.json").write_text(json.dumps(document))
    found = verify(tmp_path / "r.json", [tmp_path / "in"])
    assert not found.passed and "(labels) was changed" in found.problems()[0]


def test_bravo_scores_are_recomputed(folder: Path) -> None:
    found = verify("bravo.json", everything=True)
    assert "bravo" in found.fields["ood"]
    assert not any("bravo" in text for text in found.not_verified)


def test_forged_bravo_scores_without_labels_of_classes_are_named(folder: Path) -> None:
    scores = json.loads(Path("bravo.json").read_text())["results"]["ood"]["bravo"]
    path = changed("label_id", lambda record: record["results"]["ood"].update(bravo=scores))
    texts = verify(path, everything=True).not_verified
    assert "ood: not recomputed of the set: bravo." in texts


def test_given_stores_take_the_place_of_the_paths(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder.parent)
    stores = [f"work/{name}.npz" for name in ("classes", "out", "more")]
    assert verify("work/two_sets.json", stores, items=2).passed
    masked = ["work/classes.npz", "work/mask.npz"]
    assert verify("work/mask.json", masked, items=2).passed


@pytest.mark.parametrize(
    "options",
    [
        {"ood_mask": "../secret.npz"}, {"map_cache": "../cache"}, {"names": "../names.txt"},
        {"video": "../video.npz"}, {"fitted": "../fitted.json"},
    ],
)  # fmt: skip
def test_paths_in_forged_options_are_not_opened(
    options: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the paths in a report, only those that are checked are used."""
    path = changed("label_id", lambda record: record["inputs"]["options"].update(options))
    assert verify(path, everything=True).passed
    assert not (folder.parent / "cache").exists()


def test_a_forged_region_is_no_list(folder: Path) -> None:
    forged = {"region": "map:../areas.npz"}
    path = changed("lac", lambda record: record["inputs"]["options"].update(forged))
    with pytest.raises(UsageError, match=r"is \.\./areas\.npz, which is outside"):
        verify(path)


@pytest.mark.parametrize("name", ["lac", "fnr", "intervals"])
def test_texts_of_a_guarantee_and_its_items_are_compared(name: str, folder: Path) -> None:
    fields = ("guarantee", "fitted_on", "fitted_on_digest")

    def change(record: Any) -> None:
        record["results"]["conformal"] |= dict.fromkeys(fields, "changed")

    found = verify(changed(name, change), everything=True).differences
    assert [one.field for one in found] == [f"conformal.{field}" for field in fields]


def test_settings_without_effect_are_named(folder: Path) -> None:
    """The uncertainty of conformal prediction has an effect on numbers only."""
    for name, has_effect in (("lac", False), ("intervals", True)):
        left = " ".join(verify(f"{name}.json", everything=True).not_verified)
        settings = left.partition("Settings that no recomputed value depends on")[2]
        assert ("conformal: uncertainty, definition" in settings) != has_effect


def test_texts_that_are_not_recomputed_are_named(folder: Path) -> None:
    def change(record: Any) -> None:
        record["results"]["conformal"]["remark"] = "a text"
        record["items"][-1]["conformal"]["place"] = "a text"  # not of all items

    left = verify(changed("fnr", change), everything=True).not_verified
    assert any("remark" in text for text in left if "of the set" in text)
    assert any("place" in text for text in left if "of the items" in text)
