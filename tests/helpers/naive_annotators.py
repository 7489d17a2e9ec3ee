"""Several annotators, plain and slow: every pair of maps and every pixel by itself."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

VOID = 255


def present(labels: Any) -> list[Any]:
    """The label maps [annotator, y, x] of those who labelled anything."""
    return [own for own in labels if (own != VOID).any()]


def mask(labels: Any) -> Any:
    """The pixels that all of them labelled."""
    own = present(labels)
    if not own:
        return np.zeros(labels.shape[1:], bool)
    return np.all([plane != VOID for plane in own], axis=0)


def majority(labels: Any, classes: int) -> Any:
    """The class of most annotators, the lowest id on a tie; void outside the mask."""
    votes = np.array([(labels == c).sum(axis=0) for c in range(classes)])
    return np.where(mask(labels), votes.argmax(axis=0), VOID).astype(labels.dtype)


def overlap(a: Any, b: Any, c: int, kind: str) -> tuple[int, int]:
    """Numerator and denominator of the IoU or Dice of a class."""
    both, one, other = int(((a == c) & (b == c)).sum()), int((a == c).sum()), int((b == c).sum())
    return (both, one + other - both) if kind == "iou" else (2 * both, one + other)


def distance(a: Any, b: Any, counted: list[int], kind: str = "iou", absent: str = "skip") -> float:
    """Distance of two lists of ids."""
    ratios = []
    for c in counted:
        part, whole = overlap(a, b, c, kind)
        if whole:
            ratios.append(part / whole)
        elif absent != "skip":
            ratios.append(1.0 if absent == "agree" else 0.0)
    return 1 - sum(ratios) / len(ratios) if ratios else 0.0


def pooled(pairs: Any, counted: list[int], kind: str, absent: str) -> float:
    """Distance of the overlaps of all pairs together."""
    found = [overlap(a, b, c, kind) for a, b in pairs for c in counted]
    part, whole = (sum(column) for column in zip(*found, strict=True))
    if not whole:
        return 1.0 if absent == "disagree" else 0.0
    return 1 - part / whole


def expected(
    a: list[Any], b: list[Any], counted: list[int], kind: str = "iou", absent: str = "skip",
    pairs: str = "mean",
) -> float:  # fmt: skip
    """Mean distance of a map of `a` and one of `b`."""
    both = list(itertools.product(a, b))
    if pairs == "pooled":
        return pooled(both, counted, kind, absent)
    return float(np.mean([distance(x, y, counted, kind, absent) for x, y in both]))


def distances(
    samples: Any, labels: Any, counted: list[int], kind: str = "iou", absent: str = "skip",
    pairs: str = "mean",
) -> dict[str, float] | None:  # fmt: skip
    """The scores of one item from ids of samples and annotators [map, y, x]; None without two."""
    known = mask(labels)
    y = [plane[known] for plane in present(labels)]
    if len(y) < 2 or not known.any():
        return None
    s = [plane[known] for plane in samples]
    how = (counted, kind, absent, pairs)
    of_both, of_samples, of_raters = (
        expected(s, y, *how),
        expected(s, s, *how),
        expected(y, y, *how),
    )
    apart = list(itertools.combinations(y, 2))
    if pairs == "pooled":
        disagreement = pooled(apart, counted, kind, absent)
    else:
        disagreement = float(np.mean([distance(a, b, counted, kind, absent) for a, b in apart]))
    ones = []
    for r in range(len(y)):
        own, others = [y[r]], y[:r] + y[r + 1 :]
        ones.append(
            2 * expected(own, others, *how) - expected(own, own, *how)
            - expected(others, others, *how)
        )  # fmt: skip
    return {
        "ged": 2 * of_both - of_samples - of_raters, "distance": of_both, "diversity": of_samples,
        "annotator_diversity": of_raters, "agreement": 1 - disagreement,
        "annotator_ged": float(np.mean(ones)),
    }  # fmt: skip


def shares(labels: Any, classes: int) -> Any:
    """The shares of the votes [class, i] at the pixels that all labelled."""
    own = np.array([plane[mask(labels)] for plane in present(labels)])
    return np.array([(own == c).mean(axis=0) for c in range(classes)])


def ncc(
    uncertainty: Any, labels: Any, classes: int, measure: str = "variance", ddof: int = 0
) -> float:
    """Normalised cross-correlation as ValUES writes it; NaN where a map is constant."""
    known = mask(labels)
    if len(present(labels)) < 2 or not known.any():
        return math.nan
    q = shares(labels, classes)
    if measure == "entropy":
        terms = [np.where(own > 0, own * np.log(np.where(own > 0, own, 1)), 0) for own in q]
        y = -np.sum(terms, axis=0)
    else:
        y = 1 - (q**2).sum(axis=0)
    x = uncertainty[known].astype("f8")
    if np.ptp(x) == 0 or np.ptp(y) < 1e-12:
        return math.nan
    top = np.sum((x - x.mean()) * (y - y.mean()))
    return float(top / (x.size * np.std(x, ddof=ddof) * np.std(y, ddof=ddof)))


def against_votes(p: Any, q: Any, bins: int = 15, clip: float = 2.0**-24) -> dict[str, float]:
    """Scores of probabilities [class, i] against shares of votes [class, i]."""
    logs = np.log(np.maximum(p.astype("f8"), clip))
    cross = float(-(q * logs).sum(axis=0).mean())
    entropy = float(-np.where(q > 0, q * np.log(np.where(q > 0, q, 1)), 0).sum(axis=0).mean())
    predicted, confidence = p.argmax(axis=0), p.max(axis=0)
    share = q[predicted, np.arange(p.shape[1])]
    number = np.maximum(np.ceil(bins * confidence.astype("f8")), 1) - 1
    ece = sum(
        abs(share[number == b].sum() - confidence[number == b].astype("f8").sum())
        for b in range(bins)
    )
    return {
        "ece": float(ece / p.shape[1]), "cross_entropy": cross, "label_entropy": entropy,
        "kl": cross - entropy, "accuracy": float(share.mean()),
        "brier": float(((p.astype("f8") - q) ** 2).sum(axis=0).mean()),
    }  # fmt: skip


def kappa(labels: Any, classes: int) -> float:
    """Fleiss' kappa over all items [item, annotator, y, x], each pair of annotators once."""
    agreeing, pairs, votes = 0, 0, np.zeros(classes)
    for own in labels:
        known = mask(own)
        y = [plane[known] for plane in present(own)]
        votes += [sum(int((plane == c).sum()) for plane in y) for c in range(classes)]
        for a, b in itertools.combinations(y, 2):
            agreeing += int((a == b).sum())
            pairs += a.size
    by_chance = float(((votes / votes.sum()) ** 2).sum())
    return (agreeing / pairs - by_chance) / (1 - by_chance)


def annotators(
    probs: Any, entropy: Any, labels: Any, counted: list[int] | None = None
) -> dict[str, Any]:
    """All scores of probabilities [item, sample, class, y, x], entropies [item, y, x] and labels
    [item, annotator, y, x]."""
    classes = probs.shape[2]
    counted = list(range(classes)) if counted is None else counted
    own = [distances(p.argmax(axis=1), y, counted) for p, y in zip(probs, labels, strict=True)]
    found = [item for item in own if item is not None]
    scores: dict[str, Any] = {
        name: float(np.mean([item[name] for item in found])) for name in found[0]
    }
    nccs = [ncc(u, y, classes) for u, y in zip(entropy, labels, strict=True)]
    known = [mask(y) for y in labels]
    p = np.concatenate(
        [q.mean(axis=0).astype("f4")[:, m] for q, m in zip(probs.astype("f8"), known, strict=True)],
        axis=1,
    )
    q = np.concatenate([shares(y, classes) for y in labels if mask(y).any()], axis=1)
    return scores | against_votes(p, q) | {
        "ncc": math.nan if np.isnan(nccs).all() else float(np.nanmean(nccs)),
        "kappa": kappa(labels, classes),
    }  # fmt: skip
