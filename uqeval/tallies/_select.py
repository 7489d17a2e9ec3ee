"""Order statistics of one item, exact, without sorting it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: One pixel in so many is looked at to guess between which values a rank lies: a prime, so that it
#: runs through the columns of most images. Fewer pixels than `_FEW` are not worth a guess.
_STEP, _FEW = 127, 1 << 16
#: Half the width of the guess, in standard deviations of the rank that a sample puts it at.
_WIDTH = 6.0


def order_statistics(
    value: NDArray[Any], label: NDArray[Any], void: int, pixels: int, lower: int, upper: int
) -> tuple[float, float]:
    """The values of ranks `lower` and `upper`, from 0 on, of the `pixels` non-void ones [y, x].

    A sample says between which two values the ranks lie; one look at all pixels counts those below
    and collects those between, and where the guess was wrong, all are collected.
    """
    import numpy as np

    from uqeval.kernels.sorting import collect

    value, label = value.reshape(-1), label.reshape(-1)
    low, high = _guess(value, label, void, lower / pixels, upper / pixels)
    guessed = math.isfinite(low) and math.isfinite(high)
    found = np.empty(pixels // 8 if guessed else pixels, np.float32)
    below, inside = collect(value, label, void, low, high, found)
    if not (below <= lower and upper < below + inside and inside <= found.size):
        below, found = 0, value[label != void]
        inside = pixels
    # The next rank is the least of those above: to partition at both takes twice as long.
    found = np.partition(found[:inside], lower - below)
    above = found[upper - below :].min() if upper > lower else found[lower - below]
    return float(found[lower - below]), float(above)


def _guess(
    value: NDArray[Any], label: NDArray[Any], void: int, lower: float, upper: float
) -> tuple[Any, Any]:
    import numpy as np

    ends = [np.float32(-np.inf), np.float32(np.inf)]
    if value.size >= _FEW:
        sample = np.sort(value[::_STEP][label[::_STEP] != void])
        n = sample.size
        first, last = (
            round(n * share + side * (_WIDTH * math.sqrt(n * share * (1 - share)) + 1))
            for share, side in ((lower, -1), (upper, 1))
        )
        if first >= 0 and n:
            ends[0] = sample[min(first, n - 1)]
        if last < n:
            ends[1] = sample[last]
    return ends[0], ends[1]
