"""Run commands on mutants, each in a fork of a process that has loaded everything.

A mutant passes if the command ends within 10 s of CPU time, within its memory and without a
traceback: with status 2 and a message, or with a result. `python campaign.py FOLDER COUNT SEED
[KIND …]` prints a JSON line for each kind of files, with the mutants that are not sound.
KIND:NUMBER is one mutant alone. `python campaign.py FOLDER EVERY TURNS leaves` runs
`leaf_campaign`.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import forged
import leaves
import mutants

from uqeval.metrics import METRICS

#: The ranges of all scores, from unchanged reports.
RANGES = {metric.id: metric.range for metric in METRICS}

#: Limits of CPU seconds, and of wall seconds, because the machine may be busy.
SECONDS, PATIENCE = 10.0, 240.0
#: Few draws, because the test is not about resampling.
DRAWS = 100
#: `--memory`, and the additional memory of a command beside that of the process it is forked from.
MOST_BYTES = 64 * 10**6 + 200 * 10**6
#: A message that repeats a character or a word more often than this was copied from the mutant.
_REPEATED = re.compile(r"A{201}|(?:a b ){51}|(?:\\\[){201}|\x1b\[31m|\x07")


@dataclass
class Ended:
    """How a command ended."""

    status: int
    seconds: float
    bytes: int
    stdout: str
    stderr: str

    def problem(self, command: str) -> str | None:
        """Return the problem in a few words; empty if there is none."""
        if self.seconds >= SECONDS:
            return f"runs for more than {SECONDS:.0f} s"
        if "Traceback" in self.stderr or self.status == 3:
            return f"status {self.status}, a traceback: {self.stderr.strip().splitlines()[-2:]}"
        if self.status not in (0, 1, 2) or (self.status == 1 and "gate" not in command):
            return f"status {self.status}"
        if self.bytes > MOST_BYTES:
            return f"{self.bytes / 1e6:.0f} MB more"
        if self.status == 2 and not self.stderr.strip() and "inspect" not in command:
            return "status 2 without a message"
        shown = self.stderr + (self.stdout if "inspect" in command else "")
        if _REPEATED.search(self.stderr) or forged.repeated(shown):
            return "a message repeats too much, or acts on the terminal"
        if "Warning" in self.stderr:
            return f"a warning of a library: {self.stderr[-300:]}"
        if self.status == 0 and _prints_report(command):
            return _unsound(self.stdout)
        return None


def _prints_report(command: str) -> bool:
    return (" -o -" in command or "--format json" in command) and "gate" not in command


def _unsound(text: str) -> str | None:
    """Return an impossible value of a report, such as a score outside its range; None if there is
    none.
    """
    try:
        report = json.loads(text, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError, RecursionError):
        return f"no report on stdout: {text[:100]!r}"
    for address in report["metrics"]:
        family, _, name = address.partition(".")
        low, high = RANGES.get(address, (None, None))  # a mutant may say another
        value: Any = report["results"].get(family, {})
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            below = low is not None and value < low - 1e-6
            if below or (high is not None and value > high + 1e-6):
                return f"{address} is {value}, outside of {low} to {high}"
    return None


@dataclass
class Tally:
    """The outcomes of the mutants of one kind."""

    kind: str
    mutants: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    bytes: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)

    def count(
        self, ended: Ended, number: int, file: str, command: str, more: str | None = None
    ) -> None:
        """Count how a command ended on one mutant; `more`: a problem that its end does not show."""
        self.mutants += 1
        self.statuses[str(ended.status)] = self.statuses.get(str(ended.status), 0) + 1
        self.seconds = max(self.seconds, ended.seconds)
        self.bytes = max(self.bytes, ended.bytes)
        if problem := ended.problem(command) or more:
            found = {"number": number, "file": file, "command": command, "problem": problem}
            self.problems.append(found | {"stderr": ended.stderr[-1500:]})


def load() -> None:
    """Load and compile everything that a command needs, before any fork."""
    import forked

    from uqeval.statistics import units_of_runs

    mock.patch.object(units_of_runs, "DRAWS", DRAWS).start()
    os.environ |= {"NO_COLOR": "1", "GITHUB_ACTIONS": "", "COLUMNS": "200"}
    forked.load()


def run(command: str, folder: Path) -> Ended:
    """Run a command in a fork, and kill it if it takes too long."""
    streams = [tempfile.TemporaryFile(dir=folder.parent) for _ in range(2)]  # noqa: SIM115
    began, inherited = time.monotonic(), _resident()
    pid = os.fork()
    if pid == 0:
        _be(command, folder, [stream.fileno() for stream in streams])
    ended, status = 0, 0
    usage = None
    while not ended and time.monotonic() - began < PATIENCE:
        ended, status, usage = os.wait4(pid, os.WNOHANG)
        if not ended:
            time.sleep(0.002)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    assert usage is not None
    seconds = usage.ru_utime + usage.ru_stime if ended else PATIENCE
    texts = []
    for stream in streams:
        stream.seek(0)
        texts.append(stream.read().decode("utf-8", "replace"))
        stream.close()
    more = max(usage.ru_maxrss * 1024 - inherited, 0)
    return Ended(os.waitstatus_to_exitcode(status), seconds, more, *texts)


def _resident() -> int:
    """Return the bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _be(command: str, folder: Path, streams: list[int]) -> None:
    """Be `uqeval COMMAND`; does not return."""
    try:
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(folder)
        tempfile.tempdir = None
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(SECONDS) + 1, int(SECONDS) + 1))
        sys.argv = ["uqeval", *command.split()]
        _before = sys.stdout, sys.stderr  # without a reference they would close 1 and 2
        sys.stdout = open(1, "w")  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
        from uqeval.cli.start import main

        if ".yaml -o out/run" in command:  # pages take most of the time, and other kinds draw them
            import forked

            forked.draw_nothing(setattr)
        main()
    except SystemExit as leaving:
        sys.stdout.flush()
        os._exit(leaving.code if isinstance(leaving.code, int) else 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(3)
    os._exit(0)


def campaign(folder: Path, count: int, seed: int, kinds: Collection[str] = ()) -> Iterator[Tally]:
    """Run `count` mutants, spread over all kinds, or those given; yields what became of each.

    Of a kind `states:105` only that mutant is run.
    """
    base, work = folder / "base", folder / "work"
    base.mkdir(parents=True)
    mutants.build(base)
    shutil.copytree(base, work)
    chosen: dict[str, set[int]] = {}
    for kind, _, digits in (text.partition(":") for text in kinds):
        chosen.setdefault(kind, set()).update([int(digits)] if digits else [])
    known = [target.kind for target in mutants.TARGETS]
    if unknown := set(chosen) - set(known):
        sys.exit(f"no kind {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    targets = [target for target in mutants.TARGETS if not kinds or target.kind in chosen]
    weights = [len(target.commands) ** 0.5 * len(target.files) ** 0.5 for target in targets]
    for target, weight in zip(targets, weights, strict=True):
        tally = Tally(target.kind)
        share = range(max(round(count * weight / sum(weights)), 1))
        kept = Kept(work, target.prepare)
        for number in sorted(chosen.get(target.kind, ())) or share:
            rng = random.Random(f"{seed}/{target.kind}/{number}")
            files = kept.files_of(target)
            file = files[number % len(files)]
            command = _command(target, file, rng)
            expected = kept.results(command) if target.same else None
            target.change(work, file, rng)
            before = _states(work, command)
            ended = run(command, work)
            problem = None
            if _states(work, command) != before:
                problem = "the command changes its inputs"
            elif expected and ended.status == 0 and _results(ended.stdout) != expected:
                problem = "other results than without the change"
            tally.count(ended, number, file, command, problem)
            kept.restore()
            _restore(base, work, file)
        kept.remove()
        yield tally


class Kept:
    """What earlier runs have left in `kept/` for later ones, such as a cache.

    It belongs to the folder of the inputs, whose times of change it holds, so it is made there.
    """

    def __init__(self, work: Path, commands: tuple[str, ...]) -> None:
        self._work, self._folder = work, work / "kept"
        if commands:
            time.sleep(0.05)  # files that have changed just now are not cached
            _run_once(work, *commands)
        self._data = {p: p.read_bytes() for p in sorted(self._folder.rglob("*")) if p.is_file()}
        self._results: dict[str, Any] = {}

    def files_of(self, target: mutants.Target) -> list[str]:
        """Return the files to change, with patterns replaced by the files of `kept/`."""
        kept = [path.relative_to(self._work) for path in self._data]
        return [
            file
            for pattern in target.files
            for file in ([str(own) for own in kept if own.match(pattern)] or [pattern])
        ]

    def results(self, command: str) -> Any:
        """Return the results of a command on unchanged files."""
        if command not in self._results:
            ended = run(command, self._work)
            assert ended.status == 0, ended.stderr
            self._results[command] = _results(ended.stdout)
            self.restore()
        return self._results[command]

    def restore(self) -> None:
        """Make the folder what it was."""
        if self._data:
            shutil.rmtree(self._folder)
        for path, data in self._data.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def remove(self) -> None:
        """Empty the folder."""
        shutil.rmtree(self._folder)
        self._folder.mkdir()


def _results(text: str) -> Any:
    """Return the numbers of a report."""
    report = json.loads(text)
    return [report[key] for key in ("results", "items", "numerics")]


def _states(work: Path, command: str) -> dict[str, tuple[int, int]]:
    """Return size and time of change of each file that a command must not change."""
    named = re.findall(r"-o (\S+?)(?:\.json)?(?= |$)", command)
    outputs = tuple(str(work / name) for name in (*named, "out", "kept") if name != "-")
    stats = {str(path): path.stat() for path in work.rglob("*") if path.is_file()}
    return {
        path: (stat.st_size, stat.st_mtime_ns)
        for path, stat in stats.items()
        if not path.startswith(outputs)
    }


def leaf_campaign(folder: Path, turns: int, every: int = 1) -> Iterator[Tally]:
    """Replace every entry of reports, verdicts and states by hostile values, `turns` times with
    another value and another command; or only every so-many-th. Yields what became of each file."""
    base, work = folder / "base", folder / "work"
    base.mkdir(parents=True)
    mutants.build(base)
    _run_once(base, "selftest -q -o selftest.json", "verify r.json c3.zarr -q -o verification.json")
    shutil.copytree(base, work)
    tally = Tally("")
    for turn in range(turns):
        for leaf in islice(leaves.leaves(base, turn), turn % every, None, every):
            turned = leaf.number + leaf.number // len(
                leaves.VALUES
            )  # each value meets each command
            command = leaf.commands[turned % len(leaf.commands)]
            leaf.change(work)
            ended = run(command, work)
            entry = (
                re.sub(r"\w+(?=$|\.json$)", "*", leaf.entry) if "/" in leaf.entry else leaf.entry
            )
            if tally.kind != f"{leaf.file} {entry}":
                if tally.kind:
                    yield tally
                tally = Tally(f"{leaf.file} {entry}")
            tally.count(ended, leaf.number, str(leaf), command)
            _restore(base, work, leaf.file)
    yield tally


def _run_once(folder: Path, *commands: str) -> None:
    for command in commands:
        ended = run(command, folder)
        assert ended.status == 0, ended.stderr


def _command(target: mutants.Target, file: str, rng: random.Random) -> str:
    """One of the commands that read a file, if any reads just this one."""
    first = file.split("/")[0].split(".")[0]
    own = [c for c in target.commands if re.search(rf"(?<!\w){first}(?!\w)", c)]
    return rng.choice(own or target.commands)


def _restore(base: Path, work: Path, file: str) -> None:
    """Make the inputs what they were, and remove outputs."""
    if (base / file).exists():
        shutil.copy2(base / file, work / file)
    for path in filter(Path.is_file, base.iterdir()):  # a shard writes over its states
        own = work / path.name
        if not own.exists() or own.stat().st_mtime_ns != path.stat().st_mtime_ns:
            shutil.copy2(path, own)
    for entry in (work / "out").iterdir():
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if len(list(work.iterdir())) != len(list(base.iterdir())):
        shutil.rmtree(work)
        shutil.copytree(base, work)


def main() -> None:
    """Print what became of each kind, a JSON line each."""
    place, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    load()
    if sys.argv[4:] == ["leaves"]:
        found = leaf_campaign(place, turns=seed, every=count)
    else:
        found = campaign(place, count, seed, sys.argv[4:])
    for tally in found:
        print(json.dumps(asdict(tally)), flush=True)


if __name__ == "__main__":
    main()
