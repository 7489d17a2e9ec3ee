"""Options of intervals, slices and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from uqeval.errors import UsageError, option_name, quoted
from uqeval.settings import Settings, default_of, documented, shared_option

#: The value of `group_by` for the cases (volumes) that a store's items are slices of.
CASE = "case"
#: Methods of intervals; "auto" takes the method of each score's kind.
Method = Literal["auto", "korn-graubard", "jackknife-t", "expanded", "batch-means", "percentile"]
METHODS: tuple[Method, ...] = get_args(Method)
_CUT = "Intervals and slices"


@documented
@dataclass(frozen=True)
class CutOptions(Settings):
    """Options of intervals and slices, which are computed from the states of a run.

    Raises `UsageError` for invalid values, and for options without effect.
    """

    # fmt: off
    ci: float | None = shared_option(
        None, "Compute intervals of all scores at this level, such as 0.95, by resampling items.",
        metavar="LEVEL", panel=_CUT, least=0.5, below=1)
    slices: str | Path | None = shared_option(
        None, "Table of the items (columns: name, weather, city, …): compute the scores for each "
        "value of a column.", metavar="FILE.csv", panel=_CUT, path=True)
    slice_by: Sequence[str] = shared_option(
        (), "Slice by this column, or by combinations. Repeat for more.",
        metavar="COLUMN[,COLUMN]", panel=_CUT, list_by="repeat", in_file=False,
        shown="every column with few values but that of --group-by")
    group_by: str | None = shared_option(
        None, "Resample groups of related items (drive, city, patient) instead of items.",
        metavar="COLUMN", panel=_CUT)
    interval_method: Method = shared_option(
        "auto", "Method for intervals; auto chooses by the kind of score. korn-graubard applies to "
        "shares only.",
        panel=_CUT, choices=METHODS)
    draws: int = shared_option(
        2000, "Number of bootstrap draws.", metavar="N", panel=_CUT, least=100, most=100_000)
    seed: int = shared_option(0, "Seed of the bootstrap draws.", panel=_CUT, least=0)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.slice_by, str):
            raise UsageError(f"slice_by={quoted(self.slice_by)}; expected a list of columns.")
        object.__setattr__(self, "slice_by", tuple(self.slice_by))
        if self.interval_method != "auto" and self.ci is None:
            raise UsageError("--interval-method needs intervals; give --ci LEVEL.")
        for name in ("slice_by", "group_by"):
            needs_no_slices = name == "group_by" and self.group_by == CASE
            if getattr(self, name) and self.slices is None and not needs_no_slices:
                raise UsageError(
                    f"{option_name(name)} names columns of the items' table; give it as "
                    "--slices FILE.csv."
                )
        if self.ci is None and any(getattr(self, n) != default_of(self, n) for n in OF_DRAWS):
            raise UsageError(
                "--draws and --seed need intervals; give --ci LEVEL, such as --ci 0.95, or leave "
                "them out."
            )
        if self.group_by is not None and self.ci is None:
            raise UsageError("--group-by needs intervals; give --ci LEVEL.")

    def recorded(self) -> dict[str, Any]:
        """Return the record of the intervals for states, whose merge takes these options."""
        if self.ci is None:
            return {}
        return {"draws": {name: getattr(self, name) for name in OF_INTERVALS}}

    @property
    def wanted(self) -> bool:
        """Return whether there is anything to compute."""
        return self.ci is not None or self.slices is not None


OF_DRAWS = ("draws", "seed")
#: Options of intervals that states record, and that their merge takes.
OF_INTERVALS = (*OF_DRAWS, "interval_method", "group_by")
