"""Items for a page, from saved states: those with the wrong pixels of a heat map's cell or a bin,
and the classes in each item with their pixels.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Ints, State
from uqeval.keys import Key
from uqeval.metrics._columns import SetStates
from uqeval.metrics.calibration_scores import Binned
from uqeval.statistics.checked_states import checked_states
from uqeval.statistics.variants import evaluations_of
from uqeval.tallies.accuracy_by_uncertainty import AccuracyByUncertainty
from uqeval.tallies.reliability import Reliability
from uqeval.tallies.segmentation import ClassCounts

if TYPE_CHECKING:
    from uqeval.records.report import ItemClasses, ItemsByCell
    from uqeval.stores.states.saved import SavedStates
    from uqeval.tallies._contract import Tally

#: The largest number of items of a cell.
MOST = 5


def items_by_cell(saved: SavedStates, keys: Collection[str]) -> ItemsByCell:
    """Return, for every cell and bin of these results, the items with the most wrong pixels.

    Raises `StoreError` if its states `saved` are damaged.
    """
    items_by_key = {}
    for key, evaluation in evaluations_of(saved.index).items():
        parsed = Key.parse(key)
        key, part_name = parsed.whole, parsed.part
        for tally in evaluation.tallies():
            table = isinstance(tally, AccuracyByUncertainty)
            if key in keys and (table or (isinstance(tally, Reliability) and not part_name)):
                settings = saved.index["settings"][key]
                states = checked_states(saved, tally)
                items_by_key[key] = most(_wrong(tally, state, settings) for _, state in states)
    return items_by_key


def _wrong(tally: Tally, state: State, settings: dict[str, Any]) -> Ints:
    """Return the wrong pixels of an item in each cell."""
    wrong: Ints
    if isinstance(tally, Reliability):
        binned = Binned.of(SetStates.of_one(state), settings["at_one"])
        (wrong,) = binned.count - binned.correct
    else:
        wrong = state["pixels"] - state["correct"]
    return wrong


def most(counts: Iterable[Ints], count: int = MOST) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """Return the items with the largest counts by cell, and the counts; ties in the order of items.

    `counts`: one array per item, all of one shape; there is at least one.
    """
    shape: tuple[int, ...] = ()
    best = np.empty((2, 0, 0), np.int64)  # [count and item, place, cell]
    for item, item_counts in enumerate(counts):
        new = np.stack([item_counts.reshape(-1), np.full(item_counts.size, item)])[:, None]
        shape, best = item_counts.shape, np.concatenate([best, new], axis=1) if item else new
        order = np.argsort(-best[0], axis=0, kind="stable")[:count]
        best = np.take_along_axis(best, order[None], axis=1)
    return {
        cell: [(i, n) for n, i in best[:, :, flat].T.tolist() if n]
        for flat, cell in enumerate(np.ndindex(shape))
    }


#: The largest number of entries on a page: pairs of an item and a class in it.
MOST_ENTRIES = 200_000


def items_by_class(saved: SavedStates) -> ItemClasses | None:
    """Return the classes of each item: class, labelled pixels, and wrong ones among them.

    None if the states count no classes, or there are more than `MOST_ENTRIES` entries. Raises
    `StoreError` if they are damaged.
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
        if entries > MOST_ENTRIES:
            return None
    return found
