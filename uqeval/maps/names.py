"""The names of maps, and the uncertainties among them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import astuple, dataclass

from uqeval.arrays import Array, np
from uqeval.errors import UsageError
from uqeval.stores.map_names import COMPUTED as COMPUTED
from uqeval.stores.map_names import OF_LABELS as OF_LABELS
from uqeval.stores.map_names import UNCERTAINTIES as UNCERTAINTIES


@dataclass(frozen=True)
class Betas:
    """Inverse temperatures β: lowest, lowest + step …, or doubling from lowest with a step of 0."""

    lowest: float
    step: float = 0.0
    count: int = 1

    def values(self) -> list[float]:
        """Return the β, ascending."""
        if self.step:
            return [self.lowest + j * self.step for j in range(self.count)]
        return [self.lowest * 2.0**j for j in range(self.count)]


#: Undefined for a single sample.
OF_SEVERAL_SAMPLES = frozenset({"mutual_information", "variation_ratio", "std"})
#: Entropies, which `log_base` rescales.
IN_NATS = frozenset({"entropy", "mutual_information", "expected_entropy"})
#: Those that are computed from `mean_probs`, if they are not stored: without labels, and with them.
OF_MEAN_ALONE = frozenset({"confidence", "entropy"})
OF_MEAN_AND_LABEL = frozenset(OF_LABELS) - {"label"}
_ANNOTATIONS, _CHOICES = "annotations:", "choices:"
#: The names in a store of maps that have another name in it.
_STORED = {"prediction": "predictions", "label": "labels"}
#: The name of `choices_of` in a store.
SAMPLE_PREDICTIONS = "sample_predictions"
#: Maps of the true class or of the error: they are unknown at prediction time.
NO_UNCERTAINTY = frozenset(
    {"prediction", "predictions", "labels", "mean_probs", SAMPLE_PREDICTIONS, *OF_LABELS}
)


def form_of(
    name: str,
    classes: int,
    size: tuple[int, ...],
    kind: str = "classes",
    float32: Collection[str] = (),
) -> tuple[tuple[int, ...], str]:
    """Return the shape and dtype of a map of an item of this size: [y, x], or its pixels.

    Numbers of a regression are float64, because errors, variances and intervals are computed from
    them. Exceptions are the maps that a source lists as `float32`, and rank keys.
    """
    if name in float32:
        return size, "float32"
    if name.startswith(OF_REGIONS):
        forms = {BOUNDARY: "int32", before_of(BOUNDARY): "int32", DEPTH: "float64"}
        return size, forms.get(name, "uint16")
    name = name.removeprefix(of_reference("")).removeprefix(OF_CLASSES)
    ids = id_dtype(classes)
    if kind == "regression" and name == TARGET_COUNTS:
        return (10,), "float64"
    if kind == "regression" and name not in ("label", ERROR_KEY) and not is_lambda(name):
        return size, "float64"
    if planes := planes_of_ids(name):
        return (planes, *size), ids
    dtypes = {"prediction": ids, "label": ids, "label_rank": "uint16"}
    return (classes, *size) if name == "mean_probs" else size, dtypes.get(name, "float32")


def annotations_of(annotators: int) -> str:
    """Return the name of the labels [annotator, y, x] of several annotators."""
    return f"{_ANNOTATIONS}{annotators}"


def choices_of(samples: int) -> str:
    """Return the name of the likeliest class of each sample [sample, y, x]."""
    return f"{_CHOICES}{samples}"


def is_annotations(name: str) -> bool:
    """Return whether a map is one of `annotations_of`."""
    return name.startswith(_ANNOTATIONS)


def is_choices(name: str) -> bool:
    """Return whether a map is one of `choices_of`."""
    return name.startswith(_CHOICES)


def stored_name(name: str) -> str:
    """Return the name of a map in a store."""
    if is_choices(name):
        return SAMPLE_PREDICTIONS
    return "labels" if is_annotations(name) else _STORED.get(name, name)


def planes_of_ids(name: str) -> int:
    """Return how many planes of ids a map has: of annotators or of samples, else 0."""
    return int(name.rpartition(":")[2]) if is_annotations(name) or is_choices(name) else 0


def of_reference(name: str) -> str:
    """Return the name of a map of the reference."""
    return f"reference/{name}"


def of_subset(subset: int, name: str) -> str:
    """Return the name of a map of one subset of the samples."""
    return f"{subset}/{name}"


#: The prefix of maps of classes, if `label` and `prediction` are sets of items.
OF_CLASSES = "class:"
#: If `label` has only the labels of a region: the labels of all pixels, the smallest share of its
#: pixels with which a patch belongs to the region, and the mask of the region.
UNMASKED_LABEL, REGION_SHARE, INSIDE = "label:unmasked", "region:share", "region:inside"
#: Maps that regions read: the squared distance to another class, and the depth. All such maps
#: begin with `OF_REGIONS`.
OF_REGIONS = "region:"
BOUNDARY, DEPTH = "region:boundary", "region:depth"
_BEFORE = "region:before:"


def ids_of_map(name: str) -> str:
    """Return the name of the map of ids `name` of a region."""
    return f"region:map:{name}"


#: The largest id of a map of regions; one more is void.
MOST_ID = 65534


def map_and_id(text: str) -> tuple[str, int | None]:
    """Return the name or path of the map of ids in `map:NAME` or `map:NAME:ID`, and the id."""
    name, colon, number = text.strip().removeprefix("map:").rpartition(":")
    if colon and re.fullmatch("[0-9]{1,9}", number):
        return name, int(number)
    return text.strip().removeprefix("map:"), None


def before_of(name: str) -> str:
    """Return the name of a map of regions of the frame before, in a pair of frames."""
    return _BEFORE + name.removeprefix(OF_REGIONS)


def now_of(name: str) -> str | None:
    """Return the same map of frame t; None for a map that is of frame t."""
    return OF_REGIONS + name.removeprefix(_BEFORE) if name.startswith(_BEFORE) else None


#: The error of a regression rounded to float32, the type of rank keys, once for all rankings.
ERROR_KEY = "error:rank"
#: The map [10] of counts and ends of the evaluated targets, of `kernels.members.count_targets`.
TARGET_COUNTS = "target_counts"


def sigma_of(name: str) -> str:
    """Return the name of a map of the store used as σ: `sigma:NAME`, never negative."""
    return f"sigma:{name}"


def lambda_of(sigma: str) -> str:
    """Return the name of the map ε/σ for the σ map of this name: `lambda`, or `lambda:NAME`."""
    return "lambda" if sigma == "sigma" else f"lambda:{sigma.removeprefix('sigma:')}"


def is_lambda(name: str) -> bool:
    """Return whether a map is one of `lambda_of`."""
    return name.split(":")[0] == "lambda"


#: The largest number of classes, which leaves one value for void.
MOST_CLASSES = 65535


def void_of(classes: int) -> int:
    """Return the value that marks void pixels in a `label` map: the largest of its dtype."""
    return 255 if classes <= 255 else 65535


#: The label of pixels that are not evaluated in data of predicted numbers, which have one class.
VOID = void_of(1)


def id_dtype(classes: int) -> str:
    """Return the dtype of `label` and `prediction` maps: class ids and one more value for void."""
    if classes > MOST_CLASSES:
        raise UsageError(f"{classes} classes; at most {MOST_CLASSES} can be evaluated.")
    return "uint8" if classes <= 255 else "uint16"


#: The shortest track of each bin of lengths, in frames: 2, 3, 4, 5–8, 9–16, …, 513–1024, and more.
TRACK_LENGTHS = (2, 3, 4, *(2**k + 1 for k in range(2, 11)))


@dataclass(frozen=True)
class TrackRules:
    """How tracks begin, when they stop, and which count (Sundaram et al. 2010, and their code).

    `step`: seeds lie on a grid of this many pixels; `structure`: only where the image has some.
    `min_length`: the smallest number of frames of a track that counts. A track stops at a pixel if
    the flow there w and back ŵ has |w + ŵ|² ≥ `round_trip_slope`·(|w|² + |ŵ|²) +
    `round_trip_offset`, and at a motion boundary: |∇u|² + |∇v|² > `boundary_slope`·|w|² +
    `boundary_offset`.
    """

    step: int = 8
    min_length: int = 2
    structure: bool = True
    round_trip_slope: float = 0.01
    round_trip_offset: float = 0.5
    boundary_slope: float = 0.01
    boundary_offset: float = 0.002

    def __post_init__(self) -> None:
        if self.step < 1:
            raise UsageError(f"step {self.step} between tracks; expected at least 1 pixel.")
        if self.min_length < 2:
            raise UsageError(f"tracks of length {self.min_length}; expected at least 2 frames.")
        for limit in (
            self.round_trip_slope,
            self.round_trip_offset,
            self.boundary_slope,
            self.boundary_offset,
        ):
            if not 0 <= limit < math.inf:
                raise UsageError(f"a threshold of tracks is {limit}; expected 0 or more.")


def of_tracks(flow: str, rules: TrackRules) -> str:
    """Return the name of the counts of tracks by these rules along the flow of this name."""
    return f"tracks:{','.join(map(str, astuple(rules)))}:{flow}"


def rules_of(name: str) -> tuple[TrackRules, str]:
    """Return the rules and the flow from a name made by `of_tracks`."""
    _, rules, flow = name.split(":", 2)
    step, min_length, structure, *limits = rules.split(",")
    return TrackRules(int(step), int(min_length), structure == "True", *map(float, limits)), flow


def track_columns(classes: int) -> dict[str, int]:
    """Return the columns of the counts of tracks of one pair of frames, and their number.

    For tracks that ended with this pair, lasted `min_length` frames and touched no void: `tracks`
    and `consistent` tracks, by first label; their `points`; and their histogram over
    `TRACK_LENGTHS`. `dropped`: tracks that ended, long enough, but touched void. For tracks that
    reached the pair's second frame without touching void: the numbers of tracks that are `alive`,
    and whose label `changed` from the first frame to the second. `unreliable` pixels of all
    `pixels` of the first frame, and `seeds` placed there, are the same for all models.
    """
    return {
        "tracks": classes,
        "consistent": classes,
        "points": 1,
        "lengths": len(TRACK_LENGTHS),
        "dropped": 1,
        "alive": 1,
        "changed": 1,
        "unreliable": 1,
        "pixels": 1,
        "seeds": 1,
    }


GREY, GREY_BEFORE = "grey", "grey_before"
LABEL, LABEL_BEFORE = "label", "label_before"


def prediction(model: int) -> str:
    """Return the ids that a model predicts for frame t."""
    return f"prediction:{model}"


def prediction_before(model: int) -> str:
    """Return the ids that a model predicts for frame t-1."""
    return f"prediction_before:{model}"


def flow(method: str) -> str:
    """Return the flow on frame t's grid, pointing to frame t-1."""
    return f"flow:{method}"


def flow_forward(method: str) -> str:
    """Return the flow on frame t-1's grid, pointing to frame t."""
    return f"flow_forward:{method}"


def flows_of(names: Collection[str]) -> set[str]:
    """Return the flows among these maps, and those that their tracks follow."""
    flows = {name for name in names if name.startswith(("flow:", "flow_forward:"))}
    for name in names:
        if name.startswith("tracks:"):
            _, method = rules_of(name)
            flows |= {flow(method), flow_forward(method)}
    return flows


def void_id(ids: Array) -> int:
    """Return the id of void pixels: the largest number of the dtype."""
    return int(np.iinfo(ids.dtype).max)
