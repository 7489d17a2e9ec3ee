"""The rate of a progress bar."""

from __future__ import annotations

import pytest

from uqeval.cli.streams import rate_text


@pytest.mark.parametrize(
    ("nbytes", "items", "seconds", "text"),
    [
        (3_920, 10, 10.0, "1 items/s"),  # 392 bytes/s say nothing
        (3_920, 9, 10.0, ""),
        (0, 50_000, 10.0, "5,000 items/s"),  # maps kept from an earlier pass
        (10_000_000, 3, 10.0, "1.0 MB/s"),
        (9_999_999, 3, 10.0, ""),
        (10_000_000, 3, 0.05, ""),
    ],
)
def test_a_rate_says_something(nbytes: int, items: int, seconds: float, text: str) -> None:
    assert rate_text(nbytes, items, seconds) == text
