"""The gallery of a comparison: items with the pictures of every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from uqeval.records.report import Report
from uqeval.report.page.gallery import Gallery, Picture
from uqeval.report.page.item_table import ranking_of
from uqeval.report.tables.cells import cell
from uqeval.report.tables.items import Column, columns_of

#: Pictures that all models share; they are shown once.
_SHARED = ("image", "label", "target", "frame t−1", "frame t")


class SideBySide:
    """Pictures of the items that all reports have, by their index in the first report.

    Pictures of a model form a group with its name.
    """

    def __init__(self, reports: Mapping[str, Report], galleries: Mapping[str, Gallery]) -> None:
        self._galleries = galleries
        self._places = {
            name: {str(item["name"]): i for i, item in enumerate(report.items)}
            for name, report in reports.items()
        }
        self._reports = reports
        self.column = _common_column(reports)

    @property
    def note(self) -> str:
        """Return the notes of the models."""
        return " ".join(
            f"{name}: {gallery.note}" for name, gallery in self._galleries.items() if gallery.note
        )

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return pairs of a CSS colour and its meaning."""
        return list(
            dict.fromkeys(pair for gallery in self._galleries.values() for pair in gallery.legend)
        )

    def order(self) -> list[int]:
        """Return indices of items in the first report, largest difference between models first."""
        first = next(iter(self._places.values()))
        common = [
            (name, place)
            for name, place in first.items()
            if all(name in places for places in self._places.values())
        ]
        return [
            place
            for name, place in sorted(common, key=lambda named_place: -self._spread(named_place[0]))
        ]

    def scores(self, place: int) -> list[tuple[str, str]]:
        """Return the score of each model, by its name."""
        if self.column is None:
            return []
        return [(name, cell(self._record(name, place), self.column.name).text)
                for name in self._reports]  # fmt: skip

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of all models. Raises `UqevalError`."""
        name = self._name(item)
        result: list[Picture] = []
        shared: set[str] = set()
        for model, gallery in self._galleries.items():
            for picture in gallery.pictures(self._places[model][name]):
                kind = picture.title.split(",")[0]
                if kind not in _SHARED:
                    group = ", ".join(
                        dict.fromkeys(word for word in (model, picture.group) if word)
                    )
                    result.append(replace(picture, group=group))
                elif kind not in shared:
                    shared.add(kind)
                    result.insert(len(shared) - 1, picture)
        return result

    def _name(self, place: int) -> str:
        return str(next(iter(self._reports.values())).items[place]["name"])

    def _record(self, model: str, place: int) -> dict[str, object]:
        assert self.column is not None
        item = self._reports[model].items[self._places[model][self._name(place)]]
        record = item.get(self.column.key)
        return record if isinstance(record, dict) else {}

    def _spread(self, name: str) -> float:
        """Return the difference of the greatest score of the models and the least."""
        if self.column is None:
            return 0.0
        place = next(iter(self._places.values()))[name]
        scores = [self._record(model, place).get(self.column.name) for model in self._reports]
        values = [value for value in scores if isinstance(value, int | float)]
        return max(values) - min(values) if len(values) == len(scores) else 0.0


def _common_column(reports: Mapping[str, Report]) -> Column | None:
    """Return the column that ranks the items of all reports; None if they have none in common."""
    first, *further = (columns_of(report) for report in reports.values())
    known = [{(column.key, column.name) for column in columns} for columns in further]
    return ranking_of(
        [column for column in first if all((column.key, column.name) in names for names in known)]
    )
