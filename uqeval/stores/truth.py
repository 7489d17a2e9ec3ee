"""Whether what a path holds is ground truth or predictions: told by its kind, never by values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.stores.array import StoredArray
from uqeval.stores.hdf5_array import hdf5_path
from uqeval.stores.item_folder import kinds_in_folder
from uqeval.stores.kinds import ALIASES, KNOWN, PREDICTIONS, known_as
from uqeval.stores.label_folder import png_files
from uqeval.stores.numpy_array import open_npy, open_npz
from uqeval.stores.source import is_url
from uqeval.stores.target_folder import target_files

if TYPE_CHECKING:
    from uqeval.stores.zarr_group import ZarrGroup

_ZARR_FILES = ("zarr.json", ".zgroup", ".zattrs", ".zarray")


def is_zarr(path: str) -> bool:
    """Whether `path` is a local Zarr store: a folder with metadata, or a zip file."""
    local = Path(path)
    if local.is_dir():
        return any((local / name).is_file() for name in _ZARR_FILES)
    return local.suffix == ".zip" and local.is_file()


def looks_like_labels(path: str | Path) -> bool:
    """Whether what is at `path` is labels by its kind: PNG files, or arrays called or typed so.

    Raises `StoreError` as `open_store` does for what cannot be opened at all.
    """
    bare, kinds = _held(str(path))
    if bare is not None:
        return bare.dtype.kind in "biu" and len(bare.shape) in (1, 3)
    if kinds is not None:
        return "labels" in kinds and not kinds & PREDICTIONS
    return Path(path).is_dir() and bool(png_files(path))


def looks_like_truth(path: str | Path) -> bool:
    """Whether what is at `path` is labels or a target: files of them, or arrays called or typed so.

    An array without a name is a target if it has the shape [N, H, W] or less and no class axis.
    Raises `StoreError` as `open_store` does for what cannot be opened at all.
    """
    bare, kinds = _held(str(path))
    if bare is not None:
        return bare.dtype.kind in "biuf" and len(bare.shape) <= 3
    if kinds is not None:
        return bool(kinds & {"labels", "target"}) and not kinds & PREDICTIONS
    return Path(path).is_dir() and bool(target_files(path))


def may_be_predictions(path: str | Path) -> bool:
    """Whether what looks like ground truth at `path` may be predictions as well.

    Files or arrays of class ids may be predicted; numbers [N, C] or [N, T, C] may be probabilities
    of image classification. Raises `StoreError` as `open_store` does.
    """
    bare, kinds = _held(str(path))
    if bare is not None:
        return len(bare.shape) in (2, 3) or bare.dtype.kind in "biu"
    return kinds in (None, {"labels"}) and looks_like_labels(path)


def _held(path: str) -> tuple[StoredArray | None, set[str] | None]:
    """The one array without a name that a path holds, or the names of its arrays; else nothing."""
    if is_url(path) or is_zarr(path):
        from uqeval.stores.zarr_array import ZarrArray
        from uqeval.stores.zarr_group import open_zarr

        opened = open_zarr(path)
        if isinstance(opened, ZarrArray):
            return opened, None
        if opened is None:
            return None, set()
        kinds = set(opened.arrays) | set(opened.unreadable)
        if not kinds and "items" in opened.groups:
            kinds = set(_first_item(opened))
        return None, kinds
    if (inside := hdf5_path(path)) is not None and Path(inside[0]).is_file():
        from uqeval.stores.hdf5_array import Hdf5Group, open_hdf5

        found = open_hdf5(*inside, fill_missing=True)
        if not isinstance(found, Hdf5Group):
            return found, None
        return None, {known_as(kind, array) for kind, array in found.arrays.items()}
    if Path(path).is_dir():
        kinds = set(kinds_in_folder(path))
        return None, kinds if kinds & KNOWN else None
    if path.endswith(".npy") and Path(path).exists():
        return open_npy(path), None
    if path.endswith(".npz") and Path(path).exists():
        members = {ALIASES.get(kind, kind): array for kind, array in open_npz(path).items()}
        if len(members) == 1 and "arr_0" in members:
            return members["arr_0"], None
        return None, set(members)
    return None, None


def _first_item(root: ZarrGroup) -> tuple[str, ...]:
    from uqeval.stores.zarr_group import open_zarr_group

    first = next(iter(root.source.children("items")), None)
    group = open_zarr_group(root.source, f"items/{first}") if first else None
    return tuple(group.arrays) if group else ()
