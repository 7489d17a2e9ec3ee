"""A sample of `benchmarks/random_commands.py`: commands on reports of random data."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_commands_on_random_reports_end_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import random_commands

    found = list(random_commands.cases(4, seed=112710))
    assert [text for _, _, problems in found for text in problems or ()] == []
    assert sum(problems is not None for _, _, problems in found) >= 3


def test_a_bad_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[2])
    from benchmarks import random_commands

    page = tmp_path / "page.html"
    page.write_text('<p id="a"><p id="a"><a href="#b"></a><img src="c.png"><zz>', "utf-8")
    assert list(random_commands.Page(page).problems()) == [
        "two ids a", "a name is not escaped", "dead link #b", "no file c.png",
    ]  # fmt: skip
