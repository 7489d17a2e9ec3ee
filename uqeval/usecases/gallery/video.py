"""Pictures of pairs of video frames: what flickers, beside what only moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.errors import UsageError, cut
from uqeval.keys import family_of
from uqeval.maps.names import void_of
from uqeval.report.gallery import Picture
from uqeval.usecases.gallery.paint import RIGHT, VOID, WRONG, colours, css, painted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.inputs import Inputs
    from uqeval.maps.video import VideoSource
    from uqeval.report import Report


class Pairs:
    """Pictures of two frames: both frames; of each model its prediction of the one, moved along by
    the flow, its prediction of the other, and where they differ.

    Frames are read one by one as they are asked for, and not through the source, which would keep
    those between. Raises `UsageError` where the predictions are of other models than the report.
    """

    def __init__(
        self, report: Report, inputs: Inputs, images: dict[str, Path], model: str | None = None
    ) -> None:
        assert inputs.video is not None
        self._source: VideoSource = inputs.source  # type: ignore[assignment]
        self._before = inputs.video.before
        # Where nobody says how many classes there are, those that occur are in the report.
        rows = [
            row
            for key, record in report.results.items() if family_of(key) == "temporal"
            for row in record.get("per_class") or ()
        ]  # fmt: skip
        self._classes = dict(sorted((row["class"], str(row["name"])) for row in rows))
        self._void = void_of(inputs.source.classes)
        self._palette = np.full((self._void + 1, 3), VOID, np.uint8)
        known = colours(max(self._classes, default=0) + 1)
        self._palette[: len(known)] = known
        places = {name: i for i, name in enumerate(inputs.video.models)}
        variants = [o for k, o in report.settings.items() if family_of(k) == "temporal"]
        models = list(dict.fromkeys(str(own["model"]) for own in variants))
        if model is not None and model not in models:
            raise UsageError(f"--model {model}: the report is of {cut(', '.join(models))}.")
        shown = models if model is None else [model]
        if lacking := [name for name in shown if name not in places]:
            several = "s" if len(shown) > 1 else ""
            choose = f", or choose one with --model: {cut(', '.join(models))}" if several else ""
            raise UsageError(
                f"the report is of the model{several} {cut(', '.join(map(repr, shown)))}; the "
                "given "
                f"predictions are of {cut(', '.join(places))}, not of {cut(', '.join(lacking))}. "
                f"Give the predictions that it was made of{choose}."
            )
        self._variants = [(places[own["model"]], own) for own in variants if own["model"] in shown]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The classes' colours, and those of changes."""
        named = [(css(tuple(self._palette[c].tolist())), n) for c, n in self._classes.items()]
        return [
            *named[:40], (css(VOID), "void, or from outside the frame"), (css(RIGHT), "unchanged"),
            (css(WRONG), "changed"),
        ]  # fmt: skip

    def pictures(self, item: int) -> list[Picture]:
        """The pictures of one pair."""
        pair, name = self._source.pairs[item], self._source.names[item]
        frames = [self._source.frames.read(i) for i in (pair.before, pair.after)]
        named = zip(("frame t−1", "frame t"), frames, (self._before[item], name), strict=True)
        found = [painted(title, frame, f"Frame {of}.") for title, frame, of in named]
        for model, own in self._variants:
            ids = [
                self._source.models[model].read(i, frames[1].shape[:2])
                for i in (pair.before, pair.after)
            ]
            flow = self._flow(item, own, frames)
            group = self._group(own)
            found += [replace(p, group=group) for p in self._compared(ids, own, flow, name)]
        return found

    def _compared(
        self, ids: list[NDArray[Any]], own: dict[str, Any], flow: NDArray[Any] | None, name: str
    ) -> Iterator[Picture]:
        """The prediction that is moved, the other, and where they differ."""
        times = ["t−1", "t"]
        if own["grid"] == "previous":
            times, ids = times[::-1], ids[::-1]
        there, here = ids
        if flow is not None:
            there = warped(there, flow, self._void)
        moved = "" if flow is None else ", moved by the flow"
        yield painted(f"prediction {times[0]}{moved}", self._palette[there],
                      f"Predicted classes of {times[0]}{moved}, {name}.")  # fmt: skip
        yield painted(f"prediction {times[1]}", self._palette[here],
                      f"Predicted classes of {times[1]}, {name}.")  # fmt: skip
        if flow is None:
            return
        unknown = (there == self._void) | (here == self._void)
        changed = (there != here) & ~unknown
        share = changed.sum() / max(1, (~unknown).sum())
        drawn = np.where(changed[..., None], WRONG, RIGHT).astype(np.uint8)
        drawn[unknown] = VOID
        yield painted(f"changed: {share:.1%}", drawn,
                      f"Where the two differ, {name}: {share:.1%} of the pixels.")  # fmt: skip

    def _group(self, own: dict[str, Any]) -> str:
        """What tells a variant from the others: its model, its flow."""
        told = [
            str(own[field])
            for field in ("model", "flow")
            if field == "model" or len({str(other[field]) for _, other in self._variants}) > 1
        ]
        return ", ".join(told)

    def _flow(
        self, item: int, own: dict[str, Any], frames: list[NDArray[Any]]
    ) -> NDArray[Any] | None:
        """The flow on the grid of the prediction that is not moved; None where it is not given."""
        from uqeval.maps.flow import Estimator, grey
        from uqeval.maps.flow_method import flow_method

        back = own["grid"] == "previous"
        if own["flow"] == "file":
            stored = self._source.stored.get("flow_forward" if back else "flow")
            return None if stored is None else stored.read(item)
        before, after = map(grey, frames)
        estimate = Estimator(flow_method(own["flow"], own.get("flow_scale", 1.0)))
        return estimate(before, after) if back else estimate(after, before)


def warped(ids: NDArray[Any], flow: NDArray[Any], void: int) -> NDArray[Any]:
    """ids(⌊p + w(p) + ½⌋) for flow w [y, x, (dx, dy)]; void where that is unknown or outside."""
    height, width = ids.shape
    y, x = np.indices(ids.shape)
    known = np.isfinite(flow).all(axis=-1)
    w = np.where(known[..., None], flow, 0).astype(np.float64)
    i, j = np.floor(x + w[..., 0] + 0.5), np.floor(y + w[..., 1] + 0.5)
    inside = known & (i >= 0) & (i < width) & (j >= 0) & (j < height)
    found = np.full(ids.shape, void, ids.dtype)
    found[inside] = ids[j[inside].astype(int), i[inside].astype(int)]
    return found
