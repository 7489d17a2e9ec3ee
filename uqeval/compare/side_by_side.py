"""Scores of several models side by side, their differences, and the certainty of their ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from uqeval.compare.common_items import (
    CommonItems,
    common_in_slice,
    common_items,
    in_words,
    refuse_other_items,
)
from uqeval.compare.comparison import Cell, Choice, Comparison, Row
from uqeval.compare.differences import with_differences
from uqeval.compare.few_units import warnings_of_units
from uqeval.compare.holm import adjust
from uqeval.compare.models import Model, called_alike, common_stores, report_of, stateless
from uqeval.compare.no_row import no_row, no_score
from uqeval.compare.other_settings import OtherSettings
from uqeval.compare.ranks import with_ranks
from uqeval.compare.related import related
from uqeval.compare.same_data import differences_of_runs, is_same_run, of_other_pixels
from uqeval.compare.selection import (
    addresses_to_compare,
    cell_of,
    description,
    inside_range,
    is_from_states,
    with_mark,
)
from uqeval.errors import UsageError, all_listed, listed, quoted
from uqeval.gate.other_versions import other_versions
from uqeval.glossary import metric_of
from uqeval.records.addresses import Address
from uqeval.records.lookup import NoScore, Score, find

if TYPE_CHECKING:
    from uqeval.records.folder import Named
    from uqeval.statistics.paired_comparison import PairedComparison


#: Why scores of several trainings are not computed from states.
_OF_REPLICATES = "replicates must have the same items"


def compare(models: Sequence[Model], choice: Choice) -> Comparison:
    """Compare the models, store by store.

    Raises `UsageError` if they have no common items, if a requested score has different settings,
    or if no model has it. Raises `StoreError` for damaged states.
    """
    names = [model.name for model in models]
    if choice.baseline is not None and choice.baseline not in names:
        raise UsageError(
            f"--against {quoted(choice.baseline)} is not a model; the models are "
            f"{all_listed(names)}."
        )
    stores, warnings = common_stores(models)
    reports = [report_of(t, own) for own in stores for model in models for t in model.trainings]
    if text := other_versions(reports):
        warnings.append(text)
    models, unrelated = related(called_alike(models, stores), stores, choice.baseline)
    warnings += unrelated
    names = [model.name for model in models]
    base = 0 if choice.baseline is None else names.index(choice.baseline)
    rows: list[Row] = []
    equal: dict[tuple[object, ...], list[_OneStore]] = {}
    missed, incomparable = list(choice.metrics), set[str]()
    left_out: dict[str, str] = {}
    for store in stores:
        comparison = _OneStore(store, models, base, choice)
        for row in comparison.rows():
            # A folder may have several reports of one store with the same scores: keep one row.
            cells = (row.address.within, row.address.where, row.items, row.cells)
            earlier = equal.setdefault(cells, [])
            if not any(comparison.repeats(other, row.address.key) for other in earlier):
                rows.append(row)
                earlier.append(comparison)
        warnings += comparison.warnings
        incomparable |= comparison.incomparable
        left_out = comparison.left_out | left_out
        missed = [text for text in missed if text not in comparison.answered]
    if missed:
        raise UsageError(no_row(missed[0], models, left_out))
    if not rows:
        raise UsageError("; ".join([*warnings, no_score(models)]) + ".")
    adjusted, tests, of_parts = adjust(rows)
    return Comparison(
        tuple(models), base, choice, tuple(adjusted), tuple(dict.fromkeys(warnings)), tests,
        of_parts, frozenset(incomparable),
    )  # fmt: skip


class _OneStore:
    """Comparison of the models' reports of one store: its rows and warnings.

    `answered`: the requested addresses that have a row. `left_out`: the warnings about results and
    scores of other settings, by key or address.
    """

    def __init__(self, store: str, models: Sequence[Model], base: int, choice: Choice) -> None:
        self.store, self.models, self.base, self.choice = store, models, base, choice
        self.reports = [[report_of(t, store) for t in model.trainings] for model in models]
        self.warnings: list[str] = []
        self.left_out: dict[str, str] = {}
        self.answered: set[str] = set()
        self._other_pixels: dict[str, Sequence[str | None]] = {}
        for text in differences_of_runs(self.reports):
            self._warn(text)
        self.common = common_items(self._all)
        self._slices: dict[object, CommonItems] = {}
        self._settings = OtherSettings(self._all)
        self.stateless = [stateless(training) for training in self.reports]
        self._check_items()

    def rows(self) -> list[Row]:
        """Return a row for each score that at least two models have (or the only model)."""
        selected = addresses_to_compare(self.choice, self.store, self._all)
        refused = dict(self._settings.of_results)
        addresses = [text for text in selected if text.key not in refused]
        lookups: dict[Address, list[list[Score | NoScore]]] = {}
        for address in addresses:
            by_model = [
                [find(named.report, address) for named in of_model] for of_model in self.reports
            ]
            located = [c.address for of_model in by_model for c in of_model if isinstance(c, Score)]
            if sum(all(isinstance(c, Score) for c in of_model) for of_model in by_model) < min(
                len(self.models), 2
            ):
                continue
            if (reason := self._settings.of_score(located[0])) is not None:
                refused[located[0].within] = reason
                continue
            first = dataclasses.replace(located[0], store=self.store or None)
            lookups[first] = by_model
            self.answered |= {
                text for text in self.choice.metrics
                if Address.parse(text) in (address, address.with_store(self.store))
            }  # fmt: skip
        if not self.choice.metrics:
            known = {
                Address.parse(text).key for text in refused if text not in self._settings.of_results
            }
            self._warn_of_others(
                {text.key for text in addresses} - {a.key for a in lookups} - known
            )
        draws = self._draws(list(lookups))
        self._warn_of_slices(list(lookups), draws)
        for reason, keys in _by_value(refused).items():
            warning = f"{', '.join(keys)}: left out: {reason}"
            self.warnings.append(warning)
            self.left_out |= dict.fromkeys(keys, warning)
        self._warn_of_pixels({address.key: None for address in lookups})
        rows = [self._row(address, by_model, draws) for address, by_model in lookups.items()]
        if self.choice.level is not None:
            for where, (paired, _) in draws.items():
                of_slice = [row for row in rows if row.address.where == where]
                for text in warnings_of_units(paired, of_slice):
                    self._warn(text.removesuffix("."))
        return rows

    def repeats(self, other: _OneStore, key: str) -> bool:
        """Return whether a result that nobody requested is of the same run in another store."""
        requested = (Address.parse(text) for text in self.choice.metrics)
        return (self.store, key) not in {(a.store, a.key) for a in requested} and all(
            is_same_run(now, before, key) for now, before in zip(self._all, other._all, strict=True)
        )

    def _warn_of_others(self, keys: Collection[str]) -> None:
        """Warn about results that fewer than two models have."""
        keys_of: dict[str, list[str]] = {}
        for key in dict.fromkeys(key for named in self._all for key in named.report.results):
            if key in keys:
                names = [
                    model.name for model, of_model in zip(self.models, self.reports, strict=True)
                    if all(key in named.report.results for named in of_model)
                ]  # fmt: skip
                owner = f"only {quoted(names[0])} has" if names else "none of the models has"
                keys_of.setdefault(owner, []).append(key)
        for owner, alone in keys_of.items():
            them = "it" if len(alone) == 1 else "them"
            throughout = "" if owner.startswith("only") else " in all its trainings"
            self.warnings.append(f"{listed(alone)}: left out: {owner} {them}{throughout}")

    def _warn_of_pixels(self, keys: Iterable[str]) -> None:
        """Warn about results that models have of other pixels or labels."""
        reasons = {key: reason for key in keys for reason in self._of_other_pixels(key) if reason}
        for reason, of_reason in _by_value(reasons).items():
            self._warn(
                f"{listed(of_reason)}: {reason}. So there is no interval, no p-value and no best "
                "model: evaluate both models against the same files"
            )

    def _of_other_pixels(self, key: str) -> Sequence[str | None]:
        """Return for each model why its scores are of other pixels than those of the reference
        model; None if they are of the same."""
        if key not in self._other_pixels:
            reasons = of_other_pixels(self.reports, self.base, key, self.common.names)
            self._other_pixels[key] = reasons
        return self._other_pixels[key]

    @property
    def incomparable(self) -> set[str]:
        """Return the keys of results, and the addresses of single scores, that the reports have of
        other items, pixels or settings."""
        keys = {key for named in self._all for key in named.report.results}
        if not self.common.same:
            return keys
        refused = {*self._settings.of_results, *self._settings.of_scores()}
        return refused | {key for key in keys if any(self._of_other_pixels(key))}

    @property
    def _all(self) -> list[Named]:
        return [named for of_model in self.reports for named in of_model]

    def _row(
        self,
        address: Address,
        lookups: Sequence[Sequence[Score | NoScore]],
        draws: Mapping[object, tuple[PairedComparison, list[int]]],
    ) -> Row:
        paired, drawn_models = draws.get(address.where, (None, []))
        record = description(self._all, address)
        direction = record.get("direction")
        common = self._common(address)
        cells = [
            inside_range(
                self._cell(m, of_model, common, address, paired, drawn_models), record.get("range")
            )
            for m, of_model in enumerate(lookups)
        ]
        from_states = not common.same or is_from_states(self._all, address)
        if paired is not None and from_states:
            for k, m in enumerate(drawn_models):
                if paired.is_approximate(k, address.within):
                    cells[m] = with_mark(cells[m])
        items = next(c.items for of_model in lookups for c in of_model if isinstance(c, Score))
        items = items if common.same else len(common.names)
        metric = metric_of(address.metric, address.fields[-1])
        if metric and (reason := metric.no_better(c.value for c in cells)):
            direction = None
            self._warn(f"{address.within}: no value counts as better: {reason}")
        unit, better = str(record.get("unit") or ""), str(direction) if direction else None
        row = Row(address, unit, better, items, tuple(cells))
        reasons = self._of_other_pixels(address.key)
        row = with_differences(
            row, self.base, reasons, self.choice.level, paired, drawn_models,
            from_states=from_states,
        )  # fmt: skip
        if any(reasons):
            return row
        complete = self.choice.level is not None and len(drawn_models) == len(self.models)
        return with_ranks(row, paired if complete else None)

    def _cell(
        self,
        m: int,
        lookups: Sequence[Score | NoScore],
        common: CommonItems,
        address: Address,
        paired: PairedComparison | None,
        drawn_models: list[int],
    ) -> Cell:
        """Return the score of a model over the common items, from states if reports have others."""
        values = [None if isinstance(c, NoScore) else c.value for c in lookups]
        if common.same or any(isinstance(c, NoScore) for c in lookups):
            return cell_of(lookups, values, self.choice.level)
        drawn = [] if paired is None else drawn_models
        if (reason := self._without_score(m, common, drawn)) is not None:
            return Cell(None, reason)
        assert paired is not None
        if (reason := paired.not_in_states(drawn.index(m), address.within)) is not None:
            return Cell(None, reason)
        values = paired.each(drawn.index(m), address.within)
        return cell_of(lookups, values, self.choice.level)

    def _without_score(self, m: int, common: CommonItems, drawn: Collection[int]) -> str | None:
        """Return why a model has no score of the common items; None if it has one, as the models
        that are `drawn` have."""
        if not common.names:
            return "the models have no common items there"
        if m in drawn:
            return None
        why = self.stateless[m] or self.stateless[self.base] or "no other model has states"
        why = _OF_REPLICATES if len(self.models) < 2 else why
        return f"scores of the common items need states: {why}"

    def _draws(
        self, addresses: Sequence[Address]
    ) -> dict[object, tuple[PairedComparison, list[int]]]:
        """Return for each slice the draws of the models that have states, and their indices."""
        models = [m for m, reason in enumerate(self.stateless) if not reason]
        parts: dict[object, list[Address]] = {}
        for address in addresses:
            common = self._common(address)
            if common.names and not (self.choice.level is None and common.same):
                parts.setdefault(address.where, []).append(address)
        if not parts or self.base not in models or len(models) < 2:
            return {}
        from uqeval.statistics.paired_comparison import OpenedReport, paired_comparison

        reports = [
            [OpenedReport.of(named.path, named.report) for named in self.reports[m]] for m in models
        ]
        draws: dict[object, tuple[PairedComparison, list[int]]] = {}
        for conditions, of_part in parts.items():
            names, texts = self._common(of_part[0]).names, [a.within for a in of_part]
            paired = paired_comparison(reports, names, texts, self.choice.draws, self.choice.seed)
            draws[conditions] = paired, models
        return draws

    def _common(self, address: Address) -> CommonItems:
        """Return the common items in the slice of an address; all without a slice."""
        if not address.where:
            return self.common
        if address.where not in self._slices:
            self._slices[address.where] = common_in_slice(self.common, self._all, address)
        return self._slices[address.where]

    def _warn_of_slices(
        self,
        addresses: Sequence[Address],
        draws: Mapping[object, tuple[PairedComparison, list[int]]],
    ) -> None:
        """Warn about slices that have other items in some of the reports."""
        for address in {address.where: address for address in addresses if address.where}.values():
            if (common := self._common(address)).same:
                continue
            drawn = draws[address.where][1] if address.where in draws else ()
            reasons = [self._without_score(m, common, drawn) for m in range(len(self.models))]
            reason = next(filter(None, reasons), None) if common.names else None
            self._warn(
                f"{in_words(address)}: {common}" + (f". No score: {reason}" if reason else "")
            )

    def _check_items(self) -> None:
        reason = next((state_reason for state_reason in self.stateless if state_reason), "")
        if self.common.same and reason:
            if len(self.models) > 1 and self.choice.level is not None:
                if all(list(named.report.results) == ["sweep"] for named in self._all):
                    reason = "a sweep saves no states"
                self._warn(f"no intervals: {reason}")
        elif not self.common.same:
            if len(self.models) < 2:
                reason = _OF_REPLICATES
            refuse_other_items(self._all, self.common, reason, self._place)
            self._warn(str(self.common))

    @property
    def _place(self) -> str:
        return f"{self.store}: " if self.store else ""

    def _warn(self, text: str) -> None:
        self.warnings.append(self._place + text)


def _by_value(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the keys of each reason."""
    keys: dict[str, list[str]] = {}
    for key, reason in reasons.items():
        keys.setdefault(reason, []).append(key)
    return keys
