"""Prediction sets of pixels: their classes, and the scores of the labels.

Masses are sums of probabilities in units of 2⁻⁴⁰, rounded to integers: they have the same bits in
any order of the classes.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import bits_of_float32, kernel, kernel_part

_ONE = 2.0**40
#: A prime and a generator of its group (Lehmer 1951; Park & Miller 1988).
_PRIME, _GENERATOR = 2147483647, 48271
_BLOCK = 4096


@kernel_part
def _mass(probability):
    """Return a probability in units of 2⁻⁴⁰."""
    return np.int64(np.floor(np.float64(probability) * _ONE + 0.5))


@kernel_part
def _uniform(probs, i):
    """Return a number in [0, 1) that depends on the probabilities of pixel i alone."""
    hashed = np.int64(1)
    for c in range(probs.shape[0]):
        hashed = (hashed * _GENERATOR + bits_of_float32(probs[c, i])) % _PRIME
    for _ in range(3):
        hashed = hashed * _GENERATOR % _PRIME
    return hashed / np.float64(_PRIME)


@kernel_part
def _score(mass, share, probability):
    """Return the mass before a class plus a share of the mass of the class, as float32."""
    total = np.float64(mass)
    if share > 0:
        total += share * np.float64(_mass(probability))
    return np.float32(total / _ONE)


@kernel
def set_label_scores(probs, label, void, is_random, score):
    """Set `score` [i] to the mass of the classes that are likelier than the label, 0 for void.

    `probs` float32 [class, i]. `is_random`: plus a random share of the label's own probability.
    """
    for i in range(label.shape[0]):
        score[i] = 0
        if label[i] == void:
            continue
        p = probs[label[i], i]
        mass = np.int64(0)
        for c in range(probs.shape[0]):
            if probs[c, i] > p:
                mass += _mass(probs[c, i])
        share = _uniform(probs, i) if is_random else 0.0
        score[i] = _score(mass, share, p)


@kernel
def find_threshold_sets(probs, label, void, least, size, hit):
    """Count the classes of pixels [i] with a probability of at least `least`: `size` int32 [i], and
    whether the label is one of them: `hit` uint8 [i]. Void pixels are not counted.
    """
    for start in range(0, label.shape[0], _BLOCK):
        stop = min(start + _BLOCK, label.shape[0])
        sizes = size[start:stop]
        sizes[:] = 0
        for c in range(probs.shape[0]):
            row = probs[c, start:stop]
            for i in range(sizes.shape[0]):
                sizes[i] += row[i] >= least
    for i in range(label.shape[0]):
        hit[i] = label[i] != void and probs[label[i], i] >= least


@kernel
def find_mass_sets(probs, label, void, most, is_random, size, hit):
    """Count the classes of pixels [i] with a score of at most `most` (see `set_label_scores`).

    `size` and `hit` as in `find_threshold_sets`; 0 for void pixels.
    """
    classes = probs.shape[0]
    for i in range(label.shape[0]):
        size[i], hit[i] = 0, 0
        if label[i] == void:
            continue
        own = probs[label[i], i]
        share = _uniform(probs, i) if is_random else 0.0
        mass, before = np.int64(0), np.float32(np.inf)
        while size[i] < classes:
            # The likeliest of the other classes, with those of equal probability.
            top, ties = np.float32(-1), 0
            for c in range(classes):
                p = probs[c, i]
                if p < before and p >= top:
                    ties = ties + 1 if p == top else 1
                    top = p
            if ties == 0 or _score(mass, share, top) > most:
                break
            size[i] += ties
            if own == top:
                hit[i] = 1
            mass += ties * _mass(top)
            before = top
