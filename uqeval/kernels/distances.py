"""Exact squared distances from pixels to the nearest pixel of another class, in integers.

Two sweeps (Meijster, Roerdink & Hesselink 2000): along columns to the nearest row of another class,
then along each row the lowest parabola over its columns. The distance transforms of libraries have
one background, so they take a call for each class, or one in which void is a class.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part


@kernel_part
def _pass_row(y, label, void, nearest, other):
    """Go on to row `y`: `nearest` [x] becomes the row of the last valid pixel of each column, and
    `other` [x] that of the last one of another class than this; -1 without one.
    """
    for x in range(label.shape[1]):
        if label[y, x] != void:
            if nearest[x] >= 0 and label[nearest[x], x] != label[y, x]:
                other[x] = nearest[x]
            nearest[x] = y


@kernel_part
def _row_of_other(c, x, label, nearest, other):
    """Return the row of the last pixel of column `x` that is of another class than `c`, or -1."""
    return nearest if nearest >= 0 and label[nearest, x] != c else other


@kernel_part
def _lowest(first, last, squares, sites, starts):
    """Find the columns nearest to columns `first` to `last`, and return their number.

    `squares` [x]: the squared distance along each column, -1 without one. The parabola over column
    `sites` [i] is the lowest from column `starts` [i] on.
    """
    count = 0
    for x in range(first, last + 1):
        if squares[x] < 0:
            continue
        start = first
        while count > 0:
            site = sites[count - 1]
            # Up to here, the parabola over the earlier site is not above that over x.
            start = (x * x - site * site + squares[x] - squares[site]) // (2 * (x - site)) + 1
            if start > starts[count - 1]:
                break
            count -= 1
            start = first
        if start <= last:
            sites[count] = x
            starts[count] = start
            count += 1
    return count


@kernel
def square_distances(label, void, squares):
    """Write into `squares` [y, x] int32 the squared distance of each valid pixel of `label` [y, x]
    to the nearest valid pixel of another class. Void pixels stay unchanged; so do all pixels if
    there is only one class."""
    height, width = label.shape
    above = np.empty((height, width), np.int32)
    other_above = np.empty((height, width), np.int32)
    nearest = np.full(width, -1, np.int32)
    other = np.full(width, -1, np.int32)
    for y in range(height):
        _pass_row(y, label, void, nearest, other)
        above[y] = nearest
        other_above[y] = other
    nearest[:] = -1
    other[:] = -1
    along_column = np.empty(width, np.int64)
    sites = np.empty(width, np.int64)
    starts = np.empty(width, np.int64)
    for y in range(height - 1, -1, -1):
        _pass_row(y, label, void, nearest, other)
        before = -1
        x = 0
        while x < width:
            c = label[y, x]
            if c == void:
                x += 1
                continue
            # From x to `last`, valid pixels are of class c. `before` and `after` are of others, and
            # nearer than all columns beyond.
            last, after = x, -1
            for right in range(x + 1, width):
                if label[y, right] == c:
                    last = right
                elif label[y, right] != void:
                    after = right
                    break
            begin = max(before, 0)
            end = after if after >= 0 else width - 1
            for u in range(begin, end + 1):
                up = _row_of_other(c, u, label, above[y, u], other_above[y, u])
                down = _row_of_other(c, u, label, nearest[u], other[u])
                rows = -1
                if up >= 0:
                    rows = y - up
                if down >= 0 and (rows < 0 or down - y < rows):
                    rows = down - y
                along_column[u] = -1 if rows < 0 else rows * rows
            count = _lowest(begin, end, along_column, sites, starts)
            i = 0
            for u in range(x, last + 1):
                while i + 1 < count and starts[i + 1] <= u:
                    i += 1
                if count > 0 and label[y, u] == c:
                    squares[y, u] = (u - sites[i]) ** 2 + along_column[sites[i]]
            before = last
            x = last + 1
