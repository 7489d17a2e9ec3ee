"""Options and results of a comparison."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.compare.models import Model
from uqeval.errors import UsageError
from uqeval.records.addresses import Address
from uqeval.records.resampling import Interval, Units
from uqeval.records.scalars import is_below


@dataclass(frozen=True)
class Choice:
    """The scores to compare, the reference model, and the intervals.

    `metrics`: addresses of scores. If empty: the headline scores of each family, or with `every`
    all scores of which high or low values are better. `per_class`: also the scores of classes, of
    the `metrics` if these are named. `baseline`: the name of the reference model (None: the first).
    `level`, `draws`, `seed`: of the intervals; `level` None: no intervals.

    Raises `UsageError` for invalid values.
    """

    metrics: tuple[str, ...] = ()
    every: bool = False
    per_class: bool = False
    baseline: str | None = None
    level: float | None = 0.95
    draws: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.metrics and self.every:
            raise UsageError("--metric names the scores, so --all has no effect; leave it out.")
        if self.level is not None and not 0.5 <= self.level < 1:
            raise UsageError(
                f"level={self.level:g}; expected a level from 0.5 to below 1, such as 0.95."
            )
        if not 100 <= self.draws <= 100_000:
            raise UsageError(f"draws={self.draws}; expected 100 to 100000.")
        if self.seed < 0:
            raise UsageError(f"seed={self.seed}; expected a whole number, at least 0.")
        for text in self.metrics:
            Address.parse(text)


@dataclass(frozen=True)
class Difference:
    """A model's score minus that of the reference model.

    `better`: whether it is an improvement; None if the scores are equal, or if neither high nor low
    is better. `p`: two-sided p-value of the permutation test that swaps the models in single units,
    or, for two models of several trainings, of Welch's t-test. One training against several has
    none. `p_adjusted`: the p-value adjusted for all tests of its family (Holm). `p_least`: the
    smallest p-value that swaps of this number of units can give; `p_least_adjusted`: the smallest
    one after Holm's adjustment. `swapped`: the units that the test swaps. `reason`: why there is no
    interval, where one was requested; beside an interval, why there is no p-value.
    """

    value: float
    better: bool | None
    level: float | None = None
    interval: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    p_least: float | None = None
    p_least_adjusted: float | None = None
    swapped: Units | None = None
    reason: str | None = None

    @property
    def has_too_few_units(self) -> bool:
        """Return whether the test cannot show a difference: its smallest p-value is too large."""
        least = self.p_least_adjusted
        return self.level is not None and least is not None and is_below(1 - self.level, least)

    @property
    def verdict(self) -> str | None:
        """Return whether the models differ, by the adjusted p-value and the interval; None without
        a p-value or without an interval.

        The p-value alone does not show it: swaps of models that count other numbers of pixels in
        a score, such as of wrong ones, give smaller differences than the models have by chance.
        """
        if self.level is None or self.p_adjusted is None or self.interval is None:
            return None
        excludes_0 = not self.interval.low <= 0 <= self.interval.high
        is_seen = excludes_0 and not is_below(1 - self.level, self.p_adjusted)
        return "differs" if is_seen else "no difference seen"


@dataclass(frozen=True)
class Rank:
    """The rank of a model (1 is the best).

    `best_share`: share of the draws in which no other model is better. `kept_share`: share of the
    draws in which it has the same rank.
    """

    place: int
    best_share: float | None = None
    kept_share: float | None = None


@dataclass(frozen=True)
class Cell:
    """The score of one model.

    `value`: the score, or the mean over trainings; None if undefined, with a `reason`. For several
    trainings: `values` of each, their sample standard deviation `std`, and the interval of the mean
    (`over_trainings`).
    """

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
    """One score of all models, over the `items` that all have (their number)."""

    address: Address
    unit: str
    direction: str | None
    items: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Comparison:
    """The models, the choices and the results of a comparison.

    `baseline`: the index of the reference model. `tests`: the number of tests on scores of the
    whole set (scores times other models). `tests_of_parts`: the number of tests on classes and
    slices. Holm's adjustment is separate for the two families. `incomparable`: the keys of results,
    and the addresses of single scores, that whole reports have of other items, pixels or settings.
    """

    models: tuple[Model, ...]
    baseline: int
    choice: Choice
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    tests: int = 0
    tests_of_parts: int = 0
    incomparable: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Return the names of the models."""
        return [model.name for model in self.models]

    @property
    def sentences(self) -> list[str]:
        """Return the warnings as sentences, with a full stop."""
        return [f"{text}." for text in self.warnings]
