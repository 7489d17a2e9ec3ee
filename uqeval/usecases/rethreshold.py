"""Compute scores at another threshold from the saved states of a run.

The states of PAvPU contain the counts at each threshold of its curve. At one of these, results,
items, intervals and slices equal those of a run, to the bit. Other thresholds are errors.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.keys import Key
from uqeval.usecases.from_states import saved_result, sum_states

if TYPE_CHECKING:
    from uqeval.metrics import Family
    from uqeval.metrics._dataset_info import DatasetInfo
    from uqeval.metrics._evaluation import Evaluation
    from uqeval.statistics.merged_states import MergedStates


def rethreshold(
    merged_states: MergedStates, record: Mapping[str, Any], rule: str
) -> dict[str, Any]:
    """Change a report's record (`results`, `items`, `settings`, …) to another threshold.

    Changes the index of the states too. Variants named after their own threshold keep it. Raises
    `UsageError` if there is no other variant, and for a threshold that the states do not contain.
    """
    from uqeval.metrics._family import settings_of
    from uqeval.statistics.variants import info_of

    index, info = merged_states.index, info_of(merged_states.index["facts"])
    results, settings = dict(record["results"]), dict(record["settings"])
    items = [dict(item) for item in record["items"]]
    numerics, fitted, warnings = dict(record["numerics"]), dict(index["fitted"]), []
    variants = _variants(merged_states, info, rule)
    for key, (family, evaluation) in variants.items():
        before, key_of_image = results[key], str(Key.parse(key).of(None))
        # A region has the threshold of the whole image.
        is_region = key_of_image != key
        new = fitted[key_of_image] if is_region else _refit(merged_states, key, evaluation, rule)
        fitted[key] = new
        settings[key] = _settings(settings[key], rule, "counted_at" in new)
        family_settings = settings_of(family.settings_type, settings[key])
        evaluation = family.evaluations(key, family_settings, info, fitted)[key]
        parts = {
            parsed.part for parsed in map(Key.parse, fitted) if parsed.part and parsed.whole == key
        }
        results[key] = _scores(merged_states, evaluation) | {
            n: before[n] for n in parts if n in before
        }
        _put_items(merged_states, evaluation, key, items)
        ties = results[key]["ties"]
        numerics[key] = {f"ties_{n}": v for n, v in ties.items() if isinstance(v, int)}
        if "counted_at" in new:
            at, before_at = (_threshold_text(new[name][0]) for name in ("threshold", "counted_at"))
            warnings.append(
                f"{key}: recomputed at the threshold {at} ({rule}) from saved states; it was "
                f"evaluated at {before_at} ({settings[key]['recut_from']})."
            )
    new_results = {
        "results": results, "items": items, "settings": settings, "numerics": numerics,
    }  # fmt: skip
    index |= {"results": results, "records": items, "numerics": numerics, "fitted": fitted}
    index["settings"] = settings
    index["result_warnings"] = [*_without(record["warnings"], variants), *warnings]
    return {**record, **new_results, "warnings": index["result_warnings"]}


def _without(warnings: Sequence[str], keys: Collection[str]) -> list[str]:
    """Return warnings (`KEY, KEY: TEXT`) without these keys, whose results have changed."""
    remaining = []
    for warning in warnings:
        prefix, colon, text = warning.partition(": ")
        others = [key for key in prefix.split(", ") if key not in keys]
        remaining += [f"{', '.join(others)}{colon}{text}"] if others else []
    return remaining


def _variants(
    merged_states: MergedStates, info: DatasetInfo, rule: str
) -> dict[str, tuple[Family, Evaluation[Any]]]:
    """Return the variants whose threshold can change. Raises `UsageError` if there are none."""
    from uqeval.metrics import FAMILIES
    from uqeval.statistics.variants import variants_of

    variants = {
        key: (family, evaluations[key])
        for key, (family, evaluations) in variants_of(merged_states.index, info).items()
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
    merged_states: MergedStates, key: str, evaluation: Evaluation[Any], rule: str
) -> Mapping[str, Any]:
    """Return the fitted values of a variant at another threshold. Raises `UsageError`."""
    from uqeval.metrics._driver import replay

    try:
        is_complete, fitted = replay(
            evaluation.refit(rule), lambda tally: saved_result(merged_states, tally)
        )
    except UsageError as error:
        raise UsageError(f"{merged_states.path}: {key}: {error}") from None
    if not is_complete:
        raise UsageError(
            f"{merged_states.path}: {key}: --threshold {rule} is fitted on the patches, which "
            "needs the pixels; give a number, range:T or max-surplus, or evaluate again."
        )
    refitted: Mapping[str, Any] = fitted
    return refitted


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


def _scores(merged_states: MergedStates, evaluation: Evaluation[Any]) -> dict[str, Any]:
    states = {tally: sum_states(tally, merged_states).total for tally in evaluation.tallies()}
    return evaluation.scores(states)


def _put_items(
    merged_states: MergedStates, evaluation: Evaluation[Any], key: str, items: list[dict[str, Any]]
) -> None:
    """Replace the scores of each item."""
    from uqeval.statistics.checked_states import checked_states

    (tally,) = evaluation.tallies()
    for item, (_, state) in zip(items, checked_states(merged_states, tally), strict=True):
        scores = evaluation.scores({tally: state})
        names = {name.removesuffix("_reason") for name in item[key]}
        item[key] = {n: v for n, v in scores.items() if n.removesuffix("_reason") in names}
