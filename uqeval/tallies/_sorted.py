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

    from uqeval.kernels.sorting import DIGITS, RADIX, pack_keys, radix_sort, sum_ties

    keys, spare = np.empty((2, score.size), np.uint64)
    pack_keys(score, error, keys)
    if radix_sort(keys, spare, np.zeros((DIGITS, RADIX), np.int64)):
        keys, spare = spare, keys
    upto, sums = spare.view(np.int64), np.empty(score.size, np.float64)
    ties = sum_ties(keys, squared, upto, sums)
    return upto[:ties], sums[:ties]
