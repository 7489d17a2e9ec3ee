"""Saved states of items, each checked before use because files may be forged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import StoreError, quoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from uqeval.tallies import Tally
    from uqeval.tallies._fields import State


class StatesSource(Protocol):
    """Packed states of items, and all that it takes to score them: `index`."""

    @property
    def index(self) -> dict[str, Any]:
        """Return names, records, settings and fitted numbers, as `uqeval.stores.states.saved` has
        them.
        """

    @property
    def path(self) -> str | Path:
        """Return what messages call it."""

    @property
    def evaluated(self) -> dict[tuple[int, str], tuple[int, str]]:
        """Return by item and view how many pixels which tally counted; filled as states are
        read.
        """

    def states(self, parameters: Mapping[str, Any], most: int) -> Iterator[bytes]:
        """Return the state of each item of a tally, of `most` bytes at most, in the order of items.

        Raises `StoreError`, and `ValueError` for a block of states that is damaged.
        """


def checked_states(saved: StatesSource, tally: Tally) -> Iterator[tuple[bytes, State]]:
    """Yield the state of a tally of each item, packed and unpacked, in the order of items.

    Raises `StoreError` for states of another tally, for counts that no item can have given, and for
    counts that do not fit the size of the item or those of another tally.
    """
    for item, data in _states(saved, tally):
        try:
            state = tally.load(data)
        except ValueError as error:
            raise StoreError(_message(saved, item, str(error))) from None
        _check_counts(saved, tally, item, state)
        yield data, state


def checked_columns(saved: StatesSource, tally: Tally) -> Iterator[tuple[NDArray[np.int64], State]]:
    """Yield the columns that hold anything of each item, and its state with these alone.

    Raises `StoreError` as `checked_states` does.
    """
    for item, data in _states(saved, tally):
        try:
            columns, state = tally.load_columns(data)
        except ValueError as error:
            raise StoreError(_message(saved, item, str(error))) from None
        _check_counts(saved, tally, item, state)
        yield columns, state


def _states(saved: StatesSource, tally: Tally) -> Iterator[tuple[int, bytes]]:
    """Yield the state of each item. Raises `StoreError` for what is damaged."""
    item = 0
    try:
        for data in saved.states(tally.parameters(), tally.most_bytes):
            yield item, data
            item += 1
    except ValueError as error:
        raise StoreError(_message(saved, item, str(error))) from None


def _check_counts(saved: StatesSource, tally: Tally, item: int, state: State) -> None:
    """Raise `StoreError` for counts that do not fit the size of the item, or another tally."""
    height, width = saved.index["facts"]["sizes"][item]
    pixels, evaluated = tally.pixels(state), tally.evaluated(state)
    if max(pixels or 0, evaluated or 0) > height * width or (
        pixels is not None and tally.counts_void and pixels != height * width
    ):
        text = f"{tally.id} counts {pixels or evaluated} pixels of {height}×{width}"
        raise StoreError(_message(saved, item, text))
    if evaluated is not None:
        first_count = saved.evaluated.setdefault((item, tally.view.name), (evaluated, tally.id))
        if first_count[0] != evaluated:
            text = f"{tally.id} counts {evaluated} pixels, {first_count[1]} {first_count[0]}"
            raise StoreError(_message(saved, item, text))


def _message(saved: StatesSource, item: int, reason: str) -> str:
    """Return name the file, the item and the reason, and what to do."""
    name = saved.index["items"][item]
    return (
        f"{saved.path}: the states of {quoted(name)} are damaged or forged: {reason}. Evaluate "
        "again."
    )
