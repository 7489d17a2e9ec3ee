"""Sums and percentiles of single items for n-MeRCI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from uqeval.tallies._fields import Field
from uqeval.tallies._ratios import OfErrors

if TYPE_CHECKING:
    from uqeval.tallies._fields import Counts, Maps, State

VOID = 255
#: Of an item's pixels, how many may lie where a percentile is guessed to be: one in so many.
_ROOM = 8


@dataclass(frozen=True)
class ItemErrors(OfErrors):
    """Evaluated pixels of an item: sums of errors, its own percentiles of λ = ε/σ and ε, and sums
    below.

    `pixels`, `totals` of (ε, σ), `zero` [1, (σ = 0, of them ε > 0)] and `invalid`, pixels that are
    not evaluated. `own` [(λ, ε)]: the item's percentiles by `rule` (-∞ without pixels), of many
    items the largest; `count`, `sums` of (ε, σ) and `most`, the largest ε, of the item's pixels
    with ε up to its percentile (Σσ of these is 0: nothing needs it), or, `trimmed_by_ratio`, with λ
    up to its own.
    """

    id: ClassVar[str] = "item_errors"
    counts_void: ClassVar[bool] = True
    percentile: float
    rule: str
    trimmed_by_ratio: bool = False
    sigma: str = "sigma"

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "pixels": Field((1,), "int64"),
            "totals": Field((2,), "float64"),
            "zero": Field((1, 2), "int64"),
            "invalid": Field((1,), "int64"),
            "own": Field((2,), "float64", "max"),
            "count": Field((1,), "int64"),
            "sums": Field((2,), "float64"),
            "most": Field((1,), "float64", "max"),
        }

    def flaw(self, state: State) -> str | None:
        pixels, zero = state["pixels"], state["zero"]
        kept = (state["count"] > pixels).any() or (zero[..., 0] > pixels).any()
        if kept or (zero[..., 1] > zero[..., 0]).any():
            return "more pixels kept than there are"
        return None

    def pixels(self, state: State) -> Counts:
        return state["pixels"][..., 0] + state["invalid"][..., 0]

    def evaluated(self, state: State) -> Counts:
        return state["pixels"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        """Add one item: collect the values in an interval around the percentiles.

        A sample gives the interval. If it misses a percentile, a second pass collects all
        values."""
        import numpy as np

        from uqeval.kernels.error_sums import BLOCK
        from uqeval.kernels.ratios import look_at_item, take_sample
        from uqeval.tallies._select import FEW, STEP, guess, statistics
        from uqeval.tallies.percentiles import between, ranks_of

        error, sigma, label = self.flat(maps)
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
                np.empty(label.size // (1 if ends == all_values else _ROOM), dtype)
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
            lower, upper, weight = ranks
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

        totals = lanes.sum(axis=1)
        state["pixels"] += pixels
        state["totals"] += totals[:2]
        state["zero"] += (zeros, infinite)
        state["invalid"] += label.size - pixels
        if ranks is None:
            return
        collected = [values[:n] for values, n in zip(collected, inside_counts, strict=True)]
        keys = [values.astype(np.float32, copy=False) for values in collected]
        percentiles = [
            between(*statistics(values, lower - n, upper - n), weight)
            for values, n in zip(keys, below, strict=True)
        ]
        k = 0 if self.trimmed_by_ratio else 1
        is_below = keys[k].astype(np.float64) <= percentiles[k]
        retained = [collected[k][is_below]]
        if self.trimmed_by_ratio:
            retained_pixels = pixels_of_values[: inside_counts[0]][is_below]
            retained = [error[retained_pixels], sigma[retained_pixels]]
        state["own"][...] = np.maximum(state["own"], percentiles)
        state["count"] += below[k] + retained[0].size
        state["sums"] += totals[2:]
        state["sums"][: len(retained)] += [of.sum(dtype=np.float64) for of in retained]
        state["most"][...] = max(state["most"][0], most.max(), retained[0].max())
