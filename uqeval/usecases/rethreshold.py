"""Scores at another threshold than that of a run, read off its saved states.

A PAvPU's states hold the counts at each threshold of its curve. Results, items, intervals and
slices at one of these are those that a run with it gives, to the bit; others are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.usecases.replay import counted, replay

if TYPE_CHECKING:
    from uqeval.metrics._again import Again
    from uqeval.statistics.joined import Joined


def recut(joined: Joined, record: Mapping[str, Any], rule: str) -> dict[str, Any]:
    """What a report says (`results`, `items`, `settings`, …) with another threshold; the index of
    the states is changed alike.

    Variants that are called by a threshold of their own keep it. Raises `UsageError` where there is
    no other, and for a threshold that the states do not hold.
    """
    from uqeval.metrics import FAMILIES
    from uqeval.metrics._again import settings_of
    from uqeval.statistics.variants import facts_of

    index, facts = joined.index, facts_of(joined.index["facts"])
    families = {own.key or own.name: own for own in FAMILIES.values() if own.recut is not None}
    results, settings = dict(record["results"]), dict(record["settings"])
    items = [dict(own) for own in record["items"]]
    numerics, fitted, warnings = dict(record["numerics"]), dict(index["fitted"]), []
    keys = [key for key in settings if key.split("[")[0] in families and not _of_its_own(key)]
    if not keys:
        raise UsageError(
            f"--threshold {rule}: {joined.path} holds no scores at a threshold that can be another "
            f"({', '.join(families)})."
        )
    for key in keys:
        family = families[key.split("[")[0]]
        assert family.recut is not None and family.again is not None
        before = results[key]
        own = settings_of(family.settings_type, settings[key])
        try:
            new = replay(family.recut(rule, own, facts, fitted[key]), joined)
        except UsageError as error:
            raise UsageError(f"{joined.path}: {key}: {error}") from None
        if new is None:
            raise UsageError(
                f"{joined.path}: {key}: --threshold {rule} is fitted on the patches, which takes "
                "another look at the pixels; give a number, range:T or max-surplus, or evaluate "
                "again."
            )
        fitted[key] = new
        settings[key] = _settings(settings[key], rule, "counted_at" in new)
        own = settings_of(family.settings_type, settings[key])
        again = family.again(key, own, facts, fitted)[key]
        parts = {part.partition("/")[2] for part in fitted if part.startswith(f"{key}/")}
        results[key] = _scores(joined, again) | {n: before[n] for n in parts if n in before}
        _put_items(joined, again, key, items)
        ties = results[key]["ties"]
        numerics[key] = {f"ties_{n}": v for n, v in ties.items() if isinstance(v, int)}
        if "counted_at" in new:
            at, before_at = (_shown(new[name][0]) for name in ("threshold", "counted_at"))
            warnings.append(
                f"{key}: cut again at the threshold {at} ({rule}) from saved states; it was "
                f"evaluated at {before_at} ({settings[key]['recut_from']})."
            )
    found = {
        "results": results, "items": items, "settings": settings, "numerics": numerics,
    }  # fmt: skip
    index |= {"results": results, "records": items, "numerics": numerics, "fitted": fitted}
    index["settings"] = settings
    return {**record, **found, "warnings": [*record["warnings"], *warnings]}


def _shown(threshold: float | None) -> str:
    return "null" if threshold is None else repr(threshold)


def _of_its_own(key: str) -> bool:
    """Whether a variant is called by a threshold of uncertainty (not by one of accuracy)."""
    return any(own.startswith("threshold=") for own in key.partition("[")[2].split(","))


def _settings(before: Mapping[str, Any], rule: str, other: bool) -> dict[str, Any]:
    """Settings with another threshold, which say from what they were cut again; or as they were."""
    first = before.get("recut_from", before["threshold"])
    plain = {name: value for name, value in before.items() if name != "recut_from"}
    if not other:
        return plain | {"threshold": first}
    return plain | {"threshold": rule, "recut_from": first}


def _scores(joined: Joined, again: Again) -> dict[str, Any]:
    return again.scores({tally: counted(tally, joined).total for tally in again.tallies})


def _put_items(joined: Joined, again: Again, key: str, items: list[dict[str, Any]]) -> None:
    """Put the scores of each item in place of those that it has."""
    (tally,) = again.tallies
    from uqeval.statistics.checked_states import checked_states

    for item, (_, state) in zip(items, checked_states(joined, tally), strict=True):
        scores = again.scores({tally: state})
        names = {name.removesuffix("_reason") for name in item[key]}
        item[key] = {n: v for n, v in scores.items() if n.removesuffix("_reason") in names}
