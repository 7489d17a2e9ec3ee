"""Several models on the same items: their scores by the same draws, differences and ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import UsageError
from uqeval.gate.resampling import Interval
from uqeval.report.schema import Report
from uqeval.statistics.alike import Alike, Units
from uqeval.statistics.draws import Resampling
from uqeval.statistics.from_states import resampling_of, scoring_of
from uqeval.statistics.intervals import change, is_approximate, is_share
from uqeval.statistics.scoring import Scoring

#: A rank says nothing where more of the draws than this have no value.
_UNDEFINED = 0.05


@dataclass(frozen=True)
class Opened:
    """The states of one report, and how it resamples its items."""

    path: Path
    scoring: Scoring
    resampling: Resampling

    @classmethod
    def of(cls, path: Path, report: Report) -> Opened:
        """Those beside a report. Raises `StoreError` where there are none of it."""
        scoring = scoring_of(path, report)
        return cls(path, scoring, resampling_of(path, report, scoring))

    def places(self, names: Sequence[str]) -> list[int]:
        """Where items stand."""
        place = {name: i for i, name in enumerate(self.scoring.names)}
        return [place[name] for name in names]


@dataclass(frozen=True)
class Together:
    """Scores of models over `items` that all have, and over draws of them.

    `values` [training, address] of each model; `draws` [model, draw, address]. `units` of the kind
    `unit` were drawn. Of each address, whether it is `approximate`, and a `share`; `units_with` the
    address at a place have its score in all models.
    """

    items: int
    unit: str
    units: int
    addresses: tuple[str, ...]
    values: tuple[NDArray[np.float64], ...]
    draws: NDArray[np.float64]
    approximate: tuple[bool, ...]
    share: tuple[bool, ...]
    units_with: Callable[[int], int]

    def each(self, model: int, address: str) -> list[float | None]:
        """The score of each training of a model; None where it is undefined."""
        found = self.values[model][:, self.addresses.index(address)].tolist()
        return [value if np.isfinite(value) else None for value in found]

    def difference(self, model: int, baseline: int, address: str, level: float) -> Interval | None:
        """The interval of a model's score less the baseline's, in the same draws; None where
        resampling knows nothing of it."""
        if not self.draws.shape[1]:
            return None
        i = self.addresses.index(address)
        values = [float(self.values[m][:, i].mean()) for m in (model, baseline)]
        units = partial(self.units_with, i) if self.share[i] else None
        own = change(values, self.draws[[model, baseline], :, i], level, units)
        if own is None:
            return None
        return Interval(level, own["low"], own["high"], self.approximate[i], own["method"])

    def ranks(
        self, address: str, direction: str, places: Sequence[int]
    ) -> list[tuple[float, float]]:
        """For each model the shares of draws in which none is better, and in which it has the rank
        `places` says; none where too many draws are undefined."""
        i = self.addresses.index(address)
        scores = self.draws[:, :, i] * (1.0 if direction == "higher" else -1.0)
        scores = scores[:, np.isfinite(scores).all(axis=0)]
        if scores.shape[1] <= (1 - _UNDEFINED) * self.draws.shape[1]:
            return []
        ranks = 1 + (scores[None] > scores[:, None]).sum(axis=1)  # [model, draw]
        kept = ranks == np.asarray(places)[:, None]
        return list(
            zip((ranks == 1).mean(axis=1).tolist(), kept.mean(axis=1).tolist(), strict=True)
        )


def together(
    models: Sequence[Sequence[Opened]],
    names: Sequence[str],
    addresses: Sequence[str],
    draws: int,
    seed: int,
) -> Together:
    """Draw the items `names`, which all have, for all models alike.

    A model of several trainings has the mean of their scores, in each draw. Items are drawn in the
    groups that a report says, in blocks of a video, else by themselves. Raises `UsageError` where
    reports say other groups.
    """
    opened = [one for own in models for one in own]
    resampling = _resampling(opened, names, draws, seed)
    units = resampling.units(len(names))
    alike = Alike(
        [one.scoring for one in opened], [one.places(names) for one in opened], resampling
    )
    ends = np.cumsum([len(own) for own in models])[:-1]
    values = np.split(alike.values(addresses), ends)
    drawn = np.empty((len(models), 0, len(addresses)))
    if units > 1:
        each = np.split(alike.draws(addresses), ends)  # [training, draw, address]
        drawn = np.stack([own.mean(axis=0) for own in each])
    rough, share = (
        tuple(any(told(one.scoring, text) for one in opened) for text in addresses)
        for told in (is_approximate, is_share)
    )
    return Together(
        len(names), resampling.unit, units, tuple(addresses), tuple(values), drawn, rough, share,
        Units(alike, addresses),
    )  # fmt: skip


def _resampling(
    opened: Sequence[Opened], names: Sequence[str], draws: int, seed: int
) -> Resampling:
    said: dict[tuple[int, ...], Opened] = {}
    for one in opened:
        if (groups := one.resampling.groups) is not None:
            own = [groups[i] for i in one.places(names)]
            said.setdefault(tuple(own.index(group) for group in own), one)
    if len(said) > 1:
        first, second, *_ = said.values()
        raise UsageError(
            f"{first.path} and {second.path} group their items differently (--group-by); evaluate "
            "both with the same groups."
        )
    for numbers in said:
        return Resampling(draws, seed, tuple(map(str, numbers)))
    sequences = opened[0].resampling.sequences
    if sequences is None:
        return Resampling(draws, seed)
    return Resampling(draws, seed, None, tuple(sequences[i] for i in opened[0].places(names)))
