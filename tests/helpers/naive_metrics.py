"""The oracle of every metric, by its id: a function of the plain arrays of a small data set.

It imports nothing of uqeval. A metric without an oracle of its id fails the law of metrics
(`tests/metrics/test_metric_law.py`). `per_class` fields have one value a class, others a number, or
numbers by name.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import naive
import naive_annotators
import naive_calibration
import naive_conformal
import naive_images
import naive_ood
import naive_ranked
import naive_regression
import naive_tracks
import naive_video
import numpy as np
from scipy.optimize import minimize_scalar

VOID = 255


@dataclass(frozen=True, eq=False)
class Classes:
    """Probabilities float32 [item, sample, class, y, x], labels uint8 [item, y, x]; entropy."""

    probs: Any
    labels: Any

    @functools.cached_property
    def maps(self) -> list[dict[str, Any]]:
        pairs = zip(self.probs, self.labels, strict=True)
        return [naive.maps(own, label, VOID) for own, label in pairs]

    def map(self, name: str) -> Any:
        return np.stack([own[name] for own in self.maps])

    @functools.cached_property
    def entropy(self) -> Any:
        return self.map("entropy").astype(np.float32)

    @functools.cached_property
    def pixels(self) -> tuple[Any, Any, Any, Any]:
        """Of the non-void pixels: probabilities [class, i], labels, confidences and hits."""
        mean = self.map("mean_probs").astype(np.float32)
        p, label = naive_calibration.flatten(mean, self.labels, VOID)
        return p, label, *naive_calibration.top(p, label)

    @functools.cached_property
    def errors(self) -> tuple[Any, Any]:
        """Of the non-void pixels: entropy, and whether the prediction is wrong."""
        known = self.labels != VOID
        return self.entropy[known], (self.map("prediction") != self.labels)[known]

    @functools.cached_property
    def patches(self) -> tuple[Any, Any]:
        """All patches, and the uncertainties of all pixels."""
        right = self.map("prediction") == self.labels
        found = naive.patches(right, self.entropy, self.labels)
        return found, naive.pixel_uncertainties(self.entropy, self.labels)

    @functools.cached_property
    def segmentation(self) -> dict[str, Any]:
        return naive.segmentation(self.labels, self.map("prediction"), self.probs.shape[2])

    @functools.cached_property
    def pavpu(self) -> dict[str, Any]:
        found, pixels = self.patches
        limit = naive.threshold("mean", found, pixels)
        curve = naive.curve(found, pixels)
        rows = naive.per_class(found, 0.5, limit, classes=self.probs.shape[2])
        return naive.scored(found, 0.5, limit) | {
            "pavpu_peak": naive.peak(curve, "pavpu"),
            "surplus_peak": naive.peak(curve, "surplus"),
            "surplus_auc": naive.surplus_auc(curve),
            "per_class": {name: [row[name] for row in rows] for name in naive.SCORES},
        }

    @functools.cached_property
    def calibration(self) -> dict[str, Any]:
        p, label, conf, hit = self.pixels
        mine = p[label, np.arange(label.size)]
        ece, mce = naive_calibration.equal_width(conf, hit, 15)
        swept = naive_calibration.sweep(conf, hit)
        edges = [float(own.max()) for own in np.array_split(np.sort(conf), 15)[:-1]]
        return {
            "ece": ece,
            "mce": mce,
            "adaptive_ece": naive_calibration.adaptive_ece(conf, hit, 15),
            "classwise_ece": float(np.mean(naive_calibration.classwise_ece(p, label, 15))),
            "ace": naive_calibration.ace(conf, hit, 15),
            "brier_decomposition": naive_calibration.brier_decomposition(p, label, 15),
            "per_image": self._of_images,
            "brier": naive_calibration.brier(p, label),
            "nll": naive_calibration.nll(mine),
            "temperature": self._tempered(p, label),
            "smooth_ece": naive_calibration.smooth_ece(conf, hit),
            "kumar_l2": naive_calibration.kumar_l2(conf, hit, edges),
            "kumar_l1": naive_calibration.kumar_l1(conf, hit, edges),
            "sweep_l1": swept[0],
            "sweep_l2": swept[1],
        }

    @property
    def _of_images(self) -> dict[str, float]:
        eces, aces = [], []
        for k in range(len(self.labels)):
            own = Classes(self.probs[k : k + 1], self.labels[k : k + 1])
            _, _, conf, hit = own.pixels
            eces.append(naive_calibration.equal_width(conf, hit, 15)[0])
            aces.append(naive_calibration.ace(conf, hit, 15))
        return {
            "mean": float(np.mean(eces)), "median": float(np.median(eces)),
            "p90": float(np.percentile(eces, 90)), "worst": max(eces),
            "ace": float(np.mean(aces)),
        }  # fmt: skip

    def _tempered(self, p: Any, label: Any) -> dict[str, float]:
        best = minimize_scalar(
            lambda x: naive_calibration.tempered_nll(p, label, math.exp(x)),
            (-1, 1), tol=1e-12, method="brent",
        )  # fmt: skip
        value = math.exp(best.x)
        after = naive_calibration.tempered(p, value)
        ece, mce = naive_calibration.equal_width(*naive_calibration.top(after, label), 15)
        nll = naive_calibration.nll(after[label, np.arange(label.size)])
        return {"value": value, "ece": ece, "mce": mce, "nll": nll}

    @functools.cached_property
    def failure(self) -> dict[str, Any]:
        score, wrong = self.errors
        limit = naive.threshold("mean", *self.patches)
        missed = float(np.mean(wrong & ~(score > np.float32(limit))))
        return naive_ranked.failure(score, wrong) | {"undetected_error_rate": missed}

    @functools.cached_property
    def sparsification(self) -> dict[str, Any]:
        known = self.labels != VOID
        error = self.map("brier").astype(np.float32)[known]
        return naive_ranked.sparsification(self.entropy[known], error)


@dataclass(frozen=True, eq=False)
class Images:
    """Class predictions as `Classes`; risk 1 - mIoU and confidence minus the mean entropy."""

    classes: Classes

    @functools.cached_property
    def image_failure(self) -> dict[str, Any]:
        own = self.classes
        pairs = zip(own.labels, own.map("prediction"), strict=True)
        count = own.probs.shape[2]
        risks = [1 - naive.segmentation(y[None], p[None], count)["miou"] for y, p in pairs]
        known = own.labels != VOID
        means = [float(np.mean(u[k].astype("f8"))) for u, k in zip(own.entropy, known, strict=True)]
        return naive_images.image_failure(risks, means, float(np.median(risks)))


@dataclass(frozen=True, eq=False)
class Masked:
    """Class predictions as `Classes`, and masks [item, y, x] of the pixels that are out."""

    classes: Classes
    masks: Any

    @functools.cached_property
    def ood(self) -> dict[str, Any]:
        own = self.classes
        known, out = own.labels != VOID, self.masks > 0
        confidence, prediction = own.map("confidence").astype("f4"), own.map("prediction")
        valid = known & ~out
        hit = (prediction == own.labels)[valid]
        inside = np.where(valid, own.labels, VOID)
        return {
            "bravo": naive_ood.bravo(
                naive.segmentation(inside, prediction, own.probs.shape[2])["miou"],
                confidence[valid], hit, confidence[known & ~out], confidence[known & out],
            )
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sets:
    """Probabilities [item, sample, class, y, x] in-distribution, and out of it."""

    inside: Any
    outside: Any

    @functools.cached_property
    def ood(self) -> dict[str, Any]:
        maps = [
            Classes(own, np.zeros((len(own), *own.shape[3:]), "u1")).entropy
            for own in (self.inside, self.outside)
        ]
        means = [own.astype("f8").mean(axis=(1, 2)) for own in maps]
        return naive_ood.ood(*(own.ravel() for own in maps)) | {"images": naive_ood.ood(*means)}


@dataclass(frozen=True, eq=False)
class Annotated:
    """Probabilities [item, sample, class, y, x], labels [item, annotator, y, x]."""

    probs: Any
    labels: Any

    @functools.cached_property
    def annotators(self) -> dict[str, Any]:
        one = Classes(self.probs, self.labels[:, 0])
        return naive_annotators.annotators(self.probs, one.entropy, self.labels)


@dataclass(frozen=True, eq=False)
class CalibratedSets:
    """Class predictions as `Classes`, and the items to calibrate on; α = 0.3."""

    classes: Classes
    calibrate: tuple[int, ...]

    @functools.cached_property
    def conformal(self) -> dict[str, Any]:
        mean = self.classes.map("mean_probs").astype(np.float32)
        return naive_conformal.sets(mean, self.classes.labels, self.calibrate, "0.3")

    @functools.cached_property
    def calibration(self) -> dict[str, Any]:
        """Recalibrated: fitted on some items, the scores of all."""
        some = list(self.calibrate)
        fit_on = Classes(self.classes.probs[some], self.classes.labels[some])
        p, label, conf, hit = fit_on.pixels
        function = naive_calibration.isotonic(conf, hit)
        numbers = naive_calibration.vector(p, label)
        p, label, conf, hit = self.classes.pixels
        new = function(conf)
        top = naive_calibration.with_confidence(p, new)
        scaled = naive_calibration.scaled(p, *numbers)
        after = naive_calibration.after(scaled, label, scaled.argmax(axis=0) == label)
        ece, mce = naive_calibration.equal_width(new.astype("f4"), hit, 15)
        isotonic = naive_calibration.after(top, label, hit) | {"ece": ece, "mce": mce}
        return {"isotonic": isotonic, "vector": after}


@dataclass(frozen=True, eq=False)
class CalibratedIntervals:
    """Numbers as `Numbers`, and the items to calibrate on; α = 0.3."""

    numbers: Numbers
    calibrate: tuple[int, ...]

    @functools.cached_property
    def conformal(self) -> dict[str, Any]:
        own = self.numbers
        return naive_conformal.intervals(own.mean, own.std, own.target, self.calibrate, "0.3")


@dataclass(frozen=True, eq=False)
class Numbers:
    """`mean`, `std` and `target`, float32 [item, y, x]; unknown targets are NaN."""

    mean: Any
    std: Any
    target: Any

    @functools.cached_property
    def pixels(self) -> list[naive_regression.Pixel]:
        return naive_regression.pixels(self.mean, self.std, self.target)

    @functools.cached_property
    def regression(self) -> dict[str, Any]:
        known = np.isfinite(self.target)
        arrays = (own[known] for own in (self.mean, self.std, self.target))
        return naive_regression.regression(self.pixels) | naive_regression.depth(*arrays)

    @functools.cached_property
    def nmerci(self) -> dict[str, Any]:
        return naive_regression.nmerci(self.pixels)


@dataclass(frozen=True, eq=False)
class Reference:
    """Probabilities [item, class, y, x] of two models."""

    probs: Any
    reference: Any

    @functools.cached_property
    def divergence(self) -> dict[str, Any]:
        found = []
        for item, y, x in np.ndindex(self.probs.shape[0], *self.probs.shape[2:]):
            a, b = (own[item, :, y, x].tolist() for own in (self.probs, self.reference))
            terms = [p * math.log(p / q) if q else math.inf for p, q in zip(a, b, strict=True) if p]
            found.append(math.fsum(terms))
        return {"kl": naive.mean_of([own if math.isfinite(own) else None for own in found])}


@dataclass(frozen=True, eq=False)
class Video:
    """By frame: images [y, x, 3], ids and labels [y, x]; the flow is that of DIS."""

    frames: dict[str, Any]
    ids: dict[str, Any]
    labels: dict[str, Any]

    @functools.cached_property
    def flows(self) -> tuple[Any, Any]:
        """From each frame to the one before, and back [pair, y, x, 2]."""
        grey = [naive_video.grey(own) for own in self.frames.values()]
        ways = [(a, b) for b, a in itertools.pairwise(grey)]
        dis = naive_video.ESTIMATORS["dis"]
        return np.stack([dis(a, b) for a, b in ways]), np.stack([dis(b, a) for a, b in ways])

    @functools.cached_property
    def temporal(self) -> dict[str, Any]:
        found = naive_video.run(self.frames, self.ids, "dis", True, self.labels)
        ids, images = (np.stack(list(own.values())) for own in (self.ids, self.frames))
        back, forward = self.flows
        tracked = naive_tracks.track(images, forward, back)
        rows = naive_tracks.counts(tracked, ids, int(ids[ids != VOID].max()) + 1, VOID)
        tracks, consistent = (sum(sum(row[name]) for row in rows)
                              for name in ("tracks", "consistent"))  # fmt: skip
        return found | {
            "correlation": {"r": found["r"]},
            "per_class": {"iou": [iou for _, iou in sorted(found["per_class"].items())]},
            "tracks": {"consistency": consistent / tracks if tracks else None},
        }


def _of(family: str, field: str) -> Callable[[Any], Any]:
    def oracle(data: Any) -> Any:
        found = getattr(data, family)
        for word in field.split("."):
            found = found[word]
        return found

    return oracle


_PATCHES = (
    "p_accurate", "p_certain", "p_accurate_given_certain", "p_uncertain_given_inaccurate",
    "pavpu", "pavpu_chance", "phi", "surplus", "half_surplus",
)  # fmt: skip
_FIELDS: dict[str, tuple[str, ...]] = {
    "segmentation": ("pixel_accuracy", "mean_accuracy", "miou"),
    "pavpu": (
        *_PATCHES, *(f"per_class.{name}" for name in _PATCHES),
        "pavpu_peak.value", "surplus_peak.value", "surplus_auc",
    ),
    "calibration": (
        "ece", "mce", "ace", "brier_decomposition.reliability", "brier_decomposition.resolution",
        "brier_decomposition.uncertainty", "per_image.mean", "per_image.median", "per_image.p90",
        "per_image.worst", "per_image.ace", "adaptive_ece", "classwise_ece", "brier", "nll",
        "temperature.value", "temperature.ece", "temperature.mce", "temperature.nll",
        "kumar_l2", "kumar_l1", "sweep_l1", "sweep_l2", "smooth_ece",
        *(f"{part}.{name}" for part in ("isotonic", "vector") for name in
          ("ece", "mce", "brier", "nll")),
    ),
    "failure": (
        "auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc",
        "risk_at_coverage", "coverage_at_risk", "undetected_error_rate",
    ),
    "image_failure": (
        "aurc", "e_aurc", "augrc", "auroc", "spearman", "kendall", "mean_risk",
    ),
    "ood": (
        "auroc", "aupr_in", "aupr_out", "fpr95", "detection_error", "images.auroc",
        "images.aupr_in", "images.aupr_out", "images.fpr95", "images.detection_error",
        "bravo.bravo_index", "bravo.semantic", "bravo.ood",
    ),
    "annotators": (
        "ged", "ncc", "ece", "kl", "cross_entropy", "label_entropy", "brier", "accuracy",
        "distance", "diversity", "annotator_diversity", "annotator_ged", "agreement", "kappa",
    ),
    "sparsification": ("ause", "aurg"),
    "regression": (
        "rmse", "mae", "nmse", "auce", "auce_over", "auce_under", "nll", "crps", "sharpness",
        "interval_score", "coverage", "abs_rel", "sq_rel", "rmse_log", "log10", "silog", "a1", "a2",
        "a3", "ence", "uce", "cv", "sigma_scale.value", "sigma_scale.nll_before", "sigma_scale.nll",
    ),
    "nmerci": ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha"),
    "divergence": ("kl",),
    "conformal": (
        "coverage", "size", "width", "mean_loss", "items_above", "singletons", "empty",
        "items.p05",
    ),
    "temporal": (
        "mtc", "mtc_no_warp", "mtc_pooled", "mtc_frequency_weighted", "pixel_agreement", "coverage",
        "out_of_frame", "mse_warp", "mse_identity", "miou_mean", "correlation.r", "per_class.iou",
        "occluded.mtc", "occluded.coverage", "tracks.consistency",
    ),
}  # fmt: skip

#: By the id of the metric.
ORACLES: dict[str, Callable[[Any], Any]] = {
    f"{family}.{field}": _of(family, field) for family, fields in _FIELDS.items()
    for field in fields
}  # fmt: skip
