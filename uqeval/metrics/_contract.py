"""Declarations of metrics, and of the tables and figures of a family, for all writers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from uqeval.metrics._fitted_apart import FittedApart
    from uqeval.records.report import Report

#: How the interval of a score is computed (`statistics.intervals`). "share": a ratio of counts of
#: patches, pixels or items; "logit": another score in [0, 1]; "linear": a score with other
#: bounds; "gaps": a sum of absolute gaps, which is biased upward, with `Evaluation.gaps`; "biased":
#: another score that noise shifts, such as a sum of squared gaps; "positive": a mean of errors or
#: risks, which few units can dominate, and of which the jackknife takes the logarithm if it is
#: above 0; "draws": another unbounded score, or one that is cut at a rank.
IntervalKind = Literal["share", "logit", "linear", "gaps", "biased", "positive", "draws"]

#: Why a score of all pixels of a set, region, class or item is undefined.
NO_LABEL = "no labelled pixel"
NO_PIXEL = "no pixel is evaluated"
#: The regions in which a mean of IoUs over classes says nothing.
ONE_CLASS = {"class": "only one class has labels there, so that the IoU of every other class is 0"}
#: Advice that several metrics share.
RANKING = (
    "Compare other uncertainties (--uncertainty); a larger ensemble often ranks errors better."
)
#: A gap between confidence and accuracy, or between nominal and observed coverage, worth acting on.
LARGE_GAP = 0.02


@dataclass(frozen=True)
class Doubt:
    """Results that are so bad that predictions and ground truth may not belong together.

    `sign`: what shows it, as a clause. `cause`: what may be wrong, as sentences.
    """

    sign: str
    cause: str

    @property
    def warning(self) -> str:
        """Return the warning about it, with the command that shows the data."""
        return f"{self.sign}. {self.cause} uqeval run --gallery 3 shows both."


@dataclass(frozen=True)
class Chance:
    """The score of an uninformative input, such as an uncertainty independent of the errors.

    `claim`: what a better score shows, as a clause: "the uncertainty finds wrong pixels". `best`
    returns the best possible score from the record of results, or None if `value` is not the score
    of chance; by default it is the better end of the metric's range. `of`: the input with this
    score, if that is not chance.
    """

    value: float
    claim: str
    best: Callable[[Mapping[str, Any]], float | None] | None = None
    of: str = "chance"


@dataclass(frozen=True)
class Events:
    """Rare events that a value rests on, such as wrong pixels. An interval needs those of at least
    some units: the events of one unit are alike.

    `share` returns the share of the events of all units that the value rests on. It has the value,
    the last part of its address, and the `fields` beside it. `name`: "accepted wrong pixels".
    `units_with`: the field that counts the events of a unit; by default, the units with the score
    have events. `hits`: the score whose value of the same level is the share of non-events.
    """

    share: Callable[..., float]
    name: str
    least: float
    fields: tuple[str, ...] = ()
    units_with: str = ""
    hits: str = ""


@dataclass(frozen=True)
class Metric:
    """One number of a report, `<family>.<field>`.

    `formula` takes arrays of counts [set, …] and returns the values [set], NaN where undefined. A
    formula over ranks takes one set, and returns None where undefined. `undefined`: when the metric
    is undefined. `direction`: which values are better; None for a description. `interval`: the kind
    of its interval. `counted`, for a share: the fields of the same record whose sum is the number
    of trials; by default, the units (items, groups) are the trials.
    """

    family: str
    field: str
    unit: str
    direction: Literal["higher", "lower"] | None
    range: tuple[float | None, float | None]
    reference: str
    undefined: str
    formula: Callable[..., Any]
    _: KW_ONLY
    #: Its best value: an end of its range, a number, or None: a coverage should be near its level.
    best: Literal["end"] | float | None = "end"
    #: What pages and tables call it, and its heading in a table of many columns where that is
    #: another: "p(accurate | certain)", "p(acc|cert)".
    label: str
    column: str = ""
    #: Its place among the scores of the family that a reader sees first; 0: not among them. The
    #: first one ranks the items.
    headline: int = 0
    #: One sentence for somebody who has never met the metric.
    meaning: str
    #: What to do when it is bad; nothing for a description.
    advice: str = ""
    #: Returns from the results and the settings what to do in place of `advice`; empty if they do
    #: not show it.
    specific: Callable[[Record, Record], str] | None = None
    #: Returns from the results and the settings on which side an error is, as a clause, such as
    #: "the model is over-confident (…)"; empty if they do not show it.
    side: Callable[[Record, Record], str] | None = None
    #: The value above which findings give the advice; None: they do not give it for its value.
    large: float | None = None
    #: The value below which lower values are no better, and why; None: there is none.
    least_good: tuple[float, str] | None = None
    #: What its value in a slice or class shows, for the weakest one; None: nothing, because its
    #: level follows from the mix of pixels there. A PAvPU, whose chance level changes, and areas
    #: under curves of risks are such scores.
    of_part: Literal["error", "calibration", "ranking"] | None = None
    #: Its score by chance, or None; findings compare with it.
    chance: Chance | None = None
    #: Whether it is the risk of an item, such as errors without a warning: pages rank items by it.
    risk: bool = False
    interval: IntervalKind
    counted: tuple[str, ...] = ()
    #: At which quantile of the items' values it is: 0.9; 0 and 1 are the smallest and the largest,
    #: which have no interval. A score of pixels is cut at this quantile of the pixels of a kind,
    #: such as the wrong ones. None: at no quantile. A function returns it from the settings.
    quantile: float | Callable[[Record], float] | None = None
    #: The wrong pixels or other rare events that a value rests on. A score of few has no interval.
    events: Events | None = None
    #: Returns why the difference of models has neither interval nor p-value: the score depends on a
    #: number that is fitted for each, such as a threshold, and whose chance the evaluated items do
    #: not show. None: it depends on no such number.
    fitted_apart: FittedApart | None = None
    #: Whether it changes if all uncertainties of a model are multiplied by a number, though other
    #: scores of its family do not: it has no test of swaps.
    has_scale: bool = False
    #: Whether few ranks of uncertainty decide it, as a precision or a cut, of which one image may
    #: have all: swaps of two models are of ranks, and of the uncertainties as they are.
    of_few_ranks: bool = False
    #: For a score of several sets: units (items, groups) that each set needs for an interval.
    least_in_set: int = 3
    #: Which units (items, groups) it is computed from, where a single unit may have no value of
    #: the score itself: those in which another field is defined, or one of several counts is
    #: above 0. It compares several kinds of units if there are several entries; the rarest counts.
    units_with: tuple[str | tuple[str, ...], ...] = ()
    #: The name of its field in rows by class, if that is different.
    of_class: str = ""
    #: For a mean over classes: the field of rows by class that is defined in units (items, groups)
    #: with labels of the class. Its interval does not show how classes of few units vary.
    mean_of: str = ""
    #: The kinds of regions in which it says nothing, each with the reason: reports have its value
    #: there, but it is no headline.
    no_meaning_in: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the metric's address in a report."""
        return f"{self.family}.{self.field}"

    @property
    def best_value(self) -> float | None:
        """Return its best value; None if it has none."""
        return self.range[self.direction == "higher"] if self.best == "end" else self.best

    def advice_for(self, record: Record, settings: Record, of_slice: bool = False) -> str:
        """Return the advice for a record of results, such as those of a slice, and its settings."""
        side = self.side_of(record, settings, of_slice)
        advice = (self.specific(record, settings) if self.specific else "") or self.advice
        return f"{side[:1].upper()}{side[1:]}. {advice}" if side else advice

    def side_of(self, record: Record, settings: Record, of_slice: bool = False) -> str:
        """Return on which side the error is, as a clause; empty if the results do not show it.

        Fits in the results of a slice, such as a temperature, are those of the whole set, and do
        not show it.
        """
        if of_slice:
            record = {
                name: value for name, value in record.items()
                if not (isinstance(value, Mapping) and "fitted_on" in value)
            }  # fmt: skip
        return self.side(record, settings) if self.side else ""

    def no_better(self, values: Iterable[float | None]) -> str:
        """Return why the lowest of some values is no better than the others; empty if it may be."""
        least, reason = self.least_good or (-math.inf, "")
        return reason if any(v is not None and v < least for v in values) else ""

    @property
    def heading(self) -> str:
        """Return the heading of its column in a table."""
        return self.column or self.label

    def record(self) -> dict[str, Any]:
        """Return the entry of a report's `metrics`."""
        return {
            "label": self.label,
            "unit": self.unit,
            "direction": self.direction,
            "range": list(self.range),
            "interval": self.interval,
            "reference": self.reference,
            "meaning": self.meaning,
            "advice": self.advice,
        }


def set_value(record: dict[str, Any], field: str, value: float | None, reason: str) -> None:
    """Add a value to a record; an undefined one is None, with `<name>_reason`."""
    record[field] = value
    if value is None:
        record[f"{field}_reason"] = reason


Record: TypeAlias = "Mapping[str, Any]"


def _key(key: str, record: Record) -> str:
    return key


def _name(record: Record) -> str:
    return str(record.get("name", record.get("class")))


@dataclass(frozen=True)
class Column:
    """A column of a table.

    `field`: of a record, with dots into its parts (`surplus_peak.value`). `coverage.*` is a column
    for each entry of the part. `heading`: by default the heading of the metric; `{}` is the
    entry. `digits`: after the point; `form`: a format in place of them. `value` computes the value
    from the record and the report. Tables leave out a column whose field no record has.
    """

    field: str
    heading: str = ""
    digits: int = 4
    form: str = ""
    value: Callable[[Record, Report], Any] | None = None


@dataclass(frozen=True)
class ScoreTable:
    """A table with a row for each variant.

    `row` returns the heading of a row from the key and the record. Variants with the same heading
    have one row. `below` returns further rows below it, each a heading and a record.
    """

    title: str
    columns: tuple[str | Column, ...]
    note: str = ""
    corner: str = ""
    row: Callable[[str, Record], str] = _key
    below: Callable[[Record], Iterable[tuple[str, Record]]] | None = None


@dataclass(frozen=True)
class RowTable:
    """A table with a row for each record of the list `field`, or for each bin of a record of lists.

    By default, a table of the first variant; with `every`, a table per variant. With `variant`,
    which returns the heading of a variant, one table of all variants. `row` returns the heading of
    a row. `last`: a further row, its heading and the field of its record. `least`: show no table of
    fewer rows; `most`: show no more rows.
    """

    title: str
    field: str
    columns: tuple[str | Column, ...]
    note: str = ""
    corner: str = "class"
    row: Callable[[Record], str] = _name
    every: bool = False
    variant: Callable[[Record], str] | None = None
    last: tuple[str, str] | None = None
    least: int = 1
    most: int | None = None


@dataclass(frozen=True)
class Panel:
    """A panel of bars: a field of rows by class, its title, and a line to compare with.

    `mark`: where the line is and what it means.
    """

    field: str
    title: str
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class ClassBars:
    """A figure of bars for each class."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Display:
    """How the results of a family are shown.

    `tables`: on a terminal and in Markdown; by default its metrics, of the set and by class.
    `bars`: a figure of the rows by class. `figures`: modules of `uqeval.report.figures` that draw
    its results. `ranks_items`: its first headline may rank the items.
    """

    tables: tuple[ScoreTable | RowTable, ...] = ()
    bars: ClassBars | None = None
    figures: tuple[str, ...] = ()
    ranks_items: bool = True
