"""Reports with many changed values at once, and what `verify --all` finds in them.

One verification of all changes proves what one for each does, as long as no change excuses or
causes another one: `assert_found` names the changes that were not found, and what was found beside
them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from uqeval.usecases.verify.comparing import Difference
from uqeval.usecases.verify.verifying import verify

#: The steps from a record to one of its values.
Place = tuple[str | int, ...]


def read(path: str) -> Any:
    """Return the record of a report."""
    return json.loads(Path(path).read_text("utf-8"))


def differences(record: Any) -> list[Difference]:
    """Return what `verify --all` finds in a record, as a report beside the original one."""
    Path("changed.json").write_text(json.dumps(record), "utf-8")
    return verify("changed.json", everything=True).differences


def changed(name: str, change: Callable[[Any], None]) -> str:
    """Change the record of the report `name`; return the new report's file."""
    record = read(f"{name}.json")
    change(record)
    Path("changed.json").write_text(json.dumps(record), "utf-8")
    return "changed.json"


def parent_of(record: Any, place: Place) -> tuple[Any, Any]:
    """Return what holds a value, and its key or index."""
    for step in place[:-1]:
        record = record[step]
    return record, place[-1]


def add(record: Any, places: Iterable[Place], fraction: float = 1e-3, count: int = 3) -> None:
    """Add `count` to each whole number, and `fraction` to each other one."""
    for place in places:
        own, last = parent_of(record, place)
        own[last] += count if isinstance(own[last], int) else fraction


def remove(record: Any, places: Iterable[Place]) -> None:
    """Remove each value."""
    for place in places:
        own, last = parent_of(record, place)
        del own[last]


def assert_found(
    found: Iterable[Difference], expected: Iterable[tuple[str, str]],
    follow: Sequence[tuple[str, str]] = (),
) -> None:  # fmt: skip
    """Assert that the found differences are the expected ones, by place and field.

    `follow`: the places and the beginnings of fields that follow from a changed value, so they may
    differ too.
    """
    own, given = Counter((one.where, one.field) for one in found), Counter(expected)
    beside = [
        (where, field) for where, field in own - given
        if not any(where == place and field.startswith(start) for place, start in follow)
    ]  # fmt: skip
    lost = [*(given - own)]
    assert not (lost or beside), f"not found: {lost}; found beside them: {beside}"
