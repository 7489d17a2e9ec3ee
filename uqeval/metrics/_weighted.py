"""Quantiles and Pearson's correlation over items, each taken as often as its weight."""

from __future__ import annotations

from uqeval.arrays import Array, Floats, np

#: The number of items in a run, whose weights are added up first.
_RUN = 128


def quantile(share: float, weights: Array, values: Floats) -> Floats:
    """Return a quantile [set] of values [item] that each set has `weights` [set, item] times.

    Interpolated linearly, as NumPy's. NaN without values.
    """
    order = np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]
    if not order.size:
        return np.full(len(weights), np.nan)
    ordered = weights[:, order]
    # The sums of runs show which run has the rank. Only this run is added up by item.
    runs = np.add.reduceat(ordered, np.arange(0, order.size, _RUN), axis=1, dtype=np.int64)
    upto = runs.cumsum(axis=1)
    total = upto[:, -1]
    position = (total - 1) * share
    lower = np.floor(position)

    def value_at(rank: Array) -> Array:
        run = np.minimum((upto <= rank[:, None]).sum(axis=1), upto.shape[1] - 1)[:, None]
        items = np.minimum(run * _RUN + np.arange(_RUN), order.size - 1)
        before = np.take_along_axis(upto - runs, run, axis=1)
        within = np.take_along_axis(ordered, items, axis=1).cumsum(axis=1, dtype=np.int64)
        at = run[:, 0] * _RUN + (before + within <= rank[:, None]).sum(axis=1)
        return values[order][np.minimum(at, order.size - 1)]

    ends = [value_at(rank) for rank in (lower, np.minimum(lower + 1, total - 1))]
    between: Floats = ends[0] + (ends[1] - ends[0]) * (position - lower)
    return np.where(total > 0, between, np.nan)


def correlation(weights: Array, x: Floats, y: Floats) -> Floats:
    """Return Pearson's r of `x` and `y` [item] by `weights` [set, item]: [set].

    NaN for fewer than three items, and where one of the two is constant.
    """
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
        r: Floats = cov / np.sqrt(va * vb)
    undefined = (w > 0).sum(axis=1) < 3
    for centred, variance in ((x[finite], va), (y[finite], vb)):
        least = np.where(w > 0, centred, np.inf).min(axis=1, initial=np.inf)
        most = np.where(w > 0, centred, -np.inf).max(axis=1, initial=-np.inf)
        # Practically constant: the remaining variance is rounding.
        undefined |= (least >= most) | (variance <= 1e-12 * centred.var() if centred.size else True)
    r[undefined] = np.nan
    return np.clip(r, -1.0, 1.0)
