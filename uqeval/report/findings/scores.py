"""Scores for findings, with their intervals, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from uqeval.glossary import headlines, metric_of
from uqeval.keys import Key, family_of
from uqeval.records.intervals import interval
from uqeval.records.report import Report, model_of
from uqeval.report.tables.table import format_number

if TYPE_CHECKING:
    from uqeval.metrics import Metric


@dataclass(frozen=True)
class Finding:
    """One sentence, its heading, the family of the score for a link, and a command to paste; empty
    without one."""

    title: str
    text: str
    family: str = ""
    command: str = ""


@dataclass(frozen=True)
class Score:
    """A value of a report, its label and its interval.

    `part`: the name of its class, slice or region; empty for the whole set. `key`: the key of its
    results. `model`: its model, if the report has several.
    """

    metric: Metric
    label: str
    value: float
    interval: Mapping[str, Any] | None
    record: Mapping[str, Any]
    part: str = ""
    key: str = ""
    model: str = ""

    @property
    def verb(self) -> str:
        """Return the verb after the label: "undetected errors are"."""
        return "are" if self.label.endswith("errors") else "is"

    @property
    def text(self) -> str:
        """Return the value with its interval: `0.904 (95 % interval 0.890 to 0.917)`."""
        if self.interval is None:
            return number(self.value)
        low, high = number(self.interval["low"]), number(self.interval["high"])
        about = "about " if self.interval.get("approximate") else ""
        level = f"{100 * (self.interval.get('level') or 0.95):.4g} %"
        return f"{number(self.value)} ({level} interval {about}{low} to {high})"

    def ends(self, chosen_from: int = 1) -> tuple[float, float] | None:
        """Return the interval, widened for a score that is chosen from several."""
        if self.interval is None:
            return None
        level = self.interval.get("level") or 0.95
        normal = NormalDist()
        factor = normal.inv_cdf(1 - (1 - level) / 2 / chosen_from)
        factor /= normal.inv_cdf((1 + level) / 2)
        low, high = self.interval["low"], self.interval["high"]
        return self.value - factor * (self.value - low), self.value + factor * (high - self.value)


def settings_of(report: Report, key: str) -> Mapping[str, Any]:
    """Return the settings of the results of a key; empty if there are none."""
    settings = report.settings.get(key)
    return settings if isinstance(settings, dict) else {}


def is_large_gap(score: Score) -> bool:
    """Return whether a calibration error is large; without an interval, whether its value is."""
    low, _ = score.ends() or (score.value, score.value)
    return score.metric.large is not None and low > score.metric.large


def number(value: float) -> str:
    """Return a number for a sentence: three digits after the point, or four significant ones."""
    return format_number(float(value), 3) if abs(value) < 10 else f"{value:.4g}"


def described(score: Score) -> str:
    """Return a score as text: `AUROC is 0.904 (95 % interval 0.890 to 0.917)`."""
    of_model = f" of {score.model}" if score.model else ""
    return f"{score.label}{of_model} {score.verb} {score.text}"


def whole_scores(report: Report) -> Iterator[Score]:
    """Yield the headline scores of the first variant of each family, of whole images."""
    families = set()
    for key, record in report.results.items():
        family = family_of(key)
        if family in families or Key.parse(key).region is not None:
            continue
        families.add(family)
        model = model_of(report, key)
        for score in headline_scores(family, key, record, report.intervals):
            yield replace(score, model=model)


def headline_scores(
    family: str, key: str, record: Mapping[str, Any], intervals: Mapping[str, Any], part: str = ""
) -> Iterator[Score]:
    """Yield the defined headline scores of a family in a `record` of results, in their order.

    `part`: the name of the class, slice or region of the record; empty for the whole set.
    """
    for field in headlines(key):
        metric, value = metric_of(family, field), record.get(field)
        if metric is not None and isinstance(value, int | float):
            recorded_interval = interval(intervals, key, [field]) if intervals else None
            yield Score(metric, metric.label, float(value), recorded_interval, record, part, key)


def first_keys(report: Report) -> list[str]:
    """Return the key of the first variant of each family, of whole images."""
    keys: dict[str, str] = {}
    for key in report.results:
        if Key.parse(key).region is None:
            keys.setdefault(family_of(key), key)
    return list(keys.values())
