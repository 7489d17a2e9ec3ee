"""Exact ranks in many groups at once: keys are counted by 12, 10 and 10 bits in three passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.names import VOID
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field
from uqeval.tallies.error_sums import Intervals, groups_of
from uqeval.tallies.rank_keys import between, keys_of, ranks_of, value_of

#: Bits of a key that each pass counts, from the highest on.
DIGITS = (12, 10, 10)


@dataclass(frozen=True)
class Digits(Tally):
    """Histogram of some bits of the rank keys of map `of`, over evaluated pixels.

    `level` selects the bits in `DIGITS`. `wanted` (group, bits above), ascending, selects the keys;
    at level 0 it has each group once. The group is the interval of the target. State: `counts`
    [entry of wanted, bits].
    """

    id: ClassVar[str] = "digits"
    keeps_items: ClassVar[bool] = False
    of: str
    intervals: Intervals
    level: int
    wanted: tuple[tuple[int, int], ...]

    @property
    def any_order(self) -> bool:
        """Return True: these are counts."""
        return True

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "target") if self.of == "target" else ("label", "target", self.of)

    @property
    def fields(self) -> dict[str, Field]:
        return {"counts": Field((len(self.wanted), 1 << DIGITS[self.level]), "int64")}

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.error_sums import count_digits

        groups = np.array([g for g, _ in self.wanted], np.int64)
        first = np.searchsorted(groups, np.arange(self.intervals.count + 1))
        count_digits(
            keys_of(maps[self.of]), maps["label"], VOID, groups_of(self.intervals, maps),
            DIGITS[self.level], sum(DIGITS[self.level + 1 :]),
            np.array([b for _, b in self.wanted], np.int64), first, state["counts"],
        )  # fmt: skip


class GroupRanks:
    """Find the order statistics for one percentile of every group, digit by digit."""

    def __init__(self, counts: Array, percentile: float, rule: str) -> None:
        """Take `counts` [group], the number of values of each."""
        self.ranks = [ranks_of(int(n), percentile, rule) for n in counts]
        # By group and rank: the bits so far, and the rank among the keys that share them.
        self._so_far: dict[tuple[int, int], tuple[int, int]] = {
            (g, rank): (0, rank) for g, ranks in enumerate(self.ranks) if ranks
            for rank in ranks[:2]
        }  # fmt: skip

    def wanted(self) -> tuple[tuple[int, int], ...]:
        """Return the entries for the next level of `Digits`."""
        return tuple(sorted({(g, bits) for (g, _), (bits, _) in self._so_far.items()}))

    def refine(self, tally: Digits, counts: Array) -> None:
        """Add the counts of the keys in `wanted`."""
        entry = {prefix: i for i, prefix in enumerate(tally.wanted)}
        below = np.cumsum(counts, axis=1)
        for (g, rank), (bits, within) in self._so_far.items():
            row = below[entry[g, bits]]
            digit = int(np.searchsorted(row, within, side="right"))
            remainder = within - (int(row[digit - 1]) if digit else 0)
            self._so_far[g, rank] = ((bits << DIGITS[tally.level]) | digit, remainder)

    def values(self) -> list[float | None]:
        """Return the percentile of every group; None where it has no values."""
        return [
            None if ranks is None else between(
                value_of(self._so_far[g, ranks[0]][0]), value_of(self._so_far[g, ranks[1]][0]),
                ranks[2],
            )
            for g, ranks in enumerate(self.ranks)
        ]  # fmt: skip
