"""Other spellings of commands and options: they work, and a note names the documented one."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_videos
import typer.main
from command import run_forked

from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.parsing import OPTION_ALIASES, replace_options
from uqeval.keys import COMMANDS_BY_KEY
from uqeval.metrics import FAMILIES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a video and a `uqeval.yaml` that evaluates it as `temporal`."""
    small_videos.save_folder(tmp_path / "video", small_videos.video())
    text = "stores: {d: {video: video}}\nevaluate: {d: {temporal: {flow: dis}}}"
    (tmp_path / "uqeval.yaml").write_text(text)
    return tmp_path


def test_the_command_temporal_is_tc(folder: Path) -> None:
    done = run_forked("temporal", "video", "--limit", "2", "-o", "-", cwd=folder)
    assert done.status == 0 and '"mtc"' in done.stdout
    note = "note: the command `uqeval temporal` is called `uqeval tc`; use that name.\n"
    assert done.stderr.startswith(note)
    quiet = run_forked("temporal", "video", "--limit", "2", "-o", "r.json", "-q", cwd=folder)
    assert (quiet.status, quiet.stderr) == (0, "")


def test_the_key_temporal_is_tc(folder: Path) -> None:
    for arguments in (["run", "--limit", "2"], ["tc", "--limit", "2", "-o", "r.json"]):
        done = run_forked(*arguments, cwd=folder)
        assert done.status == 0, done.stderr
        note = "uqeval.yaml:2: evaluate.d.temporal: `temporal` is called `tc`; use that name."
        assert done.stderr.count(f"warning: {note}") == 1


def test_other_spellings_are_replaced_by_documented_options() -> None:
    commands = typer.main.get_command(app)
    for command, aliases in OPTION_ALIASES.items():
        parameters = commands.get_command(None, command).params  # type: ignore[attr-defined]
        names = {name for parameter in parameters for name in parameter.opts}
        assert set(aliases.values()) <= names and not set(aliases) & names
    assert set(COMMANDS_BY_KEY.values()) <= set(COMMANDS) and not COMMANDS_BY_KEY.keys() & COMMANDS
    keys = {family.in_reports: family.name for family in FAMILIES.values()}
    assert {key: name for key, name in keys.items() if key != name} == COMMANDS_BY_KEY


def test_the_note_names_the_documented_option(tmp_path: Path) -> None:
    given = ["a", "--baseline=b", "--metrics", "x", "--metrics", "y", "--", "--metrics"]
    args, notes = replace_options("compare", given)
    assert args == ["a", "--against=b", "--metric", "x", "--metric", "y", "--", "--metrics"]
    assert notes == [
        "note: the option --baseline of `uqeval compare` is called --against; use that name.",
        "note: the option --metrics of `uqeval compare` is called --metric; use that name.",
    ]
    assert replace_options("run", ["--baseline", "b"]) == (["--baseline", "b"], [])
    (tmp_path / "a.json").write_text("{}")
    for command in ("compare", "sweep"):
        done = run_forked(command, "a.json", "b.json", "--metrics", "x", cwd=tmp_path)
        assert done.status == 2 and "--metrics" in done.stderr and "called --metric" in done.stderr
