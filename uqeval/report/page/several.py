"""The reports of a page of several: their warnings, and which of their scores can be compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.records.report import Report

if TYPE_CHECKING:
    from uqeval.compare import Comparison

_OTHER_ITEMS = "The reports are of different items, so their scores cannot be compared."
_UNMARKED = "The tables of all scores are of the items of each report, so they mark no best value."


@dataclass(frozen=True)
class Several:
    """Several reports by name, and their comparison or why there is none."""

    reports: Mapping[str, Report]
    comparison: Comparison | None
    no_comparison: str

    @property
    def incomparable(self) -> Collection[str]:
        """Return the keys of results whose scores cannot be compared."""
        if self.comparison is not None:
            compared = self._compared
            others = (own for name, own in self.reports.items() if name not in compared)
            return self.comparison.incomparable.union(*(report.results for report in others))
        if self.no_comparison or self._other_items:
            return {key for report in self.reports.values() for key in report.results}
        return ()

    @property
    def warnings(self) -> list[str]:
        """Return the warnings of the comparison, then those of all reports. A text that several
        reports share appears once, with their names, and not if the comparison has it too.
        """
        names: dict[str, list[str]] = {}
        for name, report in self.reports.items():
            partial = ["partial, not all items were evaluated."] if report.partial else []
            for text in [*([] if self.comparison else partial), *report.warnings]:
                names.setdefault(text, []).append(name)
        of_comparison = self._of_comparison
        return of_comparison + [
            f"{', '.join(models)}: {text}" for text, models in names.items()
            if text not in of_comparison
        ]  # fmt: skip

    @property
    def _of_comparison(self) -> list[str]:
        if self.comparison is not None:
            return self.comparison.sentences + [_UNMARKED] * self._other_items
        return [_OTHER_ITEMS] * self._other_items + [self.no_comparison] * bool(self.no_comparison)

    @property
    def _compared(self) -> Mapping[str, Report]:
        """Return the reports that are compared: all, or those that the comparison does not leave
        out."""
        names = self.reports if self.comparison is None else self.comparison.names
        return {name: report for name, report in self.reports.items() if name in names}

    @property
    def _other_items(self) -> bool:
        return len({report.item_names for report in self._compared.values()}) > 1
