"""Rules that the gate cannot judge because a store failed, and the check for partial reports."""

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
    """A rule that was not evaluated: its address in the store, and the reason."""

    rule: Rule
    address: Address
    why: str


def not_evaluated(rule: Rule, failed_stores: Mapping[str, FailedStore]) -> Iterator[NotEvaluated]:
    """Yield a record for each failed store to which a rule applies."""
    address = rule.address
    for name, store in failed_stores.items():
        is_requested = store.metrics is None or address.metric in store.metrics
        if is_requested and address.store in (None, name):
            yield NotEvaluated(rule, address.with_store(name), store.why)


def refuse_partial(reports: Sequence[Named]) -> None:
    """Raise `StoreError` if not all items of a report were evaluated."""
    for named in reports:
        if named.report.partial:
            raise StoreError(f"{named.path}: {_why_partial(named.report)}")


def _why_partial(report: Report) -> str:
    """Return why a report is partial, and what to do."""
    if part := report.inputs.get("part"):
        return (
            f"is part {part['number']} of {part['of']}: not all items were evaluated. The gate "
            "needs all parts: join them with `uqeval merge`."
        )
    if report.inputs.get("missing_parts"):
        return (
            "was merged from parts, and some parts are missing. The gate needs all parts: merge "
            "them with `uqeval merge`."
        )
    return (
        "is partial (--limit): not all items were evaluated. The gate needs all items: evaluate "
        "without --limit."
    )
