"""Folders with one file for each item as stores: `.npy`, `.npz`, label PNGs (also a folder of them
for each annotator), targets.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.suffixes import ARRAYS, IDS, NIFTI, NUMPY, TARGETS, suffix_of
from uqeval.errors import StoreError, cut, listed, quoted
from uqeval.stores.array import ItemArray, Region, Store, StoredArray
from uqeval.stores.contents import Contents, Opening
from uqeval.stores.files.label_folder import label_files, open_label_folder, open_predicted_ids
from uqeval.stores.files.png_array import PngArray, label_table
from uqeval.stores.kinds import KNOWN, Declared
from uqeval.stores.matching import RENAME_ANY, match_files, warnings_of_match
from uqeval.stores.names import files_below, required_names


class FolderStore(Contents):
    """A folder of files with arrays, whose names or headers tell their kind; or of images."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        files = files_below(path, (*ARRAYS, *TARGETS))
        self._ends = {suffix_of(file) for file in files}
        self._held: frozenset[str] = frozenset()
        self._has_images = not self._ends.isdisjoint(IDS)
        if self._ends & {*NUMPY} or (self._ends & {*NIFTI} and not self._has_images):
            from uqeval.stores.files.item_folder import kinds_in_folder

            self._held = kinds_in_folder(path)
        self.kinds = self._held if self._held & KNOWN else frozenset()

    def is_labels(self) -> bool:
        return super().is_labels() if self.kinds else self._has_images

    def is_truth(self) -> bool:
        return super().is_truth() if self.kinds else not self._ends.isdisjoint(TARGETS)

    def may_be_predictions(self) -> bool:
        return super().may_be_predictions() if self.kinds else self.is_labels()

    def store(self, opening: Opening) -> Store:
        path, held = self.path, self._held
        if opening.role == "target" and self._ends & {*TARGETS} and held <= {"target", "labels"}:
            from uqeval.stores.files.target_folder import open_target_folder

            return open_target_folder(path, opening.names, opening.noun or "target")
        if self.kinds or (held and opening.declared != Declared()):
            from uqeval.stores.files.item_folder import open_item_folder

            try:
                return open_item_folder(path, opening)
            except StoreError as error:
                if not self._has_images or opening.role == "predictions":
                    raise
                raise StoreError(
                    f"{error} PNG files are not read where a folder also has "
                    f"{listed(sorted(self._ends - {*IDS}))} files. If the {opening.role} are the "
                    "PNG files, move the others."
                ) from None
        if self._has_images:
            if opening.annotator_folders:
                return open_annotator_folders(path, opening.names, label_map=opening.label_map)
            if opening.role == "labels":
                return open_label_folder(
                    path, opening.names, label_map=opening.label_map, noun=opening.noun
                )
            if opening.role == "predictions":
                return open_predicted_ids(path, opening.names, opening.declared)
        from uqeval.stores.files.foreign import how_to_convert

        files = Counter(file.suffix.lower() or "plain" for file in Path(path).iterdir())
        what = listed(f"{count} {kind}" for kind, count in files.most_common(3))
        jpeg = " JPEG changes ids: save PNG." if files.keys() & {".jpg", ".jpeg"} else ""
        raise StoreError(
            f"{cut(path)} is a folder with {f'{what} files' if what else 'nothing in it'}; "
            "expected a folder of .npy or .npz files (one per item), a folder of label PNGs or "
            f"NIfTI files, or a Zarr store.{jpeg}{how_to_convert(path)}"
        )


class AnnotatedImage(StoredArray):
    """The labels of one item [annotator, y, x]: a PNG of each annotator."""

    axes = ("annotator", "y", "x")

    def __init__(self, planes: Sequence[PngArray]) -> None:
        first = planes[0]
        for plane in planes:
            if plane.shape != first.shape:
                sizes = "×".join(map(str, plane.shape))
                raise StoreError(
                    f"{plane.where} is {sizes} (height×width), the labels of another annotator, "
                    f"{first.where}, are {'×'.join(map(str, first.shape))}; expected one size. "
                    "Resize labels by nearest neighbour."
                )
        self.where = first.where
        self.shape = self.chunks = (len(planes), *first.shape)
        self.dtype = np.result_type(*(plane.dtype for plane in planes))
        self.attributes = {}
        self.takes_label_map = first.takes_label_map
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
    path: str | Path, names: Sequence[str] | None, *, label_map: str | None
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
                f"{cut(path)} holds {quoted(file)} next to the folders; --annotator-folders "
                "expects a folder of label PNGs for each annotator, and nothing else. Move it."
            )
        files_of[folder].append("/".join(rest))
    found: dict[str, dict[str, str]] = {}
    for folder, own in files_of.items():
        where = Path(path) / folder
        try:
            found[folder] = match_files(where, own, names, "label", advice=RENAME_ANY)
        except StoreError as error:
            raise StoreError(
                f"{error} Each annotator needs a label of every item: for an item that an "
                "annotator did not label, add a PNG of the void id (255)."
            ) from None
        warnings += warnings_of_match(where, own, found[folder], "label")
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
