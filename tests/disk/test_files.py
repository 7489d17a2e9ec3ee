"""JSON of files: what is refused, and what is a number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uqeval.disk.files import content_of, parse_json, path_without_suffix, read_bytes
from uqeval.errors import StoreError


@pytest.mark.parametrize(
    "text",
    ["NaN", "Infinity", "-Infinity", "1e999", "-1E+400", "1e0400", "2e308", "1" * 400 + ".0"],
)
def test_numbers_that_are_not_finite(text: str) -> None:
    document = f'{{"a": [0, {{"b": {text}}}]}}'
    with pytest.raises(ValueError, match="not a number that this file may hold"):
        parse_json(document)
    value = parse_json(document, finite=False)["a"][1]["b"]
    assert not np.isfinite(value)


@pytest.mark.parametrize("number", [10**309, -(10**400), 2 * 10**308])
def test_whole_numbers_beyond_float64(number: int) -> None:
    with pytest.raises(ValueError, match="not a number that this file may hold"):
        parse_json(f'{{"a": [{number}]}}')
    assert parse_json(f'{{"a": [{number}]}}', finite=False) == {"a": [number]}


@pytest.mark.parametrize(
    "value",
    [0, -1.5, 1e300, 1.7976931348623157e308, 5e-324, 1e-400, [1e21, {"x": 123456789e300}],
     10**299, -(10**308), 2**64 - 1, "NaN", "1e999", None],
)  # fmt: skip
def test_what_is_written_is_read(value: Any) -> None:
    assert parse_json(json.dumps({"v": value}))["v"] == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is there twice"),
        ("[" * 10**5, "nested too deeply"),
        (b"\xff", "not text in UTF-8"),
        ('{"a": }', "at line 1, column 7"),
        ("1" * 5000, "thousands of digits"),
    ],
)
def test_what_is_refused(text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_json(text)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/r.json", "a/r"), ("a.b/r", "a.b/r"), ("r.states.zip", "r.states"), ("..json", "."),
        ("a/..json", "a/."), (".json", ".json"),
    ],
)  # fmt: skip
def test_paths_without_suffix(path: str, expected: str) -> None:
    assert path_without_suffix(Path(path)) == expected


def test_a_url_is_no_missing_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="it is a URL, and only files on a disk are read"):
        read_bytes("s3://bucket/items.csv")
    Path("s3:/bucket").mkdir(parents=True)
    Path("s3:/bucket/items.csv").write_text("x")
    assert read_bytes("s3://bucket/items.csv") == b"x"


def test_what_is_blamed_on_the_content_of_a_file() -> None:
    words = r"r\.json: the content is not as .* lacks 'a'"
    with pytest.raises(StoreError, match=words), content_of("r.json"):
        raise KeyError("a")
    with pytest.raises(UnicodeEncodeError), content_of("r.json"):  # writing, such as to a terminal
        "\ud800".encode()
