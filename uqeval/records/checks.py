"""Checks of the values of a report from a file, which may come from anyone."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from uqeval.errors import cut, quoted


def checked(kind: type, record: Any) -> Any:
    """Return the report, of the class `kind`, with these keys and values. Raises `ValueError` for
    unexpected ones, with the key.
    """
    try:
        report = _reader(kind).validate_python(record)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(k) for k in first["loc"])
        is_unknown = first["type"] == "unexpected_keyword_argument"
        raise ValueError(f"{cut(key)}: {'unknown key' if is_unknown else first['msg']}") from None
    for key, check in _CHECKS.items():
        try:
            check(getattr(report, key))
        except ValueError as error:
            raise ValueError(f"{key}: {error}") from None
    return report


@cache
def _reader(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _inputs(inputs: dict[str, Any]) -> None:
    for store in [
        *_list(inputs.get("predictions", [])),
        inputs.get("labels") or {},
        inputs.get("target") or {},
    ]:
        if not isinstance(_record(store).get("fingerprint", ""), str):
            raise ValueError("a fingerprint is a text")
    _record(inputs.get("part") or {})


def _settings(settings: dict[str, Any]) -> None:
    said = _record(settings.get("intervals", {}))
    for name, kind in (("draws", int), ("seed", int), ("level", float)):
        if name in said and type(said[name]) is not kind:
            raise ValueError(f"intervals.{name} is {quoted(said[name])}")
    _texts(said.get("groups") or [])


def _items(items: list[dict[str, Any]]) -> None:
    _texts([item.get("name") for item in items])


def _slices(slices: dict[str, dict[str, Any]]) -> None:
    for own in slices.values():
        _texts(own.get("names", []))
        for record in _record(own.get("results", {})).values():
            _record(record)


def _metrics(metrics: dict[str, dict[str, Any]]) -> None:
    for own in metrics.values():
        _texts([own.get(text, "") for text in ("unit", "reference", "interval")])
        ends = _list(own.get("range", [None, None]))
        if len(ends) != 2 or any(type(e) not in (int, float, type(None)) for e in ends):
            raise ValueError(f"a range has two ends, numbers or null; found {quoted(ends)}")
        if own.get("direction") not in (None, "higher", "lower"):
            raise ValueError(f"a direction is {quoted(own['direction'])}")


_CHECKS: dict[str, Callable[[Any], None]] = {
    "inputs": _inputs, "settings": _settings, "items": _items, "slices": _slices,
    "metrics": _metrics,
}  # fmt: skip


def _record(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a record, found {quoted(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {quoted(value)}")
    return value


def _texts(value: Any) -> None:
    for own in _list(value):
        if not isinstance(own, str):
            raise ValueError(f"expected a text, found {quoted(own)}")
