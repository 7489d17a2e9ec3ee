"""Folders with one file for each item as stores: `.npy`, `.npz`, label PNGs, targets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from uqeval.errors import StoreError, cut, listed
from uqeval.stores.array import Store
from uqeval.stores.assembled import Opening
from uqeval.stores.contents import Contents
from uqeval.stores.declared import Declared
from uqeval.stores.files.foreign import how_to_convert
from uqeval.stores.files.item_folder import kinds_in_folder, open_item_folder
from uqeval.stores.files.label_folder import open_label_folder, open_predicted_ids, png_files
from uqeval.stores.files.target_folder import open_target_folder, target_files
from uqeval.stores.kinds import KNOWN


class FolderStore(Contents):
    """Files of arrays, whose names or headers say what they are; or images."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._held = kinds_in_folder(path)
        self.kinds = self._held if self._held & KNOWN else frozenset()

    @staticmethod
    def recognises(path: str) -> bool:
        return Path(path).is_dir()

    def is_labels(self) -> bool:
        return super().is_labels() if self.kinds else bool(png_files(self.path))

    def is_truth(self) -> bool:
        return super().is_truth() if self.kinds else bool(target_files(self.path))

    def may_be_predictions(self) -> bool:
        return super().may_be_predictions() if self.kinds else self.is_labels()

    def store(self, how: Opening) -> Store:
        path, held = self.path, self._held
        if how.role == "target" and target_files(path) and held <= {"target", "labels"}:
            return open_target_folder(path, how.names)
        if self.kinds or (held and how.declared != Declared()):
            return open_item_folder(path, how)
        if png_files(path):
            if how.role == "labels":
                return open_label_folder(path, how.names, label_map=how.label_map)
            if how.role == "predictions":
                return open_predicted_ids(path, how.names, how.declared)
        files = Counter(file.suffix.lower() or "plain" for file in Path(path).iterdir())
        what = listed(f"{count} {kind}" for kind, count in files.most_common(3))
        raise StoreError(
            f"{cut(path)}: is a folder with {f'{what} files' if what else 'nothing in it'}; "
            "expected a folder of .npy or .npz files (one an item), a folder of label PNGs, or a "
            "Zarr store." + how_to_convert(path)
        )
