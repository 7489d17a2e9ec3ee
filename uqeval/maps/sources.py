"""Sources of maps: reduced from sample stacks, or read from a maps store."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence, Set
from functools import cached_property

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import (
    DataError,
    StoreError,
    UsageError,
    cut,
    data_of_kind,
    in_command,
    listed,
)
from uqeval.maps.contract import Heartbeat, MapSource, StackedMaps
from uqeval.maps.labels import Labels, label_map
from uqeval.maps.names import (
    COMPUTED,
    OF_LABELS,
    OF_MEAN_AND_LABEL,
    OF_SEVERAL_SAMPLES,
    SAMPLE_PREDICTIONS,
    annotations_of,
    is_annotations,
    is_choices,
)
from uqeval.maps.reduction import BLOCK, map_bytes
from uqeval.maps.stack_maps import TOGETHER, StackMaps
from uqeval.maps.stored_maps import StoredMaps, missing_map_message
from uqeval.spelling import for_caller
from uqeval.stores.array import arrays_of
from uqeval.stores.class_ids import doubtful_fills
from uqeval.stores.planes import Planes
from uqeval.stores.stack import Stack

#: The largest number of labels of small items that are read together.
_MOST_LABELS = 1 << 20


class Source(StackMaps):
    """Maps of all items, by name.

    Maps of samples are reduced from the stack. Other names are arrays [item, y, x] of the store.
    `label`, and maps that depend on it, need `labels`.
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
        and_others: str = "",
    ) -> None:
        self.names = tuple(names)
        self.classes = classes
        self.stack = stack
        self.stored = stored
        self.labels = labels
        #: The labels with which stored maps such as `brier` were computed, if `labels` are others.
        self.labels_of_maps: Labels | None = None
        self.where = where
        self.content, self.and_others = content, and_others
        self.sum_tolerance = sum_tolerance
        #: Completes the command of a message with the options that the user gave.
        self.with_options: Callable[[str], str] = str
        self.wanted: frozenset[str] = frozenset()
        #: All maps that were ever wanted, also of sources that read the same arrays.
        self.requested: set[str] = set()
        #: The stored arrays that others read as well: copied maps, labels with ids of OUT.
        self.read_elsewhere: frozenset[str] = frozenset()
        self._batch_bytes: dict[Hashable, int] = {}

    @cached_property
    def _stored_maps(self) -> StoredMaps:
        return StoredMaps(self.stored, self.names, self.classes, self.sum_tolerance)

    # ---- what there is

    @property
    def samples(self) -> int | None:
        return self.stack.samples if self.stack else None

    @property
    def _of_mean(self) -> frozenset[str]:
        """Return the maps that are computed from stored mean probabilities."""
        return frozenset() if self.stack else self._stored_maps.of_mean

    @property
    def stored_choices(self) -> int:
        """Return how many samples have their likeliest classes in a maps store; else 0."""
        return self._stored_maps.choices if SAMPLE_PREDICTIONS in self.stored else 0

    def size(self, item: int) -> tuple[int, int]:
        if self.stack:
            return self.stack.size(item)
        return self._stored_maps.size(item)

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns.

        Raises `UsageError` for a map that is undefined for one sample, `StoreError` for one that
        cannot be read or computed.
        """
        for name in names:
            if (name in OF_LABELS or is_annotations(name)) and self.labels is None:
                raise UsageError(
                    f"{self.where} has no labels: it holds {self.content}. "
                    + for_caller(
                        "Give a folder of label PNGs, or a store with `labels`, after the "
                        "predictions, or store an array `labels` in it.",
                        "Pass labels=: class ids [N, H, W], a folder of label PNGs or a store; or "
                        "store an array `labels` in it.",
                        "Give the store the key `labels:` with a folder of label PNGs or a store; "
                        "or store an array `labels` in it.",
                    )
                )
            if self.stack and name in OF_SEVERAL_SAMPLES and self.stack.samples == 1:
                raise UsageError(
                    f"{self.where} holds one sample per item, for which {name} is undefined; "
                    "use entropy or confidence, or store several samples."
                )
            if name == "label" or name in (COMPUTED + OF_LABELS if self.stack else self._of_mean):
                continue
            if name == "label_rank" and name not in self.stored:
                raise StoreError(
                    f"{self.where}: --top-k needs `mean_probs` or `label_rank`, which this maps "
                    "store does not hold. Write it with `uqeval reduce` or "
                    "PredictionWriter(keep='maps', mean_probs=True), or give the samples."
                )
            if is_annotations(name) or (
                is_choices(name) and (self.stack or SAMPLE_PREDICTIONS in self.stored)
            ):
                continue
            if name not in self.stored and not (
                name == "prediction" and "predictions" in self.stored
            ):
                raise StoreError(
                    missing_map_message(
                        self.where,
                        name,
                        sorted(self.stored),
                        bool(self.stack),
                        self._arguments(),
                        self.and_others,
                    )
                )
        self.wanted = frozenset(names) | {"prediction"}
        self.requested |= self.wanted

    def reads(self, name: str) -> bool:
        """Return whether a stored array is read for any map that was wanted until now; true before
        maps are wanted."""
        if not self.requested or name in self.read_elsewhere:
            return True
        if name == "labels":
            return _needs_labels(self.requested)
        if name == "predictions":
            return self.stack is None
        if name == "mean_probs" and self.compares_labels():
            return True
        computed = COMPUTED + OF_LABELS if self.stack else ()
        return name in self._stored_maps.sources(self.requested.difference(computed))

    def _arguments(self) -> str:
        """Return the predictions, the labels if they are elsewhere, and the options that the user
        gave, as a command has them."""
        labels = "LABELS" if self.labels is None else in_command(self.labels.where, "LABELS")
        return self.with_options(f"{in_command(self.where)} {labels}".removesuffix(" ''"))

    def batches(self) -> list[range]:
        return self.stack.batches() if self.stack else super().batches()

    def joins(self, batches: range) -> bool:
        """Return whether whole batches are read faster in one call: those of small items."""
        if self.stack is None:
            height, width = self.size(batches[0])  # files are checked for changes after each read
            is_alike = self.size(batches[-1]) == (height, width)
            return is_alike and len(batches) * height * width * self.classes <= TOGETHER
        tiling = self.stack.tiling(batches[0])
        if self.stack.tiling(batches[-1]) is not tiling:
            return False
        return self._at_once(batches, tiling) == len(batches)

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes: tiles, accumulators and maps.

        Computed once for batches of one layout.
        """
        stack = self.stack
        if stack and len(runs := stack.runs(batch)) > 1:
            return sum(map(self.batch_bytes, runs))
        layout = stack.tiling(batch[0]) if stack else self.size(batch[0])
        key = layout, len(batch), self.wanted
        if key not in self._batch_bytes:
            self._batch_bytes[key] = self._bytes_of(batch)
        return self._batch_bytes[key]

    def _bytes_of(self, batch: range) -> int:
        height, width = self.size(batch[0])
        pixels = height * width
        # The maps of a batch, and in addition label planes and their checks.
        planes_of_labels = self.labels.annotators if self.labels else 0
        bytes_of_labels = 4 + 4 * planes_of_labels
        held = self.wanted | ({"mean_probs"} if self.wanted & self._of_mean else set())
        map_size = len(batch) * pixels * (map_bytes(held, self.classes) + bytes_of_labels)
        # Chunks may be larger than an item, and are decoded completely.
        planes = [*self.stored.values(), *([self.labels.planes] if self.labels else [])]
        largest = max((plane_stack.chunk_bytes for plane_stack in planes), default=0)
        map_size += max(largest - len(batch) * pixels * 4, 0)
        stack = self.stack
        if not stack:
            return 2 * map_size
        form, tiling = self._form(), stack.tiling(batch[0])
        box = tiling.box_pixels
        if tiling.whole:
            map_size += form.accumulator_bytes(min(BLOCK, box), False)
        else:
            map_size += len(batch) * form.accumulator_bytes(box, tiling.splits_classes)
        # The maps of a box before they are copied; maps of an item with one box are not copied.
        reduced_bytes = box * form.map_bytes()
        if len(tiling.boxes) == 1:
            reduced_bytes *= len(batch)
            map_size -= reduced_bytes
        tile = stack.tile_bytes(batch)
        # A tile of one item for the kernels, and temporary copies.
        numbers = tile // len(batch) // max(d.itemsize for d in stack.dtypes)
        numbers = numbers * form.classes // stack.classes
        copies = 1 + (form.dtype == np.float64)
        if stack.kind == "logits" or stack.classes == 1 or not stack.uniform:
            copies += 1
        if stack.classes == 1 or any(d.kind == "u" for d in stack.dtypes - {form.dtype}):
            copies += 2
        at_once = self._at_once(batch, tiling)
        tile += (copies + (at_once > 1)) * at_once * numbers * form.dtype.itemsize
        # Maps are computed from a complete tile, else after all tiles are added.
        return map_size + (tile + reduced_bytes if tiling.whole else max(tile, reduced_bytes))

    # ---- what it gives

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> Sequence[Maps]:
        """Return the wanted maps [y, x] of the items of a batch.

        `heartbeat` is called with the bytes of each tile. Raises `DataError` or `StoreError` for
        values that cannot be evaluated, naming item and store.
        """
        if (together := self._read_stacked(batch, heartbeat)) is not None:
            return together
        of_annotators = [self._annotations(item) for item in batch]
        labels = self._labels_of(batch, of_annotators)
        if self.stack:
            maps = []
            for run in self.stack.runs(batch):
                of_run = labels[run.start - batch.start : run.stop - batch.start]
                maps += self._reduce(run, of_run, heartbeat)
        else:
            maps = [{"prediction": self._stored_maps.prediction(item)} for item in batch]
            heartbeat(sum(own["prediction"].nbytes for own in maps))
        for item, label, own, item_maps in zip(batch, labels, of_annotators, maps, strict=True):
            if label is not None and "label" in self.wanted:
                item_maps["label"] = label
            if own is not None and (name := annotations_of(len(own[1]))) in self.wanted:
                item_maps[name] = own[1]
            item_maps |= self._stored_maps.read(
                item, self.wanted - item_maps.keys(), self.size(item), item_maps["prediction"],
                label, heartbeat, self._stale(item, label),
            )  # fmt: skip
        return maps

    def compares_labels(self) -> bool:
        """Return whether a stored map was wanted until now that was computed with labels of the
        store, while others are given; true before maps are wanted."""
        stale = self.requested & self.stored.keys() & OF_MEAN_AND_LABEL
        return self.labels_of_maps is not None and (not self.requested or bool(stale))

    def _stale(self, item: int, label: Array | None) -> frozenset[str]:
        """Return the stored maps that were computed with other labels [y, x] than these.

        Raises `DataError` if they cannot be computed again, from `mean_probs`.
        """
        maps = self.wanted & self.stored.keys() & OF_MEAN_AND_LABEL
        if label is None or self.labels_of_maps is None or not maps:
            return frozenset()
        own = self.labels_of_maps.read(item, self.classes, self.names[item], self.size(item))[0]
        if np.array_equal(label, own):
            return frozenset()
        if "mean_probs" not in self.stored:
            assert self.labels is not None
            raise DataError(
                f"{self.where}: {listed(sorted(maps))} were computed with its own "
                f"labels, which differ from those of {self.labels.where} in item "
                f"{cut(self.names[item])}. Evaluate the samples with the other labels, or write "
                "the maps with mean_probs."
            )
        return maps

    def _read_stacked(self, batch: range, heartbeat: Heartbeat) -> StackedMaps | None:
        """Return the maps of small items of one size that are all reduced from samples; None for
        others."""
        if self.stack is None:
            return None
        tiling = self.stack.tiling(batch[0])
        at_once = self._at_once(batch, tiling)
        if (
            at_once == 1 or len(self.stack.runs(batch)) > 1
            or not self.wanted - {"label"} <= self._form().wanted
        ):  # fmt: skip
            return None
        label = self._labels_stacked(batch)
        if label is None and self._wants_labels:
            return None
        maps = self._reduce_small(batch, tiling.boxes[0], at_once, label, heartbeat)
        if label is not None and "label" in self.wanted:
            maps.arrays["label"] = label
        return maps

    @property
    def _wants_labels(self) -> bool:
        return _needs_labels(self.wanted)

    def _annotations(self, item: int) -> tuple[Array, Array] | None:
        """Return the majority [y, x] and the labels [annotator, y, x] of several annotators; None
        without them.
        """
        if self.labels is None or not self.labels.annotators or not self._wants_labels:
            return None
        label, ids = self.labels.read(item, self.classes, self.names[item], self.size(item))
        assert ids is not None
        return label, ids

    def _labels_of(
        self, batch: range, of_annotators: Sequence[tuple[Array, Array] | None]
    ) -> list[Array | None]:
        """Return the labels [y, x] of a batch, the majority of annotators; None without labels."""
        if (together := self._labels_stacked(batch)) is not None:
            return list(together)
        return [
            self._label(item) if own is None else own[0]
            for item, own in zip(batch, of_annotators, strict=True)
        ]

    def _labels_stacked(self, batch: range) -> Array | None:
        """Return the labels [item, y, x] of small items of one size, which are read in one call;
        None for others."""
        labels, size = self.labels, self.size(batch[0])
        if (
            labels is None or labels.annotators or not self._wants_labels or len(batch) == 1
            or len(batch) * math.prod(size) > _MOST_LABELS
            or any(labels.planes.size(item) != size for item in batch)
            or any(0 <= fill < self.classes for fill in doubtful_fills(
                arrays_of(labels.planes.parts[batch.start : batch.stop]), labels.ignore_index))
        ):  # fmt: skip
            return None
        planes = labels.planes.read_together(batch)
        if planes.dtype.kind == "f":  # common to int64 and uint64; one item has ids of its dtype
            return None
        try:
            rows = planes.reshape(-1, size[1])
            ids = label_map(rows, self.classes, labels.ignore_index, "", rows.shape)
        except (DataError, StoreError):
            for item in batch:  # one raises it again, with its name
                self._label(item)
            raise
        return ids.reshape(planes.shape)

    def _label(self, item: int) -> Array | None:
        if self.labels is None or not self._wants_labels:
            return None
        return self.labels.read(item, self.classes, self.names[item], self.size(item))[0]


def _needs_labels(names: Set[str]) -> bool:
    return not names.isdisjoint(OF_LABELS) or any(map(is_annotations, names))


def with_samples(source: MapSource, option: str) -> Source:
    """Return the source, if it has samples of class probabilities; `UsageError` for
    `option` else.
    """
    source = getattr(source, "inner", source)  # of regions
    if not isinstance(source, Source):
        raise UsageError(
            f"{source.where} holds {data_of_kind(source.kind)}; {option} takes probabilities."
        )
    if source.stack is None:
        raise UsageError(
            f"{source.where} is a maps store, which has no samples, but {option} needs them. Give "
            "the store of the samples."
        )
    return source
