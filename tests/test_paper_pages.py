"""The pages about papers: their commands run, and their pictures are those of the script."""

from __future__ import annotations

import re
import runpy
import shlex
from itertools import chain
from pathlib import Path

import pytest
from typer.testing import CliRunner

import uqeval.report.figures.style as style
from uqeval.cli.entry import app

ROOT = Path(__file__).parents[1]
PAPERS = ROOT / "docs" / "papers"
SCRIPT = runpy.run_path(str(ROOT / "docs/make_paper_figures.py"))
FIGURES: dict[str, dict[str, str]] = SCRIPT["FIGURES"]
#: How many figures and tables each paper has.
NUMBERED = {
    "mukhoti-gal": (7, 2), "ma": (5, 3), "moukari": (5, 0), "gustafsson": (35, 0),
    "varghese": (4, 3),
}  # fmt: skip


def test_pictures_are_those_of_the_script() -> None:
    made = list(chain(*FIGURES.values()))
    files = {path.name: path.stat().st_size for path in (PAPERS / "figures").iterdir()}
    assert files.keys() == set(made)
    assert sum(files.values()) < 1_500_000
    for page, pictures in FIGURES.items():
        text = (PAPERS / f"{page}.md").read_text("utf-8")
        assert re.findall(r"!\[.+\]\(figures/(.+)\)", text) == list(pictures)


@pytest.mark.parametrize("page", FIGURES)
def test_every_figure_and_table_is_in_the_first_table(page: str) -> None:
    figures, tables = NUMBERED[page]
    rows = [line for line in (PAPERS / f"{page}.md").read_text().splitlines() if line[:1] == "|"]
    cells = [line.split("|")[1] for line in rows]
    found: dict[str, set[int]] = {"Table": set(), "Figure": set()}
    for cell in cells:
        for part in re.split(r"(?=Table|Figure)", cell):
            kind = "Table" if "Table" in part else "Figure"
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", part):
                found[kind] |= set(range(int(first), int(last or first) + 1))
    assert found["Figure"] >= set(range(1, figures + 1))
    assert found["Table"] == set(range(1, tables + 1))


@pytest.mark.usefixtures("undrawn")
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On small data, in this process, without drawing; scripts of examples have their own tests."""
    runpy.run_path(str(PAPERS / "make_data.py"))["main"](tmp_path / "data", small=True)
    monkeypatch.chdir(tmp_path / "data")
    monkeypatch.setattr(style, "render", lambda *_, **__: b'<svg width="1pt" height="1pt"></svg>')
    ran: set[str] = set()
    for page, pictures in FIGURES.items():
        for line in SCRIPT["commands"](page):
            command, *arguments = shlex.split(line)
            if command == "python":
                assert Path(arguments[0]).name in ("moukari_toy.py", "ma_independent.py",
                                                   "gustafsson_toys.py")  # fmt: skip
            elif line not in ran:
                arguments += ["--repeats", "1"] if arguments[0] == "sweep" else []
                done = CliRunner().invoke(app, arguments)
                assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
                ran.add(line)
        by_uqeval = [own for own in pictures.values() if "toy" not in own and "indep" not in own]
        assert [own for own in by_uqeval if not Path(own).is_file()] == []


def test_the_python_of_the_pages_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = (PAPERS / "mukhoti-gal.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(block, "<docs>", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first == "2 0 1 1"
    assert [float(v) for v in second.split()] == pytest.approx([2 / 3, 1 / 2, 3 / 4])
