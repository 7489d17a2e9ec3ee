"""Scores of a ranking by uncertainty: pixels are sorted, ties count as one group."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.class_scores import ratio
from uqeval.usecases.verify.comparing import numbers_of

#: Four times the error of a float32 map of uncertainty, in steps between its numbers.
_NOISE_STEPS = 6
#: The relative width of the bins of uncertainty in a run.
BIN_WIDTH = 2.0**-13
#: Intervals of a run are computed from bins: float32 numbers without this many low bits.
INTERVAL_BITS = 13
#: The allowed difference, in ranges of the scores with random rounding errors.
RANGES = 2.5
#: Numbers of items that differ by less, relative to them, are equal.
NOISE = 1e-12
#: Of more pixels, the order of single ones does not matter.
_MOST_ORDERED = 10**6


def noise(values: Array) -> float:
    """Return twice the difference that two numbers of a float32 map may have by chance: entropies
    above 2 have steps of 2.4e-7, those below 1 of 6e-8."""
    largest = max(float(np.abs(values).max(initial=0.0)), 0.5)
    return _NOISE_STEPS * float(np.spacing(np.float32(largest)))


def grouped(score: Array, error: Array) -> tuple[Array, Array]:
    """Return pixels and Σ error of each group of equal scores, scores ascending."""
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    is_first = np.ones(score.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    number = np.diff(begins, append=score.size).astype(np.int64)
    sums = np.add.reduceat(error[order].astype(np.float64), begins) if score.size else number * 0.0
    return number, sums


def without_noise(values: Array, unit: float = 0.0) -> Array:
    """Return numbers of items, those that differ only by rounding as one number.

    `unit`: the size of the numbers whose difference the values are.
    """
    result = np.array(values, np.float64)
    last = -math.inf
    previous = -math.inf
    for place in np.argsort(result, kind="stable"):
        value = float(result[place])
        if value - previous > NOISE * max(abs(value), unit):
            last = value
        previous, result[place] = value, last
    return result


def ascending(score: Array, *of_pixels: Array) -> tuple[Array, ...]:
    """Return the score and other arrays [pixel, …] by ascending score: the scores of draws are then
    nearly in order, and sorted in a fraction of the time."""
    order = np.argsort(score, kind="stable")
    return tuple(values[order] for values in (score, *of_pixels))


def distinct(rankings: Iterable[Array], error: Array) -> Iterator[tuple[Array, Array]]:
    """Yield what `grouped` returns of each ranking, once if it is the same: so are its scores."""
    seen: set[bytes] = set()
    for ranking in rankings:
        number, sums = grouped(ranking, error)
        digest = hashlib.sha256(number.tobytes() + sums.tobytes()).digest()
        if digest not in seen:
            seen.add(digest)
            yield number, sums


def failure(score: Array, wrong: Array) -> dict[str, Any]:
    """Return the scores of failure detection, of flat arrays."""
    return failure_of_groups(*grouped(score, wrong))


def failure_of_groups(n: Array, e: Array) -> dict[str, Any]:
    """Return the scores of failure detection, of the pixels and errors of `grouped`."""
    groups = Groups(*(counts[None].astype(np.float64) for counts in (n, e)))
    pixels = int(n.sum())
    record: dict[str, Any] = {"pixels": pixels, "errors": int(e.sum())}
    for (name, *percent), formula in FAILURE.items():
        (number,) = formula(groups).tolist() if pixels else (math.nan,)
        value = None if math.isnan(number) else number
        if not percent:
            record[name] = value
        else:
            record.setdefault(name, {}).update({percent[0]: value} if pixels else {})
    return record


@dataclass(frozen=True)
class Groups:
    """Pixels `n` and errors `e` [set, group] of equal scores, scores ascending. A group may have no
    pixel of a set."""

    n: Array
    e: Array

    @cached_property
    def pixels(self) -> Array:
        """Return all pixels [set]."""
        return np.asarray(self.n.sum(axis=1))

    @cached_property
    def errors(self) -> Array:
        """Return all errors [set]."""
        return np.asarray(self.e.sum(axis=1))

    @property
    def rights(self) -> Array:
        """Return all pixels that are right [set]."""
        return np.asarray(self.pixels - self.errors)

    @cached_property
    def up_n(self) -> Array:
        """Return the pixels up to the end of each group."""
        return np.cumsum(self.n, axis=1)

    @cached_property
    def up_e(self) -> Array:
        """Return the errors up to the end of each group."""
        return np.cumsum(self.e, axis=1)

    @property
    def above_e(self) -> Array:
        """Return the errors of each group and those above it."""
        return np.asarray(self.errors[:, None] - self.up_e + self.e)


def _ratio(a: Array, b: Array) -> Array:
    """Return a/b, NaN where b is 0."""
    return np.asarray(np.divide(a, b, out=np.full(np.shape(a), np.nan), where=b > 0))


def _at(values: Array, groups: Array) -> Array:
    """Return the value of a group of each set."""
    return np.take_along_axis(values, groups[:, None], 1)[:, 0]


def _auroc(g: Groups) -> Array:
    c = g.n - g.e
    pairs = (g.e * (g.up_n - g.up_e - c / 2)).sum(axis=1)
    return _ratio(pairs, g.errors * g.rights)


def _aupr_error(g: Groups) -> Array:
    above_n = np.maximum(g.pixels[:, None] - g.up_n + g.n, 1)
    return _ratio((g.e * g.above_e / above_n).sum(axis=1), g.errors)


def _aupr_success(g: Groups) -> Array:
    precision = (g.up_n - g.up_e) / np.maximum(g.up_n, 1)
    return _ratio(((g.n - g.e) * precision).sum(axis=1), g.rights)


def _fpr95(g: Groups) -> Array:
    # The last group at and above which 95 % of the errors lie.
    least = (g.above_e * 20 >= g.errors[:, None] * 19).sum(axis=1) - 1
    above_n = g.pixels - _at(g.up_n - g.n, np.maximum(least, 0))
    rejected = above_n - _at(g.above_e, np.maximum(least, 0))
    return np.where(g.errors > 0, _ratio(rejected, g.rights), np.nan)


def _aurc(g: Groups) -> Array:
    return _ratio((g.n * g.up_e / np.maximum(g.up_n, 1)).sum(axis=1), g.pixels)


def _e_aurc(g: Groups) -> Array:
    # With all errors last, the AURC is Σ k/(rights + k)/pixels, k = 1 … errors.
    harmonic = np.r_[0.0, np.cumsum(1 / np.arange(1, int(g.pixels.max(initial=0)) + 1))]
    span = harmonic[g.pixels.astype(np.int64)] - harmonic[g.rights.astype(np.int64)]
    return _aurc(g) - _ratio(g.errors - g.rights * span, g.pixels)


def _augrc(g: Groups) -> Array:
    return _ratio((g.n * (g.up_e - g.e / 2)).sum(axis=1), g.pixels**2)


def _risk_at(percent: int, g: Groups) -> Array:
    first = (100 * g.up_n >= percent * g.pixels[:, None]).argmax(axis=1)
    return _ratio(_at(g.up_e, first), _at(g.up_n, first))


def _coverage_at(percent: int, g: Groups) -> Array:
    fits = np.where(100 * g.up_e <= percent * g.up_n, g.up_n, 0.0)
    return _ratio(fits.max(axis=1, initial=0.0), g.pixels)


#: The scores of failure detection [set] by their fields, NaN where undefined.
FAILURE: dict[tuple[str, ...], Callable[[Groups], Array]] = {
    ("auroc",): _auroc, ("aupr_error",): _aupr_error, ("aupr_success",): _aupr_success,
    ("fpr95",): _fpr95, ("aurc",): _aurc, ("e_aurc",): _e_aurc, ("augrc",): _augrc,
    **{("risk_at_coverage", str(p)): partial(_risk_at, p) for p in (80, 90, 95)},
    **{("coverage_at_risk", str(p)): partial(_coverage_at, p) for p in (1, 5)},
}  # fmt: skip


def bins_of(values: Array, low_bits: int) -> Array:
    """Return the float32 bits of each number without the low ones, as a whole number that ascends
    with it; -0 is 0."""
    bits = (values.astype(np.float32) + np.float32(0)).view(np.int32).astype(np.int64)
    return np.where(bits >= 0, bits, -(2**31) - 1 - bits) >> low_bits


def slack_of_order(
    scores: Callable[[Array, Array], Mapping[str, Any]],
    score: Array,
    error: Array,
    rounding: Array,
    step: float | None = None,
) -> dict[str, float]:
    """Return how far the order of nearly equal uncertainties moves each score of a ranking.

    `scores` takes the pixels and Σ error of `grouped`. In float32 maps, values that differ by less
    than `noise` may be equal or have another order. The score is computed with such values equal,
    and with random rounding errors: `rounding` [pixel, draw] in units of the last place, the same
    for pixels with the same terms. The range of these scores shows how far rounding moves it.
    `step`: another difference than `noise`.
    """
    if not score.size or score.size > _MOST_ORDERED:
        return {}
    score, error, rounding = ascending(score, error, rounding)
    values, step = score.astype(np.float64), step or noise(score)
    rankings = (near_as_ties(values, step), rounded(values, rounding, step))
    return ranges(scores(*own) for own in distinct(chain([values], *rankings), error))


def ranges(records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the allowed difference of each number of some records: `RANGES` times its range."""
    values: dict[str, list[float]] = {}
    for record in records:
        for name, value in numbers_of(record):
            values.setdefault(name, []).append(value)
    return {name: RANGES * (max(own) - min(own)) for name, own in values.items()}


def rounded(values: Array, rounding: Array, step: float) -> Iterator[Array]:
    """Yield the values float64 [pixel] with random errors, and with their negatives, draw by draw.

    `rounding` [pixel, draw] in units of the last place, `step`: the `noise` of all values. Of an
    error and its negative, one moves a pixel near the edge of a bin across it, whichever side the
    edge is on.
    """
    unit = step / _NOISE_STEPS
    for sign in (unit, -unit):
        for draw in rounding.T:
            yield values + sign * draw.astype(np.float64)


def near_as_ties(values: Array, step: float) -> Iterator[Array]:
    """Yield the values in steps, at two places of their edges: up to half a step apart, values are
    equal in at least one of the two, and none is moved by more than half a step."""
    for shift in (0.0, 0.5):
        yield (np.floor(values / step + shift) + 0.5 - shift) * step


def rounded_in_bins(values: Array, rounding: Array, step: float) -> Iterator[Array]:
    """Yield values that a run may have in place of these: those of `rounded`, and near values as
    ties, which are in one bin then. Pixels without errors keep their values."""
    yield from rounded(values, rounding, step)
    is_exact = ~rounding.any(axis=1)
    for ties in near_as_ties(values, step):
        yield np.where(is_exact, values, ties)


def draws_of(score: Array, rounding: Array) -> Iterator[Array]:
    """Yield the float32 scores as `rounded_in_bins` does; none of many pixels."""
    if 0 < score.size <= _MOST_ORDERED:
        yield from rounded_in_bins(score.astype(np.float64), rounding, noise(score))


def undetected(score: Array, wrong: Array, threshold: float | None) -> tuple[float | None, int]:
    """Return the share of pixels that are wrong and not above the threshold; pixels near it."""
    if threshold is None:
        return None, 0
    below = score <= np.float32(threshold)
    uncertain = int((np.abs(score.astype(np.float64) - threshold) <= 1e-6).sum())
    return ratio(int((wrong & below).sum()), score.size), uncertain
