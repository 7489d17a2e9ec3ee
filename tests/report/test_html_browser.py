"""The page in a browser: it works, makes no requests, and is light or dark."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from browser import (
    browse,
    measured,
    measured_in_frames,
    needs_axe,
    needs_chromium,
    screenshot,
    violations,
)
from family_reports import of_classes, with_states
from PIL import Image, ImageStat
from small_report import report

from uqeval.config import load_rules
from uqeval.gate import judge
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.report.figures import linked_keys
from uqeval.report.page.html import to_html
from uqeval.statistics import resampler
from uqeval.statistics.items_behind_cell import items_by_cell, items_by_class
from uqeval.statistics.states_of_report import states_of

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    made = with_states(path.parent / "made")
    report = Report.load(made)
    saved = states_of(made, report)
    behind, classes = items_by_cell(saved, linked_keys(report)), items_by_class(saved)
    path.write_text(to_html({"r": report}, behind=behind, classes=classes), "utf-8")
    return path


def test_no_error_no_request_and_the_script_runs(page: Path) -> None:
    dom, console = browse(page, "--dump-dom")
    assert console == ""  # a request would be refused by the page's policy, and said here
    assert dom.count("<svg") == 10
    assert '<th scope="col"><button type="button">item</button></th>' in dom


def test_the_policy_refuses_and_says_so(page: Path) -> None:
    """So that silence on the console means something."""
    spoiled = page.with_name("spoiled.html")
    foreign = '<img src="http://example.invalid/a.png"><script>document.title = "ran"</script>'
    spoiled.write_text(page.read_text("utf-8").replace("</main>", f"{foreign}</main>"), "utf-8")
    dom, console = browse(spoiled, "--dump-dom")
    assert console.count("Content Security Policy") >= 2
    assert "<title>ran" not in dom


def test_light_and_dark(page: Path) -> None:
    light, dark = (
        ImageStat.Stat(Image.open(screenshot(page, dark)).convert("L")) for dark in (False, True)
    )
    assert light.mean[0] > 200 and dark.mean[0] < 70
    assert light.stddev[0] > 10 and dark.stddev[0] > 10  # there is something to be seen


def test_the_items_behind_a_cell_show_without_script(page: Path) -> None:
    """Only those that the address names: by style alone, the page's script being taken out."""
    text = re.sub(r"<script>.*?</script>", "", page.read_text("utf-8"), flags=re.DOTALL)
    probe = "<style>.frame, .skip { display: none !important }</style>"
    pile = re.search(r'<div class="cell-items" id="(behind-1-[^"]+)".*?</div>', text, re.DOTALL)
    assert pile is not None
    bare = page.with_name("bare.html")
    alone = text.replace(pile[0], "").replace("</body>", f"{probe}{pile[0]}</body>")
    bare.write_text(alone, "utf-8")
    shown, hidden = (
        ImageStat.Stat(Image.open(screenshot(bare, False, at)).convert("L")).stddev[0]
        for at in (f"#{pile[1]}", "")
    )
    assert hidden == 0 < shown


#: Of every cell of the verdicts: its text, its left and right ends.
_CELLS = """[...document.querySelectorAll(".verdicts td")].map(cell => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  const box = range.getBoundingClientRect();
  return [cell.textContent, box.left, box.right, box.top];
})"""


@pytest.mark.usefixtures("undrawn")
def test_verdicts_are_seen_at_once_on_a_narrow_screen(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.9999, id: PER-1, why: it is asked for}\n", "utf-8")
    report = of_classes(family="pavpu")
    judgement = judge((Named("city", rules, report),), load_rules(rules))
    gated = tmp_path / "gated.html"
    gated.write_text(to_html({"r": report}, judgement=judgement), "utf-8")
    narrow, wide = measured_in_frames((gated, _CELLS, 420), (gated, _CELLS, 1400))
    assert [text for text, *_ in narrow][2] == "fail" and len(narrow) == 6
    assert all(0 < left < right < 420 for _, left, right, _ in narrow)
    assert min(narrow, key=lambda cell: cell[3])[0] == "fail"
    assert len({top for *_, top in wide}) == 1  # one row


@pytest.mark.usefixtures("undrawn")
def test_verdicts_fit_a_page_of_1200_pixels(tmp_path: Path) -> None:
    """Changes in words, intervals and inconclusive verdicts: texts wrap, and no column is cut."""
    demands = (
        "pavpu.pavpu: {max_drop_relative: 0.05, id: PER-1}",
        "pavpu.p_uncertain_given_inaccurate: {min: 0.5, confidence: 0.9}",
        "pavpu.p_accurate_given_certain: {min: 0.5, confidence: 0.99}",
    )
    path = with_states(tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text("\n".join(demands), "utf-8")
    named = Named.load(path)
    (tmp_path / "before").mkdir()
    before = Named.load(with_states(tmp_path / "before"))
    judgement = judge((named,), load_rules(rules), [before], resampler=resampler())
    gated = tmp_path / "gated.html"
    gated.write_text(to_html({"r": named.report}, judgement=judgement), "utf-8")
    place = 'document.querySelector(".verdicts .scroll")'
    assert measured(gated, f"{place}.scrollWidth - {place}.clientWidth", 1200) == 0


@pytest.mark.parametrize("dark", [False, True])
def test_what_goes_on_beyond_the_edge_has_a_shadow_there(
    page: Path, tmp_path: Path, dark: bool
) -> None:
    """By style alone; what fits has none, nor has anything on paper."""
    style = re.search(r"<style>.*?</style>", page.read_text("utf-8"), re.DOTALL)
    assert style is not None
    printed = style[0].replace("@media print", "@media screen")
    cases = [("3000px", style[0]), ("100%", style[0]), ("3000px", printed)]
    frames = [
        f"<!doctype html>{own}{begin}<div style='width: {width}; height: 120px'></div>{end}"
        for begin, end in (
            ('<div class="scroll">', "</div>"),
            ('<figure><div class="plot">', "</div></figure>"),
        )
        for width, own in cases
    ]
    bare = tmp_path / "bare.html"
    bare.write_text(
        "<!doctype html><body style='margin: 0'>"
        + "".join(
            f'<iframe srcdoc="{html.escape(frame)}" style="position: absolute; left: 0; '
            f'top: {200 * k}px; width: 1000px; height: 200px; border: 0"></iframe>'
            for k, frame in enumerate(frames)
        ),
        "utf-8",
    )
    picture = Image.open(screenshot(bare, dark)).convert("RGB")
    for k in (0, 3):
        beyond, fits, on_paper = (
            [picture.getpixel((x, 200 * j + 60)) for x in (1, 500, 998)] for j in range(k, k + 3)
        )
        left, middle, right = beyond
        assert left == middle
        assert sum(abs(a - b) for a, b in zip(middle, right, strict=True)) > 100
        assert len(set(fits)) == 1
        assert len(set(on_paper)) == 1


_TOOLS = """(() => {
  const tools = document.querySelector(".tools");
  const rows = () => [...document.querySelectorAll("#items tbody tr")];
  const shown = (changes) => {
    for (const name of ["name", "slice", "score", "low", "high", "class"]) {
      tools.elements[name].value = changes[name] ?? "";
    }
    tools.dispatchEvent(new Event("input"));
    return rows().map((row) => row.cells[0].textContent.trim());
  };
  const values = rows().map((row) => +row.cells[1].dataset.value).sort((a, b) => a - b);
  return [tools.hidden, rows().length, shown({name: "1"}), shown({slice: "light=night"}),
    shown({score: "1", low: String(values[9])}).length, shown({}).length,
    document.querySelectorAll(".copies[hidden]").length, shown({class: "1"})];
})()"""

#: What axe-core reports as serious and a browser can tell: names of links and buttons, labels of
#: fields, focus of what scrolls, unique ids.
_ACCESS = """(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const ids = all("[id]").map((own) => own.id);
  const name = (own) => own.textContent.trim() || own.getAttribute("aria-label");
  return [ids.length - new Set(ids).size,
    all("a, button, summary").filter((own) => !name(own)).length,
    all("input, select").filter((own) => !own.labels.length).length,
    all(".scroll, .plot").filter((own) => own.tabIndex < 0).length,
    all("[role=img] a").length, all("h1").length,
    document.documentElement.scrollWidth - innerWidth];
})()"""

#: What is measured, in frames of which widths.
_WIDTHS = (390, 500, 1024, 1440)
_FRAMES = [
    *((_ACCESS, width) for width in _WIDTHS), (_TOOLS, 1000),
    ("document.querySelector('main').clientWidth", 1400),
]  # fmt: skip


@pytest.fixture(scope="module")
def measurements(page: Path) -> list[Any]:
    """What is measured of the page, by one browser."""
    return measured_in_frames(*((page, script, width) for script, width in _FRAMES))


@pytest.mark.parametrize("width", _WIDTHS)
def test_the_page_is_accessible(measurements: list[Any], width: int) -> None:
    assert measurements[_WIDTHS.index(width)] == [0, 0, 0, 0, 0, 1, 0]


def test_tables_use_the_room_of_a_wide_screen(measurements: list[Any]) -> None:
    assert measurements[5] > 1050


def test_items_are_searched_and_filtered(measurements: list[Any]) -> None:
    hidden, rows, named, night, high, every, uncopied, wrong = measurements[4]
    assert (hidden, rows, every, uncopied) == (False, 12, 12, 0)
    assert sorted(named) == ["1", "10", "11"] and night == ["0"] and high == 3
    counts = [re.fullmatch(r"\d+([\d,]+) of [\d,]+ pixels wrong", text) for text in wrong]
    assert len(counts) == 12 and all(counts)


_PAGED = """(() => {
  const names = () => [...document.querySelectorAll("#items tbody th")]
    .map((own) => own.textContent.trim());
  const where = () => document.querySelector(".pages span").textContent;
  const seen = [names().length, names()[0], where(), document.querySelector("tr.chosen").id];
  const [back, next] = document.querySelectorAll(".pages button");
  next.click();
  seen.push(where());
  const tools = document.querySelector(".tools");
  const set = (name, value) => {
    tools.elements[name].value = value;
    tools.dispatchEvent(new Event("input"));
  };
  set("verdict", "0");
  seen.push(tools.querySelector("output").value);
  set("verdict", "");
  set("slice", "late");
  seen.push(names());
  set("slice", "");
  document.querySelectorAll("#items thead button")[1].click();
  document.querySelectorAll("#items thead button")[1].click();
  seen.push(names().slice(0, 2), document.querySelector("#items tbody td").textContent);
  return seen;
})()"""


@pytest.mark.usefixtures("undrawn")
def test_thousands_of_items_are_paged(tmp_path: Path) -> None:
    """Rows beyond those in HTML are made by the script: filtered, sorted, and found by a link."""
    items = [{"name": f"i<{i}>", "pavpu": {"surplus": i / 1000}} for i in range(1000)]
    one = report(
        items=items,
        slices={"late": {"names": ["i<900>", "i<901>"], "items": 2, "results": {}}},
        metrics={"pavpu.surplus": {"direction": "higher"}},
    )
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.surplus: {min: 0.75}\n", "utf-8")
    judgement = judge((Named("r", rules, one),), load_rules(rules))
    path = tmp_path / "many.html"
    path.write_text(to_html({"r": one}, judgement=judgement), "utf-8")
    rows, first, where, chosen, after, missing, late, sorted_names, value = measured(
        path, _PAGED, 1000, "#item-950"
    )
    assert (rows, first, where, chosen) == (100, "i<900>", "901 to 1000 of 1000", "item-950")
    assert after == "901 to 1000 of 1000"  # the last page
    assert missing == "750 of 1000 shown"
    assert late == ["i<900>", "i<901>"]
    assert (sorted_names, value) == (["i<999>", "i<998>"], "0.9990")


_LINKS = """[...document.querySelectorAll("#verdicts td a")].map((link) => {
  const id = decodeURIComponent(link.getAttribute("href").slice(1));
  const back = [...document.querySelectorAll("a.gated")].map((own) => own.getAttribute("href"));
  return [link.textContent, document.getElementById(id) !== null, back,
    document.querySelector("a.gated").closest("tr").id];
})"""


@pytest.mark.usefixtures("undrawn")
def test_a_verdict_leads_to_its_score_and_back(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.5}\n", "utf-8")
    one = of_classes(family="pavpu")
    judgement = judge((Named("city", rules, one),), load_rules(rules))
    path = tmp_path / "gated.html"
    path.write_text(to_html({"r": one}, judgement=judgement), "utf-8")
    (link,) = measured(path, _LINKS, 1000)
    assert link == ["city/pavpu.pavpu", True, ["#verdicts"], "score-pavpu.pavpu"]


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1024, 1440])
def test_axe_finds_nothing(page: Path, width: int, dark: bool) -> None:
    assert violations(page, width, dark) == []


def test_the_printed_page_is_short(page: Path) -> None:
    target = page.with_suffix(".pdf")
    browse(page, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", target.read_bytes())) <= 8
