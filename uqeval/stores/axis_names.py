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

#: Names of arrays that tell which items these are: each has a number or a text once.
_IDS = frozenset({
    "id", "ids", "idx", "index", "uid", "uids", "key", "keys", "file", "files", "path", "paths",
    "stem", "stems",
    *(
        f"{of}_{what}"
        for of in ("image", "img", "item", "sample", "frame", "file", "scene")
        for what in ("id", "ids", "idx", "index", "name", "names", "path", "paths", "number", "key")
    ),
    "filename", "filenames", "filepath", "filepaths",
})  # fmt: skip


def axis_called(name: str | None) -> str | None:
    """Return the canonical name of an axis; None if the name is not known."""
    folded = (name or "").lower()
    return next((axis for axis, aliases in AXES.items() if folded in aliases), None)


def axis_of_coordinate(name: str) -> str | None:
    """Return the axis of an array of one axis by its name; None if the name is not known."""
    return axis_called(name) or ("item" if name.lower() in _IDS else None)


def canonical_axes(names: Sequence[str | None], where: str) -> tuple[str, ...]:
    """Return the canonical names of `dimension_names`. Raises `StoreError` for an unknown name."""
    axes = tuple(axis_called(name) or "" for name in names)
    if "" in axes or len(set(axes)) != len(axes):
        raise StoreError(
            f"{where}: dimension_names are {cut(list(names))}; expected each of item, sample, "
            "annotator, class, y, x at most once. Rename the dimensions, or leave the names out."
        )
    return axes


def axes_among(
    forms: Sequence[tuple[str, ...]],
    names: Sequence[str | None] | None,
    shape: Sequence[int],
    where: str,
    *,
    short: Sequence[tuple[str, ...]] = (),
    t_is_item: bool = False,
) -> tuple[str, ...] | None:
    """Return the canonical axes of an array, in its own order: those of one of the `forms`, or only
    with names also of the `short` ones, such as of one item. None if it has none of them.

    Names that are all known decide, in any order. Otherwise the number of axes does. A single axis
    may have any name. `t_is_item`: the array has no samples, so `t` is the axis of items. Raises
    `StoreError` for unknown names beside known ones that are not where the form has them.
    """
    called = [axis_called(name) for name in names or ()]
    if len(called) > 1 and None not in called:
        axes = canonical_axes(names or (), where)
        if any(set(axes) == set(form) for form in (*forms, *short)):
            return axes
        with_items = (_with_items(axes, shape, form, t_is_item=t_is_item) for form in forms)
        return next(filter(None, with_items), None)
    by_rank = [form for form in forms if len(form) == len(shape)]
    for form in by_rank:
        at_places = (own in (None, axis) for own, axis in zip(called, form, strict=False))
        if len(called) < 2 or all(at_places):
            return form
    return canonical_axes(names or (), where) if by_rank and any(called) else None


def _with_items(
    axes: tuple[str, ...], shape: Sequence[int], form: tuple[str, ...], *, t_is_item: bool
) -> tuple[str, ...] | None:
    """Return the axes with that of items, which has another name; None if they are not of the form.

    In a table, such as [x, class], it may have any name but that of annotators. In an image it is
    `t`, or one band of what has no classes.
    """
    others = [axis for axis in axes if axis not in form]
    if set(form) - set(axes) != {"item"} or len(others) != 1:
        return None
    is_table, other = "y" not in form, others[0]
    of_items = {
        "sample": is_table or t_is_item, "y": is_table, "x": is_table,
        "class": shape[axes.index(other)] == 1,
    }  # fmt: skip
    if not of_items.get(other):
        return None
    return tuple("item" if axis == other else axis for axis in axes)
