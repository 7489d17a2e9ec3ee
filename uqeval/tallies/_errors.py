"""Kinds of pixel errors: their maps, and how they are summed."""

from __future__ import annotations

from dataclasses import dataclass

from uqeval.arrays import Array, Maps, np
from uqeval.maps.names import ERROR_KEY
from uqeval.tallies._contract import Tally

#: The maps behind each error, by kind of data.
INPUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "classes": {"brier": ("label", "brier"), "zero-one": ("label", "prediction")},
    "regression": {
        "rmse": ("label", ERROR_KEY),
        "mse": ("label", ERROR_KEY),
        "mae": ("label", ERROR_KEY),
        "abs-rel": ("label", "error", "target"),
        "a1": ("label", "mean", "target"),
        "ratio": ("label", "mean", "target"),
    },
}


@dataclass(frozen=True)
class Error:
    """The error of one pixel, by name.

    - brier: Σ_c (p̄_c - y_c)²
    - zero-one: 1 if the prediction is wrong, else 0
    - mse: ε²; rmse: ε², with the root after averaging
    - mae: |ε|
    - abs-rel: |ε|/|target|; infinite if the target is 0 and ε is not
    - ratio: max(ŷ/y, y/ŷ); infinite where ŷ ≤ 0
    - a1: 1 where the ratio is at least 1.25, else 0; infinite where y ≤ 0, which has no ratio
    """

    name: str

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return the maps from which it is computed."""
        return next(inputs[self.name] for inputs in INPUTS.values() if self.name in inputs)

    @property
    def ranking(self) -> Error:
        """Return the error by which the best order ranks the pixels: the ratio for a1."""
        return Error("ratio") if self.name == "a1" else self

    @property
    def squared(self) -> bool:
        """Return whether the result of `of` is squared before it is summed."""
        return self.name in ("rmse", "mse")

    @property
    def rooted(self) -> bool:
        """Return whether the root of the mean is taken."""
        return self.name == "rmse"

    @property
    def dtype(self) -> str:
        """Return the dtype of sums: integers for numbers of wrong pixels."""
        return "int64" if self.name == "zero-one" else "float64"

    def values(self, maps: Maps) -> Array:
        """Return the errors as float32 [y, x], for rank keys too; squared by the caller."""
        if self.name == "zero-one":
            return (maps["prediction"] != maps["label"]).astype(np.float32)
        if self.name in ("a1", "ratio"):
            return _ratios(maps, self.name == "a1")
        if self.name == "abs-rel":
            error = maps["error"]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                relative = error / np.abs(maps["target"])
                return np.where(error == 0, 0.0, relative).astype(np.float32)
        return maps["brier" if self.name == "brier" else ERROR_KEY]


def _ratios(maps: Maps, far: bool) -> Array:
    """Return max(ŷ/y, y/ŷ) as float32 [y, x]; with `far`, whether it is at least 1.25."""
    mean, target = (maps[name].astype(np.float64) for name in ("mean", "target"))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(mean > 0, np.maximum(mean / target, target / mean), np.inf)
        if far:
            ratio = (ratio >= 1.25).astype(np.float32)
        ratio[~(target > 0)] = np.inf
        return np.asarray(np.where(maps["label"] == 0, ratio, 0.0), np.float32)


class OfErrors(Tally):
    """Base of tallies of the error ε and the σ in the map `sigma`."""

    sigma: str

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("label", "error", self.sigma)

    def flat(self, maps: Maps) -> tuple[Array, Array, Array]:
        """Return ε, σ and `label`, pixels [i]."""
        return (maps["error"].reshape(-1), maps[self.sigma].reshape(-1), maps["label"].reshape(-1))
