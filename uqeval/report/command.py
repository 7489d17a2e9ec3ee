"""The command that recomputes a result of a report."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.errors import option_name
from uqeval.glossary import families
from uqeval.keys import COMMANDS_BY_KEY, Key
from uqeval.records.report import Report


def command_of(report: Report, key: str) -> str:
    """Return `uqeval failure preds.zarr labels/ --threshold p90` for a result; empty for others."""
    parsed = Key.parse(key)
    family = families().get(parsed.family)
    if family is None:
        return ""
    words = ["uqeval", COMMANDS_BY_KEY.get(parsed.family, parsed.family), *_paths(report)]
    words += _options(family.settings_type, report.settings.get(key) or {})
    if parsed.region is not None:
        words += ["--region", parsed.region]
    if not family.on_request and parsed.family == "segmentation":  # it has no command
        words[1] = "run"
    return shlex.join(words)


def command_of_pictures(report: Report, path: str) -> str:
    """Return the command that makes a page with pictures from the report at a path."""
    words = ["uqeval", "report", path, "--gallery", "3"]
    stores = report.inputs.get("predictions")
    predictions = [_path(store) for store in stores] if isinstance(stores, list) else []
    for store in filter(None, predictions):
        words += ["--predictions", str(store)]
    truths = [_path(report.inputs.get(name)) for name in ("labels", "target")]
    for truth in filter(None, truths):
        if truth not in predictions:
            words += ["--labels", str(truth)]
    return shlex.join(words)


def _paths(report: Report) -> Iterator[str]:
    """Yield the paths of a report's inputs, each once."""
    paths = [report.inputs.get("frames")]
    if paths == [None]:
        stores = report.inputs.get("predictions")
        paths = [_path(store) for store in stores] if isinstance(stores, list) else []
        paths += [_path(report.inputs.get(name)) for name in ("labels", "target", "reference")]
    yield from dict.fromkeys(str(path) for path in paths if path)


def _path(store: Any) -> Any:
    return store.get("path") if isinstance(store, Mapping) else store


def _options(settings: Any, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the options that differ from their defaults."""
    for name, field in getattr(settings, "__dataclass_fields__", {}).items():
        value = record.get(name)
        if "option" not in field.metadata or value is None or value == field.default:
            continue
        flag = option_name(name)
        if isinstance(value, bool):
            yield flag if value else f"--no-{flag[2:]}"
        elif isinstance(value, str | int | float):
            yield from (flag, str(value))
