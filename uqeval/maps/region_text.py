"""Read regions as users write them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from uqeval.errors import UsageError, listed, quoted
from uqeval.maps.names import MOST_ID, map_and_id
from uqeval.maps.regions import SHARE, Boundary, Box, Depths, OfClass, OfMap, Region

#: The forms in which users write regions.
FORMS = (
    "boundary:R", "interior:R", "class:NAME", "map:NAME", "map:NAME:ID", "depth:LOW-HIGH",
    "box:y0:y1,x0:x1",
)  # fmt: skip
_NUMBER = r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
_DEPTHS = re.compile(rf"({_NUMBER})-({_NUMBER}|inf)")
_BOX = re.compile(rf"({_NUMBER}):({_NUMBER}),({_NUMBER}):({_NUMBER})")


#: Kinds of data whose labels, if they have any, are no classes.
_WITHOUT_CLASSES = {
    "ood": "out-of-distribution detection has", "regression": "predicted numbers have"
}  # fmt: skip


@dataclass(frozen=True)
class Labelled:
    """The properties of data that regions depend on: their kind, and the names of their classes
    (none without class labels).
    """

    kind: str
    class_names: Sequence[str]
    where: str


def region_of(text: str, data: Labelled, share: float = SHARE) -> Region:
    """Return the region that a text names. Raises `UsageError`.

    `share`: the smallest share of a patch's valid pixels with which it belongs to the region.
    """
    kind, _, value = text.strip().partition(":")
    try:
        region = REGIONS[kind](value, data)
    except (KeyError, ValueError):
        raise _of_no_form(text) from None
    if region.needs_labels and (of_kind := _WITHOUT_CLASSES.get(data.kind)):
        raise UsageError(
            f"--region {quoted(text[:100])}: {of_kind} no regions of classes; expected "
            "box:y0:y1,x0:x1, map:NAME or depth:LOW-HIGH."
        )
    if region.needs_labels and not data.class_names:
        raise UsageError(
            f"--region {quoted(text[:100])}: {data.where} has no class labels, which this region "
            "depends on. Give labels, or leave this region out."
        )
    return region if share == SHARE else type(region)(**{**vars(region), "share": share})


def check_form(text: str) -> None:
    """Raise `UsageError` for a text that is no region of any data."""
    kind, _, value = text.strip().partition(":")
    if kind not in ("class", "map"):  # their names depend on the data
        region_of(text, Labelled("classes", ("any",), ""))
    elif not value:
        raise _of_no_form(text)


def _of_no_form(text: str) -> UsageError:
    return UsageError(
        f"--region {quoted(text[:100])}; expected {', '.join(FORMS[:-1])} or {FORMS[-1]}, such as "
        "boundary:8, class:road, depth:0-20 or box:0.5:1,0:1."
    )


def _boundary(value: str) -> float:
    """Return a finite number above 0. Raises `ValueError`."""
    distance = float(value) if re.fullmatch(_NUMBER, value) else math.nan
    if not 0 < distance < math.inf:
        raise ValueError(value)
    return distance


def _class(value: str, data: Labelled) -> Region:
    """Return the region of a class by its name, or by its number."""
    names = list(data.class_names)
    if not names:
        return OfClass(-1, value)  # the data have no labels; `region_of` gives the message
    numbers = [c for c, name in enumerate(names) if name == value]
    if not numbers and value.isdecimal() and int(value) < len(names):
        numbers = [int(value)]
    if len(numbers) != 1:
        problem = "is the name of several classes" if numbers else "is no class"
        raise UsageError(
            f"--region {quoted(f'class:{value[:100]}')}: it {problem} of {data.where}; expected "
            f"one of {listed(names)}, or a number from 0 to {len(names) - 1}."
        )
    (number,) = numbers
    # A key of results ends at a slash.
    is_plain = names.count(names[number]) == 1 and "/" not in names[number]
    return OfClass(number, names[number] if is_plain else str(number))


def _depths(value: str) -> Region:
    match = _DEPTHS.fullmatch(value)
    low, high = (float(end) for end in match.groups()) if match else (0.0, 0.0)
    if not 0 <= low < high:
        raise ValueError(value)
    return Depths(low, high)


def _box(value: str) -> Region:
    match = _BOX.fullmatch(value)
    y0, y1, x0, x1 = (float(end) for end in match.groups()) if match else (0.0,) * 4
    if not (0 <= y0 < y1 <= 1 and 0 <= x0 < x1 <= 1):
        raise ValueError(value)
    return Box(y0, y1, x0, x1)


def _map(value: str) -> Region:
    name, number = map_and_id(value)
    if not name or number is None or number > MOST_ID or "/" in name:
        raise ValueError(value)
    return OfMap(name, number)


#: For each kind of region, a function that makes it from the text after the colon. It raises
#: `ValueError` for an invalid text.
REGIONS: dict[str, Callable[[str, Labelled], Region]] = {
    "boundary": lambda value, _: Boundary(_boundary(value)),
    "interior": lambda value, _: Boundary(_boundary(value), near=False),
    "class": _class,
    "depth": lambda value, _: _depths(value),
    "box": lambda value, _: _box(value),
    "map": lambda value, _: _map(value),
}
