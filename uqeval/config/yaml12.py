"""A strict reader of YAML 1.2 that records the line of every key.

`yes` is a text and 1e-3 a number. Rejects duplicate keys, tags, large files, and aliases that
expand to many values.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from uqeval.disk.files import read_bytes
from uqeval.errors import UsageError, cut, quoted

#: Path of a value in the document: keys and indices from the top.
Location = tuple[str | int, ...]

MOST_BYTES = 1 << 20
MOST_VALUES = 100_000
MOST_DEEP = 50

_CORE = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}


class _Loader(yaml.SafeLoader):
    """PyYAML's safe reader with the scalars of YAML 1.2's core schema, without tags."""

    yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the tag {quoted(event.tag)}; write plain values without tags",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)


for _name, (_pattern, _first) in _CORE.items():
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_name}", re.compile(rf"^(?:{_pattern})$"), _first
    )


@dataclass(frozen=True)
class Document:
    """Content of a file, the line of every key and value, and the SHA-256 of the bytes."""

    path: Path
    data: Any
    lines: dict[Location, int]
    sha256: str

    def line(self, place: Location) -> int:
        """Return the line of a place, or of its nearest parent with a line."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 1)

    def locate(self, place: Location) -> str:
        """Return a place for messages: file, line and key."""
        key = cut(".".join(map(str, place)))
        return f"{self.path}:{self.line(place)}" + (f": {key}" if key else "")


def read_yaml(path: str | Path) -> Document:
    """Read a YAML file. Raises `UsageError`."""
    file_path = Path(path)
    try:
        content = read_bytes(file_path, MOST_BYTES)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{cut(path)} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{cut(path)} is not text in UTF-8; expected YAML.") from None
    try:
        node = _Loader(text).get_single_node()
        lines: dict[Location, int] = {}
        data = None if node is None else _Reader(lines, text.splitlines()).value(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"{mark.line + 1}: "
        problem = str(error.problem or error.context)
        if mark is not None and problem.startswith(("mapping values", "could not find")):
            problem = _without_colon(text.splitlines()[mark.line : mark.line + 1]) or problem
        problem = _in_plain_words(problem)
        raise UsageError(f"{cut(path)}:{line or ' '}{cut(problem)}.") from None
    except yaml.YAMLError as error:
        raise UsageError(f"{cut(path)} is not YAML: {cut(' '.join(str(error).split()))}.") from None
    except RecursionError:
        raise UsageError(f"{cut(path)} is nested too deeply.") from None
    return Document(file_path, data, lines, hashlib.sha256(content).hexdigest())


#: The start of a message of PyYAML, and what it means for who writes the file.
_PLAIN_WORDS = {
    "found character '\\t'": "the line is indented with a tab; indent with spaces",
    "expected <block end>": "the indentation or a bracket does not fit the lines before; indent "
    "keys of the same level by the same number of spaces",
    "expected ',' or": "a bracket or brace of the lines before is not closed, or lacks a comma",
    "mapping values are not allowed": "a key inside a value; put each key on its own line, "
    "indented with spaces",
    "could not find expected ':'": "a key without a colon; write `key: value`",
}  # fmt: skip


def _in_plain_words(problem: str) -> str:
    """Return a problem of the text of a file without the terms of PyYAML's parser."""
    plain = (words for start, words in _PLAIN_WORDS.items() if problem.startswith(start))
    return next(plain, problem)


def _without_colon(lines: Sequence[str]) -> str:
    """Return the problem of a line `calibration.ece {max: 0.3}`; empty for another line."""
    match = re.fullmatch(r"\s*([^\s{}:#'\"]+)\s*(\{[^{}]*\})\s*(#.*)?", lines[0]) if lines else None
    return f"a key without a colon; write `{match[1]}: {match[2]}`" if match else ""


class _Reader:
    """Converter of nodes to values that records the line of each place."""

    def __init__(self, lines: dict[Location, int], texts: Sequence[str]) -> None:
        self.lines, self._texts = lines, texts
        self.count = 0

    def value(self, node: yaml.Node, place: Location) -> Any:
        self.count += 1
        if self.count > MOST_VALUES:
            self._refuse(node, f"more than {MOST_VALUES:,} values, with aliases expanded")
        if len(place) > MOST_DEEP:
            self._refuse(node, f"nested more than {MOST_DEEP} deep")
        self.lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return dict(self._entries(node, place))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*place, i)) for i, child in enumerate(node.value)]
        return _scalar(node)

    def _entries(self, node: yaml.MappingNode, place: Location) -> Iterator[tuple[str, Any]]:
        first_lines: dict[str, int] = {}
        for key, child in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a key that is a list or a mapping; expected a name")
            line = key.start_mark.line + 1
            problem = _without_colon(self._texts[line - 1 : line]) if "{" in key.value else ""
            if problem and key.style is None:
                self._refuse(key, problem)
            if key.value == "<<" and key.style is None:
                self._refuse(key, "merge keys (<<) are not read; write the keys here again")
            if key.value in first_lines:
                self._refuse(
                    key,
                    f"the key {quoted(key.value)} is given twice, first on line "
                    f"{first_lines[key.value]}",
                )
            first_lines[key.value] = line
            self.lines[(*place, key.value)] = line
            yield key.value, self.value(child, (*place, key.value))

    def _refuse(self, node: yaml.Node, problem: str) -> None:
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _scalar(node: Any) -> Any:
    text = node.value
    kind = node.tag.rpartition(":")[2]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        try:
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
        except ValueError:
            raise yaml.MarkedYAMLError(
                problem="a whole number with too many digits", problem_mark=node.start_mark
            ) from None
    if kind == "float":
        return float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))
    return text
