"""Sums and percentiles of single items for n-MeRCI."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import VOID
from uqeval.tallies._contract import KnownItems
from uqeval.tallies._errors import OfErrors
from uqeval.tallies._fields import CountedItems, Counts, Field, Flaws
from uqeval.tallies.rank_keys import between, ranks_of

#: The buffer around an estimated percentile holds 1 / `_BUFFER_SHARE` of an item's pixels.
_BUFFER_SHARE = 8
#: Larger items are counted one by one: NumPy adds numbers up to here in the order of
#: `pairwise_sum`, whatever their dtype.
_MOST_PIXELS = 8192


@dataclass(frozen=True)
class _Collected:
    """Values (λ, ε) of one item inside an interval around each percentile, and sums."""

    pixels: int
    zeros: int
    infinite: int
    ranks: tuple[int, int, float] | None
    below: list[int]
    values: list[Array]
    pixels_of_values: Array
    totals: Array
    most: float


@dataclass(frozen=True)
class ItemErrors(OfErrors):
    """Sums of errors of an item, its percentiles of λ = ε/σ and ε, and sums up to a percentile.

    - `pixels`: evaluated pixels; `invalid`: the others
    - `totals` [(ε, σ)]: sums over the evaluated pixels
    - `zero` [1, (σ = 0, σ = 0 and ε > 0)]: counts of pixels
    - `own` [(λ, ε)]: the percentiles by `rule`, -∞ without pixels; merged by maximum
    - `count`, `sums` [(ε, σ)], `most` (largest ε): of the retained pixels. These have ε up to its
      percentile, or with `trimmed_by_ratio` λ up to its percentile. Without it Σσ is 0: no metric
      reads it.
    """

    id: ClassVar[str] = "item_errors"
    evaluates = "pixels"
    has_scale: ClassVar[bool] = True
    counts_void: ClassVar[bool] = True
    fields: ClassVar[dict[str, Field]] = {
        "pixels": Field((1,), "int64"),
        "totals": Field((2,), "float64"),
        "zero": Field((1, 2), "int64"),
        "invalid": Field((1,), "int64"),
        "own": Field((2,), "float64", "max"),
        "count": Field((1,), "int64"),
        "sums": Field((2,), "float64"),
        "most": Field((1,), "float64", "max"),
    }
    percentile: float
    rule: str
    trimmed_by_ratio: bool = False
    sigma: str = "sigma"

    def flaws(self, state: State) -> Flaws:
        pixels, zero = state["pixels"], state["zero"]
        more = (state["count"] > pixels) | (zero[..., 0] > pixels) | (zero[..., 1] > zero[..., 0])
        yield "more pixels kept than there are", more

    def pixels(self, state: State) -> Counts:
        return state["pixels"][..., 0] + state["invalid"][..., 0]

    def mean_uncertainty(self, states: Mapping[str, Array]) -> Array:
        means: Array = states["totals"][:, 1] / states["pixels"][:, 0]
        return means

    def rescaled(self, name: str, values: Array, factor: float) -> Array:
        if name in ("totals", "sums"):
            return values * (1.0, factor)
        return values / (factor, 1.0) if name == "own" else values

    def update(self, state: State, maps: Maps) -> None:
        """Add one item."""
        error, sigma, label = self.flat(maps)
        item = self._collect(error, sigma, label)
        state["pixels"] += item.pixels
        state["totals"] += item.totals[:2]
        state["zero"] += (item.zeros, item.infinite)
        state["invalid"] += label.size - item.pixels
        if item.ranks is None:
            return
        lower, upper, weight = item.ranks
        keys = [values.astype(np.float32, copy=False) for values in item.values]
        percentiles = [
            between(*statistics(values, lower - n, upper - n), weight)
            for values, n in zip(keys, item.below, strict=True)
        ]
        k = 0 if self.trimmed_by_ratio else 1
        is_below = keys[k].astype(np.float64) <= percentiles[k]
        retained = [item.values[k][is_below]]
        if self.trimmed_by_ratio:
            retained_pixels = item.pixels_of_values[: keys[0].size][is_below]
            retained = [error[retained_pixels], sigma[retained_pixels]]
        state["own"][...] = np.maximum(state["own"], percentiles)
        state["count"] += item.below[k] + retained[0].size
        state["sums"] += item.totals[2:]
        state["sums"][: len(retained)] += [of.sum(dtype=np.float64) for of in retained]
        state["most"][...] = max(state["most"][0], item.most, retained[0].max())

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        if np.diff(first).max() > _MOST_PIXELS:
            return None
        return super().count_items(maps, first, known)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        from uqeval.kernels.number_items import rank_errors_of_items, sum_retained_of_items

        error, sigma, label = self.flat(maps)
        pixels = np.add.reduceat(label != VOID, first[:-1], dtype=np.int64)
        state["pixels"][:, 0] = pixels
        state["invalid"][:, 0] = np.diff(first) - pixels
        ranks_by_pixels = {
            n: ranks_of(n, self.percentile, self.rule) or (-1, -1, 0.0)
            for n in set(pixels.tolist())
        }
        lower, upper, weights = zip(*(ranks_by_pixels[n] for n in pixels.tolist()), strict=True)
        statistics = np.full((pixels.size, 2, 2), -np.inf)
        rank_errors_of_items(
            first, error, sigma, label, VOID, np.array(lower), np.array(upper),
            state["totals"], state["zero"], statistics,
        )  # fmt: skip
        state["own"][...] = [
            [between(low, high, weight) for low, high in both]
            for both, weight in zip(statistics.tolist(), weights, strict=True)
        ]
        limits = np.ascontiguousarray(state["own"][:, 0 if self.trimmed_by_ratio else 1])
        sum_retained_of_items(
            first, error, sigma, label, VOID, self.trimmed_by_ratio, limits,
            state["count"], state["sums"], state["most"],
        )  # fmt: skip

    def _collect(self, error: Array, sigma: Array, label: Array) -> _Collected:
        """Return the values in an interval around the percentiles, and sums; arrays are [pixel].

        A sample of the pixels gives the interval. If the interval misses a percentile, another
        pass collects all values.
        """
        from uqeval.kernels.error_sums import BLOCK
        from uqeval.kernels.ratios import look_at_item, take_sample

        all_values = (np.float32(-np.inf), np.float32(np.inf))
        limits = [all_values, all_values]
        if label.size >= FEW:
            sample = np.empty((2, -(-label.size // STEP)), np.float32)
            n = take_sample(error, sigma, label, VOID, STEP, sample)
            limits = [guess(v[:n], self.percentile / 100) for v in sample]
        while True:
            lanes, most = np.zeros((4, BLOCK)), np.full(BLOCK, -np.inf)
            counts = np.zeros(7, np.int64)
            collected = [
                np.empty(label.size // (1 if ends == all_values else _BUFFER_SHARE), dtype)
                for ends, dtype in zip(limits, ("f4", "f8"), strict=True)
            ]
            pixels_of_values = np.empty(collected[0].size if self.trimmed_by_ratio else 0, np.int32)
            look_at_item(
                error, sigma, label, VOID, np.array(limits), self.trimmed_by_ratio, lanes, most,
                counts, *collected, pixels_of_values,
            )  # fmt: skip
            pixels, zeros, infinite, *collected_counts = counts.tolist()
            below, inside_counts = collected_counts[:2], collected_counts[2:]
            capacities = [values.size for values in collected]
            ranks = ranks_of(pixels, self.percentile, self.rule)
            if ranks is None:
                break
            lower, upper, _ = ranks
            wrong = [
                k
                for k in (0, 1)
                if below[k] > lower
                or upper >= below[k] + inside_counts[k]
                or inside_counts[k] > capacities[k]
            ]
            if not wrong:
                break
            for k in wrong:
                limits[k] = all_values

        values = [collected[k][: inside_counts[k]] for k in (0, 1)]
        return _Collected(
            pixels, zeros, infinite, ranks, below, values, pixels_of_values,
            lanes.sum(axis=1), float(most.max()),
        )  # fmt: skip


#: Every `STEP`-th pixel is in the sample that shows between which values a rank lies. `STEP` is a
#: prime, so that the sample has pixels of all columns of most images. For fewer than `FEW` pixels
#: there is no sample.
STEP, FEW = 127, 1 << 16
#: Half the width of the interval, in standard deviations of the rank in the sample.
_WIDTH = 4.0


def guess(sample: Array, share: float) -> tuple[Any, Any]:
    """Return two values that very likely enclose the value with this share of all below it."""
    n = sample.size
    wide = _WIDTH * math.sqrt(n * share * (1 - share)) + 1
    first, last = round(n * share - wide), round(n * share + wide)
    ranks = [rank for rank in (first, last) if 0 <= rank < n]
    ordered = np.partition(sample, ranks) if ranks else sample
    return (
        ordered[first] if 0 <= first < n else np.float32(-np.inf),
        ordered[last] if last < n else np.float32(np.inf),
    )


def statistics(values: Array, lower: int, upper: int) -> tuple[float, float]:
    """Return the values of rank `lower` and of the same or the next, `upper`, from 0 on."""
    # The next rank is the minimum of the values above. Partitioning at both ranks takes twice as
    # long.
    ordered = np.partition(values, lower)
    above = ordered[upper:].min() if upper > lower else ordered[lower]
    return float(ordered[lower]), float(above)
