"""Warp a frame onto another by optical flow, compare and count, in one pass.

A flow w, float32 [y, x, (dx, dy)] in pixels, is defined on the grid of the frame `now` and points
into the frame `before`. It is unknown where it is not finite or longer than 1e9. Coordinates are
float64.
"""

from __future__ import annotations

import math

import numpy as np

from uqeval.kernels._jit import bits_of_float32, kernel, kernel_part

#: A non-negative float32 has `COARSE_BITS` high bits (its coarse bin) and `FINE_BITS` low bits.
COARSE_BITS, FINE_BITS = 16, 15
_FARTHEST = 1e18


@kernel
def count_labelled(prediction, label, void, counts):
    """Count pixels with a label by prediction, by label and by both, into int64 `counts` [3,
    class].

    A void prediction counts for the label alone: a miss.
    """
    height, width = label.shape
    for y in range(height):
        for x in range(width):
            c = label[y, x]
            if c == void:
                continue
            counts[1, c] += 1
            p = prediction[y, x]
            if p == void:
                continue
            counts[0, p] += 1
            if p == c:
                counts[2, c] += 1


@kernel_part
def _is_hidden(u, v, moved, backward, x0, y0, x1, y1, fx, fy):
    """Return whether the flow (u, v) of squared length `moved` and the `backward` flow disagree.

    `backward` is bilinear: between the columns x0 and x1 at `fx`, the rows y0 and y1 at `fy`.
    """
    p = (1.0 - fx) * backward[y0, x0, 0] + fx * backward[y0, x1, 0]
    q = (1.0 - fx) * backward[y1, x0, 0] + fx * backward[y1, x1, 0]
    bu = (1.0 - fy) * p + fy * q
    p = (1.0 - fx) * backward[y0, x0, 1] + fx * backward[y0, x1, 1]
    q = (1.0 - fx) * backward[y1, x0, 1] + fx * backward[y1, x1, 1]
    bv = (1.0 - fy) * p + fy * q
    mismatch = (u + bu) * (u + bu) + (v + bv) * (v + bv)
    back_moved = bu * bu + bv * bv
    is_consistent = mismatch <= 0.01 * (moved + back_moved) + 0.5
    return not (is_consistent and back_moved <= _FARTHEST)


@kernel_part
def _change_to(grey, grey_before, x0, y0, x1, y1, fx, fy):
    """Return by how much `grey_before` is brighter than a pixel of brightness `grey`.

    `grey_before` is bilinear: between the columns x0 and x1 at `fx`, the rows y0 and y1 at `fy`.
    """
    # Differences to the pixel are integers, which are exact.
    top, low = np.int64(grey_before[y0, x0]), np.int64(grey_before[y1, x0])
    change = (top - grey) + fx * (np.int64(grey_before[y0, x1]) - top)
    below = (low - grey) + fx * (np.int64(grey_before[y1, x1]) - low)
    return change + fy * (below - change)


@kernel_part
def _neighbours(place, size):
    """Return the pixels below and above a place on an axis, clipped to the frame, and the weight of
    the upper one. They are the same pixel if the place is one.
    """
    clipped = min(max(place, 0.0), np.float64(size - 1))
    # Unsigned, so that Numba does not test for negative indices.
    low = np.uint64(np.int64(clipped))
    weight = clipped - np.int64(low)
    return low, low + np.uint64(weight > 0.0), weight


@kernel_part
def _count_ids(counts, current, before):
    """Count a pixel of two ids into [now = c, before = c, both][class]."""
    counts[0, current] += 1
    counts[1, before] += 1
    if current == before:
        counts[2, current] += 1


@kernel
def count_pair(
    current, before, grey, grey_before, flow, backward, occlusion, clamp, void, begin, end,
    counts, still, pixels, longest, sums,
):  # fmt: skip
    """Compare `current` with ŷ(p) = before[floor(p + w(p) + ½)], both ids [y, x], and count pixels.

    Reads the rows from `begin` up to `end` (excluded). Results:

    - int64 `counts` [visible, occluded][now = c, ŷ = c, both][class], over the counted pixels
    - int64 `still` [3, class]: the same for before(p) in place of ŷ(p), over the pixels that are
      void in neither
    - int64 `pixels`: all, counted, out of the frame, of unknown flow, void, occluded
    - float64 [1] `longest`: the maximum of |w| where it is known
    - float64 `sums` [y, 3] of each row: the sum of squares of `grey` minus `grey_before` (uint8 [y,
      x]), bilinear at p + w and at p, over the counted pixels; and the sum of the known |w|

    A pixel is of unknown flow, or else out of the frame, or else void (in `current` or ŷ), or else
    counted. With `clamp`, pixels from outside the frame take the value of the border: they are void
    or counted, and also count as out of the frame.

    With `occlusion`, a counted pixel is occluded unless |w + ŵ|² ≤ 0.01(|w|² + |ŵ|²) + 0.5. ŵ is
    `backward`, the flow on the grid of `before`, bilinear at p + w and known (Sundaram, Brox &
    Keutzer 2010). Without, `backward` is not read.
    """
    height, width = current.shape
    farthest = longest[0]
    for y in range(begin, end):
        pair_count, outside, unknown, empty, hidden = 0, 0, 0, 0, 0
        warped, identity, path = 0.0, np.int64(0), 0.0
        for x in range(width):
            c = current[y, x]
            b = before[y, x]
            if c != void and b != void:
                _count_ids(still, c, b)
            u, v = np.float64(flow[y, x, 0]), np.float64(flow[y, x, 1])
            moved = u * u + v * v
            if not moved <= _FARTHEST:
                unknown += 1
                continue
            norm = math.sqrt(moved)
            path += norm
            farthest = max(farthest, norm)
            px, py = x + u, y + v
            i, j = math.floor(px + 0.5), math.floor(py + 0.5)
            if i < 0 or i >= width or j < 0 or j >= height:
                outside += 1
                if not clamp:
                    continue
                i, j = min(max(i, 0), width - 1), min(max(j, 0), height - 1)
            s = before[np.uint64(j), np.uint64(i)]
            if c == void or s == void:
                empty += 1
                continue
            pair_count += 1
            x0, x1, fx = _neighbours(px, width)
            y0, y1, fy = _neighbours(py, height)
            g = np.int64(grey[y, x])
            error = _change_to(g, grey_before, x0, y0, x1, y1, fx, fy)
            warped += error * error
            change = g - np.int64(grey_before[y, x])
            identity += change * change
            o = 0
            if occlusion and _is_hidden(u, v, moved, backward, x0, y0, x1, y1, fx, fy):
                o = 1
                hidden += 1
            _count_ids(counts[o], c, s)
        pixels[0] += width
        pixels[1] += pair_count
        pixels[2] += outside
        pixels[3] += unknown
        pixels[4] += empty
        pixels[5] += hidden
        sums[y, 0], sums[y, 1], sums[y, 2] = warped, identity, path
    longest[0] = farthest


@kernel
def fold_rows(sums, squares, length):
    """Add the `sums` [y, 3] of rows, row after row, to float64 `squares` [2] and `length` [1].

    Squares are scaled to grey in [0, 1]. Rows are added in a fixed order, for identical bits.
    """
    for y in range(sums.shape[0]):
        squares[0] += sums[y, 0] / 65025.0
        squares[1] += sums[y, 1] / 65025.0
        length[0] += sums[y, 2]


@kernel_part
def _length(u, v):
    """Return the float32 |w|; -1 if w is unknown (its bits are a negative integer)."""
    a, b = np.float64(u), np.float64(v)
    moved = a * a + b * b
    return np.float32(math.sqrt(moved) if moved <= _FARTHEST else -1.0)


@kernel
def count_lengths(flow, lengths, coarse):
    """Write |w| of `flow` [y, x, 2] as the bits of a float32 into int32 `lengths` [y, x], negative
    where unknown; count known |w| by their high bits, into int64 `coarse` [bin].
    """
    height, width, _ = flow.shape
    for y in range(height):
        for x in range(width):
            bits = np.int64(bits_of_float32(_length(flow[y, x, 0], flow[y, x, 1])))
            lengths[y, x] = bits
            if bits >= 0:
                coarse[bits >> FINE_BITS] += 1


@kernel
def count_lengths_finely(lengths, slot, fine):
    """Count the known of int32 `lengths` [y, x] in the coarse bins that have a `slot` [bin] (else
    -1), into `fine` [slot, bin].
    """
    height, width = lengths.shape
    for y in range(height):
        for x in range(width):
            bits = np.int64(lengths[y, x])
            if bits >= 0:
                s = slot[bits >> FINE_BITS]
                if s >= 0:
                    fine[s, bits & ((1 << FINE_BITS) - 1)] += 1
