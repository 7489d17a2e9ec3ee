"""Names of axes: canonical ones, and those that other tools give."""

from __future__ import annotations

from collections.abc import Sequence

from uqeval.errors import StoreError, cut

#: The canonical name of each axis, and other names in `dimension_names`.
AXES: dict[str, frozenset[str]] = {
    "item": frozenset({
        "item", "items", "n", "image", "images", "frame", "frames", "pair", "pairs", "time",
        "batch",
    }),
    "annotator": frozenset({
        "annotator", "annotators", "rater", "raters", "r", "annotation", "annotations", "expert",
        "experts", "reader", "readers",
    }),
    "sample": frozenset({"sample", "samples", "t", "m", "member", "members", "pass", "draw"}),
    "class": frozenset({
        "class", "classes", "c", "channel", "channels", "band", "category", "component",
        "components", "rgb", "uv",
    }),
    "y": frozenset({"y", "h", "height", "row", "rows", "lat", "latitude"}),
    "x": frozenset({
        "x", "w", "width", "col", "cols", "column", "columns", "lon", "longitude",
    }),
}  # fmt: skip
#: Axes, by the number of axes of the array, whose place tells nothing of the others. Elsewhere,
#: `sample` and `class` decide what is read.
_PLACES = {"item": 0, "y": -2, "x": -1}
_PLACES_OF = {
    2: {"class": -1}, 3: _PLACES, 4: _PLACES | {"class": 1},
    5: _PLACES | {"annotator": 1, "sample": 1, "class": 2},
}  # fmt: skip


def axis_called(name: str | None) -> str | None:
    """Return the canonical name of an axis; None if the name is not known."""
    folded = (name or "").lower()
    return next((axis for axis, aliases in AXES.items() if folded in aliases), None)


def canonical_axes(names: Sequence[str | None], where: str) -> tuple[str, ...]:
    """Return the canonical names of `dimension_names`. Raises `StoreError` for an unknown name."""
    axes = tuple(axis_called(name) or "" for name in names)
    if "" in axes or len(set(axes)) != len(axes):
        raise StoreError(
            f"{where}: dimension_names are {cut(list(names))}; expected each of item, sample, "
            "annotator, class, y, x at most once. Rename the dimensions, or leave the names out."
        )
    return axes


def refuse_other_names(names: Sequence[str | None] | None, form: Sequence[str], where: str) -> None:
    """Raise `StoreError` if names tell nothing of the order of axes, but one is that of another
    axis than the array's form has at its place."""
    pairs = zip(map(axis_called, names or ()), form, strict=False)
    if len(form) > 1 and any(called not in (None, axis) for called, axis in pairs):
        canonical_axes(names or (), where)


def with_items(axes: tuple[str, ...]) -> tuple[str, ...]:
    """Return canonical axes of a table, such as [x, class], with that of its items.

    It is the only one that is neither of classes or annotators nor of samples, else that of
    samples. Other axes are returned unchanged.
    """
    others = [axis for axis in axes if axis not in ("class", "annotator", "sample")]
    if {"class", "annotator"}.isdisjoint(axes) or "item" in axes or len(others) > 1:
        return axes
    of_items = others or ["sample"]
    return tuple("item" if axis in of_items else axis for axis in axes)


def telling(names: Sequence[str | None] | None) -> Sequence[str | None]:
    """Return names of axes that tell their order; else none.

    They tell nothing where no name is known, where there is one axis, and where some are not known
    and the others are at the places that they have without names, in any kind of array.
    """
    axes = [axis_called(name) for name in names or ()]
    if not names or len(axes) < 2 or not any(axes):
        return ()
    if None not in axes:
        return names
    places = _PLACES_OF.get(len(axes), {})
    known = [(axis, place) for place, axis in enumerate(axes) if axis is not None]
    at_usual = all(axis in places and places[axis] % len(axes) == at for axis, at in known)
    return () if at_usual else names
