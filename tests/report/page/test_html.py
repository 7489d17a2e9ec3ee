"""The page as text: its content, and that no text from the data becomes HTML."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
from family_reports import of_classes, of_numbers, of_sweep, of_video, with_states
from small_report import report

from uqeval.compare import Choice, Comparison, Model
from uqeval.compare.models import Training
from uqeval.glossary import label
from uqeval.records.report import Report
from uqeval.report.figures import linked_keys
from uqeval.report.page.cards import cards
from uqeval.report.page.gallery import Picture
from uqeval.report.page.html import _environment, to_html
from uqeval.report.page.item_table import MOST_ITEMS
from uqeval.report.page.overview import to_overview
from uqeval.report.page.several import Several
from uqeval.report.tables.cells import interval_of
from uqeval.report.tables.items import columns_of
from uqeval.report.tables.of_report import tables_of
from uqeval.report.tables.scores import scores
from uqeval.report.tables.settings import pairs
from uqeval.report.tables.settings import settings as setting_table
from uqeval.report.tables.table import LEGEND, Cell, Table
from uqeval.statistics.items_behind_cell import items_by_cell
from uqeval.statistics.states_of_report import states_of

EVIL = "<script>alert(1)</script>\"'&{{ 7 * 7 }}\u202e"


@pytest.fixture(autouse=True)
def drawn_where_looked_at(request: pytest.FixtureRequest) -> None:
    """Draw figures only in the tests that look at them."""
    if request.node.get_closest_marker("draws") is None:
        request.getfixturevalue("undrawn")


def family_report(family: str, folder: Path) -> Report:
    if family in ("regression", "nmerci"):
        return of_numbers(folder, family)
    return {"sweep": of_sweep, "temporal": of_video}.get(
        family, lambda: of_classes(family=family)
    )()


@pytest.mark.draws
@pytest.mark.parametrize(
    ("family", "figures"),
    [
        ("segmentation", {"segmentation-classes"}),
        ("pavpu", {"pavpu-threshold", "pavpu-accuracy-threshold", "pavpu-classes", "headlines",
                   "accuracy-by-uncertainty", "accuracy-by-uncertainty-2"}),
        ("calibration", {"reliability", "calibration-classes"}),
        ("failure", {"risk-coverage", "failure-classes"}),
        ("sparsification", {"sparsification"}),
        ("regression", {"regression-calibration"}),
        ("nmerci", {"nmerci-alpha", "nmerci-depth"}),
        ("sweep", {"sweep"}),
        ("temporal", {"temporal", "temporal-correlation", "temporal-classes"}),
    ],
)  # fmt: skip
def test_every_family_has_its_figures(
    family: str, figures: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    html = to_html({"r": family_report(family, tmp_path_factory.getbasetemp())})
    assert figures <= set(re.findall(r'<figure id="figure-([\w-]+)"', html))
    assert html.count("<svg") == html.count('<div class="plot" role=')
    assert f'<section id="{family}"' in html
    assert "$\\mathdefault" not in html  # no formula is left unread


@pytest.mark.draws
def test_names_stay_text() -> None:
    """Of items, classes, stores, settings and warnings."""
    one = copy.deepcopy(of_classes(family="pavpu"))
    one.items[0]["name"] = EVIL
    for key in ("pavpu", "segmentation"):
        one.results[key]["per_class"][0]["name"] = EVIL
    one.results["pavpu"]["accuracy_by_uncertainty"]["rows"][0]["name"] = EVIL
    one.inputs["predictions"] = [{"path": EVIL}]
    one.warnings.append(EVIL)
    one.settings["pavpu"][EVIL] = EVIL
    for html in (to_html({EVIL: one}), to_html({EVIL: one, "other": one})):
        own = html.count('<script type="application/json"')
        assert html.count("<script") == 1 + own and own <= 1
        assert "alert(1)</script>" not in html
        assert "{{ 7 * 7 }}" in html  # no template of a template
        assert "\u202e" not in html and "\\u202e" in html


def test_names_in_data_stay_text() -> None:
    """Of items beyond those in HTML, of slices, classes and meanings of colours."""

    class Odd:
        legend = note = ""

        def pictures(self, item: int) -> list[Picture]:
            return [Picture(EVIL, b"", EVIL, EVIL, ((EVIL, EVIL),))]

    names = [f"{EVIL}{i}" for i in range(MOST_ITEMS + 5)]
    items = [{"name": name, "pavpu": {"surplus": 0.5}} for name in names]
    one = report(items=items, slices={EVIL: {"names": names[-2:], "items": 2, "results": {}}})
    one.results["segmentation"]["per_class"] = [{"class": 0, "name": EVIL}]
    classes = [[(0, 4, 1)]] * len(items)
    html = to_html({EVIL: one}, Odd(), 1, classes=classes)  # type: ignore[arg-type]
    assert html.count("<script") == 3 and "alert(1)</script>" not in html
    assert "\u202e" not in html
    data = _data(html, "item-data")
    assert len(data["rows"]) == 5 and data["classes"][0][1].startswith("<script>")


def test_undefined_shows_a_dash_and_its_reason() -> None:
    html = to_html({"r": report()})
    assert re.search(r"–<sup[^>]*>1</sup>", html)
    assert "undefined: all patches are certain" in html


def test_intervals_are_shown() -> None:
    one = copy.deepcopy(of_classes(family="pavpu"))
    one.intervals = {"pavpu.pavpu": {"level": 0.95, "low": 0.25, "high": 0.75, "approximate": True}}
    html = to_html({"r": one})
    assert html.count("≈ [0.2500, 0.7500]") == 2  # on the card, in the table
    assert html.count("95 %: ≈ [0.2500, 0.7500]") == 1
    assert html.count(LEGEND) == 2
    one.timing |= {"seconds": 1.0, "bytes_read": 1}
    assert to_overview({"r": one}, {}, None, None).count(LEGEND) == 1
    one.intervals["pavpu.pavpu"]["approximate"] = False
    assert LEGEND not in to_html({"r": one})
    assert "Bars: confidence intervals" in html


def test_cards_show_all_variants() -> None:
    report = of_classes()
    (card,) = (own for own in cards(report) if own.title == "PAvPU")
    second = report.results["pavpu[mutual_information]"]
    assert (card.variant, card.cell.number) == ("entropy", report.results["pavpu"]["pavpu"])
    assert [(name, own.number) for name, own in card.others] == [
        ("mutual_information", second["pavpu"])
    ]
    html = to_html({"r": report})
    assert html.count('<ul class="variants">') == 4  # of the four headlines of pavpu alone
    value = f"{second['pavpu']:.4f}"
    assert re.search(
        rf"<span>mutual_information</span>\s*<span class=\"number\">{value}</span>", html
    )


def test_cards_of_many_variants_count_the_rest() -> None:
    report = of_classes()
    own = report.results["pavpu"]
    undefined = own | {"pavpu": None, "pavpu_reason": "no patch was counted"}
    many = {f"pavpu[window={i}]": undefined for i in range(2, 12)}
    report = dataclasses.replace(report, results={"pavpu": own} | many)
    (card,) = (own for own in cards(report) if own.title == "PAvPU")
    assert (card.variant, len(card.others), card.more) == ("pavpu", 6, 4)
    html = to_html({"r": report})
    assert "<li>and 4 more in the table</li>" in html
    assert 'title="undefined: no patch was counted"' in html


def test_only_results_over_the_same_pixels_compete() -> None:
    whole = report().results["segmentation"]
    edge, inner = "segmentation@boundary:3", "segmentation@interior:3"
    values = {"segmentation": 0.5, edge: 0.25, inner: 0.75, "segmentation[x]@boundary:3": 0.3}
    described = {"segmentation.miou": {"direction": "higher"}}
    results = {key: whole | {"miou": value} for key, value in values.items()}
    table = scores({"": report(results=results, metrics=described)}, "segmentation")
    (row,) = (row for row in table.rows if row.name.startswith("mIoU"))
    assert [cell.best for cell in row.cells] == [False, False, False, True]
    others = {key: whole | {"miou": 0.6} for key in values}
    table = scores({"a": report(results=results, metrics=described),
                    "b": report(results=others, metrics=described)}, "segmentation")  # fmt: skip
    (row,) = (row for row in table.rows if row.name.startswith("mIoU"))
    assert [cell.best for cell in row.cells] == [False, False, True, False, True, True, False, True]
    assert table.columns[1:4] == ["a", f"a · {edge}", f"a · {inner}"]
    assert table.columns[5] == "b"


def test_the_fields_of_an_undefined_record_have_its_reason() -> None:
    whole = report().results["pavpu"]
    undefined = whole | {"surplus_peak": None, "surplus_peak_reason": "no peak"}
    results = {"pavpu": whole, "pavpu[window=2]": undefined}
    table = scores({"": report(results=results)}, "pavpu")
    rows = {row.about[-1][1]: row.cells for row in table.rows}
    assert "pavpu.surplus_peak" not in rows
    peak = rows["pavpu.surplus_peak.value"]
    assert [(c.text, c.reason) for c in peak] == [("0.4000", ""), ("–", "no peak")]
    (shown, *_) = (t for t in tables_of(report(results=results)) if "at t" in t.columns)
    assert shown.rows[1].cells[shown.columns.index("at t") - 1].reason == "no peak"


def test_a_page_names_the_region_of_each_score() -> None:
    whole = report().results["segmentation"]
    edge = "segmentation@boundary:3"
    items = [{"name": n, "segmentation": {"miou": v}, edge: {"miou": v / 2}}
             for n, v in (("a", 0.5), ("b", 0.75))]  # fmt: skip
    settings = {"segmentation": {"definition": "paper"}, edge: {"definition": "paper"}}
    own = report(results={"segmentation": whole, edge: whole}, items=items, settings=settings,
                 metrics={"segmentation.miou": {"direction": "higher"}})  # fmt: skip
    assert [c.title for c in columns_of(own)] == ["mIoU", "mIoU @boundary:3"]
    page = to_html({"r": own})
    assert page.count("<h3>by mIoU") == 1  # the whole image ranks the items
    assert "<summary>By class (segmentation@boundary:3), as a table</summary>" in page
    assert "<caption>By class (segmentation)</caption>" in page
    assert setting_table(own).columns == ["setting", "segmentation"]


def test_ends_of_intervals_are_rounded() -> None:
    ends = {"low": 0.9999999999999, "high": 0.00001, "level": 0.9, "units": {}}
    assert interval_of({"toy.luck": ends}, "toy", ["luck"]) == "[1.0000, 0.00001]"


def test_the_comparison_marks_the_best() -> None:
    a, b = of_classes(family="calibration"), of_classes(family="calibration", seed=5)
    html = to_html({"a": a, "b": b})
    better = min(r.results["calibration"]["ece"] for r in (a, b))
    row = re.search(r"<tr><th[^>]*>ECE ↓.*?</tr>", html, re.DOTALL)
    assert row and f'<span class="best">{better:.4f}' in row[0]
    assert row[0].count("★") == 1
    assert "figure-reliability" in html and "2 reports side by side" in html


def test_reports_of_different_items_are_compared_with_a_warning() -> None:
    one = of_classes(family="calibration")
    other = dataclasses.replace(one, items=one.items[1:])
    said = "of different items"
    assert said in to_html({"a": one, "b": other}) and said not in to_html({"a": one, "b": one})


def test_what_several_reports_warn_of_is_said_once() -> None:
    one = dataclasses.replace(of_classes(family="calibration"), warnings=["few items"])
    other = dataclasses.replace(one, warnings=["few items", "no labels"], partial=True)
    html = to_html({"a": one, "b": other})
    assert html.count("few items") == 1 and "<li>a, b: few items</li>" in html
    assert "<li>b: no labels</li>" in html and "<li>b: partial, not all items" in html


def test_what_a_comparison_warns_of_is_not_said_of_its_reports_too() -> None:
    one = dataclasses.replace(of_classes(family="calibration"), warnings=["few items."])
    models = tuple(Model(name, (Training(Path(name), {}),)) for name in ("a", "b"))
    comparison = Comparison(models, 0, Choice(), (), ("few items",))
    assert Several({"a": one, "b": one}, comparison, "").warnings == ["few items."]
    other = dataclasses.replace(comparison, warnings=())
    assert Several({"a": one, "b": one}, other, "").warnings == ["a, b: few items."]


def test_the_units_of_an_interval_are_on_a_line_of_their_own() -> None:
    """Else a table by class is wider than a page."""
    cell = Cell("0.5", 0.5, interval="[0.4, 0.6] (4 of 12 items)")
    parts: Any = _environment().get_template("parts.html").module
    text = str(parts.value(Table("t", ["a"], []), cell))
    assert '<span class="interval">[0.4, 0.6] <br>(4 of 12 items)</span>' in text


def test_huge_reports_are_cut_with_a_note() -> None:
    small = report()
    items = [{"name": f"i{i}", "pavpu": {"surplus": i / 10_000}} for i in range(10_000)]
    html = to_html({"r": dataclasses.replace(small, items=items)})
    assert html.count('<tr id="item-') == MOST_ITEMS
    assert "10000 of 10000 items" in html and len(html) < 2_000_000
    assert f"without JavaScript the first {MOST_ITEMS};" in html
    assert html.index(">i0<") < html.index(">i1<")  # the worst first
    data = _data(html, "item-data")
    assert data["addresses"] == ["pavpu.surplus"]
    assert len(data["rows"]) == 10_000 - MOST_ITEMS
    assert data["rows"][0] == [MOST_ITEMS, f"i{MOST_ITEMS}", [], MOST_ITEMS / 10_000]


def _data(html: str, name: str) -> Any:
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html)
    assert found is not None
    return json.loads(found[1])


def test_the_worst_by_other_scores_do_not_lift_the_limit() -> None:
    """They are shown beside the worst by the first score, and nothing more."""
    items = [{"name": f"i{i}", "pavpu": {"surplus": i / 2000, "pavpu": 1 - i / 2000}}
             for i in range(2000)]  # fmt: skip
    known = {f"pavpu.{name}": {"direction": "higher"} for name in ("surplus", "pavpu")}
    html = to_html({"r": report(items=items, metrics=known)})
    assert html.count('<tr id="item-') == MOST_ITEMS + 10


def test_links_lead_somewhere() -> None:
    html = to_html({"r": of_classes(family="pavpu")})
    targets = set(re.findall(r'\bid="([^"]+)"', html))
    links = set(re.findall(r'href="#([^"]+)"', html))
    assert links <= targets and "worst" in links
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)


class Pictures:
    """A gallery with one picture of each item."""

    legend = (("#ff0000", "wrong <pixel>"),)
    note = ""

    def pictures(self, item: int) -> list[Picture]:
        return [Picture(f"of {item}", b"png", f"alt {EVIL}")]


def test_the_gallery_shows_what_it_is_given() -> None:
    html = to_html({"r": of_classes(family="pavpu")}, Pictures(), 2)  # type: ignore[arg-type]
    assert html.count("<article") == 3  # two of the worst, one good
    assert "wrong &lt;pixel&gt;" in html and "data:image/png;base64,cG5n" in html
    assert (
        re.search(r"Worst 1</span> by p\(accurate \| certain\)", html)
        and "Best 1</span> by" in html
    )


def test_good_items_with_pictures_are_in_the_table_without_javascript() -> None:
    items = [{"name": f"i{i}", "pavpu": {"surplus": i / 1000}} for i in range(1000)]
    one = report(items=items, metrics={"pavpu.surplus": {"direction": "higher"}})
    html = to_html({"r": one}, Pictures(), 3)  # type: ignore[arg-type]
    assert 'id="gallery-item-999"' in html and '<tr id="item-999"' in html
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(re.findall(r'\bid="([^"]+)"', html))


def test_a_gallery_without_scores_of_items_ranks_none() -> None:
    one = copy.deepcopy(of_classes(family="pavpu"))
    one.items = [{"name": item["name"]} for item in one.items]
    html = to_html({"r": one}, Pictures(), 2)  # type: ignore[arg-type]
    assert html.count("<article") == 2
    assert "Item 1</span>" in html and not re.search(r"(Worst|Best) \d</span>", html)


def test_intervals_of_classes_are_found_by_their_address() -> None:
    one = copy.deepcopy(of_classes(family="pavpu"))
    one.results["pavpu"]["per_class"][0]["name"] = "traffic.light"
    ends = {"level": 0.9, "low": 0.125, "high": 0.875}
    one.intervals = {'pavpu.per_class."traffic.light".pavpu': ends}
    html = to_html({"r": one})
    assert html.count("[0.1250, 0.8750]") == 1 and html.count("Lines: confidence intervals.") == 1


def test_a_page_without_scores_of_the_set_and_of_items_has_no_empty_parts() -> None:
    """As of a sweep: its items have names alone."""
    html = to_html({"r": of_sweep()})
    assert 'href="#summary"' not in html and '"#items"' not in html
    assert '<section id="items"' not in html
    html = to_html({"r": of_classes(family="pavpu")})
    assert 'href="#summary"' in html and '<section id="items"' in html


@pytest.mark.parametrize(("field", "text"), [
    ("risk_at_coverage.80", "risk at 80 % coverage"),
    ("coverage_at_risk.1", "coverage at 1 % risk"),
])  # fmt: skip
def test_labels_name_the_entry_of_a_part(field: str, text: str) -> None:
    assert label("failure", field) == text


def test_class_wise_scores_have_one_spelling() -> None:
    for field in ("classwise_ece", "classwise_ece_debiased"):
        assert label("calibration", field).startswith("class-wise ECE")


def test_slices_and_how_intervals_were_drawn(tmp_path: Path) -> None:
    html = to_html({"r": Report.load(with_states(tmp_path))})
    assert 'id="figure-slices"' in html and "light=night" in html
    assert "1 item (few)" in html and ">all items<" in html
    assert "Intervals at level 90 % from 12 items. Below 30 they may be too narrow." in html
    assert "Hollow: a slice of few units." in html


def test_cells_and_bins_lead_to_the_items_behind_them(tmp_path: Path) -> None:
    path = with_states(tmp_path)
    one = Report.load(path)
    html = to_html({"r": one}, behind=items_by_cell(states_of(path, one), linked_keys(one)))
    targets = re.findall(r'\bid="([^"]+)"', html)
    links = set(re.findall(r'href="#([^"]+)"', html))
    assert links <= set(targets)
    piles = [t for t in targets if t.startswith("behind-")]
    assert piles and len(piles) == len(set(piles)) and set(piles) <= links
    tables = "".join(re.findall(r"<table.*?</table>", html, re.DOTALL))
    assert set(piles) <= set(re.findall(r'href="#(behind-[^"]+)"', tables))  # for the keyboard
    assert re.search(r"<li><a href=.#item-\d+.>\d+</a> \(\d+ wrong pixels?\)</li>", html)
    assert "_blank" not in html
    without = to_html({"r": one})
    assert "behind-" not in without and "keep the report's states next to it" in without


def test_no_link_of_a_page_with_regions_is_dead(tmp_path: Path) -> None:
    """Figures of regions have no items below them, so the tables of regions link to none."""
    path = with_states(tmp_path, region=["boundary:2"])
    own = Report.load(path)
    assert "calibration@boundary:2" in own.results and "calibration" not in linked_keys(own)
    html = to_html({"r": own}, behind=items_by_cell(states_of(path, own), linked_keys(own)))
    links = set(re.findall(r'href="#([^"]+)"', html))
    assert any(link.startswith("behind-") for link in links)  # of the heat map of the whole image
    assert links <= set(re.findall(r'\bid="([^"]+)"', html))
    assert html.count("To see the items of each bin, evaluate without --region") == 1
    assert "To see the items of each bin" not in to_html({"r": Report.load(with_states(tmp_path))})


def test_a_page_says_when_its_report_was_finished() -> None:
    """The newest of several; a report of an earlier version, which does not say it, is shown."""
    old, new = (
        report(timing=report().timing | {"finished": time})
        for time in ("2026-11-20T23:59:59Z", "2026-11-21T20:12:03Z")
    )
    assert "uqeval 0.1.0, finished 2026-11-21 20:12 UTC</p>" in to_html({"r": new})
    assert "finished" not in to_html({"r": report()})
    timed = {"seconds": 1.0, "bytes_read": 1}
    several = {
        name: dataclasses.replace(own, timing=own.timing | timed)
        for name, own in (("a", new), ("b", old), ("c", report()))
    }
    page = to_overview(several, {}, None, None)
    assert "a, b, c; finished 2026-11-21 20:12 UTC</p>" in page
    side_by_side = to_html({"a": new, "b": old})
    assert all(f"<td>2026-11-2{day} " in side_by_side for day in (0, 1))


def test_the_heading_of_a_run_counts_the_stores_that_failed() -> None:
    timed = report(timing=report().timing | {"seconds": 1.0, "bytes_read": 1})
    of_two = {"a": timed, "b": timed}
    for failed, heading in (({}, "2 stores"), ({"c": "gone"}, "2 of 3 stores"),
                            ({"b": "no sweep"}, "2 stores")):  # fmt: skip
        assert f"<h1>{heading}</h1>" in to_overview(of_two, failed, None, None)
    assert "<h1>1 store</h1>" in to_overview({"a": timed}, {}, None, None)


def test_warnings_of_a_store_have_a_heading_on_the_page_of_a_run() -> None:
    timing = report().timing | {"seconds": 1.0, "bytes_read": 1}
    quiet, loud = (report(timing=timing, warnings=texts) for texts in ([], ["too few items"]))
    heading = r'<div class="warnings">\s*<h3>Warnings</h3>\s*<ul>\s*<li>too few items</li>'
    assert re.search(heading, to_overview({"a": loud}, {}, None, None))
    assert "<h3>Warnings</h3>" not in to_overview({"a": quiet}, {}, None, None)


def test_tables_by_class_begin_with_what_one_came_for() -> None:
    page = to_html({"r": of_classes(family="pavpu")})
    head = re.search(r"<caption>By class \(pavpu\)</caption>(.*?)</thead>", page, re.DOTALL)
    assert head is not None
    assert re.findall(r">([^<>\n]+)</th>", head[1])[:4] == [
        "class", "Surplus", "PAvPU", "p(accurate&nbsp;| certain)",
    ]  # fmt: skip


def test_settings_keep_their_brackets() -> None:
    shown = dict(pairs(of_sweep().settings))
    assert shown["sweep.subsets"] == "[[0], [2]], [[1, 2], [2, 3]], [[0, 1, 2, 3]]"
    assert shown["sweep.samples"] == "1, 2, 4"
    assert shown["pavpu.log_base"] == "e"
    assert dict(pairs({"log_base": 2.0})) == {"log_base": "2.0"}
