"""Several annotators: distances between the maps of samples and annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import annotations_of, choices_of, void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws
from uqeval.tallies.annotators import present

#: Arrays [map, map, class] of 8 bytes that are there at once: measured.
_ARRAYS = 8


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

    @property
    def of_absent(self) -> float:
        """Return the overlap of two maps without the class."""
        return 0.0 if self.absent == "disagree" else 1.0


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
    evaluates = "pixels"
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

    @property
    def working_bytes(self) -> int:
        # Overlaps of all pairs of maps by class, and what is computed from them.
        return 8 * _ARRAYS * (self.samples + self.annotators) ** 2 * self.classes

    def pixels(self, state: State) -> Counts:
        return state["pixels"][..., 0]

    def flaws(self, state: State) -> Flaws:
        items, sums = state["items"], state["sums"]
        yield (
            "more items than labelled pixels",
            (items[..., 1] > items[..., 0]) | (items[..., 0] > state["pixels"][..., 0]),
        )
        yield "a class is in more items than there are", state["class_items"] > items[..., 1:]
        room = 1.0 + 1e-9
        yield "distances above 1", abs(sums[..., :4]) > room * items[..., 1:]
        yield "energy distances above 2", abs(sums[..., 4]) > 2 * room * items[..., 1]
        most = room * state["class_items"][..., None]
        yield "distances of a class above 1", state["class_sums"] > most

    def update(self, state: State, maps: Maps) -> None:
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
        counted = label != void
        for plane in planes:
            here[plane[counted]] = True
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
        nothing: tuple[float, Array] = 0.0, np.zeros(len(ids))
        of_samples = [nothing, nothing]
        if samples.size:
            of_samples = [
                (pairs.mean(samples, other), pairs.by_class(samples, other))
                for other in (raters, samples)
            ]
        state["sums"] += [
            of_samples[0][0], of_samples[1][0], means[0], 1.0 - means[1],
            pairs.one_to_others(raters),
        ]  # fmt: skip
        state["class_items"][ids] += 1
        columns = [of_samples[0][1], of_samples[1][1], by_class[0], 1.0 - by_class[1]]
        state["class_sums"][ids] += np.stack(columns, axis=1)


@dataclass(frozen=True)
class Pairs:
    """The distances of all pairs of maps [map, map], and of each class alone [map, map, class].

    With `pooled` they are not used: distances are 1 minus the ratio of the sums of `shared` and
    `size` [map, map, class], of which some are `counted` [class].
    """

    distances: Array
    of_classes: Array
    shared: Array
    size: Array
    counted: Array
    distance: Distance

    @classmethod
    def of_counts(
        cls, common: Array, alone: Array, overlaps: Array,
        ids: Array, classes: int, distance: Distance,
    ) -> Pairs:  # fmt: skip
        """Return the pairs from counts as `count_overlaps` makes them."""
        sizes = common + alone
        both = overlaps + overlaps.transpose(1, 0, 2) + common
        diagonal = np.arange(len(alone))
        both[diagonal, diagonal] = sizes
        either = sizes[:, None] + sizes[None]
        shared, size = (both, either - both) if distance.kind == "iou" else (2 * both, either)
        counted = ids > 0 if distance.foreground else np.ones(len(ids), bool)
        absent = classes - distance.foreground - np.count_nonzero(counted)
        ratios = np.where(size > 0, shared / np.maximum(size, 1), 0.0)
        overlap, there = ratios[..., counted].sum(-1), np.count_nonzero(size[..., counted], -1)
        if distance.absent == "skip":
            overlap = np.where(there > 0, overlap / np.maximum(there, 1), 1.0)
        else:
            count = np.count_nonzero(counted) + absent
            overlap = (overlap + distance.of_absent * (count - there)) / max(count, 1)
        of_classes = 1.0 - np.where(size > 0, ratios, distance.of_absent)
        return cls(1.0 - overlap, of_classes, shared, size, counted, distance)

    def mean(self, a: Array, b: Array) -> float:
        """Return the expected distance of a map of `a` and one of `b`."""
        if self.distance.pooled:
            return float(self._pooled(*self._totals(np.ix_(a, b))))
        return float(self.distances[np.ix_(a, b)].mean())

    def apart(self, maps: Array) -> float:
        """Return the mean distance of two different maps."""
        i, j = _different(maps)
        if self.distance.pooled:
            return float(self._pooled(*self._totals((i, j))))
        return float(self.distances[i, j].mean())

    def by_class(self, a: Array, b: Array) -> Array:
        """Return `mean` of each class alone."""
        return self._by_class(np.ix_(a, b))

    def by_class_apart(self, maps: Array) -> Array:
        """Return `apart` of each class alone."""
        return self._by_class(_different(maps))

    def one_to_others(self, maps: Array) -> float:
        """Return the mean over maps of the energy distance of one to all others."""
        others, square = len(maps) - 1, np.ix_(maps, maps)
        if self.distance.pooled:
            sums = [of[square][..., self.counted].sum(-1) for of in (self.shared, self.size)]
            shared, size = (_with_others(own) for own in sums)
            own, apart, rest = (self._pooled(*both) for both in zip(shared, size, strict=True))
            return float((2 * apart - own - rest).mean())
        own, apart, rest = _with_others(self.distances[square])
        return float((2 * apart / others - own - rest / others**2).mean())

    def _totals(self, pairs: Any) -> tuple[Array, Array]:
        """Return the summed overlaps and sizes of some pairs, over the classes that count."""
        shared, size = (of[pairs][..., self.counted].sum() for of in (self.shared, self.size))
        return shared, size

    def _pooled(self, shared: Array, size: Array) -> Array:
        ratio = np.where(size > 0, shared / np.maximum(size, 1), self.distance.of_absent)
        return 1.0 - ratio

    def _by_class(self, pairs: Any) -> Array:
        classes = self.shared.shape[-1]
        if not self.distance.pooled:
            return self.of_classes[pairs].reshape(-1, classes).mean(axis=0)
        both = (of[pairs].reshape(-1, classes).sum(axis=0) for of in (self.shared, self.size))
        return self._pooled(*both)


def _with_others(values: Array) -> tuple[Array, Array, Array]:
    """Return of each map [map, map] the value with itself, the sum with all others, and the sum of
    all pairs of others."""
    own, rows = np.diagonal(values), values.sum(axis=1)
    return own, rows - own, values.sum() - 2 * rows + own


def _different(maps: Array) -> tuple[Array, Array]:
    i, j = np.triu_indices(len(maps), 1)
    return maps[i], maps[j]
