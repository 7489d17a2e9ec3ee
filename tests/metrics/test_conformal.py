"""Conformal sets and intervals against plain oracles and MAPIE, and refused inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive
import naive_conformal
import numpy as np
import pytest
from forged import entries_of, write_entries
from scenes import labels, softmax

import uqeval
from uqeval.errors import StoreError, UqevalError
from uqeval.metrics.conformal_fit import _Search
from uqeval.statistics.scoring import Scoring
from uqeval.stores.compression import compressed, decompressed
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.merge import merge

ITEMS, CLASSES = 14, 4
NAMES = [f"v_{i:02}" for i in range(ITEMS)]
CALIBRATE = [0, 2, 3, 5, 6, 8, 9, 10, 12]
SCORES = ("coverage", "size", "singletons", "empty", "mean_loss", "items_above")


@pytest.fixture
def fit_on(tmp_path: Path) -> str:
    path = tmp_path / "calibration.txt"
    path.write_text("\n".join(NAMES[i] for i in CALIBRATE))
    return str(path)


def data(kind: str = "smooth") -> tuple[Any, Any]:
    """Probabilities and labels, with void pixels; two items lack class 3; "ties": in 1/8."""
    y = labels(3, ITEMS, 9, 11, classes=CLASSES)
    y[[3, 7]] = np.where(y[[3, 7]] == 3, 0, y[[3, 7]])
    y[5, :4] = 255
    p = softmax(3, ITEMS, 2, CLASSES, 9, 11)
    right = np.eye(CLASSES)[np.minimum(y, 3)].transpose(0, 3, 1, 2)[:, None]
    p = 0.6 * p + 0.4 * right
    if kind == "ties":
        p = np.floor(p * 5)
        p[:, :, 0] += 8 - p.sum(axis=2)
        p = p / 8
    return p.astype("f4"), y


def evaluate(fit_on: str, kind: str = "smooth", **options: Any) -> Any:
    run = {n: options.pop(n) for n in ("states", "ci", "region", "part", "fitted") if n in options}
    families = {"conformal": {"fit_on": fit_on, **options}}
    return uqeval.evaluate(*data(kind), families, names=NAMES, workers=1, **run)


def plain(kind: str, alpha: str, **options: Any) -> dict[str, Any]:
    p, y = data(kind)
    maps = [naive.maps(own, label, 255)["mean_probs"] for own, label in zip(p, y, strict=True)]
    mean = np.stack(maps).astype("f4")
    return naive_conformal.sets(mean, y, CALIBRATE, alpha, **options)


@pytest.mark.parametrize("kind", ["smooth", "ties"])
@pytest.mark.parametrize("method", ["lac", "aps", "aps-randomised"])
def test_sets_are_those_of_the_oracle(fit_on: str, kind: str, method: str) -> None:
    for alpha, of_class in (("0.1", None), ("0.25", None), ("0.3", 3)):
        risk = "miscoverage" if of_class is None else f"fnr:{of_class}"
        report = evaluate(fit_on, kind, alpha=float(alpha), method=method, risk=risk)
        expected = plain(kind, alpha, method=method, of_class=of_class)
        found = report.results["conformal"]
        assert found["threshold"] == pytest.approx(expected["threshold"], abs=1e-15)
        for name in SCORES:
            assert found[name] == pytest.approx(expected[name], abs=1e-14), (name, alpha)
        assert found["items"] == pytest.approx(expected["items"], abs=1e-14)
        for row, own in zip(found["per_class"], expected["per_class"], strict=True):
            assert {name: row[name] for name in own} == pytest.approx(own)
        assert sum(row["pixels"] for row in found["by_size"]) == found["pixels"]
        assert found["calibration_items"] == len(CALIBRATE) - (of_class is not None)
        assert (found["calibration_loss"] * found["calibration_items"] + 1) / (
            found["calibration_items"] + 1
        ) <= float(alpha) + 1e-12


def test_workers_and_tiles_do_not_change_a_bit(fit_on: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", probs=data()[0].astype("f2"), labels=data()[1], names=NAMES)
    options = {"fit_on": fit_on, "alpha": 0.2, "method": ["lac", "aps", "aps-randomised"]}
    reports = [
        uqeval.evaluate(tmp_path / "p.npz", None, {"conformal": options}, **machine)
        for machine in ({"workers": 1}, {"workers": 2, "memory": "1MB"})
    ]
    assert reports[0].results == reports[1].results and reports[0].items == reports[1].items


def test_items_that_calibrate_have_no_scores(fit_on: str) -> None:
    report = evaluate(fit_on, alpha=0.2)
    for i, item in enumerate(report.items):
        record = item["conformal"]
        assert record["calibration"] is (i in CALIBRATE)
        assert (record["coverage"] is None) is (i in CALIBRATE)
    assert report.results["conformal"]["evaluated_items"] == ITEMS - len(CALIBRATE)
    assert "at least 0.8" in report.results["conformal"]["guarantee"]


def test_the_threshold_is_exact_where_floats_are_close() -> None:
    """Shares that add up to the limit exactly are within it, whatever the order of floats."""
    size_of_bins = 90
    # An item of n pixels has one in each of the bins from 0 to n - 1.
    groups = {size: [0] for size in range(1, size_of_bins + 1)}
    for bin_ in (1, 3, 7):
        limit = sum(
            (Fraction(size - 1 - bin_, size) for size in groups if size > bin_), Fraction(0)
        )
        for nudge, expected in ((Fraction(0), bin_), (-Fraction(1, 10**30), bin_ + 1)):
            search = _Search(groups, limit + nudge)
            assert search.narrow(lambda n: (np.arange(size_of_bins) < n).astype("i8")) == expected


def numbers() -> dict[str, Any]:
    """σ with zeros, and targets with NaN."""
    rng = np.random.default_rng(5)
    mean = rng.uniform(2, 60, (ITEMS, 7, 8)).astype("f4")
    std = rng.uniform(0.3, 3, mean.shape).astype("f4")
    target = (mean + std * rng.normal(size=mean.shape)).astype("f4")
    target[rng.random(mean.shape) < 0.1] = np.nan
    std[1, 0, 0], std[4, :2] = 0, 0
    return {"mean": mean, "std": std, "target": target}


def test_intervals_are_those_of_the_oracle(fit_on: str) -> None:
    own = numbers()
    for alpha in ("0.1", "0.4"):
        report = uqeval.evaluate(
            {"mean": own["mean"], "std": own["std"]}, own["target"],
            {"conformal": {"fit_on": fit_on, "alpha": float(alpha)}}, names=NAMES, workers=1,
        )  # fmt: skip
        found = report.results["conformal"]
        expected = naive_conformal.intervals(*own.values(), CALIBRATE, alpha)
        for name in ("threshold", "coverage", "width", "mean_loss", "items_above", "items"):
            assert found[name] == pytest.approx(expected[name], rel=1e-12), (name, alpha)


def test_intervals_are_infinite_where_too_many_sigma_are_0(fit_on: str) -> None:
    own = numbers()
    own["std"][CALIBRATE[:3]] = 0
    report = uqeval.evaluate(
        {"mean": own["mean"], "std": own["std"]}, own["target"],
        {"conformal": {"fit_on": fit_on, "alpha": 0.1}}, names=NAMES, workers=1,
    )  # fmt: skip
    found = report.results["conformal"]
    assert found["threshold"] is found["width"] is None and found["coverage"] == 1
    assert "σ is 0" in found["width_reason"] and "contain every number" in report.warnings[-1]


def test_an_infinite_threshold_says_why(fit_on: str, tmp_path: Path) -> None:
    """A subnormal σ is not 0: |error|/σ exceeds float32 there."""
    for zeros, causes in (
        (0, "|error|/σ exceeds the largest float32 at {above} calibration pixels"),
        (1, "σ is 0 at {zero} calibration pixels with an error and |error|/σ exceeds the largest "
            "float32 at {above} calibration pixels"),
        (3, "σ is 0 at {zero} calibration pixels with an error"),
    ):  # fmt: skip
        own = numbers()
        own["std"] = np.maximum(own["std"], np.float32(0.3))
        tiny, zero = CALIBRATE[: 3 - zeros], CALIBRATE[3 - zeros : 3]
        own["std"][tiny], own["std"][zero] = 1e-42, 0
        wrong = np.isfinite(own["target"]) & (own["target"] != own["mean"])
        counts = {"above": int(wrong[tiny].sum()), "zero": int(wrong[zero].sum())}
        report = uqeval.evaluate(
            {"mean": own["mean"], "std": own["std"]}, own["target"],
            {"conformal": {"fit_on": fit_on, "alpha": 0.1}}, names=NAMES, workers=1,
            states=tmp_path / f"{zeros}.states.zip",
        )  # fmt: skip
        expected = f"the threshold is infinite: {causes.format(**counts)}"
        found = report.results["conformal"]
        assert found["threshold_reason"] == found["width_reason"] == expected
        assert report.items[1]["conformal"]["width_reason"] == expected
        assert report.warnings[-1] == f"conformal: {expected}. The intervals contain every number."
        saved = merge([tmp_path / f"{zeros}.states.zip"]).results["conformal"]
        assert saved["threshold_reason"] == expected


def rows(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, CLASSES, n)
    z = rng.normal(size=(n, CLASSES)) + 1.5 * np.eye(CLASSES)[y]
    p = np.exp(z)
    return (p / p.sum(axis=1, keepdims=True)).astype("f4"), y


def test_sets_of_rows_are_those_of_mapie(tmp_path: Path) -> None:
    """With one pixel an item, risk control is split conformal prediction."""
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Known(ClassifierMixin, BaseEstimator):
        """A classifier that returns its input as probabilities."""

        classes_ = np.arange(CLASSES)

        def fit(self, x: Any, y: Any) -> Known:
            return self

        def predict_proba(self, x: Any) -> Any:
            return np.asarray(x)

        def predict(self, x: Any) -> Any:
            return np.argmax(x, axis=1)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    p, y = rows(400, 1)
    path = tmp_path / "rows.txt"
    path.write_text("\n".join(f"{i:06}" for i in range(150)))
    for alpha in (0.1, 0.23):
        peer = SplitConformalClassifier(
            Known(), confidence_level=1 - alpha, conformity_score="lac", prefit=True
        ).conformalize(p[:150].astype("f8"), y[:150])
        sets = peer.predict_set(p[150:].astype("f8"))[1][:, :, 0]
        names = [f"{i:06}" for i in range(400)]
        options = {"fit_on": str(path), "alpha": alpha}
        found = uqeval.evaluate(
            p, y.astype("u1"), {"conformal": options}, names=names, workers=1
        ).results["conformal"]
        assert found["size"] == sets.sum() / len(sets)
        assert found["coverage"] == sets[np.arange(250), y[150:]].mean()


# States, slices, regions, shards ---------------------------------------------------------------


def test_states_have_the_scores_and_intervals(fit_on: str, tmp_path: Path) -> None:
    path = tmp_path / "run.states.zip"
    report = evaluate(fit_on, alpha=[0.2, 0.3], states=path, ci=0.9)
    scoring = Scoring(SavedStates(path))
    again = scoring.whole()
    for key in ("conformal", "conformal[alpha=0.3]"):
        found = report.results[key]
        for name, value in again[key].items():
            if isinstance(value, float):
                assert value == pytest.approx(found[name], abs=1e-14), name
        assert again[key]["items"] == pytest.approx(found["items"], abs=1e-14)
        assert again[key]["per_class"] == found["per_class"]
    units = report.intervals["conformal.coverage"]["units"]
    assert units["defined"] == ITEMS - len(CALIBRATE)
    assert set(report.intervals) >= {f"conformal.{name}" for name in SCORES if name != "empty"}
    one = scoring.whole([1, 2])["conformal"]
    item = report.items[1]["conformal"]
    assert (one["coverage"], one["size"]) == (item["coverage"], item["size"])
    assert one["mean_loss"] == item["loss"]


def reasons(value: Any) -> set[str]:
    """All reasons in a record."""
    if isinstance(value, list):
        return set().union(*map(reasons, value))
    if not isinstance(value, dict):
        return set()
    own = {text for name, text in value.items() if name.endswith("_reason")}
    return own.union(*map(reasons, value.values()))


@pytest.mark.parametrize("risk", ["miscoverage", "fnr:3"])
def test_slices_of_calibration_items(fit_on: str, risk: str, tmp_path: Path) -> None:
    """They have labels: it is no labelled pixel that they lack."""
    p, y = data()
    y[13] = 255
    groups = ["a" if i in CALIBRATE else "void" if i == 13 else "b" for i in range(ITEMS)]
    table = tmp_path / "slices.csv"
    rows = (f"{name},{group}\n" for name, group in zip(NAMES, groups, strict=True))
    table.write_text("name,group\n" + "".join(rows))
    path = tmp_path / "run.states.zip"
    families = {"conformal": {"fit_on": fit_on, "alpha": 0.2, "risk": risk}}
    report = uqeval.evaluate(p, y, families, names=NAMES, slices=table, states=path, workers=1)
    for own in (report, merge(path, slices=table)):
        found = {name: part["results"]["conformal"] for name, part in own.slices.items()}
        calibrating, others, void = (found[f"group={name}"] for name in ("a", "b", "void"))
        assert reasons(calibrating) == {"all these items are used for calibration"}
        assert calibrating["coverage"] is None and calibrating["threshold"] is not None
        assert void["coverage_reason"] == "no labelled pixel"
        assert others["coverage"] is not None
        counts = [own["evaluated_items"] for own in (calibrating, others, void)]
        assert counts == [0, ITEMS - len(CALIBRATE) - 1, 1]


@pytest.mark.parametrize(("risk", "says"), [
    ("miscoverage", r"the states of 'v_00' .* nonconformity counts 1\d\d pixels of 9×11"),
    ("fnr:3", r"the states have \d+ scores of \d+ calibration pixels: .* Evaluate again"),
])  # fmt: skip
@pytest.mark.parametrize("count", [0, 90, 1 << 40])
def test_forged_counts_of_scores(
    fit_on: str, tmp_path: Path, risk: str, says: str, count: int
) -> None:
    """The counts of a class have another number of pixels, which only their sum shows."""
    from uqeval.usecases.rounds.fitting import fit_shards

    paths = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    for k, path in enumerate(paths, start=1):
        evaluate(fit_on, alpha=0.2, risk=risk, states=path, part=f"{k}/2")
    entries = entries_of(paths[0])
    (tally,) = (
        name.split("/")[1].removesuffix(".json")
        for name, text in entries.items()
        if name.startswith("tallies/") and b"nonconformity" in text
    )
    (block,) = (name for name in entries if name.startswith(f"{tally}/"))
    state = bytearray(decompressed(entries[block], 10**8, exactly=False))
    first_end = 4 * 7 + int.from_bytes(state[:4], "little")
    state[first_end - 8 : first_end] = count.to_bytes(8, "little")  # the last count of the item
    entries[block] = compressed(bytes(state))
    write_entries(paths[0], entries)
    if risk == "miscoverage" and count != 90:
        says = "nonconformity counts"
    with pytest.raises(StoreError, match=says):
        fit_shards(paths, tmp_path / "fitted.json")


def test_columns_are_the_scores_of_sets(fit_on: str, tmp_path: Path) -> None:
    from uqeval.statistics.all_but import AllBut

    path = tmp_path / "run.states.zip"
    evaluate(fit_on, alpha=0.2, states=path)
    scoring = Scoring(SavedStates(path))
    addresses = [a for a in scoring.addresses if a.startswith("conformal.")]
    table = scoring.table(AllBut(np.arange(ITEMS)), addresses)
    for left_out in (1, 2, 4):
        rest = [i for i in range(ITEMS) if i != left_out]
        expected = scoring.whole(rest)["conformal"]
        for column, address in enumerate(addresses):
            value: Any = expected
            for word in scoring.addresses[address][1:]:
                value = value.get(word) if isinstance(value, dict) else value[word]
                if value is None:
                    break
            if address.split(".")[1] in (*SCORES, "items", "per_class"):
                assert table[left_out, column] == pytest.approx(
                    math.nan if value is None else value, abs=1e-12, nan_ok=True
                ), address


def test_regions_have_the_threshold_of_the_whole_image(fit_on: str) -> None:
    report = evaluate(fit_on, alpha=0.2, region=["class:1", "boundary:1"])
    whole = report.results["conformal"]
    inside = report.results["conformal@class:1"]
    assert inside["threshold"] == whole["threshold"]
    row = whole["per_class"][1]
    assert (inside["coverage"], inside["size"]) == (row["coverage"], row["size"])


@pytest.mark.parametrize("method", ["aps", "aps-randomised"])
def test_shards_have_the_scores_of_one_run(fit_on: str, tmp_path: Path, method: str) -> None:
    """Shards of 7 items are counted one by one, the 14 items of the run in one block."""
    from uqeval.usecases.rounds.fitting import fit_shards

    paths: list[Path] = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    fitted: str | None = None
    for step in range(4):
        for k, path in enumerate(paths, start=1):
            evaluate(fit_on, alpha=0.2, method=method, states=path, part=f"{k}/2", fitted=fitted)
        fitted = str(tmp_path / f"fitted{step}.json")
        if not fit_shards(paths, fitted).unfinished:
            break
    merged = merge(paths).results["conformal"]
    assert merged == evaluate(fit_on, alpha=0.2, method=method).results["conformal"]


# What is refused -------------------------------------------------------------------------------


def refused(names: Sequence[str], tmp_path: Path, **options: Any) -> str:
    path = tmp_path / "few.txt"
    path.write_text("\n".join(names))
    with pytest.raises(UqevalError) as caught:
        evaluate(str(path), **options)
    return str(caught.value)


def test_too_few_calibration_items(tmp_path: Path) -> None:
    text = refused(NAMES[:8], tmp_path, alpha=0.1)
    assert "8 items" in text and "at least 9" in text and "alpha=0.1112" in text
    text = refused(NAMES[:9], tmp_path, alpha=0.05)
    assert "at least 19" in text
    text = refused([NAMES[i] for i in CALIBRATE], tmp_path, alpha=0.1, risk="fnr:3")
    assert "8 items with pixels of class 3" in text or "8 items with" in text
    assert "names all 14 items" in refused(NAMES, tmp_path)
    assert "needs" not in refused([*NAMES[:9], "strange"], tmp_path)


def test_the_fewest_calibration_items_are_a_warning(fit_on: str, tmp_path: Path) -> None:
    path = tmp_path / "nine.txt"
    path.write_text("\n".join(NAMES[:9]))
    (text,) = [w for w in evaluate(str(path), alpha=0.1).warnings if "calibration item" in w]
    assert "with 9 calibration items, their mean loss may be at most 0 to guarantee" in text
    assert "Name at least 18 items in fit_on, better 100." in text
    enough = evaluate(fit_on, alpha=0.5).warnings
    assert not any("calibration item" in w for w in enough)


def test_sets_of_less_than_one_class_are_a_warning(fit_on: str) -> None:
    """An alpha above the error rate makes sets empty, where the likeliest class is right."""
    for method, alpha, is_small in (("lac", 0.1, False), ("aps", 0.9, False), ("lac", 0.9, True)):
        report = evaluate(fit_on, alpha=alpha, method=method)
        results = report.results["conformal"]
        assert (results["size"] < 1) == is_small
        of_size = [text for text in report.warnings if "are empty" in text]
        assert len(of_size) == is_small
    assert (
        f"{100 * results['empty']:.1f} % of the sets are empty, and the mean size is "
        f"{results['size']:.3f}: if the pixel accuracy is at least 1 - alpha (0.1), the most likely"
        " class alone has this coverage. Choose a smaller alpha"
    ) in of_size[0]
    of_class = evaluate(fit_on, alpha=0.9, risk="fnr:0")
    assert not any("are empty" in text for text in of_class.warnings)


def test_bad_options(fit_on: str) -> None:
    for options, text in (
        ({"fit_on": None}, "give fit_on=FILE"),
        ({"risk": "fnr:9"}, "risk='fnr:9' is not valid"),
        ({"risk": "dice"}, "expected miscoverage or fnr:"),
        ({"method": "scaled"}, "expected lac or aps"),
        ({"alpha": 1.0}, "alpha"),
        ({"uncertainty": "entropy"}, "has no effect on sets of classes"),
    ):
        with pytest.raises(UqevalError, match=text):
            evaluate(**{"fit_on": fit_on, **options})
