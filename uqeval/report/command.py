"""The commands that recompute a result of a report, and that show its pictures."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uqeval.errors import IN_MEMORY, UqevalError, option_name
from uqeval.glossary import families
from uqeval.inputs.options import OF_REFERENCE, OF_VIDEO, InputOptions
from uqeval.keys import COMMANDS_BY_KEY, Key
from uqeval.metrics import Family
from uqeval.metrics._family import settings_of
from uqeval.records.report import Report
from uqeval.settings import Option, default_of, options_of
from uqeval.statistics.options import CASE, CutOptions

#: Options that are given in another way: as paths, by the key of the result, or as a threshold.
_OTHERWISE = ("video", "region", "depth_map", "out", "ood_mask", "threshold_from")
#: Options that change no number.
_WITHOUT_EFFECT = ("map_cache", "flow_cache")
#: How a report names arrays in memory, and how one that an earlier version merged names stores.
_NO_PATH = (IN_MEMORY, " + ")


class _NoCommandError(Exception):
    """No command computes this."""


def command_of(report: Report, key: str) -> str:
    """Return `uqeval failure preds.zarr labels/ --threshold p90` for a result; empty if no command
    computes it, such as one of arrays in memory or of a shard."""
    parsed = Key.parse(key)
    family = families().get(parsed.family)
    if family is None:
        return ""
    try:
        words = [*_start(family, report), *_paths(family, report), *_input_options(family, report)]
        words += _region(parsed, report) + _settings(family, report, key)
        has_draws = any(name.endswith("_debiased") for name in report.results.get(key, {}))
        words += _intervals(report) if has_draws else []
    except _NoCommandError:
        return ""
    return shlex.join(words)


def command_of_pictures(report: Report, path: str, page: str | None = None) -> str:
    """Return the command that makes a page with pictures from the report at a path; empty if its
    stores have no paths. `page`: the page of the report, if there is one that stays."""
    words = ["uqeval", "report", path, "--gallery", "3"]
    if page is not None:
        words += ["-o", str(Path(page).with_name(f"{Path(page).stem}-pictures.html"))]
    options = _recorded_options(report)
    try:
        if options.get("video") is not None:
            words += ["--video", _checked(options["video"])]
        predictions = _predictions(report)
        for store in predictions:
            words += ["--predictions", store]
        words += [word for truth in _truth(report, predictions) for word in ("--labels", truth)]
        if options.get("names") is not None:
            words += ["--names", _checked(options["names"])]
    except _NoCommandError:
        return ""
    return shlex.join(words)


def _start(family: Family, report: Report) -> list[str]:
    """Return the command of a family. Raises `_NoCommandError`."""
    name = COMMANDS_BY_KEY.get(family.in_reports, family.in_reports)
    if name == "image_failure":
        if "frames" in report.inputs:  # such a command reads only saved states
            raise _NoCommandError
        return ["uqeval", "failure", "--images"]
    return ["uqeval", "run" if name == "segmentation" else name]  # it has no command


def _paths(family: Family, report: Report) -> list[str]:
    """Return the paths of the inputs, and options that name inputs, in the order of a command.
    Raises `_NoCommandError`."""
    options, predictions = _recorded_options(report), _predictions(report)
    if options.get("video") is not None:
        labels = [] if options.get("pseudo_labels") else _truth(report, ())
        return [
            _checked(options["video"]), *predictions,
            *(word for path in labels for word in ("--labels", path)),
        ]  # fmt: skip
    if family.needs_reference:
        if len(predictions) > 1:
            raise _NoCommandError
        return [*predictions, _path(report.inputs.get("reference"))]
    if options.get("out"):
        return _sets(predictions, options["out"])
    truth = _truth(report, predictions)
    if options.get("ood_mask") is not None:
        return [_joined(predictions), *truth, "--ood-mask", _checked(options["ood_mask"])]
    return [*predictions, *truth]


def _predictions(report: Report) -> list[str]:
    """Return the paths of the predictions. Raises `_NoCommandError`, also for those of several
    merged runs."""
    stores = report.inputs.get("predictions")
    if not isinstance(stores, list) or not stores or report.inputs.get("merged_runs"):
        raise _NoCommandError
    return [_path(store) for store in stores]


def _truth(report: Report, predictions: Sequence[str]) -> list[str]:
    """Return the path of labels or of a target that are not in the predictions."""
    stores = [report.inputs.get(name) for name in ("labels", "target")]
    paths = [_path(store) for store in stores if store is not None]
    return [path for path in paths if path not in predictions]


def _sets(predictions: Sequence[str], out: Sequence[Any]) -> list[str]:
    """Return the members of IN and of each OUT set, joined by `+`."""
    paths, sets = [*predictions], list[str]()
    for given in reversed(out):
        # A path may contain a +, so count the members that make up the text.
        sizes = [
            n for n in range(1, len(paths))
            if given in (paths[-n:], "+".join(paths[-n:]))
        ]  # fmt: skip
        if not sizes:
            raise _NoCommandError
        sets.insert(0, _joined(paths[-sizes[0] :]))
        del paths[-sizes[0] :]
    return [_joined(paths), *sets]


def _joined(members: Sequence[str]) -> str:
    if len(members) > 1 and any("+" in path for path in members):
        raise _NoCommandError
    return "+".join(members)


def _path(store: Any) -> str:
    return _checked(store.get("path") if isinstance(store, Mapping) else None)


def _checked(path: Any) -> str:
    """Return a path that a command can open. Raises `_NoCommandError` for anything else."""
    text = str(path)
    is_path = isinstance(path, str | int) and text and not text.startswith("-")
    if not is_path or any(mark in text for mark in _NO_PATH):
        raise _NoCommandError
    return text


def _recorded_options(report: Report) -> Mapping[str, Any]:
    options = report.inputs.get("options")
    return options if isinstance(options, Mapping) else {}


def _input_options(family: Family, report: Report) -> list[str]:
    """Return the options of inputs that differ from their defaults. Raises `_NoCommandError`."""
    recorded = _recorded_options(report)
    if recorded.get("part") is not None:
        raise _NoCommandError
    without = {*_OTHERWISE, *_WITHOUT_EFFECT}
    values = {n: v for n, v in recorded.items() if n not in without}
    known = set(OF_REFERENCE) if family.needs_reference else {*options_of(InputOptions)}
    known -= set() if recorded.get("video") is not None else {*OF_VIDEO}
    return list(_words(InputOptions, values, InputOptions(), known))


def _region(key: Key, report: Report) -> list[str]:
    """Return the options of the region of a result."""
    if key.region is None:
        return []
    depth_map = _recorded_options(report).get("depth_map")
    by_depth = key.region.startswith("depth:") and depth_map is not None
    return ["--region", key.region, *(["--depth-map", _checked(depth_map)] if by_depth else [])]


def _settings(family: Family, report: Report, key: str) -> list[str]:
    """Return the options of a family that differ from those of its definition. Raises
    `_NoCommandError`."""
    record, settings = report.settings.get(key), family.settings_type
    if family.in_reports == "segmentation":
        return []
    if not isinstance(record, Mapping):
        raise _NoCommandError
    definition = record.get("definition", "paper")
    try:
        defaults = settings.of(definition=definition)
        unused = settings_of(settings, record).unused(Key.parse(key).region is not None)
    except (UqevalError, TypeError) as error:  # of an edited report
        raise _NoCommandError from error
    if hasattr(defaults, "of_kind"):
        kind = "classes" if "classes" in report.inputs else "regression"
        defaults = defaults.of_kind(kind)
    values = {n: v for n, v in record.items() if n not in unused.union(_OTHERWISE)}
    known = {*options_of(settings)}
    values.pop("definition", None)
    words = list(_words(settings, values, defaults, known))
    return ["--definition", definition] * (definition != "paper") + words


def _intervals(report: Report) -> list[str]:
    """Return the options of the draws of a report; none if their groups are from a table, whose
    path is not recorded."""
    record = report.settings.get("intervals")
    if not isinstance(record, Mapping) or record.get("group_by") not in (None, CASE):
        return []
    values = {
        "ci": record.get("level"),
        "interval_method": record.get("method"),
        **{name: record.get(name) for name in ("draws", "seed")},
    }
    return list(_words(CutOptions, values, CutOptions(), {*values}))


def _words(
    declared: Any, values: Mapping[str, Any], defaults: Any, known: set[str]
) -> Iterator[str]:
    """Yield the options whose values differ from `defaults`. Raises `_NoCommandError` for one that
    is not `known`, or that a command cannot have."""
    options = options_of(declared)
    for name, option in options.items():
        value = values.get(name)
        if value is None or _same(value, getattr(defaults, name)):
            continue
        if name not in known:
            raise _NoCommandError
        yield from _word(name, option, value, default_of(declared, name))


def _same(value: Any, default: Any) -> bool:
    """Return whether a value of a report is a default; JSON has lists for tuples."""
    return value == default or (isinstance(value, list) and value == [*(default or ())])


def _word(name: str, option: Option, value: Any, default: Any) -> list[str]:
    """Return an option and its value as a command has them. Raises `_NoCommandError`."""
    flag = option.flags[0] if option.flags else option_name(name)
    if isinstance(value, bool):
        if not value and not default:  # a plain flag cannot be turned off
            raise _NoCommandError
        return [flag if value else f"--no-{flag[2:]}"]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(v, str | int | float) for v in values) or (
        isinstance(value, list) and not option.list_by
    ):
        raise _NoCommandError
    texts = [_checked(v) if option.path else str(v) for v in values]
    if option.list_by == "commas":
        if any("," in text for text in texts):
            raise _NoCommandError
        return [flag, ",".join(texts)]
    return [word for text in texts for word in (flag, text)]
