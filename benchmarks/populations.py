"""Synthetic populations whose scores are known: counts of items, alone or in drives, and scores.

Clustered items share half of the variance of their drive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from uqeval.metrics import failure_columns, sparsification
from uqeval.metrics._contract import IntervalKind
from uqeval.metrics._tiles import AllSums, RankedSets
from uqeval.metrics.failure_columns import SetRankBins
from uqeval.metrics.sparsification_settings import SparsificationSettings
from uqeval.statistics.kinds import kind_of

Array = NDArray[np.float64]
#: The drive of each item.
Drives = NDArray[np.intp]
#: Levels of intervals of predicted numbers; bins of uncertainty.
LEVELS, RANKS = np.linspace(0.05, 0.95, 19), 16
#: Counts of items of these drives; the rate of rare events is of sets of so many items.
Counts = Callable[[np.random.Generator, Drives, int], Array]


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def effects(rng: np.random.Generator, drives: Drives, size: int = 1) -> Array:
    """Standard normal numbers of items, half of whose variance is that of their drive."""
    names, of = np.unique(drives, return_inverse=True)
    shared = rng.normal(size=(len(names), size))[of]
    return (shared + rng.normal(size=(len(drives), size))) / np.sqrt(2)


def pavpu_counts(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Right patches and all, of images of which more or less is void."""
    n = rng.integers(400, 1000, len(drives))
    return np.stack([rng.binomial(n, logistic(1.4 + 0.8 * effects(rng, drives)[:, 0])), n], 1)


def consistency(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """A score of each pair of frames near 1, with a tail, and its count 1."""
    return np.stack([logistic(2.5 + effects(rng, drives)[:, 0]), np.ones(len(drives))], 1)


def confusion(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Labelled, predicted and correct pixels of 8 classes, some of them in few images only."""
    share = np.geomspace(1, 0.08, 8)
    there = rng.random((len(drives), 8)) < share
    labelled = np.where(there, rng.lognormal(9 + np.log(share), 0.7, there.shape), 0.0)
    right = labelled * logistic(1.5 + effects(rng, drives, 8))
    wrong = (labelled - right).sum(1, keepdims=True) * share / share.sum()
    return np.concatenate([labelled, right + wrong, right], 1)


def bins(over: float) -> Counts:
    """Pixels, right ones and confidences of 10 bins: `over`-confident, more or less."""

    def counts(rng: np.random.Generator, drives: Drives, items: int) -> Array:
        centre = np.linspace(0.05, 0.95, 10)
        weight = rng.dirichlet(20 * centre**2, len(drives))
        right = np.clip(centre - over + 0.06 * effects(rng, drives), 0, 1)
        return np.concatenate([weight, weight * right, weight * centre], 1)

    return counts


def rare(expected: int) -> Counts:
    """Images that are wrong, and all: so many wrong ones are `expected`, alone, or as half of the
    images of half as many drives."""

    def counts(rng: np.random.Generator, drives: Drives, items: int) -> Array:
        names, of = np.unique(drives, return_inverse=True)
        if len(names) == len(drives):
            hit = rng.random(len(drives)) < expected / items
        else:
            hit = (rng.random(len(names)) < 2 * expected / items)[of]
            hit &= rng.random(len(drives)) < 0.5
        return np.stack([hit.astype(float), np.ones(len(drives))], 1)

    return counts


def squares(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Summed squared errors, log-normal over items, and pixels."""
    mean = np.exp(0.5 * effects(rng, drives)[:, 0])
    return np.stack([1000 * mean, np.full(len(drives), 1000.0)], 1)


def covered(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Pixels, those inside the interval of each level, and those expected there: σ is too small."""
    scale = 0.92 * np.exp(0.15 * effects(rng, drives))
    pixels = np.full((len(drives), 1), 1000.0)
    inside = 2 * ndtr(scale * ndtri((1 + LEVELS) / 2)) - 1
    return np.concatenate([pixels, pixels * inside, pixels * LEVELS], 1)


def ranked(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Pixels and wrong ones by 16 bins of ascending uncertainty; hard images have more of both."""
    place = np.linspace(-2.5, 2.5, RANKS)
    hard = effects(rng, drives, 2)
    weights = np.exp(-0.5 * (place - 0.5 * hard[:, :1] + 0.8) ** 2)
    pixels = np.floor(1000 * weights / weights.sum(1, keepdims=True))
    wrong = rng.binomial(pixels.astype(int), logistic(-2.2 + 1.1 * place + 0.6 * hard[:, 1:]))
    return np.concatenate([pixels, wrong], 1)


def single(rate: float) -> Counts:
    """A pixel of each item in one of 16 bins of ascending uncertainty; wrong at this rate."""

    def counts(rng: np.random.Generator, drives: Drives, items: int) -> Array:
        level, place = effects(rng, drives, 2).T
        wrong = level > -ndtri(rate)
        at = np.clip((RANKS * ndtr(place + wrong)).astype(int), 0, RANKS - 1)
        both = np.zeros((2, len(drives), RANKS))
        rows = np.arange(len(drives))
        both[0, rows, at] = 1
        both[1, rows, at] = wrong
        return np.concatenate(list(both), 1)

    return counts


def rarer(of_units: Array) -> int:
    """Units with a wrong pixel, or with a right one: whichever are fewer."""
    wrong = of_units[:, RANKS:].sum(1)
    right = of_units[:, :RANKS].sum(1) - wrong
    return int(min((wrong > 0).sum(), (right > 0).sum()))


def root(sums: Array) -> Array:
    return np.sqrt(sums[:, 0] / sums[:, 1])


def ratio(sums: Array) -> Array:
    return sums[:, 0] / sums[:, 1]


def miou(sums: Array) -> Array:
    labelled, predicted, correct = np.split(sums, 3, axis=1)
    union = labelled + predicted - correct
    with np.errstate(invalid="ignore"):
        return np.nanmean(np.where(union > 0, correct / union, np.nan), 1)


def ece(sums: Array) -> Array:
    found: Array = np.abs(ece_gaps(sums)).sum(1) / sums[:, :10].sum(1)
    return found


def ece_gaps(sums: Array) -> Array:
    """Right pixels less confidences by bin."""
    return sums[:, 10:20] - sums[:, 20:]


def auce(sums: Array) -> Array:
    """The mean absolute gap over the levels."""
    found: Array = np.abs(auce_gaps(sums)).mean(1) / sums[:, 0]
    return found


def auce_gaps(sums: Array) -> Array:
    """Pixels inside less those expected there, by level."""
    return sums[:, 1 : 1 + len(LEVELS)] - sums[:, 1 + len(LEVELS) :]


@dataclass(frozen=True)
class OneTile:
    """Counts [set, row, bin] as one tile of bins."""

    fields: dict[str, Array]

    @property
    def spans(self) -> Sequence[slice]:
        return [slice(0, next(iter(self.fields.values())).shape[-1])]

    def totals(self, name: str, factor: Array | None = None) -> Array:
        values = self.fields[name] if factor is None else self.fields[name] * factor
        sums: Array = values.sum(axis=-1, keepdims=True)
        return sums

    def upto(self, name: str, tile: int, row: int) -> Array:
        cumulative: Array = self.fields[name][:, row].cumsum(axis=-1)
        return cumulative

    def sums(self, name: str, tile: int, row: int) -> AllSums:
        return AllSums(self.upto(name, tile, row))


def bins_of(pixels: Array, errors: Array) -> SetRankBins:
    """Pixels and errors [set, bin] as formulas over sets read them."""
    fields = {"pixels": pixels[:, None], "errors": errors[:, None]}
    return SetRankBins(RankedSets(fields, tiles=OneTile(fields)))


def failure(name: str) -> Callable[[Array], Array]:
    """A score of `uqeval.metrics.failure_columns`."""

    def score(sums: Array) -> Array:
        return failure_columns.columns(bins_of(sums[:, :RANKS], sums[:, RANKS:]), [name])[name,]

    return score


def ause(sums: Array) -> Array:
    """The area between the curve of wrong pixels by uncertainty and the best one."""
    pixels, wrong = sums[:, :RANKS], sums[:, RANKS:]
    both = wrong.sum(1)
    right = pixels.sum(1) - both
    best = bins_of(np.stack([right, both], 1), np.stack([0 * both, both], 1))
    settings = SparsificationSettings(error="zero-one")
    found: Array = sparsification.columns(settings, bins_of(pixels, wrong), best)["ause",]
    return found


@dataclass(frozen=True)
class Score:
    """Counts of items, the score of their sums, and which way is better.

    `metric`: the address of a metric that has the same kind of interval.
    """

    name: str
    metric: str
    counts: Counts
    of: Callable[[Array], Array]
    higher: bool = True
    truth: Callable[[int], float] | None = None
    gaps: Callable[[Array], Array] | None = None
    #: How many units count, of counts [unit, number]; all of them if None.
    units: Callable[[Array], int] | None = None

    @property
    def kind(self) -> IntervalKind | None:
        """The kind of its interval."""
        return kind_of(self.metric)


#: All are shares, from 0 to 1.
SCORES = (
    Score("ratio of counts (PAvPU)", "pavpu.pavpu", pavpu_counts, ratio),
    Score("mean over items (mTC)", "temporal.mtc", consistency, ratio),
    Score("mIoU, rare classes", "segmentation.miou", confusion, miou),
    Score("ECE of 0.03", "calibration.ece", bins(0.03), ece, higher=False, gaps=ece_gaps),
    Score("ECE of 0.005", "calibration.ece", bins(0.005), ece, higher=False, gaps=ece_gaps),
    Score("ECE of 0", "calibration.ece", bins(0.0), ece, False, lambda items: 0.0, ece_gaps),
    Score("AUCE of 0.03", "regression.auce", covered, auce, higher=False, gaps=auce_gaps),
    Score("AUROC of errors", "failure.auroc", ranked, failure("auroc")),
    Score("AUROC of single pixels, 30 % wrong", "failure.auroc", single(0.3),
          failure("auroc"), units=rarer),
    Score("AUROC of single pixels, 10 % wrong", "failure.auroc", single(0.1),
          failure("auroc"), units=rarer),
    Score("AURC", "failure.aurc", ranked, failure("aurc"), higher=False),
    Score("AUSE", "sparsification.ause", ranked, ause, higher=False),
    Score("root of a mean (RMSE)", "regression.rmse", squares, root, higher=False),
    Score("rate, 1 event expected", "segmentation.pixel_accuracy", rare(1), ratio, False,
          lambda items: 1 / items),
    Score("rate, 4 events expected", "segmentation.pixel_accuracy", rare(4), ratio, False,
          lambda items: 4 / items),
)  # fmt: skip


def heavy(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Right patches and all: few or many of an image, of which some are far worse than most."""
    n = np.ceil(rng.lognormal(5, 1, len(drives)))
    return np.stack([rng.binomial(n.astype(int), logistic(2 + rng.standard_t(3, len(n)))), n], 1)


def two_kinds(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """A score of each item: near 0.9, and of every fifth near 0.5."""
    bad = rng.random(len(drives)) < 0.2
    return np.stack(
        [np.where(bad, rng.beta(10, 10, len(bad)), rng.beta(18, 2, len(bad))), 1 + 0 * bad], 1
    )


def many_classes(rng: np.random.Generator, drives: Drives, items: int) -> Array:
    """Labelled, predicted and correct pixels of 19 classes, half of which are in every image."""
    share = np.concatenate([np.ones(10), np.geomspace(0.9, 0.2, 9)])
    there = rng.random((len(drives), 19)) < share
    labelled = np.where(there, rng.lognormal(8 + np.log(share), 1.0, there.shape), 0.0)
    right = labelled * logistic(2 + 1.2 * rng.normal(size=there.shape))
    wrong = (labelled - right).sum(1, keepdims=True) * share / share.sum()
    return np.concatenate([labelled, right + wrong, right], 1)


#: Populations on which no constant of `uqeval` was chosen.
UNSEEN = (
    Score("share, some items far worse", "pavpu.pavpu", heavy, ratio),
    Score("mean of two kinds of items", "temporal.mtc", two_kinds, ratio),
    Score("mIoU of 19 classes", "segmentation.miou", many_classes, miou),
)
