"""Slices of items by the columns of a table, and the table."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from saved_runs import run, scoring, table_file

from uqeval.errors import StoreError, UsageError
from uqeval.records.addresses import Address
from uqeval.records.lookup import Score, find
from uqeval.statistics.options import CutOptions
from uqeval.statistics.slices_and_intervals import default_cuts, slice_items, slices
from uqeval.stores.item_table import ItemTable, read_table

NAMES = ("a", "b", "c")


def table(**columns: str) -> ItemTable:
    return ItemTable("t.csv", {name: tuple(text.split("|")) for name, text in columns.items()})


# Slices


def test_items_of_slices() -> None:
    own = table(weather="sun|fog|sun|fog", city="x|x|y|x")
    assert slice_items(own, [("weather",), ("weather", "city")]) == {
        "weather=fog": [1, 3], "weather=sun": [0, 2], "weather=fog,city=x": [1, 3],
        "weather=sun,city=x": [0], "weather=sun,city=y": [2],
    }  # fmt: skip
    assert slice_items(own, [("city",), ("city",)]) == {"city=x": [0, 1, 3], "city=y": [2]}


NASTY = [
    "x,city=y", "a=b", "", " ", '"q"', "a@b", "a/b", "<i>", "ä\n", "back\\slash", "x.y[z]",
]  # fmt: skip


@pytest.mark.parametrize("value", NASTY)
def test_every_key_is_an_address(tmp_path: Path, value: str) -> None:
    own = ItemTable("t", {"city": (value, "other"), "a,b=c": ("1", "2")})
    for key, items in slice_items(own, [("city",), ("a,b=c", "city")]).items():
        address = Address.parse(f"pavpu.pavpu@{key}")
        assert key in address.slice_keys and str(address).endswith(key)
        assert dict(address.where)["city"] == (value if items == [0] else "other")


def test_no_two_slices_share_a_key() -> None:
    own = table(a="x,b=y|x", b="z|y")
    found = slice_items(own, [("a",), ("a", "b")])
    assert len(found) == 4 and all(len(items) == 1 for items in found.values())


def test_what_cannot_be_cut() -> None:
    own = ItemTable("t.csv", {"id": tuple(map(str, range(300))), "one": ("x",) * 300})
    with pytest.raises(UsageError, match=r"id makes more than 256 slices.*--slice-by"):
        slice_items(own, [("id",)])
    with pytest.raises(UsageError, match=r"no column 'city'; it has id, one"):
        slice_items(own, [("city",)])
    with pytest.raises(UsageError, match="names a column twice"):
        slice_items(own, [("one", "one")])
    with pytest.raises(UsageError, match=r"no column divides.*id, one"):
        default_cuts(own)


def test_default_cuts() -> None:
    many = [str(i) for i in range(1200)]
    own = ItemTable("t", {
        "id": tuple(many), "one": ("x",) * 1200, "two": ("x", "y") * 600,
        "third": tuple(str(i // 3) for i in range(1200)), "hundred": tuple(many[:100]) * 12,
        "more": tuple(many[:200]) * 6,
    })  # fmt: skip
    cuts = default_cuts(own)
    assert cuts == [("two",), ("hundred",)]  # with "more" there were more than 256
    assert len(slice_items(own, cuts)) == 102


def test_out_of_distribution_items_without_a_value_are_in_all_slices() -> None:
    cells = {"weather": ("sun", "fog", "", "fog", " "), "city": ("x", "x", "x", "y", "")}
    own = ItemTable("t.csv", cells, frozenset([2, 3, 4]))
    assert slice_items(own, [("weather",), ("weather", "city")]) == {
        "weather=fog": [1, 2, 3, 4], "weather=sun": [0, 2, 4], "weather=fog,city=x": [1, 2, 4],
        "weather=fog,city=y": [3, 4], "weather=sun,city=x": [0, 2, 4],
    }  # fmt: skip
    inside = ItemTable("t.csv", {"weather": ("sun", "", "")}, frozenset([2]))
    assert slice_items(inside, [("weather",)]) == {'weather=""': [1, 2], "weather=sun": [0, 2]}
    # Only the values that a table has make a column one of few values.
    assert default_cuts(ItemTable("t.csv", {"a": ("x", "y", ""), "b": ("x", "x", "")},
                                  frozenset([2]))) == [("a",)]  # fmt: skip


def test_results_of_slices(tmp_path: Path) -> None:
    report, path = run(tmp_path, 6)
    own = scoring(path)
    cut = table(weather="sun|fog|sun|fog|sun|snow")
    found = slices(own, slice_items(cut, [("weather",)]), CutOptions(ci=0.95, draws=200))
    assert list(found) == ["weather=fog", "weather=snow", "weather=sun"]
    snow, sun = found["weather=snow"], found["weather=sun"]
    assert (
        snow["items"] == 1
        and snow["small"]
        and snow["units"] == {"name": "item", "drawn": 1, "defined": 1}
    )
    assert snow["intervals"]["pavpu.pavpu"]["reason"] == "1 item has this score; 2 are needed"
    assert snow["names"] == ["item_5"] and sun["items"] == 3
    # One item has what its row says, the threshold held fixed.
    for field in ("pavpu", "surplus", "n_iu"):
        assert snow["results"]["pavpu"][field] == report.items[5]["pavpu"][field]
    assert "curve" in sun["results"]["pavpu"]
    low, high = (sun["intervals"]["pavpu.pavpu"][end] for end in ("low", "high"))
    assert low <= sun["results"]["pavpu"]["pavpu"] <= high
    whole = dataclasses.replace(report, slices=found)
    value = find(whole, Address.parse("pavpu.pavpu@weather=sun"))
    assert isinstance(value, Score) and value.items == 3
    assert value.small == "3 items"
    small = {**sun, "units": {"name": "batch", "drawn": 8, "defined": 8}}
    of_video = find(dataclasses.replace(whole, slices={"weather=sun": small}), value.address)
    assert isinstance(of_video, Score) and of_video.small == "8 batches"
    assert value.value == sun["results"]["pavpu"]["pavpu"] and value.intervals
    plain = slices(own, slice_items(cut, [("weather",)]), CutOptions())
    assert plain["weather=sun"] == sun | {"intervals": {}}


# The table


def test_rows_with_the_suffix_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,w\nb.png,2\na.png,1\nc,3\nz.png,4\n")
    assert read_table(path, NAMES).columns == {"w": ("1", "2", "3")}
    path.write_text("name,w\na.png,1\na.jpg,2\nb,1\nc,1\n")
    with pytest.raises(StoreError, match=r"items have no row: a \(other rows are a.jpg, a.png\)"):
        read_table(path, NAMES)


def test_out_of_distribution_items_need_no_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,w\na,1\n")
    own = read_table(path, NAMES, (0, 1, 2))
    assert (own.columns, own.out) == ({"w": ("1", "", "")}, {1, 2})
    with pytest.raises(StoreError, match="1 of 3 items have no row: b"):
        read_table(path, NAMES, (0, 0, 1))


def test_a_table_of_items_without_names(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("name,w\na,1\nb,1\n")
    with pytest.raises(StoreError, match="If the store has no names of items, give them with"):
        read_table(path, ("0", "1"))
    with pytest.raises(StoreError, match=r"column of --group-by\.$"):
        read_table(path, NAMES)


def test_a_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\ufeffweather,name,city\nsun,b,x\n,a,\nrain,other,y\n,,\nfog,c,\n", "utf-8")
    own = read_table(path, NAMES)
    assert own.columns == {"weather": ("", "sun", "fog"), "city": ("", "x", "")}


def test_quotes_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'name,weather\r\n"a","sun, hot"\r\nb,"say ""x"""\r\n\r\nc,"two\nlines"\r\n')
    assert read_table(path, NAMES).columns == {"weather": ("sun, hot", 'say "x"', "two\nlines")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "has the columns none; expected `name`"),
        (b'{\n "schema": 1}', "is JSON, not CSV; expected a CSV file with a column `name`"),
        (b"id;weather\na;x\n", "has the columns id;weather; expected `name`"),
        (b"name,w\na,1\nb,2\n", "1 of 3 items have no row: c"),
        (b"name,w\nz,1\n", "3 of 3 items have no row: a, b, c"),
        (b"name,w\nz,1\n", "add a row for each"),
        (b"name,w\na,1\nb,2\nc,3\na,1\n", "the item 'a' has two rows"),
        (b"name,w,w\na,1,2\nb,2,2\nc,3,2\n", "two columns 'w'"),
        (b"name,w\na,1\nb,2,3\nc,3\n", "line 3 has more values than columns"),
        (b"name,w,v\na,1,1\nb,2\nc,3,3\n", "line 3 has fewer values than the 3 columns"),
        (b"name,w\na,1\n,2\nc,3\n", "line 3 has no name"),
        (b"\xff\xfename", "cannot be read as CSV"),
        (b'name,w\na,1\nb,"2\nc,3\n', "in the row after line 2: unexpected end of data. A quote"),
        (b"PK\x03\x04\x00\x00\n", "."),
        (b"name,w\na," + b"x" * 200_000 + b"\n", "cannot be read as CSV"),
    ],
)
def test_no_table(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    with pytest.raises(StoreError) as caught:
        read_table(path, NAMES)
    assert words in str(caught.value) and str(path) in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent.csv"):
        with pytest.raises(StoreError, match="cannot be read"):
            read_table(path, NAMES)


def test_a_written_table(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"name": [*NAMES], "w": ['x,"y"', "", "z\n"]}
    assert read_table(table_file(tmp_path / "t.csv", rows), NAMES).columns == {"w": (*rows["w"],)}


def test_slices_of_the_same_columns_are_given_once() -> None:
    own = ItemTable("t.csv", {"a": ("1", "2"), "b": ("x", "y")})
    with pytest.raises(UsageError, match=r"b,a makes the slices of --slice-by a,b again"):
        slice_items(own, [("a", "b"), ("b", "a")])
    assert len(slice_items(own, [("a", "b"), ("a",), ("a", "b")])) == 4
