"""Reduce sample stacks to maps per pixel, tile by tile, with the same bits for any tiling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from uqeval import kernels
from uqeval.arrays import Array, Maps
from uqeval.maps.checks import SumCheck
from uqeval.maps.names import (
    COMPUTED,
    OF_SEVERAL_SAMPLES,
    choices_of,
    form_of,
    id_dtype,
    planes_of_ids,
    void_of,
)
from uqeval.stores.bfloat16 import tolerance_of
from uqeval.stores.incoming import as_array

#: Pixels reduced at a time, so that their accumulators stay in a core's L2 cache.
BLOCK = 2048


@dataclass(frozen=True)
class Form:
    """The common properties of all samples of a stack, and the requested maps.

    `samples` T; `classes` C (at least 2); `dtype` of the numbers in kernels (int16 contains the
    bits of float16); `unit`: the probability of the number 1.
    """

    samples: int
    classes: int
    dtype: np.dtype[Any]
    unit: float
    wanted: frozenset[str]

    @property
    def sums_entropies(self) -> bool:
        """Return whether the samples' own entropies are needed."""
        return bool(self.wanted & {"expected_entropy", "mutual_information"})

    @property
    def sum_dtype(self) -> np.dtype[Any]:
        """Return the dtype of sums, exact for float16 and integers: int32 for up to 127 samples of
        float16, else int64.
        """
        if self.dtype == np.int16:
            return np.dtype(np.int32 if self.samples <= 127 else np.int64)
        return np.dtype(np.float64 if self.dtype.kind == "f" else np.int64)

    @property
    def has_rests(self) -> bool:
        """Return whether numbers are rounded before their sum, and the rests are added apart."""
        return self.dtype == np.float64 and self.samples > 1

    @property
    def total_dtype(self) -> np.dtype[Any]:
        """Return the dtype of Σ_c p of one sample."""
        if self.dtype == np.int16:
            return np.dtype(np.int32)
        return self.sum_dtype

    @property
    def vote_dtype(self) -> np.dtype[Any]:
        """Return the dtype in which the classes of one sample are compared."""
        return np.dtype(np.float64 if self.dtype == np.float64 else np.float32)

    @property
    def sum_unit(self) -> float:
        """Return the probability of one unit of the sums."""
        return kernels.samples.HALF_UNIT if self.dtype == np.int16 else self.unit

    def accumulator_bytes(self, pixels: int, splits_classes: bool) -> int:
        """Return bytes of the accumulators of `pixels` pixels; `splits_classes`: classes come in
        several tiles.
        """
        rows = self.samples if splits_classes else 1
        bytes_ = self.classes * self.sum_dtype.itemsize + rows * self.total_dtype.itemsize + 8
        if "variation_ratio" in self.wanted:
            bytes_ += 2 * self.classes + (4 + self.vote_dtype.itemsize) * rows
        if "std" in self.wanted:
            bytes_ += 16 * self.classes
        if self.choices:
            bytes_ += 2 * self.samples + 8 * rows
        if self.has_rests:
            bytes_ += 8 * self.classes
        return bytes_ * pixels

    @property
    def choices(self) -> str:
        """Return the map of the samples' likeliest classes, if it is requested; else ""."""
        name = choices_of(self.samples)
        return name if name in self.wanted else ""

    def map_bytes(self) -> int:
        """Return the bytes per pixel of all maps."""
        return map_bytes(self.wanted, self.classes)


@dataclass
class Accumulators:
    """Running sums of `pixels` pixels; `uqeval.kernels.samples` describes the arrays."""

    form: Form
    pixels: int
    split: bool
    arrays: dict[str, Array] = field(init=False)

    def __post_init__(self) -> None:
        form, n = self.form, self.pixels
        rows = form.samples if self.split else 1
        votes = n if "variation_ratio" in form.wanted else 0
        squares = n if "std" in form.wanted else 0
        choices = n if form.choices else 0
        rests = n if form.has_rests else 0
        self.arrays = {
            "sums": np.zeros((form.classes, n), form.sum_dtype),
            "rests": np.zeros((form.classes, rests), np.float64),
            "totals": np.zeros((rows, n), form.total_dtype),
            "plogp": np.zeros(n, np.int64),
            "best": np.zeros((rows, votes), form.vote_dtype),
            "vote": np.zeros((rows, votes), np.int32),
            "votes": np.zeros((form.classes, votes), np.uint16),
            "first": np.zeros((form.classes, squares), np.float64),
            "squares": np.zeros((form.classes, squares), np.float64),
            "leading": np.zeros((rows, choices), np.float64),
            "chosen": np.zeros((form.samples, choices), id_dtype(form.classes)),
        }

    def clear(self) -> None:
        """Reset the accumulators for other pixels."""
        for name in ("sums", "rests", "plogp", "votes"):
            self.arrays[name][...] = 0


class Reducer:
    """Turns the tiles of one box of one item into maps.

    `add` takes tiles [sample, class, pixel] in ascending order of samples and, within them, of
    classes; `finish` gives the maps [pixel]. If the box is one tile, `reduce` does both, block by
    block, with accumulators that fit the cache.
    """

    def __init__(
        self, form: Form, pixels: int, *, is_whole: bool, splits_classes: bool, check: SumCheck
    ) -> None:
        self.form = form
        self.pixels = pixels
        self.check = check
        self.sums = Accumulators(form, min(BLOCK, pixels) if is_whole else pixels, splits_classes)
        self._terms = np.zeros(BLOCK, np.int32)
        self._lead = np.zeros(BLOCK, form.sum_dtype)
        self._wide = np.zeros(BLOCK, np.float64)

    def add(self, tile: Array, t0: int, c0: int) -> None:
        """Add a tile [sample, class, pixel] that begins at sample `t0` and class `c0`.

        Raises `DataError` if its numbers are not probabilities.
        """
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self._add(tile, start, stop, start, t0, c0)

    def finish(self, label: Array | None = None) -> Maps:
        """Return the maps [pixel] of all added tiles (`mean_probs`: [class, pixel])."""
        maps = self.empty()
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self._finish(maps, start, stop, start, label)
        return maps

    def reduce(
        self, tile: Array, label: Array | None = None, subset: Sequence[int] | None = None,
        tolerances: Sequence[float] = (),
    ) -> Maps:  # fmt: skip
        """Return the maps of a tile that holds all samples and classes of its pixels.

        `subset`: positions of the samples to reduce, ascending; by default all. `tolerances`: with
        a subset, that of each sample of the tile.
        """
        maps = self.empty()
        for start in range(0, self.pixels, BLOCK):
            stop = min(start + BLOCK, self.pixels)
            self.sums.clear()
            if subset is None:
                self._add(tile, start, stop, 0, 0, 0)
            else:
                for t, sample in enumerate(subset):
                    self.check = replace(self.check, tolerance=tolerances[sample])
                    self._add(tile[sample : sample + 1], start, stop, 0, t, 0)
            self._finish(maps, start, stop, 0, label)
        return maps

    def empty(self) -> Maps:
        """Return unfilled maps of the wanted names."""
        forms = {
            name: form_of(name, self.form.classes, (self.pixels,)) for name in self.form.wanted
        }
        return {name: np.empty(shape, dtype) for name, (shape, dtype) in forms.items()}

    def _add(self, tile: Array, start: int, stop: int, at: int, t0: int, c0: int) -> None:
        form, arrays = self.form, self.sums.arrays
        extremes = self.check.fresh()
        terms, plogp = (self._terms, arrays["plogp"]) if form.sums_entropies else (None, None)
        given, first, last = tile, start, stop
        if form.has_rests:
            tile, start, stop = read_only(on_grid(tile[:, :, start:stop])), 0, stop - start
        worst = kernels.samples.add_samples(
            tile, start, stop, at, t0, c0, form.unit,
            arrays["sums"], arrays["totals"], extremes, terms, plogp,
        )  # fmt: skip
        if worst > 0 or self.check.broken(extremes):
            totals = arrays["totals"][:, at : at + stop - start]
            self.check.explain(given, first, last, t0, c0, totals)
        if form.has_rests:
            _, classes, n = tile.shape
            rests = arrays["rests"][c0 : c0 + classes, at : at + n]
            for rest in given[:, :, first:last] - tile:  # in the order of samples, for any tiling
                rests += rest
        if "variation_ratio" in form.wanted:
            kernels.samples.add_votes(
                tile, start, stop, at, t0, c0, form.unit,
                arrays["best"], arrays["vote"], arrays["votes"],
            )  # fmt: skip
        if "std" in form.wanted:
            kernels.samples.add_squares(
                tile, start, stop, at, t0, c0, arrays["first"], arrays["squares"]
            )
        if form.choices:
            kernels.annotators.choose(
                tile, start, stop, at, t0, c0, arrays["leading"], arrays["chosen"]
            )

    def _finish(self, maps: Maps, start: int, stop: int, at: int, label: Array | None) -> None:
        form, arrays, n = self.form, self.sums.arrays, stop - start
        sums, samples, unit = arrays["sums"], form.samples, form.sum_unit

        def out(name: str, dtype: str = "float32") -> Array:
            return maps[name][start:stop] if name in maps else np.empty(n, dtype)

        prediction = out("prediction")
        kernels.samples.predict(
            at, n, samples, unit, sums, self._lead, prediction, out("confidence")
        )
        if form.sums_entropies:
            kernels.samples.information(
                at, n, samples, unit, sums, arrays["plogp"], self._wide,
                out("expected_entropy"), out("mutual_information"),
            )  # fmt: skip
        if "variation_ratio" in maps:
            kernels.samples.disagree(
                at, n, samples, arrays["votes"], self._lead, out("variation_ratio")
            )
        if "std" in maps:
            kernels.samples.deviate(
                at,
                n,
                samples,
                unit,
                sums,
                arrays["first"],
                arrays["squares"],
                prediction,
                out("std"),
            )
        if form.choices:
            maps[form.choices][:, start:stop] = arrays["chosen"][:, at : at + n]
        if form.has_rests:  # without them, small probabilities would be 0
            sums, at = sums[:, at : at + n] + arrays["rests"][:, at : at + n], 0
        if "mean_probs" in maps:
            kernels.samples.average(at, n, start, samples, unit, sums, maps["mean_probs"])
        if "entropy" in maps:
            kernels.samples.entropy_of_mean(at, n, samples, unit, sums, self._wide, out("entropy"))
        if label is not None and form.wanted & {"label_probability", "label_rank", "brier"}:
            kernels.samples.score_labels(
                at, n, samples, unit, void_of(form.classes), sums, label[start:stop], prediction,
                self._wide, out("label_probability"), out("label_rank", "uint16"), out("brier"),
            )  # fmt: skip


def map_bytes(names: Iterable[str], classes: int) -> int:
    """Return the bytes per pixel of the named maps."""
    sizes = {"prediction": 2, "label": 2, "label_rank": 2, "mean_probs": 4 * classes}
    return sum(sizes.get(name, 2 * planes_of_ids(name) or 4) for name in names)


def kernel_view(values: Array) -> Array:
    """Return a tile for the kernels: contiguous [sample, class, pixel], float16 as its bits."""
    flat = np.ascontiguousarray(values).reshape(*values.shape[:2], -1)
    return read_only(flat.view(np.int16) if flat.dtype == np.float16 else flat)


def on_grid(p: Array) -> Array:
    """Return float64 probabilities rounded to multiples of 2^-45, so that sums of up to 128 are
    exact: the same for samples in any order.
    """
    magic = 1.5 * 2.0**7
    return (p + magic) - magic


def reduce_array(
    probs: Array, names: Sequence[str] | None = None, tolerance: float | None = None
) -> Maps:
    """Return maps of one item in memory.

    `probs`: [sample, class, y, x] (or [class, y, x]), float16, float32 or float64. Returns
    `predictions` [y, x] (uint8, or uint16 from 256 classes on) and the named maps, float32 [y, x]
    (`mean_probs` [class, y, x]); by default all maps that are defined for the number of samples.
    `tolerance`: the allowed |Σ_c p - 1| (default: that of the dtype). Raises `DataError` for values
    that are not probabilities.
    """
    probs = as_array(probs, "array in memory")
    values = probs[None] if probs.ndim == 3 else probs
    samples, classes, height, width = values.shape
    if names is None:
        names = [n for n in COMPUTED if samples > 1 or n not in OF_SEVERAL_SAMPLES]
    names_of_maps = frozenset(names) - {"predictions"} | {"prediction"}
    tile = kernel_view(values)
    if tolerance is None:
        tolerance = tolerance_of(probs, probs.dtype.name)
    form = Form(samples, classes, tile.dtype, 1.0, names_of_maps)
    check = SumCheck(classes, tolerance, form.sum_unit, form.total_dtype, "array in memory", width)
    reducer = Reducer(form, height * width, is_whole=True, splits_classes=False, check=check)
    maps = reducer.reduce(tile)
    return {
        ("predictions" if name == "prediction" else name): values.reshape(
            (classes, height, width) if name == "mean_probs" else (height, width)
        )
        for name, values in maps.items()
    }


def read_only(values: Array) -> Array:
    """Return a read-only view.

    Numba compiles a kernel again for each mix of writable and read-only inputs. Memory-mapped files
    are read-only, so all inputs are.
    """
    view = values.view()
    view.flags.writeable = False
    return view
