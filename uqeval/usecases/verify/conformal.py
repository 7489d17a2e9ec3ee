"""Conformal prediction from its definition: scores are sorted, sets and intervals are counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.keys import Key
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify.classes import ClassMaps
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.numbers import Numbers

if TYPE_CHECKING:
    from uqeval.records.report import Report

_FNR = "fnr:"
_PERCENTILES = {"least": 0, "p05": 5, "p25": 25, "median": 50, "p75": 75, "p95": 95, "most": 100}
_CALIBRATED = ("threshold", "one_minus_threshold", "calibration_items", "calibration_loss")
_GUARANTEE = (
    "If the {images} are exchangeable, the expected share of the {pixels} of a new image whose "
    "{inside} is at least {level:g}, averaged over images and over the choice of the {items} "
    "calibration images. It does not hold for each image, class, region or pixel."
)


@dataclass(frozen=True)
class _Item:
    """Flat arrays of the pixels of an item: `score` of the truth, float32 (of classes 1 - score),
    whether the set contains it, the size of the set (or the width), and the pixels of the risk.

    `near`: the number of scores that float32 cannot distinguish from the threshold.
    """

    score: Array
    hit: Array
    size: Array
    at_risk: Array
    near: int

    @property
    def loss(self) -> float | None:
        """Return the share of the pixels of the risk whose set does not contain the truth."""
        own = self.hit[self.at_risk]
        return 1 - float(own.mean()) if own.size else None


class Conformal:
    """Scores of items one after another; then the threshold, and the scores of the set.

    `keeps_pixels`: whether the set will be scored.
    """

    keeps_pixels = True

    def __init__(self, key: str, report: Report, settings: Mapping[str, Any]) -> None:
        self._key, self._report, self._settings = key, report, settings
        #: The class of the risk; None if all pixels count.
        self._class_name: str | None = None
        #: The key of the whole image, of a region.
        self._of_image = None if Key.parse(key).region is None else str(Key.parse(key).of(None))
        #: How large a set of classes, or an interval, is called.
        self._size = "width" if self._settings["method"] == "scaled" else "size"
        self._threshold, self._resolution = _threshold_of(report.results[key], self._size)
        self._calibration: list[_Item] = []
        self._evaluated: list[_Item] = []

    def of_classes(self, item: int, maps: ClassMaps, names: list[str]) -> Recomputed | str:
        """Return the scores of an item with labels."""
        if maps.probs is None or maps.label is None:
            return "the store holds no mean_probs to recompute it from"
        probs, label = maps.valid(maps.probs), maps.valid(maps.label)
        scores = probs if self._settings["method"] == "lac" else _remaining_masses(probs)
        inside = scores >= np.float32(self._threshold)
        places = np.arange(label.size)
        risk = str(self._settings["risk"])
        at_risk: Array = np.ones(label.shape, bool)
        if risk.startswith(_FNR):
            name = risk.removeprefix(_FNR)
            class_id = names.index(name) if name in names else int(name)
            self._class_name, at_risk = names[class_id], label == class_id
        near = _near(scores, self._threshold, self._resolution)
        return self._add(item, _Item(
            scores[label, places], inside[label, places], inside.sum(axis=0), at_risk, near
        ))  # fmt: skip

    def of_numbers(self, item: int, data: Numbers) -> Recomputed | str:
        """Return the scores of an item with a target."""
        sigma = data.sigma_of(self._settings["uncertainty"])
        if sigma is None:
            return f"the store holds no {self._settings['uncertainty']} to recompute it from"
        error = data.error
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(sigma > 0, error / sigma, np.where(error > 0, np.inf, 0))
            ratio = ratio.astype(np.float32)
            width = 2 * self._threshold * sigma  # NaN at σ = 0 if the threshold is infinite
        near = _near(ratio[np.isfinite(ratio)], self._threshold, self._resolution)
        inside = ratio <= self._threshold
        return self._add(item, _Item(ratio, inside, width, np.ones(ratio.shape, bool), near))

    def _add(self, item: int, own: _Item) -> Recomputed:
        is_used = bool(self._report.items[item].get(self._key, {}).get("calibration"))
        if self.keeps_pixels:
            (self._calibration if is_used else self._evaluated).append(own)
        if is_used:
            undefined = dict.fromkeys(("coverage", self._size, "loss", "above"))
            return Recomputed(undefined | {"calibration": True})
        values = self._sizes([own]) | {"calibration": False}
        loss = own.loss
        values |= {"loss": loss, "above": None if loss is None else loss > self._settings["alpha"]}
        slack = own.near / max(int(own.at_risk.sum()), 1)
        if loss is not None and abs(loss - self._settings["alpha"]) <= slack:
            del values["above"]
        return Recomputed(values, dict.fromkeys(("coverage", "size", "loss"), slack))

    def _sizes(self, items: list[_Item]) -> dict[str, Any]:
        """Return the coverage and the mean size or width over the pixels of some items."""
        hit, size = (np.concatenate([getattr(own, n) for own in items]) for n in ("hit", "size"))
        if not hit.size:
            return {"coverage": None, self._size: None}
        mean = float(size.mean(dtype=np.float64))
        return {"coverage": float(hit.mean()), self._size: mean if math.isfinite(mean) else None}

    def of_set(self) -> Recomputed | str:
        """Return the threshold of the calibration items, and the scores of the others."""
        record, items = self._sizes(self._evaluated), self._evaluated
        size = np.concatenate([own.size for own in items])
        record |= {"pixels": size.size, "evaluated_items": len(items)}
        if "size" in record:
            for name, number in (("singletons", 1), ("empty", 0)):
                record[name] = cs.ratio(int((size == number).sum()), size.size)
        losses = np.array([own.loss for own in items if own.loss is not None])
        record |= {"mean_loss": None, "items_above": None}
        if losses.size:
            alpha, coverage = self._settings["alpha"], 1 - losses
            record["mean_loss"] = float(losses.mean())
            record["items_above"] = float((losses > alpha).mean())
            record["items"] = {"mean": float(coverage.mean()), "std": float(coverage.std())} | {
                name: float(np.percentile(coverage, p)) for name, p in _PERCENTILES.items()
            }
        # What follows from the counts may differ by the pixels near the threshold.
        near = [own.near / max(int(own.at_risk.sum()), 1) for own in items]
        names = {*record, *(f"items.{name}" for name in record.get("items", ()))}
        slack = dict.fromkeys(names - {"pixels", "evaluated_items"}, max(near, default=0.0))
        at_limit = sum(abs(v - self._settings["alpha"]) <= max(near) for v in losses)
        slack["items_above"] = at_limit / max(losses.size, 1)
        if self._of_image is not None:  # a region has the threshold of the image
            results = self._report.results[self._of_image]
            known = {name: results[name] for name in _CALIBRATED if name in results}
            return Recomputed(record | known | self._about(known["calibration_items"]), slack)
        calibrated, slack_of_loss = self._calibrated()
        record |= self._about(calibrated["calibration_items"])
        slack["calibration_loss"] = slack_of_loss
        slack["threshold"] = cs.NEAR * max(1.0, abs(calibrated["threshold"] or 0.0))
        return Recomputed(record | calibrated, slack)

    def _about(self, calibration_items: int) -> dict[str, str]:
        """Return the guarantee, and the items of the calibration as the report tells them."""
        of_class = self._class_name
        images, pixels = f"images with {of_class}", f"pixels of {of_class}"
        of_sets = self._size == "size"
        names = [
            str(item["name"]) for item in self._report.items
            if item.get(self._key, {}).get("calibration")
        ]  # fmt: skip
        text = "\n".join(sorted(names)).encode(errors="surrogatepass")
        return {
            "guarantee": _GUARANTEE.format(
                images="images" if of_class is None else images,
                pixels="pixels" if of_class is None else pixels,
                inside="set contains the label" if of_sets else "interval contains the target",
                level=float(1 - Fraction(str(self._settings["alpha"]))), items=calibration_items,
            ),
            "fitted_on": self._settings["fit_on"],
            "fitted_on_digest": hashlib.sha256(text).hexdigest(),
        }  # fmt: skip

    def _calibrated(self) -> tuple[dict[str, Any], float]:
        """Return the smallest threshold at which (n·mean loss + 1)/(n + 1) ≤ α, and the loss from
        the pixels near it."""
        kept = [own for own in self._calibration if own.at_risk.any()]
        n, sign = len(kept), 1 if self._size == "width" else -1
        of_items = [own.score[own.at_risk].astype(np.float64) for own in kept]
        score = sign * np.concatenate(of_items)
        share = np.concatenate([np.full(own.size, 1 / own.size) for own in of_items])
        order = np.argsort(score, kind="stable")
        ordered = score[order]
        above = n - np.cumsum(share[order])  # Σ of the losses, if the threshold is this score
        above = above[np.r_[ordered[1:] != ordered[:-1], True]]
        distinct = np.unique(ordered)
        limit = float(Fraction(str(self._settings["alpha"])) * (n + 1) - 1)
        k = int(np.flatnonzero(above <= limit + 1e-9)[0])
        found = sign * float(distinct[k])
        near = sum(own.near / own.score.size for own in kept)
        threshold = {"threshold": found if math.isfinite(found) else None}
        if self._size == "size":
            threshold = {"threshold": 1 - found, "one_minus_threshold": found}
        return threshold | {
            "calibration_items": n, "calibration_loss": max(float(above[k]), 0.0) / n,
        }, near / n  # fmt: skip


def _threshold_of(results: Mapping[str, Any], size: str) -> tuple[float, float]:
    """Return the threshold as scores are compared with it (of classes 1 less it, infinite if it is
    None), and the distance at which float32 does not resolve scores from it.

    Reports of earlier versions have no `one_minus_threshold`, so that they lack digits near 0.
    """
    exact, threshold = results.get("one_minus_threshold"), results["threshold"]
    if size == "size" and exact is not None:
        return float(exact), cs.NEAR * abs(float(exact))
    limit = math.inf if threshold is None else float(threshold)
    return (1 - limit if size == "size" else limit), cs.NEAR * max(1.0, abs(limit))


def _near(score: Array, limit: float, resolution: float) -> int:
    """Return the number of scores that are not resolved from the threshold, without equal ones."""
    gap = np.abs(score.astype(np.float64) - limit)
    return int(((gap > 0) & (gap <= resolution)).sum())


def _remaining_masses(probs: Array) -> Array:
    """Return 1 less the probability of all likelier classes, float32 [class, pixel].

    A class is in the smallest set of the likeliest classes with a mass of at least τ where that of
    the likelier ones is below τ: Romano et al. 2020, §2.1. The other classes are added, because
    float32 probabilities of the likelier ones may add up to 1.
    """
    wide = probs.astype(np.float64)
    whole = wide.sum(axis=0)
    masses = [np.where(wide <= own, wide, 0).sum(axis=0) for own in wide]
    return (np.array(masses) / np.where(whole > 0, whole, 1)).astype(np.float32)
