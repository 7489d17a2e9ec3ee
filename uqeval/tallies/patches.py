"""Patches: accuracy against uncertainty (Mukhoti & Gal 2018, §4; Ma et al. 2024, §5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from uqeval.arrays import Array, Maps, State, np
from uqeval.maps.contract import WHOLE
from uqeval.maps.names import INSIDE, REGION_SHARE, UNMASKED_LABEL, void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._fields import Field, Flaws
from uqeval.tallies._last_results import LastResults
from uqeval.tallies._values import Uncertainty, float16_end

#: Thresholds of a curve: t = 0, 0.01 … 1.
STEPS = 101
_last = LastResults()


def _whole_image(maps: Maps) -> Maps:
    """Return the maps of the whole image, from those of a region of it."""
    if UNMASKED_LABEL not in maps:
        return maps
    of_region = (UNMASKED_LABEL, INSIDE, REGION_SHARE)
    whole = {name: values for name, values in maps.items() if name not in of_region}
    return whole | {"label": maps[UNMASKED_LABEL]}


@dataclass(frozen=True)
class Patches:
    """The patches of an image, and the definition of their mean uncertainty and accuracy.

    - `window`, `stride`: in pixels
    - `border`: incomplete patches are dropped ("drop"), use the pixels that exist ("partial"), or
      are padded with wrong pixels of uncertainty 0, half before and half after ("pad")
    - `void`: void pixels do not count ("exclude") or count as wrong ("inaccurate")
    - `top_k`: a pixel is right if its label is among the k likeliest classes
    """

    uncertainty: Uncertainty
    classes: int
    window: int = 4
    stride: int = 4
    border: str = "drop"
    void: str = "exclude"
    top_k: int = 1

    @property
    def version(self) -> int:
        """Return the version of the definition, for the tallies of patches.

        In the first, patches with padding and void pixels only were inaccurate ones, and so were
        those outside a region, if void pixels count.
        """
        return 1 if self.border != "pad" and self.void == "exclude" else 2

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the maps from which patches are computed."""
        right = "prediction" if self.top_k == 1 else "label_rank"
        return ("label", right, self.uncertainty.name)

    def padding(self, size: int) -> tuple[int, int]:
        """Return pixels of padding before and after an axis of `size` pixels."""
        if self.border == "drop":
            return 0, 0
        last = -(-size // self.stride) - 1
        missing = max(last * self.stride + self.window - size, 0)
        return (0, missing) if self.border == "partial" else (missing // 2, missing - missing // 2)

    def table(self, maps: Maps) -> dict[str, Array]:
        """Return `mean` (float32), `hits`, `valid` and `category` (int32) of all patches [i].

        A category is a class, `void_of(classes)` for mixed patches, or -1 for patches that do not
        count: without valid pixels in the image, or with too few of them in the region.
        """
        from uqeval.kernels.windows import patch_table

        label = maps["label"]
        right = maps["prediction"] == label if self.top_k == 1 else maps["label_rank"] < self.top_k
        wrong = None
        if self.void == "inaccurate":
            wrong = maps.get(INSIDE, np.ones(label.shape, bool)).view(np.uint8)
        pads = [self.padding(n) for n in label.shape]
        padded = [n + sum(pad) for n, pad in zip(label.shape, pads, strict=True)]
        shape = tuple(max((n - self.window) // self.stride + 1, 0) for n in padded)
        columns, width = shape[1], padded[1]
        crosses = self.stride % self.window != 0  # windows cross the borders of blocks
        rows = self.window if crosses else 1
        results = {
            "mean": np.empty(shape, np.float32),
            "hits": np.empty(shape, np.int32),
            "valid": np.empty(shape, np.int32),
            "category": np.empty(shape, np.int32),
        }
        if columns and shape[0]:
            patch_table(
                self.uncertainty.values(maps), label, right.view(np.uint8), void_of(self.classes),
                wrong, self.border == "pad", pads[0][0], pads[1][0],
                np.array(padded), self.window, self.stride,
                np.empty(width), np.empty((3, width), np.int64),
                np.empty((rows, width)), np.empty((3, rows, width), np.int64),
                np.empty((2, width)), np.empty((2, width), np.int64),
                np.empty(width) if crosses else None,
                np.empty(width, np.int64) if crosses else None,
                np.empty(columns), np.empty((3, columns), np.int64),
                *results.values(),
            )  # fmt: skip
        flat = {name: values.reshape(-1) for name, values in results.items()}
        in_image = flat["valid"]
        if self.border == "pad":
            in_image = in_image - self._padding_of_patches(shape, label.shape).reshape(-1)
            flat["category"][in_image == 0] = -1
        if UNMASKED_LABEL in maps:
            outside = self._valid_in_image(maps) - flat["valid"]
            flat["category"][in_image < float(maps[REGION_SHARE]) * (in_image + outside)] = -1
        return flat

    def _valid_in_image(self, maps: Maps) -> Array:
        """Return `valid` of the whole image, from the maps of a region."""
        return _last.of(
            (maps[UNMASKED_LABEL],), self, lambda: self.table(_whole_image(maps))["valid"]
        )

    def _padding_of_patches(self, patches: tuple[int, ...], image: tuple[int, ...]) -> Array:
        """Return how many pixels of each patch [row, column] are padding."""
        lengths = []
        for number, size in zip(patches, image, strict=True):
            first = np.arange(number) * self.stride - self.padding(size)[0]
            lengths.append(np.minimum(first + self.window, size) - np.maximum(first, 0))
        in_image: Array = np.multiply.outer(*lengths)
        return self.window**2 - in_image


@dataclass(frozen=True)
class PatchCounts(Tally):
    """Patches by category [class + mixed], accuracy and uncertainty.

    `threshold` and `curve` have one entry, or one per category (each class, then mixed); the
    thresholds of a curve are t = 0, 0.01 … 1 of the range. They are compared as float32. If a
    threshold is None, the counts of uncertain patches have no meaning. State: `counts` [category,
    accurate, uncertain]; `by_threshold` [category, accurate, thresholds of the curve below];
    `by_accuracy` [accuracy thresholds 0, 0.01 … 1 below, uncertain]; `ties` [on the accuracy
    threshold, on the uncertainty threshold].
    """

    id: ClassVar[str] = "patch_counts"
    patches: Patches
    threshold: tuple[float | None, ...]
    curve: tuple[tuple[float, float], ...]
    accuracy_threshold: float = 0.5
    accuracy_op: str = ">"
    uncertainty_op: str = ">"

    @property
    def version(self) -> int:
        return self.patches.version

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.patches.inputs

    @property
    def fields(self) -> dict[str, Field]:
        categories = self.patches.classes + 1
        return {
            "counts": Field((categories, 2, 2), "int64"),
            "by_threshold": Field((categories, 2, STEPS + 1), "int64"),
            "by_accuracy": Field((STEPS + 1, 2), "int64"),
            "ties": Field((2,), "int64"),
        }

    def flaws(self, state: State) -> Flaws:
        counts = state["counts"]
        differ = state["by_threshold"].sum(axis=-1) != counts.sum(axis=-1)
        yield "a curve over thresholds of other patches than were counted", differ
        differ = state["by_accuracy"].sum(axis=-2) != counts.sum(axis=(-3, -2))
        yield "a curve over accuracies of other patches than were counted", differ
        yield "more ties than patches", state["ties"] > counts.sum(axis=(-3, -2, -1))[..., None]

    @cached_property
    def _thresholds(self) -> tuple[Array, Array, Array]:
        """Return `threshold` [group], `curve` [group, t] and the thresholds of accuracy [t]."""
        curve = np.array([curve_thresholds(*ends) for ends in self.curve], np.float32)
        return np.array(self.threshold, np.float32), curve, np.arange(STEPS) / (STEPS - 1)

    def update(self, state: State, maps: Maps) -> None:
        from uqeval.kernels.counting import count_patches

        table = self.patches.table(maps)
        threshold, curve, accuracies = self._thresholds
        count_patches(
            *table.values(), void_of(self.patches.classes), len(threshold) > 1, threshold, curve,
            self.accuracy_threshold, accuracies,
            self.accuracy_op == ">=", self.uncertainty_op == ">=",
            state["counts"], state["by_threshold"], state["by_accuracy"], state["ties"],
        )  # fmt: skip


@dataclass(frozen=True)
class ItemPatchCounts(Tally):
    """`PatchCounts` with a threshold that is fitted on each item.

    `rule` is mean, percentile (of the patches), range, max-surplus or value, with its `value`. The
    state also has `own`: threshold, smallest and largest uncertainty of one item (without meaning
    in merged states). The threshold is NaN if the item has patches but the rule gives none, also in
    merged states; without patches it is -inf. An item with only void pixels is not counted, except
    for the rule value, which needs no fit. In a region, the threshold and the range are those of
    the whole item.

    `half_steps`: -1 or 1 counts with the lower or upper end of the float16 rounding interval of the
    threshold. The difference is the number of patches in the closed interval.
    """

    id: ClassVar[str] = "item_patch_counts"
    patches: Patches
    rule: str
    value: float = 0.0
    accuracy_threshold: float = 0.5
    accuracy_op: str = ">"
    uncertainty_op: str = ">"
    half_steps: int = 0

    @property
    def version(self) -> int:
        # The first of regions fitted the threshold of an item on its pixels in the region.
        return self.patches.version + 2 * (self.view != WHOLE)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self.patches.inputs

    @property
    def fields(self) -> dict[str, Field]:
        return self._with_threshold(0.0, (0.0, 0.0)).fields | {"own": Field((3,), "float64", "max")}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters; without `half_steps` if there are none, as in older states."""
        return {k: v for k, v in super().parameters().items() if k != "half_steps" or v}

    def flaws(self, state: State) -> Flaws:
        return self._with_threshold(0.0, (0.0, 0.0)).flaws(state)

    def _with_threshold(self, threshold: float, ends: tuple[float, float]) -> PatchCounts:
        return PatchCounts(
            self.patches, (threshold,), (ends,),
            self.accuracy_threshold, self.accuracy_op, self.uncertainty_op,
        )  # fmt: skip

    def update(self, state: State, maps: Maps) -> None:
        whole = _whole_image(maps)
        is_labelled = whole["label"] != void_of(self.patches.classes)
        pixels = self.patches.uncertainty.values(whole)[is_labelled].astype(np.float64)
        # Void pixels may count as wrong; without others there is nothing to fit a threshold on.
        if (self.patches.table(maps)["category"] < 0).all() or (
            not pixels.size and self.rule != "value"
        ):
            return
        table = self.patches.table(whole)
        means = table["mean"][table["category"] >= 0].astype(np.float64)
        ends = pixels if pixels.size else means
        low, high = float(ends.min()), float(ends.max())
        if self.rule == "mean":
            threshold = float(pixels.sum() / pixels.size)
        elif self.rule == "percentile":
            threshold = float(np.percentile(means, self.value))
        elif self.rule == "range":
            threshold = low + self.value * (high - low)
        elif self.rule == "max-surplus":
            first = self._with_threshold(low, (low, high)).state_of(whole)
            step = best_step(first["by_threshold"])
            threshold = math.nan if step is None else curve_thresholds(low, high)[step]
        else:
            threshold = self.value
        limit = threshold
        if self.half_steps:
            limit = float16_end(threshold, self.half_steps, self.uncertainty_op == ">=")
        found = self._with_threshold(limit, (low, high)).state_of(maps)
        for name, values in found.items():
            state[name] += values
        np.maximum(state["own"], [threshold, low, high], out=state["own"])


def curve_thresholds(least: float, most: float) -> list[float]:
    """Return least + t·(most - least) for t = 0, 0.01 … 1 (Mukhoti & Gal 2018, eq. 4)."""
    return [least + (i / (STEPS - 1)) * (most - least) for i in range(STEPS)]


def counts_along(by_threshold: Array) -> Array:
    """Return n_ac, n_au, n_ic, n_iu at each threshold of a curve, all categories together.

    `by_threshold`: patches […, category, accurate, step]; the result is [4, …, t].
    """
    patches = by_threshold.sum(axis=-3)
    certain = np.cumsum(patches, axis=-1)[..., :-1]
    uncertain = patches.sum(axis=-1, keepdims=True) - certain
    return np.stack([x[..., accurate, :] for accurate in (1, 0) for x in (certain, uncertain)])


def best_step(by_threshold: Array) -> int | None:
    """Return the step of a curve with the largest Surplus, the lowest of several; None if it is
    undefined.

    Along a curve the Surplus is Cov(accurate, certain) over a constant, and n²·Cov is an integer:
    ties are exact.
    """
    best, best_index = None, None
    for step, (ac, au, ic, iu) in enumerate(counts_along(by_threshold).T.tolist()):
        n = ac + au + ic + iu
        if (ac + au) * (ic + iu) == 0:
            return None
        covariance = n * ac - (ac + au) * (ac + ic)
        if best is None or covariance > best:
            best, best_index = covariance, step
    return best_index
