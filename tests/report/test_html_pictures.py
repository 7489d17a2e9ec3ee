"""The pictures of a page in a browser: enlarged, overlaid, read, and made on demand."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from browser import browse, measured, needs_axe, needs_chromium, violations
from family_reports import of_classes, of_video

from uqeval.report.page.files import picture_files, write_page
from uqeval.report.page.gallery import Picture
from uqeval.report.page.html import to_html
from uqeval.usecases.gallery.paint import RIGHT, WRONG, css, heat, painted

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]


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


@pytest.mark.usefixtures("undrawn")
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


_MORE = """(() => {
  const ids = () => [...document.querySelectorAll(".exhibit")].map((own) => own.id);
  const box = document.querySelector(".lightbox");
  const seen = [ids().length, box.open, box.querySelector("p").textContent];
  box.close();
  const button = document.querySelector("#gallery > .pages button");
  seen.push(button.textContent);
  button.click();
  seen.push(ids().length, new Set(ids()).size, button.hidden);
  const last = [...document.querySelectorAll(".exhibit")].pop();
  const first = document.querySelector(".exhibit");
  const shape = (own) => [...own.querySelectorAll("*")].map((one) => one.tagName + one.className);
  seen.push(JSON.stringify(shape(last)) === JSON.stringify(shape(first)).replace("worst", "best"));
  last.querySelector("img").click();
  seen.push(box.open, location.hash === last.id.replace("gallery-item-", "#view-"));
  return seen;
})()"""


@pytest.mark.usefixtures("undrawn")
def test_further_exhibits_become_html_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link to one of them opens it; a button shows them as those in HTML."""
    monkeypatch.setattr("uqeval.report.page.html.MOST_IN_HTML", 2)
    monkeypatch.setattr("uqeval.report.page.exhibits.MOST_IN_HTML", 2)
    report = of_classes(family="pavpu")
    worst = len(report.items) - 1
    path = tmp_path / "gallery.html"
    path.write_text(to_html({"r": report}, Painted(), worst), "utf-8")  # type: ignore[arg-type]
    text = path.read_text("utf-8")
    more = json.loads(html.unescape(text.split('id="picture-data">')[1].split("</script>")[0]))[
        "more"
    ]
    assert len(more) == len(report.items) - 2 >= 1
    at = f"#view-{more[-1]['item']}"
    before, opened, title, label, after, unique, hidden, *same = measured(path, _MORE, 1000, at)
    assert (before, opened) == (2, True) and title.startswith(f"{more[-1]['name']}, Best 1")
    assert label == f"Show {len(more)} more"
    assert (after, unique, hidden) == (len(report.items), len(report.items), True)
    assert same == [True, True, True]


_LINE = """(() => {
  const box = (own) => own.getBoundingClientRect();
  const plot = box(document.querySelector("#figure-temporal svg"));
  const line = box(document.querySelector("svg .now"));
  const marks = [...document.querySelectorAll("#figure-temporal circle")].map(box);
  return [line.top - plot.top, plot.bottom - line.bottom,
    Math.min(...marks.map((own) => own.top)) - line.top,
    line.bottom - Math.max(...marks.map((own) => own.bottom))];
})()"""


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("film") / "film.html"
    path.write_text(to_html({"r": of_video()}), "utf-8")
    return path


def test_the_line_of_the_slider_ends_at_the_edges_of_the_axes(film: Path) -> None:
    """It crosses neither the legend above nor the numbers below."""
    above, below, *around = measured(film, _LINE, 1000)
    assert above > 20 and below > 20
    assert min(around) > -8  # marks may lie on an edge


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


def test_a_time_line_leads_through_a_video(film: Path) -> None:
    report = of_video()
    last, first, second, line, links, hidden = measured(film, _FILM, 1000)
    places = [i for i, item in enumerate(report.items) if item["temporal"]["tc"] is not None]
    pairs = [report.items[i] for i in places]
    assert last == len(pairs) - 1 >= 1 and line
    assert first.startswith(f"{pairs[0]['name']}, ")
    assert second.startswith(f"{pairs[1]['name']}, ")
    assert f"TC {pairs[1]['temporal']['tc']:.4g}" in second
    assert (links, hidden) == ([f"#item-{places[1]}", f"#view-{places[1]}"], [False, True])


@pytest.mark.usefixtures("undrawn")
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


@needs_axe
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [500, 1024, 1440])
def test_axe_finds_nothing_with_a_picture_enlarged(tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "page.html"
    path.write_text(to_html({"r": of_classes(family="pavpu")}, Painted(), 2), "utf-8")  # type: ignore[arg-type]
    assert violations(path, width, dark, "document.querySelector('.exhibit img').click()") == []
