"""Pixels and errors in bins of a score, which become finer with each pass.

`RankBins` are read from `RankedErrors` states. Bins ascend by score. They are ties (all 32 bits of
the key known) or bins, whose pixels are counted as a tie until a further pass splits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from uqeval.tallies import RankedErrors
    from uqeval.tallies._fields import State

#: Relative width of the bins of 19 high bits, which states are saved by: 10 bits of the mantissa.
BIN_WIDTH = 2.0**-10
#: The key of 0; negative scores have smaller keys.
ZERO_KEY = 1 << 31


@dataclass(frozen=True)
class RankBins:
    """Bins [i], ascending: first key, low bits not separated, pixels (never 0), errors."""

    key: NDArray[Any]
    low: NDArray[Any]
    pixels: NDArray[Any]
    errors: NDArray[Any]

    @classmethod
    def from_state(cls, tally: RankedErrors, state: State, group: int | None = None) -> RankBins:
        """Return the bins of one group of a state, or of all groups together (None)."""
        import numpy as np

        rows: Any = [i for i, (g, _) in enumerate(tally.bins) if group in (None, g)]
        prefix = np.array([tally.bins[i][1] for i in rows], np.int64)
        if len(rows) == len(tally.bins):
            rows = slice(None)  # no copy
        pixels, errors = (state[name][rows] for name in ("pixels", "errors"))
        if group is None and tally.by_class:
            prefix, place = np.unique(prefix, return_inverse=True)
            pixels, errors = (_sums_by_place(v, place, len(prefix)) for v in (pixels, errors))
        at = np.flatnonzero(pixels != 0)  # of booleans, which is several times as fast
        low = at & ((1 << tally.bits) - 1)
        key = ((prefix[at >> tally.bits] << tally.bits) | low) << tally.rest
        return cls(
            key, np.full(key.shape, tally.rest), pixels.reshape(-1)[at], errors.reshape(-1)[at]
        )._sorted()

    @classmethod
    def nothing(cls) -> RankBins:
        """Return the bins of no pixels."""
        import numpy as np

        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, empty)

    def with_split(self, finer: RankBins, skip: int, prefixes: Collection[int]) -> RankBins:
        """Return these bins with `finer` in place of those that have one of the `prefixes`."""
        import numpy as np

        is_retained = ~np.isin(self.key >> (32 - skip), list(prefixes))
        return self.merged_with(finer, is_retained)

    def merged_with(self, other: RankBins, retained: Any = slice(None)) -> RankBins:
        """Return the `retained` bins and all bins of another object, which shares no key."""
        import numpy as np

        return RankBins(
            np.concatenate([self.key[retained], other.key]),
            np.concatenate([self.low[retained], other.low]),
            np.concatenate([self.pixels[retained], other.pixels]),
            np.concatenate([self.errors[retained], other.errors]),
        )._sorted()

    def _sorted(self) -> RankBins:
        import numpy as np

        if (self.key[1:] > self.key[:-1]).all():
            return self
        order = np.argsort(self.key, kind="stable")
        return RankBins(self.key[order], self.low[order], self.pixels[order], self.errors[order])

    @property
    def open(self) -> NDArray[Any]:
        """Return a mask of the bins that may hold several scores."""
        is_open: NDArray[Any] = (self.low > 0) & (self.pixels > 1)
        return is_open

    @cached_property
    def upto(self) -> NDArray[Any]:
        """Return the pixels up to the end of each bin."""
        import numpy as np

        cumulative: NDArray[Any] = np.cumsum(self.pixels)
        return cumulative

    @cached_property
    def errors_upto(self) -> NDArray[Any]:
        """Return the errors up to the end of each bin."""
        import numpy as np

        cumulative: NDArray[Any] = np.cumsum(self.errors)
        return cumulative

    @property
    def total(self) -> int:
        """Return all pixels."""
        return int(self.pixels.sum())

    @property
    def zeros(self) -> list[int]:
        """Return the bin of score 0, or None. After it is split, it has no other scores."""
        import numpy as np

        return np.flatnonzero(self.key == ZERO_KEY).tolist()

    def prefixes(self, bins: Any, skip: int) -> list[int]:
        """Return the high `skip` bits of the keys of some bins."""
        return sorted({int(k) for k in self.key[bins] >> (32 - skip)})


def _sums_by_place(values: NDArray[Any], place: NDArray[Any], rows: int) -> NDArray[Any]:
    import numpy as np

    total = np.zeros((rows, values.shape[1]), values.dtype)
    np.add.at(total, place, values)
    return total
