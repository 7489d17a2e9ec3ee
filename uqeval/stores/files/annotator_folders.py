"""A folder of labels: a folder for each annotator, each with one PNG per item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import StoreError, cut, quoted
from uqeval.stores.array import ItemArray, Region, Store, StoredArray
from uqeval.stores.files.label_folder import label_files
from uqeval.stores.files.png_array import PngArray, label_table
from uqeval.stores.names import match_files, required_names, unused


class AnnotatedImage(StoredArray):
    """The labels of one item [annotator, y, x]: a PNG of each annotator."""

    axes = ("annotator", "y", "x")

    def __init__(self, planes: Sequence[PngArray]) -> None:
        first = planes[0]
        for plane in planes:
            if plane.shape != first.shape:
                sizes = "×".join(map(str, plane.shape))
                raise StoreError(
                    f"{plane.where}: is {sizes} (height×width), the labels of another annotator, "
                    f"{first.where}, are {'×'.join(map(str, first.shape))}; expected one size. "
                    "Resize labels by nearest neighbour."
                )
        self.where = first.where
        self.shape = self.chunks = (len(planes), *first.shape)
        self.dtype = np.result_type(*(plane.dtype for plane in planes))
        self.attributes = {}
        self._planes = tuple(planes)

    def read(self, region: Region) -> Array:
        own = [plane.read(region[1:]) for plane in self._planes[region[0]]]
        return np.stack(own).astype(self.dtype, copy=False)

    def stored_bytes(self) -> int:
        return sum(plane.stored_bytes() for plane in self._planes)

    def fingerprint(self) -> str:
        return " ".join(plane.fingerprint() for plane in self._planes)

    def stamp(self, index: int | None) -> str | None:
        stamps = [plane.stamp(index) for plane in self._planes]
        return " ".join(stamp for stamp in stamps if stamp is not None)

    def states(self, index: int | None) -> dict[str, str]:
        return {path: own for plane in self._planes for path, own in plane.states(index).items()}


def open_annotator_folders(
    path: str | Path, names: Sequence[str] | None, *, label_map: str | None = None
) -> Store:
    """Return the labels of the items called `names`: one PNG from each folder in `path`.

    Raises `StoreError` if there are no folders, if an annotator has no label of an item or more
    than one, and for files that are not PNGs of class ids.
    """
    names = required_names(path, names, "label")
    table = label_table(label_map)
    files, warnings = label_files(path, label_map)
    files_of: dict[str, list[str]] = defaultdict(list)
    for file in files:
        folder, *rest = PurePosixPath(file).parts
        if not rest:
            raise StoreError(
                f"{cut(path)}: holds {quoted(file)} next to the folders; --annotator-folders "
                "expects a folder of label PNGs for each annotator, and no others. Move it."
            )
        files_of[folder].append("/".join(rest))
    found: dict[str, dict[str, str]] = {}
    for folder, own in files_of.items():
        where = Path(path) / folder
        try:
            found[folder] = match_files(where, own, names, "label")
        except StoreError as error:
            raise StoreError(
                f"{error} Each annotator has a label of every item: for an item that one did not "
                "label, add a PNG of the void id (255)."
            ) from None
        warnings += unused(where, own, found[folder], "label")
    parts = tuple(
        ItemArray(
            AnnotatedImage(
                [PngArray(Path(path) / folder / own[name], table) for folder, own in found.items()]
            ),
            None,
        )
        for name in names
    )
    return Store(str(path), {"labels": parts}, names, {}, tuple(warnings))
