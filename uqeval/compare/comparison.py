"""The choices and the results of a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from uqeval.errors import UsageError
from uqeval.records.addresses import Address

if TYPE_CHECKING:
    from uqeval.compare.models import Model
    from uqeval.records.resampling import Interval


@dataclass(frozen=True)
class Choice:
    """Which scores are compared, against which model, with which intervals.

    `metrics`: addresses; none: the headlines of each family, with `every` all scores of which one
    way is better. `per_class`: those of classes too. `baseline`: the model that the others are held
    against (None: the first). `level`, `draws`, `seed`: of the intervals; None: no intervals.

    Raises `UsageError` for what cannot be.
    """

    metrics: tuple[str, ...] = ()
    every: bool = False
    per_class: bool = False
    baseline: str | None = None
    level: float | None = 0.95
    draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.metrics and (self.every or self.per_class):
            raise UsageError("--metric names the scores; leave out --all and --per-class.")
        if self.level is not None and not 0.5 <= self.level < 1:
            raise UsageError(
                f"--ci {self.level:g}; expected a level from 0.5 to below 1, such as 0.95."
            )
        if not 100 <= self.draws <= 100_000:
            raise UsageError(f"--draws {self.draws}; expected 100 to 100000.")
        if self.seed < 0:
            raise UsageError(f"--seed {self.seed}; expected a whole number, at least 0.")
        for text in self.metrics:
            Address.parse(text)


@dataclass(frozen=True)
class Difference:
    """A model's score less the baseline's; `better`: whether it is an improvement, None where it is
    none and no loss, or neither way is better.

    `p`: the two-sided p-value of swapping the models item by item, `p_adjusted` the same adjusted
    for all comparisons of its family (Holm), `p_least` the smallest that so few units can give.
    Between models of several trainings there is no p, and the interval is over trainings.
    """

    value: float
    better: bool | None
    level: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_least: float | None = None

    @property
    def verdict(self) -> str | None:
        """Return whether the models differ, by the adjusted p-value, else by the interval."""
        if self.level is None:
            return None
        if self.p_adjusted is not None:
            apart = self.p_adjusted <= 1 - self.level
        elif self.interval is not None:
            apart = self.interval.low > 0 or self.interval.high < 0
        else:
            return None
        return "differs" if apart else "no difference seen"


@dataclass(frozen=True)
class Rank:
    """A model's place among all, and the shares of draws in which none is better, and in which it
    has this place again."""

    place: int
    best_share: float | None = None
    kept_share: float | None = None


@dataclass(frozen=True)
class Cell:
    """One model's score; of several trainings, `values`, the mean, the sample standard deviation
    `std`, and the interval of the mean over trainings. None where it is undefined, for a
    `reason`."""

    value: float | None
    reason: str | None = None
    values: tuple[float, ...] = ()
    std: float | None = None
    best: bool = False
    difference: Difference | None = None
    rank: Rank | None = None
    over_trainings: Interval | None = None


@dataclass(frozen=True)
class Row:
    """One score of all models, over `items` that all have."""

    address: Address
    unit: str
    direction: str | None
    items: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Comparison:
    """What was compared, and all that was found; `baseline` is the place of that model.

    `tests`: how many scores of the whole set were tested, times rivals; `tests_of_parts` the same
    of classes and slices. Each is a family of its own.
    """

    models: tuple[Model, ...]
    baseline: int
    choice: Choice
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    tests: int = 0
    tests_of_parts: int = 0

    @property
    def names(self) -> list[str]:
        """Return what the models are called."""
        return [model.name for model in self.models]
