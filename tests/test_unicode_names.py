"""Names of items that are spelled in two ways in Unicode."""

from __future__ import annotations

from uqeval.unicode_names import in_one_spelling


def test_names_in_one_spelling() -> None:
    composed, decomposed = "\u00fc", "u\u0308"
    assert in_one_spelling(["a", decomposed]) == ("a", composed)
    both = composed, decomposed  # two items, which stay two
    assert in_one_spelling(both) == both
