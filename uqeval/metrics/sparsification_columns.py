"""AUSE and AURG of many sets of items, from pixels and errors by bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqeval.metrics._columns import over
from uqeval.metrics._tiles import Cumulated, at_ranks
from uqeval.metrics.sparsification_curves import harmonics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place
    from uqeval.metrics.failure_columns import SetRankBins
    from uqeval.metrics.sparsification_settings import SparsificationSettings
    from uqeval.tallies import Cuts


def columns(
    settings: SparsificationSettings, ranked: SetRankBins, ideal: SetRankBins
) -> dict[Place, NDArray[Any]]:
    """Return AUSE and AURG of pixels `ranked` by their uncertainty; `ideal`: by their error.

    NaN as `sparsification_curves.curves` gives none: without pixels, where a cut keeps none, and
    where the error of all pixels is 0 or infinite.
    """
    import numpy as np

    if not ranked.tiles.spans:
        undefined = np.full(len(ranked.total), np.nan)
        return {("ause",): undefined, ("aurg",): undefined}
    retained, model = _curve_points(ranked, settings.cuts)
    means = [
        over(sums, pixels)
        for pixels, sums in ((retained, model), _curve_points(ideal, settings.cuts))
    ]
    if settings.error == "rmse":
        means = [np.sqrt(column) for column in means]
    normaliser = means[0][:, :1] if settings.normalise == "first" else np.ones((len(retained), 1))
    means = [over(column, np.broadcast_to(normaliser, column.shape)) for column in means]
    n, steps, span = ranked.total, retained.shape[1], np.full(len(retained), 1.0)
    if settings.grid == "every-rank":
        areas = [over(_area(rank_bins), n * normaliser[:, 0]) for rank_bins in (ranked, ideal)]
        span = (n - 1) / n
    elif settings.end == "zero":
        areas = [(curve.sum(axis=1) - curve[:, 0] / 2) / steps for curve in means]
    else:
        areas = [(curve.sum(axis=1) - (curve[:, 0] + curve[:, -1]) / 2) / steps for curve in means]
        span *= (steps - 1) / steps
    defined = (retained.min(axis=1) > 0) & np.isfinite(model[:, 0])
    values = {"ause": areas[0] - areas[1], "aurg": means[0][:, 0] * span - areas[0]}
    return {(name,): np.where(defined, column, np.nan) for name, column in values.items()}


def _curve_points(rank_bins: SetRankBins, cuts: Cuts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return pixels kept and their error sums at each cut, [set, step] both."""
    import numpy as np

    retained = cuts.kept_of(rank_bins.total.astype(np.int64))
    fields = (Cumulated.from_tiles(rank_bins.tiles, name) for name in ("pixels", "errors"))
    at_cuts = at_ranks(rank_bins.tiles, retained, *fields)
    (below, total), (upper, errors) = at_cuts.before, at_cuts.upto
    if cuts.ties == "together":
        return upper, errors
    share = over(retained - below, upper - below)
    interpolated = total + share * (errors - total)
    return retained, np.where(retained == upper, errors, interpolated)


def _area(rank_bins: SetRankBins) -> NDArray[Any]:
    """Return Σ over m = 1 … N of the mean error of the m first pixels, ends halved: [set]."""
    import numpy as np

    n, e = rank_bins.pixels, rank_bins.errors
    below = rank_bins.upto - n
    mean = np.where(n > 0, e / n, 0.0)
    bin_areas = e + (rank_bins.errors_upto - e - below * mean) * harmonics(below, rank_bins.upto)
    first = (n > 0).argmax(axis=1)[:, None]
    ends = np.take_along_axis(mean, first, 1)[:, 0] + over(rank_bins.wrong, rank_bins.total)
    areas: NDArray[Any] = bin_areas.sum(axis=1) - ends / 2
    return areas
