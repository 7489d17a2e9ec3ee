"""Find and read predictions frame by frame, in a folder of PNGs or a store that may grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.common import is_folder_of_files, refuse_unsure_order, text_of_positions
from uqeval.inputs.ids import (
    UNKNOWN_CLASSES,
    Ids,
    classes_of,
    frame_ids,
    is_computed,
    open_ids,
    void_of_ids,
)
from uqeval.inputs.live_frames import Matches, Shot, check_growing, plain_folder
from uqeval.inputs.options import InputOptions
from uqeval.inputs.video_stores import PREDICTIONS, inside
from uqeval.stores.array import ItemArray, Store
from uqeval.stores.class_ids import ASSUMED_VOID
from uqeval.stores.files.label_folder import png_files
from uqeval.stores.files.png_array import PngArray
from uqeval.stores.item_files import Files
from uqeval.stores.names import natural
from uqeval.stores.orders import refuse_other_orders
from uqeval.stores.planes import Planes
from uqeval.stores.store import has_chunks
from uqeval.stores.watch import read_whole

if TYPE_CHECKING:
    from uqeval.maps.frame_ids import FrameIds


@dataclass(frozen=True)
class _List:
    """The predictions that were there at one time: PNGs, or items of a store with these `ids`.

    `names`: None for items without names. `new`: files that were found later, apart because many
    names take long to compare.
    """

    where: str
    names: Files | None
    count: int
    ids: Ids | None = None
    frames: FrameIds | None = None
    new: Files | None = None

    def by_name(self, shot: Shot) -> bool:
        """Return whether the prediction of a frame is found by name, not by its number."""
        return shot.named and self.names is not None

    def has(self, shot: Shot) -> bool:
        """Return whether the prediction of a frame is here for certain."""
        if self.by_name(shot):
            return any(names is not None and names.exact(shot.name)
                       for names in (self.names, self.new))  # fmt: skip
        return shot.number < self.count

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all `names`."""
        return frozenset(self.names.files if self.names else ())

    @cached_property
    def ordered(self) -> list[str]:
        """Return the files in natural order."""
        return sorted(self.names.files if self.names else (), key=natural)

    @cached_property
    def places(self) -> dict[str, int]:
        """Return the numbers of the items by name."""
        return {name: i for i, name in enumerate(self.names.files if self.names else ())}


class Predictions:
    """Predicted ids of the frames: PNGs in a folder, or a store.

    `classes` and `void` come from a store once a frame has been read.
    """

    def __init__(
        self, video: str, source: str | None, options: InputOptions, follow: bool,
        matches: Matches, warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        self.classes = options.classes or UNKNOWN_CLASSES
        self._video, self._given = video, source
        self._options = replace(options, limit=None, video=None)
        self._follow = follow
        self.void = ASSUMED_VOID if options.ignore_index is None else options.ignore_index
        self._matches = matches
        self._warn = warn
        self._list: _List | None = None
        self._listing = 0

    @property
    def are_computed(self) -> bool:
        """Return whether the ids are the likeliest classes of probabilities."""
        return self._list is not None and self._list.ids is not None and is_computed(self._list.ids)

    def reading(self, shot: Shot, size: tuple[int, int]) -> Callable[[], Array]:
        """Return the reader of the ids of a frame of this height and width."""
        return lambda: self._read(shot, size)

    def _read(self, shot: Shot, size: tuple[int, int]) -> Array:
        own = self._list
        # A list that is older than that of the frames may lack the right prediction.
        if own is not None and (shot.listing != self._listing or own.new) and not own.has(shot):
            self._list, self._listing = self._with_new_files(own, shot), shot.listing
        if self._list is None:
            self._list, self._listing = self._look(), shot.listing
        try:
            values = self._values(self._list, shot, size)
        except StoreError:
            self._list = None  # checked again later
            raise
        self._matches.keep()
        return values

    def refuse_more(self, last: Shot) -> None:
        """Raise `StoreError` if predictions remain after the last frame, and they are matched by
        order: then TC may compare frames with the predictions of others."""
        own = self._list
        if own is None or own.by_name(last) or own.count <= last.number + 1:
            return
        raise StoreError(
            f"{cut(own.where)}: {own.count} predictions for the {last.number + 1} frames of "
            f"{self._video}. They are matched by order, so the values above may belong to "
            "other frames. Give one prediction per frame, or frames and predictions with names."
        )

    def refuse_other_order(self, frames: Store | None) -> None:
        """Raise `StoreError` if coordinates show another order than that of a store of frames."""
        if frames is not None and self._list is not None and self._list.ids is not None:
            refuse_other_orders([frames, self._list.ids.store])

    def warn_of_positions(self, first: Shot, frames: Store | None) -> None:
        """Warn if only the frames or only the predictions have names; not for the frames of a
        stream, which never have any. Raises `StoreError` if the order of predictions is not clear.
        """
        own = self._list
        if own is not None and own.ids is not None and own.names is not None and not first.named:
            refuse_unsure_order(own.ids.store, self._video)
        if own is None or (not first.named and frames is None):
            return
        if (own.names is not None) != first.named:
            paths = (own.where, self._video) if first.named else (self._video, own.where)
            self._warn(text_of_positions(*paths))

    def _refuse_tolerance_of(self, path: str) -> None:
        if self._options.sum_tolerance is not None:
            raise UsageError(
                f"--sum-tolerance {self._options.sum_tolerance} needs class probabilities, an "
                f"array `probs`; {cut(path)} holds none. Leave it out."
            )

    def _refuse_chunks_of(self, path: str) -> None:
        if self._options.fill and not any(map(has_chunks, (path, self._video))):
            raise UsageError(
                f"--missing-chunks fill needs a Zarr store or an HDF5 file; neither "
                f"{cut(path)} nor {self._video} is one. Leave it out."
            )

    def _look(self) -> _List:
        """Return the predictions that are there now."""
        at: Any = self._given
        if at is None:
            at = inside(self._video, PREDICTIONS)
            if at is None and plain_folder(self._video):
                raise StoreError(
                    f"{self._video} has no folder `{PREDICTIONS}`; give the predictions after the "
                    "video: a folder of PNGs of class ids, or a store."
                )
            at = at or self._video
        is_folder = is_folder_of_files(at) or (self._follow and plain_folder(str(at)))
        self._refuse_chunks_of(str(at))
        if is_folder:
            self._refuse_tolerance_of(str(at))
            files = png_files(str(at))
            return _List(str(at), self._files_of(files), len(files))
        ids = open_ids(at, None, None, "prediction", self._options)
        if "probs" not in ids.kinds:
            self._refuse_tolerance_of(str(at))
        if self._follow:
            check_growing(part.array for kind in ids.kinds for part in ids.store.arrays[kind])
        self.classes, _, _ = classes_of([ids], self._options)
        count = len(ids.parts) or len(ids.places)
        frame_names = ids.store.names or tuple(map(str, range(count)))
        self.void = void_of_ids(ids, self.classes, self._options)
        frames = frame_ids(ids, frame_names, self.classes, self.void, "predictions", None)
        names = None if ids.store.names is None else self._files_of(ids.store.names)
        return _List(frames.where, names, count, ids, frames)

    def _with_new_files(self, own: _List, shot: Shot) -> _List | None:
        """Return a list with the new files if the prediction of a frame is one for certain."""
        if own.ids is not None or not own.by_name(shot):
            return None
        files = png_files(own.where)
        new = self._files_of([file for file in files if file not in own.known])
        return replace(own, new=new, count=len(files)) if new.exact(shot.name) else None

    def _files_of(self, names: Sequence[str]) -> Files:
        return Files(names, folders_of_items=self._matches.folders)

    def _values(self, own: _List, shot: Shot, size: tuple[int, int]) -> Array:
        found: str | int | None = shot.number if shot.number < own.count else None
        if own.by_name(shot):
            names = own.new if own.new and own.new.exact(shot.name) else own.names
            assert names is not None
            found = self._matches.find(shot.name, names, own.where)
        if found is None:
            what = "PNG files" if own.ids is None else "items"
            raise StoreError(
                f"{cut(own.where)} holds no prediction for the frame {shot.name} "
                f"({own.count} {what}). Add it, or --follow to wait for it."
            )
        if own.ids is None or own.frames is None:
            return self._of_file(own, found, shot, size)
        number = found if isinstance(found, int) else own.places[found]
        with ExitStack() as stack:
            for item_array in own.ids.of_frame(number):
                stack.enter_context(read_whole(item_array, f"the prediction of {shot.name}"))
            return own.frames.read(number, size)

    def _of_file(self, own: _List, found: str | int, shot: Shot, size: tuple[int, int]) -> Array:
        from uqeval.maps.frame_ids import StoredIds

        file = found if isinstance(found, str) else own.ordered[found]
        array = PngArray(Path(own.where) / file)
        if array.dtype.itemsize > 1 and self._options.classes is None:
            raise UsageError(
                f"{array.where} has ids of more than 8 bits, and the number of classes is "
                "unknown; give --classes."
            )
        item_array = ItemArray(array, None)
        ids = StoredIds(
            Planes([item_array]), [shot.name], [0], self.classes, self.void, "predictions",
            own.where,
        )  # fmt: skip
        with read_whole(item_array, f"the prediction of {shot.name}"):
            return ids.read(0, size)
