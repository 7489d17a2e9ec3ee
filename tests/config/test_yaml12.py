"""YAML 1.2, and its parts that are refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from uqeval.config.yaml12 import read_yaml
from uqeval.errors import UsageError


def read(folder: Path, text: str | bytes) -> Any:
    path = folder / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001), ("1E5", 1e5), ("1.", 1.0), (".5", 0.5), ("-2.5e+3", -2500.0),
        ("0o17", 15), ("0x1F", 31), ("017", 17), ("+3", 3), ("1_000", "1_000"), ("1:30", "1:30"),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"), ("true", True),
        ("False", False), ("null", None), ("~", None), ("''", ""), ("'1'", "1"), ('"true"', "true"),
        ("2001-01-01", "2001-01-01"), ("=", "="), (".inf", math.inf), ("-.INF", -math.inf),
        ("1e", "1e"), ("e3", "e3"), ("0b1", "0b1"), ("[1, a]", [1, "a"]), ("é", "é"),
    ],
)  # fmt: skip
def test_scalars(tmp_path: Path, text: str, value: Any) -> None:
    found = read(tmp_path, f"a: {text}").data["a"]
    assert found == value and type(found) is type(value)


def test_keys_are_texts_and_have_lines(tmp_path: Path) -> None:
    document = read(tmp_path, '\ufeff# first\n1: {a: 2}\nyes:\n  - x\n  - y: z\n"<<": {b: 1}\n')
    assert document.data == {"1": {"a": 2}, "yes": ["x", {"y": "z"}], "<<": {"b": 1}}
    assert document.line(("1", "a")) == 2 and document.line(("yes", 1, "y")) == 5
    assert document.locate(("yes", 1, "nothing")).endswith("a.yaml:5: yes.1.nothing")
    assert len(document.locate(("yes", "A" * 5000))) < 500


def test_aliases_are_read_where_they_are_few(tmp_path: Path) -> None:
    assert read(tmp_path, "a: &x {b: 1}\nc: *x").data == {"a": {"b": 1}, "c": {"b": 1}}


BOMB = "\n".join(
    ["a0: &a0 [0,0,0,0,0,0,0,0,0,0]"]
    + [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3", ":3: the key 'a' is given twice, first on line 1"),
        ("x: {b: 1, b: 1}", "'b' is given twice"),
        ("x: !!python/object/apply:os.system [id]", ":1: the tag 'tag:yaml.org,2002:python"),
        ("x: !!int 3", "the tag"), ("x: !mine 3", "the tag"), ("!!map {a: 1}", "the tag"),
        (BOMB, "more than 100,000 values, with aliases expanded"),
        ("a: &a [*a]", "nested more than 50 deep"), ("[" * 5000, "nested too deeply"),
        ("a: [1", ":1: "), ("a: *x", "undefined alias"), ("a: 1\n---\nb: 2", "another document"),
        ("? [1]\n: 2", "a key that is a list or a mapping"), ("a: \x00", "is not YAML"),
        ("a: " + "9" * 5000, "too many digits"), (b"a: \xff\xfe", "not text in UTF-8"),
        ("a: 1\n" + "#" * (1 << 20), "larger than 1 MiB"), ("a:\tb: c", ""),
        ("a:\n\tb: 1", ":2: the line is indented with a tab; indent with spaces."),
        ("a:\n  b: 1\n c: 2", ":3: the indentation or a bracket does not fit"),
        ("a: {b: 1\nc: 2", "a bracket or brace of the lines before is not closed"),
        ("a: &x {b: 1}\nc: {<<: *x}", ":2: merge keys (<<) are not read; write the keys here"),
        ("a: b: c", ":1: a key inside a value; put each key on its own line"),
        ("a: 1\nb\n", "a key without a colon; write `key: value`"),
        ("a:\n  b.c {max: 0.3}", ":2: a key without a colon; write `b.c: {max: 0.3}`"),
        ("b.c {max: 0.3, id: X} # y\nd: 1", ":1: a key without a colon; write `b.c: {max: 0.3, i"),
        ("a: 1\nb.c {}", ":2: a key without a colon; write `b.c: {}`"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, text: str | bytes, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert says in str(caught.value) and "a.yaml" in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            read_yaml(path)
