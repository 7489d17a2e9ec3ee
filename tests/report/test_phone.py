"""Pages on a phone: nothing but figures and large tables scrolls sideways."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import measured_on_a_phone, needs_chromium
from family_reports import with_states
from typer.testing import CliRunner

from uqeval.cli.entry import app

pytestmark = needs_chromium

_WIDTH = "page.documentElement.scrollWidth"
#: The width that the first table lacks.
_TABLE = "((own) => own.scrollWidth - own.clientWidth)(page.querySelector('#headlines .scroll'))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phone")
    for name in ("ensemble", "dropout"):
        with_states(folder / name)
    return folder


@pytest.mark.parametrize(
    ("command", "script", "expected"),
    [
        ("compare ensemble/report.json dropout/report.json --ci 0.9", f"[{_WIDTH}, {_TABLE}]",
         [390, 0]),
        ("report ensemble/report.json", f"[{_WIDTH}]", [390]),
    ],
)  # fmt: skip
def test_a_page_is_as_wide_as_the_phone(
    command: str, script: str, expected: list[int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [*command.split(), "-o", "page.html", "-q"])
    assert done.exit_code == 0, done.output
    assert measured_on_a_phone(folder / "page.html", script) == expected
