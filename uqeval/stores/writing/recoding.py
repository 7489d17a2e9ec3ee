"""Probabilities as uint16 with a scale: half the bytes of float16, with smaller errors of scores.

`benchmarks/formats.py` measures this; docs/stores.md shows the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.arrays import Array

DTYPE = np.dtype(np.uint16)
STEPS = int(np.iinfo(DTYPE).max)
ATTRIBUTES = {"scale": 1 / STEPS}
_KINDS = frozenset({"probs", "mean_probs"})


@dataclass
class Recoding:
    """Recodes floating-point probabilities, and records the loss.

    `values`: the number of recoded values. `largest`: the largest difference of a probability from
    its source, at `where`. `worst_sum`: the largest difference of a sum over classes from 1 in the
    source.
    """

    values: int = 0
    largest: float = 0.0
    where: str = ""
    worst_sum: float = 0.0

    def applies_to(self, kind: str, dtype: np.dtype[Any]) -> bool:
        """Return whether arrays of a kind and dtype are recoded; others are copied."""
        return kind in _KINDS and dtype.kind == "f"

    def recode(self, values: Array, where: str) -> NDArray[np.uint16]:
        """Return checked probabilities [..., class, y, x] as multiples of 1/65535.

        Probabilities of several classes are divided by their sum first.
        """
        exact = values.astype(np.float64)
        scaled = exact
        if exact.shape[-3] > 1:
            total = exact.sum(axis=-3, keepdims=True)
            self.worst_sum = max(self.worst_sum, float(np.abs(total - 1).max(initial=0)))
            scaled = exact / total
        recoded = np.rint(scaled * STEPS).astype(DTYPE)
        largest = float(np.abs(recoded / STEPS - exact).max(initial=0))
        if largest > self.largest:
            self.largest, self.where = largest, where
        self.values += values.size
        return recoded

    def loss(self) -> str:
        """Return the loss in words."""
        if not self.values:
            return "no floating-point probabilities: all values are unchanged"
        summed = f", which were divided by their sum (up to {self.worst_sum:.1e} from 1)"
        return (
            f"probabilities{summed if self.worst_sum else ''} and rounded to multiples of "
            f"{1 / STEPS:.1e}: the largest change of a value is {self.largest:.1e}"
            + (f" ({self.where})" if self.where else "")
        )
