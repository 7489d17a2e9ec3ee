"""Saved states of items. Each is checked before use, because files may be forged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from uqeval.arrays import Ints, State
from uqeval.errors import StoreError, quoted

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally
    from uqeval.tallies._packing import LoadedItems

#: By view: the evaluated pixels of each item, -1 where they are unknown, and the tally that
#: counted them.
Evaluated = dict[str, tuple[Ints, str]]
#: The largest number of bytes of states that are checked together.
_MOST_BYTES = 1 << 23
#: The largest number of numbers in the states that become arrays together (8 MB).
_MOST_NUMBERS = 1 << 20


class StatesSource(Protocol):
    """Packed states of items, and the `index` that is needed to score them."""

    @property
    def index(self) -> dict[str, Any]:
        """Return names, records, settings and fitted numbers, as `uqeval.stores.states.saved` has
        them.
        """

    @property
    def path(self) -> str | Path:
        """Return its name in messages."""

    @property
    def evaluated(self) -> Evaluated:
        """Return by view how many pixels of each item which tally counted; filled as states are
        read.
        """

    def parameters(self) -> list[dict[str, Any]]:
        """Return id and parameters of each tally with states."""

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        """Return the state of each item of a tally, of `most` bytes at most, in the order of items.

        Raises `StoreError`, and `ValueError` for a block of states that is damaged.
        """


def checked_states(saved: StatesSource, tally: Tally) -> Iterator[tuple[bytes, State]]:
    """Yield the state of each item of a tally, packed and unpacked, in the order of items.

    Raises `StoreError` for states of another tally, for counts that no item can have given, and for
    counts that do not fit the size of the item or those of another tally.
    """
    for item, data in _states(saved, tally):
        try:
            state = tally.load(data)
        except ValueError as error:
            raise StoreError(_message(saved, item, str(error))) from None
        _check_counts(saved, tally, item, 1, tally.pixels(state), tally.evaluated(state))
        yield data, state


def checked_items(saved: StatesSource, tally: Tally) -> Iterator[tuple[list[bytes], LoadedItems]]:
    """Yield the states of a tally of some items in a row at a time, packed and loaded, in order.

    Raises `StoreError` as `checked_states` does.
    """
    first = 0
    for states in _together(saved, tally):
        try:
            loaded = tally.load_items(states)
        except ValueError as error:
            item, reason = _first_flaw(tally, states, str(error))
            raise StoreError(_message(saved, first + item, reason)) from None
        _check_counts(saved, tally, first, len(states), loaded.pixels, loaded.evaluated)
        yield states, loaded
        first += len(states)


def checked_arrays(saved: StatesSource, tally: Tally) -> Iterator[State]:
    """Yield the states of a tally as arrays [item, …] of some items in a row at a time, in order.

    Raises `StoreError` as `checked_states` does.
    """
    fields = tally.packing.fields
    numbers = sum(math.prod(field.shape) for field in fields.values())
    step = max(_MOST_NUMBERS // max(numbers, 1), 1)
    for states, loaded in checked_items(saved, tally):
        for first in range(0, len(states), step):
            items = range(first, min(first + step, len(states)))
            yield loaded.counted.state(fields, items)


def _together(saved: StatesSource, tally: Tally) -> Iterator[list[bytes]]:
    """Yield the states of several items, of `_MOST_BYTES` together if all were like the largest."""
    states: list[bytes] = []
    largest = 0
    for _, data in _states(saved, tally):
        largest = max(largest, len(data))
        if states and (len(states) + 1) * largest > _MOST_BYTES:
            yield states
            states, largest = [], len(data)
        states.append(data)
    if states:
        yield states


def _first_flaw(tally: Tally, states: Sequence[bytes], reason: str) -> tuple[int, str]:
    """Return the index of the first damaged state, and the reason."""
    for item, data in enumerate(states):
        try:
            tally.load(data)
        except ValueError as error:
            return item, str(error)
    return 0, reason


def _states(saved: StatesSource, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """Yield the state of each item. Raises `StoreError` for damaged states."""
    item = 0
    try:
        for data in saved.states(tally.parameters(), tally.most_bytes):
            yield item, data
            item += 1
    except ValueError as error:
        raise StoreError(_message(saved, item, str(error))) from None


def _check_counts(
    saved: StatesSource, tally: Tally, first: int, items: int, pixels: Any, evaluated: Any
) -> None:
    """Raise `StoreError` for counts [item] of some items in a row, from `first` on, that do not fit
    their sizes, or another tally. None: unknown."""
    sizes = np.array(saved.index["facts"]["sizes"][first : first + items], np.int64)
    sizes = sizes.reshape(items, 2)
    area = sizes.prod(axis=1)
    is_strange = np.zeros(items, bool)
    for counts in (pixels, evaluated):
        if counts is not None:
            is_strange |= counts > area
    if pixels is not None and tally.counts_void:
        is_strange |= pixels != area
    if is_strange.any():
        at = int(is_strange.argmax())
        count = next(int(np.atleast_1d(c)[at]) for c in (pixels, evaluated) if c is not None)
        height, width = sizes[at].tolist()
        text = f"{tally.id} counts {count} pixels of {height}×{width}"
        raise StoreError(_message(saved, first + at, text))
    if evaluated is None:
        return
    if tally.view.name not in saved.evaluated:
        unknown = np.full(len(saved.index["items"]), -1, np.int64)
        saved.evaluated[tally.view.name] = unknown, tally.id
    counted_pixels, by = saved.evaluated[tally.view.name]
    counts = counted_pixels[first : first + items]
    counts[...] = np.where(counts < 0, evaluated, counts)
    if (counts != evaluated).any():
        at = int((counts != evaluated).argmax())
        text = (
            f"{tally.id} counts {int(np.atleast_1d(evaluated)[at])} pixels, {by} {int(counts[at])}"
        )
        raise StoreError(_message(saved, first + at, text))


def _message(saved: StatesSource, item: int, reason: str) -> str:
    """Return a message with the file, the item, the reason, and what to do."""
    name = saved.index["items"][item]
    return (
        f"{saved.path}: the states of {quoted(name)} are damaged or forged: {reason}. Evaluate "
        "again."
    )
