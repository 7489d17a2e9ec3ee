"""A frame against the frame before it, warped by optical flow; frames against labels; tracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import uqeval.maps.names as names
from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.contract import WHOLE
from uqeval.maps.names import INSIDE, TrackRules, of_tracks, track_columns
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Counts, Field, Flaws


@dataclass(frozen=True)
class PairCounts(Tally):
    """Pixels by class of frame t and of frame t-1 warped onto it (Varghese et al. 2020, eqs 1-3).

    ŷ_t(p) = y_{t-1}(floor(p + w(p) + ½)), w the flow of `flow` on frame t's grid. `mirror` compares
    on frame t-1's grid instead: the roles of the frames and of both flows are swapped. `void` is
    the id that is not counted; `occlusion` counts occluded pixels separately (needs flow both
    ways); `clamp`: pixels from outside the frame take the value at its border.

    A state has, as `kernels.warping.count_pair` says: `counts` [visible, occluded][here, warped,
    both][class], `still` [here, before, both][class] without a warp, `pixels` [all, counted, out of
    the frame, unknown flow, void, occluded], `squares` [warped, identity] of the photometric error
    (grey in [0, 1]), and `flow_length`, Σ|w| in pixels. `flow_median`, `flow_p99` and `flow_max`
    are quantiles of a pair's known |w| as float32, between ranks linear; of several pairs the
    largest, -inf of none. Without `lengths` the first two are not looked for, and -inf.
    """

    id: ClassVar[str] = "temporal"
    flow: str
    model: int
    classes: int
    void: int
    occlusion: bool = False
    clamp: bool = False
    mirror: bool = False
    lengths: bool = True

    @property
    def counts_void(self) -> bool:
        return self.view == WHOLE  # in a region, only its pixels are counted

    @property
    def inputs(self) -> tuple[str, ...]:
        flows = (names.flow(self.flow), names.flow_forward(self.flow))
        if self.mirror:
            flows = flows[::-1]
        return (*self._frames, *flows[: 1 + self.occlusion])

    @property
    def fields(self) -> dict[str, Field]:
        quantile = Field((1,), "float64", "max")
        return {
            "counts": Field((2, 3, self.classes), "int64"),
            "still": Field((3, self.classes), "int64"),
            "pixels": Field((6,), "int64"),
            "squares": Field((2,), "float64"),
            "flow_length": Field((1,), "float64"),
            "flow_median": quantile,
            "flow_p99": quantile,
            "flow_max": quantile,
        }

    def flaws(self, state: State) -> Flaws:
        counts, pixels = state["counts"].sum(axis=-3), state["pixels"]
        for frames in (counts, state["still"]):
            more = frames[..., 2:, :] > frames[..., :2, :]
            yield "more pixels of the same class in both frames than in one", more
        for part in (pixels, counts[..., :1, :].sum(axis=-1)):
            yield "more pixels counted than there are", part > pixels[..., :1]

    def pixels(self, state: State) -> Counts:
        return state["pixels"][..., 0]

    def update(self, state: State, maps: Maps) -> None:
        self.update_by_rows(state, maps, 1, map)

    def update_by_rows(
        self, state: State, maps: Maps, bands: int, run: Callable[..., Iterable[None]]
    ) -> None:
        """Update in bands of rows, which `run` maps in parallel; the same bits as `update`."""
        from uqeval.kernels.warping import count_pair, fold_rows

        *frames, flow = (maps[name] for name in self.inputs[:5])
        backward_flow = maps[self.inputs[-1]]  # without occlusion the flow itself, and not read
        outside = 0
        if INSIDE in maps:  # pixels of unknown flow have only these two counts
            outside = int(flow.shape[0] * flow.shape[1] - maps[INSIDE].sum())
            flow = np.where(maps[INSIDE][..., None], flow, flow.dtype.type(np.nan))
        height = flow.shape[0]
        sums = np.empty((height, 3))
        parts = [self.empty() for _ in range(bands)]

        def count(band: int) -> None:
            band_state = parts[band]
            count_pair(
                *frames, flow, backward_flow, self.occlusion, self.clamp, self.void,
                height * band // bands, height * (band + 1) // bands,
                band_state["counts"], band_state["still"], band_state["pixels"],
                band_state["flow_max"], sums,
            )  # fmt: skip

        list(run(count, range(bands)))
        for band_state in parts:
            self.merge(state, band_state)
        state["pixels"][[0, 3]] -= outside  # all, and those of unknown flow
        fold_rows(sums, state["squares"], state["flow_length"])
        if self.lengths:
            for name, value in zip(("flow_median", "flow_p99"), _quantiles(flow), strict=True):
                state[name][0] = max(state[name][0], value)

    @property
    def _frames(self) -> tuple[str, str, str, str]:
        """Return ids and grey images of the frame that is warped onto, and of the one that is
        warped.
        """
        ids = names.prediction(self.model), names.prediction_before(self.model)
        greys = names.GREY, names.GREY_BEFORE
        if self.mirror:
            ids, greys = ids[::-1], greys[::-1]
        return (*ids, *greys)


@dataclass(frozen=True)
class FrameCounts(Tally):
    """Pixels of frame t with a label, and of frame t-1, each [prediction, label, both][class].

    `now` is frame t, `before` frame t-1, which has labels only where it begins a run, so that no
    frame is counted twice. A void prediction on a labelled pixel is a miss.
    """

    id: ClassVar[str] = "frames"
    model: int
    classes: int
    void: int

    @property
    def inputs(self) -> tuple[str, ...]:
        ids = names.prediction(self.model), names.prediction_before(self.model)
        return (*ids, names.LABEL, names.LABEL_BEFORE)

    @property
    def fields(self) -> dict[str, Field]:
        per_class = Field((3, self.classes), "int64")
        return {"now": per_class, "before": per_class}

    def flaws(self, state: State) -> Flaws:
        for counts in state.values():
            more = counts[..., 2:, :] > counts[..., :2, :]
            yield "more right pixels than labelled or predicted ones", more

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.warping import count_labelled

        now, before, label, label_before = (maps[name] for name in self.inputs)
        count_labelled(now, label, self.void, state["now"])
        count_labelled(before, label_before, self.void, state["before"])


def _quantiles(flow: Array) -> tuple[float, float]:
    """Return median and 99th percentile of the known |w|; -inf of none.

    Exact, without sorting: the bits of a non-negative float32 order like the number, so one pass
    counts their high bits, and a second the low bits in the few bins that hold the wanted ranks.
    """
    from uqeval.kernels import warping

    coarse = np.zeros(1 << warping.COARSE_BITS, np.int64)
    lengths_of_pixels = np.empty(flow.shape[:2], np.int32)
    warping.count_lengths(flow, lengths_of_pixels, coarse)
    below = np.cumsum(coarse)
    last = int(below[-1]) - 1
    if last < 0:
        return -np.inf, -np.inf
    # Ranks (n - 1)/2 and 99(n - 1)/100 as fractions, so that no rounding moves them.
    quantile_ranks = [last // 2, 99 * last // 100]
    parts = [last % 2 / 2, 99 * last % 100 / 100]
    ranks = np.array([*quantile_ranks, *(min(r + 1, last) for r in quantile_ranks)])
    bins = np.searchsorted(below, ranks, "right")
    distinct_bins = np.unique(bins)
    slot = np.full(coarse.shape, -1, np.int8)
    slot[distinct_bins] = np.arange(distinct_bins.size)
    fine = np.zeros((distinct_bins.size, 1 << warping.FINE_BITS), np.int64)
    warping.count_lengths_finely(lengths_of_pixels, slot, fine)
    bits = [
        (int(b) << warping.FINE_BITS)
        + int(np.searchsorted(np.cumsum(fine[slot[b]]), rank - (below[b] - coarse[b]), "right"))
        for b, rank in zip(bins, ranks, strict=True)
    ]
    lengths = np.array(bits, np.int32).view(np.float32).astype(np.float64)
    lower, upper = lengths[:2], lengths[2:]
    median, p99 = lower + (upper - lower) * parts
    return float(median), float(p99)


@dataclass(frozen=True)
class TrackCounts(Tally):
    """The counts of `maps.names.track_columns` for one `model` along one `flow`.

    The item is a pair of frames; its map is the int64 [model, column] array that
    `maps.tracks.Tracker.step` returned, and a track is counted in the pair with which it ends.
    """

    id: ClassVar[str] = "tracks"
    carries_on: ClassVar[bool] = True
    flow: str
    model: int
    classes: int
    rules: TrackRules

    @property
    def inputs(self) -> tuple[str, ...]:
        return (of_tracks(self.flow, self.rules),)

    @property
    def fields(self) -> dict[str, Field]:
        return {
            name: Field((width,), "int64") for name, width in track_columns(self.classes).items()
        }

    def flaws(self, state: State) -> Flaws:
        yield "more consistent tracks than tracks", state["consistent"] > state["tracks"]
        yield "more unreliable pixels than pixels", state["unreliable"] > state["pixels"]

    def update(self, state: State, maps: Maps) -> None:
        (name,) = self.inputs
        row = maps[name][self.model]
        at = 0
        for values in state.values():
            values += row[at : at + values.size]
            at += values.size
