"""Several annotators: conventions of the distances, NCC as ValUES writes it, and what is undefined.

The values of all metrics on usual data are in `test_metric_law.py`.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import naive_annotators as naive
import numpy as np
import pytest
from scenes import softmax
from small_videos import save_folder, save_store, video

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.usecases.reduce import reduce

VOID = naive.VOID


def one_hot(ids: Any, classes: int = 2) -> Any:
    """Probabilities [item, sample, class, y, x] of ids [item, sample, y, x]."""
    return np.moveaxis(np.eye(classes)[np.asarray(ids)], -1, 2).astype("f4")


def evaluated(probs: Any, labels: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = uqeval.evaluate(
        probs, np.asarray(labels, "u1"), {"annotators": options}
    ).results["annotators"]
    return found


FULL, LEFT, NONE = [[1, 1]], [[1, 0]], [[0, 0]]


@pytest.mark.parametrize(
    ("samples", "raters", "expected"),
    [
        # Two samples like the two annotators: the same distribution.
        ([FULL, LEFT], [FULL, LEFT], 0.0),
        # 1 - IoU of FULL and LEFT is 1/2: 2·(0 + 1/2)/2 - 0 - (0 + 1/2 + 1/2 + 0)/4.
        ([FULL, FULL], [FULL, LEFT], 0.25),
        # Both empty: distance 0. One of them empty: distance 1.
        ([NONE, NONE], [NONE, NONE], 0.0),
        ([NONE], [NONE, FULL], 0.5),
        ([FULL], [NONE, NONE], 2.0),
    ],
)
def test_energy_distance_by_hand(samples: Any, raters: Any, expected: float) -> None:
    """Two classes: the foreground alone counts."""
    record = evaluated(one_hot([samples]), [raters])
    assert record["ged"] == pytest.approx(expected, abs=1e-15)
    assert evaluated(one_hot([samples]), [raters], absent="agree")["ged"] == record["ged"]


@pytest.mark.parametrize("distance", ["iou", "dice"])
@pytest.mark.parametrize("absent", ["skip", "agree", "disagree"])
@pytest.mark.parametrize("pairs", ["mean", "pooled"])
def test_all_conventions(distance: str, absent: str, pairs: str) -> None:
    """On items with classes that only one map has, and classes that none has."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 3, (3, 3, 2, 3)).astype("u1")
    labels[0], labels[1, :2] = 1, 0
    ids = rng.integers(0, 2, (3, 2, 2, 3))
    ids[1] = 0
    for counted, names in (([0, 1, 2, 3], "all"), ([1, 2, 3], "foreground")):
        record = evaluated(
            one_hot(ids, 4), labels, distance=distance, absent=absent, pairs=pairs,
            distance_classes=names,
        )  # fmt: skip
        found = [
            naive.distances(s, y, counted, distance, absent, pairs)
            for s, y in zip(ids, labels, strict=True)
        ]
        for name in ("ged", "distance", "diversity", "agreement", "annotator_ged"):
            expected = float(np.mean([own[name] for own in found if own is not None]))
            assert record[name] == pytest.approx(expected, abs=1e-12), name


def test_values_preset() -> None:
    """NCC with N beside standard deviations of ddof 1, of the variance of binary labels."""
    rng = np.random.default_rng(3)
    probs, labels = softmax(3, 2, 3, 2, 4, 5), rng.integers(0, 2, (2, 4, 4, 5)).astype("u1")
    report = uqeval.evaluate(probs, labels, {"annotators": {"definition": ["paper", "values"]}})
    plain, values = (report.results[key] for key in ("annotators", "annotators[definition=values]"))
    entropy = -(probs.mean(1) * np.log(probs.mean(1))).sum(1).astype("f4")
    expected = []
    for u, y in zip(entropy, labels, strict=True):
        gt, pred = np.var(y.astype(float), axis=0), u.astype(float)
        top = np.sum((gt - gt.mean()) * (pred - pred.mean()))
        expected.append(top / (gt.size * np.std(gt, ddof=1) * np.std(pred, ddof=1)))
    assert values["ncc"] == pytest.approx(np.mean(expected), rel=1e-6)
    assert values["ncc"] == pytest.approx(plain["ncc"] * 19 / 20, rel=1e-12)
    assert plain["ged"] != values["ged"]
    assert report.settings["annotators[definition=values]"]["pairs"] == "pooled"


def test_entropy_of_votes_is_the_least_cross_entropy() -> None:
    """Probabilities that are the shares of the votes: KL 0, and ECE 0 where they are the same."""
    labels = np.array([[[[0, 1, 1]], [[0, 1, 0]], [[0, 1, 1]], [[0, 1, 0]]]], "u1")
    shares = np.array([[[[1, 0, 0.5]], [[0, 1, 0.5]]]], "f4")
    record = evaluated(shares, labels, disagreement="entropy")
    assert record["cross_entropy"] == record["label_entropy"] == pytest.approx(np.log(2) / 3)
    assert record["kl"] == record["brier"] == record["ece"] == 0
    assert record["ncc"] == pytest.approx(1)


def test_no_negative_divergence_of_shares_that_float32_rounds_up() -> None:
    """1/3 is 0.33333334 in float32, so the cross-entropy is below the entropy of the votes."""
    labels = np.array([[[[0, 0]], [[1, 1]], [[2, 2]]]], "u1")
    record = evaluated(np.full((1, 3, 1, 2), 1 / 3, "f4"), labels)
    assert record["cross_entropy"] < record["label_entropy"] and record["kl"] == 0


def test_confidence_one_is_in_the_last_bin() -> None:
    probs = np.array([[[[1.0, 0.9]], [[0.0, 0.1]]]], np.float32)[:, None]
    labels = np.array([[[[1, 0]], [[0, 0]]]], np.uint8)
    record = evaluated(probs, labels, bins=5)
    gaps = np.array([0.5 - 1.0, 1.0 - 0.9])
    assert record["reliability"]["count"] == [0, 0, 0, 0, 2]
    assert record["ece"] == pytest.approx(abs(gaps.sum()) / 2, abs=1e-7)


def test_an_annotator_who_did_not_label_an_item_is_absent() -> None:
    """A void plane; void pixels of the others leave the item for all."""
    rng = np.random.default_rng(5)
    probs, labels = softmax(5, 3, 2, 3, 3, 4), rng.integers(0, 3, (3, 3, 3, 4)).astype("u1")
    padded = labels.copy()
    padded[0, 2] = VOID
    padded[1, 1:] = VOID
    padded[2, 0, 0, :2] = VOID
    report = uqeval.evaluate(probs, padded, ["annotators"])
    items = [item["annotators"] for item in report.items]
    assert items[0]["ged"] == evaluated(probs[:1], labels[:1, :2])["ged"]
    assert items[1]["ged"] is None and "two annotators" in items[1]["ged_reason"]
    assert items[1]["ncc"] is None and items[1]["cross_entropy"] > 0
    assert items[2]["pixels"] == 10
    assert report.numerics["annotators"]["fewer_than_two"] == 1
    assert any("1 of 3 items have labels of fewer than two" in text for text in report.warnings)
    assert report.results["annotators"]["items"] == 2


def test_one_annotator() -> None:
    """What needs two is undefined, with the reason; calibration is that of labels."""
    rng = np.random.default_rng(6)
    probs, labels = softmax(6, 2, 2, 3, 3, 4), rng.integers(0, 3, (2, 1, 3, 4)).astype("u1")
    report = uqeval.evaluate(probs, labels, {"annotators": {}, "calibration": {}})
    record = report.results["annotators"]
    for name in ("ged", "ncc", "agreement", "annotator_ged", "kappa"):
        assert record[name] is None and record[f"{name}_reason"], name
    assert record["ece"] == report.results["calibration"]["ece"]
    assert record["cross_entropy"] == pytest.approx(report.results["calibration"]["nll"])


def test_other_metrics_take_the_majority() -> None:
    """On a tie the lowest id; a warning says so."""
    labels = np.array([[[[2, 1, 0]], [[1, 1, VOID]], [[2, 0, 0]], [[1, 0, 0]]]], "u1")
    probs = one_hot([[[[1, 0, 0]]]], 3)
    report = uqeval.evaluate(probs, labels, ["segmentation"])
    assert report.results["segmentation"]["pixel_accuracy"] == 1.0
    assert report.results["segmentation"]["pixels"] == 2
    assert any("the labels are from 4 annotators" in text for text in report.warnings)
    one = uqeval.evaluate(probs, labels[:, 0], "all")
    assert "annotators" not in one.results and "annotators" not in " ".join(one.warnings)


def test_items_of_one_pixel() -> None:
    """Image classification with the votes of several people: labels [item, annotator]."""
    rng = np.random.default_rng(7)
    p, votes = rng.dirichlet(np.ones(4), (9, 3)).astype("f4"), rng.integers(0, 4, (9, 5))
    report = uqeval.evaluate({"probs": p, "labels": votes}, None, ["annotators"])
    wide = p[..., None, None], votes.astype("u1")[..., None, None]
    expected = naive.annotators(wide[0], np.ones((9, 1, 1)), wide[1])
    for name in ("ged", "kl", "brier", "accuracy", "agreement", "kappa"):
        value = report.results["annotators"][name]
        assert value == pytest.approx(expected[name], rel=1e-6, abs=1e-12), name
    assert report.results["annotators"]["ncc"] is None


def test_chunks_blocks_and_maps_give_the_same_bits(tmp_path: Path) -> None:
    """Samples and classes in several tiles, a map cache, a maps store, and the Evaluator."""
    import zarr

    rng = np.random.default_rng(8)
    probs, labels = softmax(8, 4, 3, 4, 9, 7), rng.integers(0, 4, (4, 3, 9, 7)).astype("u1")
    whole = uqeval.evaluate(probs, labels, ["annotators"])
    path = tmp_path / "cut.zarr"
    group = zarr.create_group(str(path))
    for name, values, chunks in (
        ("probs", probs, (2, 1, 3, 4, 5)), ("labels", labels, (3, 2, 5, 4))
    ):  # fmt: skip
        array = group.create_array(
            name, shape=values.shape, dtype=values.dtype, chunks=chunks,
            config={"write_empty_chunks": True},
        )  # fmt: skip
        array[...] = values
    cut = uqeval.evaluate(path, None, ["annotators"], map_cache=tmp_path / "maps", workers=1)
    again = uqeval.evaluate(path, None, ["annotators"], map_cache=tmp_path / "maps")
    assert whole.results == cut.results == again.results and whole.items == cut.items
    reduce(open_inputs(path, None, InputOptions()), tmp_path / "reduced.zarr")
    maps = uqeval.evaluate(tmp_path / "reduced.zarr", None, ["annotators"]).results
    with uqeval.Evaluator(metrics=["annotators"]) as evaluator:
        evaluator.update(probs[:3], labels[:3], [f"{i}" for i in range(3)])
        evaluator.update(probs[3:], labels[3:], ["3"])
        live = evaluator.report().results
    assert live == maps
    assert maps == whole.results
    shutil.rmtree(tmp_path / "reduced.zarr" / "sample_predictions")
    without = uqeval.evaluate(tmp_path / "reduced.zarr", None, ["annotators"]).results
    record, of_maps = whole.results["annotators"], without["annotators"]
    assert of_maps["ged"] is None and "no `sample_predictions`" in of_maps["ged_reason"]
    same = ("ncc", "ece", "kl", "brier", "annotator_ged", "agreement", "kappa", "reliability")
    assert all(record[name] == of_maps[name] for name in same)


def test_a_sweep_over_the_samples() -> None:
    """One sample has no diversity; all samples give the GED of the run."""
    rng = np.random.default_rng(9)
    probs, labels = softmax(9, 2, 3, 3, 5, 6), rng.integers(0, 3, (2, 3, 5, 6)).astype("u1")
    swept = uqeval.sweep(probs, labels, ["annotators"], samples=[1, 3], repeats=3).results["sweep"]
    whole = evaluated(probs, labels)
    assert swept["annotators.ged"]["mean"][1] == whole["ged"]
    assert swept["annotators.diversity"]["values"][0] == [0.0] * 3
    one = evaluated(probs[:, :1], labels)["ged"]
    assert one in swept["annotators.ged"]["values"][0]


def test_regions_and_slices_come_from_states(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    probs, labels = softmax(10, 6, 2, 3, 8, 9), rng.integers(0, 3, (6, 3, 8, 9)).astype("u1")
    (tmp_path / "s.csv").write_text("name,half\n" + "".join(f"{i},{i // 3}\n" for i in range(6)))
    report = uqeval.evaluate(
        probs, labels, ["annotators"], region="box:0:0.5,0:1", slices=tmp_path / "s.csv", ci=0.9
    )
    inside = evaluated(probs[..., :4, :], labels[..., :4, :])
    assert report.results["annotators@box:0:0.5,0:1"]["ged"] == inside["ged"]
    first = evaluated(probs[:3], labels[:3])
    assert report.slices["half=0"]["results"]["annotators"]["ged"] == pytest.approx(
        first["ged"], rel=1e-12
    )
    bounds = report.intervals["annotators.ged"]
    assert bounds["low"] < report.results["annotators"]["ged"] < bounds["high"]


@pytest.mark.parametrize(
    ("labels", "options", "error", "says"),
    [
        (np.zeros((2, 4, 5), "u1"), {}, UsageError, "holds one label per pixel"),
        (np.zeros((2, 3, 5, 4), "u1"), {}, StoreError, "labels are 5×4"),
        (np.full((2, 3, 4, 5), 7, "u1"), {}, DataError, "annotator 0: 20 of 20 pixels have labels"),
        (np.full((2, 3, 4, 5), VOID, "u1"), {}, DataError, "is labelled by all annotators"),
        (np.zeros((3, 3, 4, 5), "u1"), {}, StoreError, "holds 3 labels"),
        (
            np.zeros((2, 3, 4, 5), "u1"),
            {"uncertainty": "labels"},
            UsageError,
            "is not an uncertainty",
        ),
        (np.zeros((2, 3, 4, 5), "u1"), {"distance": "hausdorff"}, UsageError, "iou"),
    ],
)
def test_bad_input(labels: Any, options: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        evaluated(softmax(1, 2, 2, 3, 4, 5), labels, **options)


def test_items_with_other_numbers_of_annotators(tmp_path: Path) -> None:
    """Items of different sizes have arrays of their own."""
    import zarr

    group = zarr.create_group(str(tmp_path / "p.zarr"))
    for name, raters in (("a", 3), ("b", 2)):
        item = group.create_group(f"items/{name}")
        for kind, values in (
            ("probs", softmax(1, 1, 2, 3, 4, 5)[0]), ("labels", np.ones((raters, 4, 5), "u1"))
        ):  # fmt: skip
            item.create_array(kind, shape=values.shape, dtype=values.dtype)[...] = values
    with pytest.raises(
        StoreError, match=r"item b has labels of 2 annotators, item a of 3.*void id"
    ):
        uqeval.evaluate(tmp_path / "p.zarr", None, ["annotators"])


def test_where_one_label_a_pixel_is_expected(tmp_path: Path) -> None:
    """Videos and masks of out-of-distribution pixels."""
    labels, ids = np.zeros((3, 2, 32, 40), "u1"), np.zeros((3, 32, 40), "u1")
    frames = np.random.default_rng(0).integers(0, 255, (3, 32, 40, 3)).astype("u1")
    save_store(tmp_path / "v.zarr", ["a_1", "a_2", "a_3"], frames=frames, predictions=ids,
               labels=labels)  # fmt: skip
    says = "holds labels of 2 annotators; expected one label per pixel"
    with pytest.raises(StoreError, match=says):
        uqeval.evaluate(None, None, ["tc"], video=str(tmp_path / "v.zarr"), classes=2)
    probs = softmax(1, 3, 1, 2, 32, 40)
    with pytest.raises(StoreError, match=says):
        uqeval.evaluate(probs, None, ["ood"], ood_mask=labels)
    with pytest.raises(UsageError, match=r"has labels of 2 annotators\. Give the labels of one"):
        uqeval.evaluate(probs, labels, ["ood"], ood_mask=1)
    folder = save_folder(tmp_path / "video", video(["a_1", "a_2", "a_3"]))
    with pytest.raises(UsageError, match="annotator_folders=True needs a folder of label PNGs"):
        uqeval.evaluate(None, None, ["tc"], video=str(folder), annotator_folders=True)


def test_labels_of_the_writer(tmp_path: Path) -> None:
    path, labels = tmp_path / "p.zarr", np.array([[[0, 1]], [[1, 1]]], "u1")
    with uqeval.PredictionWriter(path, names=["a"], samples=1, classes=2, size=(1, 2)) as writer:
        writer.add("a", np.full((1, 2, 1, 2), 0.5, "f4"))
        with pytest.raises(DataError, match=r"expected \[1, 2\], or of R annotators \[R, 1, 2\]"):
            writer.add_labels("a", labels[..., :1])
        with pytest.raises(DataError, match="first is 9 in row 0, column 1"):
            writer.add_labels("a", np.where(labels, 9, 0))
        writer.add_labels("a", labels)
    report = uqeval.evaluate(path, None, ["annotators"])
    assert report.results["annotators"]["annotators"] == 2
    assert report.results["annotators"]["agreement"] == 0.5


def test_one_pixel_of_disagreement_is_not_agreement() -> None:
    """Items of one pixel have no NCC, but only those where all agree count as such."""
    votes = np.array([[0, 1], [1, 1]], "u1")
    probs = np.array([[[0.5, 0.5]], [[0.2, 0.8]]], "f4")
    report = uqeval.evaluate({"probs": probs, "labels": votes}, None, ["annotators"])
    assert report.numerics["annotators"]["agree_everywhere"] == 1
    assert "uncertainty vary" in report.results["annotators"]["ncc_reason"]


def test_overlaps_of_many_maps_count_as_memory() -> None:
    """200 samples and 300 classes take 0.8 GB an item, however small it is."""
    probs = np.full((1, 200, 300, 2, 2), 1 / 300, np.float32)
    labels = np.zeros((1, 4, 2, 2), np.uint16)
    with pytest.raises(
        UsageError, match=r"is too small for the counts of .*annotators.*Give memory="
    ):
        uqeval.evaluate(probs, labels, "annotators", memory="512MB")
