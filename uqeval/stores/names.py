"""The names of items: read from files and arrays, and checked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from uqeval.disk.files import parse_json, read_text
from uqeval.errors import StoreError, cut, listed, quoted


def read_names_file(path: str | Path) -> tuple[str, ...]:
    """Return item names from a JSON list of strings, or a text file with one name a line.

    Raises `StoreError` if the file cannot be read, is something else, or repeats a name.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise StoreError(
            f"{cut(path)}: cannot be read: {error.strerror}. Check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise StoreError(f"{cut(path)}: is not text in UTF-8. Save the names as UTF-8.") from error
    if text.lstrip().startswith(("[", "{")):
        try:
            values = parse_json(text)
        except ValueError as error:
            raise StoreError(f"{cut(path)}: is not valid JSON: {error}.") from error
        return checked_names(values, str(path))
    return checked_names([line.strip() for line in text.splitlines() if line.strip()], str(path))


def checked_names(values: object, where: str, count: int | None = None) -> tuple[str, ...]:
    """Return `values` as item names. Raises `StoreError` unless they are `count` different
    texts.
    """
    if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) for v in values):
        raise StoreError(f"{where}: item names must be a list of texts, one for each item.")
    names = tuple(str(value) for value in values)
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise StoreError(
            f"{where}: {listed(repeated)} appear more than once as item names. Give each item a "
            "different name."
        )
    if "" in names:
        raise StoreError(f"{where}: an item name is empty. Give each item a name.")
    if count is not None and len(names) != count:
        raise StoreError(
            f"{where}: {len(names)} names for {count} items. Give one name an item, in their order."
        )
    return names


def refuse_reordered(names: Sequence[str], stored_names: Sequence[str] | None, where: str) -> None:
    """Raise `StoreError` where given names are those of the store itself in another order.

    They would move each item's predictions to another item.
    """
    if (
        stored_names is None
        or tuple(names) == tuple(stored_names)
        or set(names) != set(stored_names)
    ):
        return
    i = next(k for k, (a, b) in enumerate(zip(names, stored_names, strict=True)) if a != b)
    raise StoreError(
        f"{where}: --names gives the names of the store in another order; item {i} is "
        f"{quoted(stored_names[i])} "
        f"in the store and {quoted(names[i])} in --names. Names do not change the order of items: "
        "leave --names out."
    )


def natural(name: str) -> tuple[object, ...]:
    """Return a key that sorts names as people count: frame_9 before frame_10."""
    parts = re.split("([0-9]+)", name)
    # Digits alternate with text; of two numbers the one with more digits is larger.
    parts[1::2] = [digits.lstrip("0") for digits in parts[1::2]]
    return tuple((len(p), p) if k % 2 else p for k, p in enumerate(parts)), name
