"""Differences of the models from the reference model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from uqeval.compare.comparison import Difference, Row
from uqeval.compare.ranks import minus
from uqeval.records.resampling import Interval

if TYPE_CHECKING:
    from uqeval.statistics.paired_comparison import PairedComparison


def with_differences(
    row: Row,
    base: int,
    of_other_pixels: Sequence[str | None],
    level: float | None,
    paired: PairedComparison | None,
    drawn_models: Sequence[int],
    from_states: bool,
) -> Row:
    """Return the row with the difference of each model from model `base`.

    `of_other_pixels`: for each model why it has no more than the difference. `drawn_models`: the
    models of `paired`, which gives intervals and p-values. `from_states`: whether the scores were
    computed from saved states.
    """
    reference = row.cells[base].value
    cells = []
    for m, cell in enumerate(row.cells):
        if m == base or cell.value is None or reference is None:
            cells.append(cell)
            continue
        value = minus(cell.value, reference)
        if (reason := of_other_pixels[m]) is not None:
            cells.append(replace(cell, difference=Difference(value, None, level, reason=reason)))
            continue
        better = None
        if row.direction and value:
            better = (value > 0) == (row.direction == "higher")
        difference = Difference(value, better, level)
        if paired is not None and level is not None and m in drawn_models:
            pair, address = (drawn_models.index(m), drawn_models.index(base)), row.address.within
            trainings = (cell.values, row.cells[base].values)
            if all(trainings):
                change = paired.over_trainings(*pair, address, level, trainings, from_states)
            else:
                change = paired.difference(*pair, address, level)
            difference = replace(
                difference, p=change.p, p_least=change.least, swapped=change.swapped
            )
            if isinstance(change.interval, Interval):
                difference = replace(difference, interval=change.interval, reason=change.untested)
            else:
                difference = replace(difference, reason=change.interval.reason)
        cells.append(replace(cell, difference=difference))
    return replace(row, cells=tuple(cells))
