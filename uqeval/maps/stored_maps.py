"""Read and check maps from a maps store."""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import dataclass

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import DataError, StoreError, cut, quoted
from uqeval.maps.contract import Heartbeat
from uqeval.maps.names import (
    COMPUTED,
    NO_UNCERTAINTY,
    OF_MEAN_ALONE,
    OF_MEAN_AND_LABEL,
    SAMPLE_PREDICTIONS,
    UNCERTAINTIES,
    id_dtype,
    is_choices,
    void_of,
)
from uqeval.maps.reduction import BLOCK
from uqeval.stores.bfloat16 import TOLERANCE, recorded_tolerance, tolerance_of
from uqeval.stores.fill_values import refuse_fill
from uqeval.stores.planes import Planes, unit_of
from uqeval.stores.sum_hints import hint_of_range

#: Maps of probabilities. They may exceed 1 by the largest tolerance of floating-point stacks, whose
#: dtype a maps store does not record, and by that of integers, which it does.
PROBABILITIES = ("confidence", "mean_probs", "label_probability")
#: Other maps that `uqeval` computes, which are negative by rounding at most.
_NOT_NEGATIVE = (*UNCERTAINTIES, "brier")
#: Where none is positive, this many that are further below 0 than sums of float32 are no rounding.
_LEAST, _NOISE = 16, 1e-6


@dataclass(frozen=True, eq=False)
class StoredMaps:
    """The maps of all items by name, one plane per item; `predictions` are class ids.

    `tolerance`: the allowed |Σ_c p̄ - 1|, None for that of the stored dtype. Methods raise
    `StoreError` for planes of another size or kind, `DataError` for values that cannot be
    evaluated. Messages name store and item.
    """

    planes: dict[str, Planes]
    names: tuple[str, ...]
    classes: int
    tolerance: float | None

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item's predictions."""
        return self.planes["predictions"].size(item)

    @property
    def choices(self) -> int:
        """Return the number of samples whose likeliest classes are stored."""
        return self.planes[SAMPLE_PREDICTIONS].parts[0].array.length("sample")

    def prediction(self, item: int) -> Array:
        """Return predicted class ids [y, x]."""
        return self._ids("predictions", item)

    @property
    def of_mean(self) -> frozenset[str]:
        """Return the maps that are not stored and are computed from `mean_probs`, some with
        labels."""
        if "mean_probs" not in self.planes:
            return frozenset()
        return (OF_MEAN_ALONE | OF_MEAN_AND_LABEL) - self.planes.keys()

    def sources(self, names: Set[str]) -> set[str]:
        """Return the stored maps that `read` needs for the maps of these names."""
        choices = {SAMPLE_PREDICTIONS} if any(map(is_choices, names)) else set()
        mean = {"mean_probs"} if names & self.of_mean else set()
        return (names & self.planes.keys()) | choices | mean

    def read(
        self, item: int, names: Set[str], size: tuple[int, int], prediction: Array,
        label: Array | None, heartbeat: Heartbeat, stale: Set[str] = frozenset(),
    ) -> Maps:  # fmt: skip
        """Return maps of an item: stored ones, and those of `of_mean`.

        `size`, `prediction` [y, x] and `label` [y, x] are those of the item. `heartbeat` is called
        with the bytes of each stored map. `stale`: stored maps that are computed all the same.
        """
        maps: Maps = {}
        of_mean = names & (self.of_mean | stale)
        for name in sorted((names | {"mean_probs"} if of_mean else names) - of_mean):
            maps[name] = self._stored(name, item, size, label)
            heartbeat(maps[name].nbytes)
        if "mean_probs" in maps:
            array = self.planes["mean_probs"].parts[item].array
            allowed = max(TOLERANCE, recorded_tolerance(array), self._unit_of_mean(item))
            _check_likeliest(maps, prediction, allowed, self._where("mean_probs", item))
        computed: Maps = {}
        if of_mean & OF_MEAN_ALONE:
            computed |= of_mean_alone(maps["mean_probs"])
        if of_mean & OF_MEAN_AND_LABEL:
            assert label is not None
            computed |= of_mean_and_label(maps["mean_probs"], label, prediction)
        maps = computed | maps  # stored maps stay as they are
        return {name: maps[name] for name in names}

    def _stored(self, name: str, item: int, size: tuple[int, int], label: Array | None) -> Array:
        if is_choices(name):
            return self._choices(item, size)
        if name == "label_rank":
            return self._ranks(name, item, size)
        return self._numbers(name, item, size, label)

    def _ranks(self, name: str, item: int, size: tuple[int, int]) -> Array:
        """Return a plane of ranks of classes, uint16 [y, x]."""
        plane, where = self._plane(name, item, size)
        low, high = plane.min(), plane.max()
        if plane.dtype.kind not in "iu" or low < 0 or high >= self.classes:
            raise DataError(
                f"{where} holds {plane.dtype} from {low} to {high}; expected whole numbers from "
                f"0 to {self.classes - 1}. Write it again with `uqeval reduce`."
            )
        return plane.astype(np.uint16)

    def _choices(self, item: int, size: tuple[int, int]) -> Array:
        """Return the likeliest class of each sample [sample, y, x]."""
        planes = self._ids(SAMPLE_PREDICTIONS, item)
        if planes.shape != (self.choices, *size):
            raise StoreError(
                f"{self._where(SAMPLE_PREDICTIONS, item)}: shape {planes.shape}; expected "
                f"{(self.choices, *size)}, as the first item and the predictions have."
            )
        return planes

    def _ids(self, name: str, item: int) -> Array:
        """Return planes of class ids; bool counts as 0 and 1, as in labels."""
        planes = self.planes[name]
        plane = planes.read(item)
        where = self._where(name, item)
        if plane.dtype.kind == "b":
            plane = plane.astype(np.uint8)
        if plane.dtype.kind not in "iu":
            raise StoreError(f"{where}: predictions of dtype {plane.dtype}; expected class ids.")
        refuse_fill(plane, planes.parts[item].array, None, 0, where, zero_is_usual=True)
        low, high = int(plane.min()), int(plane.max())
        if low < 0 or high >= self.classes:
            raise DataError(
                f"{where}: predicted ids run from {low} to {high}; expected 0 … {self.classes - 1}."
            )
        return plane.astype(id_dtype(self.classes))

    def _where(self, name: str, item: int) -> str:
        return f"{self.planes[name].where_of(item)}, item {cut(self.names[item])}"

    def _plane(self, name: str, item: int, size: tuple[int, int]) -> tuple[Array, str]:
        """Return a stored plane of this size, and its name for messages."""
        planes = self.planes[name]
        plane = planes.read(item)
        where = self._where(name, item)
        if plane.shape[-2:] != size:
            raise StoreError(f"{where}: shape {plane.shape}, but predictions are {size}.")
        if name == "mean_probs" and len(plane) != self.classes:
            raise StoreError(
                f"{where} holds {len(plane)} classes; expected {self.classes}, as the store has."
            )
        return plane, where

    def _numbers(self, name: str, item: int, size: tuple[int, int], label: Array | None) -> Array:
        """Return a map of numbers as float32 [y, x] (of `mean_probs` [class, y, x]), -0.0
        as 0.0.
        """
        plane, where = self._plane(name, item, size)
        if plane.dtype.kind not in "fiu":
            raise StoreError(f"{where}: dtype {plane.dtype}; expected numbers.")
        if name != "mean_probs":  # whose sums are checked
            array = self.planes[name].parts[item].array
            void = void_of(self.classes)
            refuse_fill(plane, array, label, void, where, zero_is_usual=True)
        with np.errstate(over="ignore"):  # too large values become infinite, and are refused
            values = plane.astype(np.float32) + np.float32(0.0)
        bad = ~np.isfinite(values)
        if bad.any():
            *_, y, x = (int(k[0]) for k in np.nonzero(bad))
            raise DataError(
                f"{where}: {int(bad.sum())} of {bad.size} values are NaN, infinite or beyond "
                f"float32, first at row {y}, column {x}. Expected finite numbers at all pixels, "
                "also where labels are void."
            )
        if name in PROBABILITIES:
            recorded = recorded_tolerance(self.planes[name].parts[item].array)
            _check_probabilities(name, values, where, 1.0 + max(TOLERANCE, recorded))
        elif name in _NOT_NEGATIVE:
            evaluated = np.ones(size, bool) if label is None else label != void_of(self.classes)
            _refuse_negative(name, values, evaluated, where)
        if name == "mean_probs":
            _check_sums(values, self._tolerance_of_mean(item), where)
        return values

    def _tolerance_of_mean(self, item: int) -> float:
        """Return the allowed |Σ_c p̄ - 1|."""
        if self.tolerance is not None:
            return self.tolerance
        array, rounding = self.planes["mean_probs"].parts[item].array, self._unit_of_mean(item)
        return tolerance_of(array, array.dtype.name, rounding=self.classes * rounding, is_mean=True)

    def _unit_of_mean(self, item: int) -> float:
        """Return the unit of `mean_probs` that are integers, 0 for floating point."""
        array = self.planes["mean_probs"].parts[item].array
        return 0.0 if array.dtype.kind == "f" else unit_of(array, "mean_probs")


def of_mean_alone(mean: Array) -> Maps:
    """Return `OF_MEAN_ALONE` of an item, as of one sample, from float32 p̄ [class, y, x]."""
    from uqeval.kernels.samples import entropy_of_mean, predict

    size = mean.shape[1:]
    maps = {name: np.empty(math.prod(size), np.float32) for name in OF_MEAN_ALONE}
    wide, lead = np.zeros(BLOCK, np.float64), np.zeros(BLOCK, np.float64)
    likeliest = np.empty(BLOCK, id_dtype(len(mean)))
    for part, sums in _blocks(mean):
        n = sums.shape[1]
        predict(0, n, 1, 1.0, sums, lead, likeliest[:n], maps["confidence"][part])
        entropy_of_mean(0, n, 1, 1.0, sums, wide, maps["entropy"][part])
    return {name: values.reshape(size) for name, values in maps.items()}


def of_mean_and_label(mean: Array, label: Array, prediction: Array) -> Maps:
    """Return `OF_MEAN_AND_LABEL` of an item, by the kernel's rule, from float32 p̄ [class, y, x],
    and from labels and predicted classes [y, x].
    """
    from uqeval.kernels.samples import score_labels

    dtypes = {"label_probability": "f4", "label_rank": "u2", "brier": "f4"}
    maps = {name: np.empty(label.size, dtype) for name, dtype in dtypes.items()}
    labels, predictions = label.reshape(-1), prediction.reshape(-1)
    wide = np.zeros(BLOCK, np.float64)
    for part, sums in _blocks(mean):
        score_labels(
            0, sums.shape[1], 1, 1.0, void_of(len(mean)), sums, labels[part], predictions[part],
            wide, *(values[part] for values in maps.values()),
        )  # fmt: skip
    return {name: values.reshape(label.shape) for name, values in maps.items()}


def _blocks(mean: Array) -> Iterator[tuple[slice, Array]]:
    """Yield blocks of pixels, and p̄ of each as float64 [class, pixel]."""
    rows = mean.reshape(len(mean), -1)
    for start in range(0, rows.shape[1], BLOCK):
        part = slice(start, start + BLOCK)
        yield part, rows[:, part].astype(np.float64, order="C")


def _check_probabilities(name: str, values: Array, where: str, most: float) -> None:
    """Raise `DataError` for finite values outside [0, `most`], which is 1 apart from rounding."""
    if values.min() >= 0.0 and values.max() <= most:
        return
    is_no_rounding = (values < 0.0) | (values > 2.0)
    if is_no_rounding.any():
        bad, fault = is_no_rounding, "negative or above 2, so they are not probabilities"
    else:
        bad, fault = values > most, f"above {most:.5g}, which rounding cannot explain"
    *_, y, x = (int(k[0]) for k in np.nonzero(bad))
    hint = hint_of_range(
        values.min(), values.max(), "Write the map again from probabilities that sum to 1, for "
        "example with uqeval reduce.", name,
    )  # fmt: skip
    raise DataError(
        f"{where}: {int(bad.sum())} of {bad.size} values of the map {name} are {fault}: the "
        f"first is {values[bad][0]:.6g} at row {y}, column {x}. {hint}"
    )


def _refuse_negative(name: str, values: Array, evaluated: Array, where: str) -> None:
    """Raise `DataError` for evaluated values that are negative, beyond rounding, and for those of
    which none is positive.

    They are differences of sums over the classes, which may have been rounded to 16 bits, whatever
    the type in which they are stored.
    """
    if values.min() >= -_NOISE:
        return
    bad = (values < -TOLERANCE) & evaluated
    if not bad.any() and not (values[evaluated] > 0).any():
        bad = (values < -_NOISE) & evaluated
        bad &= np.count_nonzero(bad) >= _LEAST
    if bad.any():
        y, x = (int(k[0]) for k in np.nonzero(bad))
        raise DataError(
            f"{where}: {int(bad.sum())} evaluated values of the map {name} are negative, the "
            f"first is {values[y, x]:.6g} at row {y}, column {x}; expected 0 or more. Write the "
            "map again, for example with uqeval reduce; if it is another uncertainty, give it "
            "another name."
        )


def _check_sums(mean: Array, tolerance: float, where: str) -> None:
    """Raise `DataError` for mean probabilities [class, y, x] that do not sum to 1."""
    sums = mean.sum(axis=0, dtype=np.float64)
    off = np.abs(sums - 1.0)
    if off.max(initial=0.0) <= tolerance:
        return
    y, x = (int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
    raise DataError(
        f"{where}: the mean probabilities of {int((off > tolerance).sum())} of {off.size} pixels "
        f"do not sum to 1: the worst to {sums[y, x]:.6g} at row {y}, column {x} (tolerance "
        f"{tolerance:.5g}). Write the map again from probabilities that sum to 1; --sum-tolerance "
        "allows larger differences."
    )


def _check_likeliest(maps: Maps, prediction: Array, allowed: float, where: str) -> None:
    """Raise `DataError` if predictions are not the likeliest classes of `mean_probs`, or if a
    stored `confidence` is not their probability, within the `allowed` difference."""
    mean = maps["mean_probs"]
    most = mean.max(axis=0)
    of_predicted = np.take_along_axis(mean, prediction[None].astype(np.intp), axis=0)[0]
    confidence = maps.get("confidence", most)
    for off, fault in (
        (most - of_predicted, "predictions are not the likeliest classes"),
        (np.abs(confidence - most), "confidence is not the probability of the likeliest class"),
    ):
        if off.max(initial=0.0) > allowed:
            y, x = (int(at) for at in np.unravel_index(int(off.argmax()), off.shape))
            raise DataError(
                f"{where}: {fault} of mean_probs at {int((off > allowed).sum())} of {off.size} "
                f"pixels, most at row {y}, column {x}. Are they of the same model, with the "
                "images in the same order? Store predictions of another rule, such as a threshold, "
                "and scaled confidences without mean_probs."
            )


def missing_map_message(
    where: str, name: str, stored: list[str], samples: bool, arguments: str, and_others: str
) -> str:
    """Return the message about a missing map: which maps exist, and which could replace it.

    `stored`: the maps in the store; `samples`: whether there are samples to compute others from;
    `arguments`: the predictions with their labels and options, as a command has them; `and_others`:
    the end of the list of maps.
    """
    if not samples and stored == ["predictions"]:
        return (
            f"{where} holds predicted ids and no uncertainty, which {quoted(name)} needs. Ids "
            f"give the segmentation scores (uqeval run {arguments}) and `uqeval tc`; "
            "store class probabilities or a map for the rest."
        )
    stored_text = f"It holds {', '.join(stored) or 'no maps'}{and_others}"
    if samples:
        computed = ", ".join(n for n in COMPUTED if n not in ("prediction", "mean_probs"))
        return f"{where} has no map {quoted(name)}. {stored_text}; samples give {computed}."
    hint = "`uqeval reduce` writes the usual ones from samples."
    measures = [name for name in stored if name not in NO_UNCERTAINTY]
    if name in UNCERTAINTIES and measures:
        hint += f" --uncertainty {measures[0]} uses that map instead."
    if name in OF_MEAN_ALONE | OF_MEAN_AND_LABEL:
        hint += (
            " PredictionWriter(keep='maps', mean_probs=True) writes mean_probs, from which it is "
            "computed."
        )
    if name == "brier" and measures:
        ranked = "" if "entropy" in stored else f" --uncertainty {measures[0]}"
        hint += (
            " Sparsification of wrong pixels needs no `brier`: uqeval sparsification "
            f"{arguments} --error zero-one{ranked}"
        )
    return f"{where} has no map {quoted(name)}. {stored_text}; {hint}"
