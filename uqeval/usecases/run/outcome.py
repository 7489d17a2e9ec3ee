"""Run settings, outcome and progress listener."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from pathlib import Path
from typing import Any

from uqeval.config import keys_of_options
from uqeval.engine.options import MachineOptions, Progress, ResumableOptions, Silent
from uqeval.errors import UqevalError, UsageError
from uqeval.gate import Judgement
from uqeval.gate.rules import day_of
from uqeval.records.report import Report
from uqeval.settings import Settings, options_of, same_option, shared_option
from uqeval.spelling import spelled
from uqeval.statistics.options import CutOptions

#: Input options of a run that override those of the file. They select items.
OF_ITEMS = ("limit", "part", "fitted")


@dataclass
class Outcome:
    """The outcome of a run: `reports` by store, errors of `failed` stores, the gate's `judgement`.

    A store of which only the sweep failed is in both; its report has no sweep. `ungated`: why the
    gate could not judge, else None. `files`: all written files. `leftovers`: files in the folder
    that an earlier run wrote for stores that this run does not have. `announced`: how many rules
    that are not evaluated, the first in the judgement, were printed before the run. `counted`:
    stores of which all passes of the shards are counted, so that this run left them out.
    """

    folder: Path
    reports: dict[str, Report] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    judgement: Judgement | None = None
    announced: int = 0
    ungated: str | None = None
    files: list[Path] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)

    @property
    def status(self) -> int:
        """Return the exit status: 0 done; 1 the gate failed; 2 something could not be done."""
        if self.failed or self.ungated:
            return 2
        if self.judgement is None or self.judgement.passed:
            return 0
        return 2 if self.judgement.not_evaluated else 1


class Listener:
    """Receives the results of stores as they finish. This base class ignores them."""

    def gate_follows(self) -> None:
        """Handle that a gate judges the results of this run. A run calls it before the stores."""

    def done(self, name: str, report: Report, path: Path) -> None:
        """Handle a store that was evaluated and whose files are written; `path`: the report."""

    def failed(self, name: str, reason: str) -> None:
        """Handle a store that could not be evaluated."""

    def warned(self, text: str) -> None:
        """Handle a rule that cannot be judged. A run calls it before it reads any store."""


@dataclass(frozen=True)
class RunSettings(Settings):
    """The options of a run, in addition to its file. Raises `UsageError` for invalid values.

    `shared`: options that override those of the file: `OF_ITEMS`, those of `CutOptions`, `workers`
    and `memory`. The run calls `progress` and `listener`.
    """

    # fmt: off
    output: str | Path | None = shared_option(
        None, "Folder for the reports.", flags=("-o", "--output"), metavar="DIR", panel="Output",
        shown="from the file, else uqeval-report")
    gallery: int | None = shared_option(
        None, "Show pictures of the N worst items on each page.", metavar="N", least=0,
        panel="Output", shown="3 if that is cheap")
    single_file: bool = shared_option(
        False, "Embed all pictures in the pages.", panel="Output",
        shown="above 3.5 MB they are files in a folder next to a page")
    stores: Sequence[str] = shared_option(
        (), "Evaluate only this store of the file. Repeat for more.", flags=("--store",),
        metavar="NAME", list_by="repeat", panel="File")
    baseline: str | Path | None = shared_option(
        None, "Report or folder of reports from which drops and rises are measured.",
        metavar="REPORT", panel="Gate")
    gate: bool | None = shared_option(
        None, "Judge the rules of the file.", flags=("--gate/--no-gate",), panel="Gate",
        shown="if it has any")
    today: date | str | None = shared_option(
        None, "Check waivers against this day instead of today (UTC). To test rules, not to "
        "release.", metavar="YYYY-MM-DD", panel="Gate")
    uncertainty: Sequence[str] = shared_option(
        (), "Without a file: use this uncertainty map for all metrics that need one. Repeat for "
        "more.", metavar="NAME", list_by="repeat", panel="Input", shown="that of each metric")
    resume: bool = same_option(
        ResumableOptions, "resume", help="Continue the same command after an interruption.")
    memory: int | str | None = same_option(
        MachineOptions, "memory", None, shown="from the file, else 512MB")
    # fmt: on
    shared: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = field(default_factory=Silent)
    listener: Listener = field(default_factory=Listener)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.day  # raises
        if self.gallery and self.is_shard:
            raise UsageError(
                f"--gallery {self.gallery} has no effect on a shard (--part), which has no page. "
                "Leave it out."
            )

    @property
    def day(self) -> date | None:
        """Return the day that waivers are checked against. Raises `UsageError`."""
        return day_of(self.today)

    @property
    def is_shard(self) -> bool:
        """Return whether only a shard of the items is counted."""
        return self.shared.get("part") is not None

    def fitted_of(self, name: str) -> Path | None:
        """Return the file of fits of a store: `fitted`, or its file in that folder."""
        path = self.shared.get("fitted")
        if path is None:
            return None
        return Path(path) / f"{name}.json" if Path(path).is_dir() else Path(path)

    @classmethod
    def of_keywords(cls, keywords: Mapping[str, Any]) -> RunSettings:
        """Return settings of these options, and of shared ones. Raises `UsageError`."""
        names = {field.name for field in fields(cls)} - {"shared"}
        run_keywords = {name: value for name, value in keywords.items() if name in names}
        shared = {name: value for name, value in keywords.items() if name not in names}
        names_known = {*OF_ITEMS, *options_of(CutOptions), *options_of(MachineOptions)}
        if strange := sorted(shared.keys() - names_known):
            expected = f"expected some of {', '.join(sorted(names_known | names))}."
            if strange[0] in keys_of_options():
                expected = f"{strange[0]} is an option of stores or metrics; set it in the file."
            raise UsageError(f"unknown options {strange}; {expected}")
        return cls(**run_keywords, shared={n: v for n, v in shared.items() if v is not None})


def keys_of_file() -> set[str]:
    """Return the options of a run that only its file sets."""
    of_command = (RunSettings, CutOptions, MachineOptions)
    names = {name for settings in of_command for name in options_of(settings)} - {"uncertainty"}
    return keys_of_options() - names - {*OF_ITEMS}


class Failures:
    """Record and report the error of one store, so that the others continue."""

    def __init__(self, name: str, outcome: Outcome, run_settings: RunSettings) -> None:
        self.name, self.outcome, self.chosen = name, outcome, run_settings

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, UqevalError):
            return False
        reason = spelled(str(error), "output")
        self.outcome.failed[self.name] = reason
        self.chosen.listener.failed(self.name, reason)
        return True
