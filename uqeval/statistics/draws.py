"""Drawing items with replacement: how often each is in each resample.

The unit is the item, since the pixels of one image are not independent; or a group of items (a
drive, a city, a patient); or, in a video, a block of neighbouring pairs of frames.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import UsageError

DRAWS = 2000
_MOST = 100_000
#: Numbers of weights that are held at a time.
_BLOCK = 1 << 21


def rows(items: int) -> int:
    """How many sets of so many items are scored at a time."""
    return max(_BLOCK // max(items, 1), 1)


@dataclass(frozen=True)
class Resampling:
    """How items are drawn: `draws` times, from `seed`, in units of `groups` or of neighbours.

    `groups`: a group for each item; `sequences`: the sequence of each item, in order, whose blocks
    of ⌈n^⅓⌉ neighbours are the units. Neither: items by themselves.

    Raises `UsageError` for fewer than 100 draws, or more than 100,000.
    """

    draws: int = DRAWS
    seed: int = 0
    groups: tuple[str, ...] | None = None
    sequences: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 100 <= self.draws <= _MOST:
            raise UsageError(f"--draws {self.draws}; expected 100 to {_MOST}.")
        if self.seed < 0:
            raise UsageError(f"--seed {self.seed}; expected a whole number from 0 on.")

    @property
    def unit(self) -> str:
        """What is drawn: "group", "block" or "item"."""
        return "group" if self.groups else "block" if self.sequences else "item"

    def units(self, items: int) -> int:
        """How many units there are."""
        if self.groups is not None:
            return len(set(self.groups))
        if self.sequences is not None:
            return -(-items // block_size(items))
        return items

    def only(self, items: Sequence[int]) -> Resampling:
        """The same over some of the items."""
        groups, sequences = (
            None if each is None else tuple(each[i] for i in items)
            for each in (self.groups, self.sequences)
        )
        return Resampling(self.draws, self.seed, groups, sequences)

    def alone(self, items: int) -> Iterator[NDArray[np.int64]]:
        """Each group, or each item, by itself, [set, item], so many sets at a time."""
        names = np.array(self.groups if self.groups is not None else range(items))
        each = np.unique(names)
        for first in range(0, len(each), rows(items)):
            yield (each[first : first + rows(items), None] == names).astype(np.int64)

    def weights(self, items: int) -> Iterator[NDArray[np.int64]]:
        """How often each item is in each draw, [draw, item], so many draws at a time; the same for
        the same seed, however many at a time."""
        rng = np.random.default_rng(self.seed)
        drawn = self._drawn(items)
        for first in range(0, self.draws, rows(items)):
            yield drawn(rng, min(rows(items), self.draws - first))

    def _drawn(self, items: int) -> Callable[[np.random.Generator, int], NDArray[np.int64]]:
        """What makes so many further draws."""
        if self.groups is not None:
            names = {name: i for i, name in enumerate(dict.fromkeys(self.groups))}
            of = np.array([names[name] for name in self.groups])
            return lambda rng, draws: _counts(rng, len(names), draws)[:, of]
        if self.sequences is not None:
            follows = self._follows(items)
            return lambda rng, draws: _blocks(rng, follows, draws)
        return lambda rng, draws: _counts(rng, items, draws)

    def _follows(self, items: int) -> NDArray[np.int64]:
        """The items of the block that begins at each, [item, neighbour]; it goes around at the end
        of its sequence."""
        assert self.sequences is not None
        size = block_size(items)
        places = np.arange(items)
        follows = np.empty((items, size), np.int64)
        names = np.array(self.sequences)
        for name in dict.fromkeys(self.sequences):
            own = places[names == name]
            steps = (np.arange(own.size)[:, None] + np.arange(size)) % own.size
            follows[own] = own[steps]
        return follows


def _counts(rng: np.random.Generator, units: int, draws: int) -> NDArray[np.int64]:
    """How often each unit is among as many drawn."""
    found: NDArray[np.int64] = rng.multinomial(units, np.full(units, 1 / units), draws)
    return found


def _blocks(rng: np.random.Generator, follows: NDArray[np.int64], draws: int) -> NDArray[np.int64]:
    """How often each item is in as many blocks as hold all, which begin anywhere."""
    items, size = follows.shape
    starts = rng.integers(0, items, (draws, -(-items // size)))
    drawn = follows[starts].reshape(draws, -1)[:, :items]
    of = np.arange(draws)[:, None]
    found = np.bincount((of * items + drawn).reshape(-1), minlength=draws * items)
    return found.reshape(draws, items).astype(np.int64)


def block_size(items: int) -> int:
    """⌈n^⅓⌉ neighbours."""
    size = int(items ** (1 / 3) + 0.5)
    while size**3 < items:
        size += 1
    while size > 1 and (size - 1) ** 3 >= items:
        size -= 1
    return max(size, 1)
