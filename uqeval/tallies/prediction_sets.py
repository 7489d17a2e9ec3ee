"""Conformal prediction: nonconformity scores by rank, and how often sets contain the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import is_lambda, void_of
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._fields import CountedItems, Counts, Field, FieldOfItems, Flaws
from uqeval.tallies.tempered import flat

#: Scores of classes, other than "aps"; a score of numbers is the name of its map λ = ε/σ.
LAC, APS_RANDOM = "lac", "aps-randomised"


def _version_of(score: str) -> int:
    """Return the version of the definition of a score.

    In the first, the mass of "aps" was float32, so that all masses above 1 - 3e-8 were 1, and the
    shares of "aps-randomised" did not depend on the place of a pixel.
    """
    return 2 if score in ("aps", APS_RANDOM) else 1


#: The bits of infinity as float32; keys have 31 bits.
_INFINITE = 0x7F800000
_LOW_BITS = 15
_COARSE, _FINE = (_INFINITE >> _LOW_BITS) + 1, 1 << _LOW_BITS


@dataclass(frozen=True)
class EvaluatedPixels(Tally):
    """Pixels with a label or a target; those of class `of_class` if it is given."""

    id: ClassVar[str] = "evaluated_pixels"
    inputs = ("label",)
    fields: ClassVar[dict[str, Field]] = {"pixels": Field((1,), "int64")}
    classes: int
    of_class: int | None = None

    def evaluated(self, state: State) -> Counts | None:
        return state["pixels"][..., 0] if self.of_class is None else None

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        is_counted = _counted(maps, self.classes, self.of_class).reshape(-1)
        total = np.concatenate([[0], np.cumsum(is_counted)])
        state["pixels"][:, 0] += np.diff(total[first])


@dataclass(frozen=True)
class Nonconformity(Tally):
    """Pixels by the key of the nonconformity score of their label or target, ascending.

    `score`: "lac" (1 - p̄ of the label), "aps" (the mass of the likelier classes), "aps-randomised",
    or the map of λ = ε/σ. `of_class`: only pixels of this class. The state is `counts` [bin] by the
    high bits of the key; with `coarse`, a bin, by the low bits of the keys in it. The keys of
    classes come from 1 - score, which has more digits where the score is nearly 1.
    """

    id: ClassVar[str] = "nonconformity"
    checks_columns: ClassVar[bool] = True
    score: str
    classes: int
    of_class: int | None = None
    coarse: int | None = None

    @property
    def version(self) -> int:
        return _version_of(self.score)

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", self.score if is_lambda(self.score) else "mean_probs")

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((_COARSE if self.coarse is None else _FINE,), "int64")}

    def evaluated(self, state: State) -> Counts | None:
        has_all = self.of_class is None and self.coarse is None
        return state["counts"].sum(axis=-1) if has_all else None

    def value_of(self, coarse: int, fine: int) -> float:
        """Return the score of a key, ∞ where λ is; of classes 1 - score."""
        key = (coarse << _LOW_BITS) | fine
        bits = key if is_lambda(self.score) else _INFINITE - key
        return float(np.array(bits, np.int32).view(np.float32))

    def is_infinite(self, coarse: int) -> bool:
        """Return whether the only score in a bin of high bits is ∞."""
        return is_lambda(self.score) and coarse == _INFINITE >> _LOW_BITS

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems:
        pixels, bins = self._bins(maps, first)
        size = self.fields["counts"].shape[0]
        if first.size == 2:
            counts = np.bincount(bins, minlength=size)
            places = np.flatnonzero(counts)
            times = counts[places]
        else:
            item = np.searchsorted(first, pixels, side="right") - 1
            places, times = np.unique(item * size + bins, return_counts=True)
        ends = np.searchsorted(places, np.arange(first.size) * size)
        own = FieldOfItems(times.astype(np.int64), places % size, ends)
        return CountedItems(first.size - 1, (own,))

    def _bins(self, maps: Maps, first: Array) -> tuple[Array, Array]:
        """Return the places of the counted pixels, and their bins, int64 [i]."""
        is_counted = _counted(maps, self.classes, self.of_class).reshape(-1)
        pixels = np.flatnonzero(is_counted)
        scores = self._scores(maps, first, pixels)
        bits = (scores + np.float32(0)).view(np.int32).astype(np.int64)
        key = bits if is_lambda(self.score) else _INFINITE - bits
        if self.coarse is None:
            return pixels, key >> _LOW_BITS
        is_inside = key >> _LOW_BITS == self.coarse
        return pixels[is_inside], key[is_inside] & (_FINE - 1)

    def _scores(self, maps: Maps, first: Array, pixels: Array) -> Array:
        """Return the scores of some pixels, float32 [i]; of classes 1 - score."""
        if is_lambda(self.score):
            return np.asarray(maps[self.score].reshape(-1)[pixels], np.float32)
        probs, label = flat(maps), maps["label"].reshape(-1)
        if self.score == LAC:
            return np.asarray(probs[label[pixels], pixels], np.float32)
        from uqeval.kernels.prediction_sets import set_label_scores

        score = np.empty(label.size, np.float32)
        void, is_random = void_of(self.classes), self.score == APS_RANDOM
        set_label_scores(probs, label, void, first, is_random, score)
        return np.asarray(score[pixels])


@dataclass(frozen=True)
class InfiniteScores(Tally):
    """Evaluated pixels with an infinite λ = ε/σ: σ is 0 (`zero`), or λ exceeds float32 (`above`).

    `ratio` and `sigma`: the maps of λ and σ.
    """

    id: ClassVar[str] = "infinite_scores"
    fields: ClassVar[dict[str, Field]] = {
        "zero": Field((1,), "int64"), "above": Field((1,), "int64"),
    }  # fmt: skip
    ratio: str
    sigma: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", self.ratio, self.sigma)

    def update(self, state: State, maps: Maps) -> None:
        is_infinite = _counted(maps, 1, None) & np.isinf(maps[self.ratio])
        sigma = maps[self.sigma][is_infinite]
        zero = np.count_nonzero(sigma == 0)
        state["zero"] += zero
        state["above"] += sigma.size - zero


@dataclass(frozen=True)
class PredictionSets(Tally):
    """Prediction sets of the classes whose 1 - score is at least `cut`: of "lac" the probability,
    else the mass that remains after the likelier classes.

    By class of the label: `pixels`, those whose set holds the label (`covered`), and the classes in
    the sets (`sizes`). By size of the set, 0 … classes: `by_size` pixels, `covered_by_size`.
    """

    id: ClassVar[str] = "prediction_sets"
    evaluates = "pixels"
    inputs = ("label", "mean_probs")
    score: str
    classes: int
    cut: float

    @property
    def version(self) -> int:
        return _version_of(self.score)

    @property
    def fields(self) -> dict[str, Field]:
        of_class, of_size = Field((self.classes,), "int64"), Field((self.classes + 1,), "int64")
        return {
            "pixels": of_class, "covered": of_class, "sizes": of_class,
            "by_size": of_size, "covered_by_size": of_size,
        }  # fmt: skip

    def flaws(self, state: State) -> Flaws:
        more = state["covered"] > state["pixels"]
        yield "more pixels with their label in the set than pixels", more
        pixels, covered = state["pixels"].sum(axis=-1), state["covered"].sum(axis=-1)
        differ = state["by_size"].sum(axis=-1) != pixels
        yield "other numbers of pixels by size of the set than by class", differ
        sizes = (state["by_size"] * np.arange(self.classes + 1)).sum(axis=-1)
        yield "other sizes of sets by size than by class", state["sizes"].sum(axis=-1) != sizes
        differ = state["covered_by_size"].sum(axis=-1) != covered
        yield "other numbers of covered pixels by size than by class", differ

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.prediction_sets import find_mass_sets, find_threshold_sets

        probs, label, void = flat(maps), maps["label"].reshape(-1), void_of(self.classes)
        size, hit = np.empty(label.size, np.int32), np.empty(label.size, np.uint8)
        cut = np.float32(self.cut)
        if self.score == LAC:
            find_threshold_sets(probs, label, void, cut, size, hit)
        else:
            find_mass_sets(probs, label, void, first, cut, self.score == APS_RANDOM, size, hit)
        pixels = np.flatnonzero(label != void)
        item = np.searchsorted(first, pixels, side="right") - 1
        size, is_hit = size[pixels].astype(np.int64), hit[pixels] == 1
        of_class = item * self.classes + label[pixels]
        of_size = item * (self.classes + 1) + size
        for name, place, weight in (
            ("pixels", of_class, None), ("covered", of_class[is_hit], None),
            ("sizes", of_class, size),
            ("by_size", of_size, None), ("covered_by_size", of_size[is_hit], None),
        ):  # fmt: skip
            counts = np.bincount(place, weight, state[name].size)
            state[name] += counts.astype(np.int64).reshape(state[name].shape)


@dataclass(frozen=True)
class PredictionIntervals(Tally):
    """Intervals μ ± cut·σ: evaluated pixels, those with the target inside, and Σσ.

    `ratio`: the map of λ = ε/σ; `cut`: None for infinite intervals.
    """

    id: ClassVar[str] = "prediction_intervals"
    evaluates = "pixels"
    fields: ClassVar[dict[str, Field]] = {
        "pixels": Field((1,), "int64"), "covered": Field((1,), "int64"),
        "sigma": Field((1,), "float64"),
    }  # fmt: skip
    ratio: str
    sigma: str
    cut: float | None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", self.ratio, self.sigma)

    def flaws(self, state: State) -> Flaws:
        yield "more covered targets than targets", state["covered"] > state["pixels"]

    def update(self, state: State, maps: Maps) -> None:
        is_counted = _counted(maps, 1, None)
        ratio = maps[self.ratio][is_counted]
        state["pixels"] += ratio.size
        covered = ratio.size if self.cut is None else np.count_nonzero(ratio <= self.cut)
        state["covered"] += covered
        state["sigma"] += maps[self.sigma][is_counted].sum(dtype=np.float64)


def _counted(maps: Maps, classes: int, of_class: int | None) -> Array:
    """Return which pixels [y, x] have a label, or this label."""
    label = maps["label"]
    return label != void_of(classes) if of_class is None else label == of_class
