"""Numbers of single items, such as risks: their source and direction.

A number is read from the counts of classes, from a field that another family records of each item,
from a column of a table, or from the uncertainty of the item's pixels.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array
from uqeval.errors import DataError, UsageError, is_number, listed, number_in, quoted
from uqeval.keys import family_of
from uqeval.metrics._aggregation import COLUMN, VOID, Aggregation
from uqeval.metrics._columns import as_numbers, mean_of_defined, over
from uqeval.metrics._dataset_info import DatasetInfo, saved_content
from uqeval.metrics._evaluation import Evaluation, Passes, TallyResult
from uqeval.metrics._family import FAMILIES_IN_REPORTS
from uqeval.metrics._items import score_items
from uqeval.metrics.segmentation import class_counts, miou, pixel_accuracy
from uqeval.records.addresses import Address, number_at

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

#: One number per item; None if undefined.
Numbers = list[float | None]


@dataclass(frozen=True)
class Scale:
    """Linear map of a number: offset + factor·value."""

    offset: float = 0.0
    factor: float = 1.0

    def of(self, numbers: Numbers) -> Numbers:
        """Return scaled numbers."""
        if self == Scale():
            return list(numbers)
        return [None if v is None else self.offset + self.factor * v for v in numbers]


class ItemNumber(ABC):
    """Numbers of items, computed from `tallies` of a run; `scale` makes them risks or
    confidences."""

    scale = Scale()

    @property
    def undefined(self) -> str:
        """Return the reason if an item has none."""
        return VOID

    def maps(self) -> set[str]:
        """Return the names of the maps that are read."""
        return set()

    def fit(self) -> Passes:
        """Fit the parameters of the tallies."""
        yield from ()

    def fit_region(self, in_region: Callable[[Passes], Passes]) -> Passes:
        """Fit them for a region; by default on the whole image."""
        yield from self.fit()

    def tallies(self) -> tuple[Tally, ...]:
        """Return the tallies that `values` reads, as far as `fit` determines them."""
        return ()

    @abstractmethod
    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        """Return the numbers."""


def dice(labelled: Array, predicted: Array, correct: Array) -> Array:
    """Return the mean of 2·TP / (2·TP + FP + FN) over the classes in labels or predictions."""
    return mean_of_defined(over(2 * correct, labelled + predicted))


#: Scores of the confusion matrix, and the field of items that has each; "" for none.
OF_COUNTS: Mapping[str, tuple[Callable[..., Array], str]] = {
    "miou": (miou, "segmentation.miou"),
    "dice": (dice, ""),
    "accuracy": (pixel_accuracy, "segmentation.pixel_accuracy"),
}


@dataclass(frozen=True)
class OfCounts(ItemNumber):
    """A score of an item's confusion matrix."""

    name: str
    info: DatasetInfo
    scale: Scale

    def maps(self) -> set[str]:
        return {"label", "prediction"}

    def tallies(self) -> tuple[Tally, ...]:
        from uqeval.tallies.segmentation import ClassCounts

        return (ClassCounts(self.info.classes),)

    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        score, _ = OF_COUNTS[self.name]
        return score_items(
            self.tallies(), results, lambda states: as_numbers(score(*class_counts(states)))
        )


@dataclass(frozen=True)
class OfUncertainty(ItemNumber):
    """Minus the aggregated uncertainty of an item's pixels; undefined without a threshold that the
    aggregation needs.

    `fitting` puts the threshold into `fitted`; `unfitted` is the reason if there is none.
    """

    aggregation: Aggregation
    uncertainty: Any
    classes: int
    patch: int
    fitting: Callable[[], Passes]
    fitted: Mapping[str, Any]
    unfitted: str

    @property
    def undefined(self) -> str:
        return self.unfitted if self._has_no_threshold else VOID

    @property
    def _has_no_threshold(self) -> bool:
        return self.aggregation.needs_threshold and self.fitted.get("threshold", 0.0) is None

    def maps(self) -> set[str]:
        return {"label", self.uncertainty.name}

    def fit(self) -> Passes:
        if self.aggregation.needs_threshold:
            yield from self.fitting()

    def tallies(self) -> tuple[Tally, ...]:
        if self.aggregation.needs_threshold and "threshold" not in self.fitted:
            return ()
        threshold = self.fitted.get("threshold")
        return (self.aggregation.tally(self.uncertainty, self.classes, self.patch, threshold),)

    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        (tally,) = self.tallies()
        items = results[tally].items
        if self._has_no_threshold:
            return [None] * len(items)
        numbers = [self.aggregation.value(tally.unpack(data)) for data in items]
        return [None if number is None else -number for number in numbers]


@dataclass(frozen=True)
class OfColumn(ItemNumber):
    """A column of a table of the items."""

    column: str
    table: str
    info: DatasetInfo
    scale: Scale

    @property
    def undefined(self) -> str:
        return "its cell of the table is empty"

    @classmethod
    def read(cls, column: str, table: str, info: DatasetInfo) -> None:
        """Read a column of a table that the user gives. Raises `UqevalError`."""
        from uqeval.stores.item_table import read_table

        info.columns.setdefault(table, {})[column] = read_table(table, info.names).column(column)

    def fit(self) -> Passes:
        """Check the cells before the data, so that errors appear first."""
        self.values({})
        yield from ()

    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        columns = self.info.columns.get(self.table, {})
        cells = saved_content(columns, self.column, f"--item-table {self.table} column", self.info)
        return [self._number(name, cell) for name, cell in zip(self.info.names, cells, strict=True)]

    def _number(self, name: str, cell: str) -> float | None:
        try:
            value = number_in(cell) if cell.strip() else None
        except ValueError:
            value = math.nan
        if value is not None and not math.isfinite(value):
            raise UsageError(
                f"{self.table}: column {quoted(self.column)} of {quoted(name)} is {quoted(cell)}; "
                "expected a number, or an empty cell if it is unknown."
            )
        return value


@dataclass(frozen=True)
class OfField(ItemNumber):
    """A field of the items' records of another family, evaluated for it."""

    key: str
    name: str
    evaluation: Evaluation[Any]
    scale: Scale
    region: str = ""

    @property
    def undefined(self) -> str:
        return "the field is undefined for the item"

    def maps(self) -> set[str]:
        return self.evaluation.maps()

    def fit(self) -> Passes:
        return (yield from self.evaluation.fit())

    def fit_region(self, in_region: Callable[[Passes], Passes]) -> Passes:
        """Fit as the region's own results do, so that both have the same numbers of items."""
        if self.evaluation.shares_fit:
            return (yield from self.evaluation.fit())
        return (yield from self.evaluation.fit_region(in_region))

    def tallies(self) -> tuple[Tally, ...]:
        return (*self.evaluation.tallies(), *self.evaluation.extra_tallies())

    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        run = self.evaluation.run_of({tally: results[tally] for tally in self.tallies()}, None)
        return field_of_items(run.items, self.key, self.name, self.region)


@dataclass(frozen=True)
class Known(ItemNumber):
    """Numbers that an earlier run recorded."""

    numbers: Numbers
    undefined: str = "it is undefined in the report's items"

    def values(self, results: Mapping[Tally, TallyResult]) -> Numbers:
        return list(self.numbers)


def field_of_items(items: Sequence[Mapping[str, Any]], key: str, name: str, region: str) -> Numbers:
    """Return a field of the items' records under one key.

    Raises `DataError` if no item has a number there. Those of a `region` may have none.
    """
    numbers = [number_at(item, name.split(".")) for item in items]
    if items and not region and all(number is None for number in numbers):
        fields = [
            own for own, value in items[0].items()
            if is_number(value)
        ]  # fmt: skip
        raise DataError(
            f"{key}.{name}: no item has a number there. The items' fields of {key} are "
            f"{listed(fields)}."
        )
    return numbers


@dataclass(frozen=True)
class Wanted:
    """A number that a user names: a risk (`is_loss`: high is bad) or a confidence.

    If high values of a score are good, its risk is 1 - value for a score in [0, 1], else -value. A
    leading minus changes the sign.
    """

    text: str
    is_loss: bool

    @property
    def name(self) -> str:
        """Return the name without its sign."""
        return self.text.removeprefix("-")

    @property
    def column(self) -> str | None:
        """Return the column of the table; None for another number."""
        return self.name.removeprefix(COLUMN) if self.name.startswith(COLUMN) else None

    @property
    def address(self) -> tuple[str, str] | None:
        """Return its key and field in the items' records; None if it has none."""
        if self.column is not None:
            return None
        address = OF_COUNTS[self.name][1] if self.name in OF_COUNTS else self.name
        return key_and_field(address) if address else None

    @property
    def scale(self) -> Scale:
        """Return the linear map from the value to a risk, or to a confidence."""
        is_high_good, has_unit_range = self._is_good
        scale = Scale()
        if is_high_good is not None and is_high_good == self.is_loss:
            scale = Scale(1.0 if self.is_loss and has_unit_range else 0.0, -1.0)
        return Scale(-scale.offset, -scale.factor) if self.text.startswith("-") else scale

    @property
    def _is_good(self) -> tuple[bool | None, bool]:
        """Return whether high values are good (None: the user decides), and are in [0, 1]."""
        if self.column is not None:
            return None, False
        if self.name in OF_COUNTS:
            return True, True
        key, name = key_and_field(self.name)
        family = FAMILIES_IN_REPORTS[family_of(key)]
        metric = next((m for m in family.metrics if m.field == name), None)
        if metric is None:  # of pairs of frames: TC_t and mIoU_t
            return name in family.of_items, name in family.of_items
        return metric.direction == "higher", metric.range == (0.0, 1.0)


def key_and_field(text: str) -> tuple[str, str]:
    """Return the key of a family and the field of "regression.rmse",
    "pavpu[window=7].pavpu" or 'segmentation@"boundary:1.5".miou'. Raises `UsageError`."""
    try:
        address = Address.parse(text)
    except UsageError:
        address = None
    if (
        address is None
        or address.store is not None
        or address.where
        or address.metric not in FAMILIES_IN_REPORTS
    ):
        raise UsageError(
            f"{quoted(text)} is not a number of an item; expected {', '.join(OF_COUNTS)}, "
            "column:NAME, for --confidence also mean, sum, max, pNN, patch-max, share or "
            "mean-above, or FAMILY.FIELD such as regression.rmse, with FAMILY one of "
            f"{', '.join(FAMILIES_IN_REPORTS)}."
        )
    return address.key, ".".join(address.fields)
