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


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("verify", "{}"), "reports"), (("gate", "r.json", "{}"), "rules"),
        (("report", "r.json", "--verdicts", "{}"), "verdicts"),
        (("pavpu", "p.zarr", "--part", "1/2", "--fitted", "{}"), "reports"),
        (("failure", "p.zarr", "--threshold-from", "{}"), "reports"),
        (("pavpu", "p.zarr", "--slices", "{}"), "tables of items"),
        (("merge", "r.json", "--slices", "{}"), "tables of items"),
        (("observe", "v.zarr", "p.zarr", "--alarm-from", "{}"), "reports"),
    ],
)  # fmt: skip
def test_other_files_at_web_servers_are_refused(
    arguments: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    url = "https://127.0.0.1:9/r.json"
    done = run_forked(*(text.format(url) for text in arguments), cwd=tmp_path)
    refused(done, url, f"{kind} are read from a disk", "Download the file")


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", "p.zarr", "--names", "{}"), ("calibration", "p.zarr", "--fit-on", "{}"),
        ("pavpu", "p.zarr", "--label-map", "{}"), ("run", "{}.yaml"),
        ("failure", "p.zarr", "--images", "--item-table", "{}"), ("schema", "{}"),
        ("report", "r.json", "--images", "{}", "--gallery", "2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scheme", ["s3", "https"])
def test_what_is_read_from_a_disk_only(
    arguments: tuple[str, ...], scheme: str, tmp_path: Path
) -> None:
    url = f"{scheme}://bucket/x"
    done = run_forked(*(text.format(url) for text in arguments), cwd=tmp_path)
    refused(done, url, "is read from a disk only; download it, and give its path")
