"""Pearson's correlation over items, each taken as often as its weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def correlation(
    weights: NDArray[Any], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return Pearson's r of `x` and `y` [item] by `weights` [set, item]: [set].

    NaN for fewer than three items, and where one of the two is constant.
    """
    import numpy as np

    finite = np.isfinite(x) & np.isfinite(y)
    w = weights[:, finite].astype(np.float64)
    a, b = (
        values[finite] - values[finite].mean() if finite.any() else values[finite]
        for values in (x, y)
    )
    n = w.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        ma, mb = (w @ a) / n, (w @ b) / n
        cov = (w @ (a * b)) / n - ma * mb
        va, vb = (w @ (a * a)) / n - ma * ma, (w @ (b * b)) / n - mb * mb
        r: NDArray[np.float64] = cov / np.sqrt(va * vb)
    undefined = (w > 0).sum(axis=1) < 3
    for centred, variance in ((x[finite], va), (y[finite], vb)):
        least = np.where(w > 0, centred, np.inf).min(axis=1, initial=np.inf)
        most = np.where(w > 0, centred, -np.inf).max(axis=1, initial=-np.inf)
        # Practically constant: the remaining variance is rounding.
        undefined |= (least >= most) | (variance <= 1e-12 * centred.var() if centred.size else True)
    r[undefined] = np.nan
    return np.clip(r, -1.0, 1.0)
