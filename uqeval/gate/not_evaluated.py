"""Cases that a gate cannot judge: failed stores, whose rules never pass, and partial reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uqeval.errors import StoreError
from uqeval.gate.rules import Rule
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.report import Report


@dataclass(frozen=True)
class FailedStore:
    """Why a store has no scores, and which metrics the run requested; None: unknown."""

    why: str
    metrics: frozenset[str] | None = None


@dataclass(frozen=True)
class NotEvaluated:
    """A rule of a failed store, or one that cannot be judged: the address there, and why."""

    rule: Rule
    address: Address
    why: str


def not_evaluated(rule: Rule, failed: Mapping[str, FailedStore]) -> Iterator[NotEvaluated]:
    """Yield what a rule demands of the stores that failed."""
    address = rule.address
    for name, store in failed.items():
        is_requested = store.metrics is None or address.metric in store.metrics
        if is_requested and address.store in (None, name):
            yield NotEvaluated(rule, address.at(name), store.why)


def refuse_partial(reports: Sequence[Named]) -> None:
    """Raise `StoreError` for a report of which not all items were evaluated."""
    for named in reports:
        if named.report.partial:
            raise StoreError(f"{named.path}: {_why_partial(named.report)}")


def _why_partial(report: Report) -> str:
    """Return why a report is partial, and what to do."""
    if part := report.inputs.get("part"):
        return (
            f"is part {part['number']} of {part['of']}: not all items were evaluated. Join the "
            "parts with `uqeval merge`; a gate does not judge by one."
        )
    if report.inputs.get("missing_parts"):
        return (
            "was merged of parts of which some are missing. Merge all of them; a gate does not "
            "judge by some."
        )
    return (
        "is partial (--limit): not all items were evaluated. Evaluate all of them; a gate does not "
        "judge by a part."
    )
