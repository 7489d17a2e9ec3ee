"""Load verdicts from JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from uqeval.disk.files import read_json
from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.gate.checksum import KEY, checksum_of
from uqeval.gate.contradictions import contradiction
from uqeval.gate.not_evaluated import NotEvaluated
from uqeval.gate.rules import Limits, Rule
from uqeval.gate.verdict import Judgement, Verdict
from uqeval.gate.waivers import parse_day
from uqeval.records.addresses import Address

SCHEMA = "uqeval.verdicts/1"
_VERDICT = TypeAdapter(Verdict)


def load_verdicts(path: str | Path) -> Judgement:
    """Return the verdicts of a file that `uqeval gate -o` wrote. Raises `StoreError` for others."""
    try:
        record = read_json(path)
    except OSError as error:
        raise StoreError(
            f"{cut(path)}: {error.strerror}; expected verdicts of uqeval gate -o."
        ) from None
    except ValueError as error:
        raise StoreError(f"{cut(path)}: is not JSON: {error}.") from None
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != SCHEMA:
        raise StoreError(
            f"{cut(path)}: schema {quoted(schema)}; expected {SCHEMA!r}, of uqeval gate -o."
        )
    return judgement_of(record, path)


def judgement_of(record: dict[str, Any], path: str | Path) -> Judgement:
    """Return the verdicts of a record.

    Raises `StoreError` if it is not a record of verdicts, or contradicts itself or its checksum.
    Older files have no checksum.
    """
    try:
        verdicts = tuple(_verdict(entry) for entry in record["verdicts"])
        for entry in verdicts:
            if (conflict := contradiction(entry)) is not None:
                raise StoreError(
                    f"{cut(path)}: the verdict on {cut(entry.address)} contradicts itself: "
                    f"{conflict}. The file was edited; judge again with uqeval gate -o."
                )
        unjudged = tuple(_not_evaluated(entry) for entry in record.get("not_evaluated", ()))
        day = record.get("today")
        today = None if day is None else parse_day(day)
        judgement = Judgement(verdicts, tuple(map(str, record["warnings"])), unjudged, today)
        if record.get("passed", judgement.passed) != judgement.passed:
            raise StoreError(
                f"{cut(path)}: `passed` is {quoted(record['passed'])}, but the verdicts give "
                f"{judgement.passed}. The file was edited; judge again with uqeval gate -o."
            )
        if KEY in record and record[KEY] != (actual_sum := checksum_of(record)):
            raise StoreError(
                f"{cut(path)}: `{KEY}` is {quoted(record[KEY])}, but the content gives "
                f"{actual_sum!r}. The file was edited; judge again with uqeval gate -o."
            )
        return judgement
    except (KeyError, TypeError, AttributeError, ValueError, UsageError) as error:
        raise StoreError(
            f"{cut(path)}: is not a file of verdicts: {cut(error)}; write one with uqeval gate -o."
        ) from None


def of_stores(judgement: Judgement, names: set[str]) -> Judgement:
    """Return only the verdicts on the stores `names`."""
    chosen_verdicts = tuple(
        verdict for verdict in judgement.verdicts if verdict.address.store in names
    )
    unjudged = tuple(entry for entry in judgement.not_evaluated if entry.address.store in names)
    return replace(judgement, verdicts=chosen_verdicts, not_evaluated=unjudged)


def _not_evaluated(record: dict[str, Any]) -> NotEvaluated:
    requirement: dict[str, Any] = {key: record.get(key) for key in ("id", "why", "waive")}
    limits = Limits(**record["limits"], **requirement)
    rule = Rule(Address.parse(record["rule"]), limits, record["file"], record["line"])
    return NotEvaluated(rule, Address.parse(record["address"]), str(record["reason"]))


def _verdict(record: dict[str, Any]) -> Verdict:
    fields = dict(record)
    requirement: dict[str, Any] = {key: fields.pop(key, None) for key in ("id", "why", "waive")}
    limits = Limits(**{fields["kind"]: fields["limit"]}, **requirement)
    rule = Rule(Address.parse(fields.pop("rule")), limits, fields.pop("file"), fields.pop("line"))
    del fields["store"]
    if isinstance(interval := fields.get("interval"), dict):
        # The verdict has the units of its interval. Older files have only their number.
        count = interval.get("units")
        units = fields.get("units") or {
            "name": interval.get("unit"),
            "drawn": count,
            "defined": count,
        }
        fields["interval"] = {k: v for k, v in interval.items() if k != "unit"} | {"units": units}
    return _VERDICT.validate_python(
        fields | {"rule": rule, "address": Address.parse(fields["address"])}
    )
