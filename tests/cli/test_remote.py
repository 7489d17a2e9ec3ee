"""URLs in place of reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import refused, run_forked


@pytest.mark.parametrize(
    "arguments",
    [("select", "{}"), ("compare", "a.json", "{}"), ("gate", "{}", "r.yaml"), ("report", "{}"),
     ("merge", "{}", "b.zip", "-o", "m.json"), ("gate", "a.json", "r.yaml", "--baseline", "{}")],
)  # fmt: skip
def test_reports_at_web_servers_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/r.json"
    done = run_forked(*(text.format(url) for text in arguments), cwd=tmp_path)
    refused(done, url, "reports are read from a disk", "Download the file")
