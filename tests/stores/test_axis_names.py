"""Names of axes: which they decide, in which order, and which leave the axes to their number."""

from __future__ import annotations

import pytest

from uqeval.errors import StoreError
from uqeval.stores.axis_names import axes_among
from uqeval.stores.kinds import KINDS, forms_of

PROBS, LABELS, FRAMES = forms_of("probs"), forms_of("labels"), KINDS["frames"]


@pytest.mark.parametrize(
    ("forms", "names", "axes"),
    [
        (PROBS, ("x", "class", "n", "y"), ("x", "class", "item", "y")),
        (PROBS, ("time", "band", "lat", "lon"), ("item", "class", "y", "x")),
        (PROBS, ("x", "class"), ("item", "class")),  # tables: any axis is that of items
        (PROBS, ("class", "t"), ("class", "item")),
        (PROBS, ("sample", "y", "x"), None),
        (LABELS, ("t", "y", "x"), ("item", "y", "x")),
        (LABELS, ("y", "x", "band"), ("y", "x", "item")),  # of size 1
        (LABELS, ("class", "y", "x"), None),  # of size 2
        (LABELS, ("rater", "y", "x"), None),
        (FRAMES, ("t", "y", "x", "rgb"), ("item", "y", "x", "class")),
        (FRAMES, ("rgb", "t", "x", "y"), ("class", "item", "x", "y")),
    ],
)
def test_names_decide_in_any_order(
    forms: tuple[tuple[str, ...], ...], names: tuple[str, ...], axes: tuple[str, ...] | None
) -> None:
    shape = [1 if name == "band" else 2 for name in names]
    assert axes_among(forms, names, shape, "a", t_is_item=forms is not PROBS) == axes


@pytest.mark.parametrize(
    "names",
    [
        None, ("dim_0", "dim_1", "dim_2", "dim_3"), ("scene", "class", "y", "x"),
        ("item", None, None, None), (None, None, "lat", None),
    ],
)  # fmt: skip
def test_names_that_leave_the_axes_to_their_number(names: tuple[str | None, ...] | None) -> None:
    assert axes_among(PROBS, names, (2, 3, 4, 5), "a") == ("item", "class", "y", "x")


def test_unknown_names_beside_known_ones() -> None:
    """The known ones must be where the kind of array has them."""
    scenes = ("scene", "member", "lat", "lon")
    assert axes_among(KINDS["mean"], scenes, (2, 3, 4, 5), "a") == ("item", "sample", "y", "x")
    odd = (
        ("scene", "class", "x", "y"),
        ("scene", "y", "x", "class"),
        ("class", "station"),
        ("y", "y"),
    )
    for names in (scenes, *odd):
        with pytest.raises(StoreError, match="a: dimension_names are"):
            axes_among(PROBS, names, (2, 3, 4, 5)[: len(names)], "a")


def test_axes_of_one_item_need_names() -> None:
    short = (("class", "y", "x"),)
    assert axes_among((), ("y", "x", "c"), (2, 2, 2), "a", short=short) == ("y", "x", "class")
    assert axes_among((), None, (2, 2, 2), "a", short=short) is None
