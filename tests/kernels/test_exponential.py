"""exp and log against NumPy's long double."""

from __future__ import annotations

import numpy as np
import pytest
from compiled import compiled
from hypothesis import given
from hypothesis import strategies as st

from uqeval.kernels import exponential
from uqeval.kernels.exponential import LOWEST
from uqeval.kernels.logarithm import log_64

exp_64 = compiled(exponential.exp_64)


def test_ends() -> None:
    assert exp_64(0.0) == 1.0
    assert exp_64(-0.0) == 1.0
    assert exp_64(np.nextafter(LOWEST, -np.inf)) == 0.0
    assert exp_64(-1e300) == 0.0
    assert exp_64(LOWEST) == pytest.approx(np.exp(LOWEST), rel=3e-16)


@given(st.lists(st.floats(LOWEST, 0), min_size=1, max_size=50))
def test_exp_anywhere(values: list[float]) -> None:
    for x in values:
        assert abs(np.longdouble(exp_64(x)) / np.exp(np.longdouble(x)) - 1) < 3e-16


@pytest.mark.parametrize("x", [-1e-300, -(2.0**-53), -np.log(2) / 2, -np.log(2), -1.0, -100.0])
def test_exp_at_special_values(x: float) -> None:
    assert abs(np.longdouble(exp_64(x)) / np.exp(np.longdouble(x)) - 1) < 3e-16


@given(st.lists(st.floats(2.0**-149, 1), min_size=1, max_size=50))
def test_log_anywhere(values: list[float]) -> None:
    for p in values:
        assert float(log_64(p)) == pytest.approx(float(np.log(np.longdouble(p))), rel=4e-16, abs=0)


def test_log_of_zero_is_finite() -> None:
    assert np.isfinite(log_64(0.0))
