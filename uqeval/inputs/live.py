"""Frames and their predictions one by one, as they are there or still come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uqeval.errors import StoreError, UsageError
from uqeval.inputs.common import is_folder_of_files
from uqeval.inputs.given import InputOptions
from uqeval.inputs.video import (
    FRAMES,
    PREDICTIONS,
    UNKNOWN_CLASSES,
    classes_of,
    frame_ids,
    inside,
    open_ids,
    void_in,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.frame_ids import FrameIds
    from uqeval.stores.array import StoredArray
    from uqeval.stores.frames import Frames

T = TypeVar("T")

_STREAMS = ("rtsp://", "rtsps://", "rtmp://", "rtp://", "udp://", "tcp://")
#: Seconds of waiting for something that is damaged or missing before anybody is told.
_SILENT = 2.0


@dataclass(frozen=True)
class LiveFrame:
    """A frame uint8 [y, x, 3] RGB, and the ids [y, x] predicted for it, void as the largest value.

    `alone`: why it cannot be compared with the frame before; None if it can.
    """

    name: str
    sequence: str
    alone: str | None
    rgb: NDArray[Any]
    ids: NDArray[Any]


@dataclass(frozen=True)
class Patience:
    """Whether and how long to wait for what is not there yet, in seconds.

    Looks every `poll`; gives up after `timeout`, None: never. `tell` is told what is waited for.
    """

    follow: bool = False
    poll: float = 0.2
    timeout: float | None = None
    tell: Callable[[str], None] = lambda _: None

    def wait_for(self, attempt: Callable[[], T | None]) -> T | None:
        """What `attempt` gives, None if it gives nothing in time.

        A `StoreError` that it raises is raised here once there is nothing to wait for.
        """
        began, told = time.monotonic(), False
        while True:
            try:
                if (found := attempt()) is not None or not self.follow:
                    return found
                error = None
            except StoreError as caught:
                if not self.follow:
                    raise
                error = caught
            waited = time.monotonic() - began
            if self.timeout is not None and waited >= self.timeout:
                if error is not None:
                    raise error
                return None
            if error is not None and waited > _SILENT and not told:
                told = True
                self.tell(f"waiting: {error}")
            time.sleep(self.poll)


class Live:
    """The frames of `options.video`, and what is predicted for them, in their order.

    `predictions`: a folder of PNGs or a store; by default those inside of the video. Frames of a
    folder or a store are matched with predictions by name where both have names, else the k-th
    with the k-th in natural order. `classes` is known once the first frame has come.

    Raises `UsageError` at once, `StoreError` and `DataError` when a frame is read: for one that is
    missing or damaged only where `patience` has come to its end.
    """

    def __init__(self, predictions: str | None, options: InputOptions, patience: Patience) -> None:
        video = str(options.video)
        self._patience = patience
        self._shots: _Stream | _Listed
        if _is_stream(video):
            if predictions is None:
                raise UsageError(
                    f"{video}: give the predictions after the video: a folder of PNGs of class "
                    "ids, the k-th for frame k, or a store."
                )
            self._shots = _Stream(video)
        else:
            if patience.follow and "://" not in video and not Path(video).exists():
                raise StoreError(f"{video}: there is nothing here to follow. Check the path.")
            self._shots = _Listed(video, predictions is None, options, patience.follow)
        self._predictions = _Predictions(video, predictions, options, patience.follow)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return self._predictions.classes

    def __iter__(self) -> Iterator[LiveFrame]:
        from uqeval.stores.sequences import Neighbours

        neighbours = Neighbours()
        # A stream waits for its frames itself, and what has ended does not go on.
        patience = Patience() if isinstance(self._shots, _Stream) else self._patience
        while (shot := patience.wait_for(self._shots.next)) is not None:
            rgb = self._read(shot.read)
            ids = self._read(self._predictions.reading(shot, (rgb.shape[0], rgb.shape[1])))
            sequence, alone = "", "it is the first frame" if shot.number == 0 else None
            if shot.named:
                sequence, alone = neighbours.next(shot.name, self._shots.where)
            yield LiveFrame(shot.name, sequence, alone, rgb, ids)
            self._shots.done(shot)

    def _read(self, read: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        found = self._patience.wait_for(read)
        assert found is not None
        return found


@dataclass(frozen=True)
class _Shot:
    """One frame that is there: its name or number, and how it is read."""

    name: str
    number: int
    named: bool
    read: Callable[[], NDArray[Any]]


class _Stream:
    """Frames of a video file, a camera or a URL."""

    def __init__(self, source: str) -> None:
        from uqeval.stores.video_file import stream

        self.where = source
        self._frames = stream(source)
        self._count = 0

    def next(self) -> _Shot | None:
        """The next frame; None at the end."""
        frame = next(self._frames, None)
        if frame is None:
            if not self._count:
                raise StoreError(f"{self.where}: gives no frame. Check that it plays.")
            return None
        self._count += 1
        return _Shot(str(self._count - 1), self._count - 1, False, lambda: frame)

    def done(self, shot: _Shot) -> None:
        """Nothing is kept."""


class _Listed:
    """Frames of a folder or a store, which is looked at again once all have been given."""

    def __init__(self, video: str, strict: bool, options: InputOptions, follow: bool) -> None:
        self.where = video
        self._strict = strict
        self._options = options
        self._follow = follow
        self._frames: Frames | None = None
        self._place: dict[str, int] = {}
        self._left: deque[str] = deque()
        self._given: set[str] = set()
        self._count = 0

    def next(self) -> _Shot | None:
        """The next frame; None if there is no other yet."""
        if not self._left:
            self._open()
            self._left.extend(name for name in self._place if name not in self._given)
        if not self._left:
            return None
        name = self._left[0]
        named = self._frames is None or self._frames.names is not None
        return _Shot(name, self._count, named, lambda: self._read(name))

    def done(self, shot: _Shot) -> None:
        """The frame has been given, and is not given again."""
        self._left.popleft()
        self._given.add(shot.name)
        self._count += 1

    def _open(self) -> Frames:
        from uqeval.stores.frames import open_frames

        at: Any = inside(self.where, FRAMES)
        if at is None and self._strict and _plain_folder(self.where):
            raise StoreError(
                f"{self.where}: has no folder `{FRAMES}`; expected `{FRAMES}` and `{PREDICTIONS}`, "
                "or the predictions after a folder of images."
            )
        frames = open_frames(at or self.where, fill_missing=self._options.fill)
        if self._follow:
            _check_growing(frames.arrays)
        names = frames.names or tuple(map(str, range(len(frames))))
        self._frames, self._place = frames, {name: i for i, name in enumerate(names)}
        return frames

    def _read(self, name: str) -> NDArray[Any]:
        frames = self._frames or self._open()
        try:
            return frames.read(self._place[name])
        except StoreError:
            self._frames = None  # to be looked at again
            raise


class _Predictions:
    """Predicted ids of the frames: PNGs in a folder, or a store."""

    def __init__(self, video: str, given: str | None, options: InputOptions, follow: bool) -> None:
        self.classes = options.classes or UNKNOWN_CLASSES
        self._video, self._given = video, given
        self._options = replace(options, limit=None, video=None)
        self._follow = follow
        self._void = 255 if options.ignore_index is None else options.ignore_index
        self._files: tuple[str, list[str], dict[str, list[str]]] | None = None
        self._store: tuple[FrameIds, dict[str, int] | None, dict[str, list[str]], int] | None = None

    def reading(self, shot: _Shot, size: tuple[int, int]) -> Callable[[], NDArray[Any]]:
        """How the ids of a frame of this height and width are read."""
        return lambda: self._read(shot, size)

    def _read(self, shot: _Shot, size: tuple[int, int]) -> NDArray[Any]:
        if self._files is None and self._store is None:
            self._look()
        try:
            if self._files is not None:
                return self._from_file(shot, size)
            return self._from_store(shot, size)
        except StoreError:
            self._files = self._store = None  # to be looked at again
            raise

    def _look(self) -> None:
        at: Any = self._given
        if at is None:
            at = inside(self._video, PREDICTIONS)
            if at is None and _plain_folder(self._video):
                raise StoreError(
                    f"{self._video}: has no folder `{PREDICTIONS}`; give the predictions after the "
                    "video: a folder of PNGs of class ids, or a store."
                )
            at = at or self._video
        if is_folder_of_files(at) or (self._follow and _plain_folder(str(at))):
            self._list(str(at))
            return
        ids = open_ids(at, None, None, "prediction", self._options)
        if self._follow:
            parts = [part.array for kind in ids.kinds for part in ids.store.arrays[kind]]
            _check_growing(parts)
        self.classes, _, _ = classes_of([ids], self._options)
        names = ids.store.names
        count = len(ids.parts) or len(ids.places)
        shown = names or tuple(map(str, range(count)))
        void = void_in([ids], self._options)
        opened = frame_ids(ids, shown, self.classes, void, "predictions", False)
        place = None if names is None else {name: i for i, name in enumerate(names)}
        self._store = opened, place, _stems(names or ()), count

    def _list(self, folder: str) -> None:
        from uqeval.stores.label_folder import png_files
        from uqeval.stores.names import natural

        files = sorted(png_files(folder), key=natural)
        self._files = folder, files, _stems(files)

    def _from_file(self, shot: _Shot, size: tuple[int, int]) -> NDArray[Any]:
        from uqeval.maps.frame_ids import StoredIds
        from uqeval.stores.array import ItemArray
        from uqeval.stores.planes import Planes
        from uqeval.stores.png_array import PngArray

        found = self._file(shot)
        if found is None:
            assert self._files is not None
            self._list(self._files[0])  # files that came since
            found = self._file(shot)
        assert self._files is not None
        folder, files, _ = self._files
        if found is None:
            raise StoreError(
                f"{folder}: holds no prediction for the frame {shot.name} "
                f"({len(files)} PNG files). Add it, or --follow to wait for it."
            )
        array = PngArray(Path(folder) / found)
        if array.dtype.itemsize > 1 and self._options.classes is None:
            raise UsageError(
                f"{array.where}: ids of more than 8 bits, and nobody says how many classes there "
                "are; give --classes."
            )
        planes = Planes([ItemArray(array, None)])
        ids = StoredIds(
            planes, [shot.name], [0], self.classes, self._void, "predictions", folder
        )  # fmt: skip
        return ids.read(0, size)

    def _file(self, shot: _Shot) -> str | None:
        from uqeval.stores.matching import file_of

        assert self._files is not None
        folder, files, stems = self._files
        if shot.named:
            return file_of(shot.name, stems, folder, "prediction")
        return files[shot.number] if shot.number < len(files) else None

    def _from_store(self, shot: _Shot, size: tuple[int, int]) -> NDArray[Any]:
        from uqeval.stores.matching import file_of

        assert self._store is not None
        ids, place, stems, count = self._store
        number: int | None = shot.number
        if place is not None and shot.named:
            name = file_of(shot.name, stems, ids.where, "prediction")
            number = None if name is None else place[name]
        if number is None or number >= count:
            raise StoreError(
                f"{ids.where}: holds no prediction for the frame {shot.name} ({count} items). Add "
                "it, or --follow to wait for it."
            )
        return ids.read(number, size)


def _stems(names: Any) -> dict[str, list[str]]:
    from uqeval.stores.matching import stems

    return stems(names)


def _is_stream(video: str) -> bool:
    """Whether frames come one after another: a camera's number, a stream's URL, a video file."""
    if video.isdecimal() and not Path(video).exists():
        return True
    if video.startswith(("http://", "https://")):
        return not video.rstrip("/").endswith((".zarr", ".zip"))
    if "://" in video:
        return video.startswith(_STREAMS)
    from uqeval.stores.video_file import VIDEOS

    return Path(video).is_file() and Path(video).suffix.lower() in VIDEOS


def _plain_folder(path: str) -> bool:
    from uqeval.stores.truth import is_zarr

    return "://" not in path and Path(path).is_dir() and not is_zarr(path)


def _check_growing(arrays: Any) -> None:
    """Raise `UsageError` for chunks of several frames: nobody can tell when they are whole."""
    checked: list[StoredArray] = list({id(array): array for array in arrays}.values())
    for array in checked:
        if "item" in array.axes and (n := array.chunks[array.axes.index("item")]) > 1:
            raise UsageError(
                f"{array.where}: has chunks of {n} frames, of which nobody can tell whether all "
                "have been written. To --follow a store, write it with chunks of one frame."
            )
