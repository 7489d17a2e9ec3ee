"""Read and check `uqeval.yaml` and rules files; errors name the file, line and key."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from uqeval.config.model import STORE_PATHS, Config, Slices, Store, options_model
from uqeval.config.options import PATHS, check_values, commands
from uqeval.config.paths import anchored
from uqeval.config.yaml12 import Document, Location, read_yaml
from uqeval.errors import UsageError, cut, number_flaw, quoted
from uqeval.gate import Address, Limits, Rule, Waiver
from uqeval.inputs.options import regions_beside
from uqeval.keys import COMMANDS_BY_KEY

#: Other names of options, by command: accepted with a note.
_OPTION_ALIASES = {"sweep": {"metrics": "metric"}}

#: The file that commands look for in the working folder.
FILE = "uqeval.yaml"


def load_config(path: str | Path) -> Config:
    """Return the content of a `uqeval.yaml`, with paths relative to the working folder.

    Raises `UsageError`.
    """
    return _config(_mapping(read_yaml(path)))


def load_rules(path: str | Path) -> list[Rule]:
    """Return the rules of a `uqeval.yaml`, or of a rules file.

    Raises `UsageError`, also for a file without rules.
    """
    document = _mapping(read_yaml(path))
    if str(document.data.get("schema")).startswith("uqeval.report/"):
        raise UsageError(
            f"{cut(path)}: is a report, not rules; give a file of rules, such as pavpu.pavpu: "
            "{min: 0.8}. To limit the change since another report, give it as --baseline FILE. To "
            "compare two reports, run uqeval compare."
        )
    is_config = any(key in Config.model_fields for key in document.data)
    above: Location = ("gate",) if is_config else ()
    if is_config:
        limits = _config(document).gate
    else:
        _check_keys(document, document.data, above)
        try:
            limits = TypeAdapter(dict[str, Limits]).validate_python(document.data)
        except ValidationError as error:
            raise _usage_error(document, error) from None
    if not limits:
        problem = f"{path}: has no rules" + (" under gate:" if is_config else "")
        raise UsageError(f"{problem}; give at least one, such as pavpu.pavpu: {{min: 0.8}}.")
    return list(_rules(document, limits, above))


def check_file(path: str | Path) -> None:
    """Raise `UsageError` for a `uqeval.yaml` or a rules file that is not valid."""
    document = _mapping(read_yaml(path))
    if not any(key in Config.model_fields for key in document.data) or _config(document).gate:
        load_rules(path)


def _mapping(document: Document) -> Document:
    if document.data is None:
        raise UsageError(f"{document.path}: is empty.")
    if not isinstance(document.data, dict):
        kind = type(document.data).__name__
        raise UsageError(f"{document.path}: holds a {kind}; expected keys with values.")
    return document


def _rules(document: Document, limits: dict[str, Limits], above: Location) -> Iterator[Rule]:
    lines_of_rules: dict[Address, int] = {}
    for text, limit in limits.items():
        line = document.line((*above, text))
        address = _address(document, text, above)
        if address in lines_of_rules:
            raise UsageError(
                f"{document.path}:{line}: {address} has a rule on line {lines_of_rules[address]} "
                "already."
            )
        lines_of_rules[address] = line
        yield Rule(address, limit, str(document.path), line)


def _address(document: Document, text: str, above: Location) -> Address:
    try:
        return Address.parse(text)
    except UsageError as error:
        raise UsageError(f"{document.path}:{document.line((*above, text))}: {error}") from None


def _check_keys(document: Document, data: dict[str, Any], above: Location) -> None:
    """Raise `UsageError` for a rule without an address that looks like a misspelt key."""
    for key in data:
        similar = difflib.get_close_matches(key, Config.model_fields, 1)
        if "." not in key and similar:
            raise UsageError(
                f"{document.locate((*above, key))}: unknown key; did you mean {quoted(similar[0])}?"
            )


def _config(document: Document) -> Config:
    notes = _replace_aliases(document)
    _check_numbers(document, document.data, ())
    gate = document.data.get("gate")
    for text in gate if isinstance(gate, dict) else ():
        _address(document, str(text), ("gate",))
    try:
        config = Config.model_validate(document.data)
    except ValidationError as error:
        raise _usage_error(document, error) from None
    config._at, config._notes = document.locate, notes
    list(_rules(document, config.gate, ("gate",)))  # no address has two rules
    _check_stores(document, config)
    return _anchored(document, config)


def _replace_aliases(document: Document) -> tuple[str, ...]:
    """Replace other names of metrics and options by the documented ones; return notes on them."""
    notes: list[str] = []
    evaluate = document.data.get("evaluate")
    stores = evaluate.items() if isinstance(evaluate, dict) else ()
    for store, metrics in [(store, m) for store, m in stores if isinstance(m, dict)]:
        notes += _renamed(document, metrics, COMMANDS_BY_KEY, ("evaluate", store))
        for command, aliases in _OPTION_ALIASES.items():
            if isinstance(options := metrics.get(command), dict):
                notes += _renamed(document, options, aliases, ("evaluate", store, command))
    return tuple(notes)


def _renamed(
    document: Document, mapping: dict[str, Any], aliases: Mapping[str, str], above: Location
) -> Iterator[str]:
    """Replace other names of keys by the documented ones, in place. Yield a note on each."""
    for alias in aliases.keys() & mapping:
        name, location = aliases[alias], document.locate((*above, alias))
        if name in mapping:
            raise UsageError(
                f"{location}: is another name of {name}, which is given too; leave one out."
            )
        renamed = {name if key == alias else key: value for key, value in mapping.items()}
        mapping.clear()
        mapping.update(renamed)
        for place, line in list(document.lines.items()):
            if place[: len(above) + 1] == (*above, alias):
                document.lines[(*above, name, *place[len(above) + 1 :])] = line
        yield f"{location}: `{alias}` is called `{name}`; use that name."


def _check_numbers(document: Document, value: Any, place: Location) -> None:
    """Raise `UsageError` for the first number of the file that is not valid for its key."""
    if isinstance(value, dict):
        for key, number in value.items():
            _check_numbers(document, number, (*place, key))
    elif (flaw := number_flaw(str(place[-1]) if place else "", value)) is not None:
        raise UsageError(f"{document.locate(place)}: {flaw}")


def _check_stores(document: Document, config: Config) -> None:
    for name, store in config.stores.items():
        if store.predictions is None and store.video is None:
            raise UsageError(
                f"{document.locate(('stores', name))}: names no predictions and no video; give one."
            )
        if store.labels is not None and store.target is not None:
            raise UsageError(
                f"{document.locate(('stores', name))}: has both labels and a target; give one of "
                f"them."
            )
    for name in config.evaluate:
        if name not in config.stores and name in commands():
            raise UsageError(
                f"{document.locate(('evaluate', name))}: is a metric, not a store of this file; "
                f"write it below its store, such as evaluate: {{{next(iter(config.stores))}: "
                f"{{{name}: {{}}}}}}."
            )
        if name not in config.stores:
            raise UsageError(
                f"{document.locate(('evaluate', name))}: is not a store of this file"
                + _nearest(name, list(config.stores))
            )
        for command, options in (config.metrics_of(name) or {}).items():
            _check_options(document, ("evaluate", name, command), options)


def _check_options(document: Document, place: Location, options: dict[str, Any]) -> None:
    """Check names, types and values of a command's options, and convert them in place."""
    command = str(place[-1])
    if command not in commands():
        similar = _nearest(command, list(commands()))
        raise UsageError(f"{document.locate(place)}: unknown command{similar}")
    try:
        checked = options_model(command).model_validate(options)
        given_options = checked.model_dump(exclude_none=True)  # null means: not given
        options.clear()
        options.update(given_options)
        check_values(command, options)
    except ValidationError as error:
        raise _usage_error(document, error, place) from None
    except UsageError as error:
        raise UsageError(f"{document.locate(place)}: {error}") from None


def _is_label_id(name: str, value: Any) -> bool:
    """Return whether a mask is an id of the labels, not a path."""
    return name == "ood_mask" and str(value).isdecimal()


def _anchored(document: Document, config: Config) -> Config:
    """Return the configuration with all paths relative to the working folder.

    Raises one `UsageError` for all invalid paths.
    """
    bad: list[str] = []

    def anchored_path(path: str, *place: str) -> str:
        try:
            return anchored(path, document.path.parent)
        except ValueError as error:
            bad.append(f"{document.locate(place)}: {error}.")
            return path

    def fixed(value: Any, *place: str) -> Any:
        if isinstance(value, list):
            return [anchored_path(str(path), *place) for path in value]
        return None if value is None else anchored_path(str(value), *place)

    def fix(model: BaseModel, names: tuple[str, ...], *place: str) -> None:
        for name in names:
            if name in model.model_fields_set and not _is_label_id(name, getattr(model, name)):
                setattr(model, name, fixed(getattr(model, name), *place, name))

    for name, store in config.stores.items():
        fix(store, STORE_PATHS, "stores", name)
        if regions := store.options().get("region"):
            store.region = regions_beside(regions, document.path.parent)  # type: ignore[attr-defined]
    for name in config.evaluate:
        for command, options in (config.metrics_of(name) or {}).items():
            for option in options.keys() & set(PATHS):
                options[option] = fixed(options[option], "evaluate", name, command, option)
    fix(config, ("output",))
    if config.slices is not None:
        fix(config.slices, ("table",), "slices")
    if bad:
        raise UsageError(" ".join(bad))
    return config


def _usage_error(document: Document, error: ValidationError, above: Location = ()) -> UsageError:
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
        valid_keys = _known_keys(place)
        key = str(place[-1])
        of_store = difflib.get_close_matches(key, Store.model_fields, 1, 0.8)
        hint = _nearest(key, valid_keys)
        if len(place) == 1 and of_store:
            hint = f"; it is one of a store: stores: {{NAME: {{{of_store[0]}: …}}}}."
        return UsageError(f"{document.locate(inner_place)}: unknown key{hint}")
    if first["type"] == "missing":
        return UsageError(
            f"{document.locate(inner_place)}: lacks the key {quoted(str(place[-1]))}; give it."
        )
    errors_at_place = [e for e in errors if _in_document(document.data, e["loc"]) == inner_place]
    value = first.get("input")
    quoted_value = (
        f" {quoted(value)};" if isinstance(value, str | int | float | bool | None) else ""
    )
    quoted_value = quoted_value if len(quoted_value) <= 100 else ""
    expectation = " or ".join(dict.fromkeys(map(_expected, errors_at_place or [first])))
    return UsageError(f"{document.locate(inner_place)}:{quoted_value} {expectation}.")


#: Expected values by type of pydantic's error.
_NOUNS = {
    "bool_type": "true or false", "dict_type": "keys with values", "float_type": "a number",
    "int_type": "a whole number", "list_type": "a list", "model_type": "keys with values",
    "string_type": "a text", "finite_number": "a finite number", "string_too_short": "some text",
    "string_pattern_mismatch": "a name without / and \\", "too_short": "at least one of them",
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


def _nearest(name: str, names: list[str]) -> str:
    if similar := difflib.get_close_matches(name, names, 1, 0.5):
        return f"; did you mean {quoted(similar[0])}?"
    return f"; expected one of {', '.join(names)}." if names else "; there is none."
