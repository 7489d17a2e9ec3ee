"""README.md of the evidence, for safety engineers and reviewers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from uqeval.errors import is_number
from uqeval.glossary import headlines, label
from uqeval.keys import family_of
from uqeval.records.addresses import Address
from uqeval.records.intervals import interval_record, units_of
from uqeval.records.report import Report
from uqeval.records.void_ids import LABELS, void_ids
from uqeval.report.markdown import cell
from uqeval.report.tables.settings import samples
from uqeval.report.tables.table import format_number
from uqeval.report.verdicts import distinguishable, is_relative
from uqeval.usecases.evidence.collecting import Evidence
from uqeval.usecases.evidence.statement import (
    name_of,
    outcome_of,
    result_of,
    sorted_tests,
    stores_of,
    title_of,
    waivers_of,
)
from uqeval.version import VERSION

STATEMENT = "statement.intoto.json"
_RESULTS = {
    "PASSED": "all tests passed",
    "WARNED": "no test failed; some passed with a warning",
    "FAILED": "some tests failed",
}
_WORDS = {"passed": "passed", "warned": "passed with a warning", "failed": "failed"}


_SIGNING = f"""\
## Signing

`{STATEMENT}` names every other file here by its SHA-256, the states, and the \
fingerprints of the stores. Whoever is responsible signs that one file:

```sh
cosign sign-blob --bundle {STATEMENT}.sigstore.json {STATEMENT}
```

A reviewer checks the signature, then the digests:

```sh
cosign verify-blob --bundle {STATEMENT}.sigstore.json --certificate-identity NAME \
--certificate-oidc-issuer ISSUER {STATEMENT}
sha256sum *
```"""


def readme(evidence: Evidence, files: Mapping[str, str], created: str) -> bytes:
    """Return the README; `files`: descriptions of the other files; `created`: the time in UTC."""
    tests = sorted_tests(evidence)
    result = result_of(tests)
    lines = [
        "# Evidence of an evaluation of predictive uncertainty",
        "",
        f"Result: **{result}** ({_RESULTS[result]}). Made on {created} by uqeval {VERSION}.",
        "",
        f"{len(tests['passed'])} tests passed, {len(tests['warned'])} passed with a warning, "
        f"{len(tests['failed'])} failed.",
        "",
        "## What was evaluated, on what data",
        "",
    ]
    for name, report in evidence.reports.items():
        lines += _data(name, report)
    lines += _verdicts(evidence)
    for name, report in evidence.reports.items():
        lines += _scores(name, report)
    lines += _assurance(evidence)
    lines += _limits(evidence)
    lines += ["## Files", "", "| file | is |", "|---|---|"]
    lines += [f"| {cell(name)} | {cell(description)} |" for name, description in files.items()]
    lines += ["", _SIGNING]
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")


def _data(name: str, report: Report) -> Iterator[str]:
    inputs = report.inputs
    yield f"### {cell(name)}"
    yield ""
    finished = report.timing.get("finished", "at an unknown time")
    yield f"{len(report.items)} items, evaluated {finished} by uqeval {report.uqeval_version}."
    classes = inputs.get("classes")
    if classes:
        yield f"{', '.join(filter(None, (f'{classes} classes', samples(report))))}."
    voids = [void_ids(inputs, settings) for settings in ({}, *report.settings.values())]
    for name, void in dict.fromkeys(pair for ids in voids for pair in ids.items()):
        noun = "Label" if name == LABELS else "Predicted id"
        yield f"{noun} {void} is void: its pixels are not counted."
    yield ""
    yield "| data | path | fingerprint |"
    yield "|---|---|---|"
    for role, store in stores_of(inputs):
        fingerprint = store.get("fingerprint") or "unknown"
        yield f"| {role} | {cell(str(store.get('path')))} | `{fingerprint}` |"
    yield ""
    first, last = (str(report.items[i]["name"]) for i in (0, -1))
    yield f"Items: {cell(first)} to {cell(last)}; all names are in the report."
    yield ""


def _order(verdict: Mapping[str, Any]) -> tuple[bool, int]:
    """Return the sort key of a verdict: waived ones first, then failed ones."""
    order = ("failed", "warned", "passed")
    return verdict.get("status") != "waived", order.index(outcome_of(verdict))


def _waivers(evidence: Evidence) -> Iterator[str]:
    """Yield who has waived which rules, until when and why."""
    waived = waivers_of(evidence)
    if not waived:
        return
    yield "### Waived rules"
    yield ""
    yield f"Waivers were checked for {(evidence.verdicts or {}).get('today') or 'an unknown day'}."
    yield ""
    yield "| requirement | value | waived by | until | for values | why |"
    yield "|---|---|---|---|---|---|"
    for verdict in waived:
        bounds = [f"at least {verdict['at_least']}"] if verdict.get("at_least") is not None else []
        bounds += [f"at most {verdict['at_most']}"] if verdict.get("at_most") is not None else []
        value = verdict.get("value")
        value_text = "undefined" if value is None else _number(value, verdict.get("limit"))
        by, until, why = (verdict.get(key, "not given") for key in ("by", "until", "why"))
        row = (verdict["test"], value_text, by, until, " and ".join(bounds) or "all", why)
        yield f"| {' | '.join(cell(str(text)) for text in row)} |"
    yield ""


def _verdicts(evidence: Evidence) -> Iterator[str]:
    yield "## Verdicts"
    yield ""
    if evidence.verdicts is None:
        yield "No verdicts were given: the scores are not checked against any requirement."
        yield ""
        return
    yield "| requirement | value | interval | units | verdict |"
    yield "|---|---|---|---|---|"
    for verdict in sorted(evidence.verdicts["verdicts"], key=_order):
        interval = verdict.get("interval") or {}
        value = verdict.get("value")
        value_text = "undefined" if value is None else _number(value, verdict.get("limit"))
        status = f"{verdict.get('status')} ({_WORDS[outcome_of(verdict)]})"
        units = units_of(verdict) or units_of(interval) or "–"
        text = _interval(interval, in_percent=is_relative(verdict["kind"]))
        row = (title_of(verdict), value_text, text, units, status)
        yield f"| {' | '.join(cell(str(text)) for text in row)} |"
    not_evaluated = evidence.verdicts.get("not_evaluated") or []
    for lost in not_evaluated:
        yield f"| {cell(name_of(lost))} | – | – | – | not evaluated |"
    yield ""
    facts = [(title_of(verdict), verdict) for verdict in evidence.verdicts["verdicts"]]
    facts += [(name_of(lost), lost) for lost in not_evaluated]
    for title, record in facts:
        # Who signs must see the reservations of a pass, too.
        for fact in (record.get("why"), record.get("reason"), *(record.get("notes") or ())):
            if fact:
                yield f"- {cell(title)}: {cell(str(fact))}"
    yield ""
    yield from _waivers(evidence)


def _scores(name: str, report: Report) -> Iterator[str]:
    """Yield the headline scores of a report with unit, interval and meaning."""
    yield f"## Scores of {cell(name)}"
    yield ""
    yield "| score | value | unit | better | interval | from | meaning |"
    yield "|---|---|---|---|---|---|---|"
    for key, record in report.results.items():
        family = family_of(key)
        for field in headlines(key):
            if field not in record:
                continue
            metric = report.metrics.get(f"{family}.{field}", {})
            interval = interval_record(report.intervals, key, [field]) or {}
            address = Address.of_key(key, (field,)).within
            value = record[field]
            value_text = (
                record.get(f"{field}_reason", "undefined") if value is None else _number(value)
            )
            row = (
                f"{address} ({label(family, field)})", value_text, metric.get("unit", ""),
                metric.get("direction") or "–", _interval(interval), units_of(interval) or "–",
                metric.get("meaning") or metric.get("reference", ""),
            )  # fmt: skip
            yield f"| {' | '.join(cell(str(text)) for text in row)} |"
    yield ""
    definitions_by_key = {
        (key, settings.get("definition", "paper"))
        for key, settings in report.settings.items()
        if isinstance(settings, dict) and key in report.results
    }
    definitions = "; ".join(
        f"{key}: {definition}" for key, definition in sorted(definitions_by_key)
    )
    yield (
        f"Definitions: {cell(definitions)}. The report holds every setting and the reference of "
        "each."
    )
    yield ""


def _number(value: Any, limit: Any = None) -> str:
    """Return a value as text, with enough digits to show on which side of a limit it is."""
    return distinguishable(value, limit, 6) if is_number(limit) else format_number(value, 6)


def _interval(interval: Mapping[str, Any], in_percent: bool = False) -> str:
    if not interval:
        return "none"
    low, high = interval.get("low"), interval.get("high")
    if low is None and high is None:
        return str(interval.get("reason") or interval.get("low_reason") or "undefined")
    ends = [
        "–" if end is None else f"{_number(100 * end)} %" if in_percent else _number(end)
        for end in (low, high)
    ]
    method = f", {interval['method']}" if interval.get("method") else ""
    rough = ", approximate" if interval.get("approximate") else ""
    return f"{ends[0]} to {ends[1]} at level {interval.get('level')}{method}{rough}"


def _assurance(evidence: Evidence) -> Iterator[str]:
    """Yield how far the tool itself was checked."""
    selftest = evidence.selftest
    checks = selftest.get("checks") or []
    failed = [check for check in checks if not check.get("passed")]
    yield "## Confidence in the tool"
    yield ""
    yield (
        f"Self-test on this installation, {selftest.get('finished')}: {selftest.get('result')}, "
        f"{len(checks)} checks, {len(failed)} failed (`selftest.json`)."
    )
    yield ""
    for name in evidence.reports:
        record = evidence.verifications.get(name)
        if record is None:
            yield f"- {cell(name)}: not verified; see Limits."
            continue
        yield f"- {cell(name)}: verification {record.get('result')} (`verification-{name}.json`)."
        for statement in (*record.get("verified", ()), *record.get("problems", ())):
            yield f"  - {cell(str(statement))}"
    yield ""


def _limits(evidence: Evidence) -> Iterator[str]:
    yield "## Limits"
    yield ""
    yield "- The numbers hold for these items, not for data of another kind."
    yield "- Intervals cover the choice of items, not the variance of training the model again."
    yield (
        "- A fingerprint is not a hash of all bytes. Of Zarr it is a hash of metadata and of each "
        "chunk's key, size and checksum; of HDF5, videos, frames and flow of name, size and time "
        "of change; of other files of their content (large .npy: of 64 blocks)."
    )
    for statement in evidence.statements:
        yield f"- {cell(statement)}"
    for name, report in evidence.reports.items():
        for warning in report.warnings:
            yield f"- {cell(name)}: {cell(warning)}"
    for name, record in evidence.verifications.items():
        for statement in record.get("not_verified", ()):
            yield f"- {cell(name)}, not verified: {cell(str(statement))}"
    yield ""
