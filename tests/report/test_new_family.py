"""A family that only `uqeval.metrics` knows has its tables, page, CSV and LaTeX."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_report import report

from uqeval.compare import Choice, compare, load_models
from uqeval.glossary import class_field, class_headlines
from uqeval.metrics import (
    FAMILIES,
    ClassBars,
    Column,
    Display,
    Family,
    Metric,
    Panel,
    RowTable,
    ScoreTable,
)
from uqeval.metrics._evaluation import Evaluation
from uqeval.records.report import Report
from uqeval.report.comparison_files import to_csv as comparison_csv
from uqeval.report.csv import to_csv
from uqeval.report.latex import to_latex
from uqeval.report.markdown import to_markdown
from uqeval.report.page.html import to_html
from uqeval.report.terminal import show

LUCK = Metric(
    "toy", "luck", "fraction", "higher", (0.0, 1.0), "A & B 2026", "no pixel", lambda: None,
    label="good luck", column="luck", headline=1, meaning="Share of lucky pixels.",
    advice="Try again.", interval="share",
)  # fmt: skip
DECLARED = Display(
    tables=(
        ScoreTable("Luck of all", ("luck", Column("edge.*", "edge {} %")), "1 is best."),
        RowTable("Luck by hour", "hours", ("luck",), corner="hour", row=lambda row: row["hour"]),
    ),
    bars=ClassBars("Luck", (Panel("luck", "good luck"),)),
)


def toy(display: Display) -> Family:
    return Family("toy", (LUCK,), lambda options, info: {}, Evaluation, None,
                  label="Toy of luck", display=display)  # fmt: skip


def toy_report(luck: float | None = 0.75) -> Report:
    record: dict[str, Any] = {
        "luck": luck, "luck_reason": "no pixel", "edge": {"5": 0.5, "10": 0.25},
        "hours": [{"hour": "noon", "luck": 0.125}, {"hour": "night", "luck": None}],
        "per_class": [{"class": 0, "name": "road", "luck": 0.625, "pixels": 10}],
    }  # fmt: skip
    items = [{"name": name, "toy": {"luck": value}} for name, value in (("a", 0.5), ("b", 1.0))]
    return report(results={"toy": record}, items=items, metrics={"toy.luck": LUCK.record()})


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "toy", toy(DECLARED))


def printed(own: Report) -> str:
    file = io.StringIO()
    show(own, Console(file=file, width=120))
    return file.getvalue()


def test_terminal_and_markdown() -> None:
    text = printed(toy_report())
    for word in ("Luck of all", "edge 5 %", "0.7500", "Luck by hour (toy)", "noon", "1 is best."):
        assert word in text
    lines = to_markdown(toy_report()).splitlines()
    assert "|  | luck | edge 5 % | edge 10 % |" in lines
    assert "| toy | 0.7500 | 0.5000 | 0.2500 |" in lines
    assert "| night | – |" in lines


def test_a_family_without_tables_has_those_of_its_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "toy", toy(Display()))
    text = printed(toy_report())
    assert "Toy of luck" in text and "0.7500" in text
    assert "By class (toy)" in text and "0.6250" in text


def test_page() -> None:
    page = to_html({"toy": toy_report()})
    for word in ("<h2 id=\"toy-title\">Toy of luck</h2>", "Share of lucky pixels.", "Try again.",
                 "good luck", "0.7500", 'id="figure-toy-classes"'):  # fmt: skip
        assert word in page
    assert "Worst 1" not in page and "by good luck" in page


def test_scores_of_classes_have_their_own_names() -> None:
    assert class_headlines("segmentation") == ("iou",)
    assert class_field("segmentation", "pixel_accuracy") == "accuracy"
    assert class_field("toy", "luck") == "luck" and class_headlines("toy") == ("luck",)


def test_csv() -> None:
    assert to_csv(toy_report()) == "name,toy.luck\na,0.5\nb,1.0\n"


def test_comparison_as_latex_and_csv(tmp_path: Path) -> None:
    for name, luck in (("one", 0.25), ("two", 0.75)):
        (tmp_path / f"{name}.json").write_text(toy_report(luck).to_json())
    models = load_models([str(tmp_path / "one.json"), str(tmp_path / "two.json")])
    comparison = compare(models, Choice(level=None))
    assert r"good luck $\uparrow$ & 0.2500 & \textbf{0.7500} \\" in to_latex(comparison)
    assert "toy.luck,two,0.75," in comparison_csv(comparison)
