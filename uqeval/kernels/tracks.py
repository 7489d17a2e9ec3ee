"""Pixel loops of the point tracker: where flow can be trusted, and where an image has structure.

Sundaram, Brox & Keutzer 2010, "Dense point trajectories by GPU-accelerated large displacement
optical flow", after the authors' code. Derivatives are central differences, images being mirrored
at their border.
"""

from __future__ import annotations

import math

import numpy as np

from uqeval.kernels._jit import kernel, kernel_part

#: Flow [pixels] beyond this is unknown (the convention of .flo files), and so is NaN.
_UNKNOWN = 1e9


@kernel_part
def _is_known_flow(u, v):
    """Return whether both components of a flow are valid numbers."""
    return abs(u) <= _UNKNOWN and abs(v) <= _UNKNOWN


@kernel
def find_unreliable(
    forward, backward, round_trip_slope, round_trip_offset, boundary_slope, boundary_offset, out
):
    """Mark pixels with unreliable flow (rule 5), in bool `out` [y, x].

    `forward` w [y, x, (u, v)] in pixels, on the grid of the first frame, and `backward` ŵ on that
    of the second, both float32. True (a) where any of the four pixels around p + w is outside; (b)
    where |w + ŵ|² ≥ slope·(|w|² + |ŵ|²) + offset, ŵ bilinear at p + w; (c) where |∇u|² + |∇v|² >
    slope·|w|² + offset; and where w or ŵ is unknown at a pixel that (a), (b) or (c) reads.
    """
    height, width = out.shape
    for y in range(height):
        up, down = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            out[y, x] = True
            u, v = np.float64(forward[y, x, 0]), np.float64(forward[y, x, 1])
            if not _is_known_flow(u, v):
                continue
            left, top = math.floor(x + u), math.floor(y + v)
            if left < 0 or left + 1 >= width or top < 0 or top + 1 >= height:
                continue
            across, along = x + u - left, y + v - top
            is_known = True
            back_u, back_v = 0.0, 0.0
            for j in range(2):
                for i in range(2):
                    weight = (along if j else 1.0 - along) * (across if i else 1.0 - across)
                    a = np.float64(backward[top + j, left + i, 0])
                    b = np.float64(backward[top + j, left + i, 1])
                    is_known = is_known and _is_known_flow(a, b)
                    back_u += weight * a
                    back_v += weight * b
            if not is_known:
                continue
            moved = u * u + v * v
            mismatch = (u + back_u) * (u + back_u) + (v + back_v) * (v + back_v)
            motion = moved + back_u * back_u + back_v * back_v
            if mismatch >= round_trip_slope * motion + round_trip_offset:
                continue
            steep = 0.0
            before, after = max(x - 1, 0), min(x + 1, width - 1)
            for c in range(2):
                west, east = np.float64(forward[y, before, c]), np.float64(forward[y, after, c])
                north, south = np.float64(forward[up, x, c]), np.float64(forward[down, x, c])
                is_known = is_known and _is_known_flow(west, east) and _is_known_flow(north, south)
                dx, dy = 0.5 * (east - west), 0.5 * (south - north)
                steep += dx * dx + dy * dy
            if is_known and steep <= boundary_slope * moved + boundary_offset:
                out[y, x] = False


@kernel
def structure_tensor(image, out):
    """Write (Ix², IxIy, Iy²), summed over channels, of `image` [y, x, channel] to `out` [y, x,
    3].
    """
    height, width, channels = image.shape
    for y in range(height):
        up, down = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            left, right = max(x - 1, 0), min(x + 1, width - 1)
            xx, xy, yy = 0.0, 0.0, 0.0
            for c in range(channels):
                dx = 0.5 * (image[y, right, c] - image[y, left, c])
                dy = 0.5 * (image[down, x, c] - image[up, x, c])
                xx += dx * dx
                xy += dx * dy
                yy += dy * dy
            out[y, x, 0] = xx
            out[y, x, 1] = xy
            out[y, x, 2] = yy


@kernel
def smaller_eigenvalue(tensor, out):
    """Compute the smaller eigenvalue of each symmetric 2×2 matrix (xx, xy, yy) in `tensor` [y,
    x, 3], to `out` float64 [y, x].
    """
    height, width = out.shape
    for y in range(height):
        for x in range(width):
            xx, xy, yy = tensor[y, x, 0], tensor[y, x, 1], tensor[y, x, 2]
            half = 0.5 * (xx - yy)
            out[y, x] = 0.5 * (xx + yy) - math.sqrt(half * half + xy * xy)


@kernel
def cover(x, y, first, step, covered):
    """Mark the grid points that are closer than `step` pixels to a point (rules 2 and 3).

    `x`, `y` int64 [track] are pixels. Grid point [row, column] of bool `covered` has the position
    `first` + `step`·(row, column). On each axis only the two grid points before and the two after a
    point can be closer than `step`. The result equals a distance transform of the image with a zero
    at each pixel.
    """
    rows, columns = covered.shape
    for i in range(x.shape[0]):
        row, column = (y[i] - first) // step, (x[i] - first) // step
        for r in range(max(row, 0), min(row + 2, rows)):
            for c in range(max(column, 0), min(column + 2, columns)):
                dy, dx = first + step * r - y[i], first + step * c - x[i]
                if dx * dx + dy * dy < step * step:
                    covered[r, c] = True
