"""Folders of targets, one file per item: 16-bit PNGs as KITTI's, .npy, or .pfm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.suffixes import TARGETS
from uqeval.errors import StoreError, cut
from uqeval.stores.array import ItemArray, Region, Store, StoredArray
from uqeval.stores.files.numpy_files import open_npy
from uqeval.stores.files.pfm_array import PfmArray
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.matching import RENAME_ANY, match_files, warnings_of_match
from uqeval.stores.names import files_below, required_names


class KittiPng(PngArray):
    """A 16-bit grey PNG of depth or disparity: value / 256, and 0 is invalid, read as NaN.

    Geiger et al., KITTI development kit, `depth_devkit/readme.txt` and `disp_occ`.
    """

    _expected = (
        "; a target is a 16-bit grey PNG as KITTI's (value / 256, 0 where it is unknown), .npy or "
        ".pfm."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if self.dtype != np.uint16:
            raise StoreError(f"{cut(path)} is an 8-bit PNG{self._expected}")
        self.dtype = np.dtype(np.float32)

    def read(self, region: Region) -> Array:
        """Return the numbers in `region`, NaN where they are invalid. Raises `StoreError`."""
        stored = np.ascontiguousarray(self._decode()[region])
        values = stored.astype(np.float32) / np.float32(256)
        values[stored == 0] = np.nan
        return values


def open_target_folder(
    path: str | Path, names: Sequence[str] | None, noun: str = "target"
) -> Store:
    """Return the targets below `path` for the items called `names`, in their order.

    `noun` names them in messages. Raises `StoreError` if the items have no names, if some have no
    target or more than one, and for files that are not targets.
    """
    names = required_names(path, names, noun)
    files = files_below(path, TARGETS)
    files_of_names = match_files(path, files, names, noun, advice=RENAME_ANY)
    parts = tuple(ItemArray(_open(Path(path) / files_of_names[name]), None) for name in names)
    return Store(
        str(path),
        {"target": parts},
        names,
        {},
        tuple(warnings_of_match(path, files, files_of_names, noun)),
    )


def _open(path: Path) -> StoredArray:
    suffix = path.suffix.lower()
    if suffix == ".png":
        return KittiPng(path)
    if suffix == ".pfm":
        return PfmArray(path)
    array = open_npy(str(path))
    if len(array.shape) == 3 and array.shape[0] == 1:
        array = array.reshaped(array.shape[1:])
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        raise StoreError(
            f"{cut(path)} has the shape {array.shape} of {array.dtype}; expected the numbers [H, "
            "W] of one item."
        )
    array.axes = ("y", "x")
    return array
