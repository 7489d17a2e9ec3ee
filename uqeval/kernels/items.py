"""Count one large item, or many small ones in one call: their pixels are concatenated.

`first` int64 [item + 1]: the pixels of item i are those from `first[i]` up to `first[i + 1]`. The
counts are added to arrays [item, …].
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import bits_of_float32, kernel, kernel_part
from uqeval.kernels.counting import BLOCK, high_bits, rank_key
from uqeval.kernels.pairwise import pairwise_sum
from uqeval.kernels.sorting import DIGITS, RADIX, radix_sort, sum_ties

#: Up to this many keys, insertion sort is faster than radix sort.
_FEW = 32


# Pixels of an item are taken as slices, since an index that may be negative takes a quarter longer.


@kernel
def count_classes_of_items(first, label, prediction, void, labelled, predicted, correct, ignored):
    """Count pixels [k] by label, by prediction, and right ones, into [item, class]; void ones into
    [item, 1]."""
    for i in range(first.shape[0] - 1):
        labels, predictions = label[first[i] : first[i + 1]], prediction[first[i] : first[i + 1]]
        of_label, of_prediction, right = labelled[i], predicted[i], correct[i]
        for k in range(labels.shape[0]):
            c = labels[k]
            if c == void:
                ignored[i, 0] += 1
                continue
            p = predictions[k]
            of_label[c] += 1
            of_prediction[p] += 1
            if p == c:
                right[c] += 1


@kernel
def count_undetected_of_items(first, score, prediction, label, void, threshold, counts):
    """Count pixels [k], wrong ones and wrong ones not above the `threshold`, into
    [item, class of label, 3]."""
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        scores, predictions, labels, of_item = score[a:b], prediction[a:b], label[a:b], counts[i]
        for k in range(labels.shape[0]):
            c = labels[k]
            if c != void:
                of_item[c, 0] += 1
                if predictions[k] != c:
                    of_item[c, 1] += 1
                    if scores[k] <= threshold:
                        of_item[c, 2] += 1


@kernel
def count_by_uncertainty_of_items(
    first, value, label, prediction, void, edges, pixels, correct
):  # fmt: skip
    """Count pixels [k], and right ones, by prediction and number of `edges` below `value`, into
    [item, class, interval]."""
    for i in range(first.shape[0] - 1):
        a, b = first[i], first[i + 1]
        values, labels, predictions = value[a:b], label[a:b], prediction[a:b]
        of_item, right = pixels[i], correct[i]
        for k in range(labels.shape[0]):
            c = labels[k]
            if c != void:
                v, p = values[k], predictions[k]
                interval = 0
                for e in range(edges.shape[0]):
                    interval += v > edges[e]
                of_item[p, interval] += 1
                if p == c:
                    right[p, interval] += 1


@kernel
def measure_items(first, value, label, void, count, total, least, most):
    """Update the count, sum, minimum and maximum of `value` [k] by label, in [item, class]."""
    for i in range(first.shape[0] - 1):
        values, labels = value[first[i] : first[i + 1]], label[first[i] : first[i + 1]]
        n, sums, low, high = count[i], total[i], least[i], most[i]
        for k in range(labels.shape[0]):
            c = labels[k]
            if c != void:
                v = np.float64(values[k])
                n[c] += 1
                sums[c] += v
                low[c] = min(low[c], v)
                high[c] = max(high[c], v)


@kernel_part
def sort_keys(keys, buffer, counts):
    """Sort `keys` uint64 [i] in place. Work arrays: `buffer` [i], `counts` [DIGITS, RADIX]."""
    n = keys.shape[0]
    if n > _FEW:
        counts[:] = 0
        if radix_sort(keys, buffer[:n], counts):
            for i in range(n):  # an assignment of arrays takes two seconds to compile
                keys[i] = buffer[i]
        return
    for i in range(1, n):
        key = keys[i]
        j = i
        while j > 0 and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel_part
def largest_item(first):
    """Return the number of pixels of the largest item."""
    most = 0
    for i in range(first.shape[0] - 1):
        most = max(most, first[i + 1] - first[i])
    return most


@kernel
def count_ranks_of_items(
    first, score, error, label, void, squared, shift, counts, sums, used, used_words,
    ends, places, pixels, errors,
):  # fmt: skip
    """Count pixels [k] and sum their errors (or squared errors) by `key >> shift`, per item.

    The occupied bins of item i are the entries `ends[i]` up to `ends[i + 1]`: `places`, ascending,
    with their `pixels` and `errors` [entry]. Work arrays, all 0 before and after: `counts` and
    `sums` [bin], and the bits `used` uint64 [bin / 64] and `used_words` uint64 [bin / 4096].
    """
    high, bins = np.empty(BLOCK, np.int32), counts.shape[0]
    for i in range(first.shape[0] - 1):
        for start in range(first[i], first[i + 1], BLOCK):
            stop = min(start + BLOCK, first[i + 1])
            values, labels = error[start:stop], label[start:stop]
            high_bits(score[start:stop], labels, void, shift, high)
            for k in range(labels.shape[0]):
                b = np.uint32(high[k])
                if b < bins:
                    if counts[b] == 0:
                        _mark(used, used_words, np.int64(b))
                    e = np.float64(values[k])
                    counts[b] += 1
                    sums[b] += e * e if squared else e
        ends[i + 1] = _take(used, used_words, counts, sums, ends[i], places, pixels, errors)


@kernel_part
def _mark(used, used_words, b):
    """Mark a bin, and the word of `used` that has its bit."""
    used[b >> 6] |= np.uint64(1) << np.uint64(b & 63)
    used_words[b >> 12] |= np.uint64(1) << np.uint64((b >> 6) & 63)


@kernel_part
def _take(used, used_words, counts, sums, written, places, pixels, errors):
    """Write the marked bins, ascending, from entry `written` on, and clear them; return the end."""
    one = np.uint64(1)
    for group in range(used_words.shape[0]):
        words = used_words[group]
        used_words[group] = 0
        word = group << 6
        while words:
            bits = used[word] if words & one else np.uint64(0)
            words >>= one
            b = word << 6
            while bits:
                if bits & one:
                    places[written], pixels[written], errors[written] = b, counts[b], sums[b]
                    counts[b], sums[b] = 0, 0
                    written += 1
                bits >>= one
                b += 1
            used[word] = 0
            word += 1
    return written


@kernel
def detect_failures_of_items(first, score, wrong, label, void, counts, pairs, sums):
    """Add the counts of `ItemFailure` of each item to [item, 3], [item, 2] and [item, 3].

    `wrong` float32 [k] is 1 where the prediction is wrong, else 0.
    """
    most = largest_item(first)
    all_keys, buffer = np.empty(most, np.uint64), np.empty(most, np.uint64)
    histogram = np.empty((DIGITS, RADIX), np.int64)
    tied, wrong_of_tie = np.empty(most, np.int64), np.empty(most, np.float64)
    terms = np.empty((3, most), np.float64)
    for i in range(first.shape[0] - 1):
        n = 0
        for k in range(first[i], first[i + 1]):
            if label[k] != void:
                low = np.int64(bits_of_float32(wrong[k] + np.float32(0.0)))
                all_keys[n] = np.uint64(rank_key(score[k]) << 32 | low)
                n += 1
        if n == 0:
            continue
        keys = all_keys[:n]
        sort_keys(keys, buffer, histogram)
        ties = sum_ties(keys, False, tied, wrong_of_tie)
        wrongs = np.int64(0)
        for t in range(ties):
            wrongs += np.int64(wrong_of_tie[t])
        upto, wrong_upto, in_order, found_right = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for t in range(ties):
            e = np.int64(wrong_of_tie[t])
            c = tied[t] - e
            above, wrong_above = n - upto, wrongs - wrong_upto
            upto, wrong_upto = upto + tied[t], wrong_upto + e
            right_upto = upto - wrong_upto
            if 20 * wrong_above >= 19 * wrongs:
                found_right = above - wrong_above
            in_order += e * (2 * right_upto - c)
            terms[0, t] = e * (wrong_above / above)
            terms[1, t] = c * (right_upto / upto)
            terms[2, t] = tied[t] * (wrong_upto / upto)
        counts[i, 0] += n
        counts[i, 1] += wrongs
        counts[i, 2] += found_right if wrongs else 0
        pairs[i, 0] += wrongs * (n - wrongs)
        pairs[i, 1] += in_order
        for s in range(3):
            sums[i, s] += pairwise_sum(terms[s, :ties])
