"""What the user gives, what is left of it once it is opened, and how it is opened."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from uqeval.errors import UsageError, check_numbers
from uqeval.inputs.part import Part
from uqeval.metrics._facts import Facts, VideoFacts
from uqeval.stores.watch import Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.contract import MapSource

#: What stands for a store: a path, a URL, an array in memory, or a mapping of such by name.
Given: TypeAlias = "str | Path | NDArray[Any] | Mapping[str, Any]"


_CHOICES = {
    "missing_chunks": ("error", "fill"),
    "nan_samples": ("error", "skip"),
    "resize": ("none", "nearest"),
}
#: What `kind` may say of predictions.
KINDS_DECLARED = ("probs", "logits", "predictions")
#: Of a video only.
OF_VIDEO = ("video", "pseudo_labels", "flow_path", "flow_forward_path", "flow_cache", "resize")


@dataclass(frozen=True)
class InputOptions:
    """How inputs are read; each is the command line's option of the same name."""

    names: str | Path | Sequence[str] | None = None
    ignore_index: int | None = None
    classes: int | None = None
    class_names: Sequence[str] | None = None
    missing_chunks: str = "error"
    #: What predictions without names of arrays are: their kind, and the order of their axes.
    kind: str | None = None
    axes: str | None = None
    label_map: str | None = None
    sum_tolerance: float | None = None
    nan_samples: str = "error"
    invalid: float | str | Sequence[float | str] | None = None
    limit: int | None = None
    part: str | None = None
    #: Whether parts are cut between the sequences of a video only.
    whole_sequences: bool = False
    video: str | Path | None = None
    pseudo_labels: Given | None = None
    flow_path: str | Path | None = None
    flow_forward_path: str | Path | None = None
    flow_cache: str | Path | None = None
    resize: str = "none"
    map_cache: str | Path | None = None
    region: str | Sequence[str] = ()

    @property
    def regions(self) -> tuple[str, ...]:
        """Return the regions that are evaluated beside the whole image, as they were given."""
        return (self.region,) if isinstance(self.region, str) else tuple(self.region)

    def invalid_targets(self) -> tuple[float, ...]:
        """Return the targets that are no measurement. Raises `UsageError` for no numbers."""
        given = self.invalid
        listed = isinstance(given, Iterable) and not isinstance(given, str)
        several: list[Any] = list(given) if listed else [given]  # type: ignore[arg-type]
        found = []
        for value in several if given is not None else ():
            try:
                if isinstance(value, bool) or value is None:
                    raise ValueError
                found.append(float(value))
            except (TypeError, ValueError, OverflowError):
                raise UsageError(
                    f"--invalid {str(value)[:100]!r}; expected a number, such as 0, -1 or nan: a "
                    "target that is no measurement."
                ) from None
        return tuple(found)

    def refuse_invalid(self, where: str) -> None:
        """Raise `UsageError` for `invalid` beside data that have no target."""
        if self.invalid is not None:
            raise UsageError(
                f"--invalid is for targets of a regression, which {where} has not. Leave it out; "
                "labels that do not count are those of --ignore-index."
            )

    def check(self) -> None:
        """Raises `UsageError` for what cannot be."""
        self.invalid_targets()
        check_numbers({name: getattr(self, name) for name in self.__dataclass_fields__})
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"--{name.replace('_', '-')} {getattr(self, name)!r}; expected "
                    f"{' or '.join(choices)}."
                )
        if self.kind not in (None, *KINDS_DECLARED):
            expected = " or ".join(KINDS_DECLARED)
            raise UsageError(f"--kind {self.kind!r}; expected {expected}.")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}; expected at least 1 item.")
        named = self.class_names
        if named is not None and (isinstance(named, str) or not all(named) or not list(named)):
            raise UsageError(f"--class-names {named!r}; expected a name for each class.")
        folder = self.map_cache
        local = isinstance(folder, str | Path) and str(folder) and "://" not in str(folder)
        if folder is not None and not local:
            raise UsageError(f"--map-cache {folder!r}; expected a folder of this machine.")
        if self.part is not None:
            Part.parse(self.part)
            if self.limit is not None:
                raise UsageError("--limit and --part exclude each other; give one of them.")
        tolerance = self.sum_tolerance
        if tolerance is not None and not 0 <= tolerance < 1:
            raise UsageError(f"--sum-tolerance {tolerance}; expected a number from 0 to below 1.")

    def paths(self) -> list[Any]:
        """Return what is read beside predictions and labels."""
        read = (self.names, self.video, self.pseudo_labels, self.flow_path, self.flow_forward_path)
        return [given for given in read if isinstance(given, str | Path)]

    def check_caches(self, *inputs: Any) -> None:
        """Raise `UsageError` for a cache that is, contains or lies in one of the inputs."""
        from uqeval.stores.overlap import paths_in, refuse_overlap

        caches = (("--map-cache", self.map_cache), ("--flow-cache", self.flow_cache))
        for option, folder in caches:
            refuse_overlap([folder], paths_in([*inputs, *self.paths()]), f"give another {option}")

    def refuse_video(self) -> None:
        """Raises `UsageError` for an option that only a video has."""
        for name in OF_VIDEO:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value == "none"):
                raise UsageError(f"--{name.replace('_', '-')} is for a video (`uqeval tc`).")

    def said(self) -> dict[str, Any]:
        """What a report says of them: all that results depend on but names, and what is of a video
        only for one."""
        hidden = {
            "names",
            "whole_sequences",
            "map_cache",
            *(() if self.region else ("region",)),
        } | (set() if self.video is not None else {*OF_VIDEO})
        found = {
            name: str(value) if isinstance(value, Path) else value
            for name in self.__dataclass_fields__
            if name not in hidden and not hasattr(value := getattr(self, name), "__array__")
        }
        if self.invalid is not None:  # as JSON can hold it
            found["invalid"] = [v if math.isfinite(v) else str(v) for v in self.invalid_targets()]
        return found

    @property
    def fill(self) -> bool:
        """Whether chunks that are not there read as the fill value."""
        return self.missing_chunks == "fill"


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
    video: VideoFacts | None = None
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

    def facts(self) -> Facts:
        """What metrics may know of the data before any of it is read."""
        source, record = self.source, self.record
        sizes = tuple(source.size(item) for item in range(source.items))
        return Facts(
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
        told = [own["path"] for own in (*record["predictions"], *stores) if own]
        return [path if "://" in path else str(Path(path).absolute()) for path in told]

    @property
    def given(self) -> tuple[str, ...]:
        """The paths of predictions and ground truth as they were given."""
        record = self.record
        truth = record.get("labels") or record.get("target")
        paths = [own["path"] for own in (*record["predictions"], *([truth] if truth else []))]
        return tuple(dict.fromkeys(paths))

    @property
    def fingerprint(self) -> str:
        """One digest of all stores."""
        truth = self.record.get("labels") or self.record.get("target") or {}
        stores = [*self.record["predictions"], truth]
        stores += [s for s in (self.record.get("frames"), *self.record.get("flow", ())) if s]
        text = "\n".join(str(store.get("fingerprint")) for store in stores)
        return hashlib.sha256(text.encode()).hexdigest()
