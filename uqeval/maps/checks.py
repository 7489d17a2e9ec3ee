"""Checks of probabilities on every pixel; invalid ones are reported, never repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError

LOGITS = "If these are logits, add --kind logits, or call the array `logits`."


@dataclass(frozen=True)
class SumCheck:
    """Checks the smallest and largest class sum from the kernels, and describes invalid blocks.

    `unit` is the probability of one unit of the sums. `where` names the item and its store. Pixel
    `i` of the tile is in row `y0 + i // width` and column `x0 + i % width`.
    """

    classes: int
    tolerance: float
    unit: float
    dtype: np.dtype[Any]
    where: str
    width: int
    y0: int = 0
    x0: int = 0

    def fresh(self) -> Array:
        """Return the extremes [least, largest] of no sums."""
        unit_sum = 1.0 / self.unit
        return np.full(2, unit_sum if self.dtype.kind == "f" else round(unit_sum), self.dtype)

    def broken(self, extremes: Array) -> bool:
        """Return whether the class sum of a sample is outside the tolerance, or not a number."""
        low, high = float(extremes[0]) * self.unit, float(extremes[1]) * self.unit
        return not (1.0 - self.tolerance <= low and high <= 1.0 + self.tolerance)

    def explain(self, tile: Array, start: int, stop: int, t0: int, c0: int, totals: Array) -> None:
        """Raise `DataError` with the reason if pixels `start:stop` of a tile are invalid.

        Tile: the input of the kernels [sample, class, pixel], from sample `t0` and class `c0` on;
        `totals`: class sums so far [row, pixel].
        """
        block = tile[:, :, start:stop]
        half = block.dtype == np.int16
        p = (block.view(np.float16) if half else block).astype(np.float64)
        p *= self.unit if block.dtype.kind == "u" else 1.0
        for bad, problem in ((np.isnan(p), "NaN"), (np.isinf(p), "infinite"), (p < 0, "negative")):
            if bad.any():
                t, c, i = (int(k[0]) for k in np.nonzero(bad))
                finite = p[np.isfinite(p)]
                span = f"{finite.min():.4g} to {finite.max():.4g}" if finite.size else "none finite"
                hint = "A probability is finite and not negative: write the sample again."
                if problem == "negative":
                    hint = LOGITS
                raise DataError(
                    f"{self.where}: {int(bad.sum())} of {bad.size} probabilities from "
                    f"{self._pixel_name(start)} on are {problem}, first in sample {t0 + t}, class "
                    f"{c0 + c}, {self._pixel_name(start + i)} (values: {span}). {hint}"
                )
        if c0 + p.shape[1] < self.classes:
            return
        # For a tile with the last classes, check the accumulated sums.
        if p.shape[1] == self.classes:
            sums = p.sum(axis=1)
        else:
            sums = totals[t0 : t0 + p.shape[0]] * self.unit
        off = np.abs(sums - 1.0) > self.tolerance
        if not off.any():
            return
        t, i = (int(k[0]) for k in np.nonzero(off))
        if not p.any():
            hint = "All are 0: a chunk that was never written reads as zeros."
        elif p.max() > 1.0 + self.tolerance:
            hint = f"There are values above 1. {LOGITS}"
        else:
            hint = (
                "Check the order of axes (dimension_names) and that the softmax ran over the "
                "classes; --sum-tolerance allows larger differences."
            )
        raise DataError(
            f"{self.where}: the class probabilities of {int(off.sum())} of {off.size} pixels from "
            f"{self._pixel_name(start)} on do not sum to 1, first {sums[t, i]:.6g} in sample "
            f"{t0 + t}, {self._pixel_name(start + i)} (tolerance {self.tolerance:g}). {hint}"
        )

    def _pixel_name(self, pixel: int) -> str:
        return f"row {self.y0 + pixel // self.width}, column {self.x0 + pixel % self.width}"
