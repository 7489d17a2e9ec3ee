"""Calibration at one temperature, of tempered mean probabilities or of tempered samples.

Guo et al. 2017, §4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import UNMASKED_LABEL, Betas, void_of
from uqeval.maps.views import Tempered as view_of
from uqeval.tallies._fields import Field
from uqeval.tallies._last_results import LastResults
from uqeval.tallies.reliability import Bins, OfBins, add_bins
from uqeval.tallies.tempered import flat, tempered

_last = LastResults()


@dataclass(frozen=True)
class _AtBeta(OfBins):
    """Base of the two tallies of calibration at one β = 1/T.

    `positive`: bins of the probability of class 1, for two classes; a pixel is right if its label
    is 1. Otherwise bins of the confidence of the top label.
    """

    classes: int
    beta: float
    bins: Bins
    clip: float
    positive: bool = False

    @property
    def fields(self) -> dict[str, Field]:
        return self.bins.fields() | {
            "special": Field((3,), "int64"),
            "nll": Field((1,), "float64", signed=True),
            "clipped": Field((1,), "int64"),
        }

    def _add(
        self, state: State, maps: Maps, first: Array, confidence: Array, probability: Array
    ) -> None:
        """Add the items' confidences and their labels' probabilities, both [i], to their states."""
        from uqeval.kernels.calibration import sum_scores

        label, hit, confidence = self._hits(maps, confidence, probability)
        add_bins(self.bins, first, confidence, hit, label, self.classes, state)
        # The second sums, Brier scores, are unused.
        counts, sums = np.zeros((first.size - 1, 3), np.int64), np.zeros((first.size - 1, 2))
        void, brier = void_of(self.classes), confidence
        sum_scores(first, probability, brier, label, void, self.clip, counts, sums)
        state["nll"][:, 0] += sums[:, 0]
        state["clipped"][:, 0] += counts[:, 1]

    def _hits(
        self, maps: Maps, confidence: Array, probability: Array
    ) -> tuple[Array, Array, Array]:
        """Return labels, hits and the confidences that are binned, all [i]."""
        label = maps["label"].reshape(-1)
        if not self.positive:
            return label, (maps["prediction"] == maps["label"]).reshape(-1), confidence
        hit = label == 1
        return label, hit, np.where(hit, probability, 1.0 - probability).astype(np.float32)


@dataclass(frozen=True)
class Tempered(_AtBeta):
    """Calibration at one β: non-void pixels by bin of max p̄^β / Σ p̄^β, and their NLL.

    `count`, `correct` and the sum `confidence`, [bin + 1], and `special` as in `Reliability`; `nll`
    [1] sums -ln max(p̄_y^β / Σ p̄^β, clip); `clipped` [1] counts the pixels below `clip`.
    """

    id: ClassVar[str] = "tempered"
    inputs = ("label", "prediction", "mean_probs")

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        self._add(state, maps, first, *self._at_beta(maps))

    def _at_beta(self, maps: Maps) -> tuple[Array, Array]:
        """Return confidences and the labels' probabilities, [i]; those of all labels for a region,
        so that all regions of an item share them."""
        probs, label = maps["mean_probs"], maps.get(UNMASKED_LABEL, maps["label"])
        return _last.of(
            (probs, label), self.beta,
            lambda: tempered(flat(maps), label.reshape(-1), void_of(self.classes), self.beta),
        )  # fmt: skip


@dataclass(frozen=True)
class TemperedSamples(_AtBeta):
    """`Tempered` of samples that are tempered before the mean, mean_t p_t^β / Σ_c p_tc^β: the same
    state."""

    id: ClassVar[str] = "tempered_samples"
    inputs = ("label", "prediction", "confidence", "label_probability")

    @classmethod
    def of(cls, classes: int, beta: float, bins: Bins, clip: float, positive: bool) -> Self:
        """Return the tally in the view that has its maps."""
        return cls(classes, beta, bins, clip, positive, view=view_of(Betas(beta)))

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        confidence, probability = maps["confidence"], maps["label_probability"]
        self._add(state, maps, first, confidence.reshape(-1), probability.reshape(-1))
