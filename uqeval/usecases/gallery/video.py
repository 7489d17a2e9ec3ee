"""Pictures of pairs of video frames, which show where predictions flicker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import UsageError, all_listed
from uqeval.keys import family_of
from uqeval.maps.flow_method import flow_method
from uqeval.maps.names import void_of
from uqeval.report.page.gallery import Meanings, Picture
from uqeval.usecases.gallery.paint import RIGHT, VOID, WRONG, colours, css, painted

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.maps.video import VideoSource
    from uqeval.records.report import Report


_OF_CHANGES = (
    (css(VOID), "void, or from outside the frame"), (css(RIGHT), "unchanged"),
    (css(WRONG), "changed"),
)  # fmt: skip

#: Longer flow is unknown, as in `uqeval.kernels.warping`.
_FARTHEST = 1e9


class Pairs:
    """Pictures of a pair of frames: both frames, and for each model the warped prediction of the
    previous frame, the prediction of the frame, and where the two differ.

    Reads only the requested frames; the source would keep all frames between them. Raises
    `UsageError` if the predictions are of other models than the report.
    """

    def __init__(self, report: Report, inputs: Inputs, model: str | None) -> None:
        assert inputs.video is not None
        self.source: VideoSource = inputs.source  # type: ignore[assignment]
        self._before = inputs.video.before
        # The report has the classes that occur where their number is unknown.
        rows = [
            row
            for key, record in report.results.items() if family_of(key) == "temporal"
            for row in record.get("per_class") or ()
        ]  # fmt: skip
        self._classes = dict(sorted((row["class"], str(row["name"])) for row in rows))
        self._void = void_of(inputs.source.classes)
        self.palette = np.full((self._void + 1, 3), VOID, np.uint8)
        palette = colours(max(self._classes, default=0) + 1)
        self.palette[: len(palette)] = palette
        positions = {name: i for i, name in enumerate(inputs.video.models)}
        variants = {k: o for k, o in report.settings.items() if family_of(k) == "temporal"}
        models = list(dict.fromkeys(str(variant["model"]) for variant in variants.values()))
        if model is not None and model not in models:
            raise UsageError(
                f"--model {model}: expected a model of the report: {all_listed(models)}."
            )
        selected_models = models if model is None else [model]
        if missing := [name for name in selected_models if name not in positions]:
            plural = "s" if len(selected_models) > 1 else ""
            choose = f", or choose one with --model: {all_listed(models)}" if plural else ""
            raise UsageError(
                f"the report has the model{plural} {all_listed(map(repr, selected_models))}; "
                f"the given predictions are of {all_listed(positions)}, not of "
                f"{all_listed(missing)}. Give the predictions of the report{choose}."
            )
        #: Keys of results, with the place of their model and their settings.
        self.variants = [
            (key, positions[variant["model"]], variant)
            for key, variant in variants.items()
            if variant["model"] in selected_models
        ]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the colours of the classes and of changes."""
        return [*self._of_classes[:40], *_OF_CHANGES]

    @property
    def _of_classes(self) -> Meanings:
        """Return the colours of the classes."""
        return tuple((css(tuple(self.palette[c].tolist())), n) for c, n in self._classes.items())

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one pair."""
        pair, name = self.source.pairs[item], self.source.names[item]
        frames = [self.source.frames.read(i) for i in (pair.before, pair.after)]
        titled_frames = zip(
            ("frame t−1", "frame t"), frames, (self._before[item], name), strict=True
        )
        result = [painted(title, frame, f"Frame {of}.") for title, frame, of in titled_frames]
        for _, model, settings in self.variants:
            ids = [
                self.source.models[model].read(i, frames[1].shape[:2])
                for i in (pair.before, pair.after)
            ]
            flow = self._flow(item, settings, frames)
            group = self.group(settings)
            result += [replace(p, group=group) for p in self._compared(ids, settings, flow, name)]
        return result

    def _compared(
        self, ids: list[Array], settings: dict[str, Any], flow: Array | None, name: str
    ) -> Iterator[Picture]:
        """Return the warped prediction, the other one, and a mask of their differences."""
        times = ["t−1", "t"]
        if settings["grid"] == "previous":
            times, ids = times[::-1], ids[::-1]
        previous, current = ids
        if flow is not None:
            previous = warped(previous, flow, self._void, settings["out_of_frame"] == "clamp")
        moved = "" if flow is None else ", moved by the flow"
        meanings = (*self._of_classes, _OF_CHANGES[0])
        yield painted(f"prediction {times[0]}{moved}", self.palette[previous],
                      f"Predicted classes of {times[0]}{moved}, {name}.", meanings)  # fmt: skip
        yield painted(f"prediction {times[1]}", self.palette[current],
                      f"Predicted classes of {times[1]}, {name}.", meanings)  # fmt: skip
        if flow is None:
            return
        unknown = (previous == self._void) | (current == self._void)
        changed = (previous != current) & ~unknown
        share = changed.sum() / max(1, (~unknown).sum())
        picture = np.where(changed[..., None], WRONG, RIGHT).astype(np.uint8)
        picture[unknown] = VOID
        yield painted(f"changed: {share:.1%}", picture,
                      f"Where the two differ, {name}: {share:.1%} of the pixels.",
                      _OF_CHANGES)  # fmt: skip

    def group(self, settings: dict[str, Any]) -> str:
        """Return the label of a variant: its model, its flow."""
        parts = [
            str(settings[field])
            for field in ("model", "flow")
            if field == "model"
            or len({str(other_settings[field]) for _, _, other_settings in self.variants}) > 1
        ]
        return ", ".join(parts)

    def _flow(self, item: int, settings: dict[str, Any], frames: list[Array]) -> Array | None:
        """Return the flow on the grid of the prediction that is not warped; None if it is not
        given.
        """
        from uqeval.maps.flow import Estimator, grey

        is_backward = settings["grid"] == "previous"
        if settings["flow"] == "file":
            stored = self.source.stored.get("flow_forward" if is_backward else "flow")
            return None if stored is None else stored.read(item)
        before, after = map(grey, frames)
        estimate = Estimator(flow_method(settings["flow"], settings.get("flow_scale", 1.0)))
        return estimate(before, after) if is_backward else estimate(after, before)


def warped(ids: Array, flow: Array, void: int, clamp: bool) -> Array:
    """Return ids(⌊p + w(p) + ½⌋) for flow w [y, x, (dx, dy)]; void where w is unknown. Pixels from
    outside the frame are void, or with `clamp` those of the border."""
    height, width = ids.shape
    y, x = np.indices(ids.shape)
    lengths = np.hypot(*np.moveaxis(flow.astype(np.float64), -1, 0))
    is_known = lengths <= _FARTHEST  # NaN is not
    w = np.where(is_known[..., None], flow, 0).astype(np.float64)
    i, j = (np.floor(at + w[..., k] + 0.5).astype(np.int64) for k, at in enumerate((x, y)))
    border_i, border_j = np.clip(i, 0, width - 1), np.clip(j, 0, height - 1)
    is_inside = is_known if clamp else is_known & (i == border_i) & (j == border_j)
    warped_ids = np.full(ids.shape, void, ids.dtype)
    warped_ids[is_inside] = ids[border_j[is_inside], border_i[is_inside]]
    return warped_ids
