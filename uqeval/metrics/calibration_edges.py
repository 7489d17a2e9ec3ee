"""Edges of bins of equal mass: exact order statistics of the confidences of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.arrays import np

if TYPE_CHECKING:
    from uqeval.metrics._evaluation import Passes
    from uqeval.tallies._values import Uncertainty

#: By name, edges and the pixels that share their confidence with an edge and another pixel.
Edges = dict[str, tuple[tuple[float, ...], int]]


def upper_ranks(pixels: int, bins: int) -> list[int]:
    """Return the ranks, from 0 on, of the inner edges of bins ⌊bins·#{confidence < c}/pixels⌋.

    A pixel's bin is how many k from 1 to bins - 1 have v_k < c, where v_k is the
    ⌈k·pixels/bins⌉-th smallest confidence: at least k/bins of the pixels, and so v_k, lie below c.
    Equal confidences stay in one bin.
    """
    return [-(-k * pixels // bins) - 1 for k in range(1, bins)] if pixels else []


def exact_edges(
    classes: int, coarse: Any, ranks_by_name: Mapping[str, Sequence[int]],
    of: Uncertainty | None = None,
) -> Passes:  # fmt: skip
    """Find the confidences at the given ranks in one pass; return `Edges`.

    `coarse` counts the confidences of all pixels by the high bits of their keys. `of`: a map in
    place of the confidence.
    """
    from uqeval.tallies._values import RawMap
    from uqeval.tallies.ranks import Ranks, bins_at, order_statistics

    bins = bins_at(coarse, [rank for ranks in ranks_by_name.values() for rank in ranks])
    value_of_rank: dict[int, Any] = {}
    if bins:
        detail = Ranks(of or RawMap("confidence"), classes, bins=tuple((0, b) for b in bins))
        fine = (yield (detail,))[detail].total["fine"]
        value_of_rank = {b: fine[i] for i, b in enumerate(bins)}
    edges: Edges = {}
    for name, ranks in ranks_by_name.items():
        values = tuple(order_statistics(coarse, value_of_rank, ranks))
        edges[name] = values, _tied_pixels(value_of_rank, values)
    return edges


def _tied_pixels(fine: Mapping[int, Any], edges: Sequence[float]) -> int:
    from uqeval.tallies.rank_keys import FINE_BITS, keys_of

    total = 0
    for key in keys_of(np.array(sorted(set(edges)))).tolist():
        count = int(fine[key >> FINE_BITS][key & ((1 << FINE_BITS) - 1)])
        total += count if count > 1 else 0
    return total
