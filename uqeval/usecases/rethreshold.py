"""Compute scores at another threshold from the saved states of a run.

The states of PAvPU contain the counts at each threshold of its curve. At one of these, results,
items, intervals and slices equal those of a run, to the bit. Other thresholds are errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.keys import Key
from uqeval.metrics import FAMILIES, Family
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._driver import replay
from uqeval.metrics._evaluation import Evaluation, Run, Section
from uqeval.metrics._family import settings_of
from uqeval.metrics.thresholds import ThresholdNotHeld
from uqeval.statistics.checked_states import checked_states
from uqeval.statistics.saved_counts import saved_result

if TYPE_CHECKING:
    from uqeval.statistics.merged_states import MergedStates

#: The start of the note about a recomputed result, after its key.
_NOTE = ": recomputed at the threshold "


def rethreshold(
    merged_states: MergedStates, record: Mapping[str, Any], rule: str
) -> dict[str, Any]:
    """Change a report's record (`results`, `items`, `settings`, …) to another threshold.

    Changes the index of the states too. Variants named after their own threshold keep it. Raises
    `UsageError` if there is no other variant, and for a threshold that the states do not contain.
    """
    from uqeval.statistics.variants import info_of
    from uqeval.usecases.records_of_run import warnings_of

    index, info = merged_states.index, info_of(merged_states.index)
    results, settings = dict(record["results"]), dict(record["settings"])
    items = [dict(item) for item in record["items"]]
    numerics, fitted, notes = dict(record["numerics"]), dict(index["fitted"]), []
    variants = _variants(merged_states, info, rule)
    outdated, sections = {}, {}
    several = len({Key.parse(key).of(None) for key in variants}) > 1
    for key, (family, evaluation) in variants.items():
        before, key_of_image = results[key], str(Key.parse(key).of(None))
        # A region has the threshold of the whole image.
        is_region = key_of_image != key
        new = (
            fitted[key_of_image]
            if is_region
            else _refit(merged_states, key, evaluation, rule, several)
        )
        outdated[key] = _section(merged_states, evaluation)
        fitted[key] = new
        settings[key] = _settings(settings[key], rule, "counted_at" in new)
        family_settings = settings_of(family.settings_type, settings[key])
        evaluation = family.evaluations(key, family_settings, info, fitted)[key]
        parts = {
            parsed.part for parsed in map(Key.parse, fitted) if parsed.part and parsed.whole == key
        }
        sections[key] = _section(merged_states, evaluation)
        results[key] = sections[key].results | {n: before[n] for n in parts if n in before}
        numerics[key] = sections[key].numerics
        _put_items(merged_states, evaluation, key, items)
        if "counted_at" in new:
            at, before_at = (_threshold_text(new[name][0]) for name in ("threshold", "counted_at"))
            notes.append(
                f"{key}{_NOTE}{at} ({rule}) from saved states; it was "
                f"evaluated at {before_at} ({settings[key]['recut_from']})."
            )
    new_results = {
        "results": results, "items": items, "settings": settings, "numerics": numerics,
    }  # fmt: skip
    index |= {"results": results, "records": items, "numerics": numerics, "fitted": fitted}
    index["settings"] = settings
    index["result_warnings"] = [
        *_without(record["warnings"], outdated), *warnings_of(sections), *notes,
    ]  # fmt: skip
    return {**record, **new_results, "warnings": index["result_warnings"]}


def _without(warnings: Sequence[str], outdated: Mapping[str, Section]) -> list[str]:
    """Return warnings (`KEY, KEY: TEXT`) without those of the threshold before, and without notes
    about it."""
    texts = {text for section in outdated.values() for text in section.warnings}
    remaining = []
    for warning in warnings:
        if _NOTE in warning:
            continue
        # The keys, too, may hold a colon, as may the text: compare whole texts, the longest first.
        text = max((t for t in texts if warning.endswith(f": {t}")), key=len, default=None)
        if text is None:
            remaining.append(warning)
            continue
        keys = warning.removesuffix(f": {text}").split(", ")
        others = [key for key in keys if key not in outdated or text not in outdated[key].warnings]
        if others:
            remaining.append(f"{', '.join(others)}: {text}")
    return remaining


def _variants(
    merged_states: MergedStates, info: DatasetInfo, rule: str
) -> dict[str, tuple[Family, Evaluation[Any]]]:
    """Return the variants whose threshold can change. Raises `UsageError` if there are none."""
    from uqeval.statistics.variants import variants_of

    variants = {
        key: (family, evaluations[key])
        for key, (family, evaluations) in variants_of(
            merged_states.index, info, merged_states.path
        ).items()
        if family.evaluation.refits and not _of_its_own(key)
    }
    if not variants:
        names = [family.in_reports for family in FAMILIES.values() if family.evaluation.refits]
        raise UsageError(
            f"--threshold {rule}: {merged_states.path} has no scores whose threshold can be "
            f"changed; only those of {', '.join(names)} can. Evaluate again with this threshold."
        )
    return variants


def _refit(
    merged_states: MergedStates, key: str, evaluation: Evaluation[Any], rule: str, several: bool
) -> Mapping[str, Any]:
    """Return the fitted values of a variant at another threshold. Raises `UsageError`.

    `several`: whether there are other variants, whose curves have other thresholds.
    """
    try:
        is_complete, fitted = replay(
            evaluation.refit(rule), lambda tally: saved_result(merged_states, tally)
        )
    except ThresholdNotHeld as error:
        advice = (
            " The curve of each variant has its own thresholds, and a number must be one of all. "
            f"Give range:{error.t:g} in its place, which is near in this one, or evaluate again."
        )
        text = f"{error.problem}{advice}" if several else str(error)
        raise UsageError(f"{merged_states.path}: {key}: {text}") from None
    except UsageError as error:
        raise UsageError(f"{merged_states.path}: {key}: {error}") from None
    if not is_complete:
        raise UsageError(
            f"{merged_states.path}: {key}: --threshold {rule} is fitted on the patches, which "
            "needs the pixels; give a number, range:T or max-surplus, or evaluate again."
        )
    return fitted


def _threshold_text(threshold: float | None) -> str:
    return "null" if threshold is None else repr(threshold)


def _of_its_own(key: str) -> bool:
    """Return whether a variant's name contains a threshold of uncertainty."""
    variant = Key.parse(key).variant or ""
    return any(setting.startswith("threshold=") for setting in variant.split(","))


def _settings(before: Mapping[str, Any], rule: str, other: bool) -> dict[str, Any]:
    """Return settings with another threshold and its source, or unchanged settings."""
    first = before.get("recut_from", before["threshold"])
    plain = {name: value for name, value in before.items() if name != "recut_from"}
    if not other:
        return plain | {"threshold": first}
    return plain | {"threshold": rule, "recut_from": first}


def _section(merged_states: MergedStates, evaluation: Evaluation[Any]) -> Section:
    """Return the part of the report of an evaluation, without items, from saved states."""
    tallies = (*evaluation.tallies(), *evaluation.extra_tallies())
    saved = {tally: saved_result(merged_states, tally) for tally in tallies}
    results = {tally: result for tally, result in saved.items() if result is not None}
    scores = evaluation.scores({tally: result.total for tally, result in results.items()})
    return evaluation.section_of(Run(results, None, scores, []))


def _put_items(
    merged_states: MergedStates, evaluation: Evaluation[Any], key: str, items: list[dict[str, Any]]
) -> None:
    """Replace the scores of each item."""
    (tally,) = evaluation.tallies()
    for item, (_, state) in zip(items, checked_states(merged_states, tally), strict=True):
        scores = evaluation.scores({tally: state})
        names = {name.removesuffix("_reason") for name in item[key]}
        item[key] = {n: v for n, v in scores.items() if n.removesuffix("_reason") in names}
