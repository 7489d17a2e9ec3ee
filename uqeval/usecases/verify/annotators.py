"""Several annotators, from the definitions: every pair of maps, and the shares of the votes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify.arrays import probabilities_of
from uqeval.usecases.verify.classes import ClassMaps
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.ranks import noise

if TYPE_CHECKING:
    from uqeval.records.report import Report

_OF_SAMPLES = ("ged", "distance", "diversity")
_DISTANCES = (*_OF_SAMPLES, "annotator_diversity", "annotator_ged", "agreement")
_VOTES = ("cross_entropy", "label_entropy", "kl", "brier", "accuracy")


class Annotators:
    """Scores of items one after another, and then of the set."""

    def __init__(self, key: str, report: Report, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._distances: list[dict[str, float]] = []
        self._ncc: list[float] = []
        #: The allowed difference of the NCC of an item: of float32 maps that hardly vary.
        self._slack: list[float] = []
        self._votes: list[dict[str, Any]] = []

    def add(self, maps: ClassMaps, source: Any, item: int) -> Recomputed | str:
        """Return the scores of an item."""
        if maps.probs is None:
            return "the store holds no mean_probs to recompute it from"
        labels = source.labels.planes.read(item).astype(np.int64)
        void = source.labels.ignore_index
        present = [plane for plane in labels if (plane != void).any()]
        known: Array = np.all([plane != void for plane in present] or [labels[0] != void], axis=0)
        people = [plane[known] for plane in present]
        distances = self._of_pairs(_samples(source, item), people, known, len(maps.probs))
        votes = _votes(maps.probs[:, known], maps.prediction[known], people, self._settings)
        uncertainty = maps.uncertainty.get(self._settings["uncertainty"])
        ncc, slack = None, 0.0
        if uncertainty is not None and distances:
            ncc = _correlation(uncertainty[known], people, self._settings, len(maps.probs))
            step = noise(uncertainty[known])
            slack = step / max(float(uncertainty[known].std(dtype=np.float64)), step)
        self._votes.append(votes)
        self._distances += [distances] if distances else []
        if ncc is not None:
            self._ncc.append(ncc)
            self._slack.append(slack)
        record = dict.fromkeys(_DISTANCES) | distances | {"ncc": ncc}
        return _scores(record | {"items": int(bool(distances))}, [votes], slack)

    def of_set(self) -> Recomputed | str:
        """Return the scores of all items."""
        own = self._distances
        record: dict[str, Any] = {
            name: float(np.mean([item[name] for item in own])) if own and name in own[0] else None
            for name in _DISTANCES
        }
        record |= {"ncc": float(np.mean(self._ncc)) if self._ncc else None, "items": len(own)}
        return _scores(record, self._votes, max(self._slack, default=0.0))

    def _of_pairs(
        self, samples: list[Array], people: list[Array], known: Array, classes: int
    ) -> dict[str, float]:
        """Return the distances between samples and annotators; none with fewer than two."""
        if len(people) < 2 or not known.any():
            return {}
        settings, maps = self._settings, [plane[known] for plane in samples]
        names = settings["distance_classes"]
        first = int(names == "foreground" or (names == "auto" and classes == 2))
        counted = range(first, classes)

        def mean(pairs: Iterable[tuple[Array, Array]]) -> float:
            return _distance(list(pairs), counted, settings)

        found: dict[str, float] = {}
        of_people = mean(itertools.product(people, people))
        if maps:
            of_both, of_samples = (mean(itertools.product(maps, own)) for own in (people, maps))
            found = {"ged": 2 * of_both - of_samples - of_people, "distance": of_both,
                     "diversity": of_samples}  # fmt: skip
        of_each = []
        for r, own in enumerate(people):
            others = [*people[:r], *people[r + 1 :]]
            of_each.append(
                2 * mean(itertools.product([own], others)) - mean([(own, own)])
                - mean(itertools.product(others, others))
            )  # fmt: skip
        return found | {
            "annotator_diversity": of_people, "annotator_ged": float(np.mean(of_each)),
            "agreement": 1 - mean(itertools.combinations(people, 2)),
        }  # fmt: skip


def _samples(source: Any, item: int) -> list[Array]:
    """Return the predicted ids [y, x] of each sample; none if the store does not have them."""
    if source.stack is not None:
        return [p.argmax(axis=0) for p in probabilities_of(source.stack, item)]
    planes = source.stored.get("sample_predictions")
    return [] if planes is None else list(planes.read(item))


def _distance(
    pairs: Sequence[tuple[Array, Array]], counted: Iterable[int], settings: Mapping[str, Any]
) -> float:
    """Return 1 - IoU or Dice: the mean over pairs of the mean over classes, or of pooled counts."""
    absent = settings["absent"]
    parts, wholes = np.zeros((2, len(pairs), len(list(counted))))
    for i, (a, b) in enumerate(pairs):
        for j, c in enumerate(counted):
            both, one, other = ((a == c) & (b == c)).sum(), (a == c).sum(), (b == c).sum()
            is_iou = settings["distance"] == "iou"
            parts[i, j] = both if is_iou else 2 * both
            wholes[i, j] = one + other - both if is_iou else one + other
    if settings["pairs"] == "pooled":
        whole = wholes.sum()
        return float(1 - parts.sum() / whole) if whole else float(absent == "disagree")
    overlap = np.where(wholes > 0, parts / np.maximum(wholes, 1), float(absent == "agree"))
    kept = wholes > 0 if absent == "skip" else np.ones(wholes.shape, bool)
    of_pairs = [1 - own[k].mean() if k.any() else 0.0 for own, k in zip(overlap, kept, strict=True)]
    return float(np.mean(of_pairs))


def _shares(people: list[Array], classes: int) -> Array:
    """Return the shares of the votes [class, pixel]."""
    return np.array([np.mean([own == c for own in people], axis=0)
                              for c in range(classes)])  # fmt: skip


def _entropy(q: Array) -> Array:
    """Return -Σ q ln q of shares [class, pixel]."""
    return -(q * np.log(np.where(q > 0, q, 1))).sum(axis=0)


def _correlation(
    uncertainty: Array, people: list[Array], settings: Mapping[str, Any], classes: int
) -> float | None:
    """Return the NCC of the uncertainty with the disagreement; None if one does not vary."""
    q = _shares(people, classes)
    y = _entropy(q) if settings["disagreement"] == "entropy" else 1 - (q**2).sum(axis=0)
    x, ddof = uncertainty.astype(np.float64), settings["ncc_ddof"]
    if not x.size or np.ptp(x) == 0 or np.ptp(y) < 1e-12:
        return None
    covariance = ((x - x.mean()) * (y - y.mean())).mean()
    return float(covariance / (np.std(x, ddof=ddof) * np.std(y, ddof=ddof)))


def _votes(
    probs: Array, prediction: Array, people: list[Array], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return sums over the pixels of an item that its annotators labelled."""
    classes, bins = len(probs), settings["bins"]
    p = probs.astype(np.float64)
    q = _shares(people, classes) if people else np.zeros(p.shape)
    share = np.take_along_axis(q, prediction[None], 0)[0]
    confidence = p.max(axis=0)
    number = np.maximum(np.ceil(bins * confidence), 1).astype(int) - 1
    entropy = float(_entropy(q).sum())
    cross_entropy = float(-(q * np.log(np.maximum(p, settings["clip"]))).sum())
    edges = np.abs(bins * confidence - np.rint(bins * confidence)) <= bins * cs.NEAR
    votes: Array = np.array([sum(int((own == c).sum()) for own in people) for c in range(classes)])
    agreeing = [int((a == b).sum()) for a, b in itertools.combinations(people, 2)]
    return {
        "pixels": p.shape[1], "cross_entropy": cross_entropy, "label_entropy": entropy,
        "kl": cross_entropy - entropy, "brier": float(((p - q) ** 2).sum()),
        "accuracy": float(share.sum()), "votes": votes, "agreeing": sum(agreeing),
        "pairs": len(agreeing) * p.shape[1],
        "gaps": np.bincount(np.minimum(number, bins - 1), share - confidence, bins),
        "near": int((edges & (confidence < 1)).sum()),
    }  # fmt: skip


def _scores(
    record: dict[str, Any], parts: Sequence[Mapping[str, Any]], slack_of_ncc: float
) -> Recomputed:
    """Return a record with the scores of the votes of some items."""
    total = {name: sum(own[name] for own in parts) for name in parts[0]}
    n = total["pixels"]
    record |= {"pixels": n} | {name: cs.ratio(total[name], n) for name in _VOTES}
    record["ece"] = cs.ratio(float(np.abs(total["gaps"]).sum()), n)
    record["kappa"] = _kappa(total)
    # A pixel near the edge of a bin moves its gap, at most 1, from one bin to the other.
    return Recomputed(record, {"ece": 2 * total["near"] / max(n, 1), "ncc": slack_of_ncc})


def _kappa(total: Mapping[str, Any]) -> float | None:
    """Return Fleiss' kappa; None without pairs, or for votes of one class."""
    votes = total["votes"]
    if not total["pairs"] or votes.max() == votes.sum():
        return None
    by_chance = math.fsum((votes / votes.sum()) ** 2)
    return float((total["agreeing"] / total["pairs"] - by_chance) / (1 - by_chance))
