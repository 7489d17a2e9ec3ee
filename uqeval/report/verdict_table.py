"""Verdicts of a gate as a table and as Markdown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from uqeval.gate import NotEvaluated
from uqeval.report.markdown import cell, table_lines
from uqeval.report.tables.table import Table, by_columns, format_number, text_table
from uqeval.report.verdicts import (
    change_text,
    demand,
    demands,
    distinguishable,
    findings,
    line,
    order_of,
    outcome,
    summary,
    units,
)

if TYPE_CHECKING:
    from uqeval.gate import Address, Judgement, Verdict


def table(judgement: Judgement) -> Table:
    """Return one row for each verdict: waived rules first, then those not evaluated or failed."""
    with_level = len(_levels(judgement)) > 1
    rows = [_cells(entry, with_level) for entry in _in_order(judgement)]
    heading = _range_heading(judgement)
    # The verdict is among the first columns, so that a narrow terminal shows it with the value.
    columns = ["id", "value of", "verdict", "demand", "is", heading, "units"]
    used = [
        i for i, column in enumerate(columns)
        if any(row[i] not in ("", "–") for row in rows) or column == "is"
    ]  # fmt: skip
    texts = [[row[i] for i in used] for row in rows]
    left = frozenset(k for k, i in enumerate(used) if columns[i] not in ("is", heading))
    names = 2 if 0 in used else 1
    return text_table(
        "Gate", [columns[i] for i in used], texts, left=left, grouping=by_columns(names)
    )


def _in_order(judgement: Judgement) -> list[Verdict | NotEvaluated]:
    """Return waived verdicts, then rules that were not evaluated, then the other verdicts."""
    verdicts = sorted(judgement.verdicts, key=order_of)
    waived = sum(verdict.status == "waived" for verdict in verdicts)
    return [*verdicts[:waived], *judgement.not_evaluated, *verdicts[waived:]]


def _range_heading(judgement: Judgement) -> str:
    """Return the heading of what the gate compares besides values: intervals, changes or both.

    It has the level of the intervals if they have one level.
    """
    changes = any(verdict.change is not None for verdict in judgement.verdicts)
    levels = _levels(judgement)
    interval = f"{100 * min(levels):g} % interval" if len(levels) == 1 else "interval"
    return f"change, {interval}" if changes and levels else "change" if changes else interval


def _levels(judgement: Judgement) -> set[float]:
    return {v.interval.level for v in judgement.verdicts if v.interval is not None}


def _cells(verdict: Verdict | NotEvaluated, with_level: bool) -> list[str]:
    """Return the row of a verdict, with its id; `with_level`: with the level of its interval."""
    id_and_name = [verdict.rule.limits.id or "", str(verdict.address)]
    if isinstance(verdict, NotEvaluated):
        return [*id_and_name, "not evaluated", demands(verdict), "–", "–", "–"]
    value = "undefined" if verdict.value is None else distinguishable(verdict.value, verdict.limit)
    return [
        *id_and_name,
        outcome(verdict),
        demand(verdict),
        value,
        _range(verdict, with_level),
        units(verdict.units),
    ]


def addresses(judgement: Judgement) -> list[Address | None]:
    """Return the address of each row of `table`; None if the rule was not evaluated."""
    entries = _in_order(judgement)
    return [None if isinstance(own, NotEvaluated) else own.address for own in entries]


def _range(verdict: Verdict, with_level: bool) -> str:
    """Return the change of the value, if the rule is on the change, and the interval of either."""
    texts = [] if verdict.change is None else [change_text(verdict, verdict.change)]
    if (interval := verdict.interval) is not None:
        rough = "≈ " if interval.approximate else ""
        write = format_number if verdict.change is None else partial(change_text, verdict)
        texts.append(f"{rough}[{write(interval.low)}, {write(interval.high)}]")
        if with_level:
            texts.append(f"at {100 * interval.level:g} %")
    return " ".join(texts) or "–"


def to_markdown(judgement: Judgement) -> str:
    """Return outcome, table and findings as GitHub-flavoured Markdown, for a job summary."""
    verdicts = table(judgement)
    lines = [f"## uqeval {cell(summary(judgement))}", "", *table_lines(verdicts), ""]
    lines += [f"<sub>{cell(verdicts.notes)}</sub>", ""] if verdicts.notes else []
    lines += [f"- **{cell(name)}** {cell(line(facts))}" for name, facts in findings(judgement)]
    lines += [f"- warning: {cell(text)}" for text in judgement.warnings]
    return "\n".join(lines).rstrip() + "\n"
