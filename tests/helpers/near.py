"""Compare an oracle with a formula: equal except for rounding."""

from __future__ import annotations

from typing import Any

import pytest


def near(
    found: Any, expected: Any, rel: float = 1e-9, least: float = 1e-12, same_keys: bool = False
) -> None:
    """Assert equal integers, texts and None, and floats within `rel` or `least`, in nested records.

    `found` may have keys that `expected` has not, unless `same_keys`.
    """
    if isinstance(expected, dict):
        assert not same_keys or found.keys() == expected.keys()
        for key, value in expected.items():
            near(found[key], value, rel, least, same_keys)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            near(a, b, rel, least, same_keys)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=least)
    else:
        assert found == expected
