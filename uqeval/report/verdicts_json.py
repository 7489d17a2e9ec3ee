"""Verdicts of a gate as JSON, with a checksum."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from uqeval.disk.files import json_text
from uqeval.disk.objects import as_given
from uqeval.gate.saved_verdicts import KEY, SCHEMA, checksum_of
from uqeval.report.verdicts import STATUSES

if TYPE_CHECKING:
    from uqeval.gate import Address, Judgement, NotEvaluated, Rule, Verdict


def to_json(judgement: Judgement, files: Mapping[str, Any]) -> str:
    """Return the verdicts as strict JSON with a checksum; `files`: records of the files, by key."""
    record = {
        "schema": SCHEMA,
        "passed": judgement.passed,
        "today": None if judgement.today is None else judgement.today.isoformat(),
        **files,
        "counts": {status: judgement.count(status) for status, _ in STATUSES}
        | {"not_evaluated": len(judgement.not_evaluated)},
        "verdicts": [_record(verdict) for verdict in judgement.verdicts],
        "not_evaluated": [_unjudged(lost) for lost in judgement.not_evaluated],
        "warnings": list(judgement.warnings),
    }
    record = json.loads(as_given(json.dumps(record, allow_nan=False)))
    return json_text(record | {KEY: checksum_of(record)})


def _unjudged(lost: NotEvaluated) -> dict[str, Any]:
    fields = {"limits": dict(lost.rule.limits.kinds_and_values()), "reason": lost.why}
    return _named_rule(lost.rule) | _address_fields(lost.address) | fields


def _named_rule(rule: Rule) -> dict[str, Any]:
    limits = rule.limits
    waive = None if limits.waive is None else limits.waive.record()
    named = {"id": limits.id, "why": limits.why, "waive": waive, "rule": str(rule.address)}
    return named | {"file": rule.file, "line": rule.line}


def _address_fields(address: Address) -> dict[str, Any]:
    return {"store": address.store, "address": str(address)}


def _record(verdict: Verdict) -> dict[str, Any]:
    fields = dataclasses.asdict(dataclasses.replace(verdict, rule=None, address=None))  # type: ignore[arg-type]
    del fields["rule"], fields["address"]
    if (interval := fields["interval"]) is not None:
        counted = interval["units"]
        fields["interval"] = interval | {"unit": counted["name"], "units": counted["defined"]}
    alone = dataclasses.replace(verdict.rule, limits=verdict.rule.limits.only(verdict.kind))
    return _named_rule(alone) | _address_fields(verdict.address) | fields
