"""Join sets of items to one source: some pixels are in-distribution, others out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import DataError, cut
from uqeval.maps.checks import RESIZE_IDS, check_size
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.labels import refuse_unknown
from uqeval.maps.names import OF_CLASSES, void_of
from uqeval.maps.sources import Source
from uqeval.stores.class_ids import refuse_ambiguous, refuse_fill_ids
from uqeval.stores.planes import Planes

#: Maps that only sets of items have: the set of a pixel, and the predicted set, which is
#: in-distribution for all pixels, so that the pixels out of it are the errors.
_OF_SETS = ("label", "prediction")


@dataclass(frozen=True)
class Mask:
    """Ids of pixels. With `out`, the pixels of this id are out of distribution, else those of all
    ids except 0.

    Pixels of `ignore_index` are void, unless it is `out`. Labels with another id than these and
    those of the classes are refused: they may be out of distribution too.
    """

    planes: Planes
    ignore_index: int
    out: int | None = None
    #: The number of classes, if the ids are labels.
    classes: int = 0

    def sets(self, item: int, size: tuple[int, int], name: str) -> Array:
        """Return the set of each pixel [y, x], uint8: 0 in, 1 out, 255 void."""
        plane = self.planes.read(item)
        where = f"{self.planes.where_of(item)}, item {cut(name)}"
        check_size(plane.shape, size, where, "the mask is", RESIZE_IDS)
        if plane.dtype.kind not in "iub":
            raise DataError(f"{where}: masks of dtype {plane.dtype}; expected integer ids.")
        if self.out != self.ignore_index:
            void, noun = self.ignore_index, "labels" if self.classes else "ids"
            refuse_ambiguous(plane, self.classes, void, where, noun)
            refuse_fill_ids(plane, self.planes.parts[item].array, void, where, noun)
        is_out = plane != 0 if self.out is None else plane == self.out
        sets: Array = is_out.astype(np.uint8)
        if self.out != self.ignore_index:
            sets[plane == self.ignore_index] = void_of(2)
        if self.classes:
            refuse_unknown(
                plane, sets != 0, self.classes, self.ignore_index, where,
                known=f" and --ood-mask {self.out}",
            )  # fmt: skip
        return sets


class Sets(MapSource):
    """The items of several sources, one after another.

    `label` is the set of a pixel: 0 in-distribution, k of the k-th other set. With a `mask`, the
    mask gives the set of each pixel of the only source. Pixels whose class label is void are void.
    Maps called `class:NAME` are the maps NAME of the classes.
    """

    kind = "ood"
    samples: int | None = None

    def __init__(
        self,
        sources: Sequence[Source],
        set_of: Sequence[int],
        names: Sequence[str],
        classes: int,
        mask: Mask | None = None,
        *,
        samples: int | None,
    ) -> None:
        """`set_of`: the set of each source; `names`: of the items; `classes`: the sets; `samples`:
        of IN, also where no item of it is evaluated."""
        self.sources, self.set_of, self.mask = tuple(sources), tuple(set_of), mask
        self.names, self.classes, self.samples = tuple(names), classes, samples
        self.where = ", ".join(source.where for source in sources)
        self._first = np.cumsum([0, *(source.items for source in sources)]).tolist()
        self.wanted: frozenset[str] = frozenset()

    def size(self, item: int) -> tuple[int, int]:
        k, first = self.source_of(item)
        return self.sources[k].size(item - first)

    def want(self, names: Sequence[str]) -> None:
        self.wanted = frozenset(names)
        inner = {name.removeprefix(OF_CLASSES) for name in names if name not in _OF_SETS}
        for source in self.sources:
            # Labels are read for their void pixels, unless the mask reads them.
            masked = self.mask is not None and self.mask.out is not None
            label = {"label"} if source.labels is not None and not masked else set()
            source.want(sorted(inner | label))

    def batches(self) -> list[range]:
        return [
            range(first + batch.start, first + batch.stop)
            for source, first in zip(self.sources, self._first, strict=False)
            for batch in source.batches()
        ]

    def joins(self, batches: range) -> bool:
        (k, first), (last, _) = self.source_of(batches[0]), self.source_of(batches[-1])
        inner = range(batches.start - first, batches.stop - first)
        return k == last and self.sources[k].joins(inner)

    def batch_bytes(self, batch: range) -> int:
        k, first = self.source_of(batch[0])
        return self.sources[k].batch_bytes(range(batch.start - first, batch.stop - first))

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        k, first = self.source_of(batch[0])
        source, local = self.sources[k], range(batch.start - first, batch.stop - first)
        items = []
        for item, maps in zip(local, source.read(local, heartbeat), strict=True):
            sets = self._sets(k, item, maps.get("label"))
            renamed = {name: maps[name.removeprefix(OF_CLASSES)]
                       for name in self.wanted if name not in _OF_SETS}  # fmt: skip
            items.append(renamed | {"label": sets, "prediction": np.zeros_like(sets)})
        return items

    def _sets(self, k: int, item: int, label: Array | None) -> Array:
        """Return the set of each pixel of an item of a source."""
        source, void = self.sources[k], void_of(self.classes)
        if self.mask is not None:
            sets = self.mask.sets(item, source.size(item), source.names[item])
        else:
            sets = np.full(source.size(item), self.set_of[k], np.uint8)
        if label is not None:
            sets[label == void_of(source.classes)] = void
        return sets

    def source_of(self, item: int) -> tuple[int, int]:
        """Return the source of an item, and the first item of it."""
        k = int(np.searchsorted(self._first, item, side="right")) - 1
        return k, self._first[k]
