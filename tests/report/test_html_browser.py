"""The page in a browser: it works, asks nobody for anything, and is light or dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from browser import browse, needs_chromium, screenshot
from family_reports import with_states
from PIL import Image, ImageStat

from uqeval.report import Report
from uqeval.report.html import to_html
from uqeval.statistics.behind import behind

pytestmark = [needs_chromium, pytest.mark.xdist_group("chromium")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    made = with_states(path.parent / "made")
    report = Report.load(made)
    path.write_text(to_html({"r": report}, behind=behind(made, report)), "utf-8")
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
