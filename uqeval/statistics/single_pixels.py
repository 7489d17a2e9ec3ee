"""Counts by rank of items of one pixel each, as those of a classifier.

The scores of all such items but one follow from sums over all (`uqeval.metrics._ranks_without`),
and a single item has one bin. By arrays [set, bin], both take the square of the number of items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from uqeval.arrays import Array, Floats, Ints
from uqeval.metrics._ranked_items import of_items
from uqeval.metrics._ranks_without import WITHOUT, without_each
from uqeval.metrics.failure_columns import SCORES

if TYPE_CHECKING:
    from uqeval.statistics.weighting import ItemSets


@dataclass(frozen=True, eq=False)
class SinglePixels:
    """The bin of the pixel of each item and its error, 0 or 1; NaN for an item without a pixel."""

    bin: Floats
    error: Floats

    @classmethod
    def of(
        cls, items: int, item: Array, column: Array, fields: Mapping[str, Array]
    ) -> SinglePixels | None:
        """Return the pixels of the entries of `RankedItems`; None if an item has several, or if
        they are no counts of pixels and errors of one row."""
        if fields.keys() != {"pixels", "errors"} or len(fields["pixels"]) != 1:
            return None
        pixels, errors = fields["pixels"][0], fields["errors"][0]
        if item.size > items or not (pixels == 1).all() or np.bincount(item).max(initial=0) > 1:
            return None
        if not ((errors == 0) | (errors == 1)).all():
            return None
        bin_of, error = np.full((2, items), np.nan)
        bin_of[item], error[item] = column, errors
        return cls(bin_of, error)

    def without_each(self, sets: ItemSets, name: str) -> Floats | None:
        """Return a score of `SCORES` of sets of all items but one [set]; None for other sets."""
        if name not in WITHOUT or name not in SCORES:
            return None
        score = without_each(of_items(SCORES[name]), WITHOUT[name])
        return sets.without_each(
            self.bin.size, (self, name), lambda is_counted: score(is_counted, self.error, self.bin)
        )

    def entries(self, chosen: Ints) -> tuple[Ints, Ints, dict[str, Array]]:
        """Return item, bin and fields of the entries of some items, numbered in this order."""
        item = np.flatnonzero(np.isfinite(self.bin[chosen]))
        own = chosen[item]
        errors = self.error[own].astype(np.int32)[None]
        return item, self.bin[own].astype(np.int64), {
            "pixels": np.ones_like(errors), "errors": errors,
        }  # fmt: skip
