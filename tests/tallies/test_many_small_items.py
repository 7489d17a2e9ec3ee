"""Ranked errors of many small items in one call: the bits of the items one by one.

The errors are squares of random floats, whose sums depend on the order of additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from uqeval.engine.strips import Strip
from uqeval.maps.names import ERROR_KEY
from uqeval.tallies._errors import Error
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.item_curves import Cuts, ItemCurves
from uqeval.tallies.ranked_errors import RankedErrors

SIGMA, SQUARE = Uncertainty("sigma"), Error("mse")
TIES: dict[str, Any] = {"skip": 19, "bits": 13}
SIZES = (1, 1, 2, 90, 1, 64, 257, 5000, 33)


def _items() -> list[dict[str, Any]]:
    """Return items of predicted numbers with many equal σ; the second and the last are void."""
    rng = np.random.default_rng(4)
    items = []
    for number, size in enumerate(SIZES):
        error = rng.gamma(1.5, 1.0, (1, size)).astype("f4")
        sigma = np.where(rng.random((1, size)) < 0.5, rng.integers(1, 41, (1, size)), 1 + error)
        label = (rng.random((1, size)) < 0.1).astype("u1") * 255
        if number in (1, len(SIZES) - 1):
            label[...] = 255
        items.append({"label": label, ERROR_KEY: error, "sigma": sigma.astype("f4")})
    return items


def _prefixes(bits: int, sigmas: Any) -> tuple[tuple[int, int], ...]:
    """Return the high bits of the keys of some σ, in descending order."""
    keys = [int(np.float32(v).view(np.uint32)) + 2**31 for v in sigmas]
    return tuple((0, p) for p in sorted({key >> (32 - bits) for key in keys})[::-1])


ALL = np.concatenate([maps["sigma"].ravel() for maps in _items()])


EXAMPLES = {
    "all ranks": RankedErrors(SIGMA, SQUARE, 1),
    "ties in the order of pixels": RankedErrors(SIGMA, SQUARE, 1, bins=_prefixes(19, ALL), **TIES),
    "ties in ascending order": RankedErrors(SIGMA, SQUARE, 1, bins=_prefixes(19, (3, 7)), **TIES),
    "blocks": RankedErrors(SIGMA, SQUARE, 1, skip=9, bits=13, bins=_prefixes(9, ALL)),
    "curves": ItemCurves(SIGMA, SQUARE, 1),
    "curves, truncated": ItemCurves(SIGMA, SQUARE, 1, Cuts(20, "truncate")),
    "areas": ItemCurves(SIGMA, SQUARE, 1, Cuts(20, "quantile", "together"), every_rank=True),
}


@pytest.mark.parametrize("tally", EXAMPLES.values(), ids=EXAMPLES)
def test_items_in_one_call_have_the_bits_of_each(tally: Any) -> None:
    items = _items()
    strip = Strip.of(items)
    counted = tally.count_items(strip, strip.first)
    states = [tally.state_of(maps) for maps in items]
    assert tally.packing.pack_items(counted) == [tally.pack(state) for state in states]
    assert any(values.any() for values in states[3].values())
