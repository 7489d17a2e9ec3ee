"""A comparison as a LaTeX table for a paper; needs the package booktabs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from uqeval.errors import printable
from uqeval.report.comparison_tables import notes_on_trainings, reach_of
from uqeval.report.glossary import label
from uqeval.report.table import format_number

if TYPE_CHECKING:
    from uqeval.compare import Cell, Comparison, Row

_ARROWS = {"higher": r" $\uparrow$", "lower": r" $\downarrow$"}
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
} | {c: f"\\{c}" for c in "&%$#_{}"}  # fmt: skip


def to_latex(comparison: Comparison) -> str:
    """A tabular of scores and models: the best bold, * where it differs from the baseline."""
    lines = ["% uqeval compare; \\usepackage{booktabs}"]
    lines += [f"% warning: {printable(text)}" for text in comparison.warnings]
    lines += [f"% {text}" for text in _notes(comparison)]
    names = " & ".join(escaped(name) for name in comparison.names)
    lines += [f"\\begin{{tabular}}{{l{'r' * len(comparison.models)}}}", "\\toprule",
              f" & {names} \\\\", "\\midrule"]  # fmt: skip
    for row in comparison.rows:
        cells = " & ".join(_cell(cell) for cell in row.cells)
        lines.append(f"{_heading(row)} & {cells} \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX prints as it is."""
    return re.sub(r'[\\~^<>|"&%$#_{}]', lambda found: _SPECIAL[found[0]], printable(text))


def _notes(comparison: Comparison) -> list[str]:
    found = []
    if any(c.difference and c.difference.interval for row in comparison.rows for c in row.cells):
        base = printable(comparison.names[comparison.baseline])
        found.append(
            f"*: differs from {base} at level {comparison.choice.level}: by the p-value of "
            "swapping the models, adjusted for all comparisons (Holm); of several trainings, "
            "because the interval of the difference leaves 0 out."
        )
    found += [printable(text) for text in notes_on_trainings(comparison)]
    return found


def _heading(row: Row) -> str:
    address = row.address
    parts = [address.store] if address.store else []
    parts.append(label(address.metric, ".".join(f for f in address.fields if f != "per_class")))
    where = (f"{column}={value}" for column, value in address.where)
    extra = [part for part in (address.variant, address.region, *where) if part]
    text = " ".join([*parts, *([f"({', '.join(extra)})"] if extra else [])])
    return escaped(text) + _ARROWS.get(row.direction or "", "")


def _cell(cell: Cell) -> str:
    if cell.value is None:
        return "--"
    text = _number(cell.value)
    text = f"\\textbf{{{text}}}" if cell.best else text
    if (reach := reach_of(cell)) is not None:
        text += f" $\\pm$ {_number(reach)}"
    if cell.difference is not None and cell.difference.verdict == "differs":
        text += "$^{*}$"
    return text


def _number(value: float) -> str:
    text = format_number(value)
    return f"$-${text[1:]}" if text.startswith("-") else text
