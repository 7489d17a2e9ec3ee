"""Maps of class probabilities from their definitions: sums over samples in float64, then
float32.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.usecases.verify.arrays import probabilities_of

if TYPE_CHECKING:
    from uqeval.stores.stack import Stack

#: Uncertainties in nats, whose base can be chosen.
_NATS = ("entropy", "mutual_information", "expected_entropy")
#: Several samples in float64 are compared as multiples of its inverse, so that their order does not
#: matter. The mean has the rests, too.
_GRID = 2.0**45
#: An odd number that mixes bits when it multiplies.
_ODD = np.uint64(0xBF58476D1CE4E5B9)
#: The number of random rounding errors of each pixel: the bytes of 64 bits.
DRAWS = 8


@dataclass
class ClassMaps:
    """Maps of one item: ids and float32 maps [y, x], `probs` float32 [class, y, x].

    `label` is None without ground truth; `void` are its pixels that do not count, and
    `void_of_image` those of the whole image, of which only a region counts (None: all of it). Maps
    that the store does not have are None, or missing in `uncertainty`.
    """

    prediction: Array
    void: Array
    label: Array | None = None
    probs: Array | None = None
    confidence: Array | None = None
    brier: Array | None = None
    label_probability: Array | None = None
    uncertainty: dict[str, Array] = field(default_factory=dict)
    #: For uncertainties that are sums of rounded terms: random sums of their rounding errors, in
    #: units of the last place, float16 [y, x, draw]. Pixels with the same terms have the same ones.
    rounding: dict[str, Array] = field(default_factory=dict)
    void_of_image: Array | None = None

    def valid(self, values: Array) -> Array:
        """Return the values [..., y, x] of the pixels that count, flat."""
        return values[..., ~self.void]


def _plogp(p: Array) -> Array:
    """Return p·ln p, 0 where p is 0."""
    logs = np.zeros_like(p)
    np.log(p, out=logs, where=p > 0)
    return p * logs


def maps_of_samples(stack: Stack, item: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return mean probabilities, prediction and uncertainties of the samples of an item, and the
    `rounding` of uncertainties.

    entropy = H(mean), expected_entropy = mean H, mutual_information = their difference, at least 0;
    variation_ratio = 1 - share of the most frequent vote; std = population standard deviation of
    the predicted class's probability.
    """
    empty: Array = np.zeros(0)
    total = rests = squares = entropies = votes = first = identical_votes = errors = empty
    count = 0
    for p in probabilities_of(stack, item):
        exact = p
        if stack.samples > 1 and np.dtype("f8") in stack.dtypes:
            p = np.rint(p * _GRID) / _GRID
        if not count:
            rests = np.zeros_like(p)
            total, squares, first = np.zeros_like(p), np.zeros_like(p), p
            entropies, votes = np.zeros(p.shape[1:]), np.zeros(p.shape, np.int32)
            identical_votes = np.ones(p.shape[1:], bool)
            errors = np.zeros(_rounding(p, 0).shape)
        count += 1
        errors += _rounding(p, count)
        total += p
        rests += exact - p
        squares += (p - first) ** 2
        entropies -= _plogp(p).sum(axis=0)
        best = p.argmax(axis=0)
        np.put_along_axis(votes, best[None], np.take_along_axis(votes, best[None], 0) + 1, 0)
        identical_votes &= (p == first).all(axis=0)
    if stack.uniform and all(dtype.kind == "u" for dtype in stack.dtypes):
        total = np.rint(total * 2.0**36) / 2.0**36  # a run adds up integers: equal sums are equal
    mean = (total + rests) / count
    prediction = total.argmax(axis=0)  # the division may make near sums equal
    entropy = np.maximum(-_plogp(mean).sum(axis=0), 0.0)
    maps: dict[str, Array] = {
        "probs": mean.astype(np.float32), "mean": mean, "prediction": prediction,
        "entropy": entropy, "expected_entropy": entropies / count, "confidence": mean.max(axis=0),
    }  # fmt: skip
    if count > 1:
        predicted = prediction[None]
        shift = np.take_along_axis(mean - first, predicted, 0)[0]
        variance = np.take_along_axis(squares, predicted, 0)[0] / count - shift**2
        maps["mutual_information"] = np.where(
            identical_votes, 0, np.maximum(entropy - entropies / count, 0)
        )
        maps["variation_ratio"] = 1 - votes.max(axis=0) / count
        maps["std"] = np.where(identical_votes, 0, np.sqrt(np.maximum(variance, 0)))
    # Counts of votes are exact, and so are sums of probabilities as they are stored.
    of_mean = _rounding(mean, 0)
    sums: dict[str, tuple[Array, Array]] = {
        "entropy": (entropy == 0, of_mean), "expected_entropy": (entropies == 0, errors),
        "mutual_information": (identical_votes, errors + of_mean), "std": (identical_votes, errors),
    }  # fmt: skip
    if stack.kind == "logits":
        sums["confidence"] = np.zeros_like(identical_votes), errors
    rounding = {
        name: np.where(is_exact[..., None], 0, errors_of_terms).astype(np.float16)
        for name, (is_exact, errors_of_terms) in sums.items()
        if name in maps
    }
    return maps, rounding


def _rounding(p: Array, sample: int) -> Array:
    """Return the sums over classes of random numbers from -1 to 1, [y, x, draw].

    `p` float64 [class, y, x]: the terms of a sample. Equal terms have equal random numbers.
    """
    key = np.arange(1, len(p) + 1, dtype=np.uint64) + np.uint64(len(p) * sample)
    mixed = p.view(np.uint64) ^ (key * _ODD)[:, None, None]
    for shift in (30, 27, 31):  # as SplitMix64 mixes the bits of a number
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * _ODD
    numbers = mixed[..., None].view(np.uint8)
    return numbers.sum(axis=0, dtype=np.float64) / 127.5 - len(p)


def class_maps(
    source: Any, item: int, named: Collection[str] = (), *, with_labels: bool = True
) -> ClassMaps:
    """Return the maps of an item of opened class data, from samples or from stored maps.

    `named`: the stored maps to read beside those that follow from samples.
    """
    rounding: dict[str, Array] = {}
    if source.stack is not None:
        images, rounding = maps_of_samples(source.stack, item)
        beside = source.stored.keys() & set(named) - images.keys()
        images |= {name: source.stored[name].read(item) for name in beside}
    else:
        names = {"predictions": "prediction", "mean_probs": "probs"}
        images = {
            names.get(name, name): planes.read(item)
            for name, planes in source.stored.items()
            if name != "sample_predictions"
        }
        if "probs" in images:
            images, rounding = _with_maps_of_mean(images)
    prediction = images.pop("prediction").astype(np.int64)
    probs = images.pop("probs", None)
    mean = images.pop("mean", probs)
    maps = ClassMaps(prediction, np.zeros(prediction.shape, bool), probs=probs, rounding=rounding)
    if "confidence" in images:
        confidence = images.pop("confidence").astype(np.float32)
        maps.confidence = confidence
        maps.uncertainty["confidence"] = (1 - confidence.astype(np.float64)).astype(np.float32)
    maps.brier = images.pop("brier", None)
    maps.label_probability = images.pop("label_probability", None)
    maps.uncertainty |= {name: values.astype(np.float32) for name, values in images.items()}
    if source.labels is not None and with_labels:
        label = source.labels.planes.read(item)
        if label.ndim == 3:
            label = _majority(label, source.labels.ignore_index)
        _with_labels(maps, label, source.labels.ignore_index, mean)
    return maps


def _with_maps_of_mean(images: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return stored maps and those of their mean probabilities that are not stored, and the
    `rounding` of the latter."""
    mean = images["probs"].astype(np.float32).astype(np.float64)
    entropy = np.maximum(-_plogp(mean).sum(axis=0), 0.0)
    rounding: dict[str, Array] = {}
    if "entropy" not in images:
        errors = np.where((entropy == 0)[..., None], 0, _rounding(mean, 0))
        rounding["entropy"] = errors.astype(np.float16)
    return {"entropy": entropy, "confidence": mean.max(axis=0)} | images, rounding


def _majority(labels: Array, ignore_index: int) -> Array:
    """Return the class of most annotators [annotator, y, x], the lowest id on a tie; void where one
    of those who labelled the item left it void."""
    present = np.array([plane for plane in labels if (plane != ignore_index).any()], np.int64)
    first: Array = labels[0]
    if not len(present):
        return first
    ids = np.unique(present)
    votes = np.array([(present == class_id).sum(axis=0) for class_id in ids])
    void = (present == ignore_index).any(axis=0)
    return np.where(void, ignore_index, ids[votes.argmax(axis=0)])


def _with_labels(
    maps: ClassMaps, label: Array, ignore_index: int, mean: Array | None
) -> None:  # fmt: skip
    """Add the ground truth, and the maps that depend on it and the mean probabilities.

    `mean` [class, y, x]: these before they are rounded to float32, if the store has their samples.
    """
    label = label.astype(np.int64)
    maps.void = label == ignore_index
    maps.label = np.where(maps.void, 0, label)
    if maps.probs is not None and mean is not None:
        own = maps.label[None]
        maps.label_probability = np.take_along_axis(maps.probs.astype(np.float64), own, 0)[0]
        wide = mean.astype(np.float64)
        # Class by class, so that the score is 0 for the same pixels as in a run.
        squares = np.add.accumulate(wide**2, axis=0)[-1]
        maps.brier = np.maximum(squares - 2 * np.take_along_axis(wide, own, 0)[0] + 1, 0.0)


def uncertainty_of(maps: ClassMaps, settings: Mapping[str, Any], classes: int) -> Array | None:
    """Return the float32 map [y, x] of the uncertainty that settings name; None without it."""
    values = maps.uncertainty.get(settings["uncertainty"])
    if values is None or settings["uncertainty"] not in _NATS:
        return values
    base = settings.get("log_base", math.e)
    base = float(classes) if base == "classes" else float(base)
    if base == math.e:
        return values
    return (values.astype(np.float64) / math.log(base)).astype(np.float32)


def rounding_of(maps: ClassMaps, settings: Mapping[str, Any]) -> Array:
    """Return the `rounding` [pixel, draw] of the pixels that count; a stored map has none."""
    shape = (*maps.void.shape, DRAWS)
    rounding = maps.rounding.get(settings["uncertainty"], np.zeros(shape, np.float16))
    return rounding[~maps.void]
