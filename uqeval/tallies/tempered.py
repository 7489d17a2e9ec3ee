"""Tempered probabilities p̄^β / Σ p̄^β, β = 1 / T: where their NLL is least.

Guo et al. 2017, §4.2, on the mean probabilities, whose logarithms replace the logits; or on each
sample before they are averaged, mean_t p_t^β / Σ_c p_tc^β, which scales the samples' logits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import Betas, void_of
from uqeval.maps.views import Tempered as view_of
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._fields import CountedItems, Field


def tempered(probs: Array, label: Array, void: int, beta: float) -> tuple[Array, Array]:
    """Return the confidences (float32) and the labels' probabilities (float64) at one β, [i]."""
    from uqeval.kernels.tempering import BLOCK, temper

    confidence = np.empty(label.shape, np.float32)
    probability = np.empty(label.shape, np.float64)
    temper(
        probs, label, void, beta, np.empty((len(probs), BLOCK)), np.empty((3, BLOCK)),
        confidence, probability,
    )  # fmt: skip
    return confidence, probability


def flat(maps: Maps) -> Array:
    """Return p̄ as float32 [class, pixel]."""
    probs = maps["mean_probs"]
    return probs.reshape(len(probs), -1)


@dataclass(frozen=True)
class _AtBetas(Tally):
    """Base: sums at several β = 1/T, which are lowest, lowest + step … (`count` of them); with a
    step of 0 they are lowest, 2·lowest, 4·lowest …."""

    classes: int
    lowest: float
    step: float
    count: int

    def betas(self) -> list[float]:
        """Return the β, ascending."""
        return Betas(self.lowest, self.step, self.count).values()


class _OfSample(_AtBetas):
    """Base: with a `sample`, only about this number of pixels of a larger item count."""

    sample: int | None

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        return None if self._is_sampled(first) else super().count_items(maps, first, known)

    def _is_sampled(self, first: Array) -> bool:
        """Return whether some item counts with a part of its pixels."""
        return self.sample is not None and int(np.diff(first).max(initial=0)) > self.sample

    def _sampled(self, maps: Maps, first: Array) -> tuple[Array, Array, Array]:
        """Return the probabilities and labels that count, and where the items begin.

        The pixels of a larger item are an odd number apart: an even distance would omit whole
        columns.
        """
        probs, label = flat(maps), maps["label"].reshape(-1)
        if not self._is_sampled(first):
            return probs, label, first
        assert self.sample is not None and first.size == 2
        stride = -(-label.size // self.sample) | 1
        label = np.ascontiguousarray(label[::stride])
        return np.ascontiguousarray(probs[..., ::stride]), label, np.array([0, label.size])


@dataclass(frozen=True)
class TemperatureSlopes(_OfSample):
    """Derivatives by β of the summed NLL of p̄^β / Σ p̄^β over non-void pixels.

    `slope` [β]: Σ E_β[ln p̄] - ln p̄_y. `curvature` [β]: Σ Var_β[ln p̄], never
    negative, so the NLL is convex in β. `pixels` [2]: the pixels that count, and those with p̄_y =
    0, which do not count because their clipped NLL is the same at every β.
    """

    id: ClassVar[str] = "temperature_slopes"
    inputs = ("label", "mean_probs")
    sample: int | None = None

    @property
    def fields(self) -> dict[str, Field]:
        sums = Field((self.count,), "float64")
        signed = Field((self.count,), "float64", signed=True)
        return {"slope": signed, "curvature": sums, "pixels": Field((2,), "int64")}

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.tempering import add_slopes

        probs, label, first = self._sampled(maps, first)
        add_slopes(
            first, probs, label, void_of(self.classes), self.lowest, self.step, *state.values()
        )


@dataclass(frozen=True)
class SampleLikelihoods(_AtBetas):
    """Summed NLL of mean_t p_t^β / Σ_c p_tc^β over the non-void pixels.

    The NLL of a pixel is at most -ln `clip`, as in the report. `nll` [β]; `pixels` [2]: those that
    are added, and those with p_ty = 0 in all samples, which are not.
    """

    id: ClassVar[str] = "sample_likelihoods"
    inputs = ("label", "tempered_nll")
    clip: float

    @classmethod
    def of(cls, classes: int, lowest: float, step: float, count: int, clip: float) -> Self:
        """Return the tally in the view that has its maps."""
        view = view_of(Betas(lowest, step, count))
        return cls(classes, lowest, step, count, clip, view=view)

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
class Likelihoods(_OfSample):
    """Summed NLL of p̄^β / Σ p̄^β over the non-void pixels: at most -ln `clip` each.

    `nll` [β]; `pixels` [2]: those that are added, and
    those with p̄_y = 0, which are not.
    """

    id: ClassVar[str] = "likelihoods"
    inputs = ("label", "mean_probs")
    clip: float
    sample: int | None = None

    @property
    def fields(self) -> dict[str, Field]:
        return {"nll": Field((self.count,), "float64"), "pixels": Field((2,), "int64")}

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.tempering import add_likelihoods

        probs, label, first = self._sampled(maps, first)
        betas = np.array(self.betas())
        add_likelihoods(
            first, probs, label, void_of(self.classes), betas, self.clip, *state.values()
        )
