"""Notes on the value and the interval of a verdict, and the items, groups and classes that harm a
value most. Outputs show these if a rule fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from uqeval.errors import StoreError, is_number, number_of
from uqeval.gate.bounds import DEBIASED
from uqeval.gate.verdict import Verdict
from uqeval.glossary import class_field, metric_of
from uqeval.records.addresses import Address, number_at
from uqeval.records.folder import Named
from uqeval.records.intervals import rare_classes
from uqeval.records.lookup import Score
from uqeval.records.report import Report
from uqeval.records.resampling import FEW, FEW_EFFECTIVE, Mover, Resampler, Units
from uqeval.records.scalars import described


def notes_on(units: Units) -> Iterator[str]:
    """Yield a note if an interval comes from few units or from batches."""
    if units.effective is not None and units.effective < FEW:
        too_few = units.effective < FEW_EFFECTIVE
        lag1 = "" if units.lag1 is None else f" (lag-1 autocorrelation {units.lag1:.2f})"
        yield (
            f"the interval comes from about {units.effective:.0f} independent pairs{lag1}; below "
            + (
                f"{FEW_EFFECTIVE} it is unreliable: evaluate longer or more sequences"
                if too_few
                else f"{FEW} it may be too narrow"
            )
        )
    elif units.name == "batch":
        yield f"the interval comes from {units.defined} batches of neighbouring pairs"
    elif 0 < (units.defined or 0) < FEW:
        count = number_of(units.defined or 0, units.name)
        yield f"the interval comes from {count}; below {FEW} it may be too narrow"


def note_on_classes(
    score: Score, units: Units, having: Callable[[tuple[str, ...]], int | None]
) -> Iterator[str]:
    """Yield a note if the interval of a mean over classes comes from few units with some of them.

    `having`: in how many units the value at some fields is defined, None if this is not known.
    """
    address, field = score.address, score.address.fields[0]
    metric = metric_of(address.metric, field) if len(address.fields) == 1 else None
    rows = (score.results.get(address.key) or {}).get("per_class")
    if metric is None or not metric.mean_of or not isinstance(rows, list):
        return
    field = metric.mean_of
    few = rare_classes(
        rows, field, units.name, units.drawn, lambda name: having(("per_class", name, field))
    )
    if few:
        yield f"{few}; this mean over classes varies more with such classes than the interval shows"


def notes_on_value(report: Report, score: Score) -> Iterator[str]:
    """Yield a note for each fit on the evaluated items. An undefined value and a setting have
    none."""
    address, settings = score.address, report.settings.get(score.address.key)
    settings = settings if isinstance(settings, dict) else {}
    field = address.fields[-1]
    if score.value is None or field in settings:
        return
    if (address.metric == "pavpu" and field != "p_accurate") or field == "undetected_error_rate":
        rule = settings.get("threshold")
        fitted = isinstance(rule, str) and not _is_number(rule)
        if fitted and not settings.get("threshold_from"):
            yield (
                f"the threshold ({rule}) was fitted on the evaluated items, so the score is "
                "optimistic; use --threshold-from REPORT or --threshold NUMBER"
            )
    record = score.results.get(address.key)
    record = record if isinstance(record, dict) else {}
    if _is_fitted_here(report, address, record):
        yield (
            f"{address.key}.{address.fields[0]} was fitted on the evaluated items, so the score is "
            "optimistic; use --fit-on FILE"
        )


def debiased_of(score: Score) -> Score | None:
    """Return the score that is corrected for its upward bias; None if there is none."""
    address, record = score.address, score.results.get(score.address.key)
    field = address.fields[-1] + DEBIASED
    value: Any = record.get(field) if isinstance(record, dict) else None
    if not is_number(value) or len(address.fields) > 1 or score.value is None:
        return None
    return replace(score, value=value, address=replace(address, fields=(field,)))


def note_on_bias(plain: Verdict, debiased: Verdict) -> Iterator[str]:
    """Yield a note if the debiased value is on the other side of the limit."""
    is_undefined = plain.reason is not None or debiased.reason is not None
    if debiased.value is None or is_undefined or plain.status == debiased.status:
        return
    before = ""
    if debiased.baseline is not None:
        before = f" ({debiased.baseline:.4g} in the baseline)"
    yield (
        f"the rule checks the plain value, which is biased upward; {debiased.address.within} is "
        f"{debiased.value:.4g}{before} and would {debiased.status}"
    )


def _is_fitted_here(report: Report, address: Address, record: dict[str, Any]) -> bool:
    """Return whether a score follows from a fit on the evaluated items. Scores before the fit do
    not, and a fitted number is no score."""
    part = record.get(address.fields[0])
    if not isinstance(part, dict) or part.get("fitted_on") != "all items":
        return False
    metric = described(report.metrics, address.metric, address.fields)
    is_score = not report.metrics or bool(metric.get("direction"))
    return is_score and not address.fields[-1].endswith("_before")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


#: The number of items, of groups and of classes in a verdict.
COUNT = 5


def moved_by(
    named: Named,
    score: Score,
    baseline_report: Named | None,
    base: Score | None,
    *,
    highest: bool,
    resampler: Resampler | None,
) -> dict[str, tuple[Mover, ...]]:
    """Return the `items`, `groups` and `classes` that harm a value most, worst first.

    `highest`: high values are the worst. Items and groups are ordered by the change of the value
    without them, computed from the saved states. Only harmful ones are returned, and none without
    states. Classes are ordered by their change since the baseline, or by their value without one.
    """
    address = score.address
    items: list[Mover] = []
    groups: list[Mover] = []
    if resampler is not None:
        baseline = None if baseline_report is None else baseline_report.path
        with suppress(StoreError):
            sign = -1 if highest else 1
            items = resampler.movers(named.path, baseline, address, COUNT, sign)
            groups = resampler.group_movers(named.path, baseline, address, COUNT, sign)
    classes = _of_classes(score.results, address)
    earlier = {} if base is None else _of_classes(base.results, address)
    classes_by_harm = _worst_classes(classes, earlier, highest)[:COUNT]
    return {"items": tuple(items), "groups": tuple(groups), "classes": tuple(classes_by_harm)}


def _worst_classes(now: dict[str, float], baseline: dict[str, float], highest: bool) -> list[Mover]:
    sign = -1 if highest else 1
    if baseline:
        changes = [Mover(n, v, change=v - baseline[n]) for n, v in now.items() if n in baseline]
        harmful = [mover for mover in changes if sign * (mover.change or 0) < 0]
        return sorted(harmful, key=lambda mover: sign * (mover.change or 0))
    return [Mover(n, v) for n, v in sorted(now.items(), key=lambda entry: sign * entry[1])]


def _of_classes(results: dict[str, Any], address: Address) -> dict[str, float]:
    """Return the value of each class by its name."""
    record = results.get(address.key)
    rows = record.get("per_class") if isinstance(record, dict) else None
    if not isinstance(rows, list) or address.fields[0] == "per_class":
        return {}
    path = (class_field(address.metric, address.fields[0]), *address.fields[1:])
    values = {}
    for row in rows:
        value = number_at(row, path)
        if value is not None and abs(value) < 1e300:
            values[str(row.get("name", row.get("class")))] = value
    return values
