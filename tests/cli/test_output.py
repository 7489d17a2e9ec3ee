"""Output of commands: data on stdout, messages on stderr, colour and progress bars on terminals."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import pty
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from command import EXECUTABLE, Outcome, environment, run_forked, run_well
from small_stores import CLASS_NAMES, NAMES, labels, probs, save, save_complete

from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.parsing import unwrap
from uqeval.cli.streams import drop_invalid_numbers
from uqeval.records.report import Report
from uqeval.report.latex import report_to_latex

ESCAPE = "\x1b"
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(3[0-7]|9[0-7]|38;[0-9;]*)m")

#: Names that a terminal, a spreadsheet, Markdown or HTML would take for something else.
HOSTILE = ["=cmd()|' /C calc'!A0", "<script>alert(1)</script>", "a|b\nc"]
HOSTILE_CLASSES = ["[bold]x[/bold]", "<img src=x>", "pi|pe", "`tick`", "ESC\x1b[31m"]


def strict(text: str) -> dict[str, Any]:
    """JSON as the standard has it: no NaN, no infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    record = json.loads(text, parse_constant=refuse)
    assert isinstance(record, dict)
    return record


def without_time(report: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a report that are equal in two runs of the same command."""
    return {k: v for k, v in report.items() if k not in ("timing", "states", "states_digest")}


def test_the_table(complete: Path) -> None:
    outcome = run_well("pavpu", complete)
    assert outcome.stderr == ""
    assert ESCAPE not in outcome.stdout
    for word in (
        "Segmentation",
        "mIoU",
        "PAvPU",
        "Surplus",
        "accurate, certain",
        *CLASS_NAMES,
        "mixed",
    ):
        assert word in outcome.stdout
    assert "…" not in outcome.stdout  # nothing is cut in a pipe


def test_files_and_stdout_say_the_same(complete: Path, tmp_path: Path) -> None:
    run_well("pavpu", complete, "-o", "r.json", "--csv", "r.csv", "-q", cwd=tmp_path)
    text = (tmp_path / "r.json").read_text()
    assert text.startswith('{\n  "schema": "uqeval.report/1"') and text.endswith("}\n")
    report = without_time(strict(text))
    for options in (("-o", "-"), ("--format", "json", "-q")):
        outcome = run_well("pavpu", complete, *options)
        assert without_time(strict(outcome.stdout)) == report
    for options in (("--csv", "-"), ("--format", "csv", "-q")):
        outcome = run_well("pavpu", complete, *options)
        assert outcome.stdout == (tmp_path / "r.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(outcome.stdout)))
    assert [row["name"] for row in rows] == NAMES
    for row, item in zip(rows, report["items"], strict=True):
        for column in ("pavpu.pavpu", "pavpu.n_ac", "segmentation.miou", "pavpu.surplus"):
            family, field = column.split(".")
            assert float(row[column]) == item[family][field]


def test_undefined_values(tmp_path: Path) -> None:
    planes = labels()
    planes[1] = 255
    store = save(tmp_path / "s.zarr", {"probs": probs(), "labels": planes}, {"names": NAMES})
    outcome = run_well("pavpu", store, "-o", "-", "--csv", "r.csv", cwd=tmp_path)
    item = strict(outcome.stdout)["items"][1]
    assert item["pavpu"]["pavpu"] is None and item["segmentation"]["miou"] is None
    row = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))[1]
    assert row["pavpu.pavpu"] == "" and row["pavpu.n_ac"] == "0"
    assert outcome.stderr == "warning: 1 of 3 items have void labels only: bonn.\n"


def test_markdown(complete: Path) -> None:
    outcome = run_well("pavpu", complete, "--format", "markdown", "--limit", "2")
    lines = outcome.stdout.splitlines()
    assert lines[0] == f"## uqeval: {complete}"
    assert "**Partial:** not all items were evaluated." in lines
    assert "- partial: 2 of 3 items (--limit)." in lines
    tables = [line for line in lines if line.startswith("|")]
    assert any(line.startswith("| road | 0.") for line in tables)
    assert sum("--:" in line for line in tables) == 4


def test_quiet_prints_nothing(complete: Path, tmp_path: Path) -> None:
    outcome = run_well("pavpu", complete, "--quiet", "--limit", "1", "-o", "r.json", cwd=tmp_path)
    assert (outcome.stdout, outcome.stderr) == ("", "")
    assert Report.load(tmp_path / "r.json").warnings


def test_messages_go_to_stderr(complete: Path) -> None:
    outcome = run_well("pavpu", complete, "--limit", "1", "--format", "json")
    assert strict(outcome.stdout)["partial"]
    assert outcome.stderr == "warning: partial: 1 of 3 items (--limit).\n"


def test_pipes_and_links_as_outputs(complete: Path, tmp_path: Path) -> None:
    outcome = run_well("pavpu", complete, "-o", "/dev/stdout", "-q", cwd=tmp_path)
    assert strict(outcome.stdout)["states"] is None
    (tmp_path / "real").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "real/r.json")
    run_well("pavpu", complete, "-o", "link.json", "--no-states", "-q", cwd=tmp_path)
    assert (tmp_path / "link.json").is_symlink()
    assert strict((tmp_path / "real/r.json").read_text())["schema"] == "uqeval.report/1"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "real"]


def test_files_are_as_open_as_the_umask_lets_them(complete: Path, tmp_path: Path) -> None:
    command = f"umask 027; exec {EXECUTABLE} pavpu {complete} -q -o r.json --csv r.csv"
    subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment(), check=True)
    modes = {file.name: oct(file.stat().st_mode & 0o777) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(["r.json", "r.csv", "r.states.zip"], "0o640")


def test_replaced_files_keep_their_modes(complete: Path, tmp_path: Path) -> None:
    """Such as a report that only its owner may read."""
    command = ("pavpu", complete, "-q", "-o", "r.json", "--csv", "r.csv")
    run_well(*command, cwd=tmp_path)
    modes = {"r.json": 0o600, "r.csv": 0o664, "r.states.zip": 0o640}
    for name, mode in modes.items():
        (tmp_path / name).chmod(mode)
    run_well(*command, "--limit", "2", cwd=tmp_path)
    assert {f.name: f.stat().st_mode & 0o777 for f in tmp_path.iterdir()} == modes


# ---- names that mean harm


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("hostile") / "<b>[red].zarr"
    return save_complete(store, names=HOSTILE, class_names=HOSTILE_CLASSES)


def test_hostile_names_in_a_table(hostile: Path) -> None:
    outcome = run_well("pavpu", hostile)
    for name in HOSTILE_CLASSES[:4]:
        assert name in outcome.stdout
    assert ESCAPE not in outcome.stdout and "ESC\\x1b[31m" in outcome.stdout


def test_hostile_names_in_markdown(hostile: Path) -> None:
    text = run_well("pavpu", hostile, "--format", "markdown").stdout
    assert "&lt;b>\\[red].zarr" in text and "| &lt;img src=x>" in text
    assert "<img" not in text and "<b>" not in text and ESCAPE not in text
    assert "| pi\\|pe |" in text and "| \\`tick\\` |" in text and "| \\[bold]x" in text
    table = text.split("### By class of patch")[1].splitlines()
    rows = [line for line in table if line.startswith("|")]
    columns = {len(re.split(r"(?<!\\)\|", row)) for row in rows}
    assert len(rows) == 2 + 6 and len(columns) == 1


def test_hostile_names_in_csv_and_json(hostile: Path) -> None:
    text = run_well("pavpu", hostile, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["name"] for row in rows] == ["'" + HOSTILE[0], *HOSTILE[1:]]
    report = strict(run_well("pavpu", hostile, "--format", "json").stdout)
    assert [item["name"] for item in report["items"]] == HOSTILE
    assert [row["name"] for row in report["results"]["pavpu"]["per_class"][:5]] == HOSTILE_CLASSES


def test_hostile_names_in_warnings(tmp_path: Path) -> None:
    planes = labels()
    planes[0] = 255
    store = save(tmp_path / "s.zarr", {"probs": probs(), "labels": planes},
                 {"names": ["[red]a[/]\x1b[2J", "b", "c"]})  # fmt: skip
    outcome = run_well("pavpu", store, "--format", "csv")
    assert "[red]a[/]" in outcome.stderr and ESCAPE not in outcome.stderr


def test_names_between_colons_are_no_emoji(tmp_path: Path) -> None:
    """In tables, warnings, lines of a run and verifications."""
    planes = labels()
    planes[0] = 255
    classes = [":bus:", "car", *CLASS_NAMES[2:]]
    store = save(tmp_path / "s.zarr", {"probs": probs(), "labels": planes},
                 {"names": [":cat:", "b", "c"], "class_names": classes})  # fmt: skip
    report = tmp_path / "r.json"
    outcome = run_well("pavpu", store, "--region", "class:car", "-o", report)
    assert ":bus:" in outcome.stdout and ":cat:" in outcome.stderr
    outcome = run_well("verify", report, store)
    assert "class:car:" in outcome.stdout
    outcome = run_well("run", store, "-o", tmp_path / "out")
    assert ":cat:" in outcome.stderr


def test_a_locale_that_cannot_say_it(complete: Path, tmp_path: Path) -> None:
    store = save_complete(tmp_path / "s.zarr", class_names=["道路", "b", "c", "d", "é"])
    for shown in ("table", "csv"):
        outcome = run_well("pavpu", store, "--format", shown, env={"PYTHONIOENCODING": "ascii"})
        assert outcome.stdout.isascii()
        assert shown == "csv" or "\\u9053\\u8def" in outcome.stdout


# ---- terminals


def on_a_terminal(*arguments: str | Path, stdout: bool = False, **env: str) -> Outcome:
    """Run a command with a terminal as its stderr, and as its stdout too if asked for."""
    master, slave = pty.openpty()
    # A file, not a pipe: nobody reads stdout until the terminal is done, and a pipe would be full.
    written = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the command has ended
    process = subprocess.Popen(
        [str(EXECUTABLE), *map(str, arguments)], env=environment(**{"COLUMNS": "100", **env}),
        stdout=slave if stdout else written, stderr=slave, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(slave)
    shown = bytearray()
    while True:
        try:
            data = os.read(master, 65536)
        except OSError as error:  # how Linux says that nobody has the terminal any more
            assert error.errno == errno.EIO
            break
        if not data:
            break
        shown += data
    os.close(master)
    process.wait()
    with written:
        written.seek(0)
        data = written.read()
    return Outcome(process.returncode, data.decode(), shown.decode())


def test_progress_only_on_a_terminal(complete: Path) -> None:
    outcome = on_a_terminal("pavpu", complete, "--format", "json", "--workers", "1")
    assert outcome.status == 0
    assert "pass 1" in outcome.stderr and "items" in outcome.stderr and "/3" in outcome.stderr
    assert without_time(strict(outcome.stdout))["schema"] == "uqeval.report/1"
    assert ESCAPE not in outcome.stdout
    assert "pass 1" not in run_well("pavpu", complete, "--format", "json").stderr
    quiet = on_a_terminal("pavpu", complete, "--quiet", "--limit", "2")
    assert (quiet.status, quiet.stdout, quiet.stderr) == (0, "", "")


def test_a_terminal_gets_no_control_characters_of_names(tmp_path: Path) -> None:
    name = "a\x1b]0;title\x07"
    store = save(tmp_path / "s.zarr", {"probs": probs(), "labels": labels()},
                 {"names": [name, "b", "c"]})  # fmt: skip
    command = ("failure", store, "--format", "csv", "--quiet")
    assert name in run_well(*command).stdout
    shown = on_a_terminal(*command, stdout=True).stderr
    assert "a\\x1b]0;title\\x07," in shown and name not in shown


def test_a_bar_is_gone_before_an_error(tmp_path: Path) -> None:
    values = probs()
    values[2, 0, 0, 0, 0] = -1
    store = save(tmp_path / "bad.zarr", {"probs": values, "labels": labels()})
    outcome = on_a_terminal("pavpu", store, COLUMNS="300")
    assert outcome.status == 2
    assert "Traceback" not in outcome.stderr and f"{ESCAPE}[?25h" in outcome.stderr
    assert outcome.stderr.rstrip().endswith("`uqeval convert IN OUT.zarr --kind logits`.")


def test_colour_only_on_a_terminal_that_wants_it(complete: Path) -> None:
    plain = on_a_terminal("pavpu", complete, "--limit", "2", stdout=True)
    assert COLOUR.search(plain.stderr)
    without = on_a_terminal("pavpu", complete, "--limit", "2", stdout=True, NO_COLOR="1")
    assert "mIoU" in without.stderr and not COLOUR.search(without.stderr)
    narrow = on_a_terminal("pavpu", complete, "-o", "/dev/null", stdout=True, COLUMNS="60")
    lines = re.split("[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", narrow.stderr))
    assert max(map(len, lines)) <= 60


def test_sizes_of_a_terminal_that_are_unknown(complete: Path) -> None:
    """They count as not set; with COLUMNS=0, a table has no column."""
    command = ("pavpu", complete, "--limit", "2", "--workers", "1")
    tables = []
    for columns in ("80", "0"):
        outcome = on_a_terminal(*command, stdout=True, COLUMNS=columns)
        assert outcome.status == 0, outcome.stderr
        tables.append(outcome.stderr[outcome.stderr.index("Patches") :])
    assert tables[0] == tables[1]
    usual = run_well("schema", "--help", cwd=complete.parent)
    for text in ("0", "abc"):
        both = {"COLUMNS": text, "TERMINAL_WIDTH": text}
        outcome = run_well("schema", "--help", cwd=complete.parent, env=both)
        assert outcome.stdout == usual.stdout, text


def test_a_number_of_threads_that_numba_refuses(complete: Path) -> None:
    run_well("pavpu", complete, "--limit", "1", "-q", env={"NUMBA_NUM_THREADS": "0"})


@pytest.mark.parametrize("name", ["COLUMNS", "LINES", "TERMINAL_WIDTH", "NUMBA_NUM_THREADS"])
def test_numbers_of_libraries_are_dropped_unless_they_are_positive(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("0", "-1", "-5", "abc", "", "²", "9" * 8, "9" * 5000):
        monkeypatch.setenv(name, text)
        drop_invalid_numbers()
        assert name not in os.environ, text
    monkeypatch.setenv(name, "80")
    drop_invalid_numbers()
    assert os.environ[name] == "80"


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    listed: Any = typer.main.get_command(app)
    for name, line in COMMANDS.items():
        command = listed.get_command(None, name)
        assert command.help.partition("\n")[0] == line, name


def test_the_short_help_leads_to_all_options() -> None:
    short = run_well("pavpu", "--help").stdout
    assert "--window" in short and "--top-k" not in short
    assert "more options: uqeval pavpu --help-all" in " ".join(short.split())
    assert "--group-by" in run_well("run", "--help").stdout
    everything = run_well("pavpu", "--help-all").stdout
    assert "--top-k" in everything and "--help-all" not in everything
    assert not re.findall(r"<(bool|str|int|float|list)\b", everything)
    assert run_well("gate", "--help-all").stdout == run_well("gate", "--help").stdout


@cache
def help_of(command: str, option: str = "--help") -> str:
    """What a command prints as its help."""
    done = run_forked(command, option, cwd=Path(tempfile.gettempdir()))
    assert done.status == 0
    return done.stdout


def test_the_short_help_names_no_option_that_it_leaves_out() -> None:
    sentence = "With --annotator-folders it is a folder"
    whole, short = (
        " ".join(help_of("annotators", option).split()) for option in ("--help-all", "--help")
    )
    assert sentence in whole and sentence not in short
    assert "the axes item, annotator, y and x." in short
    listed: Any = typer.main.get_command(app)
    for name in COMMANDS:
        about, _, options = help_of(name).partition("╭─ Options")
        flags = {flag for own in listed.get_command(None, name).params for flag in own.opts}
        named = flags & {*re.findall("--[a-z-]+", about.partition("Example")[0])}
        assert all(f"{flag} " in options for flag in named), (name, named)


def test_the_short_help_of_failure_shows_the_options_of_its_two_families() -> None:
    """Its description speaks of --images."""
    short = run_well("failure", "--help").stdout
    for option in ("--images ", "--risk ", "--threshold "):
        assert f"│ {option}" in short, option


def test_the_short_help_of_ood_shows_the_option_of_its_second_form() -> None:
    """Its description speaks of --ood-mask."""
    assert "│ --ood-mask " in run_well("ood", "--help").stdout


def test_the_help_of_each_command_fits_a_terminal() -> None:
    heights = {}
    for name in COMMANDS:
        heights[name] = len(help_of(name).rstrip().splitlines())
        assert max(map(len, help_of(name).splitlines())) <= 80, name
    assert max(heights.values()) <= 60, heights
    for name in ("pavpu", "inspect", "report"):  # of a family, with others, of many
        everything = help_of(name, "--help-all")
        listed: Any = typer.main.get_command(app)
        options = listed.get_command(None, name).params
        longest = [max(own.opts, key=len) for own in options if own.opts[0][0] == "-"]
        assert all(own in everything for own in longest if own != "--help-all"), name


def test_the_terminal_wraps_the_paragraphs_of_the_help() -> None:
    assert unwrap("Short.\n\nA paragraph\nof two lines.") == "Short.\n\nA paragraph of two lines."
    lines = [line.strip() for line in run_well("compare", "--help").stdout.splitlines()]
    assert "do not hide a" not in lines  # the end of a line of the docstring


def test_a_report_as_latex(complete: Path, tmp_path: Path) -> None:
    done = run_well("pavpu", complete, "--format", "latex", "-o", tmp_path / "r.json")
    report = Report.load(tmp_path / "r.json")
    assert done.stdout == report_to_latex(report)
    assert done.stdout.count("\\begin{tabular}") == done.stdout.count("\\bottomrule") > 1
    assert f"{report.results['pavpu']['pavpu']:.4f}" in done.stdout
