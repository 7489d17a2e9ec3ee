"""Maps of many subsets of the samples, from one read of the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.maps.checks import SumCheck
from uqeval.maps.contract import Heartbeat
from uqeval.maps.names import OF_SEVERAL_SAMPLES, id_dtype
from uqeval.maps.reduction import Maps, Reducer
from uqeval.maps.sources import Source
from uqeval.stores.stack import Box


def in_subset(subset: int, name: str) -> str:
    """What a map of one subset is called among those of all."""
    return f"{subset}/{name}"


class Subsets(Source):
    """As `Source`, for several subsets of the samples at once: maps are named `<subset>/<name>`.

    `subsets` holds positions of samples, ascending. `label` is the same for all and has no prefix.
    The samples and classes of a box are put together in memory before they are reduced.
    """

    def __init__(self, source: Source, subsets: Sequence[Sequence[int]]) -> None:
        super().__init__(
            source.names, source.classes, stack=source.stack, stored={}, labels=source.labels,
            where=source.where, sum_tolerance=source.sum_tolerance,
        )  # fmt: skip
        self.subsets = [tuple(subset) for subset in subsets]

    def batch_bytes(self, batch: range) -> int:
        """Peak bytes of reading a batch: a box of all its samples, and the maps of all subsets."""
        assert self.stack is not None
        height, width = self.size(batch[0])
        form = self._form()
        box = max(b.pixels for b in self.stack.boxes(batch[0]))
        stack = self.stack.samples * form.classes * form.dtype.itemsize * box
        maps = len(self.subsets) * form.map_bytes() * height * width
        return 2 * stack + self.stack.tile_bytes(batch) + len(batch) * maps

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """The maps of the items of a batch: `label`, and `<subset>/<name>` for every subset."""
        stack, form = self.stack, self._form()
        assert stack is not None
        height, width = self.size(batch[0])
        labels = [self._label(item) for item in batch]
        forms = []
        for subset in self.subsets:
            single = OF_SEVERAL_SAMPLES if len(subset) == 1 else frozenset()
            forms.append(replace(form, samples=len(subset), wanted=form.wanted - single))
        results: list[Maps] = []
        for label in labels:
            maps: Maps = {} if label is None else {"label": label}
            for k, own in enumerate(forms):
                dtypes = {"prediction": id_dtype(own.classes), "label_rank": "uint16"}
                for name in own.wanted:
                    shape = (
                        (own.classes, height, width) if name == "mean_probs" else (height, width)
                    )
                    maps[in_subset(k, name)] = np.empty(shape, dtypes.get(name, "f4"))
            results.append(maps)
        for box in stack.boxes(batch[0]):
            held = self._gather(batch, box, heartbeat)
            for item, values in zip(batch, held, strict=True):
                check = SumCheck(
                    form.classes, form.tolerance, form.sum_unit, form.total_dtype,
                    f"{self.where}, item {self.names[item]}", box.x1 - box.x0, box.y0, box.x0,
                )  # fmt: skip
                label = labels[item - batch[0]]
                region = (slice(box.y0, box.y1), slice(box.x0, box.x1))
                flat = None if label is None else np.ascontiguousarray(label[region]).reshape(-1)
                for k, (subset, own) in enumerate(zip(self.subsets, forms, strict=True)):
                    heartbeat(0)
                    reducer = Reducer(own, box.pixels, whole=True, split=False, check=check)
                    found = reducer.reduce(values, flat, subset)
                    shape = (box.y1 - box.y0, box.x1 - box.x0)
                    for name, flat_map in found.items():
                        target = results[item - batch[0]][in_subset(k, name)]
                        target[(..., *region)] = flat_map.reshape(*flat_map.shape[:-1], *shape)
        return results

    def _gather(self, batch: range, box: Box, heartbeat: Heartbeat) -> list[NDArray[Any]]:
        """All samples and classes of a box [sample, class, pixel], of each item of a batch."""
        stack, form = self.stack, self._form()
        assert stack is not None
        shape = (stack.samples, form.classes, box.pixels)
        whole = [np.empty(shape, form.dtype) for _ in batch]
        for tile in stack.tiles(batch, box):
            heartbeat(tile.values.nbytes)
            values = self._prepare(tile, form)
            t, c = tile.t0, tile.c0
            whole[tile.item - batch[0]][t : t + values.shape[0], c : c + values.shape[1]] = values
        return whole
