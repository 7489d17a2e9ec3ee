"""Comparisons with a row a model or a row a class, as papers print them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from uqeval import UsageError
from uqeval.compare import Cell, Choice, Comparison, Model, Row
from uqeval.compare.models import Training
from uqeval.records.addresses import Address
from uqeval.report.comparison_files import to_csv
from uqeval.report.latex import to_latex
from uqeval.report.tables.comparison import to_markdown
from uqeval.report.tables.layouts import pivot
from uqeval.report.terminal import fitted


def comparison(*scores: tuple[str, tuple[float | None, ...]]) -> Comparison:
    models = tuple(Model(n, (Training(Path(n), {}),)) for n in ("apcnet", "deep_lab"))
    rows = tuple(
        Row(
            Address.parse(text), "1", "higher", 12,
            tuple(
                Cell(v, "no pixel" if v is None else None, best=v == max(w or 0 for w in values))
                for v in values
            ),
        )
        for text, values in scores
    )  # fmt: skip
    return Comparison(models, 0, Choice(level=None), rows, ())


#: Ma et al. 2024, Table 2.
OF_CLASSES = (
    ("pavpu.pavpu", (0.678, 0.686)), ("pavpu.surplus", (0.282, 0.264)),
    ("pavpu.per_class.11.pavpu", (0.807, 0.785)), ("pavpu.per_class.mixed.pavpu", (0.847, 0.855)),
    ("pavpu.per_class.11.surplus", (0.418, 0.414)),
    ("pavpu.per_class.mixed.surplus", (-0.004, None)),
    ("segmentation.miou", (0.742, 0.766)),
)  # fmt: skip


def test_classes() -> None:
    found = comparison(*OF_CLASSES)
    table = pivot(found, "classes").table
    assert table.columns == [
        "class", "apcnet PAvPU ↑", "apcnet Surplus ↑", "deep_lab PAvPU ↑", "deep_lab Surplus ↑",
    ]  # fmt: skip
    assert [(row.name, [cell.text for cell in row.cells]) for row in table.rows] == [
        ("11", ["0.8070", "0.4180", "0.7850", "0.4140"]),
        ("mixed", ["0.8470", "-0.0040", "0.8550", "–"]),
        ("whole set", ["0.6780", "0.2820", "0.6860", "0.2640"]),
    ]
    assert [cell.best for cell in table.rows[0].cells] == [True, True, False, False]
    lines = [line for line in to_latex(found, "classes").splitlines() if line[0] != "%"]
    assert lines[2:6] == [
        r" & \multicolumn{2}{c}{apcnet} & \multicolumn{2}{c}{deep\_lab} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r" & PAvPU $\uparrow$ & Surplus $\uparrow$ & PAvPU $\uparrow$ & Surplus $\uparrow$ \\",
        r"\midrule",
    ]
    assert lines[7] == r"mixed & 0.8470 & $-$0.0040 & \textbf{0.8550} & -- \\"
    assert "| 11 | 0.8070 ★ | 0.4180 ★ |" in to_markdown(found, table)
    assert to_csv(found, "classes").splitlines()[2] == "mixed,0.847,-0.004,0.855,,"


def test_models() -> None:
    found = comparison(*OF_CLASSES[:2], OF_CLASSES[-1])
    table = pivot(found, "models").table
    assert table.columns == ["model", "PAvPU ↑", "Surplus ↑", "mIoU ↑"]
    (narrow,) = fitted(table, 40)
    assert narrow.columns == ["", "apcnet", "deep_lab"] and narrow.texts[0][0] == "PAvPU ↑"
    assert narrow.note == "★: the best value of a score."
    assert to_csv(found, "models").splitlines()[1] == "apcnet,0.678,0.282,0.742,"
    lines = [line for line in to_latex(found, "models").splitlines() if line[0] != "%"]
    assert lines[2] == r" & PAvPU $\uparrow$ & Surplus $\uparrow$ & mIoU $\uparrow$ \\"
    assert lines[5] == r"deep\_lab & \textbf{0.6860} & 0.2640 & \textbf{0.7660} \\"
    for per_class, advice in ((False, "Add --per-class, or name"), (True, "Name")):
        own = replace(found, choice=replace(found.choice, per_class=per_class))
        with pytest.raises(UsageError, match=rf"no score of a class is compared\. {advice} one"):
            pivot(own, "classes")


def test_a_class_called_whole_set_is_a_class() -> None:
    name = "pavpu.per_class.whole set.pavpu"
    table = pivot(comparison((name, (0.1, 0.2)), ("pavpu.pavpu", (0.3, 0.4))), "classes").table
    assert [(row.name, [cell.text for cell in row.cells]) for row in table.rows] == [
        ("whole set", ["0.1000", "0.2000"]), ("whole set", ["0.3000", "0.4000"]),
    ]  # fmt: skip
