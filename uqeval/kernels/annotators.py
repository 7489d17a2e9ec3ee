"""Several annotators: the classes that samples and annotators choose, pair by pair and pixel by
pixel."""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel
from uqeval.kernels.logarithm import log_64
from uqeval.kernels.samples import quantity


@kernel
def choose(tile, start, stop, at, t0, c0, leading, chosen):
    """Write each sample's likeliest class (lowest id on ties) into `chosen` [sample, pixel].

    `leading` float64 [row, pixel]: the largest probability so far of a sample.
    """
    samples, tile_classes, _ = tile.shape
    n = stop - start
    for t in range(samples):
        top = leading[(t0 + t) % leading.shape[0], at : at + n]
        choice = chosen[t0 + t, at : at + n]
        if c0 == 0:
            for i in range(n):
                top[i] = -np.inf
        for c in range(tile_classes):
            row = tile[t, c, start:stop]
            for i in range(n):
                p = np.float64(quantity(row[i]))
                if p > top[i]:
                    top[i] = p
                    choice[i] = c0 + c


@kernel
def majority(annotations, present, void, label):
    """Write the class of most annotators (lowest id on ties) into `label` [pixel].

    `annotations` [annotator, pixel]; `present` [annotator]: who labelled the item. A pixel is void
    if an annotator who labelled the item left it void, or if no annotator labelled the item.
    """
    annotators, pixels = annotations.shape
    for i in range(pixels):
        best, most = void, 0
        for r in range(annotators):
            if not present[r]:
                continue
            own = annotations[r, i]
            if own == void:
                best = void
                break
            votes = 0
            for q in range(annotators):
                votes += annotations[q, i] == own
            if votes > most or (votes == most and own < best):
                best, most = own, votes
        label[i] = best


@kernel
def count_overlaps(planes, label, void, place, common, alone, overlaps):
    """Count the pixels of each class in each plane of ids [plane, pixel], and in each pair.

    Pixels whose `label` is void do not count. `place` [class]: the column of a class.
    `common` [column]: pixels where all planes agree; the other pixels are counted into `alone`
    [plane, column] and `overlaps` [plane, plane, column], of the pairs with i < j.
    """
    count, pixels = planes.shape
    for x in range(pixels):
        if label[x] == void:
            continue
        first = planes[0, x]
        agree = True
        for i in range(1, count):
            agree &= planes[i, x] == first
        if agree:
            common[place[first]] += 1
            continue
        for i in range(count):
            own = planes[i, x]
            column = place[own]
            alone[i, column] += 1
            for j in range(i + 1, count):
                if planes[j, x] == own:
                    overlaps[i, j, column] += 1


@kernel
def disagreements(annotations, label, void, entropy, values):
    """Write how much the annotators disagree at each pixel that is not void; return their number.

    `annotations` [annotator, pixel] of those who labelled the item. The disagreement is 1 - Σ q²,
    or with `entropy` -Σ q·ln q, of the shares q of the classes. Fills `values` float64 [pixel] from
    the start, without gaps.
    """
    annotators, pixels = annotations.shape
    count = 0
    for i in range(pixels):
        if label[i] == void:
            continue
        pairs, total = 0, 0.0
        for r in range(annotators):
            votes = 0
            for q in range(annotators):
                votes += annotations[q, i] == annotations[r, i]
            pairs += votes
            if entropy and votes < annotators:
                total -= log_64(votes / annotators)
        values[count] = total / annotators if entropy else 1.0 - pairs / (annotators * annotators)
        count += 1
    return count


@kernel
def sum_votes(annotations, label, void, mean_probs, prediction, clip, votes, counts, sums, hits):
    """Compare mean probabilities [class, pixel] with the votes of the annotators who labelled them.

    `votes` [class] of all pixels. `counts` [4]: pixels, pixels with a clipped probability, ordered
    pairs of annotators at a pixel, and those that agree. `sums` [3]: the cross-entropy, the entropy
    of the votes, and Σ (p̄ - q)². `hits` [pixel]: the share of annotators who chose the prediction.
    """
    annotators, pixels = annotations.shape
    for i in range(pixels):
        if label[i] == void:
            continue
        pairs, chosen, clipped = 0, 0, False
        cross, entropy, brier = 0.0, 0.0, 0.0
        for r in range(annotators):
            own = annotations[r, i]
            count = 0
            for q in range(annotators):
                count += annotations[q, i] == own
            pairs += count
            votes[own] += 1
            chosen += own == prediction[i]
            p = np.float64(mean_probs[own, i])
            clipped |= p < clip
            cross -= log_64(max(p, clip))
            if count < annotators:
                entropy -= log_64(count / annotators)
            brier -= 2.0 * p
        brier /= annotators
        for c in range(mean_probs.shape[0]):
            p = np.float64(mean_probs[c, i])
            brier += p * p
        counts[0] += 1
        counts[1] += clipped
        counts[2] += annotators * (annotators - 1)
        counts[3] += pairs - annotators
        sums[0] += cross / annotators
        sums[1] += entropy / annotators
        sums[2] += max(brier + pairs / (annotators * annotators), 0.0)
        hits[i] = chosen / annotators
