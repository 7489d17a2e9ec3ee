"""Out-of-distribution scores from their definitions: OUT pixels or items are the positives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.aggregation import aggregated
from uqeval.usecases.verify.bravo import InPixels, bravo
from uqeval.usecases.verify.classes import ClassMaps, class_maps, rounding_of, uncertainty_of
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.rank_bounds import add_bounds
from uqeval.usecases.verify.rank_counts import ranked
from uqeval.usecases.verify.resampled import CountedScores

if TYPE_CHECKING:
    from uqeval.records.report import Report

_SCORES = ("auroc", "aupr_out", "aupr_in", "fpr95", "detection_error")
#: The scores with a bound, and their names in failure detection.
_BOUNDED = {"auroc": "auroc", "aupr_out": "aupr_error", "aupr_in": "aupr_success"}

#: The scores whose intervals are recomputed.
_FORMULAS: dict[tuple[str, ...], Callable[[ranks.Groups], Array]] = {
    (own,): ranks.FAILURE[(name,)] for own, name in (*_BOUNDED.items(), ("fpr95", "fpr95"))
}


class OutOfDistribution:
    """Scores of items one after another, and then of all pixels and items.

    `keeps_pixels`: whether the set will be scored.
    """

    keeps_pixels = True

    def __init__(self, key: str, report: Report, settings: Mapping[str, Any]) -> None:
        self._key, self._report, self._settings = key, report, settings
        is_bravo = settings["definition"] == "bravo"
        self._bravo = report.results[key].get("bravo", {} if is_bravo else None)
        self._names = [str(own["name"]) for own in report.inputs.get("sets") or ()]
        self._values: list[Array] = []
        self._rounding: list[Array] = []
        self._sets: list[Array] = []
        self._inside: list[InPixels] = []
        self._classes = 0

    def add(self, maps: ClassMaps, classes: int, sets: Array) -> Recomputed | str:
        """Return the scores of an item; `sets` uint8 [y, x]: 0 IN, k the k-th OUT set."""
        values = uncertainty_of(maps, self._settings, classes)
        if values is None:
            return f"the store holds no map {self._settings['uncertainty']} to recompute it from"
        own = sets[~maps.void]
        if self.keeps_pixels:
            rounding = rounding_of(maps, self._settings)
            self._values.append(values[~maps.void])
            self._rounding.append(rounding)
            self._sets.append(own)
            if self._bravo is not None and maps.label is not None and maps.confidence is not None:
                self._classes = classes
                all_maps = (maps.label, maps.prediction, maps.confidence, values)
                is_inside = ~maps.void & (sets == 0)
                label, prediction, confidence, uncertainty = (m[is_inside] for m in all_maps)
                self._inside.append(
                    InPixels(label, prediction, confidence, uncertainty, rounding[own == 0])
                )
        record: dict[str, Any] = {
            "pixels": own.size, "pixels_in": int((own == 0).sum()),
            "pixels_out": int((own > 0).sum()),
        }  # fmt: skip
        if not self._names:
            return Recomputed(record)
        k, aggregation = int(sets.max()), self._settings["aggregation"]
        record |= {"set": self._names[k], "out": int(k > 0)}
        # Patches of a region count by the share of their pixels in it.
        if aggregation != "patch-max" or maps.void_of_image is None:
            record["score"] = aggregated(aggregation, values, maps.void, self._settings)
        return Recomputed(record)

    def of_set(self) -> Recomputed | str:
        """Return the scores of all pixels, and those of the items from their recorded scores."""
        values, rounding, sets = map(np.concatenate, (self._values, self._rounding, self._sets))
        results = self._report.results[self._key]
        of_all = _of_pixels(values, sets > 0, rounding, results)
        record, slack = of_all.values, of_all.slack
        if len(self._names) > 2:
            record["per_set"] = {}
            for k, name in enumerate(self._names[1:], 1):
                of_pair = (sets == 0) | (sets == k)
                of_report = (results.get("per_set") or {}).get(name) or {}
                pixels = values[of_pair], sets[of_pair] > 0, rounding[of_pair]
                of_set = _of_pixels(*pixels, of_report)
                record["per_set"][name] = of_set.values | {"images": self._of_items(name)}
                slack |= {f"per_set.{name}.{field}": own for field, own in of_set.slack.items()}
        if self._names:
            record["images"] = self._of_items() | {"aggregation": self._settings["aggregation"]}
        if self._bravo is not None and self._inside:
            inside = cs.joined(self._inside)
            of_bravo = bravo(inside, self._classes, record, self._bravo)
            record["bravo"] = of_bravo.values
            shared = {"ood_auroc": "auroc", "ood_aupr": "aupr_out", "ood_fpr95": "fpr95"}
            slack |= {f"bravo.{field}": own for field, own in of_bravo.slack.items()}
            slack |= {f"bravo.{field}": slack.get(own, 0.0) for field, own in shared.items()}
        return Recomputed(record, slack)

    def counted(self, _key: str) -> CountedScores:
        """Return the scores of pixels whose intervals follow from counts of items."""
        return ranked(_FORMULAS, self._values, [own > 0 for own in self._sets], self._rounding)

    def _of_items(self, name: str | None = None) -> dict[str, Any]:
        """Return the scores of the items, or of those of IN and of one OUT set."""
        items = [own[self._key] for own in self._report.items]
        if name is not None:
            items = [own for own in items if own["set"] in (self._names[0], name)]
        scored = [own for own in items if own.get("score") is not None]
        scores = np.array([own["score"] for own in scored], np.float64)
        is_out = np.array([own["out"] for own in scored], bool)
        record = _scores(ranks.without_noise(scores), is_out)
        del record["pixels"]
        return record | {"items_in": int((~is_out).sum()), "items_out": int(is_out.sum())}


def _of_pixels(
    score: Array, is_out: Array, rounding: Array, reported: Mapping[str, Any]
) -> Recomputed:
    record = _scores(score, is_out)
    record |= {"pixels_in": int((~is_out).sum()), "pixels_out": int(is_out.sum())}
    slack = ranks.slack_of_order(_of_groups, score, is_out, rounding)
    add_bounds(record, slack, reported, (score, is_out, rounding), _BOUNDED)
    return Recomputed(record, slack)


def _scores(score: Array, is_out: Array) -> dict[str, Any]:
    """Return the scores of flat pixels or of items; None unless there are both kinds."""
    return _of_groups(*ranks.grouped(score, is_out))


def _of_groups(number: Array, outs: Array) -> dict[str, Any]:
    """Return the scores, of the pixels or items and those OUT of `ranks.grouped`."""
    found, pixels = ranks.failure_of_groups(number, outs), int(number.sum())
    if found["auroc"] is None:
        return {"pixels": pixels} | dict.fromkeys(_SCORES)
    # A threshold at or above each group: OUT at or below it are missed, IN above it are flagged.
    missed = np.r_[0, np.cumsum(outs)] / outs.sum()
    flagged = 1 - np.r_[0, np.cumsum(number - outs)] / (number - outs).sum()
    return {
        "pixels": pixels, "auroc": found["auroc"], "aupr_out": found["aupr_error"],
        "aupr_in": found["aupr_success"], "fpr95": found["fpr95"],
        "detection_error": float(((missed + flagged) / 2).min()),
    }  # fmt: skip


def item_of_sets(source: Any, item: int, named: Collection[str]) -> tuple[ClassMaps, int, Array]:
    """Return the maps of an item of joined sets, the number of its classes, and the set of each
    pixel uint8 [y, x]. `named`: see `class_maps`."""
    k, first = source.source_of(item)
    own, place, mask = source.sources[k], item - first, source.mask
    # A mask that is an id of the labels reads them itself.
    maps = class_maps(own, place, named, with_labels=mask is None or mask.out is None)
    if mask is None:
        return maps, own.classes, np.full(own.size(place), source.set_of[k], np.uint8)
    ids = mask.planes.read(place)
    is_out = ids != 0 if mask.out is None else ids == mask.out
    if mask.out != mask.ignore_index:
        maps.void = maps.void | (ids == mask.ignore_index)
    return maps, own.classes, is_out.astype(np.uint8)
