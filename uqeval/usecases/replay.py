"""Running the plans of metrics over saved states in place of the data."""

from __future__ import annotations

from collections.abc import Collection, Generator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from uqeval.metrics._again import Again
    from uqeval.metrics._plan import Counted
    from uqeval.statistics.joined import Joined
    from uqeval.tallies import Tally

Found = TypeVar("Found")


def replay(plan: Generator[tuple[Tally, ...], Any, Found], states: Joined) -> Found | None:
    """What a plan returns when it is sent saved states; None if it asks for others."""
    try:
        asked = next(plan)
        while all(states.holds(tally.parameters()) for tally in asked):
            asked = plan.send({tally: counted(tally, states) for tally in asked})
    except StopIteration as stop:
        found: Found = stop.value
        return found
    plan.close()
    return None


def left_out(joined: Joined, key: str, again: Again, tally: Tally) -> set[int]:
    """The items whose states of a tally are in none of the scores under a key."""
    if again.leaves_out is None or tally not in again.kept_only:
        return set()
    records = enumerate(joined.index["records"])
    return {i for i, record in records if record.get(key, {}).get(again.leaves_out)}


def counted(tally: Tally, states: Joined, without: Collection[int] = ()) -> Counted:
    """The states of a tally, folded in the order of items, `without` some. Raises `StoreError`."""
    from uqeval.metrics._plan import Counted
    from uqeval.statistics.checked_states import checked_states

    total, items = tally.empty(), []
    for item, (data, state) in enumerate(checked_states(states, tally)):
        if item in without:
            continue
        tally.fold(total, tally.thin(state))
        if tally.keeps_items:
            items.append(data)
    return Counted(total, items)
