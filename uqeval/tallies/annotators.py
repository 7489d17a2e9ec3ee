"""Several annotators: distances between the maps of samples and annotators, votes, disagreement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from uqeval.maps.names import annotations_of, choices_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field
from uqeval.tallies._values import Uncertainty, void_of
from uqeval.tallies.reliability import Bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.tallies._fields import Counts, Maps, State


def present(maps: Maps, annotators: int, classes: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ids [annotator, pixel] of those who labelled the item, and its labels [pixel].

    Every pixel with a label has one of each of them.
    """
    import numpy as np

    label = maps["label"].reshape(-1)
    annotations = maps[annotations_of(annotators)].reshape(annotators, -1)
    counted = label != void_of(classes)
    if not counted.any():
        return annotations[:0], label
    here = annotations[:, int(np.argmax(counted))] != void_of(classes)
    return np.ascontiguousarray(annotations[here]), label


@dataclass(frozen=True)
class Distance:
    """The distance of two maps of classes: 1 - IoU or 1 - Dice, over classes.

    `foreground`: class 0 does not count. `absent`: a class in neither of two maps leaves the mean
    over classes ("skip"), or has distance 0 ("agree") or 1 ("disagree"); without any class "skip"
    has distance 0. `pooled`: the overlaps of all pairs are added up before the ratio is formed.
    """

    kind: str = "iou"
    foreground: bool = False
    absent: str = "skip"
    pooled: bool = False


@dataclass(frozen=True)
class AnnotatorDistances(Tally):
    """Expected distances of an item, summed over items.

    `items` [2]: items with a labelled pixel, of them those with two annotators or more, and
    `pixels` [1], labelled ones. `sums` [5], of items with two annotators or more: the expected
    distance of a sample to an annotator, of two samples, of two annotators; the mean agreement (1 -
    distance) of two different annotators; and the mean over annotators of the energy distance of
    one to the others. `class_items` [class]: items in which a sample or an annotator has the class;
    `class_sums` [class, 4]: the first four sums of single classes. Without samples (0) the sums
    that need them are 0.
    """

    id: ClassVar[str] = "annotator_distances"
    classes: int
    annotators: int
    samples: int
    distance: Distance

    @property
    def inputs(self) -> tuple[str, ...]:
        choices = (choices_of(self.samples),) if self.samples else ()
        return ("label", annotations_of(self.annotators), *choices)

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "items": Field((2,), "int64"),
            "pixels": Field((1,), "int64"),
            "sums": Field((5,), "float64", signed=True),
            "class_items": Field((self.classes,), "int64"),
            "class_sums": Field((self.classes, 4), "float64"),
        }

    def pixels(self, state: State) -> Counts:
        return state["pixels"][..., 0]

    def evaluated(self, state: State) -> Counts:
        return state["pixels"][..., 0]

    def flaw(self, state: State) -> str | None:
        items, sums = state["items"], state["sums"]
        if (items[..., 1] > items[..., 0]).any() or (items[..., 0] > state["pixels"][..., 0]).any():
            return "more items than labelled pixels"
        if (state["class_items"] > items[..., 1:]).any():
            return "a class is in more items than there are"
        room = 1.0 + 1e-9
        if (abs(sums[..., :4]) > room * items[..., 1:]).any():
            return "distances above 1"
        if (abs(sums[..., 4]) > 2 * room * items[..., 1]).any():
            return "energy distances above 2"
        if (state["class_sums"] > room * state["class_items"][..., None]).any():
            return "distances of a class above 1"
        return None

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

        from uqeval.kernels.annotators import count_overlaps

        annotations, label = present(maps, self.annotators, self.classes)
        state["pixels"] += np.count_nonzero(label != void_of(self.classes))
        state["items"][0] += len(annotations) > 0
        if len(annotations) < 2:
            return
        state["items"][1] += 1
        planes = annotations
        if self.samples:
            choices = maps[choices_of(self.samples)].reshape(self.samples, -1)
            planes = np.concatenate([choices, annotations])
        void = void_of(self.classes)
        here = np.zeros(max(self.classes, void) + 1, bool)
        for plane in planes:
            here[np.unique(plane[label != void])] = True
        ids = np.flatnonzero(here[: self.classes])
        place = (np.cumsum(here) - 1).astype(np.int64)
        count = len(planes)
        common = np.zeros(len(ids), np.int64)
        alone = np.zeros((count, len(ids)), np.int64)
        overlaps = np.zeros((count, count, len(ids)), np.int64)
        count_overlaps(planes, label, void, place, common, alone, overlaps)
        pairs = Pairs.of_counts(common, alone, overlaps, ids, self.classes, self.distance)
        samples = np.arange(count - len(annotations))
        raters = np.arange(len(samples), count)
        means = [pairs.mean(raters, raters), pairs.apart(raters)]
        by_class = [pairs.by_class(raters, raters), pairs.by_class_apart(raters)]
        nothing: tuple[float, NDArray[Any]] = 0.0, np.zeros(len(ids))
        of_samples = [nothing, nothing]
        if samples.size:
            of_samples = [
                (pairs.mean(samples, other), pairs.by_class(samples, other))
                for other in (raters, samples)
            ]
        state["sums"] += [
            of_samples[0][0], of_samples[1][0], means[0], 1.0 - means[1],
            _one_to_others(pairs, raters),
        ]  # fmt: skip
        state["class_items"][ids] += 1
        columns = [of_samples[0][1], of_samples[1][1], by_class[0], 1.0 - by_class[1]]
        state["class_sums"][ids] += np.stack(columns, axis=1)


def _one_to_others(pairs: Pairs, raters: NDArray[Any]) -> float:
    """Return the mean over annotators of the energy distance of one to all others."""
    import numpy as np

    distances = []
    for r in range(len(raters)):
        own, others = raters[r : r + 1], np.delete(raters, r)
        distances.append(
            2 * pairs.mean(own, others) - pairs.mean(own, own) - pairs.mean(others, others)
        )
    return float(np.mean(distances))


@dataclass(frozen=True)
class Pairs:
    """The overlaps of all pairs of maps: `shared` and `size` [map, map, class], so that a ratio of
    them is the IoU or Dice; `absent_classes` are in no map but count."""

    shared: NDArray[Any]
    size: NDArray[Any]
    counted: NDArray[Any]
    absent_classes: int
    distance: Distance

    @classmethod
    def of_counts(
        cls, common: NDArray[Any], alone: NDArray[Any], overlaps: NDArray[Any],
        ids: NDArray[Any], classes: int, distance: Distance,
    ) -> Pairs:  # fmt: skip
        """Return the pairs from counts as `count_overlaps` makes them."""
        import numpy as np

        sizes = common + alone
        both = overlaps + overlaps.transpose(1, 0, 2) + common
        diagonal = np.arange(len(alone))
        both[diagonal, diagonal] = sizes
        either = sizes[:, None] + sizes[None]
        shared, size = (both, either - both) if distance.kind == "iou" else (2 * both, either)
        counted = ids > 0 if distance.foreground else np.ones(len(ids), bool)
        absent = classes - distance.foreground - np.count_nonzero(counted)
        return cls(shared, size, counted, int(absent), distance)

    def mean(self, a: NDArray[Any], b: NDArray[Any]) -> float:
        """Return the expected distance of a map of `a` and one of `b`."""
        return self._of(self.shared[a][:, b], self.size[a][:, b])

    def apart(self, maps: NDArray[Any]) -> float:
        """Return the mean distance of two different maps."""
        i, j = _different(maps)
        return self._of(self.shared[i, j][None], self.size[i, j][None])

    def by_class(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return `mean` of each class alone."""
        return self._of_classes(self.shared[a][:, b], self.size[a][:, b])

    def by_class_apart(self, maps: NDArray[Any]) -> NDArray[Any]:
        """Return `apart` of each class alone."""
        i, j = _different(maps)
        return self._of_classes(self.shared[i, j][None], self.size[i, j][None])

    @property
    def _of_absent(self) -> float:
        """Return the overlap of two maps without the class."""
        return 0.0 if self.distance.absent == "disagree" else 1.0

    def _of(self, shared: NDArray[Any], size: NDArray[Any]) -> float:
        import numpy as np

        shared, size = shared[..., self.counted], size[..., self.counted]
        if self.distance.pooled:
            total = int(size.sum())
            return 1.0 - (int(shared.sum()) / total if total else self._of_absent)
        ratios = np.where(size > 0, shared / np.maximum(size, 1), 0.0).sum(axis=-1)
        there = np.count_nonzero(size, axis=-1)
        if self.distance.absent == "skip":
            overlap = np.where(there > 0, ratios / np.maximum(there, 1), 1.0)
        else:
            count = size.shape[-1] + self.absent_classes
            overlap = (ratios + self._of_absent * (count - there)) / max(count, 1)
        return float(np.mean(1.0 - overlap))

    def _of_classes(self, shared: NDArray[Any], size: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        if self.distance.pooled:
            shared, size = shared.sum(axis=(0, 1)), size.sum(axis=(0, 1))
            ratios = np.where(size > 0, shared / np.maximum(size, 1), self._of_absent)
            return 1.0 - ratios
        ratios = np.where(size > 0, shared / np.maximum(size, 1), self._of_absent)
        means: NDArray[Any] = (1.0 - ratios).mean(axis=(0, 1))
        return means


def _different(maps: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    import numpy as np

    i, j = np.triu_indices(len(maps), 1)
    return maps[i], maps[j]


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

    def flaw(self, state: State) -> str | None:
        count, counts = state["count"], state["counts"]
        if (count.sum(axis=-1) != counts[..., 0]).any() or (counts[..., 1] > counts[..., 0]).any():
            return "bins that do not add up to the pixels"
        if (counts[..., 3] > counts[..., 2]).any():
            return "more agreeing pairs of annotators than pairs"
        if (state["votes"].sum(axis=-1) < counts[..., 0]).any():
            return "fewer votes than pixels"
        room = 1.0 + 1e-9
        if (state["share"] > room * count).any() or (abs(state["confidence"]) > 2 * count).any():
            return "sums of shares that the pixels of a bin cannot have"
        return None

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

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
        special = np.zeros(3, np.int64)
        count_bins(
            maps["confidence"].reshape(-1), hits, label, void_of(self.classes), self.bins.edges(),
            self.bins.upper, state["count"], state["share"], state["confidence"], special,
        )  # fmt: skip


@dataclass(frozen=True)
class AnnotatorCorrelation(Tally):
    """Correlation of the uncertainty with the annotators' disagreement, summed over items.

    `items` [3]: items with a labelled pixel, those with a correlation, and those of two annotators
    or more who agree at every pixel; `sum` [1] of the correlations.
    """

    id: ClassVar[str] = "annotator_correlation"
    classes: int
    annotators: int
    uncertainty: Uncertainty
    disagreement: str
    ddof: int

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", annotations_of(self.annotators), self.uncertainty.name)

    @property
    def fields(self) -> dict[str, Field]:
        return {"items": Field((3,), "int64"), "sum": Field((1,), "float64", signed=True)}

    def flaw(self, state: State) -> str | None:
        items = state["items"]
        if (items[..., 1] + items[..., 2] > items[..., 0]).any():
            return "more correlations than items"
        if (abs(state["sum"][..., 0]) > (1.0 + 1e-9) * items[..., 1]).any():
            return "correlations above 1"
        return None

    def update(self, state: State, maps: Maps) -> None:
        import numpy as np

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
        if y.min() == y.max():
            state["items"][2] += 1
        elif x.min() != x.max():
            a, b = x - x.mean(), y - y.mean()
            scale = (count - self.ddof) / count  # N·σ·σ with `ddof`, instead of Σa² and Σb²
            r = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
            state["items"][1] += 1
            state["sum"] += min(max(r, -1.0), 1.0) * scale
