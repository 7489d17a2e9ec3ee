"""Sums over sliding windows, at a cost that does not grow with the window.

Prefix and suffix sums of blocks as long as the window (van Herk 1992, Gil & Werman 1993): a window
that begins inside one block is the suffix of that block plus the prefix of the next. Nothing is
ever subtracted, so a window of zeros sums to exactly 0, which running sums and integral images of
floats do not give.
"""

from __future__ import annotations

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part

_RIGHT = np.int64(1 << 32)
_KNOWN = np.int64(1 << 40)


@kernel_part
def _slide(total, width, window, stride, prefix, suffix, out):
    """Write sums of `window` neighbours of `total` [x], one every `stride`, into `out` [column].

    `suffix` is None if no window crosses the border of a block: the compiler leaves out the rest.
    """
    for start in range(0, width, window):
        stop = min(start + window, width)
        running = total[start]
        prefix[start] = running
        for x in range(start + 1, stop):
            running += total[x]
            prefix[x] = running
    if suffix is None:
        for column in range(out.shape[0]):
            out[column] = prefix[column * stride + window - 1]
    else:
        for start in range(0, width, window):
            stop = min(start + window, width)
            running = total[stop - 1]
            suffix[stop - 1] = running
            for x in range(stop - 2, start - 1, -1):
                running += total[x]
                suffix[x] = running
        for column in range(out.shape[0]):
            x = column * stride
            last = prefix[x + window - 1]
            out[column] = last if x % window == 0 else suffix[x] + last


@kernel_part
def _read_row(
    y, uncertainty, label, right, void, wrong, padding_counts, left, padded_width, real, count
):
    """Write the pixels of row `y` and their padding: uncertainty into `real` [x], and into `count`
    [3, x] valid and right, labelled and class, class². A row outside the image is padding.
    """
    height, width = label.shape
    for x in range(padded_width):
        real[x] = 0.0
        for q in range(3):
            count[q, x] = 0
    is_inside = 0 <= y < height
    if padding_counts:
        for x in range(padded_width):
            if not is_inside or x < left or x >= left + width:
                count[0, x] = 1
    if is_inside:
        for i in range(width):
            x = left + i
            if label[y, i] != void:
                c = np.int64(label[y, i])
                real[x] = uncertainty[y, i]
                count[0, x] = 1 + _RIGHT * np.int64(right[y, i])
                count[1, x] = c + _KNOWN
                count[2, x] = c * c
            elif wrong is not None and wrong[y, i]:
                real[x] = uncertainty[y, i]
                count[0, x] = 1


@kernel_part
def _write_patches(sum_real, sum_count, void, mean, hits, valid, category):
    """Write the results [column] of one row of patches from their sums, as `patch_table` says."""
    for column in range(mean.shape[0]):
        n = sum_count[0, column] % _RIGHT
        valid[column] = n
        hits[column] = sum_count[0, column] // _RIGHT
        mean[column] = sum_real[column] / n if n else 0.0
        labelled = sum_count[1, column] // _KNOWN
        sum_of_classes = sum_count[1, column] % _KNOWN
        shared = sum_of_classes // labelled if labelled else 0
        if n == 0:
            category[column] = -1
        elif (
            labelled
            and shared * labelled == sum_of_classes
            and shared * shared * labelled == sum_count[2, column]
        ):
            category[column] = shared
        else:
            category[column] = void


@kernel
def patch_table(
    uncertainty, label, right, void, wrong, padding_counts, top, left, padded, window, stride,
    reals, counts, rows_real, rows_count, line_real, line_count, suffix_real, suffix_count,
    sum_real, sum_count, mean, hits, valid, category,
):  # fmt: skip
    """Compute mean uncertainty, right and valid pixels, and category of every patch.

    `uncertainty` (float32), `label`, `right` (0 or 1) are [y, x]; `padded` [2] is the height and
    width after `top` rows and `left` columns of padding. `wrong` [y, x]: the void pixels at which
    it is not 0 are valid and wrong; None: none is. `padding_counts`: padding is valid, wrong, and
    of uncertainty 0. Results are [row, column]: `mean` float32 of a float64 sum, `hits` and `valid`
    int32, `category` int32, which is -1 without valid pixels, the class that all known pixels
    share, or else `void`. Work arrays: `reals` [padded width] and `counts` [3, padded width] hold
    the running block; `rows_real` [window, padded width], `rows_count` [3, window, padded width]
    the last block; `line_*` [2, padded width] one row of windows and its prefix sums, `suffix_*`
    [padded width] its suffix sums; `sum_*` [columns] one row of patches. If the stride is a
    multiple of the window, no window crosses a block: `rows_*` have one row, and `suffix_*` are
    None.
    """
    planes = counts.shape[0]  # 3; loops over them are compiled once, not written out three times
    for v in range(padded[0]):
        j = v % window
        if j == 0:
            if suffix_real is not None:  # rows of the last block to its suffix sums
                for k in range(window - 2 if v > 0 else -1, -1, -1):
                    for x in range(padded[1]):
                        rows_real[k, x] += rows_real[k + 1, x]
                    for q in range(planes):
                        for x in range(padded[1]):
                            rows_count[q, k, x] += rows_count[q, k + 1, x]
            for x in range(padded[1]):
                reals[x] = 0.0
                for q in range(3):
                    counts[q, x] = 0
        # The row itself: kept while windows slide, else written over by the next one. Suffix j + 1
        # of the last block is the highest that is still needed, so row j may be replaced.
        k = 0 if suffix_real is None else j
        _read_row(
            v - top, uncertainty, label, right, void, wrong, padding_counts, left, padded[1],
            rows_real[k], rows_count[:, k],
        )  # fmt: skip
        for x in range(padded[1]):
            reals[x] += rows_real[k, x]
        for q in range(3):
            for x in range(padded[1]):
                counts[q, x] += rows_count[q, k, x]
        begin = v - window + 1
        if begin < 0 or begin % stride:
            continue
        row = begin // stride
        if suffix_real is None:
            _slide(reals, padded[1], window, stride, line_real[1], None, sum_real)
            for q in range(planes):
                _slide(counts[q], padded[1], window, stride, line_count[1], None, sum_count[q])
        else:
            aligned = j == window - 1
            line, sums = line_real[0], line_count[0]
            for x in range(padded[1]):
                line[x] = reals[x] if aligned else rows_real[j + 1, x] + reals[x]
            _slide(line, padded[1], window, stride, line_real[1], suffix_real, sum_real)
            for q in range(planes):
                for x in range(padded[1]):
                    sums[x] = counts[q, x] if aligned else rows_count[q, j + 1, x] + counts[q, x]
                _slide(sums, padded[1], window, stride, line_count[1], suffix_count, sum_count[q])
        _write_patches(sum_real, sum_count, void, mean[row], hits[row], valid[row], category[row])
