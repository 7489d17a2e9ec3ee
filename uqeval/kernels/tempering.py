"""Tempered probabilities p^β / Σ p^β, β = 1 / T, of many temperatures at once.

Of mean probabilities p̄, or of each sample's own before they are averaged.

Loops run class by class over blocks of pixels, never pixel by pixel: that is what fills the vector
registers. With ℓ_c = ln p̄_c - ln max p̄, q = e^(βℓ) is at most 1, and 1 for the likeliest class, so
nothing overflows and Σ q >= 1. A class with p̄_c = 0 has q = 0 at every temperature.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel
from uqeval.kernels.exponential import exp_64
from uqeval.kernels.logarithm import log_64

#: Pixels that are worked on at a time.
BLOCK = 256
#: Smaller powers are dropped before they are squared: subnormal numbers are slow.
_SMALL = 1e-140


@kernel
def _lead(probs, start, n, lead):
    """ln max_c p̄_c of the pixels from `start` on, into `lead` [pixel]; 0 where all are 0."""
    for i in range(n):
        lead[i] = 0.0
    for c in range(probs.shape[0]):
        row = probs[c, start : start + n]
        for i in range(n):
            lead[i] = max(lead[i], np.float64(row[i]))
    for i in range(n):
        lead[i] = log_64(lead[i] if lead[i] > 0 else 1.0)


@kernel
def _start(row, lead, lowest, step, log, power, factor):
    """ℓ of one class into `log`, e^(lowest·ℓ) into `power`; with a step, e^(step·ℓ) into `factor`.

    Where `row` is 0, ℓ stands as 0 and its power is 0.
    """
    for i in range(row.shape[0]):
        p = np.float64(row[i])
        value = log_64(p) - lead[i]
        q = exp_64(lowest * value)
        log[i] = value if p > 0 else 0.0
        power[i] = q if p > 0 else 0.0
    if step > 0:
        for i in range(row.shape[0]):
            factor[i] = exp_64(step * log[i])


@kernel
def _label(probs, label, void, start, n, lead, enters, log):
    """1 into `enters` and ℓ_y into `log` where the label's class has a probability, else 0."""
    for i in range(n):
        y = label[start + i]
        enters[i] = 0.0
        log[i] = 0.0
        if y != void:
            p = np.float64(probs[y, start + i])
            if p > 0:
                enters[i] = 1.0
                log[i] = log_64(p) - lead[i]


@kernel
def _sum_powers(probs, start, n, lead, beta, z):
    """Σ_c e^(βℓ_c) of the pixels from `start` on, into `z` [pixel]; 0 where all are 0."""
    for i in range(n):
        z[i] = 0.0
    for c in range(probs.shape[0]):
        row = probs[c, start : start + n]
        for i in range(n):
            p = np.float64(row[i])
            q = exp_64(beta * (log_64(p) - lead[i]))
            z[i] += q if p > 0 else 0.0


@kernel
def add_slopes(probs, label, void, lowest, step, work, rungs, lanes, pixels):
    """Derivatives of the summed NLL of p̄^β by β, at several β, over the non-void pixels.

    Of one pixel they are E_β[ln p̄] - ln p̄_y and Var_β[ln p̄], the moments under p̄^β / Σ p̄^β.
    `probs` float32 [class, i]. The β are lowest, lowest + step …, or with a step of 0 lowest,
    2·lowest, 4·lowest …. `work` [5, BLOCK] and `rungs` [3, β, BLOCK] are worked in; the derivatives
    are added to `lanes` [2, β, BLOCK], pixel i to lane i modulo BLOCK. `pixels` [2] counts those
    that enter, and those with p̄_y = 0, which do not: their clipped NLL is the same at every β.
    """
    count = rungs.shape[1]
    lead, log, power, factor, mine = work[0], work[1], work[2], work[3], work[4]
    for start in range(0, probs.shape[1], BLOCK):
        n = min(BLOCK, probs.shape[1] - start)
        _lead(probs, start, n, lead)
        rungs[:, :, :n] = 0.0
        for c in range(probs.shape[0]):
            row = probs[c, start : start + n]
            _start(row, lead, lowest, step, log, power, factor)
            for j in range(count):
                z, first, second = rungs[0, j], rungs[1, j], rungs[2, j]
                if step > 0:
                    for i in range(n):
                        q = power[i]
                        ql = q * log[i]
                        z[i] += q
                        first[i] += ql
                        second[i] += ql * log[i]
                        power[i] = q * factor[i]
                else:
                    for i in range(n):
                        q = power[i]
                        ql = q * log[i]
                        z[i] += q
                        first[i] += ql
                        second[i] += ql * log[i]
                        power[i] = q * q if q > _SMALL else 0.0
        _label(probs, label, void, start, n, lead, factor, mine)
        for i in range(n):
            if label[start + i] != void:
                pixels[0 if factor[i] > 0 else 1] += 1
        for j in range(count):
            z, first, second = rungs[0, j], rungs[1, j], rungs[2, j]
            slope, curvature = lanes[0, j], lanes[1, j]
            for i in range(n):
                whole = z[i] if z[i] > 0 else 1.0
                mean = first[i] / whole
                slope[i] += factor[i] * (mean - mine[i])
                curvature[i] += factor[i] * (second[i] / whole - mean * mean)


@kernel
def temper(probs, label, void, beta, work, confidence, probability):
    """max p̄^β / Σ p̄^β into `confidence`, p̄_y^β / Σ p̄^β into `probability`, both [i].

    `confidence` is float32, `probability` float64 (0 where the pixel is void); `work` [2, BLOCK].
    """
    lead, z = work[0], work[1]
    for start in range(0, probs.shape[1], BLOCK):
        n = min(BLOCK, probs.shape[1] - start)
        _lead(probs, start, n, lead)
        _sum_powers(probs, start, n, lead, beta, z)
        for i in range(n):
            whole = z[i] if z[i] > 0 else 1.0
            confidence[start + i] = 1.0 / whole if z[i] > 0 else 0.0
            y = label[start + i]
            probability[start + i] = 0.0
            if y != void:
                p = np.float64(probs[y, start + i])
                if p > 0:
                    probability[start + i] = exp_64(beta * (log_64(p) - lead[i])) / whole


@kernel
def temper_samples(probs, beta, work):
    """p^β / Σ p^β of each sample, in place: `probs` float32 [sample, class, i]; `work` [2, BLOCK].

    Samples without a probability above 0 stay as they are.
    """
    lead, z = work[0], work[1]
    for t in range(probs.shape[0]):
        for start in range(0, probs.shape[2], BLOCK):
            n = min(BLOCK, probs.shape[2] - start)
            _lead(probs[t], start, n, lead)
            _sum_powers(probs[t], start, n, lead, beta, z)
            for c in range(probs.shape[1]):
                row = probs[t, c, start : start + n]
                for i in range(n):
                    p = np.float64(row[i])
                    q = exp_64(beta * (log_64(p) - lead[i]))
                    row[i] = q / z[i] if p > 0 else 0.0


@kernel
def add_label_logs(probs, label, void, lowest, step, work, z, top, sums):
    """Add samples to ln Σ_t p_ty^β / Σ_c p_tc^β of each pixel's label y, at several β.

    `probs` float32 [sample, class, i]; the β as of `add_slopes`. The sum is e^`top` · `sums`, both
    [β, i] and 0 at first; samples with p_ty = 0 and void pixels add nothing. `work` [4, BLOCK] and
    `z` [β, BLOCK] are worked in.
    """
    count = z.shape[0]
    lead, log, power, factor = work[0], work[1], work[2], work[3]
    for t in range(probs.shape[0]):
        for start in range(0, probs.shape[2], BLOCK):
            n = min(BLOCK, probs.shape[2] - start)
            _lead(probs[t], start, n, lead)
            z[:, :n] = 0.0
            for c in range(probs.shape[1]):
                row = probs[t, c, start : start + n]
                _start(row, lead, lowest, step, log, power, factor)
                for j in range(count):
                    whole = z[j]
                    if step > 0:
                        for i in range(n):
                            whole[i] += power[i]
                            power[i] *= factor[i]
                    else:
                        for i in range(n):
                            q = power[i]
                            whole[i] += q
                            power[i] = q * q if q > _SMALL else 0.0
            _label(probs[t], label, void, start, n, lead, factor, log)
            for j in range(count):
                beta = lowest + j * step if step > 0 else lowest * 2.0**j
                whole, high, total = z[j], top[j, start : start + n], sums[j, start : start + n]
                for i in range(n):
                    term = beta * log[i] - log_64(max(whole[i], 1.0))
                    peak = max(term, high[i]) if total[i] > 0 else term
                    both = total[i] * exp_64(min(high[i] - peak, 0.0)) + exp_64(term - peak)
                    total[i] = both if factor[i] > 0 else total[i]
                    high[i] = peak if factor[i] > 0 else high[i]


@kernel
def finish_label_logs(samples, top, sums, nll):
    """-ln of the mean over `samples` into `nll` float32 [β, i]; infinite where the sum is 0."""
    for j in range(nll.shape[0]):
        for i in range(nll.shape[1]):
            whole = sums[j, i]
            value = log_64(np.float64(samples)) - top[j, i] - log_64(whole if whole > 0 else 1.0)
            nll[j, i] = max(value, 0.0) if whole > 0 else np.inf


@kernel
def sum_label_logs(nll, label, void, sums, pixels):
    """Add finite NLLs [β, i] of the non-void pixels to `sums` [β].

    `pixels` [2] counts the pixels that enter, and those that are infinite, which do not.
    """
    for i in range(nll.shape[1]):
        if label[i] != void:
            pixels[0 if nll[0, i] < np.inf else 1] += 1
    for j in range(nll.shape[0]):
        total = 0.0
        for i in range(nll.shape[1]):
            if label[i] != void and nll[j, i] < np.inf:
                total += np.float64(nll[j, i])
        sums[j] += total
