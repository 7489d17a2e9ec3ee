"""Pixels of each class in each item, and how many of them are wrong, from saved states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.statistics.checked_states import checked_states
from uqeval.statistics.variants import evaluations_of
from uqeval.tallies.segmentation import ClassCounts

if TYPE_CHECKING:
    from uqeval.records.report import ItemClasses
    from uqeval.stores.states.saved import SavedStates

#: The largest number of entries on a page: pairs of an item and a class in it.
MOST = 200_000


def items_by_class(saved: SavedStates) -> ItemClasses | None:
    """Return the classes of each item: class, labelled pixels, and wrong ones among them.

    None if the states count no classes, or there are more than `MOST` entries. Raises `StoreError`
    if they are damaged.
    """
    tallies = [
        tally
        for key, evaluation in evaluations_of(saved.index).items()
        if key == "segmentation"
        for tally in evaluation.tallies()
        if isinstance(tally, ClassCounts)
    ]
    if not tallies:
        return None
    found: list[list[tuple[int, int, int]]] = []
    entries = 0
    for _, state in checked_states(saved, tallies[0]):
        labelled, correct = state["labelled"].tolist(), state["correct"].tolist()
        found.append(
            [(c, n, n - right) for c, (n, right) in enumerate(zip(labelled, correct, strict=True))
             if n]
        )  # fmt: skip
        entries += len(found[-1])
        if entries > MOST:
            return None
    return found
