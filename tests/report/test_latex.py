"""Comparisons as LaTeX, with names that contain LaTeX commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_report import report

from uqeval.compare import Cell, Choice, Comparison, Difference, Model, Row
from uqeval.compare.models import Training
from uqeval.gate import Address, Interval
from uqeval.report.latex import escaped, report_to_latex, table_lines, to_latex
from uqeval.report.tables.comparison import difference, differences
from uqeval.report.tables.table import Cell as TableCell
from uqeval.report.tables.table import Row as TableRow
from uqeval.report.tables.table import Table


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("50% of R&D_x #1 {a} $", r"50\% of R\&D\_x \#1 \{a\} \$"),
        ("a\\b~c^d", r"a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d"),
        ("\\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("a|b<c>\"d\"", r"a\textbar{}b\textless{}c\textgreater{}\textquotedbl{}d\textquotedbl{}"),
        ("line\nbreak", r"line\textbackslash{}nbreak"),
        ("Größe", "Größe"),
    ],
)  # fmt: skip
def test_escapes(text: str, printed: str) -> None:
    assert escaped(text) == printed


def test_table() -> None:
    models = tuple(
        Model(name, (Training(Path(name), {}),) * n) for name, n in (("mc_1", 1), ("50%\n", 3))
    )
    cells = (
        Cell(0.25),
        Cell(
            0.5,
            None,
            (0.4, 0.5, 0.6),
            0.1,
            True,
            Difference(0.25, True, 0.9, Interval(0.9, 0.1, 0.4), 0.01, 0.02),
        ),
    )
    rows = (
        Row(Address("pavpu", ("surplus",), "window=7"), "1", "higher", 12, cells),
        Row(
            Address("segmentation", ("per_class", "x&y", "iou")),
            "",
            None,
            12,
            (Cell(-0.5), Cell(None, "no")),
        ),
    )
    comparison = Comparison(models, 0, Choice(level=0.9), rows, ("odd\n\\x",))
    lines = to_latex(comparison).splitlines()
    assert lines[0].startswith("%")
    assert [line for line in lines if not line.startswith("%")] == [
        r"\begin{tabular}{lrr}", r"\toprule", r" & mc\_1 & 50\%\textbackslash{}n \\", r"\midrule",
        r"Surplus (window=7) $\uparrow$ & 0.2500 & \textbf{0.5000} $\pm$ 0.1000$^{*}$ \\",
        r"x\&y, IoU & $-$0.5000 & -- \\", r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    assert r"% warning: odd\n\x." in lines
    assert "differs from mc_1" in "\n".join(lines)
    assert "over n = 3 trainings" in "\n".join(lines)
    note = next(line for line in lines if line.startswith("% *: "))
    assert (
        "at level 0.9: the interval of the difference does not contain 0, and p is at most 0.1"
        in (note)
    )
    assert "of Welch's t-test, adjusted for all comparisons (Holm)." in note
    with_differences = to_latex(comparison, with_differences=True).splitlines()
    assert with_differences[: len(lines)] == lines
    second = [line for line in with_differences[len(lines) :] if not line.startswith("%")]
    assert second[1:5] == [
        r"\begin{tabular}{lr}", r"\toprule", r" & 50\%\textbackslash{}n \\", r"\midrule",
    ]  # fmt: skip
    assert second[5].startswith(r"Surplus (window=7) $\uparrow$ & +0.2500")
    assert "[+0.1000, +0.4000]" in second[5] and "(p 0.02" in second[5]


@pytest.mark.parametrize("with_interval", [True, False])
def test_a_small_p_without_an_interval_is_explained(with_interval: bool) -> None:
    """Such as that of an FPR95 from few items."""
    models = tuple(Model(name, (Training(Path(name), {}),)) for name in ("a", "b"))
    found = Interval(0.95, 0.1, 0.4)
    changes = (
        Difference(0.1, True, 0.95, found, 0.01, 0.02),
        Difference(0.1, True, 0.95, found if with_interval else None, 0.017, 0.034),
    )
    rows = tuple(
        Row(Address("failure", (field,)), "", "lower", 12, (Cell(0.5), Cell(0.4, difference=own)))
        for field, own in zip(("auroc", "fpr95"), changes, strict=True)
    )
    comparison = Comparison(models, 0, Choice(), rows, (), tests=2)
    tex = to_latex(comparison)
    assert tex.count("$^{*}$") == 1 + with_interval
    assert ("A score without an interval has no *." in tex) == (not with_interval)
    note = differences(comparison).note
    assert ("A score without an interval has no verdict" in note) == (not with_interval)


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.02, "p 0.020"), (0.05, "p 0.050"), (0.0503, "p 0.0503"), (0.049996, "p 0.050")],
)
def test_a_p_value_shows_on_which_side_of_the_level_it_is(p: float, text: str) -> None:
    found = Interval(0.95, 0.1, 0.4)
    cell = difference(Cell(0.5, difference=Difference(0.25, True, 0.95, found, p, p)))
    assert cell.verdict == (f"{text} better" if p <= 0.05 else text)


def test_a_report() -> None:
    """Every table of the report, with undefined values and intervals."""
    text = report_to_latex(report())
    assert text.startswith("% uqeval; \\usepackage{booktabs}\n")
    assert text.count("\\begin{tabular}") == text.count("\\end{tabular}") == 4
    lines = text.splitlines()
    assert "segmentation & 0.8750 & -- & 0.5000 & 12,345 \\\\" in lines
    assert lines[lines.index("% Segmentation") + 2].startswith("\\begin{tabular}{lrrr")
    cell = TableCell("0.5", 0.5, "", "[≈ 0.4, 0.6]")
    with_interval = Table("t", ["λ", "a"], [TableRow("≥ 1", [cell])])
    assert table_lines(with_interval)[2:5] == [
        r"$\lambda$ & a \\", r"\midrule", r"$\geq$ 1 & 0.5 [$\approx$ 0.4, 0.6] \\",
    ]  # fmt: skip


def test_signs_of_cells_and_the_begin_of_rows() -> None:
    """Cells have the signs of headings; a row must not begin with an argument of `\\\\`."""
    rows = [
        TableRow("[void]", [TableCell("RMSE ↓", None, "", "")]),
        TableRow("*", [TableCell("ρ", None, "", "")]),
        TableRow("x", [TableCell("[0.1, 0.2]", None, "", "")]),
        TableRow("y-1", [TableCell("-0.1", interval="[-0.2, -1e-05]", verdict="0-9")]),
    ]
    assert table_lines(Table("t", ["[0]", "a − τ"], rows))[2:8] == [
        r"{[}0] & a $-$ $\tau$ \\", r"\midrule", r"{[}void] & RMSE $\downarrow$ \\",
        r"{*} & $\rho$ \\", r"x & [0.1, 0.2] \\",
        r"y-1 & $-$0.1 [$-$0.2, $-$1e-05] (0-9) \\",
    ]  # fmt: skip
