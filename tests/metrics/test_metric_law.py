"""One law for all metrics: the value is that of a plain oracle of the same id, in a run, from its
saved states and in a table of sets; the metric's own formula computes it; without data it is null
with a reason; and it gets worse when the data do.

A new metric is measured by it as soon as it stands in a family: its oracle is a function in
`tests/helpers/naive_metrics.py`.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import naive_metrics
import numpy as np
import pytest
from small_videos import save_store, video

import uqeval
from uqeval.metrics import METRICS, Metric
from uqeval.metrics.calibration_estimators import PUBLISHED
from uqeval.records.addresses import number_at
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.weighting import Weighting
from uqeval.stores.states.saved import SavedStates

ITEMS, CLASSES = 2, 3
#: What makes a metric worse where it is another thing than what makes its family worse.
WORSE = {
    "pavpu.p_accurate": "errors",
    "image_failure.mean_risk": "errors",
    "calibration.ace": "wrong",
    "calibration.per_image.ace": "wrong",
    "pavpu.per_class.p_accurate": "errors",
    "pavpu.pavpu_peak.value": "errors",
    "regression.sharpness": "wide",
    "regression.auce_under": "wide",
    "regression.rmse_log": "larger",
    "regression.log10": "larger",
    "regression.silog": "larger",
    "nmerci.mae": "errors",
    "nmerci.mae_trimmed": "errors",
    "nmerci.max_alpha": "errors",
    "conformal.size": "errors",
    "conformal.singletons": "errors",
    "conformal.width": "errors",
    "temporal.occluded.mtc": "ids",
    "temporal.miou_mean": "ids",
    "temporal.tracks.consistency": "ids",
    "temporal.correlation.r": "labels",
}
WORSE_FAMILY = {
    "segmentation": "errors", "pavpu": "uncertainty", "calibration": "overconfident",
    "failure": "uncertainty", "image_failure": "uncertainty", "ood": "alike",
    "sparsification": "uncertainty",
    "regression": "errors",
    "nmerci": "uncertainty", "divergence": "reference", "temporal": "flow",
    "conformal": "shift", "annotators": "moved",
}  # fmt: skip
_RECALIBRATED = [
    f"calibration.{part}.{name}"
    for part in ("isotonic", "vector") for name in ("ece", "mce", "brier", "nll")
]  # fmt: skip
WORSE |= dict.fromkeys(_RECALIBRATED, "shift")
#: Relative, where it is another than 1e-9: maps are float32, and a sum or a search has its own.
TOLERANCE = {
    "calibration.brier": 1e-7,
    "calibration.kumar_l1": 1e-6,
    "calibration.smooth_ece": 1e-6,
    "calibration.temperature.value": 1e-6,
    "calibration.temperature.ece": 1e-6,
    "calibration.temperature.mce": 1e-6,
    "calibration.temperature.nll": 1e-8,
    **dict.fromkeys(
        (f"calibration.vector.{name}" for name in ("ece", "mce", "brier", "nll")), 1e-5
    ),
    "calibration.isotonic.ece": 1e-6,
    "calibration.isotonic.mce": 1e-6,
}
#: Metrics that a set without pixels leaves defined: another set leaves them undefined.
DEFINED_WITHOUT_PIXELS = {
    "calibration.temperature.value": "no_errors", "regression.sigma_scale.value": "exact",
}  # fmt: skip


def kind_of(metric: Metric) -> str:
    """The kind of data that a metric is measured on."""
    return (
        "masked"
        if metric.field.startswith("bravo.")
        else KINDS.get(metric.id, KINDS[metric.family])
    )


def shuffled(values: Any, seed: int) -> Any:
    """Another order of the flat values."""
    return np.random.default_rng(seed).permutation(values.reshape(-1)).reshape(values.shape)


# Data and their degraded forms ---------------------------------------------------------------


@functools.cache
def classes(worse: str = "") -> naive_metrics.Classes:
    """Blocks of classes, predicted the surer the more often right."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, CLASSES, (ITEMS, 4, 5)).repeat(4, 1).repeat(4, 2)
    sure = rng.uniform(0, 5, (ITEMS, 4, 5)).repeat(4, 1).repeat(4, 2)
    means = np.eye(CLASSES)[truth].transpose(0, 3, 1, 2) * sure[:, None]
    z = np.exp(means[:, None] + rng.normal(0, 1.2, (ITEMS, 3, CLASSES, 16, 20)))
    # In steps of 1/64, so that equal confidences are far from others.
    steps = np.floor(61 * z / z.sum(axis=2, keepdims=True)) + 1
    steps[:, :, 0] += 64 - steps.sum(axis=2)
    probs = (steps / 64).astype("f4")
    # Certain pixels, as of a saturated softmax.
    probs[..., 8:, :4] = np.eye(CLASSES)[truth].transpose(0, 3, 1, 2)[:, None, :, 8:, :4]
    labels = truth.astype("u1")
    labels[:, :2] = naive_metrics.VOID
    if worse in ("errors", "overconfident"):  # labels of a third of the pixels are other ones
        moved = (labels != naive_metrics.VOID) & (rng.random(labels.shape) < 0.35)
        labels = np.where(moved, (labels + 1) % CLASSES, labels).astype("u1")
    if worse == "uncertainty":  # each pixel has its prediction, and another's probabilities
        guess = probs.mean(axis=1).argmax(axis=1)
        flat = probs.transpose(0, 3, 4, 1, 2).reshape(-1, 3, CLASSES)
        order = rng.permutation(len(flat))
        flat, before = flat[order], guess.reshape(-1)[order]
        for row, a, b in zip(flat, before, guess.reshape(-1), strict=True):
            row[:, [a, b]] = row[:, [b, a]]
        probs = flat.reshape(ITEMS, 16, 20, 3, CLASSES).transpose(0, 3, 4, 1, 2).copy()
    elif worse == "overconfident":  # p³, normalised
        probs = (probs**3 / (probs**3).sum(axis=2, keepdims=True)).astype("f4")
    elif worse == "wrong":
        labels = ((probs.mean(axis=1).argmax(axis=1) + 1) % CLASSES).astype("u1")
    elif worse == "no_errors":
        labels = probs.mean(axis=1).argmax(axis=1).astype("u1")
    return naive_metrics.Classes(probs, labels)


@functools.cache
def numbers(worse: str = "") -> naive_metrics.Numbers:
    """Errors in proportion to σ."""
    rng = np.random.default_rng(3)
    target = rng.uniform(12, 60, (ITEMS, 10, 14)).astype("f4")
    sigma = rng.uniform(0.3, 3, target.shape).astype("f4")
    error = sigma * rng.normal(size=target.shape).astype("f4")
    target[rng.random(target.shape) < 0.1] = np.nan
    if worse == "errors":
        error *= 3
    elif worse == "larger":  # but no prediction below 0
        error *= 1.1
    elif worse == "exact":
        error *= 0
    elif worse == "uncertainty":
        sigma = shuffled(sigma, 1)
    elif worse == "wide":
        sigma *= 4
    return naive_metrics.Numbers((target + error).astype("f4"), sigma, target)


@functools.cache
def reference(worse: str = "") -> naive_metrics.Reference:
    """Two models that differ a little."""
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(CLASSES), (ITEMS, 6, 7)).astype("f4")
    q = 0.8 * p + 0.2 * rng.dirichlet(np.ones(CLASSES), p.shape[:3]).astype("f4")
    p[0, 0, 0], q[0, 0, 1] = (1, 0, 0), (0, 0.5, 0.5)
    if worse == "reference":
        q[1] = q[1][::-1]
    return naive_metrics.Reference(np.moveaxis(p, -1, 1).copy(), np.moveaxis(q, -1, 1).copy())


@functools.cache
def film(worse: str = "") -> naive_metrics.Video:
    """Six frames of a texture that moves, with its labels."""
    own = video([f"v_{k:03}" for k in range(6)], seed=2, size=(40, 56))
    ids, labels = dict(own.predictions), dict(own.labels)
    rng = np.random.default_rng(1)
    if worse == "ids":
        for name in own.names[1::2]:
            ids[name] = rng.integers(0, 4, ids[name].shape).astype("u1")
    elif worse == "labels":  # those of the frame that agrees best with the one before
        items = film().temporal["items"]
        best = max(items, key=lambda name: items[name]["tc"])
        labels[best] = rng.integers(0, 4, labels[best].shape).astype("u1")
    return naive_metrics.Video(dict(own.frames), ids, labels)


@functools.cache
def images(worse: str = "") -> naive_metrics.Images:
    """Nine items, the worse the more of their pixels have other labels and are uncertain."""
    rng = np.random.default_rng(11)
    truth = rng.integers(0, CLASSES, (9, 6, 8))
    noise = np.linspace(0.5, 4, 9)[:, None, None, None]
    noise[[2, 3]] = noise[[3, 2]]
    means = 3 * np.eye(CLASSES)[truth] + noise * rng.normal(size=(9, 6, 8, CLASSES))
    sharp = 1 / noise if worse != "uncertainty" else 1 / noise[::-1]
    z = np.exp(sharp * (means - means.max(-1, keepdims=True)))
    probs = (z / z.sum(-1, keepdims=True)).transpose(0, 3, 1, 2)[:, None].astype("f4")
    labels = truth.astype("u1")
    labels[:, 0] = naive_metrics.VOID
    if worse == "errors":
        labels[:, 1:3] = (labels[:, 1:3] + 1) % CLASSES
    return naive_metrics.Images(naive_metrics.Classes(probs, labels))


@functools.cache
def masked(worse: str = "") -> naive_metrics.Masked:
    """Classes with less certain squares, which the masks mark."""
    own = classes("errors") if worse else classes()
    masks = np.zeros(own.labels.shape, "u1")
    masks[:, 4:12, 5:15] = 1
    probs = own.probs.astype("f8")
    flat = probs**0.5 if not worse else probs**3
    probs = np.where(masks[:, None, None] > 0, flat / flat.sum(axis=2, keepdims=True), probs)
    return naive_metrics.Masked(naive_metrics.Classes(probs.astype("f4"), own.labels), masks)


@functools.cache
def sets(worse: str = "") -> naive_metrics.Sets:
    """Seven items in-distribution and six out of it, a little less certain."""
    rng = np.random.default_rng(5)
    means = rng.normal(size=(13, 2, CLASSES, 5, 6)) * rng.uniform(1, 4, (13, 1, 1, 1, 1))
    scale = np.where(np.arange(13) < 7, 1.0, 1.0 if worse else 0.6)[:, None, None, None, None]
    z = np.exp(means * scale)
    probs = (z / z.sum(axis=2, keepdims=True)).astype("f4")
    if worse:
        probs = np.concatenate([probs[6:], probs[:6]])
    return naive_metrics.Sets(probs[:7], probs[7:])


@functools.cache
def annotated(worse: str = "") -> naive_metrics.Annotated:
    """The items of `classes`, whose four annotators disagree where the model is unsure; the last
    one labelled no more than the first item."""
    own, rng = classes(), np.random.default_rng(4)
    unsure = own.entropy[:, None] / own.entropy.max()
    labels = np.repeat(own.labels[:, None], 4, axis=1)
    other = (rng.random(labels.shape) < 0.6 * unsure) & (labels != naive_metrics.VOID)
    labels[other] = (labels[other] + 1) % CLASSES
    labels[1, 3] = naive_metrics.VOID
    labels[0, 1, 15, :4] = naive_metrics.VOID
    if worse:  # what is drawn lies elsewhere
        labels = np.roll(labels, (6, 9), axis=(2, 3))
    return naive_metrics.Annotated(own.probs, labels)


@functools.cache
def calibrated_sets(worse: str = "") -> naive_metrics.CalibratedSets:
    """The nine items of `images`, of which four calibrate; "shift": only the others get worse."""
    own = images("errors" if worse == "errors" else "").classes
    labels = own.labels.copy()
    if worse == "shift":
        labels[::2, 1:3] = (labels[::2, 1:3] + 1) % CLASSES
    return naive_metrics.CalibratedSets(naive_metrics.Classes(own.probs, labels), (1, 3, 5, 7))


@functools.cache
def intervals(worse: str = "") -> naive_metrics.CalibratedIntervals:
    """Seven items, of which three calibrate."""
    rng = np.random.default_rng(8)
    target = rng.uniform(2, 60, (7, 5, 6)).astype("f4")
    sigma = rng.uniform(0.3, 3, target.shape).astype("f4")
    error = sigma * rng.normal(size=target.shape).astype("f4")
    error *= 3 if worse == "errors" else 1
    target[rng.random(target.shape) < 0.1] = np.nan
    mean = (target + error).astype("f4")
    return naive_metrics.CalibratedIntervals(naive_metrics.Numbers(mean, sigma, target), (0, 2, 5))


DATA = {
    "classes": classes,
    "annotators": annotated,
    "calibrated": calibrated_sets,
    "recalibrated": calibrated_sets,
    "intervals": intervals,
    "images": images,
    "sets": sets,
    "masked": masked,
    "numbers": numbers,
    "reference": reference,
    "video": film,
}
KINDS = {
    "segmentation": "classes", "pavpu": "classes", "calibration": "classes", "failure": "classes",
    "image_failure": "images", "ood": "sets",
    "sparsification": "classes", "regression": "numbers", "nmerci": "numbers",
    "divergence": "reference", "temporal": "video",
    "conformal": "calibrated", "conformal.width": "intervals", "annotators": "annotators",
    **dict.fromkeys(_RECALIBRATED, "recalibrated"),
}  # fmt: skip


def evaluated(folder: Path, kind: str, worse: str, **options: Any) -> dict[str, Any]:
    """The results of a run."""
    if kind == "classes":
        own = classes(worse)
        families: dict[str, Any] = {name: {} for name, of in KINDS.items() if of == kind}
        families["calibration"] = {"definition": ["paper", *PUBLISHED]}
        if worse == "no_errors":
            families = {"calibration": {}}
        return uqeval.evaluate(own.probs, own.labels, families, **options).results
    if kind == "images":
        own = images(worse).classes
        return uqeval.evaluate(own.probs, own.labels, ["image_failure"], **options).results
    if kind == "annotators":
        rated = annotated(worse)
        return uqeval.evaluate(rated.probs, rated.labels, ["annotators"], **options).results
    if kind == "sets":
        both = sets(worse)
        return uqeval.evaluate(both.inside, None, ["ood"], out=[both.outside], **options).results
    if kind == "masked":
        of_masks = masked(worse)
        settings = {"ood": {"definition": "bravo"}}
        given = of_masks.classes.probs, of_masks.classes.labels
        return uqeval.evaluate(*given, settings, ood_mask=of_masks.masks, **options).results
    if kind == "calibrated":
        own, calibrate = calibrated_sets(worse).classes, calibrated_sets().calibrate
        families = {"conformal": calibrated(folder, calibrate)}
        return uqeval.evaluate(own.probs, own.labels, families, **options).results
    if kind == "recalibrated":
        own = calibrated_sets(worse).classes
        parts = {"isotonic": True, "vector": True, "temperature": False, "adaptive": False}
        fit_on = calibrated(folder, calibrated_sets().calibrate)["fit_on"]
        families = {"calibration": parts | {"fit_on": fit_on}}
        return uqeval.evaluate(own.probs, own.labels, families, **options).results
    if kind == "intervals":
        values, calibrate = intervals(worse).numbers, intervals().calibrate
        arrays = {"mean": values.mean, "std": values.std}
        families = {"conformal": calibrated(folder, calibrate)}
        return uqeval.evaluate(arrays, values.target, families, **options).results
    if kind == "numbers":
        values = numbers(worse)
        arrays = {"mean": values.mean, "std": values.std}
        parts = {"depth": True, "ence": True, "sigma_scale": True}
        families = {"regression": parts, "nmerci": {}}
        return uqeval.evaluate(arrays, values.target, families, **options).results
    if kind == "reference":
        both = reference(worse)
        options["reference"] = both.reference
        return uqeval.evaluate(both.probs, None, {"divergence": {}}, **options).results
    return filmed(folder, worse, **options)


def calibrated(folder: Path, items: tuple[int, ...]) -> dict[str, Any]:
    """Options of conformal prediction that is calibrated on these items."""
    path = folder / "calibration.json"
    path.write_text(json.dumps([str(item) for item in items]))
    return {"fit_on": str(path), "alpha": 0.3}


def filmed(folder: Path, worse: str, **options: Any) -> dict[str, Any]:
    """The results of a video; with "flow", its flow is stored and too long by 9 pixels."""
    own = film("" if worse == "flow" else worse)
    arrays = {"frames": own.frames, "predictions": own.ids, "labels": own.labels}
    stored = {name: np.stack(list(values.values())) for name, values in arrays.items()}
    method = "dis"
    if worse == "flow":
        back, forward = own.flows
        stored |= {"flow": back + np.float32([9, 5]), "flow_forward": forward}
        method = "file"
    store = save_store(folder / f"video{worse}.zarr", list(own.frames), **stored)
    chosen = {"flow": method, "occlusion": "fb", "tracks": worse != "flow"}
    return uqeval.evaluate(None, None, {"tc": chosen}, video=str(store), **options).results


# The law ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """Results of a run over the data of one kind, from its states, and of no item; and numbers that
    differ in a table of sets."""

    results: dict[str, Any]
    again: dict[str, Any]
    empty: dict[str, Any]
    differ_in_table: list[str]
    #: By family, the scores that states tell inside bins of ranks only.
    approximate: dict[str, frozenset[str]]


def found(folder: Path, kind: str) -> Found:
    """Return the results of a run over the data of a kind."""
    states = folder / f"{kind}.states.zip"
    results = evaluated(folder, kind, "", states=states)
    scoring = Scoring(SavedStates(states))
    names = {key: own.approximate for key, own in scoring.evaluations.items()}
    again = scoring.whole()
    return Found(results, again, scoring.whole([]), differ_in_table(scoring, again), names)


def differ_in_table(scoring: Scoring, results: dict[str, Any]) -> list[str]:
    """The numbers of results that a table of sets, with the set of all items, has as others."""
    places = scoring.addresses
    every = Weighting(np.ones((1, scoring.items), np.int64))
    columns = zip(places, scoring.table(every, list(places))[0].tolist(), strict=True)
    expected = {address: number_at(results, place) for address, place in places.items()}
    return [
        f"{address} is {value} in a table, from states {expected[address]}"
        for address, value in columns
        if not math.isnan(value) and value != pytest.approx(expected[address], rel=1e-9, abs=1e-12)
    ]


def value_of(results: dict[str, Any], metric: Metric) -> tuple[Any, Any]:
    """The value of a metric in the first variant that has it, and whether there are reasons."""
    head, *rest = metric.field.split(".")
    keys = [key for key in results if key.partition("[")[0] == metric.family]
    record = next((results[key] for key in keys if head in results[key]), None)
    assert record is not None, f"{metric.id} is in no record of {keys}"
    if head == "per_class":
        rows, (name,) = record[head], rest
        return [row[name] for row in rows], all(row.get(f"{name}_reason") for row in rows)
    reason, value = record.get(f"{head}_reason"), record[head]
    for name in rest:
        if value is not None:
            reason, value = value.get(f"{name}_reason"), value[name]
    if isinstance(value, dict):
        reason = all(value.get(f"{name}_reason") for name in value if not name.endswith("_reason"))
        value = {name: own for name, own in value.items() if not name.endswith("_reason")}
    return value, reason


def flat(value: Any) -> list[float]:
    """The numbers of a value: one, one for each class, or some by name; NaN where undefined."""
    each = list(value.values()) if isinstance(value, dict) else value
    each = each if isinstance(each, list) else [each]
    return [math.nan if own is None else own for own in each]


def wrong_value(metric: Metric, found: Found) -> str | None:
    """Return the error in the value of a metric, in a run and from its states; empty if there is
    none.
    """
    values = flat(value_of(found.results, metric)[0])
    expected = flat(naive_metrics.ORACLES[metric.id](DATA[kind_of(metric)]()))
    tolerance = TOLERANCE.get(metric.id, 1e-9)
    if values != pytest.approx(expected, rel=tolerance, abs=1e-12, nan_ok=True):
        return f"is {values}, its oracle {expected}"
    defined = [number for number in values if not math.isnan(number)]
    low, high = metric.range
    inside = [(low is None or low <= n) and (high is None or n <= high) for n in defined]
    if not defined or not all(inside):
        return f"is {values}, outside {metric.range}"
    states = flat(value_of(found.again, metric)[0])
    names = found.approximate.get(metric.family, frozenset())
    averaged = {"*", metric.field, metric.field.split(".")[0]} & names
    tolerance = 0.05 if averaged else 1e-9  # averaged inside bins of ranks
    if states != pytest.approx(values, rel=tolerance, abs=1e-12, nan_ok=True):
        return f"is {values}, from its states {states}"
    return None


def wrong_without_pixels(metric: Metric, results: dict[str, Any]) -> str | None:
    """Return what is wrong with a metric of no pixels: it has to be null, with a reason."""
    value, reason = value_of(results, metric)
    if not all(math.isnan(number) for number in flat(value)):
        return f"is {value} where it is undefined"
    return None if reason else "is undefined without a reason"


def wrong_direction(metric: Metric, before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return what is wrong with the direction of a metric that is worse `after`."""
    first, then = (np.nanmean(flat(value_of(own, metric)[0])) for own in (before, after))
    if then < first if metric.direction == "higher" else then > first:
        return None
    return f"should be worse than {first} on worse data, is {then}"


def code_of(metric: Metric) -> CodeType:
    """The code of the function that computes a metric."""
    formula = metric.formula
    while isinstance(formula, functools.partial):
        formula = formula.func
    code: CodeType = formula.__code__
    return code


@contextmanager
def executed() -> Iterator[set[CodeType]]:
    """The code of all functions that run meanwhile, in this thread and in those that it starts."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield codes
    finally:
        sys.setprofile(before)
        threading.setprofile(before)  # type: ignore[arg-type]


def test_each_metric_has_an_oracle() -> None:
    assert {metric.id for metric in METRICS} == naive_metrics.ORACLES.keys()


@pytest.mark.parametrize("kind", DATA)
def test_all_metrics_of_a_kind_of_data(tmp_path: Path, kind: str) -> None:
    """Value, undefined case and direction of each; one message for each that is wrong.

    The formula of each metric runs: a value from elsewhere would not be its formula's.
    """
    with executed() as codes:
        run = found(tmp_path, kind)
    worse = functools.cache(lambda how: evaluated(tmp_path, kind, how))
    messages = list(run.differ_in_table)
    for metric in (own for own in METRICS if kind_of(own) == kind):
        special = DEFINED_WITHOUT_PIXELS.get(metric.id)
        problems = [
            None if code_of(metric) in codes else "is not computed by its formula",
            wrong_value(metric, run),
            wrong_without_pixels(metric, worse(special) if special else run.empty),
        ]
        if metric.direction:
            how = WORSE.get(metric.id, WORSE_FAMILY[metric.family])
            problems.append(wrong_direction(metric, run.results, worse(how)))
        messages += [f"{metric.id} {text}" for text in problems if text]
    assert not messages, "\n".join(messages)
