"""Tempered probabilities p̄^β / Σ p̄^β, β = 1 / T: where their NLL is least, and scores there.

Guo et al. 2017, §4.2, on the mean probabilities, whose logarithms replace the logits; or on each
sample before they are averaged, mean_t p_t^β / Σ_c p_tc^β, which scales the samples' logits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from uqeval.maps.names import Betas
from uqeval.maps.views import Tempered as view_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field
from uqeval.tallies._values import void_of
from uqeval.tallies.reliability import Bins, add_bins, flaw_of_bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._fields import Maps, State


@dataclass(frozen=True)
class TemperatureSlopes(Tally):
    """Derivatives by β of the summed NLL of p̄^β / Σ p̄^β over the non-void pixels, at several β.

    The β are lowest, lowest + step … (`count` of them), or lowest, 2·lowest, 4·lowest … with a step
    of 0. `slope` [β] sums E_β[ln p̄] - ln p̄_y, `curvature` [β] sums Var_β[ln p̄], never negative:
    the NLL is convex in β. `pixels` [2]: those that enter, and those with p̄_y = 0, which do not,
    since their clipped NLL is the same at every β. With a `sample`, an item with more pixels counts
    with about so many of them, an odd number apart: of an even one whole columns would be left out.
    """

    id: ClassVar[str] = "temperature_slopes"
    classes: int
    lowest: float
    step: float
    count: int
    sample: int | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "mean_probs")

    @property
    def fields(self) -> dict[str, Field]:
        sums = Field((self.count,), "float64")
        signed = Field((self.count,), "float64", signed=True)
        return {"slope": signed, "curvature": sums, "pixels": Field((2,), "int64")}

    def betas(self) -> list[float]:
        """Return the β, ascending."""
        return Betas(self.lowest, self.step, self.count).values()

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.tempering import BLOCK, add_slopes

        probs, label = _sampled(_flat(maps), maps["label"].reshape(-1), self.sample)
        lanes = np.zeros((2, self.count, BLOCK))
        add_slopes(
            probs, label, void_of(self.classes), self.lowest, self.step,
            np.empty((len(probs), BLOCK)), np.empty((3, BLOCK)), np.empty((3, self.count, BLOCK)),
            lanes, state["pixels"],
        )  # fmt: skip
        slope, curvature = lanes.sum(axis=2)
        state["slope"] += slope
        state["curvature"] += curvature


@dataclass(frozen=True)
class _AtBeta(Tally):
    """Calibration at one β: what the two tallies of it have in common.

    `positive`: of two classes, the bins are of the probability of class 1, right where it is the
    label; else of the confidence of the top label.
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

    def flaw(self, state: State) -> str | None:
        return flaw_of_bins(state)

    def evaluated(self, state: State) -> int:
        return int(state["count"].sum())

    def _add(
        self, state: State, maps: Maps, confidence: NDArray[Any], probability: NDArray[Any]
    ) -> None:
        """Add an item's confidences and its labels' probabilities, both [y x], to a state."""
        import numpy as np

        from uqeval.kernels.calibration import sum_scores

        label = maps["label"].reshape(-1)
        hit = (maps["prediction"] == maps["label"]).reshape(-1)
        if self.positive:
            hit = label == 1
            confidence = np.where(hit, probability, 1.0 - probability).astype(np.float32)
        add_bins(self.bins, confidence, hit, label, self.classes, state)
        counts, sums = np.zeros(3, np.int64), np.zeros(2)  # sums[1], the Brier scores, is unused
        void, brier = void_of(self.classes), confidence
        sum_scores(probability, brier, label, void, self.clip, counts, sums)
        state["nll"] += sums[0]
        state["clipped"] += counts[1]


@dataclass(frozen=True)
class Tempered(_AtBeta):
    """Calibration at one β: non-void pixels by bin of max p̄^β / Σ p̄^β, and their NLL.

    `count`, `correct` and the sum `confidence`, [bin + 1], and `special`, as of `Reliability`;
    `nll` [1] sums -ln max(p̄_y^β / Σ p̄^β, clip); `clipped` [1] counts the pixels below `clip`.
    """

    id: ClassVar[str] = "tempered"

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "prediction", "mean_probs")

    def update(self, state: State, maps: Maps) -> None:
        label = maps["label"].reshape(-1)
        self._add(state, maps, *_tempered(_flat(maps), label, void_of(self.classes), self.beta))


@dataclass(frozen=True)
class SampleLikelihoods(Tally):
    """Summed NLL of mean_t p_t^β / Σ_c p_tc^β over the non-void pixels, at several β.

    Of each pixel it is at most -ln `clip`, as in the NLL that is reported.
    `nll` [β]; `pixels` [2]: those that enter, and those with p_ty = 0 in all samples, which do not.
    """

    id: ClassVar[str] = "sample_likelihoods"
    classes: int
    lowest: float
    step: float
    count: int
    clip: float

    @classmethod
    def of(cls, classes: int, lowest: float, step: float, count: int, clip: float) -> Self:
        """Return the tally in the view that has its maps."""
        view = view_of(Betas(lowest, step, count))
        return cls(classes, lowest, step, count, clip, view=view)

    def betas(self) -> list[float]:
        """Return the β, ascending."""
        return Betas(self.lowest, self.step, self.count).values()

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "tempered_nll")

    @property
    def fields(self) -> dict[str, Field]:
        signed = Field((self.count,), "float64", signed=True)
        return {"nll": signed, "pixels": Field((2,), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.tempering import sum_label_logs

        nll = maps["tempered_nll"]
        sum_label_logs(
            nll.reshape(len(nll), -1), maps["label"].reshape(-1), void_of(self.classes),
            -math.log(self.clip), state["nll"], state["pixels"],
        )  # fmt: skip


@dataclass(frozen=True)
class Likelihoods(Tally):
    """Summed NLL of p̄^β / Σ p̄^β over the non-void pixels, at several β: at most -ln `clip` each.

    The β as of `TemperatureSlopes`, and so `sample`. `nll` [β]; `pixels` [2]: those that enter, and
    those with p̄_y = 0, which do not.
    """

    id: ClassVar[str] = "likelihoods"
    classes: int
    lowest: float
    step: float
    count: int
    clip: float
    sample: int | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "mean_probs")

    @property
    def fields(self) -> dict[str, Field]:
        return {"nll": Field((self.count,), "float64"), "pixels": Field((2,), "int64")}

    def betas(self) -> list[float]:
        """Return the β, ascending."""
        return Betas(self.lowest, self.step, self.count).values()

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.calibration import sum_scores

        probs, label = _sampled(_flat(maps), maps["label"].reshape(-1), self.sample)
        void = void_of(self.classes)
        is_labelled = label != void
        enters = is_labelled & (probs[np.where(is_labelled, label, 0), np.arange(label.size)] > 0)
        state["pixels"] += [int(enters.sum()), int((is_labelled & ~enters).sum())]
        sampled_label = np.where(enters, label, void).astype(label.dtype)
        for j, beta in enumerate(self.betas()):
            confidence, probability = _tempered(probs, label, void, beta)
            counts, sums = np.zeros(3, np.int64), np.zeros(2)
            sum_scores(probability, confidence, sampled_label, void, self.clip, counts, sums)
            state["nll"][j] += sums[0]


def _sampled(
    probs: NDArray[Any], label: NDArray[Any], sample: int | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return about `sample` pixels, an odd number apart: of an even one whole columns are lost."""
    import numpy as np

    if sample is None or label.size <= sample:
        return probs, label
    stride = -(-label.size // sample) | 1
    return np.ascontiguousarray(probs[..., ::stride]), np.ascontiguousarray(label[::stride])


def _tempered(
    probs: NDArray[Any], label: NDArray[Any], void: int, beta: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the confidences (float32) and the labels' probabilities (float64) at one β, [i]."""
    import numpy as np

    from uqeval.kernels.tempering import BLOCK, temper

    confidence = np.empty(label.shape, np.float32)
    probability = np.empty(label.shape, np.float64)
    temper(
        probs, label, void, beta, np.empty((len(probs), BLOCK)), np.empty((3, BLOCK)),
        confidence, probability,
    )  # fmt: skip
    return confidence, probability


@dataclass(frozen=True)
class TemperedSamples(_AtBeta):
    """As `Tempered`, of the maps of mean_t p_t^β / Σ_c p_tc^β: the same state."""

    id: ClassVar[str] = "tempered_samples"

    @classmethod
    def of(cls, classes: int, beta: float, bins: Bins, clip: float, positive: bool) -> Self:
        """Return the tally in the view that has its maps."""
        return cls(classes, beta, bins, clip, positive, view=view_of(Betas(beta)))

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "prediction", "confidence", "label_probability")

    def update(self, state: State, maps: Maps) -> None:
        confidence, probability = maps["confidence"], maps["label_probability"]
        self._add(state, maps, confidence.reshape(-1), probability.reshape(-1))


def _flat(maps: Maps) -> NDArray[Any]:
    """Return p̄ as float32 [class, pixel]."""
    probs = maps["mean_probs"]
    return probs.reshape(len(probs), -1)
