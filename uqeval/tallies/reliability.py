"""Confidence and accuracy by bin, for calibration errors and reliability diagrams; and sums of the
proper scores.

Guo et al. 2017, "On Calibration of Modern Neural Networks", §2; Naeini et al. 2015; Brier 1950.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws


@dataclass(frozen=True)
class Bins:
    """`count` bins of equal width over [0, 1], and one more bin for confidences at or above 1.

    `edge`: the bin of a confidence on an edge. "lower": the bin below, so bins are (lo, hi].
    "upper": the bin above, [lo, hi). "upper-float32": the bin above, with edges rounded to float32,
    as in codes that compare in float32.
    """

    count: int = 15
    edge: str = "lower"

    @property
    def upper(self) -> bool:
        """Return whether a confidence on an edge belongs to the bin above it."""
        return self.edge != "lower"

    def edges(self) -> Array:
        """Return the edges k / count, float64 [count + 1]."""
        exact = np.arange(self.count + 1) / self.count
        if self.edge == "upper-float32":
            return exact.astype(np.float32).astype(np.float64)
        return exact

    def fields(self) -> dict[str, Field]:
        """Return pixels, right ones, and the sum of their confidences, each [bin + 1]."""
        shape = (self.count + 1,)
        return {
            "count": Field(shape, "int64"),
            "correct": Field(shape, "int64"),
            "confidence": Field(shape, "float64", signed=True),
        }


class OfBins(Tally):
    """Base of tallies of `count`, `correct` and the sum `confidence` by bin."""

    evaluates = "count"

    def flaws(self, state: State) -> Flaws:
        count, total = state["count"], state["confidence"]
        yield "more right pixels than pixels in a bin", state["correct"] > count
        # A probability may be a little above 1 by rounding. Values that are none are in `special`.
        sound = np.abs(total) <= 2.0 * count
        if "special" in state:
            strange = state["special"][..., 2] > 0
            sound |= strange[(..., *(np.newaxis,) * (sound.ndim - strange.ndim))]
        yield "a sum of confidences that its pixels cannot have", ~sound


@dataclass(frozen=True)
class Reliability(OfBins):
    """Non-void pixels by confidence: `count`, `correct` and the sum `confidence`, [bin + 1].

    `special` [3]: pixels at confidence exactly 1, on an inner edge, and where the confidence is no
    probability (negative, or above 2).
    """

    id: ClassVar[str] = "reliability"
    inputs = ("label", "prediction", "confidence")
    classes: int
    bins: Bins

    @property
    def fields(self) -> dict[str, Field]:
        return self.bins.fields() | {"special": Field((3,), "int64")}

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        hit = maps["prediction"] == maps["label"]
        add_bins(self.bins, first, maps["confidence"], hit, maps["label"], self.classes, state)


@dataclass(frozen=True)
class ClassReliability(OfBins):
    """Non-void pixels by the probability of each class, the label being that class or another.

    `count`, `correct` and the sum `confidence`, [class, bin + 1]; `special` as in `Reliability`,
    over all classes.
    """

    id: ClassVar[str] = "class_reliability"
    inputs = ("label", "mean_probs")
    classes: int
    bins: Bins

    @property
    def fields(self) -> dict[str, Field]:
        per_class = {
            name: Field((self.classes, *field.shape), field.dtype)
            for name, field in self.bins.fields().items()
        }
        return per_class | {"special": Field((3,), "int64")}

    def flaws(self, state: State) -> Flaws:
        counts = state["count"].sum(axis=-1)
        yield "classes with different numbers of pixels", counts != counts[..., :1]
        yield from super().flaws(state)

    def evaluated(self, state: State) -> Counts:
        return state["count"][..., 0, :].sum(axis=-1)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        label = maps["label"]
        for c, value in enumerate(maps["mean_probs"]):
            add_bins(self.bins, first, value, label == c, label, self.classes, state, c)


@dataclass(frozen=True)
class AdaptiveReliability(OfBins):
    """As `Reliability`, by how many of `edges` (ascending float32) lie below the confidence.

    `count`, `correct` and the sum `confidence`, [edges + 1].
    """

    id: ClassVar[str] = "adaptive_reliability"
    inputs = ("label", "prediction", "confidence")
    classes: int
    edges: tuple[float, ...]

    @property
    def fields(self) -> dict[str, Field]:
        return Bins(len(self.edges)).fields()

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.calibration import count_intervals

        label = maps["label"].reshape(-1)
        hit = (maps["prediction"].reshape(-1) == label).view(np.uint8)
        count_intervals(
            first, maps["confidence"].reshape(-1), hit, label, void_of(self.classes),
            np.array([self.edges], np.float32), *state.values(),
        )  # fmt: skip


@dataclass(frozen=True)
class PooledAdaptive(AdaptiveReliability):
    """`AdaptiveReliability` of some items together, such as those of a slice: only the total."""

    id: ClassVar[str] = "pooled_adaptive"
    keeps_items: ClassVar[bool] = False


@dataclass(frozen=True)
class ItemAdaptive(OfBins):
    """`AdaptiveReliability` with `bins` bins of equal mass within each item.

    The bin of a pixel is ⌊bins·#{conf < c}/N⌋ over the N non-void pixels of its item. Merged states
    have the bins of the items, not those of the set.
    """

    id: ClassVar[str] = "item_adaptive"
    inputs = ("label", "prediction", "confidence")
    classes: int
    bins: int

    @property
    def fields(self) -> dict[str, Field]:
        return Bins(self.bins - 1).fields()

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.calibration import count_intervals

        label, confidence = maps["label"].reshape(-1), maps["confidence"].reshape(-1)
        hit = (maps["prediction"].reshape(-1) == label).view(np.uint8)
        void = void_of(self.classes)
        edges = self._edges(first, confidence, np.flatnonzero(label != void))
        count_intervals(first, confidence, hit, label, void, edges, *state.values())

    def _edges(self, first: Array, confidence: Array, labelled: Array) -> Array:
        """Return the edges float32 [item, bins - 1] of bins of equal mass of the `labelled` pixels;
        0 for items without any."""
        ends, values = np.searchsorted(labelled, first), confidence[labelled]
        sizes = np.diff(ends)
        edges = np.zeros((sizes.size, self.bins - 1), np.float32)
        # Items of a size are the rows of one array: NumPy sorts these with vector instructions.
        for size in np.unique(sizes[sizes > 0]):
            items = np.flatnonzero(sizes == size)
            if items.size < sizes.size:
                rows = values[ends[items][:, None] + np.arange(size)]
            else:
                rows = values.reshape(-1, size)
            ranks = -(-np.arange(1, self.bins) * size // self.bins) - 1
            edges[items] = np.sort(rows)[:, ranks]
        return edges


def add_bins(
    bins: Bins, first: Array, value: Array, hit: Array, label: Array, classes: int, state: State,
    row: int = 0,
) -> None:  # fmt: skip
    """Add values float32, right where `hit` (bool), to states of bins [item, bin] or [item, class,
    bin], there to those of class `row`, in place.

    The values of all items are concatenated; item i begins at `first[i]`.
    """
    from uqeval.kernels.calibration import count_bins

    sums = [state[name] for name in bins.fields()]
    rows = [values if values.ndim == 3 else values[:, np.newaxis] for values in sums]
    count_bins(
        first, value.reshape(-1), hit.view(np.uint8).reshape(-1), label.reshape(-1),
        void_of(classes), bins.edges(), bins.upper, row, *rows, state["special"],
    )  # fmt: skip


@dataclass(frozen=True)
class ProperScores(Tally):
    """Over the non-void pixels: `sums` [2] of -ln max(p̄_y, clip) and of Σ_c (p̄_c - y_c)².

    `counts` [3]: pixels, those with p̄_y < clip, and those where p̄_y is no probability (negative,
    or above 2).
    """

    id: ClassVar[str] = "proper_scores"
    inputs = ("label", "label_probability", "brier")
    fields: ClassVar[dict[str, Field]] = {
        "counts": Field((3,), "int64"),
        "sums": Field((2,), "float64", signed=True),
    }
    classes: int
    clip: float

    def flaws(self, state: State) -> Flaws:
        counts = state["counts"]
        yield "more clipped pixels than pixels", counts[..., 1:] > counts[..., :1]

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0]

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.calibration import sum_scores

        flat = [maps[name].reshape(-1) for name in ("label_probability", "brier", "label")]
        sum_scores(first, *flat, void_of(self.classes), self.clip, *state.values())
