"""p·log p against NumPy's long double."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import compiled
from hypothesis import given
from hypothesis import strategies as st

from uqeval.kernels import logarithm

p_log_p_32, p_log_p_64 = compiled(logarithm.p_log_p_32), compiled(logarithm.p_log_p_64)

SPECIAL = [1.0, 2.0**-24, 0.5, np.sqrt(0.5), 1 / 3, 0.1, 1 - 2.0**-24, 1 - 2.0**-11, 1e-7, 1e-30]


def exact(p: float) -> float:
    wide = np.longdouble(p)
    return float(wide * np.log(wide)) if p else 0.0


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_ends_are_exact(p: float) -> None:
    assert p_log_p_32(np.float32(p)) == 0.0
    assert p_log_p_64(np.float64(p)) == 0.0


@pytest.mark.parametrize("p", [*SPECIAL, 2.0**-126, 2.0**-130, 2.0**-149])
def test_float32_at_special_values(p: float) -> None:
    q = np.float32(p)
    assert abs(float(p_log_p_32(q)) - exact(float(q))) < 4.5e-8


@pytest.mark.parametrize("p", [*SPECIAL, 1 - 2.0**-53, 2.0**-1022, 1e-300])
def test_float64_at_special_values(p: float) -> None:
    assert float(p_log_p_64(np.float64(p))) == pytest.approx(exact(p), rel=3e-16, abs=0)


@pytest.mark.parametrize("p", [2.0**-1023, 2.0**-1074])
def test_float64_denormals_are_next_to_nothing(p: float) -> None:
    assert abs(float(p_log_p_64(np.float64(p)))) < 1e-300


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=50))
def test_float32_anywhere(values: list[float]) -> None:
    for p in values:
        assert abs(float(p_log_p_32(np.float32(p))) - exact(p)) < 4.5e-8


@given(st.lists(st.floats(2.0**-1000, 1), min_size=1, max_size=50))
def test_float64_anywhere(values: list[float]) -> None:
    for p in values:
        assert float(p_log_p_64(np.float64(p))) == pytest.approx(exact(p), rel=3e-16, abs=0)


def test_float32_on_a_grid() -> None:
    p = np.linspace(0, 1, 1001, dtype=np.float32)
    found = np.array([p_log_p_32(v) for v in p], np.float64)
    assert np.abs(found - [exact(float(v)) for v in p]).max() < 4.5e-8
    assert (found <= 0).all()
