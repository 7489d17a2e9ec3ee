"""Scores of several models side by side, their differences, and the certainty of their ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval import glossary
from uqeval.compare.comparison import Choice, Comparison, Difference, Rank, Row
from uqeval.compare.holm import adjust
from uqeval.compare.models import Model, common_stores, report_of
from uqeval.compare.trainings import cell_of
from uqeval.errors import UsageError, cut, number_of, quoted
from uqeval.gate.baseline import other_setting, truth_of
from uqeval.records.addresses import Address
from uqeval.records.lookup import Absent, Found, addresses_in, find, suggestion
from uqeval.records.scalars import described

if TYPE_CHECKING:
    from uqeval.records.folder import Named
    from uqeval.statistics.paired_comparison import PairedComparison


def compare(models: Sequence[Model], choice: Choice) -> Comparison:
    """Hold the models against each other, store by store.

    Raises `UsageError` where they cannot be: no items in common, other settings of every
    requested score, a score that none has; `StoreError` for damaged states.
    """
    names = [model.name for model in models]
    if choice.baseline is not None and choice.baseline not in names:
        raise UsageError(
            f"--against {quoted(choice.baseline)} is none of the models: {cut(', '.join(names))}."
        )
    base = 0 if choice.baseline is None else names.index(choice.baseline)
    stores, warnings = common_stores(models)
    rows: dict[tuple[object, ...], Row] = {}
    missed = list(choice.metrics)
    for store in stores:
        one = _OneStore(store, models, base, choice)
        for row in one.rows():
            # Reports of several commands on the same data hold some scores each: once is enough.
            rows.setdefault((row.address.within, row.address.where, row.items, row.cells), row)
        warnings += one.warnings
        missed = [text for text in missed if text not in one.answered]
    if missed:
        raise UsageError(_missed(missed[0], models, warnings))
    if not rows:
        raise UsageError("; ".join([*warnings, "nothing is left to compare"]) + ".")
    adjusted, tests, of_parts = adjust(list(rows.values()))
    return Comparison(
        tuple(models), base, choice, tuple(adjusted), tuple(dict.fromkeys(warnings)), tests,
        of_parts,
    )  # fmt: skip


def _missed(text: str, models: Sequence[Model], warnings: Sequence[str]) -> str:
    """Return why a requested address is in no table."""
    address = Address.parse(text)
    for warning in warnings:
        if address.key in warning.partition(": left out")[0].split(", "):
            return f"--metric {cut(text)}: {warning}."
    reports = [own.report for m in models for t in m.trainings for own in t.reports.values()]
    near = suggestion(reports, address)
    hint = f"; the nearest is {near}" if near and near != text else ""
    return f"--metric {cut(text)}: no two models have it{hint}."


class _OneStore:
    """The models' reports of one store, `rows` of them, and `warnings`.

    `answered`: which of the requested addresses have a row.
    """

    def __init__(self, store: str, models: Sequence[Model], base: int, choice: Choice) -> None:
        self.store, self.models, self.base, self.choice = store, models, base, choice
        self.reports = [[report_of(own, store) for own in model.trainings] for model in models]
        self.warnings: list[str] = []
        self.answered: set[str] = set()
        self._check_truth()
        self.held = [[_names(one) for one in own] for own in self.reports]
        all_held = [names for own in self.held for names in own]
        shared = set.intersection(*map(set, all_held))
        self.alike = all(len(names) == len(shared) for names in all_held)
        # The same order whatever model comes first, so that the same items are drawn.
        self.names = min(tuple(n for n in names if n in shared) for names in all_held)
        self.stateless = [_stateless(own) for own in self.reports]
        self._check_items()

    def rows(self) -> list[Row]:
        """Return a row for each score that at least two models have, or that the only one has."""
        kept = [text for text in self._addresses() if self._refused.get(text.key) is None]
        found: dict[Address, list[list[Found | Absent]]] = {}
        for address in kept:
            own = [[find(one.report, address) for one in each] for each in self.reports]
            known = [c.address for each in own for c in each if isinstance(c, Found)]
            if sum(all(isinstance(c, Found) for c in each) for each in own) < min(
                len(self.models), 2
            ):
                continue
            place = dataclasses.replace(known[0], store=self.store or None)
            found[place] = own
            self.answered |= {
                text for text in self.choice.metrics
                if Address.parse(text) in (address, address.at(self.store))
            }  # fmt: skip
        drawn = self._drawn(list(found))
        if refused := self._refused:
            for reason in dict.fromkeys(refused.values()):
                keys = ", ".join(key for key, own in refused.items() if own == reason)
                self.warnings.append(f"{keys}: left out: {reason}")
        return [self._row(address, own, drawn) for address, own in found.items()]

    def _addresses(self) -> list[Address]:
        """Return what is compared, whichever model has it."""
        if self.choice.metrics:
            requested = [Address.parse(text) for text in self.choice.metrics]
            return [dataclasses.replace(own, store=None) for own in requested
                    if own.store in (None, self.store)]  # fmt: skip
        found: dict[Address, None] = {}
        for one in self._all:
            for key, record in one.report.results.items():
                for text in addresses_in(key, record):
                    address = Address.parse(text)
                    if self._wanted(address) and self._described(address).get("direction"):
                        found[address] = None
        order = list(dict.fromkeys(key for one in self._all for key in one.report.results))
        return sorted(found, key=lambda a: (order.index(a.key), *_place(a)))

    def _wanted(self, address: Address) -> bool:
        of_class = address.fields[0] == "per_class"
        if of_class and not self.choice.per_class:
            return False
        own = address.fields[2:] if of_class else address.fields
        first = glossary.class_headlines if of_class else glossary.headlines
        return self.choice.every or ".".join(own) in first(address.metric)

    def _described(self, address: Address) -> Mapping[str, object]:
        for one in self._all:
            if known := described(one.report.metrics, address.metric, address.fields):
                return known
        return {}

    @cached_property
    def _refused(self) -> dict[str, str]:
        """Return why results of a key cannot be compared, by key."""
        found: dict[str, str] = {}
        for key in dict.fromkeys(key for one in self._all for key in one.report.results):
            first, *others = [one for one in self._all if key in one.report.results]
            for other in others:
                if (differs := other_setting(first.report, other.report, key)) is not None:
                    name, mine, theirs = differs
                    found[key] = (
                        f"{cut(name)} is {quoted(mine)} in {first.path} and {quoted(theirs)} in "
                        f"{other.path}; "
                        "numbers of different settings cannot be compared, evaluate both alike"
                    )
                    break
        return found

    @property
    def _all(self) -> list[Named]:
        return [one for own in self.reports for one in own]

    def _row(
        self,
        address: Address,
        found: Sequence[Sequence[Found | Absent]],
        drawn: Mapping[object, tuple[PairedComparison, list[int]]],
    ) -> Row:
        together, drawn_models = drawn.get(address.where, (None, []))
        known = self._described(address)
        direction = known.get("direction")
        cells = []
        for m, own in enumerate(found):
            if self.alike or together is None:
                values = [None if isinstance(c, Absent) else c.value for c in own]
            else:
                values = together.each(drawn_models.index(m), address.within)
            cells.append(cell_of(own, values, self.choice.level))
        items = next(c.items for own in found for c in own if isinstance(c, Found))
        if not self.alike and together is not None:
            items = together.items
        row = Row(
            address,
            str(known.get("unit") or ""),
            str(direction) if direction else None,
            items,
            tuple(cells),
        )
        row = self._with_differences(row, together, drawn_models)
        complete = self.choice.level is not None and len(drawn_models) == len(self.models)
        return _with_ranks(row, together if complete else None)

    def _with_differences(
        self, row: Row, together: PairedComparison | None, drawn: list[int]
    ) -> Row:
        against = row.cells[self.base].value
        cells = []
        for m, cell in enumerate(row.cells):
            if m == self.base or cell.value is None or against is None:
                cells.append(cell)
                continue
            value = cell.value - against
            better = None
            if row.direction and value:
                better = (value > 0) == (row.direction == "higher")
            interval, test = None, None
            level = self.choice.level
            if together is not None and level is not None and m in drawn:
                interval, test = together.difference(
                    drawn.index(m), drawn.index(self.base), row.address.within, level
                )
            difference = Difference(value, better, level, interval)
            if test is not None:
                difference = dataclasses.replace(difference, p=test.p, p_least=test.least)
            cells.append(dataclasses.replace(cell, difference=difference))
        return dataclasses.replace(row, cells=tuple(cells))

    def _drawn(
        self, addresses: Sequence[Address]
    ) -> dict[object, tuple[PairedComparison, list[int]]]:
        """Return, by slice, the draws of the models that have states, and these models."""
        models = [m for m, why in enumerate(self.stateless) if not why]
        if not addresses or self.base not in models or len(models) < 2:
            return {}
        if self.choice.level is None and self.alike:
            return {}
        from uqeval.statistics.few_units import few_units
        from uqeval.statistics.paired_comparison import OpenedReport, paired_comparison

        opened = [
            [OpenedReport.of(one.path, one.report) for one in self.reports[m]] for m in models
        ]
        found: dict[object, tuple[PairedComparison, list[int]]] = {}
        for where in dict.fromkeys(address.where for address in addresses):
            texts = [address.within for address in addresses if address.where == where]
            names = self._slice(next(a for a in addresses if a.where == where))
            if not names:
                continue
            own = paired_comparison(opened, names, texts, self.choice.draws, self.choice.seed)
            found[where] = own, models
            for text in few_units(own.resampling):
                self._warn(text.removesuffix("."))
        return found

    def _slice(self, address: Address) -> tuple[str, ...]:
        """Return the shared items of an address's slice; all without one."""
        if not address.where:
            return self.names
        inside = set(self.names)
        for one in self._all:
            for key in address.slice_keys:
                if key in one.report.slices:
                    inside &= set(one.report.slices[key].get("names", ()))
        return tuple(name for name in self.names if name in inside)

    def _check_truth(self) -> None:
        truths = {truth_of(one.report): one for one in reversed(self._all)}
        if len(truths) > 1:
            first, second, *_ = reversed(truths.values())
            self._warn(
                f"{first.path} and {second.path} were evaluated against other labels (their "
                "fingerprints differ)"
            )
        for one in self._all:
            if one.report.partial:
                self._warn(f"{one.path}: partial, not all items were evaluated")

    def _check_items(self) -> None:
        why = next((own for own in self.stateless if own), "")
        if self.alike and why:
            if len(self.models) > 1 and self.choice.level is not None:
                self._warn(
                    f"no intervals: {why}. They are drawn from the states that `-o FILE` keeps "
                    "beside a report; evaluate again without --no-states"
                )
        elif not self.alike:
            counts = " and ".join(
                str(len(names)) for names in dict.fromkeys(n for own in self.held for n in own)
            )
            if not self.names:
                raise UsageError(
                    f"{self._place}the models share no items: their reports are of other data."
                )
            if why or len(self.models) < 2:
                raise UsageError(
                    f"{self._place}the reports share {number_of(len(self.names), 'item')} "
                    f"of {counts}; scores over these need states: "
                    f"{why or 'replicates have to be alike'}. Evaluate again on the same items."
                )
            self._warn(
                f"compared over the {number_of(len(self.names), 'item')} that all models have, "
                f"of {counts}"
            )

    @property
    def _place(self) -> str:
        return f"{self.store}: " if self.store else ""

    def _warn(self, text: str) -> None:
        self.warnings.append(self._place + text)


def _place(address: Address) -> tuple[bool, int]:
    """Return the sort key of a score: headlines first, classes last."""
    headlines = glossary.headlines(address.metric)
    field = ".".join(address.fields)
    place = headlines.index(field) if field in headlines else len(headlines)
    return address.fields[0] == "per_class", place


def _names(one: Named) -> tuple[str, ...]:
    return tuple(str(item.get("name")) for item in one.report.items)


def _stateless(reports: Sequence[Named]) -> str:
    """Return why a model has no states; empty where it has."""
    for one in reports:
        if one.report.states is None:
            return f"{one.path} has no states beside it"
        if not (one.path.parent / Path(one.report.states).name).is_file():
            return f"the states of {one.path} are gone"
    return ""


def _with_ranks(row: Row, together: PairedComparison | None) -> Row:
    """Return the row with its best cells marked, and with places and how sure they are."""
    values = [cell.value for cell in row.cells]
    known = [value for value in values if value is not None]
    if row.direction is None or len(known) < 2:
        return row
    sign = 1 if row.direction == "higher" else -1
    places = [None if v is None else 1 + sum(sign * o > sign * v for o in known) for v in values]
    shares: Sequence[tuple[float, float]] = []
    if together is not None and len(known) == len(values):
        shares = together.ranks(row.address.within, row.direction, [p or 0 for p in places])
    cells = []
    for m, (cell, place) in enumerate(zip(row.cells, places, strict=True)):
        rank = None if place is None else Rank(place, *(shares[m] if shares else (None, None)))
        best = place == 1 and len(set(known)) > 1
        cells.append(dataclasses.replace(cell, best=best, rank=rank))
    return dataclasses.replace(row, cells=tuple(cells))
