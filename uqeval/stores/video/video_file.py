"""Video files and live streams, decoded by OpenCV."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from uqeval.disk.files import open_descriptor
from uqeval.errors import StoreError, cut
from uqeval.stores.array import Store, StoredArray, file_digest
from uqeval.stores.files.file_array import check_pixels
from uqeval.stores.watch import combined_stamp, file_stamp, file_state
from uqeval.stores.zarr.source import is_url

if TYPE_CHECKING:
    import cv2

VIDEOS = (
    ".mp4", ".m4v", ".avi", ".mkv", ".mov", ".webm", ".mpg", ".mpeg", ".ts", ".wmv", ".flv", ".ogv",
)  # fmt: skip

_REMUX = "rewrite it: ffmpeg -i IN -c copy OUT.mkv"


class VideoFile:
    """A video file: its frames by number; the container announces how many.

    Frames are decoded in order, and the last one is kept. To read an earlier frame, the file is
    decoded from the start again. Raises `StoreError` if OpenCV finds no video in the file.
    """

    sequential = True
    names: tuple[str, ...] | None = None
    arrays: tuple[StoredArray, ...] = ()
    store: Store | None = None

    def __init__(self, path: Path) -> None:
        import cv2

        self.where = str(path)
        self._path = path
        self._lock = threading.Lock()
        _check_regular(path)
        self._capture = _open_capture(str(path))
        count = self._capture.get(cv2.CAP_PROP_FRAME_COUNT)
        width, height = (
            self._capture.get(p) for p in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT)
        )
        if not 1 <= count < 2**31:
            raise StoreError(f"{cut(path)} has no frame count (raw streams have none); {_REMUX}.")
        if count > path.stat().st_size:
            raise StoreError(
                f"{cut(path)} claims {int(count)} frames in {path.stat().st_size} bytes; {_REMUX}."
            )
        check_pixels(path, int(width), int(height), 3)
        self._count, self._size = int(count), (int(height), int(width))
        self._position = 0
        self._last: tuple[int, NDArray[np.uint8]] | None = None

    def __len__(self) -> int:
        return self._count

    def size(self, i: int) -> tuple[int, int]:
        """Return height and width, which all frames have."""
        return self._size

    def read(self, i: int) -> NDArray[np.uint8]:
        """Return frame `i` as [y, x, 3]. Raises `StoreError` if the file ends before it."""
        with self._lock:
            if self._last is None or self._last[0] != i:
                self._last = i, self._decoded(i)
            return self._last[1]

    def where_of(self, i: int) -> str:
        """Return the file and the frame's number."""
        return f"{self.where}, frame {i}"

    def fingerprint(self) -> str:
        """Return SHA-256 of the file's name, size and time of change, and of the number of
        frames.
        """
        return file_digest(self._path, self._count, self._size)

    def stamp(self, i: int) -> str | None:
        """Return a stamp of the whole file: a file that has grown is a new one."""
        import cv2

        return combined_stamp([self._stamp], i, cv2.__version__)

    @cached_property
    def _stamp(self) -> str | None:
        """Return the stamp of the file, computed once, because it waits for the disk."""
        return file_stamp(self._path)

    def states(self, i: int) -> dict[str, str]:
        """Return the state of the file."""
        return {self.where: file_state(self._path)}

    def _decoded(self, i: int) -> NDArray[np.uint8]:
        if i < self._position:
            self._capture.release()
            self._capture, self._position = _open_capture(self.where), 0
        while self._position < i:
            if not self._capture.grab():
                raise self._ends(self._position)
            self._position += 1
        frame = _next(self._capture)
        if frame is None:
            raise self._ends(i)
        self._position += 1
        if frame.shape[:2] != self._size:
            raise StoreError(
                f"{self.where_of(i)} is {frame.shape[1]} × {frame.shape[0]} pixels, the video "
                f"{self._size[1]} × {self._size[0]}. Cut the video where it changes."
            )
        return frame

    def _ends(self, frame: int) -> StoreError:
        fewer = f", or evaluate what is there with --limit {frame - 1}" if frame > 1 else ""
        return StoreError(
            f"{self.where} ends early: frame {frame} of the {self._count} that its container "
            f"announces cannot be decoded. It is cut short, or announces too many; {_REMUX}{fewer}."
        )


def stream(source: str) -> Iterator[NDArray[np.uint8]]:
    """Return the frames [y, x, 3] of a video file, a URL (rtsp, http) or a camera's number, uint8
    RGB.

    Ends when no frame comes. Raises `StoreError` at once if the source cannot be opened.
    """
    if not source.isdecimal() and not is_url(source):
        _check_regular(source)
    return _frames(_open_capture(int(source) if source.isdecimal() else source))


def _check_regular(path: str | Path) -> None:
    """Raise `StoreError` unless `path` is a regular file: OpenCV would wait for the writer of a
    named pipe.
    """
    try:
        os.close(open_descriptor(path))
    except OSError as error:
        raise StoreError(
            f"{cut(path)} cannot be read: {error.strerror}; expected a video file, a URL such as "
            "rtsp://…, or the number of a camera."
        ) from error


def _frames(capture: cv2.VideoCapture) -> Iterator[NDArray[np.uint8]]:
    try:
        while (frame := _next(capture)) is not None:
            yield frame
    finally:
        capture.release()


def _open_capture(source: str | int) -> cv2.VideoCapture:
    import cv2

    logging = cv2.utils.logging
    level = logging.getLogLevel()
    logging.setLogLevel(logging.LOG_LEVEL_SILENT)  # OpenCV logs every decoder that it tries
    try:
        capture = cv2.VideoCapture(source)
    except cv2.error as error:
        raise StoreError(f"{cut(source)} cannot be opened: {cut(error)}.") from error
    finally:
        logging.setLogLevel(level)
    if not capture.isOpened():
        description = f"camera {source}" if isinstance(source, int) else source
        raise StoreError(
            f"{description}: OpenCV finds no video in it that it can decode. Check that it plays, "
            "or convert it: ffmpeg -i IN OUT.mp4, or to a folder of images: ffmpeg -i IN "
            "%06d.png."
        )
    return capture


def _next(capture: cv2.VideoCapture) -> NDArray[np.uint8] | None:
    """Return the next frame as RGB; None if there is none."""
    import cv2

    success, frame = capture.read()
    if not success or frame is None or not frame.size:
        return None
    return np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), np.uint8)
