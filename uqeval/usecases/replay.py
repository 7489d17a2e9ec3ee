"""Counting from saved states in place of data."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from uqeval.metrics._evaluation import Counted
from uqeval.statistics.checked_states import checked_states

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Evaluation
    from uqeval.statistics.joined import Joined
    from uqeval.tallies import Tally


def held(joined: Joined, tally: Tally) -> Counted | None:
    """Return the states of a tally; None where they are not saved. Raises `StoreError`."""
    return counted(tally, joined) if joined.holds(tally.parameters()) else None


def left_out(joined: Joined, key: str, evaluation: Evaluation[Any], tally: Tally) -> set[int]:
    """Return the items whose states of a tally are in none of the scores under a key."""
    over = evaluation.over_items()
    if over.leaves_out is None or tally not in over.kept_only:
        return set()
    records = enumerate(joined.index["records"])
    return {i for i, record in records if record.get(key, {}).get(over.leaves_out)}


def counted(tally: Tally, states: Joined, without: Collection[int] = ()) -> Counted:
    """Return the states of a tally, added up in the order of items, `without` some.

    Raises `StoreError`.
    """
    total, items = tally.empty(), []
    for item, (data, state) in enumerate(checked_states(states, tally)):
        if item in without:
            continue
        tally.fold(total, tally.thin(state))
        if tally.keeps_items:
            items.append(data)
    return Counted(total, items)
