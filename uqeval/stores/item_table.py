"""A CSV of items, with columns such as weather, city or drive."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from uqeval.disk.files import read_bytes
from uqeval.errors import StoreError, UsageError, all_listed, cut, did_you_mean, listed, quoted
from uqeval.stores.names import as_items

_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class ItemTable:
    """Columns of text by name, one value per item; empty for items without a row.

    `out`: the out-of-distribution items, by number. If one has no value in a column, it belongs to
    all slices of the column.
    """

    path: str
    columns: Mapping[str, tuple[str, ...]]
    out: frozenset[int] = frozenset()

    def column(self, name: str) -> tuple[str, ...]:
        """Return the values of a column. Raises `UsageError` if it does not exist."""
        if name not in self.columns:
            raise UsageError(
                f"{cut(self.path)} has no column {quoted(name)}; "
                + did_you_mean(name, self.columns, f"it has {all_listed(self.columns)}.")
            )
        return self.columns[name]

    def look_alikes(self, names: Iterable[str]) -> list[str]:
        """Return a warning for each column whose values differ only in case or in spaces: two
        spellings of one group would count as two, and make intervals too narrow."""
        warnings = []
        for name in names:
            spelled: dict[str, str] = {}
            for value in self.column(name):
                alike = spelled.setdefault(" ".join(value.casefold().split()), value)
                if alike != value:
                    warnings.append(
                        f"{cut(self.path)}: the column {quoted(name)} has {quoted(alike)} and "
                        f"{quoted(value)}, which count as different values. If they are the same, "
                        "spell them alike."
                    )
                    break
        return warnings


def read_table(path: str | Path, names: Sequence[str], sets: Sequence[int] = ()) -> ItemTable:
    """Return the rows of a CSV for the items `names`; its column `name` names the item.

    `sets`: the set of each item where there are several; those of an OUT set (not 0) need no row.
    Rows of other items are ignored. Raises `StoreError` if an item has no row or two rows, and for
    a file that is not such a table.
    """
    columns, rows = _rows(path)
    rows = dict(zip(as_items(rows, names), rows.values(), strict=True))
    out = frozenset(i for i, number in enumerate(sets) if number)
    absent = [name for i, name in enumerate(names) if name not in rows and i not in out]
    if absent:
        others = rows.keys() - set(names)
        looks = f" (other rows are {listed(sorted(others), 2)})" if others else ""
        are_counted = all(name.isdecimal() for name in names)
        unnamed = " If the store has no names of items, give them with --names FILE."
        raise StoreError(
            f"{cut(path)}: {len(absent)} of {len(names)} items have no row: {listed(absent)}"
            f"{looks}. Its column `name` holds the names of items as reports list them: add a row "
            "for each. Unknown values may be empty, except in the column of --group-by."
            f"{unnamed if are_counted else ''}"
        )
    values = {
        column: tuple(rows.get(name, {}).get(column) or "" for name in names)
        for column in columns if column != "name"
    }  # fmt: skip
    return ItemTable(str(path), values, out)


def has_rows(names_in_table: Iterable[str], items: Iterable[str]) -> bool:
    """Return whether one of the items has a row in a table with these names."""
    items = set(items)
    return not items.isdisjoint(as_items(names_in_table, items))


def names_in(path: str | Path) -> tuple[str, ...]:
    """Return the names in a CSV of items. Raises `StoreError` if it is not such a table."""
    return tuple(_rows(path)[1])


def _rows(path: str | Path) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return the columns, and the rows by their items' names."""
    read = 0  # lines
    try:
        data = io.BytesIO(read_bytes(path, _MOST_BYTES))
        with io.TextIOWrapper(data, "utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if str(next(iter(reader.fieldnames or ()), "")).lstrip()[:1] in ("{", "["):
                raise StoreError(
                    f"{cut(path)} is JSON, not CSV; expected a CSV file with a column `name`, the "
                    "items' names, and columns to slice by."
                )
            columns = [column for column in reader.fieldnames or () if column]
            read = reader.line_num
            if "name" not in columns:
                raise StoreError(
                    f"{cut(path)} has the columns {all_listed(columns) or 'none'}; expected "
                    "`name`, the items' names, and columns to slice by."
                )
            if twice := [c for c, count in Counter(columns).items() if count > 1]:
                raise StoreError(f"{cut(path)} has two columns {quoted(twice[0])}. Rename one.")
            rows: dict[str, dict[str, str]] = {}
            for row in reader:
                cells = [cell for column, cell in row.items() if column is not None]
                if None in cells:
                    raise StoreError(
                        f"{cut(path)}: line {reader.line_num} has fewer values than the "
                        f"{len(cells)} columns. Write it again; an empty value keeps its comma."
                    )
                if not any(map(str.strip, cells)):
                    continue  # as spreadsheets add them
                if not row["name"].strip():
                    raise StoreError(
                        f"{cut(path)}: line {reader.line_num} has no name: the column `name` is "
                        "empty. Give the name of the item, or remove the line."
                    )
                if None in row:
                    raise StoreError(
                        f"{cut(path)}: line {reader.line_num} has more values than columns; a "
                        "value with a comma needs quotes."
                    )
                if row["name"] in rows:
                    raise StoreError(
                        f"{cut(path)}: the item {quoted(row['name'])} has two rows. Keep one."
                    )
                rows[row["name"]] = row
                read = reader.line_num
    except FileNotFoundError as error:
        raise StoreError(f"{cut(path)} cannot be read: {error.strerror}. Check the path.") from None
    except csv.Error as error:
        raise StoreError(
            f"{cut(path)} cannot be read as CSV, in the row after line {read}: {error}. A quote "
            'that begins a value must end it, and is doubled inside: "a ""b"" c".'
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise StoreError(f"{cut(path)} cannot be read as CSV: {reason}.") from None
    return columns, rows
