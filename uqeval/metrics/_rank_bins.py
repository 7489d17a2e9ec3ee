"""Pixels and errors in bins of a score, which become finer with each pass.

`RankBins` are read from `RankedErrors` states. Bins ascend by score. They are ties (all 32 bits of
the key known) or bins, whose pixels are counted as a tie until a further pass splits them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State, np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from uqeval.tallies.ranked_errors import RankedErrors

#: Relative width of the bins of 19 high bits, which states are saved by: 10 bits of the mantissa.
BIN_WIDTH = 2.0**-10


@dataclass(frozen=True)
class RankBins:
    """Bins [i], ascending: first key, low bits not separated, pixels (never 0), errors."""

    key: Array
    low: Array
    pixels: Array
    errors: Array

    @classmethod
    def from_state(cls, tally: RankedErrors, state: State) -> RankBins:
        """Return the bins of all groups of a state together."""
        return cls.by_group(tally, state, ())[None]

    @classmethod
    def by_group(
        cls, tally: RankedErrors, state: State, groups: Iterable[int]
    ) -> dict[int | None, RankBins]:
        """Return the bins of all groups of a state together (None), and of each of `groups`.

        The rows of the tally must be in ascending order.
        """
        (at, pixels), (at_errors, own_errors) = map(_entries, tally.thin(state))
        errors = np.zeros(at.size, own_errors.dtype)
        errors[np.searchsorted(at, at_errors)] = own_errors
        row_groups, prefixes = np.array(tally.bins, np.int64).reshape(-1, 2).T
        rows = np.arange(prefixes.size + 1)
        first = np.searchsorted(at, rows << tally.bits)  # entry of each row
        moved = (prefixes - rows[:-1]) << tally.bits
        key = (at + np.repeat(moved, np.diff(first))) << tally.rest
        together = cls._of(tally, key, pixels, errors)

        def bins_of(group: int) -> RankBins:
            entries = slice(*first[np.searchsorted(row_groups, (group, group + 1))])
            return cls._of(tally, key[entries], pixels[entries], errors[entries])

        return {
            None: together._without_repeats() if tally.by_class else together._sorted(),
            **{group: bins_of(group) for group in groups},
        }

    @classmethod
    def _of(cls, tally: RankedErrors, key: Array, pixels: Array, errors: Array) -> RankBins:
        return cls(key, np.full(key.size, tally.rest), pixels, errors)

    @classmethod
    def nothing(cls) -> RankBins:
        """Return the bins of no pixels."""
        empty = np.zeros(0, np.int64)
        return cls(empty, empty, empty, empty)

    def with_split(self, finer: RankBins, skip: int, prefixes: Array) -> RankBins:
        """Return these bins with `finer` in place of those that have one of the ascending
        `prefixes`."""
        low = 32 - skip
        # Bins ascend, so those of a prefix are a range: to look up each bin takes much longer.
        ends = np.searchsorted(self.key, np.stack([prefixes, prefixes + 1], axis=1) << low)
        lengths = np.diff(ends.reshape(-1), prepend=0, append=self.key.size)
        retained = np.repeat(np.arange(lengths.size) % 2 == 0, lengths)
        return self.merged_with(finer, retained)

    def merged_with(self, other: RankBins, retained: Any = slice(None)) -> RankBins:
        """Return the `retained` bins and all bins of another object, which shares no key."""
        return RankBins(
            np.concatenate([self.key[retained], other.key]),
            np.concatenate([self.low[retained], other.low]),
            np.concatenate([self.pixels[retained], other.pixels]),
            np.concatenate([self.errors[retained], other.errors]),
        )._sorted()

    def _sorted(self) -> RankBins:
        if (self.key[1:] > self.key[:-1]).all():
            return self
        order = np.argsort(self.key, kind="stable")
        return RankBins(self.key[order], self.low[order], self.pixels[order], self.errors[order])

    def _without_repeats(self) -> RankBins:
        """Return the bins ascending, those of the same key added up; pixels and errors are
        counts."""
        order = np.argsort(self.key, kind="stable")
        key = self.key[order]
        last = np.flatnonzero(np.append(key[1:] != key[:-1], True)[: key.size])
        # Differences of cumulative sums take a third of the time of `reduceat`.
        pixels, errors = (
            np.diff(np.cumsum(values[order])[last], prepend=0)
            for values in (self.pixels, self.errors)
        )
        return RankBins(key[last], self.low[last], pixels, errors)

    @cached_property
    def open(self) -> Array:
        """Return a mask of the bins that may hold several scores."""
        return (self.low > 0) & (self.pixels > 1)

    @cached_property
    def upto(self) -> Array:
        """Return the pixels up to the end of each bin."""
        return np.cumsum(self.pixels)

    @cached_property
    def errors_upto(self) -> Array:
        """Return the errors up to the end of each bin."""
        return np.cumsum(self.errors)

    @cached_property
    def right(self) -> Array:
        """Return the pixels of each bin without errors, where errors are counts."""
        return self.pixels - self.errors

    @cached_property
    def right_upto(self) -> Array:
        """Return the pixels without errors up to the end of each bin."""
        return self.upto - self.errors_upto

    @property
    def total(self) -> int:
        """Return all pixels."""
        return int(self.upto[-1]) if self.upto.size else 0

    @property
    def zeros(self) -> list[int]:
        """Return the bin of score 0, or None. After it is split, it has no other scores."""
        from uqeval.tallies.rank_keys import ZERO_KEY

        return np.flatnonzero(self.key == ZERO_KEY).tolist()

    def prefixes(self, bins: Any, skip: int) -> list[int]:
        """Return the high `skip` bits of the keys of some bins."""
        prefixes: list[int] = np.unique(self.key[bins] >> (32 - skip)).tolist()
        return prefixes


def _entries(entries: tuple[Array | None, Array]) -> tuple[Array, Array]:
    """Return the places and values of a field that are not 0."""
    places, values = entries
    if places is not None:
        return places, values
    places = np.flatnonzero(values)
    return places, values[places]
