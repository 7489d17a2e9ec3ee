"""Wait for frames and predictions, and read them one by one, from finished or growing inputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from uqeval.arrays import Array
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.live_frames import Listed, Matches, Shot, Stream, is_stream
from uqeval.inputs.live_predictions import Predictions
from uqeval.inputs.options import InputOptions
from uqeval.stores.video.sequences import Neighbours

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
    frames look like images of class ids, for folders of frames and predictions that may be of
    different sequences, if the first frame has an EXIF orientation, and if only the frames or only
    the predictions have names.

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
        matches = Matches(self._shots.folders, warn, patience.follow)
        self._predictions = Predictions(video, predictions, options, patience.follow, matches, warn)

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
            if shot.number == 0 and (text := self._shots.turned(shot)):
                self._warn(text)
            ids = self._read(self._predictions.reading(shot, (rgb.shape[0], rgb.shape[1])))
            sequence, reason = "", "it is the first frame" if shot.number == 0 else None
            if shot.number == 0:
                self._predictions.refuse_other_order(self._shots.store)
                self._predictions.warn_of_positions(shot, self._shots.store)
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
