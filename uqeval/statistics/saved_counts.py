"""Read counts from saved states instead of data."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from uqeval.errors import StoreError, cut
from uqeval.metrics._evaluation import Evaluation, TallyResult
from uqeval.statistics.checked_states import checked_items
from uqeval.stores.states.blocks import ItemStates, PackedItems
from uqeval.stores.states.entries import tally_key

if TYPE_CHECKING:
    from uqeval.statistics.merged_states import MergedStates
    from uqeval.tallies._contract import Tally


def saved_result(merged_states: MergedStates, tally: Tally) -> TallyResult | None:
    """Return the states of a tally; None where they are not saved. Raises `StoreError`.

    For a tally that adds up exactly, the totals of files are enough; for others, that of one file.
    """
    if merged_states.holds(tally.parameters()):
        return sum_states(tally, merged_states)
    if tally.keeps_items or not (tally.adds_exactly or len(merged_states.files) == 1):
        return None
    packed = merged_states.totals(tally_key(tally.parameters()))
    if not packed:
        return None
    total = tally.empty()
    for file, data in zip(merged_states.files, packed, strict=True):
        try:
            loaded = tally.load_items(PackedItems(data, 1).states(tally.most_bytes))
        except ValueError as error:
            raise StoreError(
                f"{cut(file.path)}: the total of {tally.id} is damaged or forged: {cut(error)}. "
                "Evaluate again."
            ) from None
        tally.fold_items(total, loaded.counted)
    return TallyResult(total, ())


def left_out(
    merged_states: MergedStates, key: str, evaluation: Evaluation[Any], tally: Tally
) -> set[int]:
    """Return the items whose states of a tally no score under a key includes."""
    over = evaluation.over_items()
    if over.leaves_out is None or tally not in over.kept_only:
        return set()
    records = enumerate(merged_states.index["records"])
    return {i for i, record in records if record.get(key, {}).get(over.leaves_out)}


def sum_states(tally: Tally, states: MergedStates, excluded: Collection[int] = ()) -> TallyResult:
    """Return the sum of the states of a tally in the order of items, without `excluded`.

    Raises `StoreError`.
    """
    total, items = tally.empty(), ItemStates(tally.most_bytes)
    first = 0
    for data, loaded in checked_items(states, tally):
        kept = [k for k in range(len(data)) if first + k not in excluded]
        if len(kept) == len(data):
            tally.fold_items(total, loaded.counted)
        else:
            for k in kept:
                tally.fold(total, loaded.counted.thin(k))
        if tally.keeps_items and kept:
            items.blocks.append(PackedItems.of([data[k] for k in kept]))
        first += len(data)
    return TallyResult(total, items)
