"""Precomputed optical flow: an array in a store, or one file for each pair of frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from uqeval.arrays import Array
from uqeval.disk.suffixes import FLOWS, NUMPY, suffix_of
from uqeval.errors import StoreError, cut, listed
from uqeval.stores.array import ItemArray, Region, Store, StoredArray
from uqeval.stores.contents import Contents
from uqeval.stores.described import DescribedArray
from uqeval.stores.files.file_array import FileArray, head_of
from uqeval.stores.files.image_file import image_bytes
from uqeval.stores.files.numpy_files import open_npy
from uqeval.stores.files.pfm_array import PfmFlow
from uqeval.stores.files.png_array import png_header
from uqeval.stores.matching import match_files, warnings_of_folders
from uqeval.stores.names import files_below, natural
from uqeval.stores.orders import refuse_other_order
from uqeval.stores.planes import Planes, VideoPlanes
from uqeval.stores.store import open_store
from uqeval.stores.video.sequences import Pair
from uqeval.stores.zarr.source import is_url, is_zarr

_MAGIC = b"PIEH"
_HEADER = 12
#: Endings that programs add to the name of the frame.
_ENDINGS = ("_flow",)
#: Larger numbers mean that the flow is unknown (Middlebury's `UNKNOWN_FLOW_THRESH`).
_MOST = np.float32(1e9)


def _plain(stored: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32, or float64 if float32 cannot represent all stored numbers."""
    exact = stored.itemsize < 3 or stored == np.float32
    return np.dtype(np.float32 if exact else np.float64)


class Flows(VideoPlanes):
    """The optical flow of all pairs, in their order, on the grid of the later frame."""

    warnings: tuple[str, ...] = ()

    def of(self, item_range: range) -> Flows:
        """Return the flow of the pairs at these indices only."""
        return Flows(self.where, self.parts[item_range.start : item_range.stop])

    @property
    def itemsize(self) -> int:
        """Return bytes of a number of the flow as it is read."""
        return max(_plain(array.dtype).itemsize for array in self.arrays)

    def read(self, i: int) -> Array:
        """Return the flow of pair `i` as [y, x, 2], (dx, dy) in pixels; NaN where it is unknown.

        The dtype is float32, or float64 for numbers that float32 cannot represent: p + w is rounded
        to a pixel, so a number close to a half must not be rounded before. Flow is unknown if one
        of its components is not finite or beyond 1e9. Raises `StoreError`.
        """
        dtype = _plain(self.parts[i].array.dtype)
        flow = np.array(super().read(i).transpose(1, 2, 0), dtype, order="C")
        flow[~(np.abs(flow) <= _MOST).all(axis=-1)] = np.nan
        return flow

    def where_of(self, i: int) -> str:
        """Return the file, or the array and row, of the flow of pair `i`, for messages."""
        index = self.parts[i].index
        return super().where_of(i) + ("" if index is None else f", row {index}")


def open_flows(
    path: str | Path | Contents | Array | DescribedArray | Mapping[str, Any],
    pairs: Sequence[Pair],
    names: Sequence[str] | None,
    frames: int,
    *,
    kind: Literal["flow", "flow_forward"] = "flow",
    fill_missing: bool = False,
    beside: Store | None = None,
) -> Flows:
    """Return the flow at `path` for `pairs` out of `frames` frames called `names`.

    A file in a folder has the name of the later frame; for frames without names, files are taken in
    natural order. A store has the array `kind` [N-1, H, W, 2]; row k is the flow of the stored
    frames k and k + 1. Raises `StoreError` if flow is missing, or has another form, or if its rows
    or columns are in another order than those of `beside`, the store of the frames.
    """
    if isinstance(path, str | Path) and not is_url(str(path)) and not is_zarr(str(path)):
        local = Path(path)
        if local.is_dir():
            return _open_folder(local, pairs, names, frames)
        if not local.is_file() or suffix_of(local.name) not in NUMPY:
            problem = " has an unknown format" if local.exists() else ": there is nothing here"
            raise StoreError(
                f"{cut(path)}{problem}; expected optical flow as a folder of "
                f"{', '.join(FLOWS)} files, or as a Zarr store, .npy or .npz file of `{kind}`. "
                "Check the path."
            )
    store = open_store(path, role=kind, fill_missing=fill_missing, called=f"{kind}_path")
    if kind not in store.arrays:
        raise StoreError(
            f"{store.path} holds {listed(sorted(store.arrays))}, but no array `{kind}` "
            "[N-1, H, W, 2]. Store the flow there, or give --flow-path."
        )
    if beside is not None:
        refuse_other_order(store, beside, by_name=False)
    rows = store.arrays[kind]
    for array in Planes(rows, channels=True).arrays:
        _check(array)
    if len(rows) != frames - 1:
        raise StoreError(
            f"{rows[0].array.where} has the flow of {len(rows)} pairs, but {frames} frames make "
            f"{frames - 1}: row k is the flow of frames k and k + 1."
        )
    for pair in pairs:
        if pair.after != pair.before + 1:
            raise StoreError(
                f"{rows[0].array.where}: row k is the flow of the stored frames k and k + 1, but "
                f"frame {pair.after} follows frame {pair.before} by its number. Store the frames "
                "in the order of their numbers."
            )
    return Flows(store.path, [rows[pair.before] for pair in pairs])


def _open_folder(
    folder: Path, pairs: Sequence[Pair], names: Sequence[str] | None, frames: int
) -> Flows:
    files = files_below(folder, FLOWS)
    if not files:
        raise StoreError(
            f"{cut(folder)} holds no optical flow; expected {', '.join(FLOWS)} files. Check "
            "the path."
        )
    warnings: list[str] = []
    if names is not None:
        later = [names[pair.after] for pair in pairs]
        by_name = match_files(folder, files, later, "optical flow", endings=_ENDINGS)
        chosen = [by_name[name] for name in later]
        warnings = warnings_of_folders(folder, by_name, "optical flow")
    elif len(files) == frames - 1:
        ordered = sorted(files, key=natural)
        chosen = [ordered[pair.before] for pair in pairs]
    else:
        raise StoreError(
            f"{cut(folder)} has {len(files)} files of optical flow, expected {frames - 1} for "
            f"{frames} frames without names: they are taken in order. Add or remove files, or "
            "give the frames names with --names FILE."
        )
    flows = Flows(str(folder), [ItemArray(_open(folder / file), None) for file in chosen])
    flows.warnings = tuple(warnings)
    return flows


def _open(path: Path) -> StoredArray:
    suffix = path.suffix.lower()
    if suffix == ".flo":
        return FloArray(path)
    if suffix == ".png":
        return KittiFlow(path)
    if suffix == ".pfm":
        return PfmFlow(path)
    array = open_npy(str(path))
    if len(array.shape) != 3:
        raise StoreError(
            f"{cut(path)} has the shape {array.shape}, expected the flow [H, W, 2] of one pair."
        )
    array.axes = ("y", "x", "class")
    _check(array)
    return array


def _check(array: StoredArray) -> None:
    if array.length("class") != 2:
        first = array.length("y") == 2
        looks = "; dx and dy seem to come first" if first else ""
        raise StoreError(
            f"{array.where} has the shape {array.shape}{looks}; expected [H, W, 2] per pair, dx "
            f"and dy last. Transpose it, or name the axes in dimension_names."
        )
    if array.dtype.kind != "f":
        raise StoreError(
            f"{array.where} holds {array.dtype}; optical flow is floating, (dx, dy) in pixels. "
            "Scale it to pixels and save it again."
        )


class FloArray(FileArray):
    """A .flo file of shape [H, W, 2], (dx, dy) in pixels; header and size are checked at once.

    Baker et al. (2011), Middlebury's `flow-code`: after "PIEH", width and height, 32-bit floats,
    all little-endian; values above 1e9 mean unknown.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        head, size = head_of(path, _HEADER)
        if len(head) < _HEADER or head[:4] != _MAGIC:
            problem = "cut short" if _MAGIC.startswith(head[:4]) else "not a .flo file"
            raise StoreError(
                f"{cut(path)} is {problem}; expected PIEH, width and height in its first 12 "
                "bytes. Copy it again, or remove it from the folder."
            )
        width, height = (int(n) for n in np.frombuffer(head, "<i4", 2, 4))
        expected = _HEADER + 8 * width * height
        if width < 1 or height < 1 or size != expected:
            raise StoreError(
                f"{cut(path)} is {size} bytes, but the flow of {width} × {height} pixels takes "
                f"{expected}. Copy it again."
            )
        super().__init__(path, (height, width, 2))

    def read(self, region: Region) -> Array:
        """Return the flow in `region`. Raises `StoreError` if the file cannot be read."""
        values = self._numbers("<f4", _HEADER, self.shape)
        return np.ascontiguousarray(values[region], self.dtype)


_RGB = 2
_KINDS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey with alpha", 6: "RGBA"}


class KittiFlow(FileArray):
    """A PNG file of shape [H, W, 2], (dx, dy) in pixels; its header is checked at once.

    Geiger et al., KITTI's `devkit/readme.txt`: red and green are 64 · dx + 2^15 and likewise dy;
    blue is 0 where the flow is unknown, which is read as NaN.
    """

    axes = ("y", "x", "class")
    dtype = np.dtype(np.float32)

    def __init__(self, path: Path) -> None:
        header = png_header(path)
        if (header.kind, header.depth) != (_RGB, 16):
            kind = _KINDS.get(header.kind, "unknown")
            raise StoreError(
                f"{cut(path)} is a PNG of {header.depth}-bit {kind}; optical flow is a 16-bit RGB "
                "PNG as KITTI's (64 · dx + 2^15, 64 · dy + 2^15, known), .flo, .npy or .pfm. "
                "Remove it from the folder, or convert it."
            )
        super().__init__(path, (header.height, header.width, 2))

    def read(self, region: Region) -> Array:
        """Return the flow in `region`. Raises `StoreError` if the file is damaged."""
        import cv2  # Pillow reads 8 of the 16 bits

        data = np.frombuffer(image_bytes(self._path), np.uint8)
        image = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
        if image is None:
            raise StoreError(f"{cut(self._path)} is damaged or cut short. Copy it again.")
        if image.shape != (*self.shape[:2], 3) or image.dtype != np.uint16:
            raise StoreError(f"{cut(self._path)} changed while it was read. Start again.")
        flow = (image[..., :0:-1].astype(np.float32) - np.float32(2**15)) / np.float32(64)
        flow[image[..., 0] == 0] = np.nan
        return np.ascontiguousarray(flow[region])
