"""`uqeval.usecases.verify`: what agrees, what is found, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import Place, add, assert_found, differences, read, remove
from command import refused, run_well
from folders import made_in
from PIL import Image
from saved_runs import stack

import uqeval
from uqeval.errors import StoreError, UqevalError, UsageError
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.opening import is_inside
from uqeval.usecases.verify.verifying import verify

#: Stores by kind of data, and the metrics of each.
METRICS: dict[str, Any] = {
    "classes": ["segmentation", "pavpu", "calibration", "failure", "sparsification"],
    "numbers": ["regression", "nmerci", "sparsification"],
    "video": {"tc": {"flow": "file"}},
}


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store and a report of each kind, with paths relative to it."""
    with made_in(tmp_path_factory, "verified") as folder:
        for kind, metrics in METRICS.items():
            np.savez(f"{kind}.npz", **getattr(synthetic_data, kind)("verify"))
            given: dict[str, Any] = {"video": "video.npz"} if kind == "video" else {}
            report = uqeval.evaluate(
                None if given else f"{kind}.npz", metrics=metrics, workers=1,
                states=f"{kind}.states.zip", **given,
            )  # fmt: skip
            report.save(f"{kind}.json")
    return folder


def changed(kind: str, change: Any) -> str:
    """The report of a kind with its record changed, as a file."""
    record = json.loads(Path(f"{kind}.json").read_text())
    change(record)
    Path(f"{kind}.json").write_text(json.dumps(record))
    return f"{kind}.json"


@pytest.mark.parametrize("kind", METRICS)
def test_a_report_follows_from_its_predictions(kind: str, folder: Path) -> None:
    found = verify(f"{kind}.json", everything=True)
    assert found.passed, found.problems()
    assert found.compared["items"] > 20
    assert found.compared["set"] > 5
    assert json.loads(found.to_json())["result"] == "PASSED"
    assert any("not recomputed" in text for text in found.not_verified)


#: By kind: an item, a key and a score of it.
ITEM_SCORES: dict[str, list[tuple[int, str, str]]] = {
    "classes": [
        # The scores of patches follow from the report's own counts, so these are of another item.
        (2, "pavpu", "n_ac"), (1, "pavpu", "surplus"), (1, "segmentation", "miou"),
        (1, "calibration", "adaptive_ece"), (1, "calibration", "classwise_ece"),
        (1, "calibration", "pixels"),
        (1, "failure", "auroc"), (1, "sparsification", "ause"),
    ],
    "numbers": [
        (1, "regression", "crps"), (1, "nmerci", "nmerci"), (1, "sparsification", "aurg"),
    ],
    "video": [(1, "temporal", "tc")],
}  # fmt: skip


@pytest.mark.parametrize("kind", METRICS)
def test_changed_values_of_items_are_found(kind: str, folder: Path) -> None:
    record = read(f"{kind}.json")
    add(record["items"], ITEM_SCORES[kind])
    names = [f"item {item['name']}" for item in record["items"]]
    expected = [(names[item], f"{key}.{field}") for item, key, field in ITEM_SCORES[kind]]
    assert_found(differences(record), expected, [(names[2 % len(names)], "pavpu.")])


def test_a_video_with_names_from_a_file_or_numbers(folder: Path) -> None:
    """Items are pairs: their names lack that of the first frame."""
    arrays = dict(np.load("video.npz"))
    arrays.pop("names", None)
    np.savez("nameless.npz", **arrays)
    names = [f"drive_{i:02}" for i in range(len(arrays["frames"]))]
    for given in (names, None):
        report = uqeval.evaluate(
            metrics={"tc": {"flow": "file"}}, workers=1, video="nameless.npz", names=given
        )
        assert report.inputs.get("frame_names") == given
        report.save("named.json")
        assert verify("named.json", everything=True).passed
    record = json.loads(report.to_json())
    record["inputs"]["frame_names"] = [1]
    Path("named.json").write_text(json.dumps(record))
    with pytest.raises(StoreError, match=r"`frame_names\.0` is 1; expected a text"):
        verify("named.json")


def test_a_changed_pooled_score_is_found_with_all_items_alone(folder: Path) -> None:
    def change(record: Any) -> None:
        record["results"]["calibration"]["ece"] += 1e-3

    path = changed("classes", change)
    assert verify(path, items=1).passed
    found = verify(path, everything=True)
    assert [own.where for own in found.differences] == ["the set"]


#: Rows of classes, and points of curves that nothing follows from.
POINTS = [
    "segmentation.per_class.0.iou", "pavpu.per_class.-1.n_ic", "calibration.per_class.1.ece",
    "failure.per_class.0.aurc", "failure.risk_at_coverage.90", "failure.coverage_at_risk.5",
    "calibration.reliability.count.14", "calibration.brier_decomposition.resolution",
    "calibration.ace", "sparsification.curve.3", "sparsification.oracle.3",
    "sparsification.error_curve.3", "sparsification.fractions.3",
    "sparsification.normalisation",
    *(f"calibration.per_image.{name}" for name in ("mean", "median", "p90", "worst", "ace")),
    *(f"calibration.temperature.{name}" for name in ("ece", "mce", "nll", "pixels")),
    "pavpu.curve.t.7", "pavpu.curve.threshold.7", "pavpu.curve.p_accurate_given_certain.70",
    "pavpu.curve.p_uncertain_given_inaccurate.40", "pavpu.accuracy_curve.phi.50",
    "pavpu.accuracy_curve.p_certain.99", "pavpu.accuracy_curve.accuracy_threshold.7",
    "pavpu.accuracy_by_uncertainty.thresholds.4", "pavpu.accuracy_by_uncertainty.percentiles.4",
    "pavpu.accuracy_by_uncertainty.rows.1.pixels.0",
    "pavpu.accuracy_by_uncertainty.rows.1.accuracy.0",
]  # fmt: skip
#: What follows from the curves of patches.
PEAKS = ["pavpu.pavpu_peak.t", "pavpu.surplus_peak.value", "pavpu.surplus_auc"]


def place_in(record: Any, address: str) -> Place:
    """Return the steps to a value of the results."""
    steps: list[str | int] = []
    part = record["results"]
    for step in address.split("."):
        steps.append(int(step) if isinstance(part, list) else step)
        part = part[steps[-1]]
    return ("results", *steps)


def difference_of(record: Any, address: str) -> tuple[str, str]:
    """Return where a change of a value of the results is found, and its field."""
    key, *rest = address.split(".")
    if rest[0] != "per_class":
        return "the set", address
    name = record["results"][key]["per_class"][int(rest[1])]["name"]
    return f"the set, class {name}", f"{key}.{rest[2]}"


@pytest.mark.parametrize("addresses", [POINTS, PEAKS], ids=["points", "peaks"])
def test_changed_rows_and_points_of_curves_are_found(addresses: list[str], folder: Path) -> None:
    record = read("classes.json")
    add(record, [place_in(record, address) for address in addresses], 0.1, 9)
    expected = [difference_of(record, address) for address in addresses]
    # The scores of a row of patches follow from its own counts.
    assert_found(differences(record), expected, [("the set, class mixed", "pavpu.")])


def test_changed_levels_of_numbers_are_found(folder: Path) -> None:
    levels = [f"{field}.{level}" for field in ("coverage", "interval_score")
              for level in (50, 90, 95)]  # fmt: skip
    addresses = [f"regression.{own}" for own in (*levels, "calibration.p.7",
                                                 "calibration.observed.90")]  # fmt: skip
    record = read("numbers.json")
    add(record, [place_in(record, address) for address in addresses], 0.01)
    assert_found(differences(record), [("the set", address) for address in addresses])
    left = verify("changed.json", everything=True).not_verified
    assert not any(text.startswith("regression: not recomputed") for text in left)


def test_changed_classes_of_rows_are_found(folder: Path) -> None:
    record, expected = read("classes.json"), []
    for key in ("segmentation", "pavpu", "calibration", "failure"):
        first, second, *_ = record["results"][key]["per_class"]
        for field in ("class", "name"):
            first[field], second[field] = second[field], first[field]
        expected += [(f"the set, class {row['name']}", f"{key}.{field}")
                     for row in (first, second) for field in ("class", "name")]  # fmt: skip
    assert_found(differences(record), expected)


def test_what_follows_from_a_changed_value_differs_too(folder: Path) -> None:
    """Peak and area follow from the curve, scaled scores from the temperature, the bound of a curve
    from its points."""

    def change(record: Any) -> None:
        results = record["results"]
        results["pavpu"]["curve"]["surplus"][50] += 9
        results["calibration"]["temperature"]["value"] *= 1.01
        curve = results["failure"]["curve"]
        curve["risk"][len(curve["risk"]) // 2] += 0.2

    found = verify(changed("classes", change), everything=True)
    fields = {own.field for own in found.differences}
    assert {
        "pavpu.curve.surplus.50", "pavpu.surplus_peak.value", "pavpu.surplus_auc",
        "calibration.temperature.value", "calibration.temperature.nll",
    } <= fields  # fmt: skip
    assert any(name.startswith("failure.curve.risk.") for name in fields)


def test_a_risk_curve_with_too_few_points_is_found(folder: Path) -> None:
    def change(record: Any) -> None:
        curve = record["results"]["failure"]["curve"]
        for name in ("coverage", "risk"):
            curve[name] = [curve[name][0], curve[name][-1]]

    found = verify(changed("classes", change), everything=True)
    assert [own.field for own in found.differences] == ["failure.curve.bound"]


@pytest.mark.parametrize(
    ("settings", "value"),
    [({}, True), ({"fit_on": "fit.json"}, True), ({"temperature_of": "samples"}, False)],
)
def test_temperatures_that_are_not_recomputed_are_named(
    settings: dict[str, Any], value: bool, folder: Path
) -> None:
    names = [item["name"] for item in json.loads(Path("classes.json").read_text())["items"]]
    Path("fit.json").write_text(json.dumps(names[:2]))
    metrics = {"calibration": {**settings, "isotonic": True}}
    uqeval.evaluate("classes.npz", metrics=metrics, workers=1).save("other.json")
    found = verify("other.json", everything=True)
    assert found.passed, found.problems()
    assert ("temperature" in found.fields["calibration"]) == value
    left = " ".join(found.not_verified)
    assert ("calibration.temperature: " in left) != value
    assert "not recomputed of the set: isotonic" in left


def test_too_many_probabilities_for_a_temperature(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.load("classes.npz")["labels"].size
    monkeypatch.setattr("uqeval.usecases.verify.recomputation.MOST_BYTES", 65 * pixels)
    found = verify("classes.json", everything=True)
    assert found.passed, found.problems()
    assert "per_image" in found.fields["calibration"]
    assert "temperature" not in found.fields["calibration"]
    assert any(
        text.startswith("calibration.temperature: ") and "too many" in text
        for text in found.not_verified
    )


@pytest.mark.parametrize("scale", [0.02, 1, 60])
def test_temperatures_at_and_near_the_ends_of_the_search(
    scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels that the logits predict, some wrong; logits of this scale have a T near it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 3, 20, 20))
    powers = np.exp(logits)
    labels = (powers.cumsum(1) < rng.random((2, 1, 20, 20)) * powers.sum(1, keepdims=True)).sum(1)
    probs = np.exp(scale * (logits - logits.max(1, keepdims=True)))
    probs /= probs.sum(1, keepdims=True)
    np.savez("p.npz", probs=probs[:, None], labels=labels.astype(np.uint8))
    report = uqeval.evaluate("p.npz", metrics={"calibration": {}}, workers=1)
    assert (report.results["calibration"]["temperature"]["value"] is None) == (scale != 1)
    report.save("p.json")
    found = verify("p.json", everything=True)
    assert found.passed, found.problems()
    assert "temperature" in found.fields["calibration"]

    record = json.loads(Path("p.json").read_text())
    record["results"]["calibration"]["temperature"]["value"] = 1.5
    Path("p.json").write_text(json.dumps(record))
    fields = [own.field for own in verify("p.json", everything=True).differences]
    assert "calibration.temperature.value" in fields


#: By kind, removed scores of the set.
REMOVED: dict[str, list[Place]] = {
    "classes": [("failure", "aurc"), ("calibration", "brier"), ("segmentation", "miou")],
    "numbers": [("nmerci", "nmerci")], "video": [("temporal", "mtc")],
}  # fmt: skip


@pytest.mark.parametrize("kind", METRICS)
def test_removed_scores_and_rows_are_found(kind: str, folder: Path) -> None:
    record = read(f"{kind}.json")
    remove(record["results"], REMOVED[kind])
    expected = [("the set", ".".join(map(str, place))) for place in REMOVED[kind]]
    if kind == "classes":
        item = record["items"][1]
        remove(item, [("failure", "auroc")])
        remove(record["results"], [
            ("segmentation", "per_class", 2, "iou"), ("failure", "per_class", -1),
        ])  # fmt: skip
        expected += [
            (f"item {item['name']}", "failure.auroc"), ("the set, class 2", "segmentation.iou"),
            ("the set", "failure.per_class"),
        ]  # fmt: skip
    found = differences(record)
    assert_found(found, expected)
    assert all(own.is_missing or own.field == "failure.per_class" for own in found)
    for place in REMOVED[kind]:
        address = ".".join(map(str, place))
        assert f"the set: {address} is missing, recomputed " in " ".join(map(str, found))


def test_items_are_chosen_by_seed(folder: Path) -> None:
    chosen = [verify("classes.json", items=2, seed=seed).items for seed in (0, 0, 1, 2, 3)]
    assert chosen[0] == chosen[1]
    assert len({tuple(own) for own in chosen}) > 1


def test_changed_stores_are_named(folder: Path) -> None:
    store = dict(np.load("classes.npz"))
    store["labels"] = np.roll(store["labels"], 1, axis=1)
    np.savez("classes.npz", **store)
    found = verify("classes.json", items=2)
    assert not found.passed
    assert any("classes.npz" in text and "fingerprint" in text for text in found.problems())


def test_changed_states_are_named(folder: Path) -> None:
    shutil.copy("numbers.states.zip", "classes.states.zip")
    problems = verify("classes.json", items=1).problems()
    assert len(problems) == 1
    assert "classes.states.zip" in problems[0] and "of another report" in problems[0]


def test_given_stores_take_the_place_of_the_paths(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(folder.parent)
    fix = "give the stores: uqeval verify work/classes.json PREDICTIONS"
    with pytest.raises(UsageError, match=f"nothing at the path of its predictions, .*{fix}"):
        verify("work/classes.json")
    assert verify("work/classes.json", ["work/classes.npz"], items=1).passed
    with pytest.raises(UsageError, match="2 stores for the report"):
        verify("work/classes.json", ["work/classes.npz", "work/numbers.npz"])
    with pytest.raises(UsageError):
        verify("work/classes.json", ["work/numbers.npz"])


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.npz", "a/../../x", "s3://b/x.zarr", "~/x"])
def test_a_path_in_a_report_does_not_lead_out_of_the_folder(path: str, folder: Path) -> None:
    def change(record: Any) -> None:
        record["inputs"]["predictions"][0]["path"] = path

    assert not is_inside(path)
    with pytest.raises(UsageError, match="outside the working folder"):
        verify(changed("numbers", change))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.update(partial=True), "partial report"),
        (lambda r: r["inputs"].update(missing_parts={"numbers": [2], "of": 2}), "partial report"),
        (lambda r: r.update(results={"sweep": {}}), "is a report of uqeval sweep, which cannot"),
        (lambda r: r.update(uqeval_version="0.0.1"), "was written by uqeval 0.0.1"),
        (lambda r: r["inputs"].update(merged_runs=2), "is merged from runs"),
        (lambda r: r["items"][0].update(name="somebody else"), "are not the 4 items"),
    ],
)
def test_what_cannot_be_verified_is_refused(change: Any, says: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=says):
        verify(changed("classes", change))


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r["settings"]["pavpu"].pop("window"),
        lambda r: r["settings"]["pavpu"].update(stride=0),
        lambda r: r["settings"].update(calibration=3),
        lambda r: r["inputs"].update(frames="x"),
    ],
)
def test_a_forged_report_is_no_bug(change: Any, folder: Path) -> None:
    with pytest.raises((StoreError, UsageError)):
        verify(changed("classes", change))


def test_what_is_not_covered_is_named(folder: Path) -> None:
    report = uqeval.evaluate(
        "classes.npz", metrics={"pavpu": {"border": "partial"}, "calibration": {}}, workers=1
    )
    report.save("other.json")
    found = verify("other.json", everything=True)
    assert found.passed
    assert "calibration" in found.fields and "pavpu" not in found.fields
    assert any("pavpu: --border partial" in text for text in found.not_verified)


REGIONS = ["boundary:2.5", "interior:2", "class:1", "box:0.25:1,0:0.7"]


def test_scores_of_regions_are_recomputed_and_changed_ones_found(folder: Path) -> None:
    metrics: dict[str, Any] = {name: {} for name in METRICS["classes"]}
    metrics |= {"pavpu": {"region_share": [0.5, 0.8]}}
    report = uqeval.evaluate(
        "classes.npz", metrics=metrics, region=REGIONS, ci=0.9, draws=300, workers=1,
        states="r.states.zip",
    )  # fmt: skip
    assert len(report.intervals) > 100
    report.save("regions.json")
    found = verify("regions.json", everything=True)
    assert found.passed, found.problems()
    for region in (f"@{text}" for text in (*REGIONS[:2], *REGIONS[3:])):
        assert {"miou"} < set(found.fields[f"segmentation{region}"])
        assert {"n_ac", "surplus"} < set(found.fields[f"pavpu[region_share=0.8]{region}"])
        assert {"ece", "adaptive_ece"} < set(found.fields[f"calibration{region}"])
        assert {"auroc", "fpr95"} < set(found.fields[f"failure{region}"])
        assert {"ause"} < set(found.fields[f"sparsification{region}"])
    left_out = " ".join(found.not_verified)
    assert "intervals of pixel_accuracy" not in left_out and "intervals of ece" not in left_out

    record, expected, follow = read("regions.json"), [], []
    for region in (REGIONS[1], REGIONS[3]):
        places: list[Place] = [
            (f"{key}@{region}", field) for key, field in
            (("segmentation", "miou"), ("pavpu", "n_au"), ("failure", "auroc"))
        ]  # fmt: skip
        add(record["results"], places, 1e-4, 1)
        expected += [("the set", ".".join(map(str, place))) for place in places]
        follow.append(("the set", f"pavpu@{region}."))
    # The name of this region has dots.
    interval = f'segmentation@"{REGIONS[3]}".miou'
    add(record, [("intervals", interval, "low")], 1e-4)
    expected.append((f"interval of {interval}", f"segmentation@{REGIONS[3]}.low"))
    assert_found(differences(record), expected, follow)


def test_boxes_and_depths_of_numbers_are_recomputed(folder: Path) -> None:
    regions = ["box:0:0.5,0.1:1", "depth:0-20", "depth:2e1-inf"]
    uqeval.evaluate("numbers.npz", metrics=METRICS["numbers"], region=regions, workers=1).save(
        "regions.json"
    )
    found = verify("regions.json", everything=True)
    assert found.passed, found.problems()
    for region in ("box:0:0.5,0.1:1", "depth:0-20", "depth:20-inf"):
        assert {"rmse", "auce"} < set(found.fields[f"regression@{region}"])
        assert {"nmerci"} < set(found.fields[f"nmerci@{region}"])


def with_maps() -> str:
    """A report of regions of a map of ids and of depths, both in files of their own."""
    rows = np.arange(24)[:, None] + np.zeros((4, 24, 24))
    np.savez("areas.npz", labels=(rows // 8).astype(np.uint8))
    np.savez("depth.npz", depth=rows.astype(np.float32))
    uqeval.evaluate(
        "classes.npz", metrics=["segmentation", "failure"], workers=1,
        region=["map:areas.npz", "depth:3-9.5"], depth_map="depth.npz",
    ).save("maps.json")  # fmt: skip
    return "maps.json"


def test_regions_of_maps_and_depths_are_recomputed(folder: Path) -> None:
    found = verify(with_maps(), everything=True)
    assert found.passed, found.problems()
    for region in ("map:areas.npz:0", "map:areas.npz:2", "depth:3-9.5"):
        assert {"auroc", "fpr95"} < set(found.fields[f"failure@{region}"])
    np.savez("areas.npz", labels=np.ones((4, 24, 24), np.uint8))
    changed_map = verify("maps.json", everything=True)
    assert any("areas.npz (regions) was changed" in text for text in changed_map.problems())
    assert changed_map.differences


def test_independent_pairs_of_each_score_of_a_video_are_recomputed(folder: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 3, (41, 8, 8)).astype(np.uint8)
    colours = np.cumsum(np.repeat(ids[..., None], 3, axis=-1), axis=0, dtype=np.uint8)
    np.savez("long.npz", frames=colours, predictions=ids, flow=np.zeros((40, 8, 8, 2), "f4"))
    uqeval.evaluate(
        metrics=METRICS["video"], workers=1, video="long.npz", ci=0.9, draws=100
    ).save("v.json")  # fmt: skip
    assert not verify("v.json", everything=True).differences
    record = json.loads(Path("v.json").read_text())
    record["intervals"]["temporal.mtc"]["effective"] *= 2
    record["intervals"]["temporal.mse_warp"]["lag1"] += 0.1
    record["intervals"]["temporal.mtc_pooled"]["units"]["drawn"] += 4
    Path("v.json").write_text(json.dumps(record))
    found = {(own.where, own.field) for own in verify("v.json", everything=True).differences}
    assert found == {
        ("interval of temporal.mtc", "temporal.effective"),
        ("interval of temporal.mse_warp", "temporal.lag1"),
        ("interval of temporal.mtc_pooled", "temporal.units.drawn"),
    }


def test_regions_of_a_video_are_recomputed(folder: Path) -> None:
    """Labels are void in places: these pixels are neither boundary nor interior."""
    arrays = dict(np.load("video.npz"))
    labels = np.roll(arrays["predictions"], 1, axis=2)
    labels[:, 10:20, 5:9] = 255
    np.savez("regions.npz", **{**arrays, "labels": labels})
    regions = ["boundary:1.5", "interior:1.5", "class:1", "box:0:0.6,0.1:1"]
    report = uqeval.evaluate(
        metrics={"tc": {"flow": "file"}}, workers=1, video="regions.npz", region=regions
    )
    report.save("regions.json")
    found = verify("regions.json", everything=True)
    assert found.passed, found.problems()
    for region in regions:
        assert {"tc", "miou", "coverage", "mtc"} < set(found.fields[f"temporal@{region}"])


@pytest.mark.parametrize("option", ["region", "depth_map"])
def test_a_map_in_a_report_does_not_lead_out_of_the_folder(option: str, folder: Path) -> None:
    record = json.loads(Path(with_maps()).read_text())
    outside = "../areas.npz"
    record["inputs"]["options"][option] = [f"map:{outside}"] if option == "region" else outside
    Path("maps.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"is \.\./areas\.npz, which is outside"):
        verify("maps.json")


def test_forged_regions_are_named(folder: Path) -> None:
    regions = ["boundary:x", "class:nothing", "box:1", "box:0:1,0:1,0:1", "depth:x", "map:areas:x"]

    def change(record: Any) -> None:
        for part in ("results", "settings", *record["items"]):
            of_key = record[part] if isinstance(part, str) else part
            for region in regions:
                of_key[f"segmentation@{region}"] = of_key["segmentation"]

    found = verify(changed("classes", change))
    for region in regions:
        assert f"segmentation@{region}: {region} is no region." in found.not_verified


def test_variants_with_other_bins(folder: Path) -> None:
    """Each variant has class bins of its own, and pixels near their edges."""
    variants = {"calibration": {"definition": ["paper", "values"]}}
    report = uqeval.evaluate("classes.npz", metrics=variants, workers=1)
    first, second = (report.results[key] for key in ("calibration", "calibration[values]"))
    assert first["classwise_ece"] != second["classwise_ece"]
    report.save("variants.json")
    found = verify("variants.json", everything=True)
    assert found.passed, found.problems()
    assert "classwise_ece" in found.fields["calibration"]
    assert "classwise_ece" in found.fields["calibration[values]"]


def test_logits_members_maps_and_samples_agree(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    own = synthetic_data.classes("kinds", items=2)
    mean = own["probs"].astype(np.float32)
    mean = mean if mean.ndim == 4 else mean.mean(axis=1)
    ids = mean.argmax(axis=1).astype(np.uint8)
    np.savez("maps.npz", mean_probs=mean, predictions=ids, labels=own["labels"])
    whole = np.rint(mean * 65535).astype(np.uint16)
    np.savez(
        "integers.npz", mean_probs=whole, scale=1 / 65535, predictions=ids, labels=own["labels"]
    )
    weights = np.log(own["probs"].astype(np.float32) + 1e-3)
    np.savez("logits.npz", logits=weights, labels=own["labels"], names=own["names"])
    numbers = synthetic_data.numbers("kinds", items=2)
    noise = synthetic_data.uniform("members", (3, 2, 24, 24)).transpose(1, 0, 2, 3)
    members = (numbers["mean"][:, None] + noise).astype(np.float32)
    np.savez("samples.npz", samples=members, target=numbers["target"])
    spread = np.log(numbers["std"][:, None].repeat(3, axis=1))
    np.savez("members.npz", mean=members, log_std=spread, target=numbers["target"])
    for store, metrics in (
        ("logits", METRICS["classes"]), ("maps", METRICS["classes"]),
        ("integers", ["calibration", "failure"]),
        ("samples", METRICS["numbers"]), ("members", METRICS["numbers"]),
    ):  # fmt: skip
        report = uqeval.evaluate(f"{store}.npz", metrics=metrics, workers=1)
        report.save(f"{store}.json")
        found = verify(f"{store}.json", everything=True)
        assert found.passed, found.problems()
        assert found.compared["set"] > 10
        if store == "maps":  # confidence and entropy are not stored
            assert {"ece", "nll"} <= set(found.fields["calibration"])
            assert {"auroc", "aurc"} <= set(found.fields["failure"])


@pytest.mark.parametrize(
    ("kind", "metrics", "options"),
    [
        ("video", {"tc": {"flow": "dis", "occlusion": "fb"}}, {}),
        ("video", {"tc": {"flow": "dis:fast"}}, {}),
        (
            "video",
            {"tc": {"flow": "farneback", "occlusion": "fb", "absent": "zero"}},
            {"classes": 20},
        ),
        ("numbers", {"nmerci": {"interpolation": "inverted_cdf"}, "regression": {}}, {}),
        ("numbers", ["regression", "nmerci"], {"region": ["box:0:0.5,0:1"]}),
        ("classes", {"divergence": {"clip": 1e-3}}, {"reference": "other.npz"}),
        ("classes", {"calibration": {"estimator": ["kumar-l1", "kumar-l2"]}}, {}),
        ("classes", {"pavpu": {"log_base": 2.0}}, {}),
    ],
)
def test_other_settings_agree(kind: str, metrics: Any, options: Any, folder: Path) -> None:
    """A mask of valid pixels belongs to all of them that have a target."""
    arrays = dict(np.load(f"{kind}.npz"))
    if kind == "numbers":
        arrays["valid"] = np.random.default_rng(0).random(arrays["mean"].shape) < 0.7
    np.savez("given.npz", **arrays)
    np.savez("other.npz", **synthetic_data.classes("other"))
    given: dict[str, Any] = {"video": "given.npz"} if kind == "video" else {}
    report = uqeval.evaluate(
        None if given else "given.npz", metrics=metrics, workers=1, **given, **options
    )
    report.save("report.json")
    found = verify("report.json", everything=True)
    assert found.passed, found.problems()
    assert set(report.settings) <= {*found.fields, "segmentation"}
    assert found.compared["items"] and found.compared["set"]


def test_unknown_forward_flow_beside_a_place_and_flow_that_is_too_long(folder: Path) -> None:
    """Bilinear interpolation does not read neighbours of weight 0; (9e8, 9e8) is above 1e9."""
    rng = np.random.default_rng(0)
    flow = np.zeros((2, 1, 8, 8, 2), np.float32)
    flow[1, 0, 3, 4] = np.nan
    flow[0, 0, 6, 6] = 9e8
    np.savez(
        "occluded.npz", frames=rng.integers(0, 256, (2, 8, 8, 3), dtype=np.uint8),
        predictions=rng.integers(0, 2, (2, 8, 8), dtype=np.uint8), flow=flow[0],
        flow_forward=flow[1],
    )  # fmt: skip
    settings = {"flow": "file", "occlusion": "fb"}
    report = uqeval.evaluate(metrics={"tc": settings}, workers=1, video="occluded.npz")
    assert report.results["temporal"]["occluded"]["share"] == 1 / 64
    report.save("report.json")
    found = verify("report.json", everything=True)
    assert found.passed, found.problems()


def test_divergence_agrees(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        np.savez(f"{name}.npz", **synthetic_data.numbers(name))
    report = uqeval.evaluate("a.npz", metrics=["divergence"], reference="b.npz", workers=1)
    report.save("report.json")
    found = verify("report.json", everything=True)
    assert found.passed, found.problems()
    assert found.fields == {"divergence": ["infinite", "kl", "pixels"]}
    assert [own["role"] for own in found.stores] == ["predictions", "reference", "target"]


@pytest.mark.parametrize("reference_names", [["c", "d", "e", "f"], ["a", "b", "c", "d"], None])
def test_names_of_the_run_replace_those_of_the_stores(
    reference_names: list[str] | None, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for store, names in (("a", ["a", "b", "c", "d"]), ("b", reference_names)):
        arrays = synthetic_data.numbers(store, items=4)
        np.savez(f"{store}.npz", **arrays, **({} if names is None else {"names": names}))
    Path("names.txt").write_text("w\nx\ny\nz\n")
    run_well("divergence", "a.npz", "b.npz", "--names", "names.txt", "-o", "r.json", "-q")
    Path("names.txt").unlink()  # the report has the names
    found = verify("r.json", everything=True)
    assert found.passed, found.problems()
    assert found.compared["set"]
    assert any("names of items that --names gives" in text for text in found.not_verified)

    text = Path("r.json").read_text()
    Path("changed.json").write_text(text.replace('"names": "names.txt"', '"names": null'))
    with pytest.raises(UqevalError, match="its 4 items are not the 4 items of"):
        verify("changed.json", everything=True)


def test_files_of_labels_are_matched_by_the_names_of_the_run(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    probs, labels = stack(3)
    np.savez("classes.npz", probs=probs, names=["a", "b", "c"])
    Path("labels").mkdir()
    for name, own in zip("xyz", labels, strict=True):
        Image.fromarray(own.astype(np.uint8)).save(Path("labels") / f"{name}.png")
    report = uqeval.evaluate(
        "classes.npz", "labels", metrics=["segmentation"], names=["x", "y", "z"], workers=1
    )
    report.save("report.json")
    found = verify("report.json", everything=True)
    assert found.passed, found.problems()


def test_divergence_leaves_out_invalid_targets(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        arrays = synthetic_data.numbers(name)
        arrays["target"][:, :2] = -999
        np.savez(f"{name}.npz", **arrays)
    report = uqeval.evaluate(
        "a.npz", metrics=["divergence"], reference="b.npz", invalid=[-999], workers=1
    )
    report.save("report.json")
    found = verify("report.json", everything=True)
    assert found.passed, found.problems()


@pytest.fixture(scope="module")
def cut_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reports that have intervals by group, slices and published estimates."""
    folder = tmp_path_factory.mktemp("cut")
    probs, labels = stack(9)
    np.savez(folder / "classes.npz", probs=probs, labels=labels)
    rng = np.random.default_rng(0)
    std, target = rng.gamma(2, 1, (2, 9, 8, 9)) + 0.1
    np.savez(folder / "numbers.npz", mean=target + rng.normal(size=std.shape) * std, std=std,
             target=target)  # fmt: skip
    names = [f"n{8 - i}" for i in range(9)]  # not in their order
    rows = "".join(f"{n},d{i // 2 if i < 2 else i},{'wet' if i % 3 else 'dry'}\n"
                   for i, n in enumerate(names))  # fmt: skip
    (folder / "items.csv").write_text("name,drive,weather\n" + rows)
    kumar = {"estimator": ["kumar-l2", "kumar-l1", "roelofs-sweep"]}
    asked: dict[str, Any] = {
        "classes": {"pavpu": {}, "calibration": kumar},
        "numbers": {"regression": {}},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for kind, metrics in asked.items():
            report = uqeval.evaluate(
                f"{kind}.npz", metrics=metrics, workers=1, names=names, ci=0.9, seed=3, draws=300,
                slices="items.csv", slice_by=["weather"], group_by="drive",
            )  # fmt: skip
            report.save(f"{kind}.json")
    return folder


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("classes", {"segmentation.miou", "pavpu.pavpu", "pavpu.surplus", "calibration.ece",
                     "calibration.mce_debiased", "calibration.classwise_ece", "calibration.nll"}),
        ("numbers", {"regression.auce", "regression.auce_debiased", "regression.rmse"}),
    ],
)  # fmt: skip
def test_intervals_slices_and_estimates(
    kind: str, fields: set[str], cut_once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(cut_once)
    found = verify(f"{kind}.json", everything=True)
    assert found.passed, found.problems()
    assert found.compared["intervals"] >= 2 * len(fields) and found.compared["slices"] > 10
    left = " ".join(found.not_verified)
    scores_left = left.replace(",", " ").split()
    assert not any(name.partition(".")[2] in scores_left for name in fields)
    if kind == "classes":
        assert "adaptive_ece" in scores_left and "sweep_bins is taken" in left
        keys = found.fields
        assert "kumar_l2" in keys["calibration"]
        assert "kumar_l1" in keys["calibration[estimator=kumar-l1]"]
        assert "sweep_l2" in keys["calibration[estimator=roelofs-sweep]"]
    record = json.loads(Path(f"{kind}.json").read_text())
    forged: list[tuple[dict[str, Any], str]] = [
        (record["intervals"][name], end) for name in fields if name in record["intervals"]
        for end in ("low", "high")
    ]  # fmt: skip
    for name in fields:
        if name.endswith("_debiased"):
            key, field = name.split(".")
            forged.append((record["results"][key], field))
    key = "pavpu" if kind == "classes" else "regression"
    forged.append((record["slices"]["weather=wet"]["results"][key], "pavpu" if kind == "classes"
                   else "mae"))  # fmt: skip
    if kind == "classes":
        assert "smooth_ece" in keys["calibration"]
        calibrations = [
            own["results"]["calibration"] for own in (record, record["slices"]["weather=wet"])
        ]
        forged += [(own, "smooth_ece") for own in calibrations]
    for place, name in forged:
        place[name] += 1e-3
    Path("forged.json").write_text(json.dumps(record))
    found = verify("forged.json", everything=True)
    assert len(found.differences) == len(forged), found.problems()


def test_changed_flow_and_frames_of_a_video(folder: Path) -> None:
    uqeval.evaluate(metrics={"tc": {"flow": "dis"}}, workers=1, video="video.npz", ci=0.9).save(
        "dis.json"
    )
    found = verify("dis.json", everything=True)
    assert found.passed, found.problems()
    for name in ("method", "draws", "seed", "units", "generator"):
        assert f"settings.intervals.{name}" in " ".join(found.not_verified)
    for name, value, says in (
        ("flow_parameters", {"a": 1}, "flow_parameters is {'a': 1}; a run with this flow records"),
        ("flow", "dis", "flow is 'dis'; a run with this flow records 'dis:medium'"),
        ("flow", "diss", "flow='diss'; expected one of farneback"),
    ):
        record = read("dis.json")
        record["settings"]["temporal"][name] = value
        says = f"changed.json: settings.temporal: {says}"
        refused(lambda r=record: differences(r), says, error=StoreError)
    record = read("dis.json")
    for item in record["items"]:
        item["temporal"] |= {"previous": "other", "sequence": "other"}
    fields = {one.field for one in differences(record)}
    assert fields >= {"temporal.previous", "temporal.sequence"}
