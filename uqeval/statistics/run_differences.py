"""The first difference of two runs that are to be merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.errors import cut, option_name
from uqeval.metrics._family import normal_settings
from uqeval.records.inputs import value_options
from uqeval.records.set_names import moved_stores
from uqeval.records.units import is_same_unit
from uqeval.records.void_ids import IGNORE_INDEX, other_void_ids, void_ids
from uqeval.statistics.merged_records import EQUAL_FACTS, EQUAL_INPUTS, IF_KNOWN, is_single_out

_NAMES_DIGEST = "names_digest"
_CLASS_NAMES = "class_names"
_OF_SETS = (
    "the names of the OUT sets, which are those of their files (give the files of a set one name)"
)
_ORDER_OF_SETS = "the order of the OUT sets (give the OUT stores of each run in one order)"
#: The version of the maps, in an index.
MAPS_VERSION = "maps_version"
_OF_NAMES = "the names of the items (--names)"
#: Settings that are paths, which other machines may spell otherwise. Each run has the cells of its
#: own items of a table, and the threshold of another report is a setting of its own.
_PATHS = ("item_table", "threshold_from")
_FIT_ON = "fit_on"


def difference(a: Mapping[str, Any], b: Mapping[str, Any]) -> str | None:
    """Return the first thing in which two runs differ, by their indices, with both values; None if
    they are the same.
    """
    for description, x, y in _compared(a, b):
        if x != y and description == _OF_NAMES:  # digests, which say nothing
            return description
        if x != y:
            return f"{description}: {_short(x)} and {_short(y)}"
    return None


def _compared(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield "the version of uqeval", a["uqeval_version"], b["uqeval_version"]
    # Earlier builds of a version recorded none: only versions that are known can differ.
    versions: list[Any] = [index.get(MAPS_VERSION) for index in (a, b)]
    if None not in versions:
        yield "the version of the maps (evaluate all again with one uqeval)", *versions
    first_facts, second_facts = equal_facts(a), equal_facts(b)
    sets = [index["inputs"].get("sets") for index in (a, b)]
    if all(sets):  # their names are those of the classes
        first_facts.pop(_CLASS_NAMES, None)
        if not all(map(is_single_out, sets)):
            first, second = ([own["name"] for own in of_run] for of_run in sets)
            same_names = sorted(first) == sorted(second)
            yield _ORDER_OF_SETS if same_names else _OF_SETS, first, second
        for found in moved_stores(a["inputs"], b["inputs"]):
            yield (
                f"the set of the store {cut(found.first)} (give IN and OUT in one order)",
                *(found.sets),
            )
    for name in EQUAL_FACTS:
        if name in first_facts and name in second_facts:
            if name == "units" and is_same_unit(first_facts[name], second_facts[name]):
                continue
            description = _OF_NAMES if name == _NAMES_DIGEST else name.replace("_", " ")
            yield description, first_facts[name], second_facts[name]
    for name in EQUAL_INPUTS:
        values: list[Any] = [index["inputs"].get(name) for index in (a, b)]
        if None not in values:
            yield name, *values
    video, other_video = (index["facts"]["video"] or {} for index in (a, b))
    models: list[Any] = [own.get("models") or () for own in (video, other_video)]
    # The name of a single model is that of its file, which each run has its own of.
    if has_several := max(map(len, models)) > 1:
        yield "models", *models
    for name in ("against", "named"):
        yield name, video.get(name), other_video.get(name)
    first_options, second_options = (
        value_options(index["inputs"])
        | {"sum_tolerance": index["inputs"]["options"].get("sum_tolerance")}
        for index in (a, b)
    )
    for name, value in first_options.items():
        yield option_name(name), value, second_options[name]
    first_settings, second_settings = (
        {k: normal_settings(k, v) for k, v in index["settings"].items() if k != "intervals"}
        for index in (a, b)
    )
    yield "metrics", sorted(first_settings), sorted(second_settings)
    not_compared = {*_PATHS, IGNORE_INDEX, *(() if has_several else ("model",))}
    for key, settings in first_settings.items():
        ids = void_ids(a["inputs"], settings), void_ids(b["inputs"], second_settings[key])
        for name, void, other_void in other_void_ids(*ids):
            yield f"the void id ({option_name(name)})", void, other_void
        for name in dict.fromkeys((*settings, *second_settings[key])):
            if name not in not_compared:
                values = [own.get(name) for own in (settings, second_settings[key])]
                if name == _FIT_ON:
                    values = [_named(*own) for own in zip((a, b), values, strict=True)]
                yield f"{option_name(name)} of {key}", *values


def equal_facts(index: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a run that must be equal in all runs, without those that are unknown:
    files of earlier versions, and files that are no shards, do not have all of them."""
    facts = {name: index["facts"][name] for name in EQUAL_FACTS if name in index["facts"]}
    return {name: fact for name, fact in facts.items() if name not in IF_KNOWN or fact}


def _named(index: Mapping[str, Any], fit_on: str | None) -> Any:
    """Return the names in a file of `--fit-on`; its path if the states do not have them."""
    return index["facts"].get("fit_names", {}).get(fit_on, fit_on)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
