"""`PredictionWriter`: writes predictions to a store from a training or test loop."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import numpy as np

from uqeval.argument_types import checks_types
from uqeval.arrays import Array
from uqeval.errors import DataError, UsageError, check_numbers, cut, quoted
from uqeval.maps.names import COMPUTED, OF_SEVERAL_SAMPLES, id_dtype, stored_name
from uqeval.spelling import spelled
from uqeval.stores import bfloat16
from uqeval.stores.class_ids import ASSUMED_VOID, declared_void, may_be_class
from uqeval.stores.described import ordered
from uqeval.stores.incoming import as_stack, checked_floats, checked_labels
from uqeval.stores.kinds import KINDS
from uqeval.stores.names import checked_names
from uqeval.stores.writing.item_axis import of_items, of_one, ordered_classes
from uqeval.stores.writing.item_descriptions import Description, ItemDescriptions
from uqeval.stores.writing.processes import process_count
from uqeval.stores.writing.sample_buffer import SampleBuffer
from uqeval.stores.writing.unfinished_store import UnfinishedStore, root_of
from uqeval.stores.writing.write_lock import attributes_to_resume
from uqeval.stores.zarr import writer as zw

#: The axes of the predictions of one item, and of its labels.
_OF_ONE = (("class", "y", "x"), ("sample", "class", "y", "x"))
_LABELS_OF_ONE = (("y", "x"), ("annotator", "y", "x"))


class PredictionWriter:
    """Writer of class probabilities of T samples of N items into a Zarr store.

    `names`: the N items in the order of the store. They may arrive in any order, and from several
    processes. `samples` is T, `classes` C. `size` is (H, W), or None if images differ in size.
    `kind` is `probs` or `logits`.

    `keep="samples"` stores the stack, as float16 unless `dtype` is another type. `keep="maps"`
    stores per-pixel maps, computed in `dtype` (float32). With `mean_probs`, it also stores the mean
    probabilities, which calibration, Brier scores and top-k accuracy need. All samples of an item
    or batch must then arrive before the next.

    `ignore_index`: the id of void pixels in labels (255). With more than 255 classes, labels 255
    are refused unless it is given. With `resume`, it is by default that of the earlier job.

    `repeated`: "error", or "skip" samples that are already stored; padding of distributed samplers
    needs this. `ranks`: number of processes that write into this store, all with the same settings
    (default: the size of the initialised group of `torch.distributed`, else the environment's
    WORLD_SIZE, else 1); each must close its writer. `resume` continues an earlier job: complete
    items on disk stay (see `done`), others are written again in the same size. A finished store
    stays unchanged and takes no labels either; `complete` is true at once. `overwrite` writes
    next to an older store, and replaces it when complete. Both together resume an unfinished store
    and replace a finished one. `resume` alone also continues a store that `overwrite` began, if
    there is no older one.

    Raises `UsageError` for settings that contradict each other, `OutputError` if nothing can be
    written.
    """

    @checks_types()
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        names: Sequence[str],
        samples: int,
        classes: int,
        size: tuple[int, int] | None,
        kind: Literal["probs", "logits"] = "probs",
        dtype: Literal["float16", "float32"] | None = None,
        keep: Literal["samples", "maps"] = "samples",
        mean_probs: bool = False,
        class_names: Sequence[str] | None = None,
        sample_kind: str | None = None,
        ignore_index: int | None = None,
        compression: zw.Compression = "lz4",
        repeated: Literal["error", "skip"] = "error",
        ranks: int | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.names = checked_names(list(names), "names")
        self.samples, self.classes, self.kind, self.keep = samples, classes, kind, keep
        self.size = None if size is None else (int(size[0]), int(size[1]))
        self.dtype = dtype or ("float32" if keep == "maps" else "float16")
        if ignore_index is None and resume:
            root = root_of(self.path, resume, overwrite)
            ignore_index = declared_void(attributes_to_resume(root), self.path)
        self.ignore_index = ASSUMED_VOID if ignore_index is None else ignore_index
        self._check(class_names, mean_probs)
        self._mean_probs = mean_probs
        self._index = {name: index for index, name in enumerate(self.names)}
        self._descriptions = ItemDescriptions(self.ignore_index, class_names or ())
        self._gathered = SampleBuffer(samples)
        self._coarse = False
        self._sizes: dict[int, tuple[int, ...]] = {}
        self._annotators: int | None = None
        self._draft = UnfinishedStore(
            self.path,
            self.names,
            samples,
            dense=size is not None,
            attributes=self._attributes(class_names, sample_kind),
            settings={
                "size": self.size, "kind": kind, "dtype": self.dtype, "mean_probs": mean_probs,
            },
            kinds=self._kinds() if keep == "maps" else {kind},
            compression=compression,
            skip=repeated == "skip",
            ranks=process_count(ranks),
            resume=resume,
            overwrite=overwrite,
        )  # fmt: skip
        self._store = self._draft.store

    def _check(self, class_names: Sequence[str] | None, mean_probs: bool) -> None:
        """Raise `UsageError` for settings that no store can have."""
        if not self.names or min(self.samples, self.classes, *(self.size or ())) < 1:
            raise UsageError("names, samples, classes and size must not be empty or below 1.")
        numbers = {"samples": self.samples, "size": self.size, "ignore_index": self.ignore_index}
        check_numbers(numbers)
        id_dtype(self.classes)  # refuses more classes than can be evaluated
        if class_names is not None and len(class_names) not in (
            self.classes, max(self.classes, 2),
        ):  # fmt: skip
            raise UsageError(
                f"{len(class_names)} class_names for {self.classes} classes; give one name per "
                "class."
            )
        if mean_probs and self.keep != "maps":
            raise UsageError(
                "mean_probs=True has no effect on keep='samples': all scores follow from the "
                "samples. Leave it out, or store maps with keep='maps'."
            )

    def _attributes(
        self, class_names: Sequence[str] | None, sample_kind: str | None
    ) -> dict[str, Any]:
        """Return the attributes of the store's root group."""
        maps = self.keep == "maps"
        attributes: dict[str, Any] = zw.group_attributes(
            "maps" if maps else "predictions",
            samples=self.samples,
            classes=max(self.classes, 2) if maps else self.classes,
        )
        # Above it, 255 may be a class, which the store must not decide for its readers.
        if not may_be_class(self.ignore_index, self.classes):
            attributes["ignore_index"] = int(self.ignore_index)
        if class_names is not None:
            attributes["class_names"] = list(class_names)
        if sample_kind is not None:
            attributes["sample_kind"] = sample_kind
        return attributes

    def __enter__(self) -> PredictionWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._draft.abandon()

    @checks_types("name", "sample")
    def add(self, name: str, values: Any, *, sample: int | None = None) -> bool:
        """Write one `sample` [class, y, x] of the item `name`, or all [sample, class, y, x].

        With T = 1, `sample` may be left out; with one class and named axes, the axis of classes.
        Returns False if the sample is already in the store; it stays unchanged. Raises `DataError`
        with item and sample for a wrong shape, for values that are no probabilities (or no finite
        logits), and for samples that were written before; `StoreError` if attributes of the array
        contradict the store, or if its coordinates show other items than the names, or another
        order of rows, columns or classes than before; `OutputError` if the disk fails.
        """
        index = self._place(name)
        where = f"item {quoted(name)}"
        forms = (*_OF_ONE, *KINDS["probs"])
        own = ordered_classes(values, where, forms, self.classes)
        own = of_one(own, name, self._index, where)
        description = self._descriptions.check(own, self.kind, where, [index], is_single=True)
        return self._add(index, own.values, sample, description)

    @checks_types("names", "sample")
    def add_batch(self, names: Sequence[str], values: Any, *, sample: int | None = None) -> int:
        """Write one or all samples of several items; return the number of items written.

        Shapes: [item, class, y, x] for one sample, [item, sample, class, y, x] for all. A batch of
        one item with named axes needs no axis of items. Raises as `add`.
        """
        indices = [self._place(name) for name in names]
        called = f"batch from item {quoted(names[0])} on" if indices else "batch"
        forms = (*KINDS["probs"], *_OF_ONE)
        own = ordered_classes(values, called, forms, self.classes)
        own = of_items(own, names, self._index, called)
        batch = own.values
        description = self._descriptions.check(own, self.kind, called, indices, is_single=False)
        self._gathered.most = max(self._gathered.most, len(indices))
        count = 0
        for at, item in zip(indices, batch, strict=True):
            count += self._add(at, item, sample, description)
        return count

    @checks_types("name")
    def add_labels(self, name: str, labels: Any) -> bool:
        """Write the class ids [y, x] of an item; once one item has labels, all must have them.

        Labels of several annotators are [annotator, y, x], with the same number for each item.
        Pixels that an annotator did not label have the void id. Returns False if the labels are
        already in the store; they stay unchanged. Raises as `add`, and `OutputError` if the store
        was completed without labels.
        """
        index, description = self._place(name), f"labels of item {quoted(name)}"
        forms = (*_LABELS_OF_ONE, *KINDS["labels"])
        own = ordered(labels, description, forms, t_is_item=True)
        own = of_one(own, name, self._index, description)
        ids = own.values
        if ids.ndim not in (2, 3) or self.size not in (None, ids.shape[-2:]):
            size = ", ".join(map(str, self.size or ("H", "W")))
            raise DataError(
                f"{description} have the shape {list(ids.shape)}, expected [{size}], or of R "
                f"annotators [R, {size}]."
            )
        if not self._draft.finished:
            self._check_size(index, ids, description)
        described = self._descriptions.check(own, "labels", description, [index], is_single=True)
        ids = checked_labels(ids, max(self.classes, 2), self.ignore_index, description)
        # Two processes must not begin with different numbers of annotators.
        with self._draft.first_labels() if self._annotators is None else nullcontext():
            self._check_annotators(ids, description)
            is_new = self._draft.labels(
                index, description, partial(self._store.put, index, "labels", ids)
            )
            if is_new:
                self._annotators = _annotators_in(ids.shape)
        self._sizes[index] = ids.shape[-2:]
        self._descriptions.keep(index, *described)
        return is_new

    @checks_types("name", "sample")
    def done(self, name: str, sample: int | None = None) -> bool:
        """Return whether all samples of an item, or one of them, are written by any process.

        An item of an earlier job that lacks labels is not done once the store has labels: `add` it
        again, which changes nothing, and add its labels.
        """
        return self._draft.done(self._place(name), sample)

    @property
    def complete(self) -> bool:
        """Return whether this or another process has completed the store.

        If it was complete when it was opened with `resume`, every `add` returns False, and so does
        `add_labels` if the store has labels. Without labels it raises `OutputError`: give them to
        commands as a second path.
        """
        return self._draft.over()

    def missing(self) -> list[str]:
        """Return the items that lack samples (or labels, once one item has some)."""
        return self._draft.missing()

    def close(self) -> None:
        """Mark the store as complete if all items are written, by any process.

        Without labels, the last process of those that have written does this, because they may
        still add labels; the others warn. So does a writer that completes the samples of an earlier
        job without adding anything, as that job may have ended before its labels. Raises
        `OutputError` if items are missing that no other process will write. The store is then
        unfinished, and no command reads it.
        """
        self._draft.close()

    def _place(self, name: str) -> int:
        if not self._draft.open:
            raise UsageError(f"{cut(self.path)}: the writer is closed.")
        if name not in self._index:
            raise DataError(f"item {quoted(name)} is not among the {len(self.names)} names given.")
        return self._index[name]

    def _add(self, index: int, values: Array, sample: int | None, description: Description) -> bool:
        """Write one or all samples of an item, and remember what its array says."""
        is_new = self._write(index, values, sample, description)
        self._descriptions.keep(index, *description)
        return is_new

    def _write(
        self, index: int, values: Array, sample: int | None, description: Description
    ) -> bool:
        where = f"item {quoted(self.names[index])}"
        stack = as_stack(values, (self.samples, self.classes), self.size, sample, where)
        if index in self._draft.kept:
            return False
        if self._draft.over():
            return self._draft.repeated(where)
        self._check_size(index, stack, where)
        first, whole_item = sample or 0, len(stack) == self.samples
        self._note_coarse(stack, where)
        if self.keep == "maps":
            return self._add_to_maps(index, stack, first)
        # Before anything is created: an array of refused values would decide the item's size.
        checked = self._checked(index, stack, first)
        step = self._open_stack(index, checked)
        if whole_item and step == self.samples > 1:
            return self._draft.once(
                f"{index}.all", where, partial(self._write_stack, index, checked, 0, description)
            )
        if step > 1:
            raise DataError(
                f"{where}, sample {first} is added alone, but the first items of this store had "
                f"all their {self.samples} samples at once, and its chunks hold them all. Give "
                "every item's samples at once, or begin with single ones."
            )
        # A list, so that all samples are written even if one was there already.
        new_samples = [
            self._draft.once(
                f"{index}.{t}",
                f"{where}, sample {t}",
                partial(self._write_stack, index, values_of_sample, t, description),
            )
            for t, values_of_sample in enumerate(checked[:, None], first)
        ]
        return any(new_samples)

    def _check_size(self, index: int, values: Array, where: str) -> None:
        """Raise `DataError` for another size [y, x] than any process has written of the item."""
        if self.size is not None:
            return
        size = values.shape[-2:]
        earlier = self._sizes.get(index) or self._store.size(index) or size
        if earlier != size:
            raise DataError(
                f"{where}: the shape is {list(values.shape)}, expected {list(earlier)} for rows "
                "and columns, as the item had before. Predictions and labels have one size: give "
                "that one, or begin the store again with overwrite=True."
            )

    def _check_annotators(self, ids: Array, where: str) -> None:
        """Raise `DataError` for labels of another number of annotators than the stored ones."""
        annotators = _annotators_in(ids.shape)
        if self._annotators is None and (shape := self._draft.shape_of_labels()) is not None:
            self._annotators = _annotators_in(shape)
        if self._annotators not in (None, annotators):
            raise DataError(
                f"{where} have the shape {list(ids.shape)}, of {annotators} annotators; labels "
                f"before have {self._annotators}. Give a plane of the void id "
                f"({self.ignore_index}) for each annotator who did not label an item. Begin the "
                "store again with overwrite=True for another number."
            )

    def _open_stack(self, index: int, stack: Array) -> int:
        """Open the array of an item's stack; return the number of samples per chunk."""
        samples, classes, height, width = stack.shape
        pixel_bytes = samples * classes * np.dtype(self.dtype).itemsize
        chunks = (samples, classes, *zw.pixel_chunks(pixel_bytes, height, width))
        shape = (self.samples, classes, height, width)
        axes = ("sample", "class", "y", "x")
        source = bfloat16.SOURCE if self._coarse else None
        return self._store.array(index, self.kind, shape, self.dtype, chunks, axes, source)[0]

    def _write_stack(self, index: int, stack: Array, first: int, description: Description) -> None:
        self._store.write(index, self.kind, stack, first)
        self._sizes[index] = stack.shape[-2:]
        self._descriptions.keep(index, *description)  # the next sample may be refused

    def _checked(self, index: int, stack: Array, first: int) -> Array:
        """Return a stack [sample, class, y, x] in its stored form; raise for invalid samples."""
        checked = np.empty(stack.shape, self.dtype)
        for k, values in enumerate(stack):
            where = f"item {quoted(self.names[index])}, sample {first + k}"
            checked[k] = checked_floats(values, self.dtype, self.kind, where)
        return checked

    def _add_to_maps(self, index: int, stack: Array, first: int) -> bool:
        part_name, where = f"{index}.all", f"item {quoted(self.names[index])}"
        if len(stack) == self.samples and index not in self._gathered:
            return self._draft.once(
                part_name, where, lambda: self._write_maps(index, self._checked(index, stack, 0))
            )
        is_first = index not in self._gathered
        if is_first:
            if self._gathered.full():
                raise DataError(
                    f"{where} comes too early: an earlier item still lacks samples. With "
                    "keep='maps' give all samples of one item, or batch, before the next."
                )
            if not self._draft.claim(part_name, where):
                return False
        description = f"{where}, sample {first}"
        if first in self._gathered.there(index):
            return self._draft.repeated(description)
        # The first sample has locked the item, so a later one releases nothing.
        with self._draft.releasing(part_name) if is_first else nullcontext():
            checked = self._checked(index, stack, first)
            full = self._gathered.add(index, first, checked, description)
        self._sizes[index] = checked.shape[-2:]
        if full is not None:
            self._draft.write(part_name, partial(self._write_maps, index, full))
        return True

    def _kinds(self) -> set[str]:
        """Return the names in the store of the maps that `keep="maps"` stores."""
        left_out = set() if self._mean_probs else {"mean_probs"}
        if self.samples == 1:
            left_out |= OF_SEVERAL_SAMPLES
        return {stored_name(name) for name in COMPUTED if name not in left_out}

    def _write_maps(self, index: int, stack: Array) -> None:
        from uqeval.maps.reduction import reduce_array
        from uqeval.maps.stack_maps import foreground, sigmoid, softmax

        if self.kind == "logits":
            stack = softmax(stack) if self.classes > 1 else sigmoid(stack)
        if self.classes == 1:
            stack = foreground(stack)
        tolerance = bfloat16.TOLERANCE if self._coarse else None
        maps = reduce_array(stack, sorted(self._kinds()), tolerance)
        self._sizes[index] = stack.shape[-2:]
        for kind, values in maps.items():
            source = bfloat16.SOURCE if kind == "mean_probs" and self._coarse else None
            self._store.put(index, kind, values, source)

    def _note_coarse(self, stack: Array, where: str) -> None:
        """Warn of the first probabilities that were bfloat16."""
        if self.kind == "probs" and not self._coarse and bfloat16.is_coarse(stack):
            self._coarse = True
            text = spelled(bfloat16.warning(f"{self.path}: {where}"))
            warnings.warn(text, UserWarning, stacklevel=7)


def _annotators_in(shape: tuple[int, ...]) -> int:
    """Return the number of annotators of an item's labels; 0 for labels [y, x]."""
    return shape[0] if len(shape) == 3 else 0
