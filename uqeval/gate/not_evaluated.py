"""What a gate does not judge: failed stores, whose rules never pass, and partial reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from uqeval.errors import StoreError
from uqeval.gate.addresses import Address
from uqeval.gate.rules import Rule
from uqeval.report.folder import Named


@dataclass(frozen=True)
class FailedStore:
    """Why a store has no scores, and which metrics were asked of it; None: it may be any."""

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
        asked = store.metrics is None or address.metric in store.metrics
        if asked and address.store in (None, name):
            yield NotEvaluated(rule, address.at(name), store.why)


def refuse_partial(reports: Sequence[Named]) -> None:
    """Raise `StoreError` for a report of which not all items were evaluated."""
    for named in reports:
        if named.report.partial:
            part = named.report.inputs.get("part")
            raise StoreError(
                f"{named.path}: is part {part['number']} of {part['of']}: not all items were "
                "evaluated. Join the parts with `uqeval merge`; a gate does not judge by one."
                if part else
                f"{named.path}: was merged of parts of which some are missing. Merge all of them; "
                "a gate does not judge by some."
                if named.report.inputs.get("missing_parts") else
                f"{named.path}: is partial (--limit): not all items were evaluated. "
                "Evaluate all of them; a gate does not judge by a part."
            )  # fmt: skip
