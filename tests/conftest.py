"""What all tests share: hypothesis profiles, and the interpreted kernels' warnings."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

#: Kernels run as plain Python: that is how their coverage is measured, on small arrays.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

settings.register_profile(
    "dev",
    deadline=None,
    max_examples=5 if INTERPRETED else 25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config: pytest.Config) -> None:
    if INTERPRETED:
        # Compiled kernels wrap and turn NaN into an integer without a word; scalars of NumPy warn.
        for what in ("overflow", "invalid value", "divide by zero"):
            config.addinivalue_line("filterwarnings", f"ignore:{what}:RuntimeWarning")
