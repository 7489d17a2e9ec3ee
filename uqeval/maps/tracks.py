"""Long tracks of points through a video, and whether predictions keep one label along them.

Consistency C26 of Varghese et al. 2020, §4.3, over the tracks of Sundaram et al. 2010. The rules
have the numbers of the authors' tracker. If the tracker and the paper differ, the tracker decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval import kernels
from uqeval.arrays import Array, Floats, Ints
from uqeval.maps.names import TRACK_LENGTHS, TrackRules, track_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The smallest distance of seeds from the border of the frame, in pixels.
_MARGIN = 4
#: Deviations of the Gaussians, in pixels: of the image, and of its structure tensor.
_SMOOTH, _INTEGRATE = 0.8, 3.0


class Tracker:
    """Follows points from pair to pair of frames and counts the labels that models give them.

    Only tracks that are alive are kept: their position, length, and each model's labels. The
    geometry is the same for all `models`, whose ids are below `classes`, or `void`.
    """

    def __init__(self, rules: TrackRules, models: int, classes: int, void: int) -> None:
        self.rules = rules
        self.models = models
        self.classes = classes
        self.void = void
        self._live = _no_tracks(models)

    def step(
        self,
        before_ids: Sequence[Array],
        after_ids: Sequence[Array],
        rgb_before: NDArray[np.uint8],
        forward: NDArray[np.float32],
        backward: NDArray[np.float32],
        first: bool,
        last: bool,
    ) -> Ints:
        """Return the counts [model, `track_columns`] that the pair of frames t-1 and t adds.

        `before_ids`, `after_ids`: each model's ids [y, x] of the two frames; `rgb_before` [y, x,
        channel] the image at t-1; `forward`, `backward` [y, x, (u, v)] the flow in pixels from t-1
        to t on the grid of t-1, and from t to t-1 on the grid of t. `first`: a run of frames
        begins, all tracks are forgotten. `last`: it ends, and all tracks with it.
        """
        rules = self.rules
        unreliable = np.empty(forward.shape[:2], bool)
        kernels.tracks.find_unreliable(
            forward, backward, rules.round_trip_slope, rules.round_trip_offset,
            rules.boundary_slope, rules.boundary_offset, unreliable,
        )  # fmt: skip
        live = _no_tracks(self.models) if first else self._live
        seeds = self._seeds(rgb_before, live, before_ids)
        ended, live = _advanced(_concatenate(live, seeds), forward, unreliable)
        is_alive, changed = self._read(live, after_ids)
        if last:
            ended, live = _concatenate(ended, live), _no_tracks(self.models)
        self._live = live
        columns = self._of_ended(ended) | {
            "alive": is_alive,
            "changed": changed,
            "unreliable": np.count_nonzero(unreliable),
            "pixels": unreliable.size,
            "seeds": seeds.length.size,
        }
        counts = np.empty((self.models, sum(track_columns(self.classes).values())), np.int64)
        at = 0
        for name, width in track_columns(self.classes).items():
            value = columns[name]
            counts[:, at : at + width] = value if width > 1 else np.reshape(value, (-1, 1))
            at += width
        return counts

    def _seeds(self, rgb: NDArray[np.uint8], live: _Tracks, ids: Sequence[Array]) -> _Tracks:
        """Return new tracks on the free points of the grid (rules 2 and 3)."""
        height, width = rgb.shape[:2]
        step = self.rules.step
        rows, columns = (np.arange(_MARGIN, n - _MARGIN, step) for n in (height, width))
        covered = np.zeros((rows.size, columns.size), bool)
        # A position may lie up to half a pixel outside: its pixel is the one at the border.
        y, x = (np.maximum(np.floor(v), 0).astype(np.int64) for v in (live.y, live.x))
        kernels.tracks.cover(x, y, _MARGIN, step, covered)
        if self.rules.structure and covered.size:
            covered |= ~_structured(rgb, rows, columns)
        r, c = np.nonzero(~covered)
        y, x = rows[r], columns[c]
        label = np.array([frame[y, x] for frame in ids], np.int32).reshape(self.models, y.size)
        return _Tracks(
            x.astype(np.float64),
            y.astype(np.float64),
            np.ones(y.size, np.int64),
            label,
            label.copy(),
            np.ones(label.shape, bool),
        )

    def _read(
        self, live: _Tracks, ids: Sequence[Array]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Read the labels at the new positions; tracks alive, and changed, of each model."""
        y, x = _pixel(live.y), _pixel(live.x)
        label = np.array([frame[y, x] for frame in ids], np.int32).reshape(live.label.shape)
        is_same_class = label == live.label
        live.steady &= is_same_class
        live.start[label == self.void] = self.void
        live.label[...] = label
        is_alive = live.start != self.void
        return np.count_nonzero(is_alive, axis=1), np.count_nonzero(
            is_alive & ~is_same_class, axis=1
        )

    def _of_ended(self, ended: _Tracks) -> dict[str, Any]:
        """Return the columns that tracks fill when they end, [model, ...]."""
        ended = ended.where(ended.length >= self.rules.min_length)
        counts = ended.start != self.void
        bins = np.searchsorted(TRACK_LENGTHS, ended.length, side="right") - 1

        def counts_by(values: Array, selected: NDArray[np.bool_], size: int) -> NDArray[np.intp]:
            rows = [np.bincount(values[m][selected[m]], minlength=size) for m in range(self.models)]
            return np.array(rows, np.intp).reshape(self.models, size)

        return {
            "tracks": counts_by(ended.start, counts, self.classes),
            "consistent": counts_by(ended.start, counts & ended.steady, self.classes),
            "points": np.where(counts, ended.length, 0).sum(axis=1),
            "lengths": counts_by(np.broadcast_to(bins, counts.shape), counts, len(TRACK_LENGTHS)),
            "dropped": np.count_nonzero(~counts, axis=1),
        }


@dataclass
class _Tracks:
    """Tracks, one per column; arrays of labels have one row per model.

    Position `x`, `y` float64 [track] in pixels; `length` int64 [track] in frames; `start` int32
    [model, track] the first label, or void once the track has touched void; `label` int32 the last
    one; `steady` bool whether all are the same.
    """

    x: Floats
    y: Floats
    length: Ints
    start: NDArray[np.int32]
    label: NDArray[np.int32]
    steady: NDArray[np.bool_]

    def where(self, selected: NDArray[np.bool_]) -> _Tracks:
        """Return the tracks for which `selected` [track] is true."""
        return _Tracks(*(values[..., selected] for values in vars(self).values()))


def _no_tracks(models: int) -> _Tracks:
    label = np.empty((models, 0), np.int32)
    return _Tracks(
        np.empty(0), np.empty(0), np.empty(0, np.int64), label, label, np.empty((models, 0), bool)
    )


def _concatenate(a: _Tracks, b: _Tracks) -> _Tracks:
    pairs = zip(vars(a).values(), vars(b).values(), strict=True)
    return _Tracks(*(np.concatenate(pair, axis=-1) for pair in pairs))


def _advanced(
    tracks: _Tracks, forward: NDArray[np.float32], unreliable: NDArray[np.bool_]
) -> tuple[_Tracks, _Tracks]:
    """Return the tracks that stop, unchanged, and those that continue, one frame longer (rule 6).

    Flow is read at the nearest pixel; a track stops if the flow is unreliable or leads outside.
    """
    height, width = unreliable.shape
    y, x = _pixel(tracks.y), _pixel(tracks.x)
    goes = ~unreliable[y, x]
    flow = np.where(goes[:, None], forward[y, x], 0)
    to_x, to_y = tracks.x + flow[:, 0], tracks.y + flow[:, 1]
    column, row = _pixel(to_x), _pixel(to_y)
    goes &= (column >= 0) & (column < width) & (row >= 0) & (row < height)
    moved = _Tracks(to_x, to_y, tracks.length + 1, tracks.start, tracks.label, tracks.steady)
    return tracks.where(~goes), moved.where(goes)


def _pixel(position: Floats) -> Ints:
    """Return the nearest pixel, floor(x + ½); ties are rounded right and down, as everywhere in
    `uqeval`.
    """
    return np.floor(position + 0.5).astype(np.int64)


def _structured(rgb: NDArray[np.uint8], rows: Ints, columns: Ints) -> NDArray[np.bool_]:
    """Return a mask of the grid points where an image in 0..255 has structure in both directions
    (rules 1 and 3).

    The smaller eigenvalue λ of the structure tensor has to reach mean(λ)·(0.1 + d) and 1 + d, with
    d = exp(-0.1·distance to the border), which is stricter near it. The authors' recursive
    Gaussians are replaced by OpenCV's, which stop at 4 deviations; images are mirrored.
    """
    import cv2

    def smooth(image: Floats, sigma: float) -> Floats:
        return cv2.GaussianBlur(image, (0, 0), sigma, borderType=cv2.BORDER_REFLECT)

    image = smooth(rgb.astype(np.float64), _SMOOTH)
    tensor = np.empty((*rgb.shape[:2], 3))
    kernels.tracks.structure_tensor(image, tensor)
    least = np.empty(rgb.shape[:2])
    kernels.tracks.smaller_eigenvalue(smooth(tensor, _INTEGRATE), least)
    height, width = rgb.shape[:2]
    border = np.minimum.outer(np.minimum(rows, height - rows), np.minimum(columns, width - columns))
    d = np.exp(-0.1 * border)
    at = least[np.ix_(rows, columns)]
    return (at >= least.mean() * (0.1 + d)) & (at >= 1.0 + d)
