"""Exact sparsification of single items: pixels are sorted only in the bins that contain a cut."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from uqeval.tallies._contract import Tally
from uqeval.tallies._errors import Error
from uqeval.tallies._fields import Field
from uqeval.tallies._sorted import bins_with_ties, ties
from uqeval.tallies._values import Uncertainty, void_of
from uqeval.tallies.ranked_errors import RankedErrors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uqeval.tallies._fields import Counts, Maps, State, Thin


@dataclass(frozen=True)
class Cuts:
    """How many of n pixels are kept after each of `steps` removals, and what of ties.

    `keep`: n - ⌊kn/steps⌋ ("floor"); ⌊(1 - k/steps)·n⌋ in floating point ("truncate", as Python's
    int); or those up to the (1 - k/steps) quantile, n - ⌈k(n - 1)/steps⌉ ("quantile"). `ties` are
    averaged, or kept together.
    """

    steps: int = 100
    keep: str = "floor"
    ties: str = "averaged"

    def kept(self, n: int) -> list[int]:
        """Return pixels kept at fraction k/steps, k = 0 … steps - 1."""
        import numpy as np

        counts: list[int] = self.kept_of(np.array([n], np.int64))[0].tolist()
        return counts

    def kept_of(self, n: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return `kept` of several numbers of pixels: [n, step]."""
        import numpy as np

        k, n = np.arange(self.steps), n[:, None]
        if self.keep == "truncate":
            return ((1.0 - k * (1 / self.steps)) * n).astype(np.int64)
        if self.keep == "quantile":
            return n - -(-k * (n - 1) // self.steps)
        return n - k * n // self.steps

    def sums(
        self, cumulative: NDArray[Any], errors: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return pixels kept and their error sums at each step, from both up to the end of each
        tie.
        """
        import numpy as np

        retained = self.kept_of(np.array([cumulative[-1]], np.int64))[0]
        if self.ties == "together":
            retained = cumulative[np.searchsorted(cumulative, retained)]
        last = np.searchsorted(cumulative, retained)
        pixels, total = np.append(0, cumulative), np.append(0.0, errors)
        share = (retained - pixels[last]) / (cumulative[last] - pixels[last])
        with np.errstate(invalid="ignore"):  # errors may be infinite
            interpolated = total[last] + share * (errors[last] - total[last])
        # At the end of a tie the sum as it was added up, so that equal sets have equal sums.
        return retained, np.where(retained == cumulative[last], errors[last], interpolated)


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

    def flaw(self, state: State) -> str | None:
        for name in ("kept", "kept_by_oracle"):
            if (state[name] > state[name][..., :1]).any():
                return "more pixels kept after a removal than before"
        return None

    def evaluated(self, state: State) -> Counts:
        return state["kept"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        self.fold(state, self.thin_of(maps))

    def thin_of(self, maps: Maps, known: dict[Tally, Thin] | None = None) -> Thin:
        import numpy as np

        known = {} if known is None else known
        state, error = self.empty(), self.error.values(maps)
        ways: tuple[Uncertainty | Error, ...] = (self.score, self.error.ranking)
        for i, ranking in enumerate(ways):
            ranked = RankedErrors(ranking, self.error, self.classes)
            coarse = known[ranked] if ranked in known else ranked.thin_of(maps)
            assert coarse is not None
            known[ranked] = coarse
            if not coarse[0][1].size:
                break
            split_bins = partial(
                ties,
                error if ranking == self.error else ranking.values(maps),
                error,
                maps["label"],
                void_of(self.classes),
                squared=self.error.squared,
            )
            _, pixels, errors = bins_with_ties(coarse, self._bins_to_sort, split_bins)
            cumulative, sums = np.cumsum(pixels), np.cumsum(errors)
            retained, cumulative_errors = self.cuts.sums(cumulative, sums)
            state[("kept", "kept_by_oracle")[i]] += retained
            state[("errors", "oracle")[i]] += cumulative_errors
            if self.every_rank:
                state["areas"][i] += _area(cumulative, sums)
        return self.thin(state)

    def _bins_to_sort(self, cumulative: NDArray[Any]) -> NDArray[Any]:
        """Return the bins in which the order of pixels matters; `cumulative`: pixels up to the end
        of each bin."""
        import numpy as np

        if self.every_rank:
            return np.arange(cumulative.size)
        retained = np.array(self.cuts.kept(int(cumulative[-1])), np.int64)
        bins = np.searchsorted(cumulative, retained)
        inner_bins: NDArray[Any] = bins[cumulative[bins] != retained]
        return inner_bins


def _area(cumulative: NDArray[Any], errors: NDArray[Any]) -> float:
    import numpy as np

    m = np.arange(1, cumulative[-1] + 1)
    risk = np.interp(m, np.append(0, cumulative), np.append(0.0, errors)) / m
    return float(risk.sum() - (risk[0] + risk[-1]) / 2)
