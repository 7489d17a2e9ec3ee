"""Pages on a phone: nothing but figures and large tables scrolls sideways."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import measured_in_frames, needs_chromium
from family_reports import with_states
from typer.testing import CliRunner

from uqeval.cli.entry import app

pytestmark = needs_chromium

_WIDTH = "document.documentElement.scrollWidth"
#: The width that the first table lacks.
_TABLE = (
    "((own) => own.scrollWidth - own.clientWidth)(document.querySelector('#headlines .scroll'))"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phone")
    for name in ("ensemble", "dropout"):
        with_states(folder / name)
    return folder


def test_pages_are_as_wide_as_the_phone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    cases = [
        ("compare ensemble/report.json dropout/report.json --ci 0.9", f"[{_WIDTH}, {_TABLE}]"),
        ("report ensemble/report.json", f"[{_WIDTH}]"),
    ]
    frames = []
    for command, script in cases:
        page = folder / f"{command.split()[0]}.html"
        done = CliRunner().invoke(app, [*command.split(), "-o", page.name, "-q"])
        assert done.exit_code == 0, done.output
        frames.append((page, script, 390))
    assert measured_in_frames(*frames) == [[390, 0], [390]]
