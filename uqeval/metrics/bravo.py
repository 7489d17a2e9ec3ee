"""The preset `bravo`, a part of the family `ood`: the scores of the BRAVO challenge 2024.

Semantic scores of the pixels that the mask leaves in, out-of-distribution scores of all, and their
harmonic means. All pixels count, with float32 confidences; the challenge's toolkit samples 100,000
pixels per image and rounds confidences to 16 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.failure_columns as failure_columns
import uqeval.metrics.failure_scores as failure_scores
import uqeval.metrics.ood_scores as ood_scores
from uqeval.arrays import Array, State, np
from uqeval.maps.views import InDistribution
from uqeval.metrics._columns import SetColumns, SetStates, as_numbers, over
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._driver import renamed, run_jointly
from uqeval.metrics._evaluation import Part, Passes
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics.calibration_scores import Binned, ece
from uqeval.metrics.failure_cuts import fpr95, wrong_and_right
from uqeval.metrics.failure_ranks import rank_pixels
from uqeval.metrics.ood_settings import OodSettings
from uqeval.metrics.segmentation import class_counts, miou

if TYPE_CHECKING:
    from uqeval.tallies import Tally

_BINS = 15
_VIEW = InDistribution()
#: Scores that are better lower enter the harmonic means as 1 minus them.
_LOWER = ("ece", "fpr95", "ood_fpr95")
_SEMANTIC = ("miou", "ece", "auroc", "aupr_success", "aupr_error", "fpr95")
_OOD = ("ood_auroc", "ood_aupr", "ood_fpr95")
_NONE = "one of its component scores is undefined"


def harmonic_mean(values: Sequence[float | None]) -> float | None:
    """Return n/Σ 1/x, 0 if one is 0. Undefined if one is."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return None
    return 0.0 if min(numbers) <= 0 else len(numbers) / sum(1 / value for value in numbers)


def fpr95_of_success(rank_bins: RankBins) -> float | None:
    """Return the share of wrong pixels at least as certain as the threshold that keeps 95 % of the
    right ones. Undefined without wrong or without right pixels."""
    e, c, wrong, _ = wrong_and_right(rank_bins)
    if not e.any() or not c.any():
        return None
    return int(wrong[_bin_of_95_right(rank_bins)]) / int(wrong[-1])


def _bin_of_95_right(rank_bins: RankBins) -> int:
    """Return the first bin up to which lie at least 95 % of the right pixels."""
    right = wrong_and_right(rank_bins)[3]
    return int(np.flatnonzero(20 * right >= 19 * right[-1])[0])


def _bins_to_split(rank_bins: RankBins) -> list[int]:
    if fpr95_of_success(rank_bins) is None:
        return []
    at = _bin_of_95_right(rank_bins)
    return [at] if rank_bins.open[at] else []


def _metric(field: str, label: str, meaning: str, better: Any = "higher") -> Metric:
    return Metric(
        "ood", f"bravo.{field}", "fraction", better, (0.0, 1.0),
        "Vu et al. 2024 (BRAVO challenge), §3", _NONE,
        lambda *values: harmonic_mean(values), label=label, meaning=meaning,
        advice="Look at the lowest of its component scores.", interval="draws",
    )  # fmt: skip


METRICS = (
    _metric("bravo_index", "BRAVO index", "Harmonic mean of the semantic and the OOD score."),
    _metric("semantic", "BRAVO semantic",
            "Harmonic mean of mIoU, 1 - ECE, AUROC, AUPRs and 1 - FPR95 of valid pixels."),
    _metric("ood", "BRAVO OOD", "Harmonic mean of AUROC, AUPR and 1 - FPR95 of invalid pixels."),
)  # fmt: skip


class Bravo(Part[OodSettings]):
    """Scores of the classes of in-distribution pixels, and the harmonic means."""

    name = "bravo"
    metrics = METRICS
    approximate = frozenset({"*"})
    bound = BIN_WIDTH

    @classmethod
    def is_requested(cls, settings: OodSettings) -> bool:
        return settings.is_bravo

    @property
    def _tallies(self) -> tuple[Any, ...]:
        """Return class counts, bins of confidence, ranks of valid pixels, and ranks of sets."""
        from uqeval.tallies import Bins, ClassCounts, Error, RankedErrors, Reliability

        ranked, wrong, classes = self.settings.ranked, Error("zero-one"), self.info.inner_classes
        return (
            ClassCounts(classes).in_view(_VIEW),
            Reliability(classes, Bins(_BINS, "upper")).in_view(_VIEW),
            RankedErrors(ranked, wrong, classes).in_view(_VIEW),
            RankedErrors(ranked, wrong, self.info.classes),
        )

    def maps(self) -> set[str]:
        names = {"label", "prediction", "confidence", self.settings.uncertainty}
        return {*_VIEW.inputs(names), "label", "prediction", self.settings.uncertainty}

    def exact(self) -> Passes:
        ranked, sets = self.settings.ranked, self.info.classes
        valid, out = yield from run_jointly(
            renamed(
                rank_pixels(ranked, self.info.inner_classes, _bins_to_split, by_class=False),
                lambda tally: tally.in_view(_VIEW),
            ),
            rank_pixels(ranked, sets, ood_scores.bins_to_split, by_class=False),
        )
        return [by_group.get(None, RankBins.nothing()) for by_group in (valid, out)]

    def tallies(self) -> tuple[Tally, ...]:
        return self._tallies

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        counts, bins, *ranks = self._tallies
        valid, out = exact or [RankBins.from_state(tally, states[tally]) for tally in ranks]
        one_set = SetStates.of_one(states[bins])
        (mean_gap,) = as_numbers(ece(Binned.of(one_set, "last"), one_set["count"].sum(axis=1)))
        areas = {
            name: bounded and bounded[0]
            for name, bounded in ((n, failure_scores.AREAS[n](valid))
                                  for n in ("auroc", "aupr_success", "aupr_error"))
        }  # fmt: skip
        both = bool(out.errors.any() and (out.pixels > out.errors).any())
        of_sets = [failure_scores.AREAS[n](out) for n in ("auroc", "aupr_error")] if both else []
        ood_auroc, ood_aupr = (
            (bounded[0] for bounded in of_sets if bounded) if both else (None,) * 2
        )
        (mean_iou,) = as_numbers(miou(*class_counts(SetStates.of_one(states[counts]).fields)))
        values: dict[str, float | None] = {
            "miou": mean_iou, "ece": mean_gap,
            **areas, "fpr95": fpr95_of_success(valid),
            "ood_auroc": ood_auroc, "ood_aupr": ood_aupr, "ood_fpr95": fpr95(out),
        }  # fmt: skip
        good = {n: None if v is None else 1 - v if n in _LOWER else v for n, v in values.items()}
        semantic = harmonic_mean([good[name] for name in _SEMANTIC])
        ood = harmonic_mean([good[name] for name in _OOD])
        record: dict[str, Any] = {}
        means = {"bravo_index": harmonic_mean([semantic, ood]), "semantic": semantic, "ood": ood}
        for name, value in (means | values).items():
            set_value(record, name, value, _NONE if name in means else "needs pixels of both kinds")
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        counts, bins, *ranks = self._tallies
        valid, out = (failure_columns.SetRankBins.from_states(states[tally]) for tally in ranks)
        scores = failure_columns.SCORES
        both = (out.wrong > 0) & (out.wrong < out.total)
        pixels = states[bins]["count"].sum(axis=1)
        values = {
            "miou": miou(*class_counts(states[counts].fields)),
            "ece": ece(Binned.of(states[bins], "last"), pixels),
            **{name: scores[name](valid) for name in ("auroc", "aupr_success", "aupr_error")},
            "fpr95": _fpr95_of_sets(valid),
            "ood_auroc": scores["auroc"](out),
            "ood_aupr": np.where(both, scores["aupr_error"](out), np.nan),
            "ood_fpr95": np.where(both, scores["fpr95"](out), np.nan),
        }
        good = {name: 1 - v if name in _LOWER else v for name, v in values.items()}
        semantic, ood = (_harmonic_means([good[n] for n in names]) for names in (_SEMANTIC, _OOD))
        means = {"bravo_index": _harmonic_means([semantic, ood]), "semantic": semantic, "ood": ood}
        return {(name,): value for name, value in (means | values).items()}


def _fpr95_of_sets(rank_bins: failure_columns.SetRankBins) -> Array:
    """Return `fpr95_of_success` of many sets [set]."""
    right = rank_bins.upto - rank_bins.errors_upto
    if not right.shape[1]:
        return np.full(len(right), np.nan)
    at = np.argmax(20 * right >= 19 * right[:, -1:], axis=1)
    shares = over(rank_bins.errors_upto[np.arange(len(at)), at], rank_bins.wrong)
    return np.where(right[:, -1] > 0, shares, np.nan)


def _harmonic_means(values: Sequence[Array]) -> Array:
    stacked = np.stack(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = len(values) / (1 / stacked).sum(axis=0)
    return np.where((stacked <= 0).any(axis=0), 0.0, means)
