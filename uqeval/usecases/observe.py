"""Temporal consistency frame by frame, from past frames only, in constant memory."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import uqeval.maps.names as names_of
from uqeval.argument_types import checks_types
from uqeval.arrays import Maps, State, np
from uqeval.engine.options import usable_cpus
from uqeval.errors import DataError, UqevalError, UsageError, begins_with
from uqeval.inputs.ids import UNKNOWN_CLASSES
from uqeval.maps.flow_method import flow_method
from uqeval.maps.labels import label_map
from uqeval.maps.names import void_of
from uqeval.metrics.temporal_means import pair_record
from uqeval.metrics.temporal_scores import is_cut
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.stores.array import Store
from uqeval.stores.class_ids import ASSUMED_VOID
from uqeval.stores.described import ordered, refuse_attributes_of_ids
from uqeval.stores.orders import refuse_other_orders
from uqeval.threads import Threads

#: Number of earlier pairs whose median photometric error detects a scene cut.
_MEMORY = 50


@dataclass(frozen=True)
class Observation:
    """Comparison of a frame with the previous one; the fields are those of an item of `uqeval tc`.

    `tc`: mean IoU of the prediction and the warped previous one (Varghese et al. 2020, eq. 3),
    `tc_no_warp` without the warp, `tc_visible` without occluded pixels (if requested).
    `pixel_agreement` and `coverage`: fractions of equal and of compared pixels. `mse_warp` and
    `mse_identity`: mean squared difference of the images (grey in [0, 1]) with and without the
    warp. Undefined values are None; `reason` explains an undefined `tc`. `cut`: the frames look
    like different scenes, so TC does not describe the model. `alarm`: whether TC is below the
    limit; None without a limit or a TC. `latency_ms`: duration of the update in milliseconds.
    """

    name: str
    tc: float | None
    reason: str | None
    tc_no_warp: float | None
    tc_visible: float | None
    pixel_agreement: float | None
    coverage: float | None
    mse_warp: float | None
    mse_identity: float | None
    cut: bool
    alarm: bool | None
    latency_ms: float


class TemporalObserver:
    """TC_t of Varghese et al. 2020 frame by frame, as `uqeval tc` with the same flow::

        observer = TemporalObserver(classes=19, alarm=0.6)
        for clip in clips:
            observer.reset()  # before the first frame of each clip
            for frame, prediction in clip:
                if observer.update(frame, prediction).alarm: ...

    `flow`, `flow_scale`, `occlusion`: as in `TemporalSettings`, except `flow="file"`; `dis:fast` is
    a fast method that is still accurate. `classes`: the number of classes; by default ids are 0 to
    254. `ignore_index`: the void id (255). `alarm`: the TC below which a frame raises an alarm.
    Keeps the previous frame and 50 numbers. Uses all CPUs. Each stream of frames needs an observer:
    frames of several threads have no order, so a call during another one is refused.

    Raises `UsageError` for invalid settings.
    """

    @checks_types()
    def __init__(
        self,
        flow: str = "dis:fast",
        *,
        flow_scale: float = 1.0,
        classes: int | None = None,
        ignore_index: int | None = None,
        alarm: float | None = None,
        occlusion: str = "none",
    ) -> None:
        from uqeval.maps.flow import Estimator
        from uqeval.tallies.temporal import PairCounts

        if classes is not None and not 1 <= classes <= 65535:
            raise UsageError(f"--classes {classes}; expected 1 to 65535.")
        if alarm is not None and not 0 <= alarm <= 1:
            raise UsageError(f"--alarm {alarm}; expected 0 to 1, a TC.")
        self.settings = TemporalSettings(flow=flow, flow_scale=flow_scale, occlusion=occlusion)
        self.classes = classes or UNKNOWN_CLASSES
        self.ignore_index = ASSUMED_VOID if ignore_index is None else ignore_index
        self.alarm = alarm
        method = self.settings.method.id
        self._busy = Lock()
        self._estimator = Estimator(flow_method(method))
        self._flow = names_of.flow(method)
        self._forward = names_of.flow_forward(method)
        self._tally = PairCounts(
            method, 0, self.classes, void_of(self.classes),
            occlusion=occlusion == "fb", lengths=False,
        )  # fmt: skip
        self._names = tuple(map(str, range(self.classes)))
        self._threads = Threads(usable_cpus(), "uqeval-observer")
        self._frames = 0
        self._warm()
        self.reset()

    @checks_types()
    def reset(self, reason: str = "it is the first frame of its sequence") -> None:
        """Forget the previous frame and the sequence; the next frame has no TC.

        `reason`: the reason in its observation.
        """
        with self._alone():
            self._before: Maps | None = None
            self._why = reason
            self._errors: deque[float] = deque(maxlen=_MEMORY)

    @checks_types("name")
    def update(self, frame: Any, prediction: Any, *, name: str | None = None) -> Observation:
        """Compare a frame with the previous one. The caller may reuse both arrays afterwards.

        `frame`: uint8 [y, x, 3], red, green and blue; `prediction`: integer class ids [y, x];
        `name`: its name in the observation and messages (default: its number).

        Raises `DataError` with the frame's name for arrays of another form, for ids that are
        neither class nor void, and for a size that changes without a `reset`. The observer stays
        usable; the next frame has no TC. Raises `UsageError` while another thread
        uses the observer.
        """
        with self._alone():
            return self._updated(frame, prediction, name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise `UsageError` if another thread is in here."""
        if not self._busy.acquire(blocking=False):
            raise UsageError(
                "another thread uses this TemporalObserver. Frames of several threads have no "
                "order, and each is compared with the one before. Make one observer for each "
                "stream, and call it from one thread at a time."
            )
        try:
            yield
        finally:
            self._busy.release()

    def _updated(self, frame: Any, prediction: Any, name: str | None) -> Observation:
        began = time.perf_counter()
        name = str(self._frames) if name is None else name
        self._frames += 1
        try:
            maps = self._taken(frame, prediction, name)
            record = self._compared(maps)
        except UqevalError as error:
            self._before, self._why = None, f"the frame before it, {name}, was refused"
            where, message = f"frame {name}", str(error)
            if not begins_with(message, where):
                message = f"{where}: {message}"
            raise DataError(message) from error
        reason = None
        if record is None:
            record, reason = {}, self._why
        tc, squares = record.get("tc"), record.get("mse_warp")
        usual = statistics.median(self._errors or [0.0])
        is_cut_here = is_cut(squares, record.get("mse_identity"), usual)
        if squares is not None:
            self._errors.append(squares)
        self._before = maps
        return Observation(
            name=name,
            tc=tc,
            reason=reason or record.get("tc_reason"),
            tc_no_warp=record.get("tc_no_warp"),
            tc_visible=record.get("tc_visible"),
            pixel_agreement=record.get("pixel_agreement"),
            coverage=record.get("coverage"),
            mse_warp=squares,
            mse_identity=record.get("mse_identity"),
            cut=is_cut_here,
            alarm=None if self.alarm is None or tc is None else tc < self.alarm,
            latency_ms=1e3 * (time.perf_counter() - began),
        )

    def _warm(self) -> None:
        """Compile the kernels, so that the first frames are not slow."""
        ids = label_map(np.zeros((2, 2), np.uint8), self.classes, self.ignore_index, "", (2, 2))
        grey, flow = np.zeros((2, 2), np.uint8), np.zeros((2, 2, 2), np.float32)
        maps: Maps = {self._flow: flow, self._forward: flow, names_of.GREY: grey}
        maps |= {names_of.GREY_BEFORE: grey, names_of.prediction(0): ids}
        self._count(maps | {names_of.prediction_before(0): ids})

    def _taken(self, frame: Any, prediction: Any, name: str) -> Maps:
        """Return checked copies of the maps of one frame."""
        from uqeval.maps.flow import grey

        where = f"frame {name}"
        arrays = {
            where: ordered(frame, where, [("y", "x", "class")]),
            (of_prediction := f"{where}, prediction"): ordered(
                prediction, of_prediction, [("y", "x")]
            ),
        }
        refuse_other_orders(
            Store(path, {}, coordinates=own.coordinates) for path, own in arrays.items()
        )
        frame, prediction = (own.values for own in arrays.values())
        if frame.ndim != 3 or frame.shape[2] != 3 or frame.dtype != np.uint8 or not frame.size:
            raise DataError(
                f"{where} has the shape {frame.shape} of {frame.dtype}; expected uint8 "
                "[height, width, 3], red, green and blue."
            )
        size = frame.shape[:2]
        if prediction.shape != size:
            raise DataError(
                f"{where}: the prediction has the shape {prediction.shape}, the frame is "
                f"{_size_text(size)} (height×width); expected one id per pixel."
            )
        if (own := arrays[of_prediction]).attributes:
            refuse_attributes_of_ids(
                own, self.ignore_index, of_prediction, of="the observer", to="TemporalObserver"
            )
        if self._before is not None and (was := self._before["grey"].shape) != size:
            raise DataError(
                f"{where} is {_size_text(size)}, the frame before it {_size_text(was)} "
                "(height×width); the frames of a sequence must have one size. A new sequence "
                "begins with reset(), or in `uqeval observe` with frames of another name, such as "
                "b_000."
            )
        ids = label_map(
            prediction, self.classes, self.ignore_index, where, (size[0], size[1]),
            noun="predictions",
        )  # fmt: skip
        return {"grey": grey(np.ascontiguousarray(frame)), "ids": ids}

    def _compared(self, current_maps: Maps) -> dict[str, Any] | None:
        """Return the scores of a frame against the previous one; None for the first."""
        before = self._before
        if before is None:
            return None
        maps = {
            names_of.prediction(0): current_maps["ids"],
            names_of.prediction_before(0): before["ids"],
            names_of.GREY: current_maps["grey"],
            names_of.GREY_BEFORE: before["grey"],
            self._flow: self._estimator(current_maps["grey"], before["grey"]),
        }
        if self._forward in self._tally.inputs:
            maps[self._forward] = self._estimator(before["grey"], current_maps["grey"])
        return pair_record(self._count(maps), self.settings, self._names)

    def _count(self, maps: Maps) -> State:
        state = self._tally.empty()
        self._tally.update_by_rows(state, maps, self._threads.count, self._threads.map)
        return state


def _size_text(size: Sequence[int]) -> str:
    return f"{size[0]}×{size[1]}"
