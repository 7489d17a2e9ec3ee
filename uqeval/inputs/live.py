"""Read frames and their predictions one by one, from finished or growing inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from uqeval.arrays import Array
from uqeval.errors import StoreError, UsageError, cut
from uqeval.inputs.live_frames import Listed, Stream, is_stream
from uqeval.inputs.live_ids import Predictions
from uqeval.inputs.options import InputOptions
from uqeval.inputs.patience import Patience


@dataclass(frozen=True)
class LiveFrame:
    """A frame uint8 [y, x, 3] RGB and its predicted ids [y, x]; void is the largest value.

    `alone`: why it cannot be compared with the previous frame; None if it can.
    """

    name: str
    sequence: str
    alone: str | None
    rgb: Array
    ids: Array


class Live:
    """The frames of `options.video` with their predictions, in order.

    `predictions`: a folder of PNGs or a store; by default those inside the video. Frames of a
    folder or a store are matched with predictions by name if both have names, else by position in
    natural order. `classes` is known after the first frame. `warn` gets a warning if the first two
    frames look like images of class ids.

    Raises `UsageError` at once. Raises `StoreError` and `DataError` when it reads a frame: for a
    missing or damaged frame only after `patience` has run out.
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
        self._predictions = Predictions(video, predictions, options, patience.follow)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return self._predictions.classes

    def __iter__(self) -> Iterator[LiveFrame]:
        from uqeval.stores.video.sequences import Neighbours

        neighbours = Neighbours()
        # A stream waits for its frames itself, and an ended stream has no more frames.
        patience = Patience() if isinstance(self._shots, Stream) else self._patience
        looks: list[str] = []
        while (shot := patience.wait_for(self._shots.next)) is not None:
            rgb = self._read(shot.read)
            ids = self._read(self._predictions.reading(shot, (rgb.shape[0], rgb.shape[1])))
            sequence, reason = "", "it is the first frame" if shot.number == 0 else None
            if shot.named:
                sequence, reason = neighbours.next(shot.name, self._shots.where)
            if len(looks) < 2:
                looks.append(self._shots.like_ids(shot, self.classes, self._predictions.void))
                if len(looks) == 2 and all(looks):
                    self._warn(looks[-1])
            yield LiveFrame(shot.name, sequence, reason, rgb, ids)
            self._shots.done(shot)

    def _read(self, read_array: Callable[[], Array]) -> Array:
        array = self._patience.wait_for(read_array)
        assert array is not None
        return array
