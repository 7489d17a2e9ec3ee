"""Order statistics of one item, exact, without sorting it."""

from __future__ import annotations

import math
from typing import Any

from uqeval.arrays import Array, np

#: Every `STEP`-th pixel is in the sample that shows between which values a rank lies. `STEP` is a
#: prime, so that the sample has pixels of all columns of most images. For fewer than `FEW` pixels
#: there is no sample.
STEP, FEW = 127, 1 << 16
#: Half the width of the interval, in standard deviations of the rank in the sample.
_WIDTH = 4.0


def guess(sample: Array, share: float) -> tuple[Any, Any]:
    """Return two values that very likely enclose the value with this share of all below it."""
    n = sample.size
    wide = _WIDTH * math.sqrt(n * share * (1 - share)) + 1
    first, last = round(n * share - wide), round(n * share + wide)
    ranks = [rank for rank in (first, last) if 0 <= rank < n]
    ordered = np.partition(sample, ranks) if ranks else sample
    return (
        ordered[first] if 0 <= first < n else np.float32(-np.inf),
        ordered[last] if last < n else np.float32(np.inf),
    )


def statistics(values: Array, lower: int, upper: int) -> tuple[float, float]:
    """Return the values of rank `lower` and of the same or the next, `upper`, from 0 on."""
    # The next rank is the minimum of the values above. Partitioning at both ranks takes twice as
    # long.
    ordered = np.partition(values, lower)
    above = ordered[upper:].min() if upper > lower else ordered[lower]
    return float(ordered[lower]), float(above)
