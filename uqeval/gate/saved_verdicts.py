"""Load verdicts from JSON, and check that they follow from their numbers: it may be edited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uqeval.disk.files import flaw_of, json_digest, read_json
from uqeval.disk.forms import formed
from uqeval.errors import StoreError, UsageError, cut, quoted
from uqeval.gate.rules import Limits, Rule
from uqeval.gate.verdict import Judgement, NotEvaluated, Verdict
from uqeval.gate.waivers import parse_day
from uqeval.records.addresses import Address

#: The key of a record that holds its checksum.
KEY = "checksum"
SCHEMA = "uqeval.verdicts/1"
#: The keys of a rule, other than its limits, that a verdict records.
_REQUIREMENT = ("id", "why", "waive")


@dataclass
class _Saved:
    """The parts of a file of verdicts that are read."""

    verdicts: list[dict[str, Any]]
    warnings: list[str]
    not_evaluated: list[dict[str, Any]] = field(default_factory=list)
    today: str | None = None


def load_verdicts(path: str | Path) -> Judgement:
    """Return the verdicts of a file that `uqeval gate -o` wrote. Raises `StoreError` for others."""
    try:
        record = read_json(path)
    except OSError as error:
        raise StoreError(
            f"{cut(path)}: {error.strerror}; expected verdicts of uqeval gate -o."
        ) from None
    except ValueError as error:
        raise StoreError(f"{cut(path)} is not JSON: {error}.") from None
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
        formed(_Saved, record)
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
            f"{cut(path)} is not a file of verdicts: {flaw_of(error)}; write one with uqeval gate "
            "-o."
        ) from None


def of_stores(judgement: Judgement, names: set[str]) -> Judgement:
    """Return only the verdicts on the stores `names`, and whether the gate of all stores passes."""
    chosen_verdicts = tuple(
        verdict for verdict in judgement.verdicts if verdict.address.store in names
    )
    unjudged = tuple(entry for entry in judgement.not_evaluated if entry.address.store in names)
    part = replace(judgement, verdicts=chosen_verdicts, not_evaluated=unjudged)
    return judgement if part == judgement else replace(part, whole_passed=judgement.released)


def _requirement(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a rule that are not null, also of its waiver."""
    given = {key: record[key] for key in _REQUIREMENT if record.get(key) is not None}
    if isinstance(waive := given.get("waive"), dict):
        given["waive"] = {key: value for key, value in waive.items() if value is not None}
    return given


def _not_evaluated(record: dict[str, Any]) -> NotEvaluated:
    limits = formed(Limits, {**record["limits"], **_requirement(record)})
    rule = Rule(Address.parse(record["rule"]), limits, record["file"], record["line"])
    return NotEvaluated(rule, Address.parse(record["address"]), str(record["reason"]))


def _verdict(record: dict[str, Any]) -> Verdict:
    fields = {key: value for key, value in record.items() if key not in _REQUIREMENT}
    limits = formed(Limits, {fields["kind"]: fields["limit"]} | _requirement(record))
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
    verdict: Verdict = formed(
        Verdict, fields | {"rule": rule, "address": Address.parse(fields["address"])}
    )
    return verdict


def contradiction(verdict: Verdict) -> str | None:
    """Return how a verdict contradicts its own value, interval and limit; None if it does not.

    Numbers may be on the wrong side of the limit by 1e-9, because they are rounded.
    """
    status = verdict.status
    if verdict.waiver is not None and status == "waived":
        if verdict.waiver.outcome != "waived":
            return f"it is waived, and its waiver is {verdict.waiver.outcome!r}"
        status = verdict.waiver.instead_of
    counts = "pass" if verdict.status in ("pass", "waived") else "fail"
    if verdict.status == "inconclusive":
        counts = verdict.counts_as  # the rule decides, and the file does not contain the rule
    if verdict.counts_as != counts:
        return f"it is {verdict.status!r} and counts as {verdict.counts_as!r}"
    measured = verdict.value if verdict.kind in ("min", "max") else verdict.change
    if measured is None or verdict.reason is not None:
        return None
    ends = (measured, measured)
    if verdict.interval is not None:
        ends = (verdict.interval.low, verdict.interval.high)
    margins = sorted(_margin(verdict, end) for end in ends)
    rounding = 1e-9 * max(1.0, abs(verdict.limit))
    wrong = {
        "pass": margins[0] < -rounding,
        "fail": margins[1] > rounding,
        "inconclusive": margins[0] > rounding or margins[1] < -rounding,
        "waived": False,
    }[status]
    if not wrong:
        return None
    numbers = f"the interval [{ends[0]:g}, {ends[1]:g}]" if verdict.interval else f"{measured:g}"
    return f"it is {status!r}, but {numbers} against {verdict.kind} {verdict.limit:g} is not"


def _margin(verdict: Verdict, measured: float) -> float:
    """Return the distance of a number to the limit; positive on the side that passes."""
    if verdict.kind == "min":
        return measured - verdict.limit
    if "drop" in verdict.kind:
        return verdict.limit + measured  # `change` and its interval are rises
    return verdict.limit - measured


def checksum_of(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a JSON record without its checksum; white space does not matter.

    It detects accidental edits, not forgery: a forger can also replace the checksum. A signature of
    the evidence prevents that.
    """
    content = {key: value for key, value in record.items() if key != KEY}
    return json_digest(content)
