"""Items for a page, from saved states: those with the wrong pixels of a heat map's cell or a bin,
and the classes in each item with their pixels.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Ints, State
from uqeval.keys import Key
from uqeval.metrics._columns import SetStates
from uqeval.metrics.calibration_scores import Binned
from uqeval.statistics.checked_states import checked_arrays
from uqeval.statistics.variants import evaluations_of
from uqeval.tallies.reliability import Reliability
from uqeval.tallies.segmentation import AccuracyByUncertainty, ClassCounts

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
    for key, evaluation in evaluations_of(saved.index, saved.path).items():
        parsed = Key.parse(key)
        key, part_name = parsed.whole, parsed.part
        for tally in evaluation.tallies():
            table = isinstance(tally, AccuracyByUncertainty)
            if key in keys and (table or (isinstance(tally, Reliability) and not part_name)):
                settings = saved.index["settings"][key]
                states = checked_arrays(saved, tally)
                items_by_key[key] = most(_wrong(tally, state, settings) for state in states)
    return items_by_key


def _wrong(tally: Tally, state: State, settings: dict[str, Any]) -> Ints:
    """Return the wrong pixels of some items in each cell: [item, *cell]."""
    wrong: Ints
    if isinstance(tally, Reliability):
        binned = Binned.of(SetStates(state), settings["at_one"])
        wrong = binned.count - binned.correct
    else:
        wrong = state["pixels"] - state["correct"]
    return wrong


def most(counts: Iterable[Ints], count: int = MOST) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """Return the items with the largest counts by cell, and the counts; ties in the order of items.

    `counts` [item, *cell]: those of some items in a row at a time.
    """
    shape: tuple[int, ...] = ()
    best = np.empty((3, 0), np.int64)  # cell, minus count, item
    items = 0
    for block in counts:
        shape = block.shape[1:]
        flat = block.reshape(-1)
        at = np.flatnonzero(flat)
        item, cell = np.divmod(at, max(math.prod(shape), 1))
        entries = np.concatenate([best, [cell, -flat[at], item + items]], axis=1)
        entries = entries[:, np.lexsort(entries[::-1])]
        place = np.arange(entries.shape[1]) - np.searchsorted(entries[0], entries[0])
        best = entries[:, place < count]
        items += len(block)
    found: list[list[tuple[int, int]]] = [[] for _ in range(math.prod(shape))]
    for at_cell, less, of_item in best.T.tolist():
        found[at_cell].append((of_item, -less))
    return dict(zip(np.ndindex(shape), found, strict=True))


#: The largest number of entries on a page: pairs of an item and a class in it.
MOST_ENTRIES = 200_000


def items_by_class(saved: SavedStates) -> ItemClasses | None:
    """Return the classes of each item: class, labelled pixels, and wrong ones among them.

    None if the states count no classes, or there are more than `MOST_ENTRIES` entries. Raises
    `StoreError` if they are damaged.
    """
    tallies = [
        tally
        for key, evaluation in evaluations_of(saved.index, saved.path).items()
        if key == "segmentation"
        for tally in evaluation.tallies()
        if isinstance(tally, ClassCounts)
    ]
    if not tallies:
        return None
    found: list[list[tuple[int, int, int]]] = []
    entries = 0
    for state in checked_arrays(saved, tallies[0]):
        labelled, correct = state["labelled"], state["correct"]
        item, c = np.divmod(np.flatnonzero(labelled), labelled.shape[1])
        entries += item.size
        if entries > MOST_ENTRIES:
            return None
        n = labelled[item, c]
        rows = list(zip(c.tolist(), n.tolist(), (n - correct[item, c]).tolist(), strict=True))
        ends = np.searchsorted(item, np.arange(len(labelled) + 1)).tolist()
        found += [rows[a:b] for a, b in pairwise(ends)]
    return found
