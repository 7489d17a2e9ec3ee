"""The page in a browser: it works, asks nobody for anything, and is light or dark."""

from __future__ import annotations

import html
import re
from pathlib import Path

import numpy as np
import pytest
from browser import browse, measured, needs_axe, needs_chromium, screenshot, violations
from family_reports import of_classes, of_video, with_states
from PIL import Image, ImageStat
from small_report import report

from uqeval.config import load_rules
from uqeval.gate import judge
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.report.page.files import picture_files, write_page
from uqeval.report.page.gallery import Picture
from uqeval.report.page.html import to_html
from uqeval.statistics.items_behind_cell import items_by_cell
from uqeval.statistics.items_by_class import items_by_class
from uqeval.usecases.gallery.paint import RIGHT, WRONG, css, heat, painted

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    made = with_states(path.parent / "made")
    report = Report.load(made)
    behind, classes = items_by_cell(made, report), items_by_class(made, report)
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
    pile = re.search(r'<div class="pile" id="(behind-1-[^"]+)".*?</div>', text, re.DOTALL)
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


def test_verdicts_are_seen_at_once_on_a_narrow_screen(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("pavpu.pavpu: {min: 0.9999, id: PER-1, why: it is asked for}\n", "utf-8")
    report = of_classes(family="pavpu")
    judgement = judge((Named("city", rules, report),), load_rules(rules))
    gated = tmp_path / "gated.html"
    gated.write_text(to_html({"r": report}, judgement=judgement), "utf-8")
    narrow = measured(gated, _CELLS, 420)
    assert [text for text, *_ in narrow][-1] == "fail" and len(narrow) == 7
    assert all(0 < left < right < 420 for _, left, right, _ in narrow)
    assert min(narrow, key=lambda cell: cell[3])[0] == "fail"
    wide = measured(gated, _CELLS, 1400)
    assert len({top for *_, top in wide}) == 1  # one row


def test_tables_use_the_room_of_a_wide_screen(page: Path) -> None:
    assert measured(page, "document.querySelector('main').clientWidth", 1400) > 1050


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


def test_items_are_searched_and_filtered(page: Path) -> None:
    hidden, rows, named, night, high, every, uncopied, wrong = measured(page, _TOOLS, 1000)
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


_BOX = """(() => {
  const images = document.querySelectorAll(".exhibit img");
  images[0].click();
  const box = document.querySelector(".lightbox");
  const text = () => box.querySelector("p").textContent;
  const press = (key, shiftKey = false) => box.querySelector(".stage")
    .dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
  const seen = [box.open, images[0].tabIndex, location.hash, text()];
  for (const key of ["ArrowRight", "ArrowDown", "ArrowLeft"]) { press(key); seen.push(text()); }
  press("ArrowRight", true);
  const values = () => [...box.querySelectorAll(".values dd")].map((own) => own.textContent);
  seen.push(values());
  press("ArrowDown", true);
  seen.push(values());
  const slider = box.querySelector("[type=range]");
  slider.value = 40;
  slider.dispatchEvent(new Event("input"));
  const over = box.querySelector(".over");
  seen.push([over.style.opacity, over.src === images[0].src, over.src === images[1].src]);
  return seen;
})()"""


class Painted:
    """Two pictures of two pixels each: the upper one right and 1, the lower wrong and 3."""

    legend = note = ""

    def pictures(self, item: int) -> list[Picture]:
        kinds = np.array([[RIGHT], [WRONG]], np.uint8)
        meanings = ((css(RIGHT), "right"), (css(WRONG), "<wrong>"))
        return [
            painted("errors", kinds, f"errors of {item}", meanings),
            heat("entropy", np.array([[1.0], [3.0]]), f"{item}"),
        ]


def test_pictures_are_enlarged_overlaid_read_and_turned_by_keys(tmp_path: Path) -> None:
    path = tmp_path / "gallery.html"
    path.write_text(to_html({"r": of_classes(family="pavpu")}, Painted(), 2), "utf-8")  # type: ignore[arg-type]
    shown, tab, at, *texts, upper, lower, over = measured(path, _BOX, 1000)
    assert (shown, tab) == (True, 0) and re.fullmatch(r"#view-\d", at)
    ends = [(text.split(" by ")[0].split(", ")[1], text.rpartition(": ")[2]) for text in texts]
    entropy = "entropy, 0 (dark) … 3"
    assert ends == [("Worst 1", "errors"), ("Worst 2", "errors"), ("Worst 2", entropy),
                    ("Worst 1", entropy)]  # fmt: skip
    assert upper[0] == lower[0] == "x 0, y 1"  # the middle of two rows, and no further
    assert upper[1:] == ["<wrong>", "≈ 3"]
    assert over[0] == "0.4" and over[1] != over[2]


_FILM = """(() => {
  const range = document.querySelector(".timeline input");
  const text = () => document.querySelector(".timeline p").textContent;
  const seen = [+range.max, text()];
  range.value = 1;
  range.dispatchEvent(new Event("input"));
  const links = [...document.querySelectorAll(".timeline a")];
  return [...seen, text(), document.querySelector("svg .now").getAttribute("x1") > 0,
    links.map((link) => link.getAttribute("href")), links.map((link) => link.hidden)];
})()"""


def test_a_time_line_leads_through_a_video(tmp_path: Path) -> None:
    report = of_video()
    path = tmp_path / "film.html"
    path.write_text(to_html({"r": report}), "utf-8")
    last, first, second, line, links, hidden = measured(path, _FILM, 1000)
    places = [i for i, item in enumerate(report.items) if item["temporal"]["tc"] is not None]
    pairs = [report.items[i] for i in places]
    assert last == len(pairs) - 1 >= 1 and line
    assert first.startswith(f"{pairs[0]['name']}, ")
    assert second.startswith(f"{pairs[1]['name']}, ")
    assert f"TC {pairs[1]['temporal']['tc']:.4g}" in second
    assert (links, hidden) == ([f"#item-{places[1]}", f"#view-{places[1]}"], [False, True])


def test_many_pictures_are_files_beside_the_page(tmp_path: Path) -> None:
    """The page shows them under its policy; a new page removes those that it does not need."""
    path = tmp_path / "a b.html"
    files = picture_files(path, False)
    assert files is not None and picture_files(path, True) is None
    files.most = 10
    report = of_classes(family="pavpu")
    write_page(path, to_html({"r": report}, Painted(), 2, files=files), files)  # type: ignore[arg-type]
    folder = tmp_path / "a b.pictures"
    names = {own.name for own in folder.iterdir()}
    assert names == set(files.files) and len(names) == 2  # equal pictures are one file
    assert "data:image" not in path.read_text("utf-8")
    eager = path.read_text("utf-8").replace(' loading="lazy"', "")
    (tmp_path / "seen.html").write_text(eager, "utf-8")
    _, console = browse(tmp_path / "seen.html", "--dump-dom")
    assert console == ""  # no picture is refused or missing
    (folder / "mine.txt").write_text("kept")
    write_page(path, to_html({"r": report}), picture_files(path, False))
    assert [own.name for own in folder.iterdir()] == ["mine.txt"]


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


@pytest.mark.parametrize("width", [500, 1024, 1440])  # a headless window is not narrower
def test_the_page_is_accessible(page: Path, width: int) -> None:
    assert measured(page, _ACCESS, width) == [0, 0, 0, 0, 0, 1, 0]


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1024, 1440])
def test_axe_finds_nothing(page: Path, tmp_path: Path, width: int, dark: bool) -> None:
    """On the page of a report with pictures, and with the box of a picture open."""
    path = tmp_path / "page.html"
    path.write_text(to_html({"r": of_classes(family="pavpu")}, Painted(), 2), "utf-8")  # type: ignore[arg-type]
    assert violations(page, width, dark) == []
    assert violations(path, width, dark, "document.querySelector('.exhibit img').click()") == []


def test_the_printed_page_is_short(page: Path) -> None:
    target = page.with_suffix(".pdf")
    browse(page, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", target.read_bytes())) <= 8
