"""Wait for frames and predictions, and read them one by one, from finished or growing inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from uqeval.arrays import Array
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.common import is_folder_of_files
from uqeval.inputs.ids import (
    UNKNOWN_CLASSES,
    Ids,
    classes_of,
    frame_ids,
    is_computed,
    open_ids,
    void_of_ids,
)
from uqeval.inputs.live_frames import (
    Listed,
    Matches,
    Shot,
    Stream,
    check_growing,
    is_stream,
    plain_folder,
)
from uqeval.inputs.options import InputOptions
from uqeval.inputs.video_stores import PREDICTIONS, inside
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.files.label_folder import png_files
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.item_files import Files
from uqeval.stores.orders import refuse_other_orders
from uqeval.stores.planes import Planes
from uqeval.stores.store import has_chunks
from uqeval.stores.video.sequences import Neighbours
from uqeval.stores.void_id import ASSUMED_VOID
from uqeval.stores.watch import read_whole

if TYPE_CHECKING:
    from uqeval.maps.frame_ids import FrameIds

T = TypeVar("T")

#: Seconds before a message about a damaged or missing input.
_SILENT = 2.0


@dataclass(frozen=True)
class Patience:
    """How long to wait for missing inputs, in seconds.

    Checks every `poll` seconds. Stops waiting after `timeout` (None: never). `tell` is called with
    a message about the missing input.
    """

    follow: bool = False
    poll: float = 0.2
    timeout: float | None = None
    tell: Callable[[str], None] = lambda _: None

    def wait_for(self, attempt: Callable[[], T | None]) -> T | None:
        """Return the result of `attempt`; None if it returns nothing in time.

        Raises the `StoreError` of `attempt` once waiting is over.
        """
        began, warned = time.monotonic(), False
        while True:
            try:
                if (result := attempt()) is not None or not self.follow:
                    return result
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
            if error is not None and waited > _SILENT and not warned:
                warned = True
                self.tell(f"waiting: {error}")
            time.sleep(self.poll)


@dataclass(frozen=True)
class LiveFrame:
    """A frame uint8 [y, x, 3] RGB and its predicted ids [y, x]; void is the largest value.

    `alone`: why it cannot be compared with the previous frame; None if it can. `step`: the
    difference of the numbers in the names of the last two neighbours, None without such names.
    """

    name: str
    sequence: str
    alone: str | None
    step: int | None
    rgb: Array
    ids: Array


class Live:
    """The frames of `options.video` with their predictions, in order.

    `predictions`: a folder of PNGs or a store; by default those inside the video. Frames of a
    folder or a store are matched with predictions by name if both have names, else by position in
    natural order. `classes` is known after the first frame. `warn` gets a warning if the first two
    frames look like images of class ids, and for folders of frames and predictions that may be of
    different sequences.

    Raises `UsageError` at once. Raises `StoreError` and `DataError` when it reads a frame: for a
    missing or damaged frame only after `patience` has run out; and at the end, if there are more
    predictions than frames and nothing but their order says which belong together.
    """

    def __init__(
        self,
        predictions: str | None,
        options: InputOptions,
        patience: Patience,
        warn: Callable[[str], None],
    ) -> None:
        self._warn = warn
        video = str(options.video)
        self._patience = patience
        self._shots: Stream | Listed
        if is_stream(video):
            if predictions is None:
                raise UsageError(
                    f"{cut(video)}: give the predictions after the video: a folder of PNGs of "
                    "class ids, the k-th for frame k, or a store."
                )
            self._shots = Stream(video)
        else:
            if patience.follow and "://" not in video and not Path(video).exists():
                raise StoreError(f"{cut(video)}: there is no video here to follow. Check the path.")
            self._shots = Listed(video, predictions is None, options, patience.follow)
        matches = Matches(self._shots.folders, warn)
        self._predictions = Predictions(video, predictions, options, patience.follow, matches)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return self._predictions.classes

    @property
    def void(self) -> int | None:
        """Return the void id; None for predictions without void pixels. Known as `classes` is."""
        return None if self._predictions.are_computed else int(self._predictions.void)

    def __iter__(self) -> Iterator[LiveFrame]:
        neighbours = Neighbours()
        # A stream waits for its frames itself, and an ended stream has no more frames.
        patience = Patience() if isinstance(self._shots, Stream) else self._patience
        looks: list[str] = []
        last: Shot | None = None
        while (shot := patience.wait_for(self._shots.next)) is not None:
            rgb = self._read(shot.read)
            ids = self._read(self._predictions.reading(shot, (rgb.shape[0], rgb.shape[1])))
            sequence, reason = "", "it is the first frame" if shot.number == 0 else None
            if shot.number == 0 and isinstance(self._shots, Listed):
                self._predictions.refuse_other_order(self._shots.store)
            if shot.named:
                sequence, reason = neighbours.next(shot.name, self._shots.where)
            if len(looks) < 2:
                looks.append(self._shots.like_ids(shot, self.classes, self._predictions.void))
                if len(looks) == 2 and all(looks):
                    self._warn(looks[-1])
            yield LiveFrame(shot.name, sequence, reason, neighbours.step, rgb, ids)
            self._shots.done(shot)
            last = shot
        if last is not None and not patience.follow:
            self._predictions.refuse_more(last)

    def _read(self, read_array: Callable[[], Array]) -> Array:
        array = self._patience.wait_for(read_array)
        assert array is not None
        return array


class Predictions:
    """Predicted ids of the frames: PNGs in a folder, or a store.

    `classes` and `void` come from a store once a frame has been read.
    """

    def __init__(
        self, video: str, source: str | None, options: InputOptions, follow: bool, matches: Matches
    ) -> None:
        self.classes = options.classes or UNKNOWN_CLASSES
        self._video, self._given = video, source
        self._options = replace(options, limit=None, video=None)
        self._follow = follow
        self.void = ASSUMED_VOID if options.ignore_index is None else options.ignore_index
        self._files: tuple[str, Files] | None = None
        self._store: tuple[Ids, FrameIds, dict[str, int] | None, Files, int] | None = None
        self._matches = matches

    @property
    def are_computed(self) -> bool:
        """Return whether the ids are the likeliest classes of probabilities."""
        return self._store is not None and is_computed(self._store[0])

    def reading(self, shot: Shot, size: tuple[int, int]) -> Callable[[], Array]:
        """Return the reader of the ids of a frame of this height and width."""
        return lambda: self._read(shot, size)

    def _read(self, shot: Shot, size: tuple[int, int]) -> Array:
        if self._files is None and self._store is None:
            self._look()
        try:
            read = self._from_store if self._files is None else self._from_file
            values = read(shot, size)
        except StoreError:
            self._files = self._store = None  # checked again later
            raise
        self._matches.keep()
        return values

    def refuse_more(self, last: Shot) -> None:
        """Raise `StoreError` if predictions remain after the last frame, and they are matched by
        order: then TC may compare frames with the predictions of others."""
        count, by_order = 0, not last.named
        if self._files is not None:
            where, count = self._files[0], len(self._files[1].files)
        elif self._store is not None:
            where, count = self._store[1].where, self._store[4]
            by_order = by_order or self._store[2] is None
        if by_order and count > last.number + 1:
            raise StoreError(
                f"{cut(where)}: {count} predictions for the {last.number + 1} frames of "
                f"{self._video}. They are matched by order, so the values above may belong to "
                "other frames. Give one prediction per frame, or frames and predictions with names."
            )

    def refuse_other_order(self, frames: Store | None) -> None:
        """Raise `StoreError` if coordinates show another order than that of a store of frames."""
        if frames is not None and self._store is not None:
            refuse_other_orders([frames, self._store[0].store])

    def _refuse_tolerance_of(self, path: str) -> None:
        if self._options.sum_tolerance is not None:
            raise UsageError(
                f"--sum-tolerance {self._options.sum_tolerance} needs class probabilities, an "
                f"array `probs`; {cut(path)} holds none. Leave it out."
            )

    def _refuse_chunks_of(self, path: str) -> None:
        if self._options.fill and not any(map(has_chunks, (path, self._video))):
            raise UsageError(
                f"--missing-chunks fill needs a Zarr store or an HDF5 file; {cut(path)} and "
                f"{self._video} are none. Leave it out."
            )

    def _look(self) -> None:
        at: Any = self._given
        if at is None:
            at = inside(self._video, PREDICTIONS)
            if at is None and plain_folder(self._video):
                raise StoreError(
                    f"{self._video}: has no folder `{PREDICTIONS}`; give the predictions after the "
                    "video: a folder of PNGs of class ids, or a store."
                )
            at = at or self._video
        files = is_folder_of_files(at) or (self._follow and plain_folder(str(at)))
        self._refuse_chunks_of(str(at))
        if files:
            self._refuse_tolerance_of(str(at))
            self._list(str(at))
            return
        ids = open_ids(at, None, None, "prediction", self._options)
        if "probs" not in ids.kinds:
            self._refuse_tolerance_of(str(at))
        if self._follow:
            parts = [
                item_array.array for kind in ids.kinds for item_array in ids.store.arrays[kind]
            ]
            check_growing(parts)
        self.classes, _, _ = classes_of([ids], self._options)
        names = ids.store.names
        count = len(ids.parts) or len(ids.places)
        frame_names = names or tuple(map(str, range(count)))
        self.void = void_of_ids(ids, self.classes, self._options)
        frames = frame_ids(ids, frame_names, self.classes, self.void, "predictions", None)
        place = None if names is None else {name: i for i, name in enumerate(names)}
        self._store = ids, frames, place, self._listed(names or ()), count

    def _list(self, folder: str) -> None:
        from uqeval.stores.names import natural

        self._files = folder, self._listed(sorted(png_files(folder), key=natural))

    def _listed(self, names: Sequence[str]) -> Files:
        return Files(names, folders_of_items=self._matches.folders)

    def _from_file(self, shot: Shot, size: tuple[int, int]) -> Array:
        from uqeval.maps.frame_ids import StoredIds

        found = self._file(shot)
        if found is None:
            assert self._files is not None
            self._list(self._files[0])  # files added since the last listing
            found = self._file(shot)
        assert self._files is not None
        folder, files = self._files
        if found is None:
            raise StoreError(
                f"{cut(folder)}: holds no prediction for the frame {shot.name} "
                f"({len(files.files)} PNG files). Add it, or --follow to wait for it."
            )
        array = PngArray(Path(folder) / found)
        if array.dtype.itemsize > 1 and self._options.classes is None:
            raise UsageError(
                f"{array.where}: has ids of more than 8 bits, and the number of classes is "
                "unknown; give --classes."
            )
        item_array = ItemArray(array, None)
        ids = StoredIds(
            Planes([item_array]), [shot.name], [0], self.classes, self.void, "predictions", folder
        )  # fmt: skip
        with read_whole(item_array, f"the prediction of {shot.name}"):
            return ids.read(0, size)

    def _file(self, shot: Shot) -> str | None:
        assert self._files is not None
        folder, files = self._files
        if shot.named:
            return self._matches.find(shot.name, files, folder)
        return files.files[shot.number] if shot.number < len(files.files) else None

    def _from_store(self, shot: Shot, size: tuple[int, int]) -> Array:
        assert self._store is not None
        frames, ids, place, stored_names, count = self._store
        number: int | None = shot.number
        if place is not None and shot.named:
            name = self._matches.find(shot.name, stored_names, ids.where)
            number = None if name is None else place[name]
        if number is None or number >= count:
            raise StoreError(
                f"{ids.where}: holds no prediction for the frame {shot.name} ({count} items). Add "
                "it, or --follow to wait for it."
            )
        with ExitStack() as stack:
            for item_array in frames.of_frame(number):
                stack.enter_context(read_whole(item_array, f"the prediction of {shot.name}"))
            return ids.read(number, size)
