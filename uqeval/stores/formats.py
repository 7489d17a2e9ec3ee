"""The formats of stores, in the order in which a path is tried."""

from __future__ import annotations

import os
from pathlib import Path

from uqeval.disk.files import open_descriptor
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Store
from uqeval.stores.assembled import Opening
from uqeval.stores.contents import Contents
from uqeval.stores.files.folder_store import FolderStore
from uqeval.stores.files.foreign import how_to_convert
from uqeval.stores.files.hdf5_store import Hdf5Store
from uqeval.stores.files.numpy_store import NpyStore, NpzStore
from uqeval.stores.zarr.store import ZarrStore

FORMATS: tuple[type[Contents], ...] = (ZarrStore, Hdf5Store, FolderStore, NpyStore, NpzStore)

EXPECTED = (
    "a Zarr store (folder, zip or URL), an .npy or .npz file, a folder of them (one an item), a "
    "folder of label PNGs, or an HDF5 file (file.h5::/path)"
)


class Unreadable(Contents):
    """A path where nothing is, or a file of no known format.

    `store` raises, not the constructor: outputs are checked and locked before inputs are opened.
    """

    @staticmethod
    def recognises(path: str) -> bool:
        return True

    def store(self, how: Opening) -> Store:
        path = self.path
        try:
            os.close(open_descriptor(path))
        except FileNotFoundError:
            raise StoreError(
                f"{cut(path)}: there is nothing here; expected {EXPECTED}. Check the path."
            ) from None
        except OSError as error:  # a device, a loop of links, no permission
            raise StoreError(
                f"{cut(path)}: cannot be read: {error.strerror}; expected {EXPECTED}."
            ) from None
        raise StoreError(
            f"{cut(path)}: is a {cut(Path(path).suffix) or 'plain'} file; expected {EXPECTED}."
            + how_to_convert(path)
        )


def contents_of(path: str | os.PathLike[str]) -> Contents:
    """Open what lies at `path` with its format. Raises `StoreError` for a damaged file."""
    if isinstance(path, Contents):
        return path
    text = os.fspath(path)
    formats: tuple[type[Contents], ...] = (*FORMATS, Unreadable)
    return next(form for form in formats if form.recognises(text))(text)
