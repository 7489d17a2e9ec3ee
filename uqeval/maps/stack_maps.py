"""Maps of items from a stack of samples, tile by tile; small items several at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import DataError
from uqeval.maps.checks import LOGITS, SumCheck
from uqeval.maps.contract import Heartbeat, MapSource, StackedMaps
from uqeval.maps.names import COMPUTED, OF_LABELS, form_of, is_choices, void_of
from uqeval.maps.reduction import Form, Reducer, kernel_view
from uqeval.stores.fill_values import fill_texts, refuse_fill
from uqeval.stores.incoming import not_logits, total_of
from uqeval.stores.stack import Box, Stack, Tile, Tiling
from uqeval.stores.sum_hints import hint_of_range

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

#: The largest number of probabilities of small items that are reduced together.
TOGETHER = 1 << 20


class StackMaps(MapSource):
    """The `wanted` maps of items, reduced from a `stack`."""

    stack: Stack | None
    wanted: frozenset[str]
    sum_tolerance: float | None

    @property
    def _samples(self) -> Stack:
        """Return the stack of a source that has one."""
        assert self.stack is not None
        return self.stack

    def _form(self) -> Form:
        stack = self._samples
        is_converted = stack.classes == 1 and stack.certain is None
        if stack.kind == "logits" or is_converted or not stack.uniform:
            dtype = np.dtype(np.float64 if np.dtype("f8") in stack.dtypes else np.float32)
        else:
            dtype = next(iter(stack.dtypes))
        computed = self.wanted & set(COMPUTED + OF_LABELS) - {"label"}
        computed |= {name for name in self.wanted if is_choices(name)}
        return Form(
            samples=stack.samples,
            classes=max(stack.classes, 2),
            dtype=np.dtype(np.int16) if dtype == np.float16 else dtype,
            unit=stack.scale(stack.arrays[0]) if dtype.kind == "u" else 1.0,
            wanted=frozenset(computed),
        )

    def _tolerance_of(self, array: StoredArray) -> float:
        """Return the |Σ_c p - 1| that the probabilities of an array may have."""
        own = self.sum_tolerance
        return self._samples.tolerance(array) if own is None else own

    def _reduce(self, batch: range, labels: list[Array | None], heartbeat: Heartbeat) -> list[Maps]:
        """Return the maps of items that share a tiling (`Stack.runs`)."""
        stack, form = self._samples, self._form()
        tiling, size = stack.tiling(batch[0]), self.size(batch[0])
        boxes = tiling.boxes
        if (at_once := self._at_once(batch, tiling)) > 1:
            given = [label for label in labels if label is not None]
            label = np.stack(given) if given else None
            return list(self._reduce_small(batch, boxes[0], at_once, label, heartbeat))
        # Maps of several boxes are joined; those of a single box need no copy.
        results: list[Maps] = [self._unfilled(form, size) if boxes[1:] else {} for _ in batch]
        is_whole, splits_classes = tiling.whole, tiling.splits_classes
        for box in boxes:
            region = (slice(box.y0, box.y1), slice(box.x0, box.x1))
            reducers: dict[int, Reducer] = {}
            for tile in stack.tiles(batch, box):
                heartbeat(tile.values.nbytes)
                j = tile.item - batch[0]
                if self._declares_fill:
                    label = labels[j]
                    self._refuse_fill(tile, None if label is None else label[region])
                if is_whole:
                    reduced = self._reduce_tile(tile, form, flat_label(labels[j], region))
                    self._write_region(results[j], region, reduced)
                    del reduced
                else:
                    values = self._prepare(tile, form)
                    if tile.item not in reducers:
                        reducers[tile.item] = self._reducer(form, tile, False, splits_classes)
                    reducer = reducers[tile.item]
                    reducer.check = replace(
                        reducer.check, where=self._place_of(tile),
                        tolerance=self._tolerance_of(tile.array),
                    )  # fmt: skip
                    reducer.add(values, tile.t0, tile.c0)
                    del values, reducer
                del tile  # before the next one is read
            if not is_whole:
                for item in batch:
                    j = item - batch[0]
                    reducer = reducers.pop(item)
                    self._write_region(
                        results[j], region, reducer.finish(flat_label(labels[j], region))
                    )
                    del reducer
            reducers.clear()
        return results

    def _reducer(self, form: Form, tile: Tile, is_whole: bool, splits_classes: bool) -> Reducer:
        """Return the reducer of the box of a tile."""
        box = tile.box
        check = SumCheck(
            form.classes, self._tolerance_of(tile.array), form.sum_unit, form.total_dtype,
            self._place_of(tile), box.x1 - box.x0, box.y0, box.x0,
        )  # fmt: skip
        return Reducer(
            form, box.pixels, is_whole=is_whole, splits_classes=splits_classes, check=check
        )

    def _reduce_tile(self, tile: Tile, form: Form, label: Array | None) -> Maps:
        """Return the maps of a tile with all samples and classes of its pixels."""
        values = self._prepare(tile, form)
        return self._reducer(form, tile, True, False).reduce(values, label)

    def _at_once(self, batch: range, tiling: Tiling) -> int:
        """Return how many items are reduced in one call, with their pixels concatenated."""
        stack = self._samples
        if stack.classes == 1 or not tiling.whole or tiling.boxes[1:]:
            return 1
        numbers = stack.samples * stack.classes * tiling.box_pixels
        return max(min(len(batch), TOGETHER // max(numbers, 1)), 1)

    def _reduce_small(
        self,
        batch: range,
        box: Box,
        at_once: int,
        labels: Array | None,
        heartbeat: Heartbeat,
    ) -> StackedMaps:
        """Return the maps of small items, whose tiles are complete; `labels` [item, y, x]."""
        stack, form = self._samples, self._form()
        all_tiles = stack.tiles(batch, box)
        size = self.size(batch[0])
        parts: list[StackedMaps] = []
        done = 0
        while tiles := list(islice(all_tiles, at_once)):
            heartbeat(sum(tile.values.nbytes for tile in tiles))
            flat = [tile.values.reshape(*tile.values.shape[:2], 1, -1) for tile in tiles]
            values = np.concatenate(flat, axis=-1)
            own = None if labels is None else labels[done : done + len(tiles)]
            for k, tile in enumerate(tiles if self._declares_fill else ()):
                self._refuse_fill(tile, None if own is None else own[k])
            label = None if own is None else _line(own)
            line = Box(0, 1, 0, values.shape[-1])
            joined = replace(tiles[0], box=line, values=values, items=len(tiles))
            try:
                reduced = self._reduce_tile(joined, form, label)
            except DataError:  # some checks need more pixels than one item has
                for k, tile in enumerate(tiles):  # one item raises it again, with its name
                    self._reduce_tile(tile, form, None if own is None else _line(own[k]))
                raise
            parts.append(
                StackedMaps({name: _by_item(line, size) for name, line in reduced.items()})
            )
            done += len(tiles)
        return StackedMaps.joined(parts)

    @cached_property
    def _declares_fill(self) -> bool:
        """Return whether attributes declare logits to be no numbers. Those of probabilities do not
        count."""
        stack = self.stack
        return stack is not None and stack.kind == "logits" and bool(fill_texts(stack.arrays))

    def _refuse_fill(self, tile: Tile, label: Array | None) -> None:
        void, start = void_of(max(self.classes, 2)), (tile.box.y0, tile.box.x0)
        refuse_fill(tile.values, tile.array, label, void, self._place_of(tile), start)

    def _prepare(self, tile: Tile, form: Form) -> Array:
        """Return a tile for the kernels: probabilities of at least two classes, in one dtype."""
        stack = self._samples
        values = tile.values
        if stack.certain is not None:
            values = self._with_background(tile, values, stack.certain)
        if values.dtype.kind == "u" and form.dtype.kind == "f":
            values = values * stack.scale(tile.array)
        if stack.kind == "logits":
            if not np.isfinite(values).all():
                bad = int((~np.isfinite(values)).sum())
                raise DataError(
                    f"{self._place_of(tile)}: {bad} of {values.size} logits in "
                    f"rows {tile.box.y0} to {tile.box.y1 - 1} are NaN or infinite. Expected finite "
                    "numbers at all pixels, also where labels are void."
                )
            tolerance, unit = stack.tolerance(tile.array), stack.scale(tile.array)
            if (total := total_of(tile.values, tolerance, unit)) is not None:
                raise DataError(f"{self._place_of(tile)}: {not_logits(total)}")
            values = sigmoid(values) if stack.classes == 1 else softmax(values)
        if stack.classes == 1 and stack.certain is None:
            values = self._with_background(tile, values, 1)
        if form.dtype.kind == "f":
            values = values.astype(form.dtype, copy=False)
        return kernel_view(values)

    def _with_background(self, tile: Tile, values: Array, one: int) -> Array:
        """Return both classes of foreground probabilities, of which `one` is 1."""
        if (bad := int((values > one).sum())) and self._samples.kind == "probs":
            low, high = values.min() / one, values.max() / one
            hint = LOGITS if values.dtype.kind == "u" else hint_of_range(low, high, LOGITS)
            raise DataError(
                f"{self._place_of(tile)}: {bad} of {values.size} foreground probabilities in "
                f"rows {tile.box.y0} to {tile.box.y1 - 1} are above 1, the largest is "
                f"{high:.9g}. {hint}"
            )
        return foreground(values, one)

    def _place_of(self, tile: Tile) -> str:
        first, last = self.names[tile.item], self.names[tile.item + tile.items - 1]
        items = f"item {first}" if tile.items == 1 else f"items {first} to {last}"
        return f"{tile.array.where}, {items}"

    @staticmethod
    def _unfilled(form: Form, size: tuple[int, int]) -> Maps:
        return {name: np.empty(*form_of(name, form.classes, size)) for name in form.wanted}

    @staticmethod
    def _write_region(maps: Maps, region: tuple[slice, slice], reduced: Maps) -> None:
        shape = (region[0].stop - region[0].start, region[1].stop - region[1].start)
        for name, flat in reduced.items():
            values = flat.reshape(*flat.shape[:-1], *shape)
            if name in maps:
                maps[name][(..., *region)] = values
            else:
                maps[name] = values


def _by_item(line: Array, size: tuple[int, int]) -> Array:
    """Return a map [..., pixel] of items of one size as [item, ..., y, x]."""
    values = line.reshape(*line.shape[:-1], -1, *size)
    return np.ascontiguousarray(np.moveaxis(values, -3, 0))


def _line(label: Array) -> Array:
    """Return a label map as [pixel]."""
    return np.ascontiguousarray(label).reshape(-1)


def flat_label(label: Array | None, region: tuple[slice, slice]) -> Array | None:
    """Return the part of a label map in a region, as [pixel]."""
    return None if label is None else _line(label[region])


def softmax(logits: Array) -> Array:
    """Return probabilities [sample, class, y, x] of logits, float32 (float64 for float64).

    The order of the sum is that of the classes. `numpy.sum` chooses another order where the classes
    of a pixel are neighbours in memory: in stores with the classes last, and in items of one pixel.
    """
    p: Array = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32, order="C")
    with np.errstate(over="ignore"):  # a difference may be -infinity, which gives 0
        p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    total = p[:, :1].copy()
    for c in range(1, p.shape[1]):
        total += p[:, c : c + 1]
    p /= total
    return p


def sigmoid(logits: Array) -> Array:
    """Return foreground probabilities in float32 (float64 for float64) of logits of one class."""
    wide: Array = logits.astype(np.float64 if logits.dtype == np.float64 else np.float32)
    with np.errstate(over="ignore"):  # exp(-x) may be infinite, which gives 0
        p: Array = 1.0 / (1.0 + np.exp(-wide))
    return p


def foreground(p: Array, one: int = 1) -> Array:
    """Return probabilities [sample, 2, y, x] of background and foreground from the foreground's.

    Integers, of which `one` is a probability of 1, stay integers: so ties of their sums are exact.
    """
    if p.dtype.kind != "u":
        p = p.astype(np.float64 if p.dtype == np.float64 else np.float32)
    return np.concatenate([p.dtype.type(one) - p, p], axis=1, dtype=p.dtype)
