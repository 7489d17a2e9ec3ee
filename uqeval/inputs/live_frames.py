"""Read frames one by one: from a stream, or from a folder or store that may grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.ids import like_ids
from uqeval.inputs.options import InputOptions
from uqeval.inputs.video_stores import FRAMES, PREDICTIONS, inside
from uqeval.stores.array import Store, StoredArray, distinct
from uqeval.stores.item_files import Files
from uqeval.stores.item_folders import FolderPath, Folders, folders_of, may_differ
from uqeval.stores.matching import refuse_shared, warnings_of_folders
from uqeval.stores.watch import read_whole
from uqeval.stores.zarr.source import is_zarr

if TYPE_CHECKING:
    from uqeval.stores.video.frames import Frames

_STREAMS = ("rtsp://", "rtsps://", "rtmp://", "rtp://", "udp://", "tcp://")


@dataclass(frozen=True)
class Shot:
    """One available frame: its name or number, and how to read it. `listing`: the list of frames
    that it is from. An older list of predictions may lack its own.
    """

    name: str
    number: int
    named: bool
    listing: int
    read: Callable[[], Array]


class Stream:
    """Frames of a video file, a camera or a URL."""

    def __init__(self, source: str) -> None:
        from uqeval.stores.video.video_file import stream

        self.where = source
        self.folders = Folders()
        self.store: Store | None = None
        self._frames = stream(source)
        self._count = 0

    def next(self) -> Shot | None:
        """Return the next frame; None at the end."""
        frame = next(self._frames, None)
        if frame is None:
            if not self._count:
                raise StoreError(
                    f"{self.where}: no frame can be read; check that a player can play it."
                )
            return None
        number = self._count
        self._count += 1
        return Shot(str(number), number, False, number, lambda: frame)

    def like_ids(self, shot: Shot, classes: int, void: int) -> str:
        """Return no warning: streams contain no class ids."""
        return ""

    def turned(self, shot: Shot) -> str:
        """Return no warning: streams have no EXIF orientation."""
        return ""

    def done(self, shot: Shot) -> None:
        """Do nothing: a stream has no list of frames."""


class Listed:
    """Frames of a folder or a store, which is listed again after the last known frame.

    `folders`: those of all listed frames. They say which folders are of sequences before the first
    frame is read.
    """

    def __init__(self, video: str, strict: bool, options: InputOptions, follow: bool) -> None:
        self.where = video
        self.folders = Folders()
        self._strict = strict
        self._options = options
        self._follow = follow
        self._frames: Frames | None = None
        self._place: dict[str, int] = {}
        self._left: deque[str] = deque()
        self._given: set[str] = set()
        self._count = self._listing = 0

    def next(self) -> Shot | None:
        """Return the next frame; None if there is no new frame yet."""
        if not self._left:
            self._open()
            self._listing += 1
            self._left.extend(name for name in self._place if name not in self._given)
        if not self._left:
            return None
        name = self._left[0]
        has_names = self._frames is None or self._frames.names is not None
        return Shot(name, self._count, has_names, self._listing, lambda: self._read(name))

    @property
    def store(self) -> Store | None:
        """Return the store of the frames; None for files of images."""
        return self._frames.store if self._frames else None

    def like_ids(self, shot: Shot, classes: int, void: int) -> str:
        """Return a warning if the frame looks like an image of class ids, else an empty text.

        Also empty if the file was removed after it was read.
        """
        try:
            return like_ids(self._frames or self._open(), self._place[shot.name], classes, void)
        except (StoreError, KeyError):
            return ""

    def turned(self, shot: Shot) -> str:
        """Return a warning if the file of the frame has an EXIF orientation, else an empty text.

        Also empty if the file was removed after it was read.
        """
        from uqeval.stores.video.image_folder import turned

        try:
            return turned(self._frames or self._open(), self._place[shot.name])
        except (StoreError, KeyError):
            return ""

    def done(self, shot: Shot) -> None:
        """Mark the frame as returned, so that it is not returned again."""
        self._left.popleft()
        self._given.add(shot.name)
        self._count += 1

    def _open(self) -> Frames:
        from uqeval.stores.video.frames import open_frames

        at: Any = inside(self.where, FRAMES)
        if at is None and self._strict and plain_folder(self.where):
            raise StoreError(
                f"{self.where} has no folder `{FRAMES}`; expected `{FRAMES}` and `{PREDICTIONS}`, "
                "or the predictions after a folder of images."
            )
        frames = open_frames(at or self.where, fill_missing=self._options.fill)
        if self._follow:
            check_growing(frames.arrays)
        for name in frames.names or ():
            if name not in self._place:
                self.folders.add(name)
        names = frames.names or tuple(map(str, range(len(frames))))
        self._frames, self._place = frames, {name: i for i, name in enumerate(names)}
        return frames

    def _read(self, name: str) -> Array:
        from uqeval.stores.video.frames import Frame

        frames = self._frames or self._open()
        try:
            number = self._place[name]
            with read_whole(Frame(frames, number), f"the frame {name}"):
                return frames.read(number)
        except StoreError:
            self._frames = None  # checked again later
            raise


class Matches:
    """The predictions of named frames, each of one frame. `folders`: those of the frames. With
    `follow`, a prediction that may be of another sequence is left to its own frame.
    """

    def __init__(self, folders: Folders, warn: Callable[[str], None], follow: bool) -> None:
        self.folders = folders
        self._follow = follow
        self._frames: dict[str, str] = {}
        self._pairs: set[tuple[FolderPath, FolderPath]] = set()
        self._warn = warn
        self._found: tuple[str, str, str] | None = None

    def find(self, frame: str, predictions: Files, where: str) -> str | None:
        """Return the prediction of a frame; raises `StoreError` if another frame has it, and with
        `follow` if it may be of another sequence.
        """
        found = predictions.file_of(frame, where, "prediction")
        if found is not None and (other := self._frames.get(found, frame)) != frame:
            refuse_shared(where, other, frame, found, "prediction")
        if found is not None and self._follow and may_differ(frame, found):
            raise StoreError(
                f"{cut(where)} holds no prediction for the frame {cut(frame)}, but {cut(found)}, "
                "which may be of another sequence. --follow waits for the right one. If the "
                "sequences are the same, give their folders the same name."
            )
        self._found = None if found is None else (frame, found, where)
        return found

    def keep(self) -> None:
        """Keep the last match once it has been read: until then, a better file may appear. Warn
        once if the two folders may be of different sequences.
        """
        if self._found is None:
            return
        frame, prediction, where = self._found
        self._frames[prediction] = frame
        folders = folders_of(frame), folders_of(prediction)
        if folders not in self._pairs:
            self._pairs.add(folders)
            for text in warnings_of_folders(where, {frame: prediction}, "prediction"):
                self._warn(text)


def is_stream(video: str) -> bool:
    """Return whether frames come from a camera's number, a stream's URL or a video file."""
    if video.isdecimal() and not Path(video).exists():
        return True
    if video.startswith(("http://", "https://")):
        return not video.rstrip("/").endswith((".zarr", ".zip"))
    if "://" in video:
        return video.startswith(_STREAMS)
    from uqeval.stores.video.video_file import VIDEOS

    return Path(video).is_file() and Path(video).suffix.lower() in VIDEOS


def plain_folder(path: str) -> bool:
    """Return whether a path is a local folder that is not a Zarr store."""
    return "://" not in path and Path(path).is_dir() and not is_zarr(path)


def check_growing(arrays: Iterable[StoredArray]) -> None:
    """Raise `UsageError` for chunks of several frames, which may be incomplete."""
    for array in distinct(arrays):
        if (n := array.in_chunk("item")) > 1:
            raise UsageError(
                f"{array.where} has chunks of {n} frames; --follow cannot tell whether a chunk "
                "is complete. Write the store with chunks of one frame."
            )
