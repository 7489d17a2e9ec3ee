"""What the user gives as a store, and the record of opened inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from uqeval.stores.watch import Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.contract import MapSource
    from uqeval.metrics._dataset_info import DatasetInfo, VideoInfo
    from uqeval.stores.contents import Contents

#: What stands for a store: a path, a URL, what was opened there, an array in memory, or a mapping
#: of arrays by name.
Given: TypeAlias = "str | Path | Contents | NDArray[Any] | Mapping[str, Any]"


@dataclass(frozen=True)
class Inputs:
    """Opened inputs: where maps come from, and what a report says of them."""

    source: MapSource
    class_names: tuple[str, ...]
    ignore_index: int
    record: dict[str, Any]
    warnings: list[str]
    partial: bool
    reference: bool = False
    #: Regions of pixels that are evaluated beside the whole image.
    regions: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    video: VideoInfo | None = None
    #: The case (volume) of each item, where items are slices of cases.
    groups: tuple[str, ...] | None = None
    #: Held while the items are read.
    session: Callable[[], AbstractContextManager[Any]] = nullcontext
    #: Whether maps are kept from pass to pass, rather than read anew.
    keeps_maps: bool = True
    #: What a report's timing says beside the run's own.
    timing: Callable[[], dict[str, Any]] = dict
    #: What the maps depend on beside the stores: of a video its flow, once maps are wanted.
    flows: Callable[[], dict[str, Any]] = dict
    #: Folder in which maps are kept for other runs.
    map_cache: str | Path | None = None
    #: What each item is read from, and whether that changes.
    watch: Watch = field(default_factory=lambda: Watch((), ()))
    #: Whether the user, or the target's array, says which targets are no measurement.
    invalid: bool = False

    def info(self) -> DatasetInfo:
        """What metrics may know of the data before any of it is read."""
        from uqeval.metrics._dataset_info import DatasetInfo

        source, record = self.source, self.record
        sizes = tuple(source.size(item) for item in range(source.items))
        return DatasetInfo(
            source.where, source.names, sizes, source.classes, self.class_names, source.samples,
            source.kind, self.reference, self.video, self.given, self.invalid, self.groups,
            tuple(
                dict.fromkeys(
                    name for store in record["predictions"]
                    for name, array in store["arrays"].items() if array["dtype"] == "float16"
                )
            ),
            (record.get("labels") or {}).get("path", ""), self.ignore_index,
        )  # fmt: skip

    def paths(self) -> list[str]:
        """Where the stores lie, from the root on: names and times of files are those of a disk."""
        record = self.record
        stores = [record.get("labels"), record.get("target"), record.get("reference")]
        store_paths = [store["path"] for store in (*record["predictions"], *stores) if store]
        return [path if "://" in path else str(Path(path).absolute()) for path in store_paths]

    @property
    def given(self) -> tuple[str, ...]:
        """The paths of predictions and ground truth as they were given."""
        record = self.record
        truth = record.get("labels") or record.get("target")
        paths = [store["path"] for store in (*record["predictions"], *([truth] if truth else []))]
        return tuple(dict.fromkeys(paths))

    @property
    def fingerprint(self) -> str:
        """One digest of all stores."""
        truth = self.record.get("labels") or self.record.get("target") or {}
        stores = [*self.record["predictions"], truth]
        stores += [s for s in (self.record.get("frames"), *self.record.get("flow", ())) if s]
        text = "\n".join(str(store.get("fingerprint")) for store in stores)
        return hashlib.sha256(text.encode()).hexdigest()
