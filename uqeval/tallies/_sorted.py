"""One item's errors in the order of a score, exact, ties together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def cumulated(
    score: NDArray[Any], error: NDArray[Any], squared: bool = False
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pixels (int64) and error sums (float64) up to the end of each tie, scores ascending.

    `score` and `error` are float32 [i], the error not negative. Between the ends of a tie the
    pixels count as each having the tie's mean error. Errors of a tie are added in the order of
    their size: the sums do not depend on the order of pixels.
    """
    import numpy as np

    bits = (score + np.float32(0)).view(np.int32).astype(np.int64)
    key = np.where(bits >= 0, bits + 2**31, -bits - 1).astype(np.uint64)
    both = (key << np.uint64(32)) | (error + np.float32(0)).view(np.uint32).astype(np.uint64)
    both.sort()
    key = both >> np.uint64(32)
    values = (both & np.uint64(2**32 - 1)).astype(np.uint32).view(np.float32).astype(np.float64)
    if squared:
        values *= values
    ends = np.flatnonzero(np.append(key[1:] != key[:-1], True)) if key.size else np.arange(0)
    return ends + 1, np.cumsum(values)[ends]
