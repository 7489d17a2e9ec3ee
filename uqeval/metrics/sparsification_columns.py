"""AUSE and AURG of many sets of items at once, from pixels and errors by bin."""

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
        nothing = np.full(len(ranked.total), np.nan)
        return {("ause",): nothing, ("aurg",): nothing}
    kept, model = _cut(ranked, settings.cuts)
    means = [over(sums, pixels) for pixels, sums in ((kept, model), _cut(ideal, settings.cuts))]
    if settings.error == "rmse":
        means = [np.sqrt(own) for own in means]
    by = means[0][:, :1] if settings.normalise == "first" else np.ones((len(kept), 1))
    means = [over(own, np.broadcast_to(by, own.shape)) for own in means]
    n, steps, span = ranked.total, kept.shape[1], np.full(len(kept), 1.0)
    if settings.grid == "every-rank":
        areas = [over(_area(own), n * by[:, 0]) for own in (ranked, ideal)]
        span = (n - 1) / n
    elif settings.end == "zero":
        areas = [(own.sum(axis=1) - own[:, 0] / 2) / steps for own in means]
    else:
        areas = [(own.sum(axis=1) - (own[:, 0] + own[:, -1]) / 2) / steps for own in means]
        span *= (steps - 1) / steps
    defined = (kept.min(axis=1) > 0) & np.isfinite(model[:, 0])
    values = {"ause": areas[0] - areas[1], "aurg": means[0][:, 0] * span - areas[0]}
    return {(name,): np.where(defined, own, np.nan) for name, own in values.items()}


def _cut(ladder: SetRankBins, cuts: Cuts) -> tuple[NDArray[Any], NDArray[Any]]:
    """Pixels kept and their error sums at each cut, [set, step] both."""
    import numpy as np

    kept = cuts.kept_of(ladder.total.astype(np.int64))
    fields = (Cumulated.of(ladder.tiles, name) for name in ("pixels", "errors"))
    found = at_ranks(ladder.tiles, kept, *fields)
    (below, total), (upto, errors) = found.before, found.upto
    if cuts.ties == "together":
        return upto, errors
    share = over(kept - below, upto - below)
    inside = total + share * (errors - total)
    return kept, np.where(kept == upto, errors, inside)


def _area(ladder: SetRankBins) -> NDArray[Any]:
    """Σ over m = 1 … N of the mean error of the m first pixels, ends halved: [set]."""
    import numpy as np

    n, e = ladder.pixels, ladder.errors
    below = ladder.upto - n
    mean = np.where(n > 0, e / n, 0.0)
    part = e + (ladder.errors_upto - e - below * mean) * harmonics(below, ladder.upto)
    first = (n > 0).argmax(axis=1)[:, None]
    ends = np.take_along_axis(mean, first, 1)[:, 0] + over(ladder.wrong, ladder.total)
    found: NDArray[Any] = part.sum(axis=1) - ends / 2
    return found
