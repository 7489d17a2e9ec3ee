"""Numbers as people read them: correct rounding, and tables on a terminal."""

from __future__ import annotations

import dataclasses
import io

import pytest
from family_reports import of_sweep
from rich.console import Console
from small_report import report, scores

from uqeval.errors import printable
from uqeval.metrics import METRICS
from uqeval.report.findings.scores import Finding
from uqeval.report.page.html import to_html
from uqeval.report.tables.cells import interval_of
from uqeval.report.tables.of_report import headline_table, tables_of
from uqeval.report.tables.table import (
    Cell,
    Row,
    Table,
    by_address,
    by_columns,
    format_number,
    text_table,
)
from uqeval.report.terminal import fitted, print_table, show, show_findings, show_warnings


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.0000"),
        (1.0, "1.0000"),
        (-1.0, "-1.0000"),
        (0.12345, "0.1235"),
        (0.99999, "0.99999"),
        (0.9999999, "0.9999999"),
        (1 - 1e-15, "1.0000"),
        (-1 - 1e-15, "-1.0000"),
        (1e-9, "1e-09"),
        (-0.00001, "-0.00001"),
        (3.23e-6, "3.23e-06"),
        (0.000231, "0.000231"),
        (0.00012, "0.00012"),
        (0.0027049, "0.0027"),
        (0.0026951, "0.0027"),
        (0.00268, "0.00268"),
        (0.005, "0.0050"),
        (0.0099999, "0.0100"),
        (0.012345, "0.0123"),
        (-0.0, "0.0000"),
        (-0.999999, "-0.999999"),
        (-5.16324e149, "-5.1632e+149"),
        (123456789012345.6, "123456789012345.5938"),
        (0, "0"),
        (1234567, "1,234,567"),
        ("entropy", "entropy"),
    ],
)
def test_rounding(value: object, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize("value", [1 - 1e-12, 1 + 1e-12, -1 + 1e-12])
def test_what_is_not_1_is_not_shown_as_1(value: float) -> None:
    assert float(format_number(value)) != round(value)


def test_tables_of_a_report() -> None:
    found = {table.title: table for table in tables_of(report())}
    assert list(found) == [
        "Segmentation", "Patch accuracy vs patch uncertainty", "Patches",
        "By class of patch (pavpu)",
    ]  # fmt: skip
    assert found["Segmentation"].texts == [["segmentation", "0.8750", "–", "0.5000", "12,345"]]
    assert found["Patches"].texts[0][1:5] == ["6,000", "2", "1", "3"]
    assert [row[0] for row in found["By class of patch (pavpu)"].texts] == ["road", "mixed"]
    assert all(len(row) == len(table.columns) for table in found.values() for row in table.texts)


def test_tables_without_patches() -> None:
    results = {"segmentation": report().results["segmentation"]}
    assert [table.title for table in tables_of(report(results=results))] == ["Segmentation"]


def test_intervals_and_slices() -> None:
    units = {"name": "item", "drawn": 2, "defined": 2}
    surplus = {"low": -0.2, "high": 0.1, "level": 0.9, "approximate": True, "units": units}
    drawn = {"level": 0.9, "draws": 50, "seed": 0, "unit": "item", "units": 2}
    day = {
        "items": 1, "small": True, "units": {"name": "group", "drawn": 1, "defined": 1},
        "names": ["a"], "results": {"pavpu": scores(surplus=0.25)},
        "intervals": {},
    }  # fmt: skip
    cut = report(
        intervals={"pavpu.surplus": surplus, "pavpu.phi": surplus},
        settings={"intervals": drawn}, slices={"light=day": day},
    )  # fmt: skip
    intervals, slices = tables_of(cut)[-2:]
    assert intervals.title == "Intervals"
    assert intervals.texts == [["pavpu", "Surplus", "-0.1250", "≈ [-0.2000, 0.1000]", "2 items"]]
    assert "level 90 % from 2 items. Below 30 they may be too narrow." in intervals.note
    assert "≈: approximate" in intervals.notes and "≈: approximate" in slices.notes
    assert "Ranks of" not in slices.note
    slice_record = cut.slices["light=day"]
    slice_record["approximate"] = ["failure", "sparsification"]
    note = tables_of(cut)[-1].note
    assert "Ranks of failure, sparsification are approximate" in note
    assert slices.columns[:4] == ["slice", "items", "units", "Surplus"]
    assert [row[:4] for row in slices.texts] == [
        ["all items", "2", "2 items", "-0.1250 ≈ [-0.2000, 0.1000]"],
        ["light=day", "1", "1 group (few)", "0.2500"],
    ]
    text = printed(lambda console: show(cut, console))
    assert "Intervals" in text and "1 group (few)" in text
    ends = [table.title for table in tables_of(report(intervals={"pavpu.phi": surplus}))]
    assert "Intervals" not in ends and "Slices" not in ends


def test_headlines_without_an_interval_have_the_reason() -> None:
    """On terminals and pages; a score that compares two kinds names the rarer."""
    units = {"name": "item", "drawn": 18, "defined": 6}
    why = "6 items have the rarer kind (wrong or right, OUT or IN)"
    intervals = {
        "failure.auroc": {"low": 0.8, "high": 0.9, "level": 0.9, "units": units},
        "failure.fpr95": {"low": None, "high": None, "level": 0.9, "units": units, "reason": why},
    }
    own = report(
        results={"failure": {"auroc": 0.85, "fpr95": 0.4}}, intervals=intervals,
        settings={"intervals": {"level": 0.9, "unit": "item", "units": 18}},
    )  # fmt: skip
    said = f"No interval of failure.fpr95: {why}."
    table = headline_table(own, "run")
    assert table.note == said and table.legend == ""
    assert table.texts[0][-1] == "6 of 18 items have the rarer kind"
    (of_command,) = (t for t in tables_of(own) if t.title == "Intervals")
    assert of_command.note.endswith(said)
    page = to_html({"r": own})
    assert said in page and "(6 of 18 items have the rarer kind)" in page
    assert "No interval" not in to_html({"r": report()})


def printed(what: object, width: int = 200, **options: object) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width, **options)  # type: ignore[arg-type]
    what(console)  # type: ignore[operator]
    return file.getvalue()


def test_names_cannot_act_on_the_terminal() -> None:
    results = report().results
    name = "[red]x[/red]\x1b[2J\u202e\r\n"
    results["pavpu"]["per_class"] = [scores(**{"class": 0, "name": name})]
    hostile = report(results=results, warnings=[f"item {name}"])
    text = printed(lambda console: show(hostile, console))
    assert "[red]x[/red]\\x1b[2J\\u202e\\r\\n" in text and "\x1b" not in text
    text = printed(lambda console: show_warnings(hostile, console))
    assert text == "warning: item [red]x[/red]\\x1b[2J\\u202e\\r\\n\n"


def test_partial_is_said() -> None:
    text = printed(lambda console: show(report(partial=True), console))
    assert "partial: not all items were evaluated" in text


def test_printable() -> None:
    assert printable("plain ünï 道路") == "plain ünï 道路"
    assert printable("a\x00b\x7f\x9bc") == "a\\x00b\\x7f\\x9bc"


def test_a_dash_is_explained_where_there_is_one() -> None:
    for dash in ("–", "0.5000"):
        row = {**scores(), "class": 0, "name": "road", "phi": None if dash == "–" else 0.5}
        pavpu = report().results["pavpu"] | {"per_class": [row]}
        results = report().results | {"pavpu": pavpu}
        table = tables_of(report(results=results))[-1]
        assert table.texts[0][-1] == dash
        assert table.note.endswith("the report has the reason.") == (dash == "–")
    segmentation = tables_of(report())[0]
    assert segmentation.note == "–: undefined; the report has the reason."


def test_what_is_one_is_not_many() -> None:
    one, two = (report(items=report().items[:n], warnings=["w"] * n) for n in (1, 2))
    assert ": 1 item; " in repr(one) and repr(one).endswith("; 1 warning: w>")
    assert ": 2 items; " in repr(two) and repr(two).endswith("; 2 warnings: w>")


def test_regions_have_rows_beside_the_whole_image() -> None:
    whole = report().results["segmentation"]
    results = {"segmentation": whole, "segmentation@boundary:2": whole | {"miou": 0.25}}
    (table,) = tables_of(report(results=results))
    assert table.columns == ["", "pixel accuracy", "mean accuracy", "mIoU", "pixels"]
    assert [row[0] for row in table.texts] == list(results)
    assert table.texts[1][3] == "0.2500"


def test_headings_are_those_of_the_metrics() -> None:
    columns = {heading for table in tables_of(report()) for heading in table.columns}
    of_pavpu = {own.heading for own in METRICS if own.family == "pavpu" and own.column}
    assert of_pavpu <= columns


def test_sequences_of_all_models_are_one_table() -> None:
    """Varghese et al. 2020, Table 2."""
    rows = {"a": (0.9, 0.8), "b": (0.7, 0.6)}
    results = {
        key: {
            "model": model, "flow": {"id": "dis"}, "pairs": 4, "mtc": 0.5,
            "sequences": [
                {"sequence": sequence, "mtc": mtc[n], "miou_mean": 0.4,
                 "tracks": {"consistency": 1.0}}
                for sequence, mtc in rows.items()
            ],
        }
        for n, (key, model) in enumerate((("temporal", "icnet"), ("temporal[hrnet]", "hrnet")))
    }  # fmt: skip
    own = dataclasses.replace(report(), results=results)
    (table,) = [t for t in tables_of(own) if t.title.startswith("By sequence")]
    assert table.columns == ["sequence", "mTC", "tracks C26", "mIoU"]
    assert [row[:2] for row in table.texts] == [
        ["a · icnet, dis", "0.9000"], ["a · hrnet, dis", "0.8000"],
        ["b · icnet, dis", "0.7000"], ["b · hrnet, dis", "0.6000"],
    ]  # fmt: skip
    alone = dataclasses.replace(report(), results={"temporal": results["temporal"]})
    (table,) = [t for t in tables_of(alone) if t.title.startswith("By sequence")]
    assert [row[0] for row in table.texts] == ["a", "b"]


def test_a_narrow_terminal_groups_rows_under_their_address() -> None:
    names = ["pavpu@boundary:4.surplus ↑", "pavpu@boundary:4.pavpu ↑", "failure.per_class.bus.aurc"]
    rows = [[name, "+0.0030 [-0.0018, +0.0077]"] for name in names]
    table = text_table("Scores", ["score", "model"], rows, "A note.", grouping=by_address)
    assert fitted(table, 60) == [table]
    (narrow,) = fitted(table, 50)
    lines = printed(lambda console: print_table(narrow, console), 50).splitlines()
    assert [line.rstrip() for line in lines] == [
        "Scores",
        "",
        " score                              model",
        " ────────────────────────────────────────",
        " pavpu@boundary:4",
        "   surplus ↑   +0.0030 [-0.0018, +0.0077]",
        "   pavpu ↑     +0.0030 [-0.0018, +0.0077]",
        " failure.per_class.bus",
        "   aurc        +0.0030 [-0.0018, +0.0077]",
        "",
        "A note.",
        "",
    ]
    assert all(len(line) <= 50 for line in lines)


def test_a_narrow_terminal_prints_first_columns_above_the_row_and_wraps_the_last() -> None:
    columns = ["id", "value of", "is", "verdict"]
    rows = [["A-1", "city/pavpu.surplus", "0.1", "inconclusive, counts as fail"]]
    table = text_table("Gate", columns, rows, "", frozenset({0, 1, 3}), by_columns(2))
    (narrow,) = fitted(table, 40)
    text = printed(lambda console: print_table(narrow, console), 40)
    assert " A-1  city/pavpu.surplus\n   0.1   inconclusive, counts as fail" in text
    (narrower,) = fitted(table, 30)
    text = printed(lambda console: print_table(narrower, console), 30)
    assert all(word in text for word in ["inconclusive,", "counts", "as", "fail"])
    assert max(map(len, text.splitlines())) <= 30


def test_the_value_of_a_single_subset_has_no_deviation() -> None:
    """± 0.0000 would say that another subset gives the same."""
    (table,) = [t for t in tables_of(of_sweep()) if t.title == "Over the number of samples M"]
    assert table.note.endswith("numbers of subsets: 2, 2, 1.")
    for _, one, two, every in table.texts:
        assert "±" not in every
        assert all(text == "–" or " ± " in text for text in (one, two))


def test_what_does_not_fit_is_split_under_the_same_headings() -> None:
    rows = [["ece.mean", "0.1 ± 0.2", "0.3 ± 0.4"]]
    table = text_table("Sweep", ["", "M = 1", "M = 2"], rows, grouping=by_address)
    parts = fitted(table, 24)
    assert [part.columns for part in parts] == [["", "M = 1"], ["", "M = 2"]]
    assert [part.rows[0].heading for part in parts] == ["ece", "ece"]


def test_a_wide_table_of_few_rows_is_transposed() -> None:
    table = text_table("Arrays", ["array", "shape", "dtype"], [["probs", "12×8×11×180", "float16"]])
    (turned,) = fitted(table, 25)
    assert turned.columns == ["", "probs"]
    assert turned.texts == [["shape", "12×8×11×180"], ["dtype", "float16"]]


def test_rows_that_are_compared_are_not_parted() -> None:
    rows = [[name, *["0.4493 [0.4379, 0.4587]"] * 3] for name in ("all items", "night", "sun")]
    table = text_table("Slices", ["slice", "mIoU", "PAvPU", "ECE"], rows)
    parts = fitted(table, 60)
    assert [part.columns for part in parts] == [["slice", "mIoU"], ["slice", "PAvPU"],
                                                ["slice", "ECE"]]  # fmt: skip
    assert all([row[0] for row in part.texts] == ["all items", "night", "sun"] for part in parts)
    (turned,) = fitted(dataclasses.replace(table, rows=table.rows[:2]), 70)
    assert turned.columns == ["", "all items", "night"]


def test_names_between_colons_are_no_emoji() -> None:
    table = text_table(":cat:", [":dog:", "b"], [[":bus:", "1"]], ":car:")
    text = printed(lambda console: print_table(table, console), 80, emoji=False)
    assert all(name in text for name in (":cat:", ":dog:", ":bus:", ":car:"))


def test_a_number_and_its_percent_sign_are_in_one_line() -> None:
    finding = Finding("F", f"{'a' * 20} AUROC (90 % interval 0.1 to 0.2)")
    for width in range(30, 45):
        lines = printed(lambda console: show_findings([finding], console), width).splitlines()
        assert all(len(line.rstrip()) <= width for line in lines)
        assert any("90 %" in line for line in lines)


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(2.2e-308, 1 - 1e-9, "[0.0000, 1.0000]"), (-3e-15, 2e-14, "[-3e-15, 2e-14]")],
)
def test_the_end_of_an_interval_next_to_0_is_0(low: float, high: float, text: str) -> None:
    """Next to the other end: a target in metres may have errors of 1e-14."""
    ends = {"pavpu.phi": {"low": low, "high": high, "units": {}}}
    assert interval_of(ends, "pavpu", ["phi"]) == text


def test_numbers_with_and_without_a_star_stand_below_each_other() -> None:
    first = Row("x", [Cell("0.5987", best=True), Cell("0.5330")])
    second = Row("y", [Cell("0.1270"), Cell("0.1278", best=True)])
    table = Table("Scores", ["score", "a", "b"], [first, second])
    lines = printed(lambda console: print_table(table, console), 80).splitlines()
    points = {tuple(i for i, c in enumerate(line) if c == ".") for line in lines if "0." in line}
    assert len(points) == 1


def test_a_sweep_has_labels_and_arrows() -> None:
    (table,) = [t for t in tables_of(of_sweep()) if t.title == "Over the number of samples M"]
    names = [row[0] for row in table.texts]
    assert "pavpu.p_accurate: p(accurate) ↑" in names
    assert "pavpu.surplus ↑" in names  # not "pavpu.surplus: Surplus ↑"
