"""Run a command in its own process; return its status, streams and files."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import forked
import pytest

from uqeval.errors import UqevalError

EXECUTABLE = Path(sys.executable).parent / "uqeval"

#: The timeout of a run in seconds.
TIMEOUT = 100

#: The folder with a file for each command that the executable has run; set by `conftest.py`.
begun: Path | None = None


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    status: int
    stdout: str
    stderr: str
    given: tuple[str, ...] = ()


def environment(**changes: str) -> dict[str, str]:
    """Return the tests' environment without variables that change the format of the output, or make
    each process compile all modules again.
    """
    dropped = (
        "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "CLICOLOR_FORCE",
        "PYTHONDONTWRITEBYTECODE",
    )  # fmt: skip
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    return kept | {"TERM": "xterm-256color"} | changes


def obey_modes() -> None:
    """Let the program that is about to start obey the modes of files, as root too (Linux)."""
    drop_from_bounding_set, dac_override, dac_read_search = 24, 1, 2
    for right in (dac_override, dac_read_search) if os.geteuid() == 0 else ():
        if ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0):
            raise OSError("root cannot give up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH")


def run_uqeval(
    *arguments: str | Path,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Outcome:
    """Run `uqeval ARGUMENTS`, its streams being pipes.

    The first run of every command starts the executable, and so does whatever depends on how a
    process begins; further runs are forked from a process that has loaded all that they need, and
    draw no figures on pages.
    """
    given, changes = [*map(str, arguments)], env or {}
    name = given[0] if given else ""
    alike = not options and all(k == "TMPDIR" or not value for k, value in changes.items())
    if alike and not _begins(name):
        own = environment(**changes)
        return Outcome(*forked.parent().run(given, cwd, own, TIMEOUT), given=tuple(given))
    done = subprocess.run(
        [str(EXECUTABLE), *given], cwd=cwd, env=environment(**changes), capture_output=True,
        text=True, check=False, timeout=TIMEOUT, **options,
    )  # fmt: skip
    return Outcome(done.returncode, done.stdout, done.stderr, tuple(given))


def _begins(name: str) -> bool:
    """Whether a command runs for the first time, in any process of the tests."""
    assert begun is not None
    try:
        (begun / f"begun-{zlib.crc32(name.encode())}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def run_forked(*arguments: str | Path, cwd: Path) -> Outcome:
    """Run `uqeval ARGUMENTS` in a fork from the first time on: for tests of what is read, which do
    not depend on how a process begins."""
    given = [*map(str, arguments)]
    return Outcome(*forked.parent().run(given, cwd, environment(), TIMEOUT))


def run_script(script: str, cwd: Path) -> Outcome:
    """Run `python -c SCRIPT` in a fork of a process that has loaded all that commands need."""
    return Outcome(
        *forked.parent().run(["-c", script], cwd, environment(), 2 * TIMEOUT, figures=True)
    )


def run_unread(reader: str, *arguments: str | Path, cwd: Path) -> Outcome:
    """Run `uqeval ARGUMENTS` with an unusable stream; see `forked.Parent.run`."""
    given = [*map(str, arguments)]
    return Outcome(*forked.parent().run(given, cwd, environment(), TIMEOUT, reader))


def run_watched(
    watch: Callable[[int], None], *arguments: str | Path, cwd: Path | None = None
) -> Outcome:
    """Run `uqeval ARGUMENTS` in a fork while `watch` has its process id, to send it signals."""
    given = [*map(str, arguments)]
    return Outcome(*forked.parent().run(given, cwd, environment(), TIMEOUT, watch=watch))


def run_well(*arguments: str | Path, **options: Any) -> Outcome:
    """Run a command, and assert that it succeeds."""
    outcome = run_uqeval(*arguments, **options)
    assert outcome.status == 0, outcome.stderr
    assert "Traceback" not in outcome.stderr
    return outcome


def as_json(*arguments: str | Path, **options: Any) -> dict[str, Any]:
    """Run a command, and return the record that it prints with `--format json`."""
    record = json.loads(run_well(*arguments, "--format", "json", **options).stdout)
    assert isinstance(record, dict)
    return record


def options_by_key(report: dict[str, Any], *names: str) -> dict[str, tuple[Any, ...]]:
    """The values of some options of each variant in a report; segmentation has no options."""
    settings = {key: own for key, own in report["settings"].items() if key != "segmentation"}
    return {key: tuple(own[name] for name in names) for key, own in settings.items()}


#: A command for the user, or a flag of the command that runs.
_NAMED = re.compile(r"uqeval [a-z]+ [^;]*?(?:[.,:] |`|$)|`[a-z]+ [^`]*`|(?<![\w-])--[a-z][a-z-]+")
#: Commands that read what others wrote: their messages name flags with which to evaluate again.
_OF_RESULTS = {"compare", "evidence", "gate", "merge", "report", "select", "verify"}
#: Flags that each command has.
_OF_ALL = {"--help", "--help-all"}


def unknown_flags(given: Sequence[str], message: str) -> list[str]:
    """Return the flags in a message that the command does not have, except those it was given."""
    if not given or given[0] not in _flags().keys() - _OF_RESULTS:
        return []
    known = _flags()[given[0]] | _OF_ALL | {word.partition("=")[0] for word in given}
    flags = [flag for flag in _NAMED.findall(message) if flag.startswith("--")]
    return [flag for flag in flags if flag not in known]


@cache
def _flags() -> dict[str, set[str]]:
    """Return the flags of each command, as they are pinned."""
    path = Path(__file__).parents[1] / "golden" / "options.json"
    return {
        command: {name for option in options.values() for name in option["names"]}
        for command, options in json.loads(path.read_text()).items()
    }


def refused(
    act: Outcome | Callable[[], object], *words: str, error: type[Exception] = UqevalError,
    printed: bool = False,
) -> str:  # fmt: skip
    """Assert that a command or a call was refused with a message that has all the words.

    A command ends with status 2, without a traceback, and prints nothing to stdout, unless
    `printed`; a call raises `error`. Returns the message, that of a command on one line.
    """
    if isinstance(act, Outcome):
        assert act.status == 2, act
        assert printed or act.stdout == ""
        assert "Traceback" not in act.stderr
        message = " ".join(act.stderr.split())
        unknown = unknown_flags(act.given, message)
        assert not unknown, f"uqeval {act.given[0]} has no {unknown}, named in {message!r}"
    else:
        with pytest.raises(error) as caught:
            act()
        message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    return message


def pavpu_refused(folder: Path, *arguments: str | Path, says: Sequence[str] = ()) -> str:
    """Assert that `uqeval pavpu ARGUMENTS` is refused and writes nothing, neither its outputs nor
    temporary files; both would be in `folder`.

    Returns the message, which has all words of `says`.
    """
    out, temporary = folder / "out", folder / "temporary"
    out.mkdir()
    temporary.mkdir()
    outcome = run_uqeval(
        "pavpu", *arguments, "-o", "report.json", "--csv", "items.csv",
        cwd=out, env={"TMPDIR": str(temporary)},
    )  # fmt: skip
    message = refused(outcome, *says)
    assert message.startswith("uqeval: ") and message.count("uqeval: ") == 1
    assert not list(out.iterdir()) and not list(temporary.iterdir())
    return message
