"""Units of a video: batches of neighbouring pairs, because these are correlated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uqeval.arrays import Floats

#: With at least this number of sequences, each sequence is a unit.
SEQUENCES = 10
#: The smallest and largest number of batches, and the length of one in autocorrelation times.
LEAST, MOST, TIMES = 3, 10, 5


def autocorrelation(series: Sequence[Floats]) -> tuple[float, float]:
    """Return the integrated autocorrelation time τ, in items, and the lag-1 autocorrelation.

    τ = 1 + 2·Σ_k ρ_k, with autocovariances pooled over the series, cut by Geyer's initial positive
    sequence (Geyer 1992, §3.3). At least 1; 1 and 0 for constant series. NaN is left out.
    """
    values = np.concatenate(list(series)) if series else np.empty(0)
    if not np.isfinite(values).any():
        return 1.0, 0.0
    centre = float(np.nanmean(values))
    centred = [np.nan_to_num(values - centre) for values in series]
    longest = max(map(len, centred))
    covariance = np.zeros(longest)
    for centred_values in centred:
        size = 1 << (2 * len(centred_values) - 1).bit_length()
        spectrum = np.fft.rfft(centred_values, size)
        covariance[: len(centred_values)] += np.fft.irfft(spectrum * spectrum.conj(), size)[
            : len(centred_values)
        ]
    if covariance[0] <= 1e-30:
        return 1.0, 0.0
    rho = covariance / covariance[0]
    tau = -1.0
    for lag in range(0, longest, 2):
        pair = rho[lag : lag + 2].sum()
        if pair <= 0:
            break
        tau += 2 * pair
    return max(tau, 1.0), float(rho[1]) if longest > 1 else 0.0


def batch_count(items: int, tau: float) -> int:
    """Return clamp(⌊n/(5τ)⌋, 3, 10)."""
    return int(np.clip(items // (TIMES * tau), LEAST, MOST))


def batches(sequences: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the batch of each item: about `count` of them, shared among sequences by length.

    No batch crosses a sequence; each sequence has at least one.
    """
    names = list(dict.fromkeys(sequences))
    lengths = np.array([sum(sequence == name for sequence in sequences) for name in names])
    shares = np.maximum(np.floor(count * lengths / lengths.sum()), 1).astype(int)
    while shares.sum() < count and (shares < lengths).any():
        longest = np.where(shares < lengths, lengths / shares, -1)
        shares[int(np.argmax(longest))] += 1
    position = dict.fromkeys(names, 0)
    batch_names = []
    for sequence in sequences:
        number = names.index(sequence)
        batch = position[sequence] * int(shares[number]) // int(lengths[number])
        batch_names.append(f"{number:04d}/{batch:04d}")
        position[sequence] += 1
    return tuple(batch_names)
