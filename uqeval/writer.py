"""`PredictionWriter`: from a training or test loop to a store, one sample or one batch at a time."""

from __future__ import annotations

import math
import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import DataError, OutputError, UsageError
from uqeval.stores import zarr_writer as zw
from uqeval.stores.claims import Claims
from uqeval.stores.incoming import as_array, checked_floats, checked_labels
from uqeval.stores.names import checked_names, listed

_STACK_AXES = ("sample", "class", "y", "x")


class PredictionWriter:
    """Writes class probabilities of T samples of N items into a Zarr store.

    `names`: the N items, in the order that the store will have; they may come in any order, and
    from several processes. `samples` T, `classes` C; `size` is (H, W), or None where images differ
    in size. `kind` is `probs` or `logits`. `dtype` is float16 unless said otherwise (`keep="maps"`:
    float32).

    `keep="samples"` stores the stack; `keep="maps"` only the per-pixel maps that the metrics need
    (with `mean_probs`, the mean probabilities too), made of `dtype`, from memory: one item's samples
    must all come before the next item's, or in batches.

    `repeated`: what to do with an item (or sample) that is there already, "error" or "skip"; skip
    where a distributed sampler pads. `ranks`: how many processes write into the store (default: the
    environment's WORLD_SIZE); each must be given the same settings. `resume` goes on where an
    earlier job ended. `overwrite` writes beside a store and takes its place once complete.

    Raises `UsageError` for settings that make no sense and `OutputError` where the store cannot be
    created.
    """

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
        ignore_index: int = 255,
        compression: zw.Compression = "lz4",
        repeated: Literal["error", "skip"] = "error",
        ranks: int | None = None,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.path = str(path)
        self.names = checked_names(list(names), "names")
        self.samples, self.classes, self.keep = samples, classes, keep
        self.size = None if size is None else (int(size[0]), int(size[1]))
        self.kind, self.ignore_index, self.compression = kind, ignore_index, compression
        self.dtype = dtype or ("float32" if keep == "maps" else "float16")
        self._check_settings(class_names, repeated)
        self._mean_probs, self._skip, self._resume = mean_probs, repeated == "skip", resume
        self._ranks = int(os.environ.get("WORLD_SIZE", "1")) if ranks is None else ranks
        self._index = {name: index for index, name in enumerate(self.names)}
        self._arrays: dict[str, Any] = {}
        self._buffers: dict[int, NDArray[Any]] = {}
        self._taken: dict[int, set[int]] = {}
        self._final = Path(path).expanduser().resolve()
        self._root = self._final
        if overwrite:
            self._root = self._final.with_name(f".{self._final.name}.new")
        form = "maps" if keep == "maps" else "predictions"
        known = {"samples": samples, "classes": classes if keep == "samples" else max(classes, 2)}
        self._attributes: dict[str, Any] = zw.group_attributes(form, **known)
        self._attributes |= {"names": list(self.names), "ignore_index": ignore_index}
        if class_names is not None:
            self._attributes["class_names"] = list(class_names)
        if sample_kind is not None:
            self._attributes["sample_kind"] = sample_kind
        settings = {
            **self._attributes, "size": self.size, "kind": kind, "dtype": self.dtype,
            "keep": keep, "mean_probs": mean_probs, "compression": compression,
        }  # fmt: skip
        self._open = True
        self._earlier = self._begin(settings, overwrite)

    def _check_settings(self, class_names: Sequence[str] | None, repeated: str) -> None:
        choices: list[tuple[str, str, tuple[str, ...]]] = [
            ("kind", self.kind, ("probs", "logits")),
            ("dtype", self.dtype, ("float16", "float32")),
            ("keep", self.keep, ("samples", "maps")),
            ("compression", self.compression, ("lz4", "zstd", "none")),
            ("repeated", repeated, ("error", "skip")),
        ]
        for option, value, allowed in choices:
            if value not in allowed:
                raise UsageError(f"{option}={value!r}: expected one of {', '.join(allowed)}.")
        if not self.names or self.samples < 1 or self.classes < 1 or min(self.size or (1,)) < 1:
            raise UsageError("names, samples, classes and size must not be empty or below 1.")
        if class_names is not None and len(class_names) != max(self.classes, 1):
            raise UsageError(f"{len(class_names)} class_names for {self.classes} classes.")

    def _begin(self, settings: Mapping[str, Any], overwrite: bool) -> set[str]:
        """Creates the store or joins those who write it; the parts that are there already."""
        if "://" in self.path:
            raise OutputError(f"{self.path}: stores are written to local folders. Copy it there.")
        zw.check_replaceable(self._final)
        while True:
            if self._root == self._final and zw.is_complete(self._root) is not False:
                if zw.is_taken(self._root):
                    raise OutputError(
                        f"{self.path}: is a finished store. Say overwrite=True to replace it, or "
                        "choose another path."
                    )
            if not zw.is_taken(self._root) and self._created(settings):
                return set()
            self._claims = Claims(self._root)
            parts = self._claims.join(
                settings, shared=self._ranks > 1, resume=self._resume, restart=overwrite
            )
            if parts is not None:
                return parts

    def _created(self, settings: Mapping[str, Any]) -> bool:
        """Creates the store; False if another process was faster."""
        beside = self._root.with_name(f".{self._final.name}.{uuid.uuid4().hex}")
        self._claims = Claims(beside)
        try:
            zw.create_group(beside, self._attributes)
            if self.size is None:
                zw.create_group(beside / "items", {})
            self._claims.create(settings)
            if zw.put_in_place(beside, self._root):
                self._claims.moved(self._root)
                return True
        except BaseException:
            shutil.rmtree(beside, ignore_errors=True)
            raise
        self._claims.leave(clean=False)
        return False

    def __enter__(self) -> PredictionWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        elif self._open:
            self._open = False
            self._claims.leave(clean=False)

    def add(self, name: str, values: Any, *, sample: int | None = None) -> bool:
        """Writes one `sample` [class, y, x] of the item `name`, or all [sample, class, y, x].

        With T = 1, `sample` may be left out. False if it was there and is kept. Raises `DataError`
        naming item and sample for values of a wrong shape, that are no probabilities (or finite
        logits), or that were written already; `OutputError` if the disk refuses.
        """
        index = self._place(name)
        return self._add(index, as_array(values, f"item {name!r}"), sample)

    def add_batch(self, names: Sequence[str], values: Any, *, sample: int | None = None) -> int:
        """Writes one `sample` of several items [item, class, y, x], or all their samples [item,
        sample, class, y, x]; how many were written. Raises as `add` does."""
        places = [self._place(name) for name in names]
        batch = as_array(values, "batch")
        if batch.ndim not in (4, 5) or len(batch) != len(places):
            raise DataError(
                f"batch of {len(places)} items: has the shape {batch.shape}, expected "
                f"[{len(places)}, C, H, W] or [{len(places)}, T, C, H, W]."
            )
        self._most_buffers = max(self._most_buffers, len(places))
        return sum(self._add(at, item, sample) for at, item in zip(places, batch, strict=True))

    def add_labels(self, name: str, labels: Any) -> bool:
        """Writes the class ids [y, x] of an item; once one item has labels, all must have them.

        False if they were there and are kept. Raises as `add` does.
        """
        index, where = self._place(name), f"labels of item {name!r}"
        ids = as_array(labels, where)
        if ids.ndim != 2 or self.size not in (None, ids.shape):
            raise DataError(f"{where}: have the shape {ids.shape}, expected {self.size or '[H, W]'}.")
        part = f"{index}.labels"
        if part in self._earlier:
            return False
        ids = checked_labels(ids, max(self.classes, 2), self.ignore_index, where)
        return self._once(part, where, lambda: self._write_map(index, "labels", ids))

    def done(self, name: str, sample: int | None = None) -> bool:
        """Whether all of an item is written, or one sample of it, by whichever process."""
        index = self._place(name)
        written = self._claims.is_written
        if written(f"{index}.all") or not self._claims.folder.exists():
            return True
        wanted = range(self.samples) if sample is None else (sample,)
        return all(written(f"{index}.{t}") for t in wanted)

    def missing(self) -> list[str]:
        """The items of which samples (or labels, where others have them) are not written yet."""
        try:
            parts = self._claims.written()
        except FileNotFoundError:  # another process has found it complete
            return []
        labels = any(part.endswith(".labels") for part in parts)
        return [
            name
            for name, index in self._index.items()
            if not self._whole(index, parts) or (labels and f"{index}.labels" not in parts)
        ]

    def close(self) -> None:
        """Marks the store complete if all of it is there, whoever wrote it.

        Raises `OutputError` if items are missing and no other process is there to write them. The
        store is then unfinished, and no command will read it.
        """
        if not self._open:
            return
        self._open = False
        clean = False
        try:
            missing = self.missing()
            if not missing:
                self._complete()
            elif self._ranks == 1 and self._claims.alone():
                raise OutputError(
                    f"{self.path}: {len(missing)} of {len(self.names)} items are not all there: "
                    f"{listed(missing)}. The store stays unfinished; go on with resume=True."
                )
            clean = True
        finally:
            self._claims.leave(clean=clean)

    def _complete(self) -> None:
        with suppress(FileNotFoundError), self._claims.ending():
            zw.mark_complete(self._root)
            if self._root != self._final:
                zw.publish(self._root, self._final)
                self._claims.moved(self._final)

    def _place(self, name: str) -> int:
        if not self._open:
            raise UsageError(f"{self.path}: the writer is closed.")
        if name not in self._index:
            raise DataError(f"item {name!r}: is not among the {len(self.names)} names of the store.")
        return self._index[name]

    def _whole(self, index: int, parts: set[str]) -> bool:
        return f"{index}.all" in parts or all(f"{index}.{t}" in parts for t in range(self.samples))

    def _once(self, part: str, what: str, write: Callable[[], None]) -> bool:
        """Writes a part unless it is there; a part of an unfinished item is written again once."""
        if part in self._earlier:
            self._earlier.discard(part)
            self._claims.release(part)
        if not self._claim(part, what):
            return False
        try:
            write()
        except BaseException:
            self._claims.release(part)
            raise
        self._claims.finish(part)
        return True

    def _claim(self, part: str, what: str) -> bool:
        if self._claims.take(part):
            return True
        if self._skip:
            return False
        raise DataError(
            f"{what}: was written already. A distributed sampler that repeats items to fill its "
            "last batch needs repeated='skip'."
        )
