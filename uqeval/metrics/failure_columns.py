"""How well an uncertainty finds errors, of many sets of items at once: pixels and errors by bin.

The formulas of `failure_scores` over [set, bin], bins of ascending uncertainty that any set
occupies; the pixels of a bin are a tie, and bins without pixels of a set change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from uqeval.metrics._columns import over
from uqeval.metrics._tiles import OneTile, RankedSets
from uqeval.metrics.failure_scores import COVERAGES, RISKS
from uqeval.metrics.sparsification_curves import harmonics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.metrics._tiles import Tiles


@dataclass(frozen=True)
class SetRankBins:
    """Pixels and errors of each bin [set, bin], ascending."""

    states: RankedSets

    @classmethod
    def of(cls, states: SetStates) -> SetRankBins:
        """Return the bins of states of `RankedErrors` of one row."""
        assert isinstance(states, RankedSets)
        return cls(states)

    @classmethod
    def of_arrays(cls, pixels: NDArray[Any], errors: NDArray[Any]) -> SetRankBins:
        """Return the bins of arrays [set, bin]."""
        fields = {"pixels": pixels[:, None], "errors": errors[:, None]}
        return cls(RankedSets(fields, tiles=OneTile(fields)))

    @property
    def tiles(self) -> Tiles:
        """Tiles of bins."""
        return self.states.tiles

    @property
    def pixels(self) -> NDArray[Any]:
        """Pixels of each bin."""
        return self.states["pixels"][:, 0]

    @property
    def errors(self) -> NDArray[Any]:
        """Errors of each bin."""
        return self.states["errors"][:, 0]

    @cached_property
    def upto(self) -> NDArray[Any]:
        """Pixels up to the end of each bin."""
        found: NDArray[Any] = self.pixels.cumsum(axis=1)
        return found

    @cached_property
    def errors_upto(self) -> NDArray[Any]:
        """Errors up to the end of each bin."""
        found: NDArray[Any] = self.errors.cumsum(axis=1)
        return found

    @property
    def total(self) -> NDArray[Any]:
        """All pixels [set]."""
        found: NDArray[Any] = self.tiles.totals("pixels")[:, 0].sum(axis=1)
        return found

    @property
    def wrong(self) -> NDArray[Any]:
        """All errors [set]."""
        found: NDArray[Any] = self.tiles.totals("errors")[:, 0].sum(axis=1)
        return found


def columns(ladder: SetRankBins, wanted: Collection[str]) -> dict[Place, NDArray[Any]]:
    """Return the wanted scores that a ladder gives."""
    found: dict[Place, NDArray[Any]] = {}
    for name, formula in _SCORES.items():
        if name in wanted:
            found[name,] = formula(ladder)
    if "risk_at_coverage" in wanted:
        found |= {("risk_at_coverage", str(p)): _risk_at(ladder, p) for p in COVERAGES}
    if "coverage_at_risk" in wanted:
        found |= {("coverage_at_risk", str(p)): _coverage_at(ladder, p) for p in RISKS}
    return found


def _auroc(ladder: SetRankBins) -> NDArray[Any]:
    wrong, right = ladder.wrong, ladder.total - ladder.wrong
    # Pairs of a wrong pixel and a right one below it; those of a bin count half.
    pairs = _dot(ladder.errors, ladder.upto - ladder.pixels / 2)
    own = _dot(ladder.errors, ladder.errors_upto - ladder.errors / 2)
    return over(pairs - own, wrong * right)


def _augrc(ladder: SetRankBins) -> NDArray[Any]:
    area = _dot(ladder.pixels, ladder.errors_upto - ladder.errors / 2)
    return over(over(area, ladder.total), ladder.total)


def _aurc(ladder: SetRankBins) -> NDArray[Any]:
    import numpy as np

    rate = ladder.errors_upto / np.maximum(ladder.upto, 1)
    return over(_dot(ladder.pixels, rate), ladder.total)


def _e_aurc(ladder: SetRankBins) -> NDArray[Any]:
    wrong, total = ladder.wrong, ladder.total
    right = total - wrong
    best = over(wrong - right * harmonics(right, total), total)
    found: NDArray[Any] = _aurc(ladder) - best
    return found


def _aupr_error(ladder: SetRankBins) -> NDArray[Any]:
    import numpy as np

    below = ladder.upto - ladder.pixels
    hits = ladder.wrong[:, None] - (ladder.errors_upto - ladder.errors)
    rate = hits / np.maximum(ladder.total[:, None] - below, 1)
    return over(_dot(ladder.errors, rate), ladder.wrong)


def _aupr_success(ladder: SetRankBins) -> NDArray[Any]:
    import numpy as np

    rate = (ladder.upto - ladder.errors_upto) / np.maximum(ladder.upto, 1)
    return over(_dot(ladder.pixels - ladder.errors, rate), ladder.total - ladder.wrong)


def _fpr95(ladder: SetRankBins) -> NDArray[Any]:
    import numpy as np

    wrong, right = ladder.wrong, ladder.total - ladder.wrong
    # The last bin with 20·(errors of it and above) >= 19·errors: at most 5 % lie below it.
    at = np.minimum(_first(ladder.errors_upto, wrong // 20, "right"), ladder.upto.shape[1] - 1)
    upto, wrong_upto = _at(ladder.upto, at), _at(ladder.errors_upto, at)
    below = upto - _at(ladder.pixels, at) - (wrong_upto - _at(ladder.errors, at))
    return np.where(wrong > 0, over(right - below, right), np.nan)


def _risk_at(ladder: SetRankBins, percent: int) -> NDArray[Any]:
    at = _first(ladder.upto, -(-percent * ladder.total // 100), "left")
    return over(_at(ladder.errors_upto, at), _at(ladder.upto, at))


def _coverage_at(ladder: SetRankBins, percent: int) -> NDArray[Any]:
    import numpy as np

    good = 100 * ladder.errors_upto <= percent * ladder.upto
    return over(np.where(good, ladder.upto, 0.0).max(axis=1, initial=0.0), ladder.total)


def _first(
    upto: NDArray[Any], limits: NDArray[Any], side: Literal["left", "right"]
) -> NDArray[Any]:
    """The first bin [set] that reaches (or, from the "right", passes) the limit of its set."""
    import numpy as np

    pairs = zip(upto, limits, strict=True)
    return np.array([own.searchsorted(limit, side) for own, limit in pairs], np.int64)


def _dot(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Σ_bin a·b of each set."""
    import numpy as np

    found: NDArray[Any] = np.einsum("sb,sb->s", a, b)
    return found


def _at(values: NDArray[Any], bins: NDArray[Any]) -> NDArray[Any]:
    """The value [set] of each set at its bin; 0 where there are no bins."""
    import numpy as np

    if not values.shape[1]:
        return np.zeros(len(values))
    found: NDArray[Any] = np.take_along_axis(values, bins[:, None], axis=1)[:, 0]
    return found


_SCORES: dict[str, Callable[[SetRankBins], NDArray[Any]]] = {
    "auroc": _auroc, "aupr_error": _aupr_error, "aupr_success": _aupr_success, "fpr95": _fpr95,
    "aurc": _aurc, "e_aurc": _e_aurc, "augrc": _augrc,
}  # fmt: skip
