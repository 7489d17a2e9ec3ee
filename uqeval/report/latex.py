"""Tables as LaTeX, with the package booktabs."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from uqeval.errors import printable
from uqeval.records.report import Report
from uqeval.report.tables.comparison import (
    differences,
    has_p_alone,
    notes_on_trainings,
    scores,
)
from uqeval.report.tables.layouts import Pivot, paper_heading, pivot
from uqeval.report.tables.of_report import tables_of
from uqeval.report.tables.table import Cell, Table, format_number

if TYPE_CHECKING:
    from uqeval.compare import Comparison

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
} | {c: f"\\{c}" for c in "&%$#_{}"}  # fmt: skip
#: Unicode signs that LaTeX's fonts for text lack, and their LaTeX code.
_SIGNS = {
    "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "≈": r"$\approx$", "≥": r"$\geq$",
    "≤": r"$\leq$", "†": r"\dag{}", "−": "$-$", "∞": r"$\infty$", "√": r"$\surd$",
    "α": r"$\alpha$", "β": r"$\beta$", "ε": r"$\varepsilon$", "λ": r"$\lambda$", "μ": r"$\mu$",
    "π": r"$\pi$", "ρ": r"$\rho$", "σ": r"$\sigma$", "τ": r"$\tau$", "φ": r"$\varphi$",
    "Σ": r"$\Sigma$",
}  # fmt: skip

#: The hyphen before a number, not that of a range (0-9) or an exponent.
_MINUS = re.compile(r"(?<![\w.)\]}-])-(?=\.?\d)")


def to_latex(comparison: Comparison, layout: str = "scores", with_differences: bool = False) -> str:
    """Return a tabular of scores: the best is bold; * marks models that differ from the baseline.

    `layout`: the rows of the table: "scores", "models" or "classes". `with_differences`: add a
    tabular of the differences from the baseline with their intervals.
    """
    lines = ["% uqeval compare; \\usepackage{booktabs}"]
    lines += [f"% warning: {printable(text)}" for text in comparison.sentences]
    lines += [f"% {text}" for text in _notes(comparison)]
    if layout == "scores":
        lines += table_lines(_with_paper_headings(scores(comparison), comparison))
    else:
        lines += _pivot_lines(pivot(comparison, layout))
    if with_differences:
        table = differences(comparison)
        lines += ["", *(f"% {printable(text)}" for text in (table.title, table.notes) if text)]
        lines += table_lines(_with_paper_headings(table, comparison))
    return "\n".join(lines) + "\n"


def _with_paper_headings(table: Table, comparison: Comparison) -> Table:
    """Return a table with the names of its scores as papers have them, without their heading."""
    rows = [
        replace(table_row, name=paper_heading(row.address, row.direction))
        for table_row, row in zip(table.rows, comparison.rows, strict=True)
    ]
    return replace(table, columns=["", *table.columns[1:]], rows=rows)


def report_to_latex(report: Report) -> str:
    """Return the tables of a report as tabulars, each with its title and note as comments."""
    lines = ["% uqeval; \\usepackage{booktabs}"]
    lines += ["% partial: not all items were evaluated."] * report.partial
    lines += [f"% warning: {printable(text)}" for text in report.warnings]
    for table in tables_of(report):
        notes = [text for text in (table.title, table.notes) if text]
        lines += ["", *(f"% {printable(text)}" for text in notes), *table_lines(table)]
    return "\n".join(lines) + "\n"


def table_lines(table: Table) -> list[str]:
    """Return the lines of a tabular."""
    letters = ["l" if i in table.left else "r" for i in range(len(table.columns))]
    rows = [_row([_text(row.name), *map(_cell, row.cells)]) for row in table.rows]
    return [
        f"\\begin{{tabular}}{{{''.join(letters)}}}", "\\toprule",
        _row(list(map(_text, table.columns))), "\\midrule", *rows, "\\bottomrule",
        "\\end{tabular}",
    ]  # fmt: skip


def _pivot_lines(pivot: Pivot) -> list[str]:
    """Return the lines of a tabular whose columns are grouped by models."""
    lines = table_lines(replace(pivot.table, columns=["", *pivot.heads]))
    groups = [(name, len(list(columns))) for name, columns in groupby(pivot.groups)]
    if not any(pivot.groups):
        return lines
    head = " & ".join(f"\\multicolumn{{{n}}}{{c}}{{{escaped(name)}}}" for name, n in groups)
    rules, end = [], 1
    for _, n in groups:
        rules.append(f"\\cmidrule(lr){{{end + 1}-{end + n}}}")
        end += n
    return [*lines[:2], f" & {head} \\\\", " ".join(rules), *lines[2:]]


def escaped(text: str) -> str:
    """Return text with LaTeX's special characters escaped."""
    return re.sub(r'[\\~^<>|"&%$#_{}]', lambda match: _SPECIAL[match[0]], printable(text))


def _text(text: str) -> str:
    return re.sub(f"[{''.join(_SIGNS)}]", lambda match: _SIGNS[match[0]], escaped(text))


def _row(cells: list[str]) -> str:
    """Return a row of a tabular. `[` and `*` at its begin would be arguments of the row before."""
    if cells[0].startswith(("[", "*")):
        cells = [f"{{{cells[0][0]}}}{cells[0][1:]}", *cells[1:]]
    return " & ".join(cells) + r" \\"


def _cell(cell: Cell) -> str:
    if cell.text == format_number(None):
        return "--"
    value, *plus_minus = (_number_text(part) for part in cell.text.split(" ± "))
    parts = [f"\\textbf{{{value}}}" if cell.best else value, *plus_minus]
    interval = f" {_number_text(cell.interval)}" if cell.interval else ""
    verdict = f" ({_number_text(cell.verdict)})" if cell.verdict else ""
    return " $\\pm$ ".join(parts) + ("$^{*}$" if cell.starred else "") + interval + verdict


def _number_text(text: str) -> str:
    """Return a text with numbers, whose hyphens are minus signs: `[-0.1, -1e-05]`."""
    return _MINUS.sub("$-$", _text(text))


def _notes(comparison: Comparison) -> list[str]:
    notes = []
    if any(c.difference and c.difference.interval for row in comparison.rows for c in row.cells):
        base = printable(comparison.names[comparison.baseline])
        level = comparison.choice.level
        note = (
            f"*: differs from {base} at level {level}: the interval of the difference does not "
            f"contain 0, and p is at most {1 - (level or 0):.3g}. p: p-value of swapping the "
            "models in single units, or, for models of several trainings, of Welch's t-test, "
            "adjusted for all comparisons (Holm)."
        )
        alone = " A score without an interval has no *." if has_p_alone(comparison) else ""
        notes.append(note + alone)
    notes += [printable(text) for text in notes_on_trainings(comparison)]
    return notes
