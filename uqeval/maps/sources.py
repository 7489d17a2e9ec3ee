"""Sources of maps: reduced from sample stacks, or read from a maps store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import DataError, StoreError, UsageError, cut
from uqeval.maps.checks import SumCheck
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.labels import label_map
from uqeval.maps.names import COMPUTED, OF_LABELS, OF_SEVERAL_SAMPLES, id_dtype
from uqeval.maps.reduction import (
    BLOCK,
    Form,
    Maps,
    Reducer,
    foreground,
    kernel_view,
    map_bytes,
    on_grid,
    sigmoid,
    softmax,
)
from uqeval.maps.stored_maps import StoredMaps, missing_map_message
from uqeval.stores.incoming import tolerance_of
from uqeval.stores.planes import Planes
from uqeval.stores.stack import Stack, Tile


@dataclass(frozen=True)
class Labels:
    """Ground truth of all items: planes of class ids, and the id that means void."""

    planes: Planes
    ignore_index: int


class Source:
    """Maps of all items, by name.

    What a stack of samples can give is reduced from it; other names are read from arrays
    [item, y, x] of the store. `label` and what depends on it need `labels`.
    """

    kind = "classes"

    def __init__(
        self,
        names: Sequence[str],
        classes: int,
        *,
        stack: Stack | None,
        stored: dict[str, Planes],
        labels: Labels | None,
        where: str,
        sum_tolerance: float | None = None,
        content: str = "predictions",
    ) -> None:
        self.names = tuple(names)
        self.classes = classes
        self.stack = stack
        self.stored = stored
        self._kept = StoredMaps(stored, self.names, classes)
        self.labels = labels
        self.where = where
        self.held = content
        self.sum_tolerance = sum_tolerance
        self.wanted: frozenset[str] = frozenset()

    # ---- what there is

    @property
    def items(self) -> int:
        """Return the number of items."""
        return len(self.names)

    @property
    def samples(self) -> int | None:
        """Return T of the stack; None for a maps store."""
        return self.stack.samples if self.stack else None

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item."""
        if self.stack:
            return self.stack.size(item)
        return self._kept.size(item)

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns.

        Raises `UsageError` for a map that is undefined for one sample, `StoreError` for one that
        the store neither holds nor can give.
        """
        for name in names:
            if name in OF_LABELS and self.labels is None:
                raise UsageError(
                    f"{self.where} has no labels: it holds {self.held}. Give a folder of "
                    "label PNGs, or a store with `labels`, after the predictions, or store an "
                    "array `labels` in it."
                )
            if self.stack and name in OF_SEVERAL_SAMPLES and self.stack.samples == 1:
                raise UsageError(
                    f"{self.where} holds one sample an item, for which {name} is undefined; "
                    "use entropy or confidence, or store several samples."
                )
            if name in ("label", "label_rank") or (self.stack and name in COMPUTED + OF_LABELS):
                continue
            if name not in self.stored and not (
                name == "prediction" and "predictions" in self.stored
            ):
                raise StoreError(
                    missing_map_message(self.where, name, sorted(self.stored), bool(self.stack))
                )
        if (
            "label_rank" in names
            and not self.stack
            and not {"label_rank", "mean_probs"} & set(self.stored)
        ):
            raise StoreError(
                f"{self.where}: --top-k needs `mean_probs` or `label_rank`, which this maps store "
                "does not hold. Write it with `uqeval reduce`, or give the samples."
            )
        self.wanted = frozenset(names) | {"prediction"}

    def batches(self) -> list[range]:
        """Return ranges of items that must be read together."""
        if self.stack:
            return [
                range(batch.start, min(batch.stop, self.items))
                for batch in self.stack.batches()
                if batch.start < self.items
            ]
        return [range(i, i + 1) for i in range(self.items)]

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes: tiles, accumulators and maps."""
        height, width = self.size(batch[0])
        pixels = height * width
        # The maps of a batch, and what label planes and their checks take beside them.
        map_size = len(batch) * pixels * (map_bytes(self.wanted, self.classes) + 4)
        # Chunks may be larger than an item, and are decoded whole.
        planes = [*self.stored.values(), *([self.labels.planes] if self.labels else [])]
        largest = max((plane_stack.chunk_bytes() for plane_stack in planes), default=0)
        map_size += max(largest - len(batch) * pixels * 4, 0)
        stack = self.stack
        if not stack:
            return 2 * map_size
        form, boxes = self._form(), stack.boxes(batch[0])
        box = max(b.pixels for b in boxes)
        is_whole = stack.whole(batch[0])
        if is_whole:
            map_size += form.accumulator_bytes(min(BLOCK, box), False)
        else:
            map_size += len(batch) * form.accumulator_bytes(box, stack.splits_classes(batch[0]))
        # The maps of a box, before they are put in place; those of an item of one box are in place.
        reduced_bytes = box * form.map_bytes()
        if len(boxes) == 1:
            reduced_bytes *= len(batch)
            map_size -= reduced_bytes
        tile = stack.tile_bytes(batch)
        # A tile of one item as the kernels take it, and on the way there.
        numbers = tile // len(batch) // max(d.itemsize for d in stack.dtypes)
        numbers = numbers * form.classes // stack.classes
        copies = 1 + (form.dtype == np.float64)
        if stack.kind == "logits" or stack.classes == 1 or not stack.uniform:
            copies += 1
        if stack.classes == 1 or any(d.kind == "u" for d in stack.dtypes - {form.dtype}):
            copies += 2
        tile += copies * numbers * form.dtype.itemsize
        # Maps are made of a tile that is whole, else when all tiles have been added up.
        return map_size + (tile + reduced_bytes if is_whole else max(tile, reduced_bytes))

    # ---- what it gives

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the wanted maps [y, x] of the items of a batch.

        `heartbeat` is called with the bytes of each tile. Raises `DataError` or `StoreError` for
        values that cannot be evaluated, naming item and store.
        """
        labels = [self._label(item) for item in batch]
        if self.stack:
            maps = self._reduce(batch, labels, heartbeat)
        else:
            maps = [{"prediction": self._kept.prediction(item)} for item in batch]
        for item, label, item_maps in zip(batch, labels, maps, strict=True):
            if label is not None and "label" in self.wanted:
                item_maps["label"] = label
            for name in self.wanted - set(item_maps) - {"label_rank"}:
                item_maps[name] = self._kept.numbers(name, item, self.size(item))
                heartbeat(item_maps[name].nbytes)
            if "label_rank" in self.wanted and "label_rank" not in item_maps:
                assert label is not None
                item_maps["label_rank"] = self._kept.label_rank(
                    item, label, item_maps["prediction"]
                )
        return maps

    def _label(self, item: int) -> NDArray[Any] | None:
        if self.labels is None or not self.wanted & set(OF_LABELS):
            return None
        planes = self.labels.planes
        return label_map(
            planes.read(item), self.classes, self.labels.ignore_index,
            f"{planes.where(item)}, item {cut(self.names[item])}", self.size(item),
        )  # fmt: skip

    def _form(self) -> Form:
        stack = self.stack
        assert stack is not None
        if stack.kind == "logits" or stack.classes == 1 or not stack.uniform:
            dtype = np.dtype(np.float64 if np.dtype("f8") in stack.dtypes else np.float32)
        else:
            dtype = next(iter(stack.dtypes))
        tolerances = [
            stack.classes * stack.scale(a) if a.dtype.kind == "u" else tolerance_of(a, a.dtype.name)
            for a in stack.arrays
        ]
        computed = self.wanted & set(COMPUTED + OF_LABELS) - {"label"}
        return Form(
            samples=stack.samples,
            classes=max(stack.classes, 2),
            dtype=np.dtype(np.int16) if dtype == np.float16 else dtype,
            unit=stack.scale(stack.arrays[0]) if dtype.kind == "u" else 1.0,
            tolerance=self.sum_tolerance if self.sum_tolerance is not None else max(tolerances),
            wanted=frozenset(computed),
        )

    def _reduce(
        self, batch: range, labels: list[NDArray[Any] | None], heartbeat: Heartbeat
    ) -> list[Maps]:
        stack, form = self.stack, self._form()
        assert stack is not None
        boxes, size = stack.boxes(batch[0]), self.size(batch[0])
        # Maps of several boxes are put together; those of one are as they come.
        results: list[Maps] = [self._unfilled(form, size) if boxes[1:] else {} for _ in batch]
        is_whole, splits_classes = stack.whole(batch[0]), stack.splits_classes(batch[0])
        for box in boxes:
            region = (slice(box.y0, box.y1), slice(box.x0, box.x1))
            reducers = {
                item: Reducer(
                    form, box.pixels, is_whole=is_whole, splits_classes=splits_classes,
                    check=SumCheck(
                        form.classes, form.tolerance, form.sum_unit, form.total_dtype,
                        self.where,
                        box.x1 - box.x0, box.y0, box.x0,
                    ),
                )
                for item in batch
            }  # fmt: skip
            for tile in stack.tiles(batch, box):
                heartbeat(tile.values.nbytes)
                values = self._prepare(tile, form)
                reducer = reducers[tile.item]
                reducer.check = replace(reducer.check, where=self._place_of(tile))
                if is_whole:
                    j = tile.item - batch[0]
                    reduced = reducer.reduce(values, _flat(labels[j], region))
                    self._place(results[j], region, reduced)
                    del reduced
                else:
                    reducer.add(values, tile.t0, tile.c0)
                del tile, values, reducer  # before the next one is read
            if not is_whole:
                for item in batch:
                    j = item - batch[0]
                    reducer = reducers.pop(item)
                    self._place(results[j], region, reducer.finish(_flat(labels[j], region)))
                    del reducer
            reducers.clear()
        return results

    def _prepare(self, tile: Tile, form: Form) -> NDArray[Any]:
        """Return a tile as the kernels take it: probabilities of at least two classes, one
        dtype.
        """
        stack = self.stack
        assert stack is not None
        values = tile.values
        if values.dtype.kind == "u" and form.dtype.kind == "f":
            values = values * stack.scale(tile.array)
        if stack.kind == "logits":
            if not np.isfinite(values).all():
                bad = int((~np.isfinite(values)).sum())
                raise DataError(
                    f"{self._place_of(tile)}: {bad} of {values.size} logits in "
                    f"rows {tile.box.y0} to {tile.box.y1 - 1} are NaN or infinite."
                )
            values = sigmoid(values) if stack.classes == 1 else softmax(values)
        if stack.classes == 1:
            values = foreground(values)
        if form.dtype.kind == "f":
            values = values.astype(form.dtype, copy=False)
            if form.dtype == np.float64 and form.samples > 1:
                values = on_grid(values)
        return kernel_view(values)

    def _place_of(self, tile: Tile) -> str:
        return f"{tile.array.where}, item {self.names[tile.item]}"

    @staticmethod
    def _unfilled(form: Form, size: tuple[int, int]) -> Maps:
        return {
            name: np.empty(
                (form.classes, *size) if name == "mean_probs" else size,
                {"prediction": id_dtype(form.classes), "label_rank": "uint16"}.get(name, "f4"),
            )
            for name in form.wanted
        }

    @staticmethod
    def _place(maps: Maps, region: tuple[slice, slice], reduced: Maps) -> None:
        shape = (region[0].stop - region[0].start, region[1].stop - region[1].start)
        for name, flat in reduced.items():
            values = flat.reshape(*flat.shape[:-1], *shape)
            if name in maps:
                maps[name][(..., *region)] = values
            else:
                maps[name] = values


def _flat(label: NDArray[Any] | None, region: tuple[slice, slice]) -> NDArray[Any] | None:
    return None if label is None else np.ascontiguousarray(label[region]).reshape(-1)


def with_samples(source: MapSource, option: str) -> Source:
    """Return the source, if it has samples of class probabilities; `UsageError` for
    `option` else.
    """
    if not isinstance(source, Source):
        raise UsageError(f"{source.where} holds {source.kind} data; {option} takes probabilities.")
    if source.stack is None:
        raise UsageError(
            f"{source.where} is a maps store, whose samples are gone; {option} takes samples."
        )
    return source
