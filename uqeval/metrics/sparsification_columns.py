"""AUSE and AURG of many sets of items, from pixels and errors by bin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uqeval.metrics.sparsification_curves as sc
from uqeval.arrays import Array, np
from uqeval.metrics._columns import SetColumns, over
from uqeval.metrics._tiles import Cumulated, at_ranks

if TYPE_CHECKING:
    from uqeval.metrics.failure_columns import SetRankBins
    from uqeval.metrics.sparsification_settings import SparsificationSettings
    from uqeval.tallies.item_curves import Cuts


def columns(
    settings: SparsificationSettings, ranked: SetRankBins, ideal: SetRankBins
) -> SetColumns:
    """Return AUSE and AURG of pixels `ranked` by their uncertainty; `ideal`: by their error."""
    if not ranked.tiles.spans:
        undefined = np.full(len(ranked.total), np.nan)
        return {("ause",): undefined, ("aurg",): undefined}
    kept, errors = _curve_points(ranked, settings.cuts)
    kept_by_oracle, oracle = _curve_points(ideal, settings.cuts)
    areas = None
    if settings.grid == "every-rank":
        areas = area_of_every_rank(ranked), area_of_every_rank(ideal)
    curves = settings.curves(sc.CutSums(kept, errors, kept_by_oracle, oracle, areas))
    return {(metric.field,): metric.formula(curves) for metric in sc.METRICS}


def _curve_points(rank_bins: SetRankBins, cuts: Cuts) -> tuple[Array, Array]:
    """Return pixels kept and their error sums at each cut, [set, step] both."""
    retained = cuts.kept_of(rank_bins.total.astype(np.int64))
    fields = (Cumulated.from_tiles(rank_bins.tiles, name) for name in ("pixels", "errors"))
    at_cuts = at_ranks(rank_bins.tiles, retained, *fields)
    (below, total), (upper, errors) = at_cuts.before, at_cuts.upto
    if cuts.ties == "together":
        return upper, errors
    share = over(retained - below, upper - below)
    interpolated = total + share * (errors - total)
    return retained, np.where(retained == upper, errors, interpolated)


def area_of_every_rank(rank_bins: SetRankBins) -> Array:
    """Return Σ over m = 1 … N of the mean error of the m first pixels, ends halved: [set].

    Within a bin of n pixels of error e after N_b of error E_b: Σ (E_b + j·e/n)/(N_b + j).
    """
    n, e = rank_bins.pixels, rank_bins.errors
    below = rank_bins.upto - n
    mean = np.where(n > 0, e / n, 0.0)
    bin_areas = e + (rank_bins.errors_upto - e - below * mean) * sc.harmonics(below, rank_bins.upto)
    first = (n > 0).argmax(axis=1)[:, None]
    ends = np.take_along_axis(mean, first, 1)[:, 0] + over(
        rank_bins.errors_upto[:, -1], rank_bins.total
    )
    return bin_areas.sum(axis=1) - ends / 2
