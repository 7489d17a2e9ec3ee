"""Samples of class probabilities to running sums, and running sums to maps.

Letters: t samples, c classes, i pixels of a block. Loops run class by class over rows of pixels, to
fill the vector registers.

The sums do not depend on the chunks of a stack, if the samples of a class, and the classes of a
sample, come in ascending order:

- `sums` adds float16 and integers exactly, as integers, and other floats in float64;
- Σ p·ln p is added as integers in units of 2^-26, each term rounded once.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import bits_of_float32, half_to_float32, kernel, overload, types
from uqeval.kernels.logarithm import p_log_p_32, p_log_p_64

#: float16 probabilities are multiples of this.
HALF_UNIT = 2.0**-24
#: Terms of Σ p·ln p are multiples of this; `_FLUSH` of them (at most 0.368 each) fit an int32.
ENTROPY_UNIT = 2.0**-26
_FLUSH = 64

# ---- stored numbers ------------------------------------------------------------------------------
# Numba has no float16 on CPUs: it comes as its bits, viewed as int16.


def probability(value, unit):
    """Return a stored number as a float32 probability; `unit` is the scale of integers."""
    if isinstance(value, np.int16):
        return half_to_float32(value)
    return np.float32(value * unit)


def comparable(value, unit):
    """Return a stored number for comparison with others of its sample: float64 as it is, because
    float32 makes near values equal, others as float32."""
    return value if isinstance(value, np.float64) else probability(value, unit)


def quantity(value):
    """Return the stored number for summation: float16 in units of 2^-24, others unchanged."""
    if isinstance(value, np.int16):
        return np.int32(half_to_float32(value) * np.float32(2.0**24))
    return value


def oddness(value, unit):
    """Return a number above 0 for an invalid probability: negative, not finite, or above 2 (int32).

    The result is also above 0 for -0.0 in some dtypes. The caller then checks the values exactly
    and accepts it.
    """
    if isinstance(value, np.int16):
        return np.int32(int(value) & 0xFFFF) - np.int32(0x4000)
    return np.int32(0 if value >= 0 and value * unit <= 2.0 else 1)


@overload(probability, inline="always")
def _probability(value, unit):
    if value == types.int16:
        return lambda value, unit: half_to_float32(value)
    return lambda value, unit: np.float32(value * unit)


@overload(comparable, inline="always")
def _comparable(value, unit):
    if value == types.float64:
        return lambda value, unit: value
    return lambda value, unit: probability(value, unit)


@overload(quantity, inline="always")
def _quantity(value):
    if value == types.int16:
        return lambda value: np.int32(half_to_float32(value) * np.float32(2.0**24))
    return lambda value: value


@overload(oddness, inline="always")
def _oddness(value, unit):
    if value == types.int16:
        return lambda value, unit: np.int32(np.int32(np.uint16(value)) - np.int32(0x4000))
    if value == types.float32:
        # By the bits, as above; halved, so that the difference fits.
        return lambda value, unit: np.int32(
            np.int32(np.int32(bits_of_float32(value) ^ np.int32(-(2**31))) >> np.int32(1))
            + np.int32(0x20000000)
        )
    # No branch: Numba warns about branches in inlined functions.
    return lambda value, unit: np.int32(1) - np.int32((value >= 0) & (value * unit <= 2.0))


# ---- samples to sums -----------------------------------------------------------------------------
# One small kernel a purpose: in a large one the compiler runs out of registers and stops unrolling,
# which costs more than reading a block again from the cache.
#
# All of them add the pixels `start:stop` of one tile [t, c, i] to accumulators that begin at pixel
# `at`; `t0` and `c0` are the tile's first sample and class. What is gathered within a sample has
# one row, or one row per sample where the classes of a sample come in several tiles.


@kernel
def add_samples(tile, start, stop, at, t0, c0, unit, sums, totals, extremes, terms, plogp):
    """Add Σ_t p into `sums` [class, pixel], Σ_c p of each sample into `totals` [row, pixel].

    Adds Σ_t Σ_c p·ln p to `plogp` [pixel], in units of 2^-26; `terms` [pixel] is a work array. If
    both are None, the compiler omits this. `extremes` [2]: the smallest and largest complete Σ_c p.
    Returns the largest `oddness`: above 0 if any number is invalid.
    """
    samples, tile_classes, _ = tile.shape
    n = stop - start
    # A reduction in the loop makes the compiler interleave four vectors: 1.7 times as fast.
    worst = np.int32(-(2**30))
    if plogp is not None:
        term = terms[:n]
        whole = plogp[at : at + n]
    for t in range(samples):
        total = totals[(t0 + t) % totals.shape[0], at : at + n]
        if c0 == 0:
            for i in range(n):
                total[i] = 0
        for c in range(tile_classes):
            row = tile[t, c, start:stop]
            s = sums[c0 + c, at : at + n]
            if plogp is not None:
                if c % _FLUSH == 0:
                    for i in range(n):
                        term[i] = 0
                for i in range(n):
                    value = row[i]
                    worst = max(worst, oddness(value, unit))
                    p = probability(value, unit)
                    q = quantity(value)
                    s[i] += q
                    total[i] += q
                    term[i] += np.int32(p_log_p_32(p) * np.float32(2.0**26) - np.float32(0.5))
                if c % _FLUSH == _FLUSH - 1 or c == tile_classes - 1:
                    for i in range(n):
                        whole[i] += term[i]
            else:
                for i in range(n):
                    value = row[i]
                    worst = max(worst, oddness(value, unit))
                    q = quantity(value)
                    s[i] += q
                    total[i] += q
        if c0 + tile_classes == sums.shape[0]:
            low, high = extremes[0], extremes[1]
            for i in range(n):
                low = min(low, total[i])
                high = max(high, total[i])
            extremes[0], extremes[1] = low, high
    return worst


@kernel
def add_votes(tile, start, stop, at, t0, c0, unit, best, vote, votes):
    """Add each sample's likeliest class (lowest id on ties) into `votes` [class, pixel].

    `best` (float64 for float64, else float32) and `vote` [row, pixel] hold the likeliest class so
    far of a sample.
    """
    samples, tile_classes, _ = tile.shape
    n = stop - start
    for t in range(samples):
        r = (t0 + t) % best.shape[0]
        top = best[r, at : at + n]
        choice = vote[r, at : at + n]
        if c0 == 0:
            for i in range(n):
                top[i] = -1
        for c in range(tile_classes):
            row = tile[t, c, start:stop]
            for i in range(n):
                p = comparable(row[i], unit)
                if p > top[i]:
                    top[i] = p
                    choice[i] = c0 + c
        if c0 + tile_classes == votes.shape[0]:
            for i in range(n):
                votes[choice[i], at + i] += 1


@kernel
def add_squares(tile, start, stop, at, t0, c0, first, squares):
    """Add Σ_t (p_t - p_0)² into `squares`, and p_0 into `first`, float64 [class, pixel].

    The shift by the first sample makes the variance of identical samples exactly 0.
    """
    samples, tile_classes, _ = tile.shape
    n = stop - start
    for t in range(samples):
        for c in range(tile_classes):
            row = tile[t, c, start:stop]
            origin = first[c0 + c, at : at + n]
            square = squares[c0 + c, at : at + n]
            if t0 + t == 0:
                for i in range(n):
                    origin[i] = quantity(row[i])
                    square[i] = 0.0
            else:
                for i in range(n):
                    d = np.float64(quantity(row[i])) - origin[i]
                    square[i] += d * d


# ---- sums to maps --------------------------------------------------------------------------------
# p̄ = sums / samples · unit. Maps are [pixel] and hold `n` pixels of the accumulators, from pixel
# `at`. There is one small kernel per map, so that only the requested ones are compiled.


@kernel
def predict(at, n, samples, unit, sums, leader, prediction, confidence):
    """Write prediction = argmax p̄ (lowest id on ties) and confidence = max p̄; `leader` [pixel]
    has the dtype of `sums`."""
    s = sums[0, at : at + n]
    for i in range(n):
        leader[i] = s[i]
        prediction[i] = 0
    for c in range(1, sums.shape[0]):
        s = sums[c, at : at + n]
        for i in range(n):
            if s[i] > leader[i]:
                leader[i] = s[i]
                prediction[i] = c
    for i in range(n):
        confidence[i] = leader[i] / samples * unit


@kernel
def average(at, n, start, samples, unit, sums, mean_probs):
    """Write p̄ as float32 into `mean_probs` [class, pixel], from pixel `start`."""
    for c in range(sums.shape[0]):
        s = sums[c, at : at + n]
        mean = mean_probs[c, start : start + n]
        for i in range(n):
            mean[i] = s[i] / samples * unit


@kernel
def entropy_of_mean(at, n, samples, unit, sums, wide, entropy):
    """Write H(p̄) = -Σ_c p̄·ln p̄ (Mukhoti & Gal 2018, eq. 2); `wide` float64 [pixel] is
    scratch.
    """
    for i in range(n):
        wide[i] = 0.0
    for c in range(sums.shape[0]):
        s = sums[c, at : at + n]
        for i in range(n):
            wide[i] += p_log_p_64(s[i] / samples * unit)
    for i in range(n):
        entropy[i] = max(0.0 - wide[i], 0.0)


@kernel
def information(at, n, samples, unit, sums, plogp, wide, expected_entropy, mutual_information):
    """Write mean_t H(p_t), and H(p̄) - mean_t H(p_t) clipped at 0 (Mukhoti & Gal 2018, eq. 3).

    Both entropies of the mutual information are rounded alike, term by term in units of 2^-26, so
    that identical samples give exactly 0.
    """
    expected = plogp[at : at + n]
    for i in range(n):
        expected_entropy[i] = max(0.0 - expected[i] / samples * ENTROPY_UNIT, 0.0)
        wide[i] = 0.0
    for c in range(sums.shape[0]):
        s = sums[c, at : at + n]
        for i in range(n):
            p = np.float32(s[i] / samples * unit)
            wide[i] += np.int32(p_log_p_32(p) * np.float32(2.0**26) - np.float32(0.5))
    for i in range(n):
        mutual_information[i] = max((expected[i] / samples - wide[i]) * ENTROPY_UNIT, 0.0)


@kernel
def disagree(at, n, samples, votes, leader, variation_ratio):
    """Write 1 - the share of samples that vote for the modal class; `leader` [pixel] is a work
    array."""
    for i in range(n):
        leader[i] = 0
    for c in range(votes.shape[0]):
        v = votes[c, at : at + n]
        for i in range(n):
            leader[i] = max(leader[i], v[i])
    for i in range(n):
        variation_ratio[i] = 1.0 - leader[i] / samples


@kernel
def deviate(at, n, samples, unit, sums, first, squares, prediction, std):
    """Write population standard deviation over the samples of the predicted class's probability.

    √(Σ_t (p_tc - p_0c)²/T - (p̄_c - p_0c)²) of c = `prediction` [i], into `std` [i]. `sums`,
    `first` and `squares` [class, at + i]: Σ_t p_tc, p_0c and Σ_t (p_tc - p_0c)², all in units of
    `unit`.
    """
    for i in range(n):
        c = prediction[i]
        shift = sums[c, at + i] / samples - first[c, at + i]
        variance = squares[c, at + i] / samples - shift * shift
        std[i] = np.sqrt(max(variance, 0.0)) * unit


@kernel
def score_labels(
    at, n, samples, unit, ignore, sums, label, prediction, wide,
    label_probability, label_rank, brier,
):  # fmt: skip
    """Score the labels of `n` pixels against their p̄; void pixels get 0, 0 and 0.

    label_probability = p̄_y; brier = Σ_c (p̄_c - y_c)² = Σ p̄² - 2·p̄_y + 1; label_rank = how many
    classes are likelier: 0 for the predicted class, else 1 + the other classes whose float32 p̄ is
    larger, or as large with a lower id.
    """
    classes = sums.shape[0]
    for i in range(n):
        y = label[i]
        label_rank[i] = 0
        if y == ignore:
            label_probability[i] = 0.0
        else:
            label_probability[i] = sums[y, at + i] / samples * unit
            label_rank[i] = 0 if y == prediction[i] else 1
    squares = wide[:n]
    for i in range(n):
        squares[i] = 0.0
    for c in range(classes):
        s = sums[c, at : at + n]
        for i in range(n):
            p = s[i] / samples * unit
            squares[i] += p * p
            q = np.float32(p)
            label_prob = label_probability[i]
            if (
                label[i] != ignore
                and label[i] != prediction[i]
                and c != label[i]
                and c != prediction[i]
                and (q > label_prob or (q == label_prob and c < label[i]))
            ):
                label_rank[i] += 1
    for i in range(n):
        if label[i] == ignore:
            brier[i] = 0.0
        else:
            label_prob = sums[label[i], at + i] / samples * unit
            brier[i] = max(squares[i] - 2.0 * label_prob + 1.0, 0.0)
