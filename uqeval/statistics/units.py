"""The units of resampling of a run: items, groups, sequences, or batches of a video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import compress

import numpy as np

from uqeval.arrays import Floats
from uqeval.errors import UsageError, listed, number_of, quoted
from uqeval.statistics.draws import DRAWS, Resampling
from uqeval.statistics.methods import are_equal
from uqeval.statistics.scoring import Scoring

#: The score of a video whose units a report names; each of its scores has units of its own.
HEADLINE = "mTC"
#: A pair of autocorrelations of at most this sum may be one of 0, with rounding of the transform.
_NO_PAIR = 1e-9
#: With at least this number of sequences, each sequence is a unit.
SEQUENCES = 10
#: The smallest and largest number of batches, and the length of one in autocorrelation times.
LEAST, MOST, TIMES = 3, 10, 5


def resampling_for(
    scoring: Scoring,
    draws: int = DRAWS,
    seed: int = 0,
    groups: Sequence[str] | None = None,
    items: Sequence[int] | None = None,
) -> Resampling:
    """Return the units in which some items of a run (None: all) are resampled.

    The units are, in this order: `groups` (one for each item of the run); the cases of slices; for
    a video the sequences if there are ten or more, else batches that are long compared with the
    autocorrelation time; single items. Units are drawn within each set (IN, OUT), unless a group
    has items of several sets. Raises `UsageError` for groups that split a sequence.
    """
    positions = list(range(scoring.items)) if items is None else list(items)
    sequences = sequences_of(scoring)
    groups = cases_of(scoring) if groups is None else groups
    sets = sets_of(scoring)
    if sets is not None and groups is not None and _share_groups(sets, groups):
        sets = None
    strata = None if sets is None else tuple(sets[i] for i in positions)
    if groups is not None:
        _refuse_cut_sequences(groups, sequences)
        units = tuple(groups[i] for i in positions)
        if strata is not None:  # a group is drawn within its set
            units = tuple(f"{own}/{unit}" for own, unit in zip(strata, units, strict=True))
        return Resampling(units, draws, seed, "group", strata=strata)
    if sequences is None:
        names = tuple(scoring.names[i] for i in positions)
        return Resampling(names, draws, seed, strata=strata)
    return _of_video(scoring, [sequences[i] for i in positions], positions, draws, seed)


def cases_of(scoring: Scoring) -> tuple[str, ...] | None:
    """Return the case (volume) of each item, if items are slices of cases; else None."""
    groups = scoring.index["facts"].get("groups")
    return None if groups is None else tuple(groups)


def sets_of(scoring: Scoring) -> tuple[str, ...] | None:
    """Return the set of each item: in-distribution, or an out-of-distribution set; else None."""
    sets = scoring.index["facts"].get("sets") or ()
    return tuple(map(str, sets)) if len(set(sets)) > 1 else None


def _share_groups(sets: Sequence[str], groups: Sequence[str]) -> bool:
    """Return whether a group has items of several sets, such as a drive by day and in fog: their
    scores vary together, so whole groups are resampled, and no set by itself."""
    return len(set(zip(sets, groups, strict=True))) > len(set(groups))


def sequences_of(scoring: Scoring) -> tuple[str, ...] | None:
    """Return the sequence of each item of a video; None for single images."""
    info = scoring.index["facts"].get("video")
    return tuple(info["sequences"]) if info else None


def _of_video(
    scoring: Scoring, sequences: Sequence[str], positions: Sequence[int], draws: int, seed: int
) -> Resampling:
    """Return the units of the headline, mTC; those of other scores: `Samples.of_score`."""
    series = []
    for key in scoring.evaluations:
        values = [scoring.records[i].get(key, {}).get("tc") for i in positions]
        series.append(
            np.array([np.nan if value is None else value for value in values], np.float64)
        )
    return resampling_of_video(series, sequences, draws, seed)


def resampling_of_video(
    series: Sequence[Floats],
    sequences: Sequence[str],
    draws: int = DRAWS,
    seed: int = 0,
    most_effective: float | None = None,
) -> Resampling:
    """Return the units of pairs: sequences if there are ten or more, else batches.

    `sequences`: the sequence of each pair. `series`: for each model one value per pair, NaN where
    undefined. The series with the fewest independent pairs decides. `most_effective`: the most
    independent pairs of a series that is defined in all stretches of the video.
    """
    sequences = tuple(sequences)
    effective, lag1, is_defined = min(
        (_independent(values, sequences) for values in series if np.isfinite(values).any()),
        key=lambda own: (own[0], np.inf if own[1] is None else -own[1]),
        default=(float(len(sequences)), None, (True,) * len(sequences)),
    )
    if most_effective is not None:
        time = len(sequences) / most_effective
        effective = min(effective, most_effective * _covered(is_defined, sequences, time))
    if len(set(sequences)) >= SEQUENCES:
        return Resampling(sequences, draws, seed, "sequence", lag1, effective, sequences=sequences)
    tau = sum(is_defined) / effective
    codes = _batches(sequences, batch_count(sum(is_defined), tau), is_defined)
    problem = _too_short(sequences, codes, tau, is_defined)
    return Resampling(codes, draws, seed, "batch", lag1, effective, problem, sequences=sequences)


def _independent(
    values: Floats, sequences: Sequence[str]
) -> tuple[float, float | None, tuple[bool, ...]]:
    """Return the number of independent pairs of a series, its lag-1 autocorrelation, and in which
    pairs it is defined. Its neighbours are those of the pairs in which it is."""
    is_defined = np.isfinite(values)
    names = np.array(sequences)
    by_sequence = [values[is_defined & (names == name)] for name in dict.fromkeys(sequences)]
    tau, lag1 = autocorrelation([own for own in by_sequence if own.size])
    return float(is_defined.sum()) / tau, lag1, tuple(is_defined.tolist())


def _covered(is_defined: Sequence[bool], sequences: Sequence[str], time: float) -> float:
    """Return the share of the stretches of so many pairs that have a defined one."""
    length, position = int(np.ceil(time)), Counter[str]()
    stretches: dict[tuple[str, int], bool] = {}
    for name, is_one in zip(sequences, is_defined, strict=True):
        stretch = name, position[name] // length
        stretches[stretch] = stretches.get(stretch, False) or is_one
        position[name] += 1
    return sum(stretches.values()) / len(stretches)


def _too_short(
    sequences: Sequence[str], codes: Sequence[str], tau: float, is_defined: Sequence[bool]
) -> str | None:
    """Return why batches are too short for an autocorrelation time; None if they are not. Pairs
    without the score do not count."""
    shortest = min(Counter(compress(codes, is_defined)).values(), default=0)
    if shortest > tau:
        return None
    pairs = Counter(compress(sequences, is_defined))
    own = "" if all(is_defined) else " with this score"
    short = [f"{name} ({number_of(n, 'pair')})" for name, n in pairs.items() if n <= tau]
    if len(pairs) == 1:
        return (
            f"the video is too short: its shortest batch has {number_of(shortest, 'pair')}{own}, "
            f"but neighbouring pairs are correlated over {tau:.0f}; about "
            f"{int(np.ceil(LEAST * tau)) + 1} pairs{own} are needed"
        )
    which = f"{number_of(len(short), 'sequence')} of the video {'is' if len(short) == 1 else 'are'}"
    too_short = f"{which} too short: {listed(short, 3)}"
    if not short:
        too_short = f"the sequences of the video are too short for {LEAST} batches"
    advice = "the others alone" if 0 < len(short) < len(pairs) else "longer sequences"
    return (
        f"{too_short}; a batch needs at least {int(tau) + 1} pairs{own}, more than the "
        f"autocorrelation time of {tau:.0f}. Evaluate {advice}, or at least {SEQUENCES} sequences"
    )


def _refuse_cut_sequences(groups: Sequence[str], sequences: Sequence[str] | None) -> None:
    group_of: dict[str, str] = {}
    for group, sequence in zip(groups, sequences or (), strict=False):
        if group_of.setdefault(sequence, group) != group:
            raise UsageError(
                f"--group-by puts pairs of the sequence {quoted(sequence)} into the groups "
                f"{quoted(group_of[sequence])} and {quoted(group)}; neighbouring pairs of a video "
                "are not independent. Use groups of whole sequences."
            )


def autocorrelation(series: Sequence[Floats]) -> tuple[float, float | None]:
    """Return the integrated autocorrelation time τ, in items, and the lag-1 autocorrelation; None
    without neighbouring values, or if all values are equal.

    τ = 1 + 2·Σ_k ρ_k, with autocovariances pooled over the series, cut by Geyer's initial positive
    sequence (Geyer 1992, §3.3). At least 1; 1 for constant series. NaN is left out.
    """
    values = np.concatenate(list(series)) if series else np.empty(0)
    finite = values[np.isfinite(values)]
    if not finite.size or are_equal(finite):
        return 1.0, None
    centre = float(finite.mean())
    centred = [np.nan_to_num(values - centre) for values in series]
    longest = max(map(len, centred))
    covariance = np.zeros(longest)
    for centred_values in centred:
        size = 1 << (2 * len(centred_values) - 1).bit_length()
        spectrum = np.fft.rfft(centred_values, size)
        covariance[: len(centred_values)] += np.fft.irfft(spectrum * spectrum.conj(), size)[
            : len(centred_values)
        ]
    rho = covariance / covariance[0]
    tau = -1.0
    for lag in range(0, longest, 2):
        pair = rho[lag : lag + 2].sum()
        if pair <= _NO_PAIR:
            break
        tau += 2 * pair
    has_neighbours = any(np.isfinite(own[1:] + own[:-1]).any() for own in series)
    return max(float(tau), 1.0), float(rho[1]) if has_neighbours else None


def batch_count(items: int, tau: float) -> int:
    """Return clamp(⌊n/(5τ)⌋, 3, 10)."""
    return int(np.clip(items // (TIMES * tau), LEAST, MOST))


def batches(
    sequences: Sequence[str], count: int, is_defined: Sequence[bool] | None = None
) -> tuple[str, ...]:
    """Return the batch of each item: `count` of them, shared among sequences by length.

    No batch crosses a sequence; each sequence has at least one. So there are more than `count` for
    more sequences. `is_defined`: the items that have a score (None: all), which alone count for the
    lengths; the others are in the batch of the one before them.
    """
    names = sorted(set(sequences))  # whatever the order of the items
    counted = is_defined if is_defined is not None and any(is_defined) else [True] * len(sequences)
    counts = Counter(compress(sequences, counted))
    lengths = np.array([counts[name] for name in names])
    shares = np.maximum(np.floor(count * lengths / lengths.sum()), 1).astype(int)
    while shares.sum() < count and (shares < lengths).any():
        longest = np.where(shares < lengths, lengths / shares, -1)
        shares[int(np.argmax(longest))] += 1
    while shares.sum() > count and (shares > 1).any():
        shortest = np.where(shares > 1, lengths / shares, np.inf)
        shares[int(np.argmin(shortest))] -= 1
    position = dict.fromkeys(names, 0)
    batch_names = []
    for sequence, is_counted in zip(sequences, counted, strict=True):
        number = names.index(sequence)
        place = max(position[sequence] + is_counted - 1, 0)
        batch = place * int(shares[number]) // max(int(lengths[number]), 1)
        batch_names.append(f"{number:04d}/{batch:04d}")
        position[sequence] += is_counted
    return tuple(batch_names)


#: The scores of a video have few different numbers of batches.
_batches = lru_cache(maxsize=64)(batches)
