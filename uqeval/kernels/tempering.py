"""Tempered probabilities p^β / Σ p^β, β = 1 / T, at many temperatures at once.

p are the mean probabilities p̄, or those of each sample before the mean.

Loops run class by class over blocks of pixels, to fill the vector registers. ℓ_c = ln p̄_c - ln max
p̄ is computed once per block and stored contiguously: rows of p̄ that are a power of two apart
evict each other from the cache. q = e^(βℓ) is at most 1, and 1 for the likeliest class, so nothing
overflows and Σ q >= 1. A class with p̄_c = 0 has q = 0 at every temperature.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part
from uqeval.kernels.exponential import exp_64
from uqeval.kernels.logarithm import log_64
from uqeval.kernels.pairwise import pairwise_sum

#: Pixels in a block.
BLOCK = 256
#: Smaller powers count as 0 before they are squared: subnormal numbers are slow.
_SMALL = 1e-140
#: ℓ where p̄ = 0: e^(βℓ) is 0 at every β >= 1/32. The least of a float32 p̄ > 0 is above -104.
_NEVER = -1e6


@kernel_part
def _logs(probs, start, n, logs, lead):
    """Write ℓ of the pixels from `start` on to `logs` [class, pixel]; `lead` [pixel] is scratch."""
    for i in range(n):
        lead[i] = _NEVER
    for c in range(probs.shape[0]):
        row, log = probs[c, start : start + n], logs[c]
        for i in range(n):
            p = np.float64(row[i])
            value = log_64(p)
            log[i] = value if p > 0 else _NEVER
            lead[i] = max(lead[i], log[i])
    for c in range(probs.shape[0]):
        log = logs[c]
        for i in range(n):
            log[i] = log[i] - lead[i] if log[i] > _NEVER else _NEVER


@kernel_part
def _powers(log, n, beta, power):
    """Write e^(βℓ) of one class into `power` [pixel]."""
    for i in range(n):
        power[i] = exp_64(beta * log[i])


@kernel_part
def _sum_powers(logs, n, beta, z):
    """Write Σ_c e^(βℓ_c) into `z` [pixel]; 0 where all p̄ are 0."""
    for i in range(n):
        z[i] = 0.0
    for c in range(logs.shape[0]):
        log = logs[c]
        for i in range(n):
            z[i] += exp_64(beta * log[i])


@kernel_part
def _label(logs, label, void, start, n, enters, label_term):
    """Write 1 to `enters` and ℓ_y to `label_term` where its class has a probability, else 0."""
    for i in range(n):
        y = label[start + i]
        enters[i] = 0.0
        label_term[i] = 0.0
        if y != void and logs[y, i] > _NEVER:
            enters[i] = 1.0
            label_term[i] = logs[y, i]


@kernel
def add_slopes(first, probs, label, void, lowest, step, slope, curvature, pixels):
    """Add derivatives of the summed NLL of p̄^β by β, at several β, over the non-void pixels.

    For one pixel, they are E_β[ln p̄] - ln p̄_y and Var_β[ln p̄], moments under p̄^β / Σ p̄^β.
    `probs` float32 [class, k], `slope` and `curvature` [item, β]; the pixels of item i are those
    from `first[i]` up to `first[i + 1]`. The β are lowest, lowest + step …, or with a step of 0
    lowest, 2·lowest, 4·lowest …. `pixels` [item, 2] counts the pixels that are added, and those
    with p̄_y = 0, which are not: their clipped NLL is the same at every β.
    """
    count = slope.shape[1]
    logs, work = np.empty((probs.shape[0], BLOCK)), np.empty((3, BLOCK))
    step_sums, lanes = np.empty((3, count, BLOCK)), np.empty((2, count, BLOCK))
    power, factor, label_term = work[0], work[1], work[2]
    for item in range(first.shape[0] - 1):
        lanes[:] = 0.0
        begin, end = first[item], first[item + 1]
        for start in range(begin, end, BLOCK):
            n = min(BLOCK, end - start)
            _logs(probs, start, n, logs, power)
            step_sums[:, :, :n] = 0.0
            for c in range(probs.shape[0]):
                log = logs[c]
                _powers(log, n, lowest, power)
                if step > 0:
                    _powers(log, n, step, factor)
                for j in range(count):
                    z, first_sum, second = step_sums[0, j], step_sums[1, j], step_sums[2, j]
                    for i in range(n):
                        q = power[i]
                        ql = q * log[i]
                        z[i] += q
                        first_sum[i] += ql
                        second[i] += ql * log[i]
                        square = q * q if q > _SMALL else 0.0
                        power[i] = q * factor[i] if step > 0 else square
            _label(logs, label, void, start, n, factor, label_term)
            for i in range(n):
                if label[start + i] != void:
                    pixels[item, 0 if factor[i] > 0 else 1] += 1
            for j in range(count):
                z, first_sum, second = step_sums[0, j], step_sums[1, j], step_sums[2, j]
                of_slope, of_curvature = lanes[0, j], lanes[1, j]
                for i in range(n):
                    divisor = z[i] if z[i] > 0 else 1.0
                    mean = first_sum[i] / divisor
                    of_slope[i] += factor[i] * (mean - label_term[i])
                    of_curvature[i] += factor[i] * (second[i] / divisor - mean * mean)
        for j in range(count):
            slope[item, j] += pairwise_sum(lanes[0, j])
            curvature[item, j] += pairwise_sum(lanes[1, j])


@kernel
def add_likelihoods(first, probs, label, void, betas, clip, nll, pixels):
    """Add -ln max(p̄_y^β / Σ p̄^β, `clip`) at each of `betas` to `nll` [item, β], over the non-void
    pixels with p̄_y > 0.

    `first`, `probs` and `pixels` as in `add_slopes`.
    """
    logs, work = np.empty((probs.shape[0], BLOCK)), np.empty((3, BLOCK))
    z, enters, label_term = work[0], work[1], work[2]
    for item in range(first.shape[0] - 1):
        begin, end = first[item], first[item + 1]
        for start in range(begin, end, BLOCK):
            n = min(BLOCK, end - start)
            _logs(probs, start, n, logs, z)
            _label(logs, label, void, start, n, enters, label_term)
            for i in range(n):
                if label[start + i] != void:
                    pixels[item, 0 if enters[i] > 0 else 1] += 1
            for j in range(betas.shape[0]):
                _sum_powers(logs, n, betas[j], z)
                for i in range(n):
                    divisor = z[i] if z[i] > 0 else 1.0
                    z[i] = log_64(max(exp_64(betas[j] * label_term[i]) / divisor, clip))
                for i in range(n):
                    nll[item, j] -= z[i] if enters[i] > 0 else 0.0


@kernel
def temper(probs, label, void, beta, logs, work, confidence, probability):
    """Write max p̄^β / Σ p̄^β into `confidence`, p̄_y^β / Σ p̄^β into `probability`, both [i].

    `confidence` is float32, `probability` float64 (0 where the pixel is void); `logs` [class,
    BLOCK] and `work` [3, BLOCK] are work arrays.
    """
    z, enters, label_term = work[0], work[1], work[2]
    for start in range(0, probs.shape[1], BLOCK):
        n = min(BLOCK, probs.shape[1] - start)
        _logs(probs, start, n, logs, z)
        _sum_powers(logs, n, beta, z)
        _label(logs, label, void, start, n, enters, label_term)
        for i in range(n):
            divisor = z[i] if z[i] > 0 else 1.0
            confidence[start + i] = 1.0 / divisor if z[i] > 0 else 0.0
            probability[start + i] = enters[i] * exp_64(beta * label_term[i]) / divisor


@kernel
def temper_samples(probs, beta, logs, work):
    """Replace each sample by p^β / Σ p^β, in place: `probs` float32 [sample, class, i].

    `logs` [class, BLOCK] and `work` [BLOCK] are work arrays. Samples without a probability above 0
    stay unchanged.
    """
    for t in range(probs.shape[0]):
        for start in range(0, probs.shape[2], BLOCK):
            n = min(BLOCK, probs.shape[2] - start)
            _logs(probs[t], start, n, logs, work)
            _sum_powers(logs, n, beta, work)
            for c in range(probs.shape[1]):
                row, log = probs[t, c, start : start + n], logs[c]
                for i in range(n):
                    row[i] = exp_64(beta * log[i]) / work[i] if work[i] > 0 else 0.0


@kernel
def add_label_logs(probs, label, void, lowest, step, logs, work, z, top, sums):
    """Add samples to ln Σ_t p_ty^β / Σ_c p_tc^β of each pixel's label y, at several β.

    `probs` float32 [sample, class, i]; the β as in `add_slopes`. The sum is e^`top` · `sums`, both
    [β, i] and 0 at first. Samples with p_ty = 0 and void pixels add nothing. `logs` [class, BLOCK],
    `work` [3, BLOCK] and `z` [β, BLOCK] are work arrays.
    """
    count = z.shape[0]
    power, factor, label_term = work[0], work[1], work[2]
    for t in range(probs.shape[0]):
        for start in range(0, probs.shape[2], BLOCK):
            n = min(BLOCK, probs.shape[2] - start)
            _logs(probs[t], start, n, logs, power)
            z[:, :n] = 0.0
            for c in range(probs.shape[1]):
                _powers(logs[c], n, lowest, power)
                if step > 0:
                    _powers(logs[c], n, step, factor)
                for j in range(count):
                    divisor = z[j]
                    if step > 0:
                        for i in range(n):
                            divisor[i] += power[i]
                            power[i] *= factor[i]
                    else:
                        for i in range(n):
                            q = power[i]
                            divisor[i] += q
                            power[i] = q * q if q > _SMALL else 0.0
            _label(logs, label, void, start, n, factor, label_term)
            for j in range(count):
                beta = lowest + j * step if step > 0 else lowest * 2.0**j
                divisor, high, total = z[j], top[j, start : start + n], sums[j, start : start + n]
                for i in range(n):
                    term = beta * label_term[i] - log_64(max(divisor[i], 1.0))
                    peak = max(term, high[i]) if total[i] > 0 else term
                    combined = total[i] * exp_64(min(high[i] - peak, 0.0)) + exp_64(term - peak)
                    total[i] = combined if factor[i] > 0 else total[i]
                    high[i] = peak if factor[i] > 0 else high[i]


@kernel
def finish_label_logs(samples, top, sums, nll):
    """Write -ln of the mean over `samples` into `nll` float32 [β, i]; infinite where the sum is
    0.
    """
    for j in range(nll.shape[0]):
        for i in range(nll.shape[1]):
            divisor = sums[j, i]
            value = (
                log_64(np.float64(samples)) - top[j, i] - log_64(divisor if divisor > 0 else 1.0)
            )
            nll[j, i] = max(value, 0.0) if divisor > 0 else np.inf


@kernel
def sum_label_logs(nll, label, void, most, sums, pixels):
    """Add finite NLLs [β, i] of the non-void pixels, at most `most` each, to `sums` [β].

    `pixels` [2] counts the pixels with a finite NLL, and those with an infinite one.
    """
    for i in range(nll.shape[1]):
        if label[i] != void:
            pixels[0 if nll[0, i] < np.inf else 1] += 1
    for j in range(nll.shape[0]):
        total = 0.0
        for i in range(nll.shape[1]):
            if label[i] != void and nll[j, i] < np.inf:
                total += min(np.float64(nll[j, i]), most)
        sums[j] += total
