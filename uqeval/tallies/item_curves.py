"""Exact sparsification of single items: pixels are sorted only in the bins that contain a cut."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from uqeval.arrays import Array, Ints, Maps, State, np
from uqeval.maps.names import void_of
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._fields import CountedItems, Counts, Field, Flaws
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.rank_keys import COARSE, FINE_BITS
from uqeval.tallies.ranked_errors import RankedErrors


@dataclass(frozen=True)
class Cuts:
    """The number of n pixels that are kept after each of `steps` removals, and the rule for ties.

    `keep`: n - ⌊kn/steps⌋ ("floor"); ⌊(1 - k/steps)·n⌋ in floating point ("truncate", as Python's
    int); or those up to the (1 - k/steps) quantile, n - ⌈k(n - 1)/steps⌉ ("quantile"). `ties` are
    averaged, or kept together.
    """

    steps: int = 100
    keep: str = "floor"
    ties: str = "averaged"

    def kept(self, n: int) -> list[int]:
        """Return pixels kept at fraction k/steps, k = 0 … steps - 1."""
        return self.kept_of(np.array([n], np.int64))[0].tolist()

    def kept_of(self, n: Ints) -> Ints:
        """Return `kept` of several numbers of pixels: [n, step]."""
        k, n = np.arange(self.steps), n[:, None]
        if self.keep == "truncate":
            return ((1.0 - k * (1 / self.steps)) * n).astype(np.int64)
        if self.keep == "quantile":
            return n - -(-k * (n - 1) // self.steps)
        return n - k * n // self.steps

    def places_in(self, pixels: Array, ends: Array) -> tuple[Array, Array, Array]:
        """Return how many pixels sets keep, the bin that each cut is in, and the pixels up to the
        end of this bin: [set, step] all.

        `pixels` [bin] of one set after another. Set i has the bins `ends[i]` up to `ends[i + 1]`
        (excluded), at least one.
        """
        upto, first = np.cumsum(pixels), ends[:-1]
        earlier = (upto[first] - pixels[first])[:, None]
        retained = self.kept_of(upto[ends[1:] - 1] - earlier[:, 0])
        places = np.searchsorted(upto, retained + earlier)
        places = np.maximum(places, first[:, None])  # the cut of a set that keeps no pixel
        return retained, places, upto[places] - earlier

    def sums(self, pixels: Array, errors: Array, ends: Array) -> tuple[Array, Array]:
        """Return pixels kept and their error sums at each step: [set, step] both.

        `pixels` of ties and `ends` as in `places_in`; `errors`: sums up to the end of each tie.
        """
        retained, places, upto = self.places_in(pixels, ends)
        if self.ties == "together":
            retained = upto
        below = upto - pixels[places]
        total = np.where(places == ends[:-1, None], 0.0, errors[places - 1])
        share = (retained - below) / pixels[places]
        with np.errstate(invalid="ignore"):  # errors may be infinite
            interpolated = total + share * (errors[places] - total)
        # At the end of a tie the sum as it was added up, so that equal sets have equal sums.
        return retained, np.where(retained == upto, errors[places], interpolated)


@dataclass(frozen=True)
class ItemCurves(Tally):
    """Pixels that remain, their errors and those of the oracle, at each step of each item's curve.

    State: `kept` and `kept_by_oracle` int64 [step] (they differ if ties are kept together);
    `errors` and `oracle` float64 [step]. With `every_rank`, `areas` [2]: Σ over m = 1 … n of the
    mean error of the m most certain pixels, with half weight at the ends, and the same for the
    oracle. In merged states, each item loses the same fraction of its pixels.
    """

    id: ClassVar[str] = "item_curves"
    score: Uncertainty
    error: Error
    classes: int
    cuts: Cuts = Cuts()
    every_rank: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.error.inputs, self.score.name)))

    @property
    def fields(self) -> dict[str, Field]:
        count, sums = (Field((self.cuts.steps,), dtype) for dtype in ("int64", "float64"))
        fields = {"kept": count, "kept_by_oracle": count, "errors": sums, "oracle": sums}
        return fields | ({"areas": Field((2,), "float64")} if self.every_rank else {})

    def flaws(self, state: State) -> Flaws:
        for name in ("kept", "kept_by_oracle"):
            more = state[name] > state[name][..., :1]
            yield "more pixels kept after a removal than before", more

    def evaluated(self, state: State) -> Counts:
        return state["kept"][..., 0]

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems:
        known, fields = {} if known is None else known, self.packing.fields
        state = {n: np.zeros((first.size - 1, *f.shape), f.dtype) for n, f in fields.items()}
        for i, (ranking, ranked) in enumerate(self._rankings):
            if ranked not in known and (counted := ranked.count_items(maps, first)) is not None:
                known[ranked] = counted
            bins = known[ranked].fields[0].first
            assert bins is not None
            items = np.flatnonzero(np.diff(bins))  # those with pixels
            if not items.size:
                break
            pixels, errors, ends = self._ties(maps, first, ranking, known[ranked])
            ends = np.append(ends[items], ends[-1])
            retained, sums = self.cuts.sums(pixels, errors, ends)
            state[("kept", "kept_by_oracle")[i]][items] = retained
            state[("errors", "oracle")[i]][items] = sums
            if self.every_rank:
                state["areas"][items, i] = [
                    _area(np.cumsum(pixels[a:b]), errors[a:b]) for a, b in pairwise(ends)
                ]
        return CountedItems.of_arrays(fields, state)

    @property
    def _rankings(self) -> list[tuple[Uncertainty | Error, RankedErrors]]:
        """Return the ranking of the pixels, and the tally that counts them by the high bits of
        their rank."""
        ways: tuple[Uncertainty | Error, ...] = (self.score, self.error.ranking)
        return [(ranking, RankedErrors(ranking, self.error, self.classes)) for ranking in ways]

    def _ties(
        self, maps: Maps, first: Array, ranking: Uncertainty | Error, counted: CountedItems
    ) -> tuple[Array, Array, Array]:
        """Return the pixels of bins and the errors up to their ends, of one item after another, and
        where the bins of each item begin. Bins in which the order of pixels matters are ties.

        `counted`: pixels and errors by high bits of their rank.
        """
        from uqeval.kernels.tie_items import split_bins_of_items

        bins, bin_first, pixels, errors = _joined_fields(counted)
        split = pixels > 1
        if not self.every_rank:
            items = np.flatnonzero(np.diff(bin_first))
            retained, places, upto = self.cuts.places_in(
                pixels, np.append(bin_first[items], bin_first[-1])
            )
            has_cut = np.zeros(split.size, bool)
            has_cut[places[upto != retained]] = True
            split &= has_cut
        error = self.error.values(maps)
        score = error if ranking == self.error else ranking.values(maps)
        most = int(np.where(split, pixels, 1).sum())
        ends, counts, sums = np.zeros_like(first), np.empty(most, np.int64), np.empty(most)
        split_bins_of_items(
            first, score.reshape(-1), error.reshape(-1), maps["label"].reshape(-1),
            void_of(self.classes), self.error.squared, FINE_BITS, bin_first, bins, pixels, errors,
            split, np.zeros(COARSE + 1, np.uint8), ends, counts, sums,
        )  # fmt: skip
        return counts[: ends[-1]], sums[: ends[-1]], ends


def _joined_fields(counted: CountedItems) -> tuple[Array, Array, Array, Array]:
    """Return the bins of items, where those of each item begin, their pixels, and their errors."""
    places = []
    for field in counted.fields:
        assert field.places is not None and field.first is not None
        item = np.repeat(np.arange(counted.items), np.diff(field.first))
        places.append(item * COARSE + field.places)
    pixels, errors = counted.fields
    sums = np.zeros(pixels.values.size)
    sums[np.searchsorted(places[0], places[1])] = errors.values
    assert pixels.places is not None and pixels.first is not None
    return pixels.places, pixels.first, pixels.values, sums


def _area(cumulative: Array, errors: Array) -> float:
    m = np.arange(1, cumulative[-1] + 1)
    risk = np.interp(m, np.append(0, cumulative), np.append(0.0, errors)) / m
    return float(risk.sum() - (risk[0] + risk[-1]) / 2)
