"""Why a comparison has no row, with an address that it can compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from uqeval.compare.models import Model
from uqeval.errors import cut, quoted
from uqeval.glossary import how_to_evaluate
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.report import Report
from uqeval.records.suggestions import NO_SLICES, suggestion


def no_row(text: str, models: Sequence[Model], left_out: Mapping[str, str]) -> str:
    """Return why a requested address has no row. `left_out`: warnings by key or address."""
    address = Address.parse(text)
    if warning := left_out.get(address.key) or left_out.get(address.within):
        return f"--metric {cut(text)}: {warning}."
    reports = _reports(models)
    keys = {key for report in reports for key in report.results}
    command = "" if address.key in keys else how_to_evaluate(address.key)
    evaluation = f"; evaluate it with `{command}`" if command else ""
    if command and address.metric not in map(family_of, keys):
        return f"--metric {cut(text)}: no report has {quoted(address.metric)}{evaluation}."
    if address.where and not any(report.slices for report in reports):
        return f"--metric {cut(text)}: {NO_SLICES}."
    nearest = suggestion(reports, address)
    hint = f"; the nearest is {nearest}" if nearest and nearest != text else evaluation
    return f"--metric {cut(text)}: no two models have it{hint}."


def no_score(models: Sequence[Model]) -> str:
    """Return that there is no score to compare, with an address of a value of a sweep."""
    reports = _reports(models)
    scores = [name for report in reports for name in report.results.get("sweep", ())]
    text = suggestion(reports, Address("sweep", (scores[0],))) if scores else None
    hint = (
        f". Name a value of the sweep, by its place from 0: --metric {quote(text)}" if text else ""
    )
    return f"there is no score to compare{hint}"


def _reports(models: Sequence[Model]) -> list[Report]:
    return [named.report for m in models for t in m.trainings for named in t.reports.values()]
