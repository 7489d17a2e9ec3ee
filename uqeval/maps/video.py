"""Maps of pairs of video frames: grey images, predicted ids, labels, and the flow between them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

import uqeval.maps.names as names_of
from uqeval.arrays import Array, Maps
from uqeval.errors import StoreError, UsageError
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.flow import Estimator, FlowCache, grey
from uqeval.maps.flow_method import flow_method
from uqeval.maps.frame_ids import Frame, FrameIds, OtherSize, SharedFrames
from uqeval.maps.names import id_dtype, rules_of, void_of
from uqeval.maps.tracks import Tracker
from uqeval.stores.video.image_folder import turned

if TYPE_CHECKING:
    from uqeval.stores.video.flow_files import Flows
    from uqeval.stores.video.frames import Frames
    from uqeval.stores.video.sequences import Pair

#: Seconds between checks whether the run has ended.
_PATIENCE = 0.1
#: Bytes per pixel of one direction of a flow, of a colour frame and of a grey frame.
_FLOW, _RGB, _GREY = 8, 3, 1
#: Temporary bytes per pixel of choosing seeds of tracks: images of derivatives.
_TRACKING = 100


class VideoSource(MapSource):
    """Maps [y, x] of pairs of neighbouring frames (t-1, t), by the names of `maps/names.py`.

    `grey`, `grey_before` uint8; `prediction:M`, `prediction_before:M` ids of model M, void as its
    dtype's largest value; `label`, and `label_before` of a frame t-1 that begins a run (void
    elsewhere, and where a frame has no label); `flow:METHOD` [y, x, 2] (float32, or float64 if
    stored so), on frame t's grid and pointing to t-1; `flow_forward:METHOD` the other way;
    `tracks:…` see `uqeval.maps.tracks`.

    Each frame is decoded once. `stored` are flows from files, by "flow" or "flow_forward".
    """

    kind = "video"
    samples = None

    def __init__(
        self,
        frames: Frames,
        frame_names: Sequence[str],
        pairs: Sequence[Pair],
        models: Sequence[FrameIds],
        *,
        labels: FrameIds | None = None,
        labelled: Sequence[bool] = (),
        stored: Mapping[str, Flows] | None = None,
        cache: FlowCache | None = None,
        classes: int,
    ) -> None:
        self.frames = frames
        self.frame_names = tuple(frame_names)
        self.pairs = tuple(pairs)
        self.models = tuple(models)
        self.labels = labels
        self.labelled = tuple(labelled)
        self.stored = dict(stored or {})
        self.cache = cache
        self.classes = classes
        self.names = tuple(frame_names[pair.after] for pair in pairs)
        self.where = frames.where
        self.wanted: frozenset[str] = frozenset()
        #: All maps that were ever wanted.
        self.requested: set[str] = set()
        #: Seconds of each method of flow, summed over threads.
        self.seconds: dict[str, float] = defaultdict(float)
        self._estimators: dict[str, Estimator] = {}
        self._trackers: dict[str, Tracker] = {}
        self._lock = threading.Lock()
        self.begin(range(len(self.pairs)))

    # ---- what there is

    def size(self, item: int) -> tuple[int, int]:
        return self.frames.size(self.pairs[item].after)

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns.

        Raises `UsageError` for a flow that cannot be computed.
        """
        self.wanted = frozenset(names)
        self.requested |= self.wanted
        for name in self.wanted:
            if name.startswith(("flow:", "flow_forward:")):
                self._want_flow(name)
            elif name.startswith("tracks:"):
                rules, method = rules_of(name)
                self._want_flow(names_of.flow(method))
                self._want_flow(names_of.flow_forward(method))
                self._trackers[name] = Tracker(
                    rules, len(self.models), self.classes, void_of(self.classes)
                )

    def reads(self, name: str) -> bool:
        """Return whether `labels`, `flow` or `flow_forward` are read for any map that was wanted
        until now; true before maps are wanted."""
        if not self.requested:
            return True
        if name == "labels":
            return "label" in self.requested
        return f"{name}:file" in names_of.flows_of(self.requested)

    def _want_flow(self, name: str) -> None:
        direction, _, method = name.partition(":")
        if method != "file":
            if method not in self._estimators:
                self._estimators[method] = Estimator(flow_method(method))
        elif direction not in self.stored:
            option = "--flow-path" if direction == "flow" else "--flow-forward-path"
            grid = "t's grid to t-1" if direction == "flow" else "t-1's grid to t"
            raise UsageError(
                f"{self.where}: the flow from frame {grid} is needed; give it as {option}, or as "
                f"an array `{direction}` [N-1, H, W, 2] of the store."
            )

    def records(self) -> dict[str, dict[str, Any]]:
        """Return the record of each wanted flow in a report, by id."""
        methods = {method: estimator.record() for method, estimator in self._estimators.items()}
        if "flow:file" in self.wanted or "flow_forward:file" in self.wanted:
            stored_paths = {direction: flows.where for direction, flows in self.stored.items()}
            methods["file"] = {"name": "file", "id": "file", **stored_paths}
        return methods

    def chain_ends(self) -> list[int]:
        """Return the ends of sequences: states of tracks depend on earlier pairs of the
        sequence.
        """
        return [i + 1 for i, pair in enumerate(self.pairs) if pair.last]

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a pair takes: two frames, flows, and estimating one of
        them.
        """
        height, width = self.size(batch[0])
        pixels = height * width
        tracked = bool(self._trackers)
        ids = np.dtype(id_dtype(self.classes)).itemsize
        frame = _GREY + _RGB + ids * (len(self.models) + (self.labels is not None))
        flows = {n for n in self.wanted if n.startswith(("flow:", "flow_forward:"))}
        flow_bytes = max([_FLOW, *(2 * stored.itemsize for stored in self.stored.values())])
        maps = 2 * frame + flow_bytes * (len(flows) + 2 * tracked) + _TRACKING * tracked
        work = max((e.working_bytes(pixels) for e in self._estimators.values()), default=0)
        return pixels * maps + work

    # ---- what it gives

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the wanted maps of a pair. Raises `StoreError` or `DataError` naming frame and
        store.
        """
        (item,) = batch
        pair = self.pairs[item]
        before, after = self._shared.take(pair.before), self._shared.take(pair.after)
        heartbeat(after.grey.size * _RGB + sum(ids.nbytes for ids in after.ids))
        if before.grey.shape != after.grey.shape:
            raise StoreError(
                f"{self.frames.where_of(pair.after)} is {_size(after.grey)}, the frame before it "
                f"{_size(before.grey)} (height×width); the frames of a sequence must have one size."
            )
        flows = self._flows(item, before, after, heartbeat)
        maps: Maps = {}
        for name in self.wanted - set(self._trackers):
            kind, _, which = name.partition(":")
            if kind == "prediction":
                maps[name] = after.ids[int(which)]
            elif kind == "prediction_before":
                maps[name] = before.ids[int(which)]
            elif kind in ("flow", "flow_forward"):
                maps[name] = flows[name]
            elif kind == "label":
                maps[name] = self._label(after)
            elif kind == "label_before":
                maps[name] = self._label(before if pair.first else None, before.grey.shape)
            else:
                maps[name] = after.grey if kind == "grey" else before.grey
        if self._trackers:
            with self._order.turn(item, lambda: heartbeat(0)):
                for name, tracker in self._trackers.items():
                    _, method = rules_of(name)
                    assert before.rgb is not None
                    maps[name] = tracker.step(
                        before.ids,
                        after.ids,
                        before.rgb,
                        flows[names_of.flow_forward(method)],
                        flows[names_of.flow(method)],
                        pair.first,
                        pair.last,
                    )
        return [maps]

    def begin(self, items: range) -> None:
        """Start to read these pairs in order, each once; frames are kept only for them."""
        uses = [0] * len(self.frames)
        for pair in self.pairs[items.start : items.stop]:
            uses[pair.before] += 1
            uses[pair.after] += 1
        self._shared = SharedFrames(self._load, uses, self.frames.sequential)
        self._order = ItemOrder(items.start)

    def skip(self, batch: range) -> None:
        """Leave out a pair in this pass, because an interrupted run counted it already."""
        for item in batch:
            self._shared.skip(self.pairs[item].before)
            self._shared.skip(self.pairs[item].after)

    def _flows(
        self, item: int, before: Frame, after: Frame, heartbeat: Heartbeat
    ) -> dict[str, Array]:
        flows = {}
        for name in sorted(names_of.flows_of(self.wanted)):
            direction, _, method = name.partition(":")
            if method == "file":
                flows[name] = self._stored_flow(direction, item)
                heartbeat(flows[name].nbytes)
                continue
            images = (after.grey, before.grey)
            if direction == "flow_forward":
                images = (before.grey, after.grey)
            estimator = self._estimators[method]
            began = time.perf_counter()
            if self.cache is not None:
                flows[name] = self.cache.get(estimator, *images)
            else:
                flows[name] = estimator(*images)
            with self._lock:
                self.seconds[method] += time.perf_counter() - began
            heartbeat(0)
        return flows

    def _stored_flow(self, direction: str, item: int) -> Array:
        flows, size = self.stored[direction], self.size(item)
        flow = flows.read(item)
        if flow.shape != (*size, 2):
            raise StoreError(
                f"{flows.where_of(item)}: a flow of {flow.shape[0]}×{flow.shape[1]}, but the "
                f"frames are {size[0]}×{size[1]} (height×width). Scale the flow, and its vectors "
                "with it, to the frames."
            )
        return flow

    def _label(self, frame: Frame | None, size: tuple[int, ...] = ()) -> Array:
        if frame is not None and frame.label is not None:
            return frame.label
        shape = size if frame is None else frame.grey.shape
        return np.full(shape, void_of(self.classes), id_dtype(self.classes))

    def _load(self, index: int) -> Frame:
        rgb = self.frames.read(index)
        size = rgb.shape[:2]
        label = None
        try:
            if self.labels is not None and self.labelled[index] and "label" in self.wanted:
                label = self.labels.read(index, size)
            ids = tuple(model.read(index, size) for model in self.models)
        except OtherSize as error:
            cause = turned(self.frames, index, 5)  # height and width are swapped
            if cause:
                raise StoreError(f"{error.problem} {cause}") from None
            raise
        return Frame(rgb if self._trackers else None, grey(rgb), ids, label)


def _size(image: Array) -> str:
    return f"{image.shape[0]}×{image.shape[1]}"


class ItemOrder:
    """Lets threads process items in order: `first`, `first` + 1, …

    Items are assigned in order, so the thread that others wait for is always running. If it fails,
    `check` raises in the threads that wait.
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, item: int, check: Callable[[], None]) -> Iterator[None]:
        """Wait until all items before `item` are done; at the end, release the next item.

        `check` is called while waiting, and raises to stop.
        """
        with self._moved:
            while self._next != item:
                self._moved.wait(_PATIENCE)
                check()
        yield
        with self._moved:
            self._next = item + 1
            self._moved.notify_all()
