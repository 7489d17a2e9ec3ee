"""Maps of many subsets of the samples, from one read of the stack."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import cut
from uqeval.maps.checks import SumCheck
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.members import Members
from uqeval.maps.names import (
    OF_SEVERAL_SAMPLES,
    VOID,
    annotations_of,
    choices_of,
    is_choices,
    of_subset,
)
from uqeval.maps.reduction import Reducer, read_only
from uqeval.maps.regression import RegressionSource
from uqeval.maps.sources import Source, with_samples
from uqeval.maps.stack_maps import flat_label
from uqeval.stores.stack import Box, Stack, Tile


def subsets_of(source: MapSource, subsets: Sequence[Sequence[int]]) -> ClassSubsets | NumberSubsets:
    """Return the maps of several subsets of the samples at once, named `<subset>/<name>`.

    `subsets` contains ascending positions of samples. Maps that do not depend on the samples have
    no prefix. Raises `UsageError` for a maps store.
    """
    if isinstance(source, RegressionSource):
        return NumberSubsets(source, subsets)
    return ClassSubsets(with_samples(source, "a sweep"), subsets)


class ClassSubsets(Source):
    """As `Source`, for several subsets of the samples at once.

    The samples and classes of a box are put together in memory before they are reduced.
    """

    #: Maps that are undefined for one sample.
    of_several = OF_SEVERAL_SAMPLES

    def __init__(self, source: Source, subsets: Sequence[Sequence[int]]) -> None:
        super().__init__(
            source.names, source.classes, stack=source.stack, stored={}, labels=source.labels,
            where=source.where, sum_tolerance=source.sum_tolerance,
        )  # fmt: skip
        self.requested = source.requested
        self.subsets = [tuple(subset) for subset in subsets]

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes of reading a batch: boxes of all its samples, and the maps of all
        subsets.
        """
        height, width = self.size(batch[0])
        form = self._form()
        box = max(b.pixels for b in self._samples.boxes(batch[0]))
        stack_bytes = form.samples * form.classes * form.dtype.itemsize * box
        maps = len(self.subsets) * form.map_bytes() * height * width
        return super().batch_bytes(batch) + len(batch) * (stack_bytes + maps)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the maps of the items of a batch: `label`, and `<subset>/<name>` for every
        subset.
        """
        stack, form = self._samples, self._form()
        of_annotators = [self._annotations(item) for item in batch]
        labels = self._labels_of(batch, of_annotators)
        forms = []
        for subset in self.subsets:
            names_without_samples = OF_SEVERAL_SAMPLES if len(subset) == 1 else frozenset()
            other = {n for n in form.wanted if is_choices(n) and n != choices_of(len(subset))}
            wanted = form.wanted - names_without_samples - other
            forms.append(replace(form, samples=len(subset), wanted=wanted))
        results: list[Maps] = []
        for label, annotated in zip(labels, of_annotators, strict=True):
            maps: Maps = {} if label is None else {"label": label}
            if annotated is not None:
                maps[annotations_of(len(annotated[1]))] = annotated[1]
            for k, own in enumerate(forms):
                unfilled = self._unfilled(own, self.size(batch[0]))
                maps |= {of_subset(k, name): values for name, values in unfilled.items()}
            results.append(maps)
        for box in stack.boxes(batch[0]):
            stacks, tolerances = self._gather(batch, box, heartbeat)
            for item, values in zip(batch, stacks, strict=True):
                of_item = tolerances[item - batch[0]]
                check = SumCheck(
                    form.classes, of_item[0], form.sum_unit, form.total_dtype,
                    f"{self.where}, item {cut(self.names[item])}", box.x1 - box.x0, box.y0, box.x0,
                )  # fmt: skip
                label = labels[item - batch[0]]
                region = (slice(box.y0, box.y1), slice(box.x0, box.x1))
                flat = flat_label(label, region)
                for k, (subset, own) in enumerate(zip(self.subsets, forms, strict=True)):
                    heartbeat(0)
                    reducer = Reducer(
                        own, box.pixels, is_whole=True, splits_classes=False, check=check
                    )
                    reduced = reducer.reduce(values, flat, subset, of_item)
                    named = {of_subset(k, name): flat_map for name, flat_map in reduced.items()}
                    self._write_region(results[item - batch[0]], region, named)
        return results

    def _gather(
        self, batch: range, box: Box, heartbeat: Heartbeat
    ) -> tuple[list[Array], list[list[float]]]:
        """Return a box [sample, class, pixel] of each item of a batch, read-only, and the tolerance
        of the sums of each sample."""
        stack, form = self._samples, self._form()
        shape = (stack.samples, form.classes, box.pixels)
        stacks = [np.empty(shape, form.dtype) for _ in batch]
        tolerances = [[0.0] * stack.samples for _ in batch]
        for tile in stack.tiles(batch, box):
            heartbeat(tile.values.nbytes)
            values = self._prepare(tile, form)
            j, c = tile.item - batch[0], tile.c0
            samples = slice(tile.t0, tile.t0 + len(values))
            stacks[j][samples, c : c + values.shape[1]] = values
            tolerances[j][samples] = [self._tolerance_of(tile.array)] * len(values)
        return list(map(read_only, stacks)), tolerances


class NumberSubsets(RegressionSource):
    """As `RegressionSource`, for several subsets of the members at once.

    The tiles of a batch stay in memory while the members of each subset are joined. If NaN are
    skipped, a pixel is evaluated in each subset in which one of its samples is a number.
    """

    def __init__(self, source: RegressionSource, subsets: Sequence[Sequence[int]]) -> None:
        vars(self).update(vars(source))
        self.subsets = [tuple(subset) for subset in subsets]
        #: Maps that are undefined for one member.
        self.of_several = frozenset(() if source.members.spreads else ("sigma", "lambda"))

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes of reading a batch: all its members, and the maps of all subsets."""
        height, width = self.size(batch[0])
        members = self.members
        member_bytes = sum(
            stack.samples * max(dtype.itemsize for dtype in stack.dtypes)
            for stack in (members.means, members.spreads) if stack
        )  # fmt: skip
        if members.skip_nan:
            member_bytes += members.count + 8  # masks of numbers, and the targets of a subset
        maps = len(self.subsets) * (8 * len(self.wanted) + members.skip_nan)
        return super().batch_bytes(batch) + len(batch) * height * width * (member_bytes + maps)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the maps of the items of a batch, of every subset."""
        read_items = [self._given(item, heartbeat) for item in batch]
        means = _StackInMemory(self.members.means, batch, heartbeat)
        spreads = (
            _StackInMemory(self.members.spreads, batch, heartbeat) if self.members.spreads else None
        )
        numbers = [means.numbers(item) if self.members.skip_nan else None for item in batch]
        results: list[Maps] = [{} for _ in batch]
        # The largest subset first, so that an error of any member is reported for all members.
        for k in sorted(range(len(self.subsets)), key=lambda k: -len(self.subsets[k])):
            subset = self.subsets[k]
            members: Members = copy.copy(self.members)
            members.means = means.of(subset)
            members.spreads = spreads.of(subset) if spreads else None
            subset_items = [
                _within(*item, subset) for item in zip(read_items, numbers, strict=True)
            ]
            subset_maps = self._joined(batch, subset_items, members, lambda _: heartbeat(0))
            for maps, (shared, _), item_maps in zip(results, read_items, subset_maps, strict=True):
                for name, values in item_maps.items():
                    all_share = values is shared.get(name)
                    maps[name if all_share else of_subset(k, name)] = values
        return results


def _within(
    item: tuple[Maps, Array], numbers: Array | None, subset: Sequence[int]
) -> tuple[Maps, Array]:
    """Return the maps of an item with void pixels where all samples of a subset are NaN.

    Pixels where all samples of the item are NaN stay unchanged. `numbers` [sample, y, x]: which
    samples are numbers; None if all are.
    """
    if numbers is None:
        return item
    maps, target = item
    lost = numbers.any(axis=0) & ~numbers[list(subset)].any(axis=0)
    if not lost.any():
        return item
    return maps | {"label": np.where(lost, np.uint8(VOID), maps["label"])}, target


class _StackInMemory(Stack):
    """A stack whose tiles of one batch are in memory, read once."""

    def __init__(self, stack: Stack, batch: range, heartbeat: Heartbeat) -> None:
        vars(self).update(vars(stack))
        self._tiles: dict[Box, list[Tile]] = {}
        self._subset: Sequence[int] = range(stack.samples)
        for box in stack.boxes(batch[0]):
            box_tiles = self._tiles.setdefault(box, [])
            for tile in stack.tiles(batch, box):
                heartbeat(tile.values.nbytes)
                box_tiles.append(tile)

    def of(self, subset: Sequence[int]) -> _StackInMemory:
        """Return the same stack with some of its samples only."""
        copied = copy.copy(self)
        copied._subset, copied.samples = subset, len(subset)
        return copied

    def numbers(self, item: int) -> Array:
        """Return a mask [sample, y, x] of the samples of an item that are not NaN."""
        is_number = np.zeros((self.samples, *self.size(item)), bool)
        for box, tiles in self._tiles.items():
            for tile in tiles:
                if tile.item == item:
                    values = tile.values[:, 0] if tile.values.ndim == 4 else tile.values
                    rows = slice(tile.t0, tile.t0 + len(values))
                    is_number[rows, box.y0 : box.y1, box.x0 : box.x1] = ~np.isnan(values)
        return is_number

    def tiles(self, batch: range, box: Box) -> Iterator[Tile]:
        """Yield the tiles of a box, one for each sample of the subset; `t0` is its place
        among all.
        """
        for tile in self._tiles[box]:
            for t in self._subset:
                if tile.t0 <= t < tile.t0 + len(tile.values):
                    sample_tile = tile.values[t - tile.t0 : t - tile.t0 + 1]
                    yield replace(tile, t0=t, values=sample_tile)
