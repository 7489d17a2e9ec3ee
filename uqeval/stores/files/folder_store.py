"""Folders with one file for each item as stores: `.npy`, `.npz`, label PNGs, targets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from uqeval.errors import StoreError, cut, listed
from uqeval.stores.array import Store
from uqeval.stores.contents import Contents, Opening
from uqeval.stores.files.annotator_folders import open_annotator_folders
from uqeval.stores.files.label_folder import open_label_folder, open_predicted_ids
from uqeval.stores.kinds import KNOWN, Declared
from uqeval.stores.names import files_below

#: Suffixes of files that may be targets.
_TARGETS = frozenset({".png", ".npy", ".pfm"})


class FolderStore(Contents):
    """A folder of files with arrays, whose names or headers tell their kind; or of images."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        files = files_below(path, (".npy", ".npz", ".png", ".pfm", ".nii", ".nii.gz"))
        self._ends = {Path(file).suffix.lower() for file in files}
        self._held: frozenset[str] = frozenset()
        if self._ends & {".npy", ".npz"} or (
            self._ends & {".nii", ".gz"} and ".png" not in self._ends
        ):
            from uqeval.stores.files.item_folder import kinds_in_folder

            self._held = kinds_in_folder(path)
        self.kinds = self._held if self._held & KNOWN else frozenset()

    def is_labels(self) -> bool:
        return super().is_labels() if self.kinds else ".png" in self._ends

    def is_truth(self) -> bool:
        return super().is_truth() if self.kinds else bool(self._ends & _TARGETS)

    def may_be_predictions(self) -> bool:
        return super().may_be_predictions() if self.kinds else self.is_labels()

    def store(self, opening: Opening) -> Store:
        path, held = self.path, self._held
        if opening.role == "target" and self._ends & _TARGETS and held <= {"target", "labels"}:
            from uqeval.stores.files.target_folder import open_target_folder

            return open_target_folder(path, opening.names)
        if self.kinds or (held and opening.declared != Declared()):
            from uqeval.stores.files.item_folder import open_item_folder

            return open_item_folder(path, opening)
        if ".png" in self._ends:
            if opening.annotator_folders:
                return open_annotator_folders(path, opening.names, label_map=opening.label_map)
            if opening.role == "labels":
                return open_label_folder(path, opening.names, label_map=opening.label_map)
            if opening.role == "predictions":
                return open_predicted_ids(path, opening.names, opening.declared)
        from uqeval.stores.files.foreign import how_to_convert

        files = Counter(file.suffix.lower() or "plain" for file in Path(path).iterdir())
        what = listed(f"{count} {kind}" for kind, count in files.most_common(3))
        raise StoreError(
            f"{cut(path)}: is a folder with {f'{what} files' if what else 'nothing in it'}; "
            "expected a folder of .npy or .npz files (one per item), a folder of label PNGs or "
            "NIfTI files, or a Zarr store." + how_to_convert(path)
        )
