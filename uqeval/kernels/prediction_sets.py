"""Prediction sets of pixels: their classes, and the scores of the labels.

The sums of probabilities of a pixel are float64, added in the order of the classes in both kernels:
so the score of a label has the same bits as that of its class in the set.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import bits_of_float32, kernel, kernel_part

#: A prime and a generator of its group (Lehmer 1951; Park & Miller 1988).
_PRIME, _GENERATOR = 2147483647, 48271
_BLOCK = 4096


@kernel_part
def _uniform(probs, i, place):
    """Return a number in [0, 1) that depends on the probabilities of pixel i and its place in the
    item.

    Certain networks have the same probabilities at many pixels. Without the shift, numbers of
    places at equal distances would have equal distances.
    """
    hashed = np.int64(place) + 1
    for c in range(probs.shape[0]):
        hashed = (hashed * _GENERATOR + bits_of_float32(probs[c, i])) % _PRIME
    for _ in range(3):
        hashed = (hashed ^ (hashed >> 15)) * _GENERATOR % _PRIME
    return hashed / np.float64(_PRIME)


@kernel_part
def _remaining(rest, share, probability, whole):
    """Return `rest`, without a share of a probability, as a fraction of `whole`, as float32.

    float32 is fine near 0, where the mass of the likelier classes is nearly 1. A `whole` of 0,
    which a wide tolerance of sums allows, has no likelier class.
    """
    if whole == 0:
        return np.float32(1)
    return np.float32((rest - share * np.float64(probability)) / whole)


@kernel
def set_label_scores(probs, label, void, first, is_random, score):
    """Set `score` [i] to the mass that remains after the classes likelier than the label; 0 for
    void.

    This is the share of the other classes in the sum of the probabilities. `probs` float32
    [class, i]. `is_random`: minus a random share of the label's own probability. Item k has the
    pixels from `first[k]` to `first[k + 1]` (excluded).
    """
    for item in range(first.shape[0] - 1):
        for i in range(first[item], first[item + 1]):
            score[i] = 0
            if label[i] == void:
                continue
            own = probs[label[i], i]
            rest, whole = 0.0, 0.0
            for c in range(probs.shape[0]):
                p = np.float64(probs[c, i])
                whole += p
                if p <= own:
                    rest += p
            share = _uniform(probs, i, i - first[item]) if is_random else 0.0
            score[i] = _remaining(rest, share, own, whole)


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
def find_mass_sets(probs, label, void, first, least, is_random, size, hit):
    """Count the classes of pixels [i] with a remaining mass of at least `least`.

    `first` and `is_random` as in `set_label_scores`, `size` and `hit` as in `find_threshold_sets`;
    0 for void pixels.
    """
    classes = probs.shape[0]
    for item in range(first.shape[0] - 1):
        for i in range(first[item], first[item + 1]):
            size[i], hit[i] = 0, 0
            if label[i] == void:
                continue
            own = probs[label[i], i]
            share = _uniform(probs, i, i - first[item]) if is_random else 0.0
            whole, before = 0.0, np.float32(np.inf)
            while size[i] < classes:
                # The likeliest of the other classes, with those of equal probability.
                top, ties, rest = np.float32(-1), 0, 0.0
                for c in range(classes):
                    p = probs[c, i]
                    if p < before:
                        rest += np.float64(p)
                        if p >= top:
                            ties = ties + 1 if p == top else 1
                            top = p
                if size[i] == 0:
                    whole = rest
                if ties == 0 or _remaining(rest, share, top, whole) < least:
                    break
                size[i] += ties
                if own == top:
                    hit[i] = 1
                before = top
