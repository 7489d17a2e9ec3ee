"""The states of all items of a tally, side by side, folded over any sets of the items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from uqeval.tallies import Tally
    from uqeval.tallies._contract import State


class Stacked:
    """The states of all items of one tally: each field [item, number], large ones by the numbers
    that any item has."""

    def __init__(self, tally: Tally, states: Iterable[State]) -> None:
        self.tally = tally
        self.whole = [values.reshape(-1) for values in tally.empty().values()]
        self.identities = [values[0] if values.size else 0 for values in self.whole]
        self.places: list[NDArray[Any] | None] = []
        self.values: list[NDArray[Any]] = []
        states = tally.centred(states)
        thin = [tally.thin(state) for state in states]
        for i, whole in enumerate(self.whole):
            own = [state[i] for state in thin]
            if own[0][0] is None:
                self.places.append(None)
                self.values.append(_summable(np.stack([values for _, values in own])))
                continue
            places = np.unique(np.concatenate([np.asarray(p) for p, _ in own]))
            values = np.repeat(whole[places][None], len(own), axis=0)
            for row, (p, v) in zip(values, own, strict=True):
                row[np.searchsorted(places, np.asarray(p))] = v
            self.places.append(places)
            self.values.append(_summable(values))

    @property
    def numbers(self) -> int:
        """How many numbers an item has."""
        return sum(values.shape[1] for values in self.values)

    def folded(self, weights: NDArray[np.int64]) -> list[NDArray[Any]]:
        """Each field over the items of each row of `weights` [set, item]: [set, number].

        One set of items taken once has the same bits as if they had been folded one by one.
        """
        found = []
        columns = zip(self.tally.fields.values(), self.values, self.identities, strict=True)
        for field, values, identity in columns:
            if field.merge == "sum":
                sums = _weighted(weights, values)
                found.append(sums.astype(field.dtype))
                continue
            best = np.maximum if field.merge == "max" else np.minimum
            rows = [best.reduce(values[row > 0], axis=0, initial=identity) for row in weights]
            found.append(np.stack(rows))
        return found

    def state(self, folded: Sequence[NDArray[Any]], row: int) -> State:
        """One set's state, as `metrics` take it; good until the next one is asked for."""
        state: State = {}
        columns = zip(self.tally.fields.items(), self.places, self.whole, folded, strict=True)
        for (name, field), places, whole, sums in columns:
            if places is None:
                state[name] = sums[row].reshape(field.shape)
            else:
                whole[places] = sums[row]  # the others are as in the empty state for ever
                state[name] = whole.reshape(field.shape)
        return state


def _summable(values: NDArray[Any]) -> NDArray[Any]:
    """As float64, which multiplies fast, where every sum over as many items is exact in it."""
    if values.dtype.kind == "i" and np.abs(values).max(initial=0) * len(values) >= 2**53:
        return values
    return values.astype(np.float64)


def _weighted(weights: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Sums over the items, each as often as its weight; of items of weight 0 not even infinity."""
    found: NDArray[Any]
    if len(weights) == 1 and weights.max(initial=0) <= 1:
        found = values[weights[0] > 0].sum(axis=0)[None]  # row by row, as `fold` does
    elif values.dtype.kind == "i":
        found = weights @ values
    elif np.isfinite(values).all():
        found = weights.astype(np.float64) @ values
    else:
        found = np.stack([row[row > 0] @ values[row > 0] for row in weights])
    return found
