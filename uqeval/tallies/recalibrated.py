"""Recalibration: counts to fit isotonic regression and vector scaling, and scores after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field, Flaws
from uqeval.tallies.reliability import Bins, OfBins, add_bins
from uqeval.tallies.tempered import flat

#: Bins of confidence in which isotonic regression is fitted: 2^-13 wide.
CONFIDENCE_BINS = 1 << 13
#: Pixels of an item in the second derivatives of vector scaling.
_CURVED = 1 << 13


@dataclass(frozen=True)
class ConfidenceCounts(Tally):
    """Non-void pixels by bin of confidence, `count` [bin], and those that are right, `correct`."""

    id: ClassVar[str] = "confidence_counts"
    evaluates = "count"
    inputs = ("label", "prediction", "confidence")
    classes: int

    @property
    def fields(self) -> dict[str, Field]:
        field = Field((CONFIDENCE_BINS,), "int64")
        return {"count": field, "correct": field}

    def flaws(self, state: State) -> Flaws:
        yield "more right pixels than pixels", state["correct"] > state["count"]

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.recalibration import count_confidences

        names = ("confidence", "prediction", "label")
        own = [maps[name].reshape(-1) for name in names]
        count_confidences(*own, void_of(self.classes), state["count"], state["correct"])


@dataclass(frozen=True)
class LogitSlopes(Tally):
    """The summed NLL of softmax(w·z + b), z = ln max(p̄, clip), over the non-void pixels.

    `fixed` classes and pixels with such a label do not count.

    `nll` [1]; `slopes` [2, class], its derivatives by w and b; `curvature` [3, class, class], the
    second derivatives (w and w, w and b, b and b), of some pixels of large items, scaled to all;
    `labels` [class]: pixels of each label. `of_items`: the fit is on some items.
    """

    id: ClassVar[str] = "logit_slopes"
    inputs = ("label", "mean_probs")
    classes: int
    weights: tuple[float, ...]
    biases: tuple[float, ...]
    clip: float
    fixed: tuple[int, ...] = ()
    of_items: bool = False

    @property
    def saved(self) -> bool:
        """Return whether a resumed fit needs the states of items; else it needs the total alone."""
        return self.of_items

    @property
    def fields(self) -> dict[str, Field]:
        c = self.classes
        return {
            "nll": Field((1,), "float64", signed=True),
            "slopes": Field((2, c), "float64", signed=True),
            "curvature": Field((3, c, c), "float64", signed=True),
            "labels": Field((c,), "int64"),
        }

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.recalibration import add_logit_slopes

        label = maps["label"].reshape(-1)
        stride = -(-label.size // _CURVED) | 1  # odd: an even one would omit whole columns
        nll, slopes = np.zeros(1), np.zeros((2, self.classes))
        curvature = np.zeros((3, self.classes, self.classes))
        pixels = np.zeros(1 + self.classes, np.int64)
        add_logit_slopes(
            flat(maps), label, void_of(self.classes), np.array(self.weights),
            np.array(self.biases), _free(self.classes, self.fixed), self.clip, stride,
            *np.empty((2, self.classes)), nll, slopes, curvature, pixels,
        )  # fmt: skip
        state["nll"] += nll
        state["slopes"] += slopes
        state["labels"] += pixels[1:]
        if pixels[0]:
            state["curvature"] += curvature * (pixels[1:].sum() / pixels[0])


#: The new confidence (float32), the label's new probability and the Brier score of pixels [i].
Scored: TypeAlias = tuple[Array, Array, Array]


@dataclass(frozen=True)
class _Recalibrated(OfBins):
    """Base: non-void pixels by bin of the new confidence, and their proper scores.

    `count`, `correct`, the sum `confidence` and `special` as in `Reliability`; `sums` [2]: the
    clipped NLL and the Brier scores.
    """

    inputs: ClassVar[tuple[str, ...]] = ("label", "prediction", "confidence", "mean_probs")

    classes: int
    bins: Bins
    clip: float

    @property
    def fields(self) -> dict[str, Field]:
        return self.bins.fields() | {
            "special": Field((3,), "int64"), "sums": Field((2,), "float64", signed=True),
        }  # fmt: skip

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.calibration import sum_scores

        label, void = maps["label"].reshape(-1), void_of(self.classes)
        top, of_label, brier = (np.zeros(label.size, dtype) for dtype in ("f4", "f8", "f8"))
        hit = self._apply(maps, label, (top, of_label, brier))
        add_bins(self.bins, first, top, hit, label, self.classes, state)
        counts = np.zeros((first.size - 1, 3), np.int64)
        sum_scores(first, of_label, brier, label, void, self.clip, counts, state["sums"])

    def _apply(self, maps: Maps, label: Array, out: Scored) -> Array:
        """Write the new confidence, the label's new probability and the Brier score [i]; return
        which pixels are right."""
        raise NotImplementedError


@dataclass(frozen=True)
class Isotonic(_Recalibrated):
    """Scores after isotonic regression of the confidence.

    The new confidence is linear between the knots (`places`, `values`); places are bins of
    `CONFIDENCE_BINS`. Other classes share the rest in their proportions.
    """

    id: ClassVar[str] = "isotonic"
    places: tuple[int, ...]
    values: tuple[float, ...]

    def _apply(self, maps: Maps, label: Array, out: Scored) -> Array:
        from uqeval.kernels.recalibration import recalibrate

        table = np.interp(np.arange(CONFIDENCE_BINS), self.places, self.values)
        confidence, prediction = (maps[n].reshape(-1) for n in ("confidence", "prediction"))
        recalibrate(
            flat(maps), confidence, prediction, label, void_of(self.classes), table, *out,
        )  # fmt: skip
        return prediction == label


@dataclass(frozen=True)
class VectorScaled(_Recalibrated):
    """Scores after vector scaling: of softmax(w·ln max(p̄, clip) + b).

    `fixed` classes keep their probability, and the others share the rest.
    """

    id: ClassVar[str] = "vector_scaled"
    inputs = ("label", "mean_probs")
    weights: tuple[float, ...]
    biases: tuple[float, ...]
    fixed: tuple[int, ...] = ()

    def _apply(self, maps: Maps, label: Array, out: Scored) -> Array:
        from uqeval.kernels.recalibration import scale_logits

        hit = np.zeros(label.size, np.uint8)
        scale_logits(
            flat(maps), label, void_of(self.classes), np.array(self.weights),
            np.array(self.biases), _free(self.classes, self.fixed), self.clip,
            *np.empty((2, self.classes)), out[0], hit, *out[1:],
        )  # fmt: skip
        return hit


def _free(classes: int, fixed: tuple[int, ...]) -> Array:
    """Return a mask [class] of the classes that are not fixed."""
    free = np.ones(classes, bool)
    free[list(fixed)] = False
    return free
