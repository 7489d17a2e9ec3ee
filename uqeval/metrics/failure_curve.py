"""The risk-coverage curve of pixels, with fewer points where it is straight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, np
from uqeval.metrics._contract import set_value

if TYPE_CHECKING:
    from uqeval.metrics._rank_bins import RankBins

#: Most points of a curve, and the distance from the line within which no point is added.
MOST, CLOSE = 400, 3e-5


def put_curve(record: dict[str, Any], rank_bins: RankBins, undefined: str) -> None:
    """Set `curve` of a record: null without pixels."""
    if rank_bins.total:
        record["curve"] = curve(rank_bins)
    else:
        set_value(record, "curve", None, undefined)


def curve(rank_bins: RankBins) -> dict[str, Any]:
    """Return risk over coverage at exact cuts: Geifman & El-Yaniv 2017, §2.

    `coverage`: pixels kept, the most certain first, over all pixels; `risk`: wrong ones of them.
    A cut lies behind each tie or bin, of which there are `points`. At most `MOST` are kept; a cut
    that is left out is at most `bound` above or below the line between its neighbours.
    """
    coverage = rank_bins.upto / rank_bins.total
    risk = rank_bins.errors_upto / rank_bins.upto
    chosen, bound = thinned(coverage, risk)
    return {
        "coverage": np.asarray(coverage[chosen]).tolist(),
        "risk": np.asarray(risk[chosen]).tolist(),
        "points": len(coverage),
        "bound": bound,
    }


def thinned(x: Array, y: Array) -> tuple[Array, float]:
    """Return indices of at most `MOST` points, and the largest distance of the others to the line.

    Begins with the ends, and adds in each round the farthest point between neighbours.
    """
    chosen = np.unique([0, len(x) - 1])
    while True:
        gap = np.abs(y - np.interp(x, x[chosen], y[chosen]))
        bound = float(gap.max())
        if bound <= CLOSE or len(chosen) >= MOST:
            return chosen, bound
        widest = np.maximum.reduceat(gap, chosen)
        spans = np.argsort(-widest, kind="stable")[: MOST - len(chosen)]
        ends = np.append(chosen, len(x))
        added = [
            ends[i] + np.argmax(gap[ends[i] : ends[i + 1]]) for i in spans if widest[i] > CLOSE
        ]
        chosen = np.union1d(chosen, added)
