"""Messages about errors in a settings file: what was expected, and what was probably meant."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from uqeval.config.model import Config, Slices, Store
from uqeval.config.options import commands
from uqeval.config.yaml12 import Document, Location
from uqeval.errors import UsageError, cut, did_you_mean, nearest, number_hint, printable, quoted
from uqeval.gate import Limits, Waiver
from uqeval.keys import family_of
from uqeval.metrics import FAMILIES, FAMILIES_IN_REPORTS, families_with

#: The least similarity (`nearest`) of a name that was probably meant.
_SIMILAR = 0.8
#: Options of `uqeval run` that a file cannot have, because they belong to one run.
COMMAND_LINE_ONLY = frozenset({"baseline", "gallery", "single_file", "today", "resume"})


def usage_error(document: Document, error: ValidationError, above: Location = ()) -> UsageError:
    """Return the first of pydantic's errors as one line: file, line, key, error, similar names."""
    errors: list[dict[str, Any]] = [
        {**detail, "loc": (*above, *detail["loc"])} for detail in error.errors()
    ]
    # For a value of several possible types, each type reports an error below the same key.
    first = errors[0]
    if first["type"] == "missing":  # an unknown key next to it is probably this key, misspelt
        around = first["loc"][:-1]
        strange = (e for e in errors if e["type"] == "extra_forbidden" and e["loc"][:-1] == around)
        first = next(strange, first)
    place: Location = first["loc"]
    inner_place = _in_document(document.data, place)
    if first["type"] == "extra_forbidden":
        meant = (
            _decimal_comma(document.data, place)
            or _of_images(place)
            or hint(str(place[-1]), _known_keys(place))
        )
        return UsageError(f"{document.locate(inner_place)}: unknown key{meant}")
    if first["type"] == "missing":
        return UsageError(
            f"{document.locate(inner_place)} lacks the key {quoted(str(place[-1]))}; give it."
        )
    errors_at_place = [e for e in errors if _in_document(document.data, e["loc"]) == inner_place]
    value = first.get("input")
    quoted_value = (
        f" {_in_yaml(value)};" if isinstance(value, str | int | float | bool | None) else ""
    )
    quoted_value = quoted_value if len(quoted_value) <= 100 else ""
    expected = [*dict.fromkeys(map(_expected, errors_at_place or [first]))]
    expectation = " or ".join([*expected[:1], *(e.removeprefix("expected ") for e in expected[1:])])
    if first["type"] in ("dict_type", "model_type"):
        expectation += _example(inner_place, value)
    context = first.get("ctx") or {}
    meant = number_hint(value, context.get("lt", context.get("le")))
    return UsageError(f"{document.locate(inner_place)}:{quoted_value} {expectation}.{meant}")


def _decimal_comma(data: Any, place: Location) -> str:
    """Return the hint about `{min: 0,55}`, which YAML reads as the keys `min` and `55`; empty for
    another key."""
    for step in _in_document(data, place[:-1]):
        data = data[step]
    key = str(place[-1])
    before = [*data][: [*data].index(key)] if isinstance(data, dict) and key in data else []
    if not (key.isdecimal() and data[key] is None and before and type(data[before[-1]]) is int):
        return ""
    number = f"{data[before[-1]]}.{key}"
    return f"; a decimal number has a point: write {before[-1]}: {number}."


def _example(place: Location, value: Any) -> str:
    """Return an example of the keys at a place, made from the value that is there."""
    match place, value:
        case ("stores", _), str():
            return f", such as {{predictions: {printable(value)}}}"
        case ("evaluate", _), [str(command), *_] | str(command):
            return f", such as {{{printable(command)}: {{}}}}"
        case ((("gate", _) | (_,)), int() | float()) if "." in str(place[-1]):
            return f", such as {{min: {value}}}"
    return ""


def _in_yaml(value: Any) -> str:
    """Return a value as YAML writes it."""
    words = {None: "null", True: "true", False: "false"}
    return words[value] if value is None or isinstance(value, bool) else quoted(value)


#: Expected values by type of pydantic's error.
_NOUNS = {
    "bool_type": "true or false", "dict_type": "keys with values", "float_type": "a number",
    "int_type": "a whole number", "list_type": "a list", "model_type": "keys with values",
    "string_type": "a text", "finite_number": "a finite number", "string_too_short": "some text",
    "string_pattern_mismatch": "a name without / and \\, not only of dots and spaces",
    "too_short": "at least one of them",
}  # fmt: skip
_BOUNDS = {
    "greater_than": "above {gt:g}", "greater_than_equal": "of at least {ge:g}",
    "less_than": "below {lt:g}", "less_than_equal": "up to {le:g}",
    "literal_error": "one of {expected}",
}  # fmt: skip


def _expected(error: dict[str, Any]) -> str:
    """Return in words what was expected; messages of uqeval stay unchanged."""
    kind, context = error["type"], error.get("ctx") or {}
    if kind == "literal_error":
        return "expected " + _BOUNDS[kind].format(**context).replace("'", "")
    if kind in _BOUNDS:
        return "expected a number " + _BOUNDS[kind].format(**context)
    if kind in _NOUNS:
        return f"expected {_NOUNS[kind]}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _in_document(data: Any, place: Location) -> Location:
    """Return the part of pydantic's place that the file contains, without names of types."""
    path_in_document: list[str | int] = []
    for step in place:
        if isinstance(data, dict) and step in data:
            data = data[str(step)]
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            continue
        path_in_document.append(step)
    return tuple(path_in_document)


def _of_images(place: Location) -> str:
    """Return the hint about an option of whole images below `failure`; empty for another key.

    The command is `uqeval failure --images`, and the key of the file `image_failure`.
    """
    match place:
        case ("evaluate", _, "failure", key) if (
            key == "images" or key in commands()["image_failure"]
        ):
            option = "" if key == "images" else f"{key}: …"
            return f"; ranking of whole images has a key of its own: `image_failure: {{{option}}}`."
    return ""


def _known_keys(place: Location) -> list[str]:
    """Return the valid keys at the place of an unknown key."""
    match place[:-1]:
        case ():
            return list(Config.model_fields)
        case ("stores", _):
            return list(Store.model_fields)
        case ("evaluate", _, command, *_):
            return list(commands().get(str(command), {}))
        case ("slices", *_):
            return list(Slices.model_fields)
        case (*_, "waive"):
            return list(Waiver.model_fields)
        case _:
            return list(Limits.model_fields)


def hint(name: str, names: list[str]) -> str:
    """Return what was probably meant by an unknown name: one of `names`, the same key elsewhere in
    the file, or a name that is less similar."""
    similar = nearest(name, names, _SIMILAR)
    computing = [own for own in families_with(name) if own in commands()]
    if not similar and names == list(commands()) and computing:
        verb = "it computes" if len(computing) == 1 else "they compute"
        return f"; did you mean {' or '.join(computing)} ({verb} {name})?"
    if not similar and name in COMMAND_LINE_ONLY and names == list(Config.model_fields):
        return f"; it is an option of a command: uqeval run --{name.replace('_', '-')} …"
    if not similar and (place := _elsewhere(name)):
        return f"; it belongs to another place: {place}."
    expected = f"expected one of {', '.join(names)}." if names else "there is none."
    return f"; {did_you_mean(name, names, expected, 0.5)}"


def address_hint(text: str, rule: Any) -> str:
    """Return the message about a rule for a name without a metric or without a field, such as
    `miou`, or `segmentation: {miou: {min: 0.5}}`; empty for other mistakes."""
    if "." in text:
        return ""
    address, limits = text, rule
    while isinstance(limits, dict) and (inner := next(iter(limits.items()), None)):
        if inner[0] in Limits.model_fields:
            break
        address, limits = f"{address}.{inner[0]}", inner[1]
    is_metric = family_of(text) in FAMILIES_IN_REPORTS
    if is_metric and address != text and isinstance(limits, dict):
        text_of_limits = ", ".join(f"{kind}: {value}" for kind, value in limits.items())
        return (
            f"{quoted(text)} names a metric, but no value of it; write "
            f"{cut(f'{address}: {{{text_of_limits}}}')}, a line for each rule."
        )
    if families := families_with(text):
        names = " or ".join(f"{FAMILIES[name].in_reports}.{text}" for name in families)
        return f"{quoted(text)} is not an address of a value; did you mean {names}?"
    return ""


def _elsewhere(name: str) -> str:
    """Return where the file may have a key that is called almost like this; empty for nowhere."""
    if key := nearest(name, Config.model_fields, _SIMILAR):
        return f"`{key}: …` at the top level"
    if key := nearest(name, Store.model_fields, _SIMILAR):
        return f"`stores: {{NAME: {{{key}: …}}}}`"
    if command := nearest(name, commands(), _SIMILAR):
        return f"`evaluate: {{STORE: {{{command}: {{}}}}}}`"
    options = {option: command for command, keys in commands().items() for option in keys}
    if key := nearest(name, options, _SIMILAR):
        return f"`evaluate: {{STORE: {{{options[key]}: {{{key}: …}}}}}}`"
    return ""
