"""Failure detection of whole items: scores against plain oracles, SciPy and scikit-learn, and where
risks and confidences come from."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import naive
import naive_images
import numpy as np
import pytest
from scenes import labels, softmax
from scipy.stats import kendalltau, spearmanr
from sklearn.metrics import roc_auc_score
from small_stores import equal_dice

import uqeval
from uqeval.errors import UqevalError, UsageError
from uqeval.metrics import _ranked_items as ranked
from uqeval.metrics._aggregation import Aggregation
from uqeval.metrics._item_numbers import key_and_field
from uqeval.statistics.all_but import AllBut
from uqeval.statistics.sets_of_units import InUnits
from uqeval.statistics.weighting import Each, Weighting
from uqeval.usecases.merge import merge
from uqeval.usecases.select import select

SCORES = ("aurc", "e_aurc", "augrc", "spearman", "kendall")
ITEMS = 7


def items(kind: str, seed: int = 0, count: int = 12) -> tuple[Any, Any]:
    """Risks and uncertainties; `kind`: distinct values, ties, or constant risks."""
    rng = np.random.default_rng(seed)
    risk, uncertainty = rng.normal(size=(2, count))
    uncertainty += risk
    if kind == "ties":
        risk, uncertainty = np.round(risk), np.round(uncertainty)
    if kind == "constant":
        risk[:] = 0.25
    return risk, uncertainty


@pytest.mark.parametrize("kind", ["distinct", "ties", "constant"])
def test_scores_of_weighted_items_are_those_of_repeated_ones(kind: str) -> None:
    risk, uncertainty = items(kind)
    risk[3] = np.nan
    weights = np.random.default_rng(1).integers(0, 3, (20, risk.size))
    weights[0], weights[1] = 1, 0
    with np.errstate(all="ignore"):
        scores = {name: getattr(ranked, name)(weights, risk, uncertainty) for name in SCORES}
        positive = np.where(np.isfinite(risk), risk > 0.1, np.nan)
        scores["auroc"] = ranked.auroc(weights, positive, uncertainty)
    for row, own in enumerate(weights):
        chosen = np.repeat(np.arange(risk.size), own * np.isfinite(risk))
        r, u = risk[chosen].tolist(), uncertainty[chosen].tolist()
        expected = naive_images.image_failure(r, u, 0.1) if r else dict.fromkeys(scores)
        for name, values in scores.items():
            value = np.nan if expected[name] is None else expected[name]
            assert values[row] == pytest.approx(value, abs=1e-12, nan_ok=True), (name, row)


@pytest.mark.parametrize("kind", ["distinct", "ties"])
def test_scores_are_those_of_the_peers(kind: str) -> None:
    risk, uncertainty = items(kind, seed=4, count=40)
    one = np.ones((1, 40), int)
    assert ranked.kendall(one, risk, uncertainty)[0] == pytest.approx(
        kendalltau(risk, uncertainty)[0]
    )
    assert ranked.spearman(one, risk, uncertainty)[0] == pytest.approx(
        spearmanr(risk, uncertainty)[0]
    )
    area = ranked.auroc(one, (risk > 0).astype(float), uncertainty)[0]
    assert area == pytest.approx(roc_auc_score(risk > 0, uncertainty))


def test_kendall_of_all_sets_but_one_item_is_that_of_each_set() -> None:
    risk, uncertainty = items("ties", seed=2)
    sets = AllBut(np.arange(12))
    weights = sets.dense(12)
    assert np.array_equal(weights, 1 - np.eye(12, dtype=int))
    found = ranked.kendall(weights, risk, uncertainty)
    each = [ranked.kendall(row[None], risk, uncertainty)[0] for row in weights]
    assert found == pytest.approx(each, abs=1e-12)


def test_kendall_of_many_items_is_that_of_scipy_and_of_drawn_copies() -> None:
    """A matrix of all pairs of these items would take 40 GB."""
    rng = np.random.default_rng(5)
    risk, uncertainty = rng.integers(0, 300, 70_000) / 7, rng.normal(size=70_000).round(3)
    drawn = rng.multinomial(70_000, np.full(70_000, 1 / 70_000), 2)
    found = ranked.kendall(np.stack([np.ones(70_000, int), *drawn]), risk, uncertainty)
    copies = [np.arange(70_000), *(np.repeat(np.arange(70_000), row) for row in drawn)]
    expected = [kendalltau(risk[own], uncertainty[own])[0] for own in copies]
    assert found == pytest.approx(expected, rel=1e-9)


def test_weights_of_sets_are_their_sums_of_single_items() -> None:
    identity, chosen = np.eye(6, dtype=np.int64), np.array([4, 0, 2])
    unit_of = np.array([0, -1, 1, 1, 2, 0])
    drawn = Weighting(np.array([[2, 0, 1], [0, 3, 0]]))
    for sets in (Each(chosen), AllBut(chosen).part(slice(1, 3)), InUnits(drawn, unit_of, 3),
                 AllBut(chosen).only(np.arange(6) > 1)):  # fmt: skip
        assert np.array_equal(sets.dense(6), sets.sums(identity))


# Risks and confidences -------------------------------------------------------------------------


def data() -> tuple[Any, Any]:
    """Probabilities and labels; the last item is void."""
    y = labels(3, ITEMS, 16, 20, classes=3)
    y[-1] = 255
    return softmax(3, ITEMS, 2, 3, 16, 20), y


@functools.cache
def plain_maps() -> list[dict[str, Any]]:
    return [naive.maps(p, y, 255) for p, y in zip(*data(), strict=True)]


def evaluate(**options: Any) -> Any:
    run = {name: options.pop(name) for name in ("states", "ci", "names") if name in options}
    return uqeval.evaluate(*data(), {"image_failure": options}, workers=1, **run)


def of_items(report: Any, name: str) -> list[float]:
    return [item["image_failure"][name] for item in report.items]


def test_risks_of_the_confusion_matrix() -> None:
    pairs = list(zip(plain_maps(), data()[1], strict=True))[:-1]
    for risk, score in (("miou", "miou"), ("accuracy", "pixel_accuracy"), ("dice", "")):
        found = of_items(evaluate(risk=risk), "risk")
        assert found[-1] is None
        for value, own in zip(found[:-1], pairs, strict=True):
            known = own[1] != 255
            y, p = own[1][known], own[0]["prediction"][known]
            if score:
                expected = naive.segmentation(y[None], p[None], 3)[score]
            else:
                both = [
                    (np.sum((y == c) & (p == c)), np.sum(y == c) + np.sum(p == c)) for c in range(3)
                ]
                expected = np.mean([2 * a / n for a, n in both if n])
            assert value == pytest.approx(1 - expected, abs=1e-12)


def test_numbers_that_differ_by_rounding_are_ties() -> None:
    values = np.array([2 / 9, np.nan, 1 - 7 / 9, 0.1 + 0.2, 0.3, -1e-30, 0.0, 1e-6, 1 - 0.999999])
    ties = ranked.without_noise(values, 1.0)
    assert ties[0] == ties[2] and ties[3] == ties[4] == 0.3 and ties[5] == ties[6]
    assert ties[7] == ties[8] and np.isnan(ties[1]) and np.unique(ties).size == 5
    of_other_unit = ranked.without_noise(1e-20 * np.array([1.0, 1 + 1e-9, 3.0]))
    assert np.unique(of_other_unit).size == 3
    assert ranked.without_noise(np.zeros(0)).size == 0


def test_the_best_order_has_no_negative_excess() -> None:
    rng = np.random.default_rng(0)
    risks = [rng.random(int(n)) for n in rng.integers(1, 20, 100)]
    excess = [ranked.e_aurc(np.ones((1, r.size)), r, 2 * r)[0] for r in risks]
    assert min(excess) >= 0 and max(excess) < 1e-12


def test_the_order_of_items_of_equal_risk_is_no_score() -> None:
    arrays = equal_dice()
    for weight in (1, 3):  # the first of the two is less, and more uncertain
        arrays["u"][0] = weight
        settings = {"image_failure": {"risk": "dice", "uncertainty": "u"}}
        found = uqeval.evaluate(arrays, metrics=settings, workers=1)
        scores, risks = found.results["image_failure"], of_items(found, "risk")
        assert risks[0] != risks[1]
        assert scores["failed_items"] == 1 and scores["auroc"] == 1.0
        assert scores["spearman"] == pytest.approx(spearmanr([1, 1, 2, 0], [1, 2, 3, 0])[0])
        assert scores["kendall"] == pytest.approx(kendalltau([1, 1, 2, 0], [1, 2, 3, 0])[0])


def test_a_risk_equal_to_the_limit_is_not_above_it() -> None:
    y = np.zeros((3, 1, 10), np.uint8)
    y[0, 0, :3] = y[1, 0, :5] = 1
    probs = np.eye(2, dtype=np.float32)[0][None, :, None, None] * np.ones((3, 1, 1, 10), np.float32)
    found = uqeval.evaluate(
        probs, y, {"image_failure": {"risk": "accuracy", "risk_limit": 0.3}}, workers=1
    )
    assert of_items(found, "risk")[0] > 0.3
    scores = found.results["image_failure"]
    assert (scores["failed_items"], scores["other_items"]) == (1, 2)


def test_confidences_that_differ_by_rounding_are_one_point_of_the_curve(tmp_path: Path) -> None:
    table = tmp_path / "items.csv"
    numbers = [0.3, 0.1 + 0.2, 0.7, 0.5, 0.6, 0.8]
    rows = [f"{i},{number!r}" for i, number in enumerate([*numbers, ""])]
    table.write_text("\n".join(["name,expert", *rows]).replace("''", ""))
    found = evaluate(confidence="column:expert", item_table=str(table))
    assert found.results["image_failure"]["curve"]["confidence"] == [0.8, 0.7, 0.6, 0.5, 0.3]


def test_the_items_of_most_risk_are_selected_first() -> None:
    report = evaluate()
    values = [one.value for one in select(report, field="image_failure.risk").chosen]
    assert values == sorted(values, reverse=True) and values[0] > values[-1]
    values = [one.value for one in select(report, field="image_failure.confidence").chosen]
    assert values == sorted(values) and values[0] < values[-1]


@pytest.mark.parametrize(
    "confidence", ["mean", "sum", "max", "p90", "patch-max", "share", "mean-above"]
)
def test_confidences_of_the_pixels(confidence: str) -> None:
    own = {"threshold": 0.4} if confidence in ("share", "mean-above") else {}
    own |= {"patch": 5} if confidence == "patch-max" else {}
    report = evaluate(confidence=confidence, **own)
    found = of_items(report, "confidence")
    assert found[-1] is None and report.results["image_failure"]["items"] == ITEMS - 1
    assert report.numerics["image_failure"] == {"undefined": 1}
    assert any("1 of 7 items have no risk or no confidence" in text for text in report.warnings)
    for value, own_maps, y in zip(found[:-1], plain_maps(), data()[1], strict=False):
        u, known = own_maps["entropy"].astype("f4").astype("f8"), y != 255
        above, threshold = u[known] > np.float32(0.4), np.float32(0.4)
        boxes = [
            (u[i : i + 5, j : j + 5], known[i : i + 5, j : j + 5])
            for i, j in np.ndindex(12, 16)
        ]  # fmt: skip
        expected = {
            "mean": u[known].mean(), "sum": u[known].sum(), "max": u[known].max(),
            "p90": np.percentile(u[known], 90), "share": above.mean(),
            "mean-above": u[known][u[known] >= threshold].mean(),
            "patch-max": max(box[k].mean() for box, k in boxes if k.any()),
        }[confidence]  # fmt: skip
        assert value == pytest.approx(-expected, rel=1e-6)


def test_fields_of_other_families_and_columns_of_a_table(tmp_path: Path) -> None:
    names = [f"i{k}" for k in range(ITEMS)]
    table = tmp_path / "items.csv"
    rows = [f"i{k},{'' if k == 2 else k * k}" for k in range(ITEMS)]
    table.write_text("\n".join(["name,expert", *rows]))
    plain = uqeval.evaluate(*data(), ["calibration", "failure"], workers=1, names=names)
    report = evaluate(
        risk=["calibration.ece", "failure.auroc", "-column:expert"],
        confidence=["column:expert", "failure.aurc"], item_table=table, names=names,
    )  # fmt: skip
    for key, name, family, field, sign in (
        ("image_failure", "risk", "calibration", "ece", 1),
        ("image_failure[failure.aurc]", "confidence", "failure", "aurc", -1),
    ):
        for item, own in zip(report.items[:-1], plain.items, strict=False):
            assert item[key][name] == pytest.approx(sign * own[family][field], rel=1e-9)
    risks = [item["image_failure[failure.auroc]"]["risk"] for item in report.items[:-1]]
    assert risks == [1 - item["failure"]["auroc"] for item in plain.items[:-1]]
    columns = [item["image_failure"]["confidence"] for item in report.items]
    assert columns == [None if k == 2 else k * k for k in range(ITEMS)]
    negative = [item["image_failure[-column:expert]"]["risk"] for item in report.items]
    assert negative == [None if k == 2 else -k * k for k in range(ITEMS)]
    assert report.items[2]["image_failure"]["confidence_reason"] == "its cell of the table is empty"


@pytest.mark.parametrize("confidence", ["share", "mean-above"])
def test_an_undefined_threshold(tmp_path: Path, confidence: str) -> None:
    """No Surplus is defined where all patches are accurate, and so no `max-surplus`."""
    right = np.full((4, 3, 8, 8), 0.9, np.float32)
    right[:, 1:] = 0.05
    labels = np.zeros((4, 8, 8), np.uint8)
    labels[1, 0, 0] = labels[2, 0, :2] = 1  # items of other risks
    options = {"threshold": "max-surplus", "risk": "accuracy", "confidence": confidence}
    report = uqeval.evaluate(
        right, labels, {"image_failure": options}, states=tmp_path / "r.states.zip", workers=1
    )
    results = report.results["image_failure"]
    assert results["uncertainty_threshold"] is None
    assert [results[name] for name in ("aurc", "augrc", "auroc", "items")] == [None, None, None, 0]
    for item in report.items:
        assert item["image_failure"]["confidence"] is None
        assert "no Surplus is defined" in item["image_failure"]["confidence_reason"]
    assert merge([tmp_path / "r.states.zip"]).results == report.results


@pytest.mark.parametrize(
    ("threshold", "refused"),
    [("0.5", ""), ("max-surplus", ""), ("mean", "fitted on their own items.*'threshold=0.5")],
)
def test_merged_confidences_are_at_one_threshold_which_is_recorded(
    threshold: str, refused: str, tmp_path: Path
) -> None:
    """All predictions are right, so no Surplus is defined: the threshold is null, with a warning.
    The means of the two runs differ."""
    truth = np.zeros((2, 8, 8), np.uint8)
    options = {"image_failure": {"threshold": threshold, "confidence": "mean-above"}}
    parts, runs = [], []
    for k, least in enumerate((0.6, 0.7)):
        top = np.linspace(least, 0.9, 64, dtype=np.float32).reshape(8, 8)
        top[0, 0], top[0, 1] = 1, 0.5  # the ends of the uncertainties of both
        probs = np.stack([np.stack([top, 1 - top])] * 2)
        path = tmp_path / f"{k}.states.zip"
        runs.append(uqeval.evaluate(
            probs, truth, options, states=path, names=[f"{k}a", f"{k}b"], workers=1
        ))  # fmt: skip
        parts.append(path)
    if refused:
        with pytest.raises(UsageError, match=refused):
            merge(parts)
        return
    merged = merge(parts)
    for name in ("uncertainty_threshold", "uncertainty_threshold_reason"):
        of_runs = [run.results["image_failure"].get(name) for run in runs]
        assert merged.results["image_failure"].get(name) == of_runs[0] == of_runs[1]
    undefined = [text for text in runs[0].warnings if "threshold is undefined" in text]
    assert len(undefined) == (threshold == "max-surplus")
    assert [text for text in merged.warnings if "threshold is undefined" in text] == undefined


def test_a_variant_of_the_same_run() -> None:
    families = {"pavpu": {"window": [4, 7]}, "image_failure": {"risk": "pavpu[window=7].pavpu"}}
    report = uqeval.evaluate(*data(), families, workers=1)
    for item in report.items[:-1]:
        assert item["image_failure"]["risk"] == 1 - item["pavpu[window=7]"]["pavpu"]


def test_a_number_of_a_region(tmp_path: Path) -> None:
    """Of a report: by its address; another variant or region is refused, not taken as the whole."""
    place = "box:0:0.5,0:1"
    states, path = tmp_path / "r.states.zip", tmp_path / "r.json"
    families = ["segmentation", "pavpu"]
    report = uqeval.evaluate(*data(), families, workers=1, region=place, states=states)
    report.save(path)
    address = f'segmentation@"{place}".miou'
    merged = merge(path, metrics={"image_failure": {"risk": address, "confidence": "pavpu.pavpu"}})
    for item, own in zip(merged.items[:-1], report.items, strict=False):
        assert item["image_failure"]["risk"] == 1 - own[f"segmentation@{place}"]["miou"]
    for other in ("segmentation@boundary:1.miou", "pavpu[window=3].pavpu"):
        with pytest.raises(UsageError, match=r"is not a result of the report .*Evaluate again"):
            merge(path, metrics={"image_failure": {"risk": other, "confidence": "pavpu.pavpu"}})


def test_each_region_ranks_images_by_its_own_numbers() -> None:
    place = "box:0:0.5,0:1"
    report = uqeval.evaluate(*data(), ["image_failure"], workers=1, region=place)
    for item in report.items[:-1]:
        own = item[f"segmentation@{place}"]
        assert item[f"image_failure@{place}"]["risk"] == 1 - own["miou"]
    families = {"image_failure": {"risk": f'segmentation@"{place}".miou'}}
    with pytest.raises(UsageError, match="is of one region"):
        uqeval.evaluate(*data(), families, workers=1, region=place)


@pytest.mark.parametrize(
    ("risk", "confidence", "options"),
    [
        ("pavpu.pavpu", "share", {}),
        ("pavpu.pavpu", "share", {"threshold_scope": "region"}),
        ("failure.undetected_error_rate", "mean-above", {}),
        ("calibration.adaptive_ece", "share", {}),
    ],
)
def test_thresholds_in_a_region(risk: str, confidence: str, options: dict[str, Any]) -> None:
    """Risks are those of the region in the same report; the confidence takes the threshold of the
    whole image."""
    place, (family, field) = "box:0:0.5,0:1", risk.split(".")
    families = {family: options, "image_failure": {"risk": risk, "confidence": confidence}}
    probs, label = data()
    flat = probs[..., :8, :].astype(np.float64) ** 0.1  # the region is less certain than the image
    probs = probs.astype(np.float64)
    probs[..., :8, :] = flat / flat.sum(2, keepdims=True)
    report = uqeval.evaluate(probs, label, families, workers=1, region=place)
    mean = probs[:-1].mean(1)
    entropies = -(mean * np.log(mean)).sum(1).astype(np.float32)
    valid = label[:-1] != 255
    threshold = np.float32(entropies[valid].mean(dtype=np.float64))
    for key in ("image_failure", f"image_failure@{place}"):
        assert report.results[key]["uncertainty_threshold"] == pytest.approx(float(threshold))
    for item, own_entropy, own_valid in zip(report.items[:-1], entropies, valid, strict=True):
        number = item[f"{family}@{place}"][field]
        is_good = field == "pavpu"
        own = item[f"image_failure@{place}"]
        assert own["risk"] == pytest.approx(1 - number if is_good else number)
        u = own_entropy[:8][own_valid[:8]]
        expected = (u > threshold).mean() if confidence == "share" else u[u >= threshold].mean()
        assert own["confidence"] == pytest.approx(-expected)


def test_a_field_that_is_undefined_in_a_region() -> None:
    """A region without pixels has no scores, as with a risk from the counts."""
    place = "box:0:0.01,0:1"
    for risk in ("miou", "segmentation.miou", "calibration.ece"):
        report = uqeval.evaluate(*data(), {"image_failure": {"risk": risk}}, region=place)
        scores = report.results[f"image_failure@{place}"]
        assert scores["aurc"] is None, risk
        assert scores["aurc_reason"] == "no item has a risk and a confidence"


def test_numbers_and_the_states_of_a_report(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    target = rng.uniform(1, 9, (8, 6, 6)).astype("f4")
    std = rng.uniform(0.2, 2, (8, 1, 1)).astype("f4") * np.ones_like(target)
    arrays = {"mean": target + std * rng.normal(size=target.shape).astype("f4"), "std": std}
    path = tmp_path / "r.json"
    report = uqeval.evaluate(
        arrays, target, ["regression"], states=tmp_path / "r.states.zip", workers=1
    )
    report.save(path)
    direct = uqeval.evaluate(arrays, target, ["image_failure"], workers=1)
    assert direct.settings["image_failure"]["risk"] == "regression.rmse"
    assert [-c for c in of_items(direct, "confidence")] == pytest.approx(std[:, 0, 0].tolist())
    later = merge(
        path, ci=0.9,
        metrics={"image_failure": {"confidence": "regression.sharpness"}},
        states=tmp_path / "later.states.zip",
    )  # fmt: skip
    found = later.results["image_failure"]
    for name in (*SCORES, "auroc", "mean_risk"):
        assert found[name] == pytest.approx(direct.results["image_failure"][name], rel=1e-6)
    assert report.results["regression"].items() <= later.results["regression"].items()
    assert later.intervals["image_failure.auroc"]["units"]["defined"] == 4  # above the median
    again = merge(tmp_path / "later.states.zip")
    assert again.results["image_failure"] == found
    with pytest.raises(UqevalError, match=r"no counts for image_failure.*\(regression"):
        merge(path, metrics={"image_failure": {"confidence": "p90"}})
    with pytest.raises(UqevalError, match="has image_failure already"):
        merge(tmp_path / "later.states.zip", metrics={"image_failure": {}})


def test_merged_parts_are_the_whole(tmp_path: Path) -> None:
    def run(name: str, **part: Any) -> Any:
        families = {"image_failure": {"confidence": ["mean", "p75"], "risk_limit": "p60"}}
        states = tmp_path / f"{name}.states.zip"
        return uqeval.evaluate(*data(), families, workers=1, states=states, **part)

    whole = run("whole")
    for k in (1, 2):
        run(f"part{k}", part=f"{k}/2")
    merged = merge([tmp_path / f"part{k}.states.zip" for k in (1, 2)])
    assert merged.results == whole.results
    assert merged.items == whole.items


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confidence": "column:x"}, ["column:x", "item_table"]),
        ({"confidence": "p101"}, ["p101", "pNN", "FAMILY.FIELD"]),
        ({"risk": "nothing.x"}, ["nothing.x", "miou, dice, accuracy"]),
        ({"risk": "regression.rmse"}, ["regression", "holds class predictions"]),
        ({"risk": "calibration.nothing"}, ["calibration.nothing", "ece"]),
        ({"risk": "pavpu[window=9].pavpu"}, ["pavpu[window=9]", "the same run"]),
        ({"risk_limit": "mean"}, ["risk_limit", "median"]),
        ({"threshold": 0.3}, ["threshold has no effect", "share"]),
        ({"patch": 3}, ["patch has no effect", "patch-max"]),
        ({"patch": 99, "confidence": "patch-max"}, ["patch=99", "16×20"]),
        ({"uncertainty": "label"}, ["label", "not an uncertainty"]),
    ],
)
def test_bad_settings(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(UqevalError) as caught:
        evaluate(**options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("cell", ["x", "inf", "nan", "1_0"])
def test_a_table_with_no_number(tmp_path: Path, cell: str) -> None:
    table = tmp_path / "items.csv"
    table.write_text("\n".join(["name,x", *(f"i{k},{cell}" for k in range(ITEMS))]))
    names = [f"i{k}" for k in range(ITEMS)]
    with pytest.raises(UqevalError, match="expected a number"):
        evaluate(confidence="column:x", item_table=str(table), names=names)


def test_presets_of_values() -> None:
    found = evaluate(definition=["values-image", "values-patch", "values-threshold"])
    settings = list(found.settings.values())[1:]
    assert [own["confidence"] for own in settings] == ["sum", "patch-max", "mean-above"]
    assert {own["risk"] for own in settings} == {"dice"} and settings[1]["patch"] == 10


def test_no_item_is_left() -> None:
    assert Aggregation.find("p5.5") == Aggregation("p5.5", 5.5)
    probs, y = data()
    y[:-2] = 255
    report = uqeval.evaluate(probs, y, ["image_failure"], workers=1)
    record = report.results["image_failure"]
    assert record["aurc"] == record["mean_risk"] and record["auroc"] is None
    assert "above the limit" in record["auroc_reason"]
    assert "same risk" in record["kendall_reason"]


def test_fields_of_items_are_read_as_addresses(tmp_path: Path) -> None:
    """By `--risk` and by `select --by`, also with quotes; `select` takes columns of the CSV too."""
    place = 'map:a"b.c,d'
    results = {f"segmentation@{place}": {"miou": 0.5}}
    items = [{"name": n, f"segmentation@{place}": {"miou": v}} for n, v in (("a", 0.9), ("b", 0.1))]
    report = uqeval.Report(uqeval_version="1", inputs={}, settings={}, results=results, items=items)
    address = r'segmentation@"map:a\"b.c,d".miou'
    assert key_and_field(address) == (f"segmentation@{place}", "miou")
    for text in (address, f"segmentation@{place}.miou"):
        assert [own.name for own in select(report, field=text).chosen] == ["b", "a"]
    for text in ("city/segmentation.miou", "segmentation.miou@weather=night", "segmentation"):
        with pytest.raises(UsageError, match="is not a number of an item"):
            key_and_field(text)


@pytest.mark.parametrize("place", [None, "box:0:0.5,0:1"])
def test_the_sparsification_of_an_image_as_risk(place: str | None) -> None:
    """Of an item, the areas need no ranks of the set."""
    families = {"sparsification": {}, "image_failure": {"risk": "sparsification.ause"}}
    report = uqeval.evaluate(*data(), families, workers=1, region=place or ())
    own = "" if place is None else f"@{place}"
    risks = [item[f"image_failure{own}"]["risk"] for item in report.items]
    assert risks == [item[f"sparsification{own}"]["ause"] for item in report.items]
    assert report.results[f"image_failure{own}"]["aurc"] is not None


def test_a_slice_without_items_that_have_a_risk(tmp_path: Path) -> None:
    table = tmp_path / "slices.csv"
    kinds = ["b"] * (ITEMS - 1) + ["void"]
    table.write_text("name,kind\n" + "".join(f"{i},{kind}\n" for i, kind in enumerate(kinds)))
    families = {"image_failure": {}}
    report = uqeval.evaluate(*data(), families, slices=table, workers=1)
    void, others = (
        report.slices[f"kind={kind}"]["results"]["image_failure"] for kind in ("void", "b")
    )
    assert (void["items"], others["items"]) == (0, ITEMS - 1)
    assert (
        void["aurc_reason"]
        == void["mean_risk_reason"]
        == ("none of these items has a risk and a confidence")
    )
    assert others["aurc"] is not None
