"""What is asked of the states of a run: intervals, slices, groups."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uqeval.errors import UsageError
from uqeval.statistics.draws import DRAWS, check_draws
from uqeval.statistics.intervals import check_level, check_method

#: What `group_by` calls the cases that a store's items are slices of.
CASE = "case"


@dataclass(frozen=True)
class CutOptions:
    """What is read off the states of a run beside its results.

    `ci`: the level of intervals; `draws` and `seed` of the resamples. `slices`: a CSV of the items
    with a column `name`; `slice_by`: the columns of each cut, several of one joined by commas
    (default: each column of few values); `group_by`: the column of groups that are drawn whole
    (default: "case" where items are slices of cases). `interval_method`: "auto" takes the method of
    each score's kind.

    Raises `UsageError` for what cannot be.
    """

    ci: float | None = None
    draws: int = DRAWS
    seed: int = 0
    slices: str | Path | None = None
    slice_by: tuple[str, ...] = ()
    group_by: str | None = None
    interval_method: str = "auto"

    def __post_init__(self) -> None:
        if self.ci is not None:
            check_level(self.ci)
        check_draws(self.draws, self.seed)
        check_method(self.interval_method)
        if self.interval_method != "auto" and self.ci is None:
            raise UsageError("--interval-method says how intervals are computed; give --ci LEVEL.")
        for name in ("slice_by", "group_by"):
            alone = name == "group_by" and self.group_by == CASE
            if getattr(self, name) and self.slices is None and not alone:
                raise UsageError(
                    f"--{name.replace('_', '-')} names columns of the items' table; give it as "
                    "--slices FILE.csv."
                )
        if self.ci is None and (self.draws, self.seed) != (DRAWS, 0):
            raise UsageError(
                "--draws and --seed say how intervals are drawn, and there are none without a "
                "level; give --ci LEVEL, such as --ci 0.95, or leave them out."
            )
        if self.group_by is not None and self.ci is None:
            raise UsageError("--group-by says how intervals are drawn; give --ci LEVEL.")

    @property
    def wanted(self) -> bool:
        """Whether there is anything to read off."""
        return self.ci is not None or self.slices is not None
