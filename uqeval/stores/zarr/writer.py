"""Write Zarr: version 3, every chunk stored and checksummed.

No other module writes it. Chunks that have only the fill value are written too, and the fill value
does not occur in the data, so a missing chunk was always lost. A store has `complete: false` until
all of it is written.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from uqeval.disk.files import parse_json
from uqeval.disk.locks import clear_beside
from uqeval.disk.publishing import (
    hidden_path,
    publish_folder,
    restore_folder,
    sync_tree,
    write_file,
    writing,
)
from uqeval.errors import OutputError, cut
from uqeval.threads import uninterrupted

#: Error codes of a rename to a folder with content.
_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY})
#: The number of checks whether an unfinished store is removed, and the seconds between them.
_TRIES, _MOMENT = 40, 0.05

Compression: TypeAlias = Literal["lz4", "zstd", "zstd-4", "none"]

#: The target size of decoded chunks: a few milliseconds of work each, and not too many files.
CHUNK_BYTES = 8 * 2**20
VERSION = 1
#: The largest number of bytes of a folder's name.
_MOST_NAME = 255
#: The folder of an unfinished store for its writers; removed when the store is complete.
HIDDEN = ".uqeval"
#: The file in it with their settings.
SETTINGS = "settings.json"

#: Characters that a folder's name may not contain, or that have a meaning in it; quoted by `%`.
#: Includes lone surrogates, except those that represent a byte of a file's name.
#: `items/zarr.json` has the metadata of the group.
_UNSAFE = re.compile(r"[%/\\:\x00-\x1f\x7f\ud800-\udc7f\udd00-\udfff]|^\.|^__|^zarr\.json\Z")


def item_folder(name: str) -> str:
    """Return the folder below `items/` of an item: its name, with forbidden characters quoted.

    Different names have different folders, and all are inside `items/`.
    """
    return _UNSAFE.sub(lambda match: "".join(f"%{ord(c):02X}" for c in match.group()), name)


def refuse_long_names(names: Iterable[str]) -> None:
    """Raise `OutputError` for the name of an item that is too long for a folder."""
    for name in names:
        if (size := len(os.fsencode(item_folder(name)))) > _MOST_NAME:
            raise OutputError(
                f"the item name {cut(name)} takes {size} bytes as the name of a folder, "
                f"expected at most {_MOST_NAME}. Shorten it."
            )


def fill_value(dtype: DTypeLike) -> float | int:
    """Return the fill value of arrays of `dtype`, one that does not occur in them: NaN, or the
    largest.
    """
    kind = np.dtype(dtype)
    return math.nan if kind.kind == "f" else int(np.iinfo(kind).max) if kind.kind in "iu" else 0


def pixel_chunks(pixel_bytes: int, height: int, width: int) -> tuple[int, int]:
    """Return rows and columns of a chunk of about `CHUNK_BYTES`, if a pixel takes `pixel_bytes`.

    Chunks have whole rows unless one row is too large. They have about equal heights, because
    values beyond the edge of the last chunk are stored as well.
    """
    pixels = max(1, CHUNK_BYTES // max(1, pixel_bytes))
    if pixels < width:
        return 1, _even(width, pixels)
    return _even(height, pixels // max(1, width)), width


def _even(size: int, most: int) -> int:
    return max(1, math.ceil(size / math.ceil(size / most))) if size else 1


def group_attributes(form: str, **details: Any) -> dict[str, Any]:
    """Return the attribute `uqeval` of a store of the given form, with further `details`."""
    return {"uqeval": {"format": form, "version": VERSION, "complete": False} | details}


def create_group(folder: Path, attributes: Mapping[str, Any]) -> None:
    """Create a Zarr group at `folder` with these attributes. Raises `OutputError`."""
    import zarr

    with _whole(folder):
        zarr.create_group(str(folder), zarr_format=3, attributes=dict(attributes))


def repair_group(folder: Path, attributes: Mapping[str, Any]) -> None:
    """Create the metadata of the Zarr group at `folder` again if a power loss has damaged them.

    Raises `OutputError`.
    """
    document = folder / "zarr.json"
    try:
        found = _document(document)
        is_whole = found["node_type"] == "group" and attributes.keys() <= found["attributes"].keys()
    except (OutputError, KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        with writing(folder):
            document.unlink(missing_ok=True)
        create_group(folder, attributes)


def _document(path: Path) -> dict[str, Any]:
    """Return the metadata in a file. Raises `OutputError`."""
    with writing(path):
        data = path.read_bytes()
    try:
        found = parse_json(data, finite=False)
        if isinstance(found, dict):
            return found
        reason = "it is no object"
    except ValueError as error:
        reason = str(error)
    raise OutputError(
        f"{cut(path)} is damaged ({cut(reason)}). Close the writer, and open it again with "
        "resume=True."
    )


def mark_complete(folder: Path) -> None:
    """Sync the store at `folder` to disk, then record its arrays and set `complete`.

    Web servers cannot list the arrays, so readers look up the recorded names. Raises `OutputError`.
    """
    document = folder / "zarr.json"
    with writing(folder):
        clear_beside(document)  # leftovers of a process that was killed here
        sync_tree(folder)
        document_data = _document(document)
        metadata = document_data["attributes"]["uqeval"]
        metadata.pop("arrays", None)  # of the store that was copied
        if arrays := _arrays_in(folder):
            metadata["arrays"] = arrays
        metadata["complete"] = True
        write_file(document, json.dumps(document_data, indent=2).encode(), revert=False)


def _arrays_in(folder: Path) -> list[str]:
    """Return the names of the arrays of a dense store; none of a store with a group per item."""
    documents = (child / "zarr.json" for child in sorted(folder.iterdir()))
    return [
        document.parent.name
        for document in documents
        if document.is_file() and _document(document).get("node_type") == "array"
    ]


def create_array(
    folder: Path,
    shape: Sequence[int],
    dtype: DTypeLike,
    chunks: Sequence[int],
    axes: Sequence[str],
    *,
    compression: Compression = "lz4",
    attributes: Mapping[str, Any] | None = None,
) -> Any:
    """Return a new Zarr array at `folder`, its dimensions called `axes`, open for `write`.

    `lz4` reads three to four times as fast as `zstd`, which stores a tenth less; `none` is for data
    in memory or on very fast disks. Raises `OutputError` if it cannot be created.
    """
    import zarr

    with _whole(folder):
        return zarr.create_array(
            str(folder),
            shape=tuple(shape),
            dtype=np.dtype(dtype),
            chunks=tuple(min(c, max(s, 1)) for c, s in zip(chunks, shape, strict=True)),
            compressors=_codecs(compression),
            fill_value=fill_value(dtype),
            dimension_names=list(axes),
            zarr_format=3,
            attributes=dict(attributes or {}),
            config={"write_empty_chunks": True},
        )


def _codecs(compression: Compression) -> list[Any]:
    from zarr.codecs import BloscCodec, Crc32cCodec

    if compression == "none":
        return [Crc32cCodec()]
    # Level 1 is the fastest to write. Level 4 of zstd stores a tenth less of softmax values and is
    # read faster, but takes three times as long to write.
    name, _, level = compression.partition("-")
    return [BloscCodec(cname=name, clevel=int(level or 1), shuffle="shuffle"), Crc32cCodec()]


def open_array(folder: Path) -> Any:
    """Return the array that `create_array` made at `folder`, for writing. Raises `OutputError`."""
    import zarr

    with writing(folder):
        array = zarr.open_array(str(folder), mode="r+", zarr_format=3)
        # Zarr 3.1 ignores `config` where the array exists, and left out chunks of void labels.
        return array.with_config({"write_empty_chunks": True})


def shape_of(folder: Path) -> tuple[int, ...] | None:
    """Return the shape of the array that `create_array` made at `folder`; None if a power loss has
    damaged its metadata.
    """
    try:
        with writing(folder):
            return tuple(json.loads((folder / "zarr.json").read_bytes())["shape"])
    except (ValueError, KeyError, TypeError):
        return None


def write(array: Any, index: tuple[int | slice, ...], values: NDArray[Any], where: Path) -> None:
    """Write `values` at `index` of an array; whole chunks, each renamed into place after it is
    written. Raises `OutputError` naming `where` if the disk refuses.
    """
    with _whole(where):
        array[index] = values


@contextmanager
def _whole(where: Path) -> Iterator[None]:
    """Let Zarr write, in another thread. An interrupt waits until the block has ended. Then nothing
    writes to the folder, so it can be removed. Raises `OutputError`."""
    with writing(where), uninterrupted():
        yield


def put_in_place(temporary: Path, target: Path) -> bool:
    """Rename the folder `temporary` to `target`. If there is a folder with content, remove
    `temporary` and return False.

    Raises `OutputError` if neither is possible, such as for an empty folder that is a mount point.
    """
    with writing(target):
        try:
            temporary.rename(target)
        except OSError as error:
            shutil.rmtree(temporary, ignore_errors=True)
            # Another process may have removed it again since the rename.
            if error.errno in _TAKEN or (target.is_dir() and is_taken(target)):
                return False
            raise
    return True


def is_taken(path: Path) -> bool:
    """Return whether `path` exists and is not an empty folder."""
    return os.path.lexists(path) and not (path.is_dir() and not any(path.iterdir()))


def check_replaceable(path: Path) -> None:
    """Raise `OutputError` if `path` is not a Zarr store, because such paths are never overwritten.

    Before this, restore a store that a killed process had moved aside.
    """
    with writing(path):
        restore_folder(path)
    stores = ("zarr.json", ".zgroup", ".zarray", ".zattrs")
    is_store = has_settings(path) or any((path / name).is_file() for name in stores)
    if is_taken(path) and not is_store:
        raise OutputError(
            f"{cut(path)} is not a Zarr store, so it is not overwritten. Choose another path, or "
            "remove it."
        )


def discard(new: Path) -> None:
    """Remove an unfinished store. After an interrupt, a chunk may still be written for a moment."""
    for _ in range(_TRIES):
        if not new.exists():
            return
        shutil.rmtree(new, ignore_errors=True)
        time.sleep(_MOMENT)


def remove_idle(folder: Path) -> None:
    """Remove a store that no process writes; its name is free at once. Raises `OutputError`."""
    trash = hidden_path(folder)
    with writing(folder), suppress(FileNotFoundError):  # removed by another process
        folder.rename(trash)
    shutil.rmtree(trash, ignore_errors=True)


def publish(new: Path, path: Path) -> None:
    """Move the finished store `new` to `path`; remove an older store there after the new one is
    synced to disk. Raises `OutputError`.
    """
    with writing(path):
        publish_folder(new, path)


def is_complete(folder: Path) -> bool | None:
    """Return whether the store at `folder` is finished; None if there is no store of uqeval.

    Raises `OutputError` if it cannot be read.
    """
    try:
        return bool(attributes_of(folder)["uqeval"].get("complete", True))
    except (KeyError, TypeError, AttributeError):
        # An unfinished store whose metadata a power loss has damaged still has its hidden folder.
        return False if has_settings(folder) else None


def has_settings(folder: Path) -> bool:
    """Return whether `folder` has the settings of the writers of an unfinished store."""
    return os.path.isfile(folder / HIDDEN / SETTINGS)  # noqa: PTH113 - see `is_unfinished`


def attributes_of(folder: Path) -> dict[str, Any]:
    """Return the attributes of the group at `folder`; empty if there is none.

    Raises `OutputError` if it cannot be read.
    """
    try:
        document = json.loads((folder / "zarr.json").read_text(encoding="utf-8"))
        return dict(document["attributes"])
    except OSError as error:
        if error.errno in (errno.EIO, errno.EACCES, errno.EPERM, errno.ESTALE):
            raise OutputError(
                f"{folder / 'zarr.json'} cannot be read: {error.strerror}. Check the disk and the "
                "permissions."
            ) from error
        return {}
    except (ValueError, KeyError, TypeError):
        return {}
