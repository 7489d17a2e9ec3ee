"""Why a score has no interval, or an unreliable one, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from uqeval.errors import listed
from uqeval.keys import family_of
from uqeval.metrics import FAMILIES_IN_REPORTS, Metric
from uqeval.metrics._family import default_settings, results_read
from uqeval.metrics._fitted_apart import FittedModel, threshold
from uqeval.records.addresses import Address, without_row_names
from uqeval.records.intervals import RARER, plural, rare_classes, units_of
from uqeval.records.resampling import FEW, FEW_EFFECTIVE
from uqeval.statistics.draws import Resampling
from uqeval.statistics.kinds import metric_at
from uqeval.statistics.methods import Bounds, NoBounds, is_fewer, units_for_quantile
from uqeval.statistics.samples import Samples

#: The part of a fit's results with the scores of the items that it is not fitted on.
_HELD_OUT = "held_out"
#: There is no interval where bins change the score by more than this share of it.
_COARSE = 0.1


def having(metric: Metric, unit: str, count: int) -> str:
    """Return how many units a score is computed from, in words."""
    have = "has" if count == 1 else "have"
    what = "this score"
    if len(metric.units_with) > 1:
        what = "the rarer kind (wrong or right, OUT or IN)"
    return f"{count} {plural(unit, count)} {have} {what}"


def unless_coarse(bounds: Bounds, value: float, exact: float | None) -> Bounds | NoBounds:
    """Return the bounds of a score from bins, unless the bins change it too much.

    `value`: the score from bins; `exact`: that of the values, None if it is not known.
    """
    if exact is None or abs(value - exact) <= _COARSE * (bounds.high - bounds.low):
        return bounds
    return NoBounds(
        f"the bins of the saved states give {value:.4g} in place of {exact:.4g}; they are too "
        "coarse for an interval"
    )


def fitted_apart(samples: Samples, text: str, runs: Sequence[int]) -> str | None:
    """Return why the difference of some runs has neither interval nor p-value, if each has a fitted
    number of its own that decides the score, also that of an item which the score is computed from.
    """
    address = Address.parse(text)
    metric = metric_at(_of_all_items(address))
    if metric is None:
        return None
    models = []
    for run in runs:
        index = samples.runs[run].index
        settings = index["settings"].get(address.key) or default_settings(address.key)
        models.append(FittedModel(settings, index["results"].get(address.key, {})))
    reason = metric.fitted_apart(models) if metric.fitted_apart is not None else ""
    if reason:
        return reason
    read = dict.fromkeys(r for m in models for r in results_read(address.key, m.settings))
    reasons = (
        _of_items(samples, key, field, runs)
        for key, field in read
        if family_of(key) != family_of(address.key)  # a forged report may name itself
    )
    return next(filter(None, reasons), None)


def _of_items(samples: Samples, key: str, field: str, runs: Sequence[int]) -> str | None:
    """Return the reason of a score that is computed from a field of the items of another result. A
    field that is no score, such as a count of patches, has that of a score at a threshold."""
    family, texts = family_of(key), [f"{key}.{field}"]
    if metric_at(texts[0]) is None and family in FAMILIES_IN_REPORTS:
        metrics = FAMILIES_IN_REPORTS[family].metrics
        texts = [f"{key}.{m.field}" for m in metrics if m.fitted_apart is threshold][:1]
    for text in texts:
        if reason := fitted_apart(samples, text, runs):
            return f"{key}.{field} of the items: {reason} (as options of {family} in uqeval.yaml)"
    return None


def not_a_metric(text: str) -> str:
    """Return why a number that is no score of a metric has no interval."""
    if _HELD_OUT in without_row_names(Address.parse(text).fields):
        return "scores of the items that are held out of a fit have no interval"
    return "only scores have intervals, not counts, settings and points of curves"


def _of_all_items(address: Address) -> str:
    """Return the address of a score, for that of the items that are held out of its fit."""
    if _HELD_OUT not in without_row_names(address.fields):
        return address.within
    fields = tuple(field for field in address.fields if field not in (_HELD_OUT, "after"))
    return replace(address, fields=fields).within


def not_in_states(samples: Samples, text: str, runs: Iterable[int] = (0,)) -> str | None:
    """Return why a score of some runs has no interval, if saved states do not give it."""
    if all(samples.runs[run].gives(text) for run in runs):
        return None
    return "the score cannot be computed from saved states"


def too_few(
    samples: Samples, text: str, metric: Metric, level: float, runs: Sequence[int] = (0,)
) -> str | None:
    """Return why a score has no interval, if too few units of some runs decide it."""
    resampling = samples.resampling
    least = resampling.least(samples.defined(text, runs))
    return (
        _too_few_in_a_set(resampling, metric, least)
        or _too_few_for_quantile(samples, text, metric, least, level)
        or _too_few_events(samples, text, metric, least, runs)
    )


def _too_few_in_a_set(resampling: Resampling, metric: Metric, least: int) -> str | None:
    """Return why a score of several sets has no interval, if the smallest has `least` units."""
    if len(resampling.members) == 1 or least >= metric.least_in_set:
        return None
    return (
        f"one of the sets has {least} {plural(resampling.unit, least)} with this score; "
        f"{metric.least_in_set} are needed in each"
    )


def _too_few_for_quantile(
    samples: Samples, text: str, metric: Metric, units: int, level: float
) -> str | None:
    """Return why a score at a quantile has no interval; None for one of enough units, and for other
    scores.

    `units`: how many have the score. Also for a quantile of pixels: those of one unit are alike, so
    that all of them may lie on one side of the true quantile.
    """
    quantile = metric.quantile
    if quantile is None:
        return None
    if callable(quantile):
        quantile = quantile(samples.runs[0].index["settings"][Address.parse(text).key])
    needed, unit = units_for_quantile(quantile, level), samples.resampling.unit
    if math.isinf(needed):
        which, other = ("largest", "larger") if quantile == 1 else ("smallest", "smaller")
        return (
            f"the score is the {which} value of these items; resampling them cannot show a "
            f"{other} value of other items"
        )
    if units >= needed:
        return None
    return (
        f"{having(metric, unit, units)}; an interval of a {100 * quantile:g} % quantile "
        f"needs {needed}: evaluate at least {needed - units:.0f} more of these {plural(unit, 2)}"
    )


def _too_few_events(
    samples: Samples, text: str, metric: Metric, units: int, runs: Sequence[int]
) -> str | None:
    """Return why a score that rests on the events of few units in one of the runs has no interval.

    None for one that rests on enough, and for other scores. `units`: how many have the score.
    """
    events = metric.events
    if events is None:
        return None
    address = Address.parse(text)
    last = address.fields[-1]
    beside = [address.beside(field).within for field in events.fields]
    of_units = events.units_with and address.beside(events.units_with).within
    count = math.inf
    for run in runs:
        share = events.share(
            samples.value(text, run),
            last,
            *(samples.value(field, run) for field in beside),
        )
        if of_units:
            units = int((samples.scores("alone", of_units)[run] > 0).sum())
        if events.hits:
            of_level = replace(address, fields=(*address.fields[:-2], events.hits, last)).within
            units = int((samples.scores("alone", of_level)[run] < 1).sum())
        count = min(count, units * share)
    if not is_fewer(count, events.least):
        return None
    unit = samples.resampling.unit
    return (
        f"the score rests on {events.name} of about {count:.2g} {plural(unit, 2)}; below "
        f"{events.least:g}, it is too good by chance, and draws do not show how much"
    )


def trials(samples: Samples, text: str, metric: Metric, run: int = 0) -> float:
    """Return how many patches, pixels or items a score is computed from: the sum of its `counted`
    fields.
    """
    address = Address.parse(text)
    return sum(samples.value(address.beside(field).within, run) for field in metric.counted)


def few_units(resampling: Resampling, headline: str = "") -> list[str]:
    """Return warnings about intervals from few units, one sentence each.

    Below 30 units intervals may be too narrow. Below 10 independent pairs of a video they are
    unreliable: those of the `headline`, whose units these are.
    """
    of = f" of {headline}" if headline else ""
    if resampling.problem:
        return [f"no intervals{of}: {resampling.problem}."]
    if resampling.units < 2:
        return [f"no intervals: there is one {resampling.unit}; 2 are needed."]
    effective = resampling.effective
    if effective is not None and effective < FEW:
        problem = f"intervals{of} come from about {effective:.0f} independent pairs"
        if resampling.lag1 is not None and resampling.lag1 > 0:  # else there are only so many pairs
            problem += (
                ": neighbouring pairs of the video are correlated (lag-1 autocorrelation "
                f"{resampling.lag1:.2f})"
            )
        problem += ". "
        if effective < FEW_EFFECTIVE:
            return [problem + "Evaluate longer or more sequences."]
        return [problem + f"Below {FEW} they may be too narrow."]
    if resampling.unit != "batch" and resampling.units < FEW:
        return [
            f"intervals come from {resampling.units} {resampling.unit}s; below {FEW} they may be "
            "too narrow (docs/intervals.md has the rates). Evaluate more."
        ]
    return []


def few_pairs(
    intervals: Mapping[str, Mapping[str, Any]], resampling: Resampling, headline: str
) -> list[str]:
    """Return a warning that names scores of a video with an interval from few independent pairs.

    Those below 10, unless the `headline` has as few, of which `few_units` warns. `resampling`: its
    units; `intervals`: all records, by address. Rows of classes show the number of their pairs.
    """
    few = [
        f"{text} (about {record['effective']:.0f})"
        for text, record in intervals.items()
        if "per_class" not in text and record["low"] is not None
        and record.get("effective", math.inf) < FEW_EFFECTIVE
    ]  # fmt: skip
    if not few or resampling.problem or (resampling.effective or 0.0) < FEW_EFFECTIVE:
        return []
    return [
        f"intervals of some scores come from fewer than {FEW_EFFECTIVE} independent pairs, since "
        f"these drift more slowly than {headline}: {listed(few, 3)}. Evaluate longer or more "
        "sequences."
    ]


def few_pairs_of(pairs: Mapping[str, float]) -> list[str]:
    """Return a warning that names differences with an interval from few independent pairs; `pairs`:
    their number, by address."""
    advice = {
        FEW_EFFECTIVE: "Evaluate longer or more sequences.", FEW: "They may be too narrow."
    }  # fmt: skip
    for most, text in advice.items():
        if few := [f"{name} (about {count:.0f})" for name, count in pairs.items() if count < most]:
            return [
                f"intervals of differences come from fewer than {most} independent pairs: "
                f"{listed(few, 3)}. {text}"
            ]
    return []


def few_defined(intervals: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning that names headline scores with an interval from few units.

    These are fewer than 30 of the units, or fewer than half where all units are fewer than 30.
    `intervals`: their records, by address. Rows of classes show the number of their units.
    """
    few: list[str] = []
    for text, record in intervals.items():
        metric, units = metric_at(text), record["units"]
        if metric is None or not metric.headline or "per_class" in text or record["low"] is None:
            continue
        if units["defined"] < (FEW if units["drawn"] >= FEW else units["drawn"] / 2):
            kind = f" {RARER}" if len(metric.units_with) > 1 else ""
            few.append(f"{text} ({units_of(record)}{kind})")
    if not few:
        return []
    return [
        f"intervals of some scores come from few units, and may be too narrow: "
        f"{listed(few, 3)}. Evaluate more items that have these scores."
    ]


def few_with_class(
    results: Mapping[str, Mapping[str, Any]], intervals: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return a warning for each key of results with an interval of a mean over classes, of which
    few units have some. `intervals`: the records, by address."""
    means: dict[tuple[str, str], list[str]] = {}
    for text, record in intervals.items():
        metric, address = metric_at(text), Address.parse(text)
        is_mean = metric is not None and metric.mean_of and address.fields == (metric.field,)
        if metric is not None and is_mean and record["low"] is not None:
            means.setdefault((address.key, metric.mean_of), []).append(text)
    warnings = []
    for (key, field), texts in means.items():

        def having(name: str, key: str = key, field: str = field) -> int | None:
            own = intervals.get(Address.of_key(key, ("per_class", name, field)).within)
            return None if own is None else int(own["units"]["defined"])

        rows, units = results[key].get("per_class") or [], intervals[texts[0]]["units"]
        if few := rare_classes(rows, field, units["name"], units["drawn"], having):
            warnings.append(
                f"{' and '.join(texts)}: {few}. These means over classes vary more with such "
                "classes than their intervals show. Evaluate more items with these classes."
            )
    return warnings
