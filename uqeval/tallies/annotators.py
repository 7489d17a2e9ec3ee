"""Several annotators: votes and disagreement at each pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import annotations_of, void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.reliability import Bins


def present(maps: Maps, annotators: int, classes: int) -> tuple[Array, Array]:
    """Return the ids [annotator, pixel] of those who labelled the item, and its labels [pixel].

    Every pixel with a label has one of each of them.
    """
    label = maps["label"].reshape(-1)
    annotations = maps[annotations_of(annotators)].reshape(annotators, -1)
    counted = label != void_of(classes)
    if not counted.any():
        return annotations[:0], label
    here = annotations[:, int(np.argmax(counted))] != void_of(classes)
    return np.ascontiguousarray(annotations[here]), label


@dataclass(frozen=True)
class AnnotatorVotes(Tally):
    """Mean probabilities against the shares of the annotators' votes.

    By bin of confidence [bin + 1]: pixels `count`, the sum `share` of the shares of annotators who
    chose the predicted class, the sum `confidence`. `votes` [class]. `counts` [4]: pixels, those
    with a clipped probability, ordered pairs of annotators at a pixel, and those that agree. `sums`
    [3]: cross-entropy, entropy of the votes, Σ_c (p̄_c - q_c)².
    """

    id: ClassVar[str] = "annotator_votes"
    classes: int
    annotators: int
    bins: Bins
    clip: float

    @property
    def inputs(self) -> tuple[str, ...]:
        names = ("label", "prediction", "confidence", "mean_probs")
        return (*names, annotations_of(self.annotators))

    @property
    def fields(self) -> dict[str, Field]:
        shape = (self.bins.count + 1,)
        return {
            "count": Field(shape, "int64"),
            "share": Field(shape, "float64"),
            "confidence": Field(shape, "float64", signed=True),
            "votes": Field((self.classes,), "int64"),
            "counts": Field((4,), "int64"),
            "sums": Field((3,), "float64", signed=True),
        }

    def evaluated(self, state: State) -> Counts:
        return state["counts"][..., 0]

    def flaws(self, state: State) -> Flaws:
        count, counts = state["count"], state["counts"]
        pixels, clipped, pairs, agreeing = np.moveaxis(counts, -1, 0)
        is_wrong = (count.sum(axis=-1) != pixels) | (clipped > pixels)
        yield "bins that do not add up to the pixels", is_wrong
        yield "more agreeing pairs of annotators than pairs", agreeing > pairs
        yield "fewer votes than pixels", state["votes"].sum(axis=-1) < pixels
        is_wrong = (state["share"] > (1.0 + 1e-9) * count) | (abs(state["confidence"]) > 2 * count)
        yield "sums of shares that the pixels of a bin cannot have", is_wrong

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.annotators import sum_votes
        from uqeval.kernels.calibration import count_bins

        annotations, label = present(maps, self.annotators, self.classes)
        if not len(annotations):
            return
        hits = np.zeros(label.size)
        sum_votes(
            annotations, label, void_of(self.classes), maps["mean_probs"].reshape(self.classes, -1),
            maps["prediction"].reshape(-1), self.clip,
            state["votes"], state["counts"], state["sums"], hits,
        )  # fmt: skip
        first, special = np.array([0, label.size]), np.zeros((1, 3), np.int64)
        count_bins(
            first, maps["confidence"].reshape(-1), hits, label, void_of(self.classes),
            self.bins.edges(), self.bins.upper, 0,
            *(state[name][None, None] for name in ("count", "share", "confidence")), special,
        )  # fmt: skip


@dataclass(frozen=True)
class AnnotatorCorrelation(Tally):
    """Correlation of the uncertainty with the annotators' disagreement, summed over items.

    `items` [3]: items with a labelled pixel, those with a correlation, and those of two annotators
    or more who agree at every pixel; `sum` [1] of the correlations.
    """

    id: ClassVar[str] = "annotator_correlation"
    fields: ClassVar[dict[str, Field]] = {
        "items": Field((3,), "int64"),
        "sum": Field((1,), "float64", signed=True),
    }
    classes: int
    annotators: int
    uncertainty: Uncertainty
    disagreement: str
    ddof: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", annotations_of(self.annotators), self.uncertainty.name)

    def flaws(self, state: State) -> Flaws:
        items, correlated, alike = np.moveaxis(state["items"], -1, 0)
        yield "more correlations than items", correlated + alike > items
        yield "correlations above 1", abs(state["sum"][..., 0]) > (1.0 + 1e-9) * correlated

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.annotators import disagreements

        annotations, label = present(maps, self.annotators, self.classes)
        state["items"][0] += len(annotations) > 0
        if len(annotations) < 2:
            return
        void = void_of(self.classes)
        values = np.zeros(label.size)
        count = disagreements(annotations, label, void, self.disagreement == "entropy", values)
        y = values[:count]
        x = self.uncertainty.values(maps).reshape(-1)[label != void].astype(np.float64)
        if y.max() == 0:
            state["items"][2] += 1
        elif y.min() != y.max() and x.min() != x.max():
            a, b = x - x.mean(), y - y.mean()
            scale = (count - self.ddof) / count  # N·σ·σ with `ddof`, instead of Σa² and Σb²
            r = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
            state["items"][1] += 1
            state["sum"] += min(max(r, -1.0), 1.0) * scale
