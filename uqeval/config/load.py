"""Read and check `uqeval.yaml` and rules files; errors name the file, line and key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from uqeval.config.messages import address_hint, hint, usage_error
from uqeval.config.model import FILE, STORE_PATHS, Config, options_model
from uqeval.config.options import PATHS, check_values, commands
from uqeval.config.yaml12 import Document, Location, read_yaml
from uqeval.errors import UsageError, cut, did_you_mean, number_flaw, quoted
from uqeval.gate import Address, Limits, Rule
from uqeval.gate.senseless import refuse_senseless
from uqeval.inputs.options import check_forms, regions_beside
from uqeval.keys import COMMANDS_BY_KEY
from uqeval.spelling import as_keys

#: A variable of a shell, such as $DATA or ${DATA}.
_VARIABLE = re.compile(r"\$(\w|\{\w+\})")
#: Other names of options, by command: accepted with a note.
_OPTION_ALIASES = {"sweep": {"metrics": "metric"}}


def load_config(path: str | Path) -> Config:
    """Return the content of a `uqeval.yaml`, with paths relative to the working folder.

    Raises `UsageError`.
    """
    return _config(_mapping(read_yaml(path)))


@dataclass(frozen=True)
class RulesFile:
    """The rules of a file, the names of the stores of a `uqeval.yaml` (a rules file has none), and
    the SHA-256 of the bytes that they were read from."""

    rules: list[Rule]
    stores: list[str]
    sha256: str


def load_rules(path: str | Path) -> list[Rule]:
    """Return the rules of a file. Raises `UsageError` as `load_rules_file` does."""
    return load_rules_file(path).rules


def load_rules_file(path: str | Path) -> RulesFile:
    """Return the rules of a `uqeval.yaml`, or of a rules file.

    Raises `UsageError`, also for a file without rules.
    """
    document = _mapping(read_yaml(path))
    if _is_report(document):
        raise UsageError(
            f"{cut(path)} is a report, not rules; give a file of rules, such as pavpu.pavpu: "
            "{min: 0.8}. To limit the change since another report, give it as --baseline FILE. To "
            "compare two reports, run uqeval compare."
        )
    is_config = any(key in Config.model_fields for key in document.data)
    above: Location = ("gate",) if is_config else ()
    if is_config:
        limits = _config(document).gate
    else:
        _check_keys(document, document.data, above)
        for text in document.data:
            _address(document, text, above)
        try:
            limits = TypeAdapter(dict[str, Limits]).validate_python(document.data)
        except ValidationError as error:
            raise usage_error(document, error) from None
    if not limits:
        problem = f"{path} has no rules" + (" under gate:" if is_config else "")
        raise UsageError(f"{problem}; give at least one, such as pavpu.pavpu: {{min: 0.8}}.")
    rules = list(_rules(document, limits, above))
    return RulesFile(rules, list(document.data.get("stores") or ()), document.sha256)


def check_file(path: str | Path) -> None:
    """Raise `UsageError` for a `uqeval.yaml` or a rules file that is not valid."""
    document = _mapping(read_yaml(path))
    if _is_report(document):
        raise UsageError(
            f"{cut(path)} is a report; expected a uqeval.yaml or rules. To check the numbers of a "
            "report, run uqeval verify."
        )
    if not any(key in Config.model_fields for key in document.data) or _config(document).gate:
        refuse_senseless(load_rules(path))


def _is_report(document: Document) -> bool:
    return str(document.data.get("schema")).startswith("uqeval.report/")


def _mapping(document: Document) -> Document:
    if document.data is None:
        raise UsageError(f"{document.path} is empty; expected keys with values.")
    if not isinstance(document.data, dict):
        kind = type(document.data).__name__
        raise UsageError(f"{document.path} holds a {kind}; expected keys with values.")
    return document


def _rules(document: Document, limits: dict[str, Limits], above: Location) -> Iterator[Rule]:
    lines_of_rules: dict[Address, int] = {}
    for text, limit in limits.items():
        line = document.line((*above, text))
        address = _address(document, text, above)
        if address in lines_of_rules:
            raise UsageError(
                f"{document.path}:{line}: {address} has a rule on line {lines_of_rules[address]} "
                "already. Put all limits into one rule."
            )
        lines_of_rules[address] = line
        yield Rule(address, limit, str(document.path), line)


def _address(document: Document, text: str, above: Location) -> Address:
    try:
        return Address.parse(text)
    except UsageError as error:
        message = address_hint(text, _value(document.data, (*above, text))) or str(error)
        raise UsageError(f"{document.path}:{document.line((*above, text))}: {message}") from None


def _value(data: Any, place: Location) -> Any:
    for key in place:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _check_keys(document: Document, data: dict[str, Any], above: Location) -> None:
    """Raise `UsageError` for a rule without an address that looks like a misspelt key."""
    for key in data:
        if "." not in key and (hint := did_you_mean(key, Config.model_fields, "")):
            raise UsageError(f"{document.locate((*above, key))}: unknown key; {hint}")


def _config(document: Document) -> Config:
    _refuse_unindented(document)
    notes = _replace_aliases(document)
    _check_numbers(document, document.data, ())
    gate = document.data.get("gate")
    for text in gate if isinstance(gate, dict) else ():
        _address(document, str(text), ("gate",))
    try:
        config = Config.model_validate(document.data)
    except ValidationError as error:
        raise usage_error(document, error) from None
    config._at, config._notes = document.locate, notes
    list(_rules(document, config.gate, ("gate",)))  # no address has two rules
    _check_stores(document, config)
    return _anchored(document, config)


def _refuse_unindented(document: Document) -> None:
    """Raise `UsageError` for a command directly under `evaluate`, where the names of stores are."""
    stores, evaluate = document.data.get("stores"), document.data.get("evaluate")
    if not isinstance(stores, dict) or not isinstance(evaluate, dict):
        return
    for name in evaluate:
        if name not in stores and COMMANDS_BY_KEY.get(name, name) in commands():
            example = f"{next(iter(stores), 'STORE')}: {{{name}: …}}"
            raise UsageError(
                f"{document.locate(('evaluate', name))} is a command, and no store of this file; "
                f"indent it below its store: {cut(example)}."
            )


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
                f"{location} is another name of {name}, which is given too; leave one out."
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
                f"{document.locate(('stores', name))} names no predictions and no video; give one."
            )
        with config.errors_at("stores", name, "region"), as_keys({"region"}):
            check_forms(store.options().get("region") or ())
        if store.labels is not None and store.target is not None:
            raise UsageError(
                f"{document.locate(('stores', name))} has both labels and a target; give one of "
                f"them."
            )
    for name in config.evaluate:
        if name not in config.stores:
            raise UsageError(
                f"{document.locate(('evaluate', name))} is not a store of this file"
                + hint(name, list(config.stores))
            )
        for command, options in (config.metrics_of(name) or {}).items():
            _check_options(document, ("evaluate", name, command), options)


def _check_options(document: Document, place: Location, options: dict[str, Any]) -> None:
    """Check names, types and values of a command's options, and convert them in place."""
    command = str(place[-1])
    if command not in commands():
        meant = hint(command, list(commands()))
        raise UsageError(f"{document.locate(place)}: unknown command{meant}")
    try:
        checked = options_model(command).model_validate(options)
        given_options = checked.model_dump(exclude_none=True)  # null means: not given
        options.clear()
        options.update(given_options)
        check_values(command, options)
    except ValidationError as error:
        raise usage_error(document, error, place) from None
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
    kind, colon, path = (getattr(config, "dask", None) or "").partition(":")
    if kind == "scheduler-file" and path.strip():
        address = f"{kind}{colon}{anchored_path(path.strip(), 'dask')}"
        config.dask = address  # type: ignore[attr-defined]
    if config.slices is not None:
        fix(config.slices, ("table",), "slices")
    if bad:
        raise UsageError(" ".join(bad))
    return config


def no_file() -> str:
    """Return that the working folder has no `uqeval.yaml`, and which file is there in its place."""
    other = FILE.replace(".yaml", ".yml")
    there = f" (it has {other}; rename that file)" if Path(other).is_file() else ""
    return f"no {FILE} in this folder{there}"


def is_url(path: str) -> bool:
    """Return whether a path is a URL, which stays unchanged."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme.isascii() and scheme.isalnum() and scheme.lower() != "file"


def anchored(path: str, folder: Path) -> str:
    """Return a path of a file in `folder`, relative to the working folder.

    Raises `ValueError` for an invalid path.
    """
    if is_url(path):
        return path
    if "\0" in path:
        raise ValueError(f"{quoted(path)} contains a zero character; expected a path")
    if "://" in path:
        path_in_url = path.partition("://")[2]
        raise ValueError(
            f"{quoted(path)} is neither a path nor a supported URL; write {quoted(path_in_url)}"
        )
    if _VARIABLE.search(path) and not (folder / path).exists():
        raise ValueError(
            f"{quoted(path)}: variables are not expanded; write the path, or make a link to it"
        )
    if PureWindowsPath(path).drive:
        raise ValueError(f"{quoted(path)} is a Windows path; write the path on this machine")
    try:
        return str(folder / Path(path).expanduser())
    except RuntimeError:
        raise ValueError(
            f"{quoted(path)} is in the home folder of a user that this machine does not have; "
            "write the whole path"
        ) from None
