"""Flow kept on disk, so that it is estimated once for many models, settings and processes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from uqeval.errors import OutputError
from uqeval.maps.flow import Estimator


class FlowCache:
    """Flow by what it depends on: the estimator's record, and the bytes of both images.

    A file is an .npy array float32 [y, x, 2], with a checksum behind it, and is never changed: what
    is found is right, whoever put it there. Several processes may share the folder. It holds 8
    bytes a pixel and pair; `uqeval` never removes any. Raises `OutputError` if the folder cannot be
    written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OutputError(
                f"{folder}: flow cannot be kept there: {error.strerror}. Name another folder."
            ) from error

    def get(
        self, estimator: Estimator, previous: NDArray[Any], next_: NDArray[Any]
    ) -> NDArray[np.float32]:
        """`estimator(previous, next_)`, read if it is there, else estimated and kept.

        A file that is damaged is replaced; a disk that is full keeps nothing, and is no error.
        """
        path = self.path(estimator, previous, next_)
        shape = (*previous.shape, 2)
        flow = _read(path, shape)
        if flow is None:
            flow = estimator(previous, next_)
            _write(path, flow)
        return flow

    def path(self, estimator: Estimator, previous: NDArray[Any], next_: NDArray[Any]) -> Path:
        """Where the flow between two images is kept."""
        digest = hashlib.sha256()
        record = [estimator.record(), previous.shape, next_.shape]
        digest.update(json.dumps(record, sort_keys=True, allow_nan=False).encode())
        digest.update(np.ascontiguousarray(previous).data)
        digest.update(np.ascontiguousarray(next_).data)
        name = digest.hexdigest()
        return self.folder / name[:2] / f"{name}.npy"


def _head(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    kind = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, kind)
    return buffer.getvalue()


def _read(path: Path, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """The flow in a file; None if there is none, or not the whole of just this shape."""
    try:
        with path.open("rb") as file:
            head = _head(shape)
            if file.read(len(head)) != head:
                return None
            flow = np.empty(shape, "<f4")
            if file.readinto(flow.data.cast("B")) != flow.nbytes:
                return None
            return flow if file.read() == _checksum(flow) else None
    except OSError:
        return None


def _write(path: Path, flow: NDArray[np.float32]) -> None:
    """Put a flow in place, or nothing at all."""
    flow = np.ascontiguousarray(flow, "<f4")
    temporary = None
    try:
        path.parent.mkdir(exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem[:8]}.")
        with os.fdopen(handle, "wb") as file:
            _put(file, flow)
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(path)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                Path(temporary).unlink()


def _put(file: IO[bytes], flow: NDArray[np.float32]) -> None:
    file.write(_head(flow.shape))
    file.write(flow.data.cast("B"))
    file.write(_checksum(flow))


def _checksum(flow: NDArray[np.float32]) -> bytes:
    return zlib.crc32(flow.data.cast("B")).to_bytes(4, "little")
