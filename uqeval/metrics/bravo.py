"""The preset `bravo`, a part of the family `ood`: the scores of the BRAVO challenge 2024.

Semantic scores of the pixels that the mask leaves in, out-of-distribution scores of all, and their
harmonic means. All pixels count, with float32 confidences; the challenge's toolkit samples 100,000
pixels per image and rounds confidences to 16 bits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.ood_scores as ood_scores
from uqeval.arrays import Array, State, np
from uqeval.maps.views import InDistribution
from uqeval.metrics._columns import SetColumns, SetStates, as_number, over
from uqeval.metrics._contract import Metric, set_value
from uqeval.metrics._driver import renamed, run_jointly
from uqeval.metrics._evaluation import Part, Passes
from uqeval.metrics._rank_bins import BIN_WIDTH, RankBins
from uqeval.metrics.calibration_scores import Binned, ece
from uqeval.metrics.failure_columns import SCORES, SetRankBins
from uqeval.metrics.failure_ranks import rank_pixels
from uqeval.metrics.ood_settings import OodSettings
from uqeval.metrics.segmentation import class_counts, miou

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

_BINS = 15
_VIEW = InDistribution()
#: Scores that are better lower enter the harmonic means as 1 minus them.
_LOWER = ("ece", "fpr95", "ood_fpr95")
_SEMANTIC = ("miou", "ece", "auroc", "aupr_success", "aupr_error", "fpr95")
_OOD = ("ood_auroc", "ood_aupr", "ood_fpr95")
_NONE = "one of its component scores is undefined"


def harmonic_mean(values: Sequence[Array]) -> Array:
    """Return n/Σ 1/x of several scores [set], 0 if one is 0. NaN if one is."""
    stacked = np.stack(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = len(values) / (1 / stacked).sum(axis=0)
    return np.where((stacked <= 0).any(axis=0) & ~np.isnan(stacked).any(axis=0), 0.0, means)


def fpr95_of_success(rank_bins: SetRankBins) -> Array:
    """Return the share of wrong pixels at least as certain as the threshold that keeps 95 % of the
    right ones [set]. NaN without wrong or without right pixels."""
    right = rank_bins.upto - rank_bins.errors_upto
    if not right.shape[1]:
        return np.full(len(right), np.nan)
    at = np.argmax(20 * right >= 19 * right[:, -1:], axis=1)
    shares = over(rank_bins.errors_upto[np.arange(len(at)), at], rank_bins.wrong)
    return np.where(right[:, -1] > 0, shares, np.nan)


def _bin_of_95_right(rank_bins: RankBins) -> int:
    """Return the first bin up to which lie at least 95 % of the right pixels."""
    right = rank_bins.right_upto
    return int(np.flatnonzero(20 * right >= 19 * right[-1])[0])


def _bins_to_split(rank_bins: RankBins) -> list[int]:
    if not rank_bins.errors.any() or not rank_bins.right.any():
        return []
    at = _bin_of_95_right(rank_bins)
    return [at] if rank_bins.open[at] else []


def _metric(field: str, label: str, meaning: str, better: Any = "higher") -> Metric:
    return Metric(
        "ood", f"bravo.{field}", "fraction", better, (0.0, 1.0),
        "Vu et al. 2024 (BRAVO challenge), §3", _NONE,
        harmonic_mean, label=label, meaning=meaning,
        advice="Look at the lowest of its component scores.", interval="draws",
        quantile=0.05,  # that of FPR95
        of_few_ranks=True,  # as AUPRs and FPR95 are
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
    requested_by = "is_bravo"

    @property
    def _tallies(self) -> tuple[Any, ...]:
        """Return class counts, bins of confidence, ranks of valid pixels, and ranks of sets."""
        from uqeval.tallies._errors import Error
        from uqeval.tallies.ranked_errors import RankedErrors
        from uqeval.tallies.reliability import Bins, Reliability
        from uqeval.tallies.segmentation import ClassCounts

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
        of_pixels = exact or [RankBins.from_state(tally, states[tally]) for tally in ranks]
        class_states, bin_states = (SetStates.of_one(states[tally]) for tally in (counts, bins))
        columns = _columns(class_states, bin_states, *map(SetRankBins.of_one, of_pixels))
        record: dict[str, Any] = {}
        for (name,), values in columns.items():
            is_mean = name in ("bravo_index", "semantic", "ood")
            reason = _NONE if is_mean else "needs pixels of both kinds"
            set_value(record, name, as_number(values[0]), reason)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        counts, bins, *ranks = (states[tally] for tally in self._tallies)
        return _columns(counts, bins, *map(SetRankBins, ranks))


def _columns(
    counts: SetStates, bins: SetStates, valid: SetRankBins, out: SetRankBins
) -> SetColumns:
    """Return all scores of sets, from their class counts, bins of confidence, and the ranks of
    valid pixels and of the two sets of pixels."""
    both = (out.wrong > 0) & (out.wrong < out.total)
    values = {
        "miou": miou(*class_counts(counts)),
        "ece": ece(Binned.of(bins, "last"), bins["count"].sum(axis=1)),
        **{name: SCORES[name](valid) for name in ("auroc", "aupr_success", "aupr_error")},
        "fpr95": fpr95_of_success(valid),
        "ood_auroc": SCORES["auroc"](out),
        "ood_aupr": np.where(both, SCORES["aupr_error"](out), np.nan),
        "ood_fpr95": np.where(both, SCORES["fpr95"](out), np.nan),
    }
    good = {name: 1 - v if name in _LOWER else v for name, v in values.items()}
    semantic, ood = (harmonic_mean([good[n] for n in names]) for names in (_SEMANTIC, _OOD))
    means = {"bravo_index": harmonic_mean([semantic, ood]), "semantic": semantic, "ood": ood}
    return {(name,): value for name, value in (means | values).items()}
