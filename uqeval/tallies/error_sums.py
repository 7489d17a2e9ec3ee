"""Sums of errors and of their predicted standard deviations, also by interval of the target; counts
of targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from uqeval.arrays import Array, Floats, Maps, State, np
from uqeval.maps.names import TARGET_COUNTS, VOID
from uqeval.tallies._contract import KnownItems, Tally
from uqeval.tallies._fields import CountedItems, Counts, Field, Flaws
from uqeval.tallies.rank_keys import COARSE, FINE_BITS, rows_of_bins

#: Targets this close below an edge belong to the interval above, in steps.
_EDGE = 1e-9


@dataclass(frozen=True)
class Intervals:
    """`count` intervals [k·step, (k + 1)·step) of the target from k = `base` on.

    See `place_of` for the interval of a target.
    """

    step: float
    base: int
    count: int

    def values(self, maps: Maps) -> Array:
        """Return the interval [y, x] of each pixel, counted from `base`; -1 outside of all, and
        where void.

        Void pixels must separate runs of one interval: sums are added up per run, so joining two
        runs would change the last digit.
        """
        k = place_of(maps["target"], self.step) - self.base
        k[(k < 0) | (k >= self.count) | (maps["label"] == VOID)] = -1
        return k.astype(np.int32)


def place_of(target: Array | float, step: float) -> Floats:
    """Return ⌊y / step⌋ of float64 targets.

    A target less than 1e-9·step below an edge belongs to the interval above it, because 0.7 / 0.1
    is 6.999999999999999 in float64.
    """
    return np.floor(np.asarray(target, np.float64) / step + _EDGE)


def groups_of(intervals: Intervals | None, maps: Maps) -> Array:
    """Return the interval of each pixel; 0 without intervals."""
    if intervals is not None:
        return intervals.values(maps)
    return np.broadcast_to(np.int32(0), maps["label"].shape)


@dataclass(frozen=True)
class ErrorSums(Tally):
    """Counts and sums over the evaluated pixels, by group (interval of the target).

    - `sums` [group, (ε, ε², σ, σ², y)]
    - `zero` [group, (σ = 0, of these ε > 0)]
    - `least`, `most`: the extremes of the target
    - `within` [group]: Σ (y - ȳ)² about the mean ȳ of each item, which gives the variance of the
      target without cancellation (Chan et al. 1983)
    - `means` [group]: Σ ȳ² over the pixels, for the variance between items
    - `rest` [group]: Σ (y - ȳ), the rounding error of ȳ in float64
    - `invalid` [1]: pixels that are not evaluated
    """

    id: ClassVar[str] = "error_sums"
    added: ClassVar[tuple[str, ...]] = ("rest",)
    counts_void: ClassVar[bool] = True
    sigma: str = "sigma"
    intervals: Intervals | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", "target", self.sigma)

    @property
    def fields(self) -> dict[str, Field]:
        n = self.intervals.count if self.intervals else 1
        return {
            "count": Field((n,), "int64"),
            "sums": Field((n, 5), "float64", signed=True),
            "zero": Field((n, 2), "int64"),
            "least": Field((n,), "float64", "min"),
            "most": Field((n,), "float64", "max"),
            "within": Field((n,), "float64"),
            "means": Field((n,), "float64"),
            "invalid": Field((1,), "int64"),
            "rest": Field((n,), "float64", signed=True),
        }

    def flaws(self, state: State) -> Flaws:
        count, zero = state["count"], state["zero"]
        is_wrong = (zero[..., 0] > count) | (zero[..., 1] > zero[..., 0])
        yield "more pixels with a standard deviation of 0 than pixels", is_wrong
        yield "a negative sum of errors or of standard deviations", state["sums"][..., :4] < 0
        yield "a minimum above the maximum", (state["least"] > state["most"])[count > 0]

    def pixels(self, state: State) -> Counts | None:
        return None if self.intervals else state["count"][..., 0] + state["invalid"][..., 0]

    def evaluated(self, state: State) -> Counts | None:
        return None if self.intervals else state["count"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.error_sums import sum_errors

        item_state = self.empty()
        if self.intervals is None:
            super().update(item_state, maps)
        else:
            item_state["invalid"] += sum_errors(
                maps["error"], maps[self.sigma], maps["target"], maps["label"], VOID,
                self.intervals.values(maps), item_state["count"], item_state["sums"],
                item_state["zero"],
                item_state["least"], item_state["most"], item_state["within"], item_state["rest"],
            )  # fmt: skip
            _add_means(item_state)
        self.merge(state, item_state)

    def count_items(
        self, maps: Maps, first: Array, known: KnownItems | None = None
    ) -> CountedItems | None:
        return None if self.intervals else super().count_items(maps, first, known)

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        """Add all pixels of each item as one group to an empty state."""
        from uqeval.kernels.number_items import sum_errors_of_items

        inputs = (maps[name].reshape(-1) for name in ("error", self.sigma, "target", "label"))
        sum_errors_of_items(
            first, *inputs, VOID, state["count"], state["sums"], state["zero"], state["least"],
            state["most"], state["within"], state["invalid"], state["rest"],
        )  # fmt: skip
        _add_means(state)

    def centred(self, states: State) -> State:
        """Return the items' states with the targets counted from the first item's mean.

        The variance of the target stays the same, and the sums of its means keep their digits.
        `within` of items with one target is 0, not its rounding.
        """
        count, sums = states["count"], states["sums"].copy()
        nonempty = count > 0
        with np.errstate(all="ignore"):
            mean = np.where(nonempty, sums[..., 4] / count, np.nan)
            first = np.argmax(~np.isnan(mean), axis=0)[None]
            centre = np.take_along_axis(mean, first, axis=0)
            about = count * (mean - centre) + states["rest"]
            sums[..., 4] = np.where(nonempty, about, sums[..., 4])
            means = np.where(nonempty, sums[..., 4] ** 2 / count, states["means"])
        rest = np.zeros_like(states["rest"])
        within = np.where(states["least"] == states["most"], 0.0, states["within"])
        return states | {"sums": sums, "means": means, "rest": rest, "within": within}


def _add_means(state: State) -> None:
    """Add Σ ȳ² of each group."""
    state["means"] += state["sums"][..., 4] ** 2 / np.maximum(state["count"], 1)


@dataclass(frozen=True)
class SumsBelow(Tally):
    """Sums over evaluated pixels, by the number of `limits` below map `of`.

    `limits` ascend, and each group has its own. State, [group, limits below]: `count`, `sums` of
    (ε, σ), and `most`, the largest ε. The pixels at or below limit k are in the first k + 1
    entries. Pixels above all limits are not counted. Comparisons are in float64.
    """

    id: ClassVar[str] = "sums_below"
    of: str
    limits: tuple[tuple[float, ...], ...]
    sigma: str = "sigma"
    intervals: Intervals | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(("label", "error", self.of, self.sigma))) + (
            ("target",) if self.intervals else ()
        )

    @property
    def fields(self) -> dict[str, Field]:
        shape = (len(self.limits), len(self.limits[0]))
        return {
            "count": Field(shape, "int64"),
            "sums": Field((*shape, 2), "float64"),
            "most": Field(shape, "float64", "max"),
        }

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.error_sums import sum_below

        names = (self.of, "error", self.sigma, "label")
        sum_below(
            *(maps[name] for name in names), VOID, groups_of(self.intervals, maps),
            np.array(self.limits, np.float64), state["count"], state["sums"], state["most"],
        )  # fmt: skip


@dataclass(frozen=True)
class ErrorsUpto(Tally):
    """Evaluated pixels with ε, as float32, up to a `limit`: `count` [1], and `sum` [1] of ε.

    `fine` [entry of bins, low bits]: Σε by the low bits of the rank key, in the coarse `bins` above
    the limit.
    """

    id: ClassVar[str] = "errors_upto"
    keeps_items: ClassVar[bool] = False
    inputs = ("label", "error")
    limit: float
    bins: tuple[int, ...] = ()

    @property
    def fields(self) -> dict[str, Field]:
        return {
            "count": Field((1,), "int64"),
            "sum": Field((1,), "float64"),
            "fine": Field((len(self.bins), 1 << FINE_BITS), "float64"),
        }

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.error_sums import BLOCK, sum_upto
        from uqeval.kernels.ratios import sum_finely

        error, label = (maps[name].reshape(-1) for name in ("error", "label"))
        lanes = np.zeros(BLOCK)
        state["count"] += sum_upto(error, np.float32(self.limit), label, VOID, lanes)
        state["sum"] += lanes.sum()
        if self.bins:
            sum_finely(error, label, VOID, *self._rows_of_bins, state["fine"])

    @cached_property
    def _rows_of_bins(self) -> tuple[Array, Array]:
        """Return which coarse bins have a row, and which."""
        return rows_of_bins(self.bins, (COARSE,))


@dataclass(frozen=True)
class TargetCounts(Tally):
    """Counts of evaluated targets, and of each item their ends.

    - `counts` [3]: all, those that are exactly 0, those below 0
    - `ends` [7]: the smallest target, its count and the next above; the largest, its count and the
      next below; the number of different values, at most `FEW_VALUES`. Of several items, the
      largest of each, which means nothing.
    """

    id: ClassVar[str] = "target_counts"
    added: ClassVar[tuple[str, ...]] = ("ends",)
    inputs = (TARGET_COUNTS,)
    fields: ClassVar[dict[str, Field]] = {
        "counts": Field((3,), "int64"),
        "ends": Field((7,), "float64", "max"),
    }

    def update_items(self, state: State, maps: Maps, first: Array) -> None:
        counts = maps[TARGET_COUNTS].reshape(-1, 10)
        state["counts"] += counts[:, :3].astype(np.int64)
        np.maximum(state["ends"], counts[:, 3:], out=state["ends"])
