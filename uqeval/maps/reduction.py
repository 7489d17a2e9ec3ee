"""Sample stacks to maps: tiles in, per-pixel maps out, the same bits whatever the tiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.kernels import samples as kernels
from uqeval.maps.checks import SumCheck
from uqeval.maps.names import COMPUTED, OF_LABELS, OF_SEVERAL_SAMPLES, id_dtype, void_of

Maps = dict[str, NDArray[Any]]

#: Pixels that are worked on at a time: their accumulators stay in a core's second-level cache.
BLOCK = 2048
_FLAGS = {
    "entropy": kernels.ENTROPY,
    "expected_entropy": kernels.EXPECTED_ENTROPY,
    "mutual_information": kernels.EXPECTED_ENTROPY,
    "variation_ratio": kernels.VARIATION_RATIO,
    "std": kernels.STD,
    "mean_probs": kernels.MEAN_PROBS,
}


@dataclass(frozen=True)
class Form:
    """What all samples of a stack have in common, and which maps are wanted of them.

    `samples` T, `classes` C (at least 2), `dtype` of the numbers that the kernels see (int16 stands
    for the bits of float16), `unit` the probability of one of them, `tolerance` of |Σ_c p - 1|.
    """

    samples: int
    classes: int
    dtype: np.dtype[Any]
    unit: float
    tolerance: float
    wanted: frozenset[str]

    @property
    def flags(self) -> int:
        """The wanted maps as the kernels are told of them."""
        return sum({_FLAGS[name] for name in self.wanted if name in _FLAGS})

    @property
    def sum_dtype(self) -> np.dtype[Any]:
        """Exact for float16 and integers: int32 holds 127 samples of float16, int64 the rest."""
        if self.dtype == np.int16:
            return np.dtype(np.int32 if self.samples <= 127 else np.int64)
        return np.dtype(np.float64 if self.dtype.kind == "f" else np.int64)

    @property
    def total_dtype(self) -> np.dtype[Any]:
        """The dtype of Σ_c p of one sample."""
        if self.dtype == np.int16:
            return np.dtype(np.int32)
        return self.sum_dtype

    @property
    def sum_unit(self) -> float:
        """The probability of one unit of the sums."""
        return kernels.HALF_UNIT if self.dtype == np.int16 else self.unit

    def accumulator_bytes(self, pixels: int, split: bool) -> int:
        """Bytes of the accumulators of `pixels` pixels; `split`: classes come in several tiles."""
        rows = self.samples if split else 1
        bytes_ = self.classes * self.sum_dtype.itemsize + rows * self.total_dtype.itemsize + 8
        if "variation_ratio" in self.wanted:
            bytes_ += 2 * self.classes + 8 * rows
        if "std" in self.wanted:
            bytes_ += 16 * self.classes
        return bytes_ * pixels

    def map_bytes(self) -> int:
        """Bytes a pixel of all maps."""
        return sum(
            {"prediction": 2, "label": 2, "label_rank": 2, "mean_probs": 4 * self.classes}.get(n, 4)
            for n in self.wanted
        )


@dataclass
class Accumulators:
    """Running sums of `pixels` pixels; see `uqeval.kernels.samples` for what each array holds."""

    form: Form
    pixels: int
    split: bool
    arrays: dict[str, NDArray[Any]] = field(init=False)

    def __post_init__(self) -> None:
        form, n = self.form, self.pixels
        rows = form.samples if self.split else 1
        votes = n if "variation_ratio" in form.wanted else 0
        squares = n if "std" in form.wanted else 0
        self.arrays = {
            "sums": np.zeros((form.classes, n), form.sum_dtype),
            "totals": np.zeros((rows, n), form.total_dtype),
            "plogp": np.zeros(n, np.int64),
            "best": np.zeros((rows, votes), np.float32),
            "vote": np.zeros((rows, votes), np.int32),
            "votes": np.zeros((form.classes, votes), np.uint16),
            "first": np.zeros((form.classes, squares), np.float64),
            "squares": np.zeros((form.classes, squares), np.float64),
        }

    def clear(self) -> None:
        """Begin again, for other pixels."""
        for name in ("sums", "plogp", "votes"):
            self.arrays[name][...] = 0


class Reducer:
    """Turns the tiles of one box of one item into maps.

    `add` takes tiles [sample, class, pixel] in ascending order of samples and, within them, of
    classes; `finish` gives the maps [pixel]. Where the box comes as one tile, `reduce` does both,
    block by block, with accumulators that fit the cache.
    """

    def __init__(self, form: Form, pixels: int, *, whole: bool, split: bool, check: SumCheck) -> None:
        self.form = form
        self.pixels = pixels
        self.check = check
        self.sums = Accumulators(form, min(BLOCK, pixels) if whole else pixels, split)
        self._terms = np.zeros(BLOCK, np.int32)
        self._lead = np.zeros(BLOCK, form.sum_dtype)
        self._wide = np.zeros(BLOCK, np.float64)
        self._scratch = np.zeros(BLOCK, np.float32)

    def add(self, tile: NDArray[Any], t0: int, c0: int) -> None:
        """Add a tile [sample, class, pixel] that begins at sample `t0` and class `c0`.

        Raises `DataError` where its numbers are no probabilities.
        """
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self._add(tile, start, stop, start, t0, c0)

    def finish(self, label: NDArray[Any] | None = None) -> Maps:
        """The maps [pixel] of all that was added (`mean_probs`: [class, pixel])."""
        maps = self.empty()
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self._finish(maps, start, stop, start, label)
        return maps

    def reduce(self, tile: NDArray[Any], label: NDArray[Any] | None = None) -> Maps:
        """The maps of a tile that holds all samples and classes of its pixels."""
        maps = self.empty()
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self.sums.clear()
            self._add(tile, start, stop, 0, 0, 0)
            self._finish(maps, start, stop, 0, label)
        return maps

    def empty(self) -> Maps:
        """Unfilled maps of the wanted names."""
        form, n = self.form, self.pixels
        ids = id_dtype(form.classes)
        dtypes = {"prediction": ids, "label": ids, "label_rank": "uint16"}
        return {
            name: np.empty(
                (form.classes, n) if name == "mean_probs" else n, dtypes.get(name, "float32")
            )
            for name in form.wanted
        }

    def _add(
        self, tile: NDArray[Any], start: int, stop: int, at: int, t0: int, c0: int
    ) -> None:
        form, arrays = self.form, self.sums.arrays
        extremes = self.check.fresh()
        worst = kernels.add_samples(
            tile, start, stop, at, t0, c0, form.unit, bool(form.flags & kernels.EXPECTED_ENTROPY),
            arrays["sums"], arrays["totals"], extremes, self._terms, arrays["plogp"],
        )  # fmt: skip
        if worst > 0 or self.check.broken(extremes):
            self.check.explain(tile, start, stop, t0, arrays["totals"][:, at : at + stop - start])
        if form.flags & kernels.VARIATION_RATIO:
            kernels.add_votes(
                tile, start, stop, at, t0, c0, form.unit,
                arrays["best"], arrays["vote"], arrays["votes"],
            )  # fmt: skip
        if form.flags & kernels.STD:
            kernels.add_squares(tile, start, stop, at, t0, c0, arrays["first"], arrays["squares"])

    def _finish(
        self, maps: Maps, start: int, stop: int, at: int, label: NDArray[Any] | None
    ) -> None:
        form, arrays, n = self.form, self.sums.arrays, stop - start
        views = {
            name: values[:, start:stop] if name == "mean_probs" else values[start:stop]
            for name, values in maps.items()
        }
        unwanted = self._scratch

        def view(name: str) -> NDArray[Any]:
            return views.get(name, unwanted)

        mean = maps.get("mean_probs", np.empty((1, 0), np.float32))
        kernels.finish(
            at, n, start, form.samples, form.sum_unit, form.flags,
            arrays["sums"], arrays["plogp"], arrays["votes"], arrays["first"], arrays["squares"],
            self._lead, self._wide, views["prediction"], view("confidence"), view("entropy"),
            view("expected_entropy"), view("mutual_information"), view("variation_ratio"),
            view("std"), mean,
        )  # fmt: skip
        if label is None or not form.wanted & set(OF_LABELS):
            return
        if "label" in views:
            views["label"][:] = label[start:stop]
        if form.wanted & {"label_probability", "label_rank", "brier"}:
            rank = views.get("label_rank", np.empty(n, np.uint16))
            kernels.score_labels(
                at, n, form.samples, form.sum_unit, void_of(form.classes), arrays["sums"],
                label[start:stop], views["prediction"], self._wide,
                views.get("label_probability", np.empty(n, np.float32)), rank,
                views.get("brier", np.empty(n, np.float32)),
            )  # fmt: skip


def kernel_view(values: NDArray[Any]) -> NDArray[Any]:
    """A tile as the kernels take it: contiguous [sample, class, pixel], float16 as its bits."""
    flat = np.ascontiguousarray(values).reshape(*values.shape[:2], -1)
    return flat.view(np.int16) if flat.dtype == np.float16 else flat


def softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Probabilities [sample, class, y, x] in float32 (float64 for float64) of logits, over classes."""
    wide = np.float64 if logits.dtype == np.float64 else np.float32
    p = logits.astype(wide)
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
    return p


def foreground(p: NDArray[Any]) -> NDArray[Any]:
    """Two classes [sample, 2, y, x], background first, of one foreground probability."""
    wide = p.astype(np.float64 if p.dtype == np.float64 else np.float32)
    return np.concatenate([1.0 - wide, wide], axis=1, dtype=wide.dtype)


def on_grid(p: NDArray[Any]) -> NDArray[Any]:
    """float64 probabilities rounded to multiples of 2^-45, so that sums of up to 128 are exact."""
    magic = 1.5 * 2.0**7
    grid: NDArray[Any] = (p + magic) - magic
    return grid


def reduce_array(probs: NDArray[Any], names: Sequence[str] | None = None) -> Maps:
    """Maps of one item held in memory.

    `probs`: [sample, class, y, x] (or [class, y, x]), float16, float32 or float64. Returns
    `predictions` [y, x] (uint8, or uint16 from 256 classes on) and the named maps, float32 [y, x]
    (`mean_probs` [class, y, x]); by default all that are defined for the number of samples. Raises
    `DataError` where the numbers are no probabilities.
    """
    values = probs[None] if probs.ndim == 3 else probs
    samples, classes, height, width = values.shape
    if names is None:
        names = [n for n in COMPUTED if samples > 1 or n not in OF_SEVERAL_SAMPLES]
    wanted = frozenset(names) - {"predictions"} | {"prediction"}
    if values.dtype == np.float64 and samples > 1:
        values = on_grid(values)
    tile = kernel_view(values)
    tolerance = 2e-3 if probs.dtype == np.float16 else 1e-4
    form = Form(samples, classes, tile.dtype, 1.0, tolerance, wanted)
    check = SumCheck(classes, form.tolerance, form.sum_unit, form.total_dtype, "array in memory", width)
    reducer = Reducer(form, height * width, whole=True, split=False, check=check)
    maps = reducer.reduce(tile)
    return {
        ("predictions" if name == "prediction" else name): values.reshape(
            (classes, height, width) if name == "mean_probs" else (height, width)
        )
        for name, values in maps.items()
    }


def wanted_maps(names: Iterable[str]) -> frozenset[str]:
    """The maps to compute so that `names` can be had: always the prediction."""
    return frozenset(names) | {"prediction"}
