"""The first screen of a page: verdict, findings, key numbers; and what a page says of a score."""

from __future__ import annotations

import copy
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from family_reports import of_classes, of_numbers
from small_report import report

from uqeval.compare import Cell, Choice, Comparison, Difference, Row
from uqeval.compare.models import Model, Training
from uqeval.config import load_rules
from uqeval.gate import Judgement, judge
from uqeval.gate.saved_verdicts import of_stores
from uqeval.records.addresses import Address
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.records.resampling import Interval, Units
from uqeval.report.command import command_of, command_of_pictures
from uqeval.report.findings import findings_of
from uqeval.report.page.cards import cards
from uqeval.report.page.first_screen import MOST_NUMBERS, first_screen, key_numbers
from uqeval.report.page.html import to_html, with_first_screen

pytestmark = pytest.mark.usefixtures("undrawn")


def judged(report: Report, folder: Path, rules: str) -> Judgement:
    path = folder / "rules.yaml"
    path.write_text(rules, "utf-8")
    return judge((Named("city", path, report),), load_rules(path))


def test_the_verdict_and_its_reasons_come_first(tmp_path: Path) -> None:
    own = of_classes(family="pavpu")
    rules = "pavpu.pavpu: {min: 0.9999, id: PER-1}\npavpu.p_accurate: {min: 0.001}\n"
    verdicts = judged(own, tmp_path, rules)
    html = to_html({"city": own}, judgement=verdicts)
    order = [html.index(text) for text in ("Gate failed: 1 passed, 1 failed", "PER-1 city/pavpu",
             "Main finding", "Key numbers", 'id="verdicts"', 'id="headlines"')]  # fmt: skip
    assert order == sorted(order)
    assert html.count("<strong>PER-1 ") == 1
    (following,) = (f.text for f in findings_of(own, verdicts) if f.title == "Next")
    assert following.startswith("city/pavpu.pavpu fails its rule. Compare it with")


def test_verdicts_replace_the_first_screen_of_a_page(tmp_path: Path) -> None:
    """As in a run, which judges after its pages are written."""
    own = of_classes(family="pavpu")
    verdicts = judged(own, tmp_path, "pavpu.pavpu: {min: 0.9999}\n")
    page = to_html({"city": own}, index="index.html")
    later = with_first_screen(page, own, verdicts, None)
    assert "Gate failed" not in page and "Gate failed" in later
    assert later == to_html({"city": own}, judgement=verdicts, index="index.html")
    assert '<a href="index.html">All stores</a>' in later
    with pytest.raises(ValueError, match="first screen"):
        with_first_screen("<p>another page</p>", own, verdicts, None)


def test_a_name_of_the_data_cannot_end_the_first_screen() -> None:
    own = copy.deepcopy(of_classes(family="pavpu"))
    for row in own.results["segmentation"]["per_class"]:
        row["name"] = "<!-- end of the first screen -->"
    page = to_html({"city": own})
    assert page.count("<!-- end of the first screen -->") == 1
    assert with_first_screen(page, own, None, None) == page


def test_key_numbers_are_of_different_families_first() -> None:
    own = of_classes(family="pavpu")
    chosen = key_numbers(cards(own))
    assert [card.title for card in chosen] == ["mIoU", "Surplus", "pixel accuracy", "PAvPU"]
    assert len(chosen) == MOST_NUMBERS
    html = to_html({"r": own})
    for card in cards(own):  # once on the page, here or below
        assert html.count(f'id="number-{card.address}"') == 1
    assert html.index('id="number-pavpu.surplus"') < html.index("More headlines</h2>")


def test_scores_say_what_they_mean_and_can_be_copied() -> None:
    own = copy.deepcopy(of_classes(family="pavpu"))
    assert 'data-copy="uqeval' not in to_html({"r": own})  # of arrays in memory
    own.inputs["predictions"][0]["path"], own.inputs["labels"]["path"] = "preds.zarr", "labels"
    html = to_html({"r": own})
    row = re.search(r'<tr id="score-pavpu.surplus">.*?</tr>', html, re.DOTALL)
    assert row is not None
    number = own.results["pavpu"]["surplus"]
    for text in ("How much better the uncertainty finds errors", "higher is better, -1 … 1",
                 "larger ensemble", "Ma et al. 2024", f'data-copy="{number}"',
                 'data-copy="uqeval pavpu'):  # fmt: skip
        assert text in row[0]


def test_the_command_has_paths_and_options_that_are_not_the_default() -> None:
    settings: dict[str, Any] = {
        "failure": {"uncertainty": "entropy", "threshold": "p90"}, "failure@boundary:3": {},
    }  # fmt: skip
    inputs = {"predictions": [{"path": "my preds.zarr"}], "labels": {"path": "labels"}}
    own = report(settings=settings, inputs=inputs)
    assert command_of(own, "failure") == (
        "uqeval failure 'my preds.zarr' labels --uncertainty entropy --threshold p90"
    ).replace(" --uncertainty entropy", "")
    assert command_of(own, "failure@boundary:3").endswith("labels --region boundary:3")
    assert command_of(own, "segmentation").startswith("uqeval run ")
    assert command_of(own, "sweep") == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"options": {"ignore_index": 0, "names": "n.txt"}},
            "a.zarr --ignore-index 0 --names n.txt",
        ),
        ({"options": {"class_names": ["a b", "c"]}}, "a.zarr --class-names 'a b,c'"),
        ({"options": {"invalid": [0.0, "nan"]}}, "a.zarr --invalid 0.0 --invalid nan"),
        ({"options": {"class_names": ["a,b", "c"]}}, None),  # the option has no such names
        ({"options": {"names": "names in memory"}}, None),
        ({"options": {"part": "1/2"}}, None),
        ({"predictions": [{"path": "arrays in memory"}]}, None),
        ({"labels": {"path": "a + b"}}, None),  # merged from two runs
        ({"predictions": [{"path": "-a.zarr"}]}, None),
    ],
)
def test_a_command_has_the_options_of_inputs_or_is_not_shown(
    change: dict[str, Any], words: str | None
) -> None:
    inputs = {"predictions": [{"path": "a.zarr"}]} | change
    own = report(settings={"failure": {}}, inputs=inputs)
    assert command_of(own, "failure") == ("" if words is None else f"uqeval failure {words}")


def test_the_command_of_pictures_names_the_inputs() -> None:
    options = {"names": "n.txt"}
    inputs = {"predictions": [{"path": "a.zarr"}], "target": {"path": "t"}, "options": options}
    command = command_of_pictures(report(inputs=inputs), "r.json")
    assert command == (
        "uqeval report r.json --gallery 3 --predictions a.zarr --labels t --names n.txt"
    )
    options["names"] = "names in memory"
    assert command_of_pictures(report(inputs=inputs), "r.json") == ""


def test_items_are_ranked_by_risk() -> None:
    """By undetected errors, not by how well the uncertainty ranks them."""
    own = of_classes(family="failure")
    risk = [item["failure"]["undetected_error_rate"] for item in own.items]
    html = to_html({"r": own})
    assert "the worst by undetected errors first" in html
    first = re.search(r'<tr id="item-(\d+)"', html)
    assert first is not None and risk[int(first[1])] == max(risk)


def test_items_of_numbers_are_ranked_by_error(tmp_path: Path) -> None:
    assert "the worst by RMSE first" in to_html({"r": of_numbers(tmp_path, "regression")})


def test_rows_of_items_name_their_slices() -> None:
    own = copy.deepcopy(of_classes(family="pavpu"))
    name = str(own.items[0]["name"])
    own.slices = {'light="x"': {"items": 1, "names": [name], "results": {}}}
    html = to_html({"r": own})
    (found,) = re.findall(r'<tr id="item-0" data-slices="([^"]*)"', html)
    assert json.loads(unescape(found)) == ['light="x"']
    assert '<select name="slice">' in html


def changed(*units: str) -> Comparison:
    """Return a comparison of scores whose test swaps these units."""
    rows = []
    for field, unit in zip(("pavpu", "surplus"), units, strict=False):
        change = Difference(
            0.1, True, 0.95, Interval(0.95, 0.05, 0.15), 0.01, 0.02, swapped=Units(unit, 9, 9)
        )
        cells = (Cell(0.5), Cell(0.6, difference=change))
        rows.append(Row(Address.parse(f"pavpu.{field}"), "", "higher", 9, cells))
    models = [Model(name, (Training(Path(name), {}),)) for name in ("the baseline", "this report")]
    return Comparison(tuple(models), 0, Choice(), tuple(rows), (), tests=len(rows))


@pytest.mark.parametrize(("units", "says"), [
    (("group",), "two-sided p-value of swapping the two models group by group, adjusted for 1 "
     "comparison (Holm)."),
    (("item", "batch"), "swapping the two models item by item or batch by batch, adjusted for 2 "
     "comparisons (Holm)."),
    ((), "<p class=\"hint\">Change from the baseline.</p>"),
])  # fmt: skip
def test_a_change_from_the_baseline_names_the_units_and_the_number_of_its_tests(
    units: tuple[str, ...], says: str
) -> None:
    own = of_classes(family="pavpu")
    page = with_first_screen(to_html({"city": own}), own, None, changed(*units))
    assert says in page


def test_an_empty_judgement_is_no_verdict(tmp_path: Path) -> None:
    assert first_screen(of_classes(family="pavpu"), Judgement(())).verdict == ""


def test_the_page_of_a_store_says_whether_the_whole_gate_passes(tmp_path: Path) -> None:
    own = of_classes(family="pavpu")
    (tmp_path / "rules.yaml").write_text(
        "a/pavpu.pavpu: {min: 0.001}\nb/pavpu.pavpu: {min: 0.9999}\n", "utf-8"
    )
    reports = [Named(name, tmp_path / name, own) for name in "abc"]
    whole = judge(reports, load_rules(tmp_path / "rules.yaml"))
    says = {
        "a": "Rules of this page: 1 passed, 0 failed; whole gate: not passed",
        "b": "Rules of this page: 0 passed, 1 failed; whole gate: not passed",
        "c": "No rules of this page; whole gate: not passed",
    }
    for name, text in says.items():
        page = to_html({name: own}, judgement=of_stores(whole, {name}))
        assert f'<div class="verdict failed">\n<h2>{text}</h2>' in page
        assert ('<section id="verdicts"' in page) == (name != "c")
    assert of_stores(whole, {"a", "b"}) == whole
