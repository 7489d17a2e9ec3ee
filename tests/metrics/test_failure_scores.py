"""Failure detection against plain oracles and scikit-learn, over maps in memory."""

from __future__ import annotations

import math
from typing import Any

import naive_ranked as naive
import numpy as np
import pytest
from in_memory import evaluated
from sklearn.metrics import average_precision_score, roc_auc_score

from uqeval.errors import UsageError
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._rank_bins import RankBins
from uqeval.metrics.failure import Failure
from uqeval.metrics.failure_columns import best_aurc, harmonic
from uqeval.metrics.failure_curve import put_curve
from uqeval.metrics.failure_scores import BOUNDS
from uqeval.metrics.failure_settings import FailureSettings

CLASSES = 3
NAMES = ("road", "car", "tree")
Maps = dict[str, Any]


def item(seed: int, size: int = 400, kind: str = "any", void: float = 0.1) -> Maps:
    """Maps [1, size]; wrong pixels tend to be uncertain. `kind` of uncertainty: any, few, flat."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, CLASSES, (1, size)).astype("u1")
    wrong = rng.random(label.shape) < 0.2
    prediction = np.where(wrong, (label + 1) % CLASSES, label).astype("u1")
    u = np.abs(rng.normal(size=label.shape)) + wrong * rng.random(label.shape)
    u = {"any": u, "few": np.round(4 * u) / 4, "flat": np.full_like(u, 0.3)}[kind]
    u[:, : size // 20] = 0
    label[rng.random(label.shape) < void] = 255
    return {"label": label, "prediction": prediction, "entropy": u.astype("f4")}


def results(items: list[Maps], **settings: Any) -> dict[str, Any]:
    return evaluated(failure(**settings), items)[0].results


def failure(**settings: Any) -> Failure:
    return Failure(FailureSettings(**settings), DatasetInfo("here", (), (), CLASSES, NAMES, None))


def arrays(items: list[Maps], c: int | None = None) -> tuple[Any, Any]:
    """Uncertainties and wrong pixels of all items, or of one class of label."""
    label, prediction, u = (
        np.concatenate([m[name].ravel() for m in items])
        for name in ("label", "prediction", "entropy")
    )
    chosen = label < 255 if c is None else label == c
    return u[chosen], (prediction != label)[chosen].astype(int)


def agrees(found: dict[str, Any], expected: dict[str, Any], exact: bool) -> None:
    """Cuts equal; areas within their bound, or equal."""
    for field, value in expected.items():
        if isinstance(value, dict):
            assert found[field] == pytest.approx(value, rel=1e-12), field
        elif value is None:
            assert found[field] is None and found[f"{field}_reason"]
        else:
            slack = found.get(f"{field}_bound", 0.0) if not exact else 0.0
            assert abs(found[field] - value) <= slack + 1e-9 * abs(value), field


@pytest.mark.parametrize("kind", ["any", "few", "flat"])
def test_all_scores_equal_the_oracle(kind: str) -> None:
    items = [item(seed, kind=kind) for seed in range(3)]
    found = results(items)
    agrees(found, naive.failure(*arrays(items)), exact=True)  # few pixels: every bin is split
    for c, row in enumerate(found["per_class"]):
        assert (row["class"], row["name"]) == (c, NAMES[c])
        agrees(row, naive.failure(*arrays(items, c)), exact=True)
    assert found["per_class_by"] == "label"


def crowded(seed: int, size: int = 30_000) -> Maps:
    """Uncertainties that crowd in few bins of 22 bits."""
    maps = item(seed, size)
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2**23, (1, size)) + 1000 * (maps["prediction"] != maps["label"])
    keys = np.float32(0.5).view(np.uint32) + u.astype(np.uint32)
    return maps | {"entropy": keys.view("f4").reshape(1, size)}


def test_areas_of_crowded_bins_are_within_their_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uqeval.metrics.failure_ranks.WIDEST", 0)
    items = [crowded(0)]
    found = results(items)
    u, wrong = arrays(items)
    agrees(found, naive.failure(u, wrong), exact=False)
    bound = found["auroc_bound"]
    assert 0 < abs(found["auroc"] - roc_auc_score(wrong, u)) <= bound < 1e-3
    error = abs(found["aupr_error"] - average_precision_score(wrong, u))
    assert 0 < error <= found["aupr_error_bound"] < 5e-3
    monkeypatch.setattr("uqeval.metrics.failure_ranks.WIDEST", 512)
    assert results(items)["auroc_bound"] < bound


def test_values_of_22_bits_give_the_numbers_of_scikit_learn() -> None:
    items = [item(seed, 2000) for seed in range(2)]
    for m in items:
        m["entropy"] = (m["entropy"].view("u4") & np.uint32(0xFFFFFC00)).view("f4")
    found, (u, wrong) = results(items), arrays(items)
    assert found["auroc"] == pytest.approx(roc_auc_score(wrong, u), abs=1e-12)
    assert found["aupr_error"] == pytest.approx(average_precision_score(wrong, u), abs=1e-12)
    success = average_precision_score(1 - wrong, -u)
    assert found["aupr_success"] == pytest.approx(success, abs=1e-12)
    rate = wrong.mean()
    expected = rate * (1 - rate) * (1 - found["auroc"]) + rate**2 / 2
    assert found["augrc"] == pytest.approx(expected, rel=1e-12)


def test_any_split_and_any_order_of_rows_give_the_same_numbers() -> None:
    whole = item(3, 900)
    parts = [{k: v[:, a:b] for k, v in whole.items()} for a, b in ((0, 10), (10, 500), (500, 900))]
    order = np.random.default_rng(0).permutation(900)
    shuffled = {k: v[:, order] for k, v in whole.items()}
    first = results([whole], threshold="0.5")
    assert results(parts, threshold="0.5") == first
    assert results([shuffled], threshold="0.5") == first


def test_a_constant_uncertainty_knows_nothing() -> None:
    found = results([item(5, kind="flat") | {"entropy": np.full((1, 400), 0.1, "f4")}])
    rate = found["errors"] / found["pixels"]
    assert found["auroc"] == 0.5
    assert found["aurc"] == found["aupr_error"] == rate
    assert found["augrc"] == pytest.approx(rate / 2, rel=1e-12)
    assert found["coverage_at_risk"] == {"1": 0.0, "5": 0.0}
    assert found["fpr95"] == 1.0


def test_numerics_count_the_ties_at_cuts() -> None:
    one = item(5, kind="flat")
    for values, expected in ((np.full(400, 0.1), 400), (np.arange(400) / 400, 0)):
        given = one | {"entropy": values.astype("f4")[None], "label": one["label"] % CLASSES}
        section = evaluated(failure(), [given])[0]
        assert section.numerics == {"ties_at_cuts": expected}


def test_scaling_by_a_power_of_two_changes_nothing() -> None:
    items = [item(seed) for seed in range(2)]
    scaled = [m | {"entropy": m["entropy"] * np.float32(2**-7)} for m in items]
    found, other = results(items), results(scaled)
    assert found.pop("uncertainty_threshold") == other.pop("uncertainty_threshold") * 2**7
    assert found == other


def test_undetected_errors() -> None:
    items = [item(seed) for seed in range(2)]
    u, wrong = arrays(items)
    found = results(items)
    assert found["uncertainty_threshold"] == pytest.approx(u.astype("f8").mean(), rel=1e-12)
    for rule, limit in (
        ("mean", u.astype("f8").mean()),
        ("0.25", 0.25),
        ("range:0.5", u.max() / 2),
    ):
        expected = float((wrong & (u <= np.float32(limit))).mean())
        assert results(items, threshold=rule)["undetected_error_rate"] == expected, rule


def test_each_item_by_itself() -> None:
    items = [item(0), item(1, kind="few"), item(2)]
    items[2]["label"][...] = 255
    section, passes = evaluated(failure(), items)
    assert passes == 3
    for m, record in zip(items[:2], section.items, strict=False):
        expected = naive.failure(*arrays([m]))
        assert record["pixels"] == (m["label"] < 255).sum()
        for field in ("auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc"):
            assert record[field] == pytest.approx(expected[field], rel=1e-9, abs=1e-12), field
    assert section.items[2]["auroc"] is None and section.items[2]["auroc_reason"]
    assert section.items[2]["aurc"] is None and section.items[2]["aurc_reason"]


def test_without_errors_and_with_nothing_else() -> None:
    right = item(0)
    right["prediction"] = right["label"].copy()
    found = results([right])
    for field in ("auroc", "aupr_error", "fpr95"):
        assert found[field] is None and "wrong" in found[f"{field}_reason"]
    assert found["auroc_bound"] is None and found["auroc_bound_reason"]
    assert found["aurc"] == found["e_aurc"] == found["augrc"] == 0.0
    assert found["coverage_at_risk"] == {"1": 1.0, "5": 1.0}
    wrong = item(0)
    wrong["prediction"] = ((wrong["label"] + 1) % CLASSES).astype("u1")
    found = results([wrong])
    assert found["aupr_success"] is None and found["aupr_success_reason"]
    assert (found["aurc"], found["augrc"], found["aupr_error"]) == (1.0, 0.5, 1.0)
    assert found["e_aurc"] == pytest.approx(0.0, abs=1e-12)


def test_the_best_order_has_an_excess_of_0_and_not_of_its_rounding() -> None:
    """The one error has the highest uncertainty: AURC and its best differ by up to 1e-18."""
    for right, wrong in ((77, 1), (37, 1), (95, 1), (250, 1), (3, 1)):
        label = np.zeros((1, right + wrong), "u1")
        maps = {
            "label": label, "prediction": np.where(np.arange(label.size) < right, 0, 1)[None],
            "entropy": np.where(np.arange(label.size) < right, 0.1, 0.9)[None].astype("f4"),
        }  # fmt: skip
        section = evaluated(failure(), [maps])[0]
        for record in (section.results, section.results["per_class"][0], *section.items):
            assert 0 <= record["e_aurc"] < 1e-15


def test_labels_of_one_class_only() -> None:
    maps = item(0)
    maps["label"] = np.where(maps["label"] == 255, 255, 1).astype("u1")
    found = results([maps])
    empty = found["per_class"][0]
    assert empty["pixels"] == 0
    for field in BOUNDS:
        assert empty[field] is None and empty[f"{field}_reason"]
        assert found["per_class"][1][field] == found[field]
    assert empty["risk_at_coverage"]["80"] is None and empty["risk_at_coverage"]["80_reason"]


def test_many_classes_take_several_passes_and_give_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    items = [item(seed) for seed in range(2)]
    expected = results(items)
    monkeypatch.setattr("uqeval.metrics.failure_ranks.BLOCK_ROWS", 4)
    assert results(items) == expected


def test_harmonic_numbers() -> None:
    for a, b in ((0, 1), (0, 50), (3, 64), (10, 1000), (64, 65), (500, 2000), (5, 5)):
        expected = math.fsum(1 / m for m in range(a + 1, b + 1))
        assert harmonic(a, b) == pytest.approx(expected, rel=1e-13)
    ranks = np.repeat([0.0, 1.0], [950, 50])
    assert best_aurc(1000, 50) == pytest.approx(naive.aurc(np.arange(1000), ranks), rel=1e-12)


@pytest.mark.parametrize("wrong", [{"threshold": "medium"}, {"definition": "other"}])
def test_bad_settings(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        FailureSettings.of(**wrong)


@pytest.mark.parametrize("base", [2, "classes", "2", 10.0])
def test_the_base_of_entropies_is_a_unit(base: Any) -> None:
    items = [item(seed) for seed in range(3)]
    factor = math.log(CLASSES if base == "classes" else float(base))
    scaled = [
        maps | {"entropy": (maps["entropy"].astype(float) / factor).astype("f4")} for maps in items
    ]
    found = results(items, log_base=base, threshold="0.7")
    assert found == results(scaled, threshold="0.7")
    nats = results(items, threshold="0.7")
    assert found["undetected_error_rate"] != nats["undetected_error_rate"]
    assert found["auroc"] == pytest.approx(results(items)["auroc"], abs=1e-6)


def test_bases_that_cannot_be() -> None:
    for base in (1, 0, "pi", math.inf):
        with pytest.raises(UsageError, match="--log-base"):
            FailureSettings(log_base=base)


def test_the_curve_has_exact_cuts_and_a_bound() -> None:
    """Points are cuts of the plain oracle; others lie within `bound` of the line."""
    items = [item(seed, kind=kind) for seed, kind in enumerate(["any", "few", "any"])]
    curve = results(items)["curve"]
    u, wrong = arrays(items)
    order = np.argsort(u, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(u[order]) > 0, True))
    coverage = (ends + 1) / len(u)
    risk = np.cumsum(wrong[order])[ends] / (ends + 1)
    assert curve["points"] == len(ends) > 400 >= len(curve["risk"])
    at = np.searchsorted(coverage, np.array(curve["coverage"]) - 1e-12)
    assert coverage[at] == pytest.approx(curve["coverage"], rel=1e-12)
    assert risk[at] == pytest.approx(curve["risk"], rel=1e-12)
    assert (curve["coverage"][-1], curve["risk"][-1]) == (1.0, wrong.mean())
    line = np.interp(coverage, curve["coverage"], curve["risk"])
    assert abs(risk - line).max() == pytest.approx(curve["bound"], rel=1e-9)
    assert curve["bound"] < 0.02


def test_the_curve_needs_pixels() -> None:
    record: dict[str, Any] = {}
    put_curve(record, RankBins.nothing(), "all are void")
    assert record == {"curve": None, "curve_reason": "all are void"}
