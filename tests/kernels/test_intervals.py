"""Scores of predictive distributions, and where their intervals are looked for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from uqeval.tallies.intervals import IntervalCounts, PredictiveScores


def test_the_crps_is_that_of_erf() -> None:
    z = [*np.random.default_rng(0).uniform(0, 12, 3000), *10.0 ** np.arange(-12, 4), 0.0, 8.9921875]
    for e in map(float, [*z, 9.0, math.nextafter(9.0, 0)]):
        density = math.exp(-0.5 * e * e) / math.sqrt(2 * math.pi)
        expected = e * math.erf(e / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi)
        maps: dict[str, Any] = {"error": np.array([e]), "sigma": np.ones(1)}
        found = PredictiveScores(False, (), ()).state_of(maps | {"label": np.zeros(1, "u1")})
        assert found["crps"][0] == pytest.approx(expected, rel=2e-15)


@pytest.mark.parametrize(
    "factors",
    [
        (), (0.0,), (1.0,), (0.0, 1e-30, 1e-30, 2.0), (1.0, 1.0 + 2**-52, 1.0 + 2**-23, 1.001),
        tuple(k / 16 for k in range(1, 100)), (1e-44, 1e38, math.inf),
    ],
)  # fmt: skip
def test_levels_are_found_to_the_last_bit(factors: tuple[float, ...]) -> None:
    rng = np.random.default_rng(1)
    sigma = np.where(rng.random((40, 50)) < 0.1, 0, 2.0 ** rng.integers(-20, 20, (40, 50)))
    near = rng.choice([*factors, 0.0, 0.5, 3.0], (40, 50)).clip(0, 1e9)
    error = np.nextafter((near * sigma).astype("f4"), rng.choice([0, 1, 1e9], (40, 50)))
    maps: dict[str, Any] = {"error": error.astype("f4"), "sigma": sigma.astype("f4")}
    maps["label"] = rng.choice([0, 255], (40, 50)).astype("u1")
    found = IntervalCounts(factors).state_of(maps)["counts"]
    expected = [0] * (len(factors) + 1)
    for e, s, y in zip(
        *(maps[n].ravel().tolist() for n in ("error", "sigma", "label")), strict=True
    ):
        if y == 0:
            held = (k for k, factor in enumerate(factors) if e <= factor * s)
            expected[next(held, len(factors))] += 1
    assert found.tolist() == expected
