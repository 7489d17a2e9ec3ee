"""Names of items that are spelled in two ways in Unicode."""

from __future__ import annotations

from uqeval.unicode_names import in_one_spelling, spelled_as


def test_names_in_one_spelling() -> None:
    composed, decomposed = "\u00fc", "u\u0308"
    assert in_one_spelling(["a", decomposed]) == ("a", composed)
    both = composed, decomposed  # two items, which stay two
    assert in_one_spelling(both) == both


def test_names_in_the_spelling_of_items() -> None:
    composed, decomposed, other = "\u00fc", "u\u0308", "e\u0301"
    both = composed, decomposed
    assert spelled_as([decomposed, "b"], ["a", composed]) == (composed, "b")
    assert spelled_as([decomposed, "\u00e9"], [*both, other]) == (decomposed, other)
    assert spelled_as(both, [decomposed, "a"]) == both  # the other one is no item
    thrice = "\u01d6", "\u00fc\u0304", "u\u0308\u0304"  # ü with a line above
    assert spelled_as(thrice[2:], thrice[:2]) == thrice[2:]  # which of the two is unknown
    assert spelled_as(thrice[:2], thrice[2:]) == thrice[:2]
