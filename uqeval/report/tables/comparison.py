"""Tables of a comparison: scores side by side, differences, ranks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uqeval.errors import listed, number_of
from uqeval.records.scalars import with_arrow
from uqeval.report.findings.compared import too_few_units
from uqeval.report.markdown import cell as escaped
from uqeval.report.markdown import section_lines
from uqeval.report.tables.cells import without_interval
from uqeval.report.tables.table import MARK, Table, by_address, format_number, text_table
from uqeval.report.tables.table import Cell as TableCell
from uqeval.report.tables.table import Row as TableRow
from uqeval.report.verdicts import distinguishable, units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from uqeval.compare import Cell, Comparison, Row
    from uqeval.compare.comparison import Difference
    from uqeval.compare.models import Model
    from uqeval.gate import Interval


def tables_of(comparison: Comparison, first: Table | None = None) -> list[Table]:
    """Return the table of scores; for two models also the differences, for more also the ranks.

    `first`: the scores in another layout.
    """
    tables = [first or scores(comparison)]
    if len(comparison.models) > 1:
        tables.append(differences(comparison))
    if len(comparison.models) > 2:  # of two, the differences say which is better
        tables.append(_ranks(comparison))
    return [table for table in tables if table.rows]


def to_markdown(comparison: Comparison, first: Table | None = None) -> str:
    """Return findings, tables and warnings as GitHub-flavoured Markdown; `first` as in
    `tables_of`.
    """
    from uqeval.report.findings.compared import findings_of_comparison

    lines = [f"## uqeval compare: {escaped(', '.join(comparison.names))}", ""]
    for finding in findings_of_comparison(comparison):
        lines += [f"**{escaped(finding.title)}:** {escaped(finding.text)}", ""]
    for table in tables_of(comparison, first):
        lines += section_lines(table)
    lines += [f"- warning: {escaped(text)}" for text in comparison.sentences]
    return "\n".join(lines).rstrip() + "\n"


def heading(row: Row) -> str:
    """Return a score's address, with an arrow to better values."""
    return with_arrow(str(row.address), row.direction)


def score(cell: Cell) -> str:
    """Return a score as text; for several trainings, with ± t·s/√n and a mark if the scores are
    approximate."""
    text, reach = format_number(cell.value), reach_of(cell)
    rough = MARK if cell.over_trainings is not None and cell.over_trainings.approximate else ""
    return text if reach is None else f"{rough}{text} ± {format_number(reach)}"


def reach_of(cell: Cell) -> float | None:
    """Return half of the interval over trainings, else their standard deviation; None for a single
    training.
    """
    interval = cell.over_trainings
    return cell.std if interval is None else (interval.high - interval.low) / 2


def over_trainings(model: Model, level: float | None) -> str:
    """Return the meaning of ± for a model."""
    n = len(model.trainings)
    if n == 1:
        return f"{model.name}: n = 1 training, no interval over trainings (2 are needed)."
    if level is None:
        return f"{model.name}: mean ± sample standard deviation over n = {n} trainings."
    return (
        f"{model.name}: mean ± t·s/√n over n = {n} trainings (Student's t with {n - 1} "
        f"degree{'' if n == 2 else 's'} of freedom, level {level})."
    )


def difference(cell: Cell) -> TableCell:
    """Return the cell of a difference, with interval, p-value and verdict."""
    change = cell.difference
    if change is None:
        return TableCell("–")
    interval = ""
    if change.interval is not None:
        low, high = _signed(change.interval.low), _signed(change.interval.high)
        rough = MARK if change.interval.approximate else ""
        exact = "†" if change.interval.exact else ""
        interval = f"{rough}[{low}, {high}]{exact}"
    differs = change.verdict == "differs"
    word = "differs" if change.better is None else "better" if change.better else "worse"
    p = ""
    if change.p_adjusted is not None:
        p = f"p {distinguishable(change.p_adjusted, 1 - (change.level or 0), 3)}"
    return TableCell(
        _signed(change.value), change.value, interval=interval,
        verdict=f"{p} {word if differs else ''}".strip(), starred=differs,
    )  # fmt: skip


def differences(comparison: Comparison) -> Table:
    """Return the differences of every other model from the baseline."""
    base = comparison.baseline
    compared_models = [m for m in range(len(comparison.models)) if m != base]
    rows = [
        TableRow(heading(row), [difference(row.cells[m]) for m in compared_models])
        for row in comparison.rows
    ]
    choice = comparison.choice
    intervals = [
        c.difference.interval for row in comparison.rows for c in row.cells if c.difference
    ]
    note = ""
    if any(intervals):
        note = f"[…]: interval at level {choice.level}{_rest_on(intervals)}, not adjusted."
        if any(interval and interval.exact for interval in intervals):
            note += (
                " †: the models differ by the same in all units; exact bounds (Clopper-Pearson)."
            )
    changes = [
        (str(row.address), cell.difference)
        for row in comparison.rows for cell in row.cells if cell.difference
    ]  # fmt: skip
    texts = (
        note, _tests(comparison, compared_models), too_few_units(changes),
        _without_interval(changes),
    )  # fmt: skip
    note = " ".join(filter(None, texts))
    names = [comparison.names[m] for m in compared_models]
    title = f"Difference from {comparison.names[base]}"
    return Table(title, ["score", *names], rows, note, grouping=by_address)


def _tests(comparison: Comparison, compared_models: Sequence[int]) -> str:
    """Return the meaning of p-values and words, and which models have none."""
    several = [len(model.trainings) > 1 for model in comparison.models]
    base = several[comparison.baseline]
    if text := meaning_of_p(comparison):
        text += (
            f" better, worse: p is at most {1 - (comparison.choice.level or 0):.3g}, and the "
            "interval does not contain 0; no word: no difference seen."
        )
        if has_p_alone(comparison):
            text += " A score without an interval has no verdict, however small its p."
        text += "" if base else " Other trainings may differ more."
    untested = [comparison.names[m] for m in compared_models if several[m] != base]
    if untested and comparison.choice.level is not None:
        text += (
            f" {listed(untested, 3)}: one training against several has no p-value, so no word; "
            "give both models several trainings (--replicates)."
        )
    return text.strip()


def meaning_of_p(comparison: Comparison) -> str:
    """Return the test of the p-values, and for how many tests they are adjusted; empty if none."""
    if not (comparison.tests or comparison.tests_of_parts):
        return ""
    counts = _numbers_of_tests(comparison.tests, comparison.tests_of_parts)
    test = "Welch's t-test over trainings"
    if len(comparison.models[comparison.baseline].trainings) == 1:
        changes = (cell.difference for row in comparison.rows for cell in row.cells)
        names = dict.fromkeys(own.swapped.name for own in changes if own and own.swapped)
        units = " or ".join(f"{name} by {name}" for name in names)
        test = f"swapping the two models {units}".strip()
    return f"p: two-sided p-value of {test}, adjusted for {counts} (Holm)."


def has_p_alone(comparison: Comparison) -> bool:
    """Return whether a difference has a p-value without an interval."""
    changes = (cell.difference for row in comparison.rows for cell in row.cells)
    return any(own and own.p_adjusted is not None and not own.interval for own in changes)


def _numbers_of_tests(whole: int, parts: int) -> str:
    """Return the numbers of tests of the two families, as text."""
    of_parts = f"{number_of(parts, 'comparison')} of classes and slices"
    if not whole:
        return of_parts
    of_whole = number_of(whole, "comparison")
    return f"{of_whole} of whole sets, and separately for {of_parts}" if parts else of_whole


def _without_interval(changes: Sequence[tuple[str, Difference]]) -> str:
    """Return the reasons why differences have no interval, then why others have no p-value."""
    texts = (
        without_interval(
            ((address, own.reason) for address, own in changes if bool(own.interval) == has_one),
            "--format json", what,
        )
        for what, has_one in (("interval", False), ("p-value", True))
    )  # fmt: skip
    return " ".join(filter(None, texts))


def _rest_on(intervals: list[Interval | None]) -> str:
    """Return the numbers of units of the intervals as text."""
    counted = [interval.units for interval in intervals if interval and interval.units]
    fewer = any(count.defined not in (None, count.drawn) for count in counted)
    counted = sorted(counted, key=lambda count: count.drawn)
    texts = list(dict.fromkeys(units(replace(count, defined=count.drawn)) for count in counted))
    is_range = len({count.name for count in counted}) == 1 and not any(
        count.effective for count in counted
    )
    if len(texts) == 1 or is_range:
        if fewer:
            return f", from at most {texts[-1]}"
        first = f"{counted[0].drawn:,} to " if len(texts) > 1 else ""
        return f", from {first}{texts[-1]}"
    return f", from {' or '.join(texts[:3])}{' or other numbers' if len(texts) > 3 else ''}" + (
        ", fewer for some scores" if fewer else ""
    )


def scores(comparison: Comparison) -> Table:
    """Return the scores of all models."""
    stars = any(cell.best for row in comparison.rows for cell in row.cells)
    rows = [
        TableRow(heading(row), [score_cell(cell) for cell in row.cells]) for row in comparison.rows
    ]
    items = sorted({row.items for row in comparison.rows})
    counted = number_of(items[0], "item") if len(items) == 1 else f"{items[0]} to {items[-1]} items"
    notes = [f"{counted}."]
    if stars:
        notes.append("★: the best of a row.")
    notes += notes_on_trainings(comparison)
    columns = ["score", *comparison.names]
    return Table("Scores", columns, rows, " ".join(notes), grouping=by_address)


def score_cell(cell: Cell) -> TableCell:
    """Return the cell of a score, marked if it is the best or differs from the baseline."""
    differs = cell.difference is not None and cell.difference.verdict == "differs"
    text = score(cell)
    return TableCell(text, cell.value, cell.reason or "", best=cell.best, starred=differs)


def notes_on_trainings(comparison: Comparison) -> list[str]:
    """Return the meaning of ± for each model; empty if each has one training."""
    if all(len(model.trainings) == 1 for model in comparison.models):
        return []
    return [over_trainings(model, comparison.choice.level) for model in comparison.models]


def _ranks(comparison: Comparison) -> Table:
    def place(cell: Cell) -> str:
        if cell.rank is None:
            return "–"
        if cell.rank.best_share is None or cell.rank.kept_share is None:
            return str(cell.rank.place)
        return (
            f"{cell.rank.place} ({_percent(cell.rank.best_share)} | "
            f"{_percent(cell.rank.kept_share)})"
        )

    rows = [[heading(row), *map(place, row.cells)] for row in comparison.rows]
    ranked = [
        row
        for row, comparison_row in zip(rows, comparison.rows, strict=True)
        if any(cell.rank for cell in comparison_row.cells)
    ]
    shares = any(c.rank and c.rank.best_share is not None for r in comparison.rows for c in r.cells)
    note = (
        "rank (share of the draws in which no other model is better | in which the rank is the "
        "same)."
    )
    columns = ["score", *comparison.names]
    return text_table("Ranks", columns, ranked, note if shares else "", grouping=by_address)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{format_number(value)}"


def _percent(share: float) -> str:
    if share in (0, 1):
        return f"{share:.0%}"
    return f"{min(max(share, 0.01), 0.99):.0%}"
