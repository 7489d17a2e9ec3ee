"""The formats of stores, in the order in which a path is tried."""

from __future__ import annotations

import os
from pathlib import Path

from uqeval.errors import StoreError, cut
from uqeval.stores.contents import Contents
from uqeval.stores.folder_store import FolderStore
from uqeval.stores.foreign import how_to_convert
from uqeval.stores.hdf5_store import Hdf5Store
from uqeval.stores.numpy_store import NpyStore, NpzStore
from uqeval.stores.zarr_store import ZarrStore

FORMATS: tuple[type[Contents], ...] = (ZarrStore, Hdf5Store, FolderStore, NpyStore, NpzStore)

EXPECTED = (
    "a Zarr store (folder, zip or URL), an .npy or .npz file, a folder of them (one an item), a "
    "folder of label PNGs, or an HDF5 file (file.h5::/path)"
)


def contents_of(path: str | os.PathLike[str]) -> Contents:
    """Open what lies at `path` with its format. Raises `StoreError` where no format reads it."""
    if isinstance(path, Contents):
        return path
    text = os.fspath(path)
    for form in FORMATS:
        if form.recognises(text):
            return form(text)
    if not Path(text).exists():
        raise StoreError(
            f"{cut(text)}: there is nothing here; expected {EXPECTED}. Check the path."
        )
    raise StoreError(
        f"{cut(text)}: is a {cut(Path(text).suffix) or 'plain'} file; expected {EXPECTED}."
        + how_to_convert(text)
    )
