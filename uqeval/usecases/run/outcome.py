"""What a run is asked for beside its file, what it has left, and who is told meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.engine.options import Progress, Silent
from uqeval.errors import UqevalError
from uqeval.report.schema import Report

if TYPE_CHECKING:
    from uqeval.gate import Judgement


@dataclass
class Outcome:
    """What a run has left: `reports` by store, `failed` stores and why, the gate's `judgement`.

    A store whose sweep alone failed is in both, its report without the sweep.
    `ungated` says why the gate could not judge, if it could not; `files` is all that was written.
    """

    folder: Path
    reports: dict[str, Report] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    judgement: Judgement | None = None
    ungated: str | None = None
    files: list[Path] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The exit status: 0 done; 1 the gate failed; 2 something could not be done."""
        if self.failed or self.ungated:
            return 2
        if self.judgement is None or self.judgement.passed:
            return 0
        return 2 if self.judgement.not_evaluated else 1


class Listener:
    """Is told of stores as they come; this one tells nobody."""

    def done(self, name: str, report: Report) -> None:
        """A store has been evaluated, its files written."""

    def failed(self, name: str, why: str) -> None:
        """A store could not be evaluated."""

    def warned(self, text: str) -> None:
        """A rule cannot be judged: said before any store is read."""


@dataclass(frozen=True)
class RunSettings:
    """How a run differs from what its file says; None is as the file says.

    `stores`: only these; `gallery`: pictures of so many of the worst items of each store (None:
    3, where that is cheap); `slice_by`: columns, several of one cut joined by commas;
    `uncertainty`: what is evaluated of a store without metrics of its own; `today`: the day that
    waivers are checked against (None: today in UTC).
    """

    stores: Sequence[str] = ()
    uncertainty: Sequence[str] = ()
    output: str | Path | None = None
    gate: bool = True
    baseline: str | Path | None = None
    today: date | None = None
    gallery: int | None = None
    limit: int | None = None
    ci: float | None = None
    draws: int | None = None
    seed: int | None = None
    slices: str | Path | None = None
    slice_by: Sequence[str] = ()
    group_by: str | None = None
    interval_method: str | None = None
    workers: int | None = None
    memory: int | str | None = None
    resume: bool = False
    progress: Progress = field(default_factory=Silent)
    listener: Listener = field(default_factory=Listener)


class Failures:
    """Holds what goes wrong with one store, and tells of it, so that the others go on."""

    def __init__(self, name: str, outcome: Outcome, chosen: RunSettings) -> None:
        self.name, self.outcome, self.chosen = name, outcome, chosen

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, UqevalError):
            return False
        self.outcome.failed[self.name] = str(error)
        self.chosen.listener.failed(self.name, str(error))
        return True
