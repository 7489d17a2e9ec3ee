"""Predicted numbers in other units: disparities as depths, and depths scaled to the target."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import DataError, cut
from uqeval.maps.contract import Heartbeat
from uqeval.maps.names import ERROR_KEY, TARGET_COUNTS, VOID, is_lambda

if TYPE_CHECKING:
    from uqeval.maps.regression import RegressionSource


@dataclass(frozen=True)
class Conversion:
    """Conversions of predictions, applied in this order.

    `baseline_focal`: depth = baseline_focal / disparity, and σ by the first-order rule
    σ·baseline_focal/disparity²; also for the target if `of_target`. `median`: prediction and σ
    times median(target) / median(prediction) of the evaluated pixels of each item.
    """

    baseline_focal: float | None = None
    of_target: bool = False
    median: bool = False


class ConvertedSource:
    """The maps of a regression after a `Conversion`: `mean`, `target`, `error`, σ and λ, float64.

    Other maps of the store are not converted.
    """

    mapped = False

    def __init__(self, source: RegressionSource, conversion: Conversion) -> None:
        self._source, self._conversion = source, conversion
        self.wanted: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._source, name)

    @property
    def float32(self) -> frozenset[str]:
        """Return the unconverted maps that are stored as float32."""
        return self._source.float32 & self._source.extra.keys()

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns. Raises `UqevalError` for maps that do not exist."""
        self.wanted = frozenset(names) | {"label"}
        inner = {"label", *self._plain(names)}
        if any(_is_converted(name) for name in names):
            inner |= {"mean"}
        if {"target", "error", ERROR_KEY} & set(names) or any(map(is_lambda, names)):
            inner |= {"mean", "target"}
        if self._conversion.median:
            inner |= {"mean", "target"}
        inner |= {_sigma_of_lambda(name) for name in names if is_lambda(name)}
        self._source.want(sorted(inner))

    @staticmethod
    def _plain(names: Collection[str]) -> set[str]:
        """Return the maps that are read from the source."""
        return {name for name in names if name not in ("error", ERROR_KEY) and not is_lambda(name)}

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes."""
        height, width = self._source.size(batch[0])
        pixels = len(batch) * height * width
        return self._source.batch_bytes(batch) + pixels * 8 * (len(self.wanted) + 4)

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the wanted maps of the items of a batch. Raises `DataError`."""
        read_items = self._source.read(batch, heartbeat)
        with np.errstate(over="ignore", invalid="ignore"):  # `_refuse_beyond` refuses such numbers
            return [
                self._converted(item, maps) for item, maps in zip(batch, read_items, strict=True)
            ]

    def _converted(self, item: int, maps: Maps) -> Maps:
        label = maps["label"]
        valid = label != VOID
        results: Maps = {"label": label}
        factor: Any = 1.0  # of σ
        mean = maps["mean"].astype(np.float64) if "mean" in maps else np.zeros(label.shape)
        target = maps["target"].astype(np.float64) if "target" in maps else np.zeros(label.shape)
        if self._conversion.baseline_focal is not None:
            mean, factor = self._depth(mean, valid, item, "predicted disparities")
            if self._conversion.of_target:
                target, _ = self._depth(target, valid, item, "target disparities")
        if self._conversion.median and valid.any():
            scale = self._scale(mean[valid], target[valid], item)
            mean, factor = mean * scale, factor * scale
        error = np.where(valid, np.abs(mean - target), 0.0)
        results |= {"mean": mean, "target": target, "error": error}
        results[ERROR_KEY] = error.astype(np.float32)
        for name in maps.keys() - results.keys():
            is_sigma = name == "sigma" or name.startswith("sigma:")
            results[name] = maps[name].astype(np.float64) * factor if is_sigma else maps[name]
        self._refuse_beyond(results, item)
        for name in filter(is_lambda, self.wanted):
            sigma = np.ascontiguousarray(results[_sigma_of_lambda(name)], np.float64)
            results[name] = self._source.ratio_of(error, sigma, _sigma_of_lambda(name), item)
        return {name: results[name] for name in sorted(self.wanted | {TARGET_COUNTS})
                if name in results}  # fmt: skip

    def _depth(self, disparity: Array, valid: Array, item: int, what: str) -> tuple[Array, Array]:
        """Return depths, and the factor of their σ; 0 where not evaluated."""
        by = self._conversion.baseline_focal
        assert by is not None
        bad = int((disparity[valid] <= 0).sum())
        if bad:
            raise DataError(
                f"{self._source.where}, item {cut(self._source.names[item])}: {bad} of "
                f"{int(valid.sum())} {what} are 0 or less, and --baseline-focal {by:g} divides by "
                "them. Leave these pixels out with an array `valid`, or store depths."
            )
        depth = np.divide(by, disparity, out=np.zeros(disparity.shape), where=valid)
        factor = np.divide(depth, disparity, out=np.zeros(disparity.shape), where=valid)
        return depth, factor

    def _refuse_beyond(self, maps: Maps, item: int) -> None:
        """Raise `DataError` for converted numbers beyond float32, as the source does for stored."""
        for name, values in maps.items():
            if not _is_converted(name) or np.isfinite(values.astype(np.float32)).all():
                continue
            bad = ~np.isfinite(values.astype(np.float32))
            y, x = (int(k[0]) for k in np.nonzero(bad))
            by = self._conversion.baseline_focal
            option = "--median-scaling" if by is None else f"--baseline-focal {by:g}"
            raise DataError(
                f"{self._source.where}, item {cut(self._source.names[item])}: {int(bad.sum())} of "
                f"{bad.size} values of {name} are beyond float32 after {option}, first at row {y}, "
                f"column {x}. Check the option, or leave these pixels out with an array `valid`."
            )

    def _scale(self, mean: Array, target: Array, item: int) -> float:
        """Return median(target) / median(prediction) of an item."""
        middle, wanted = float(np.median(mean)), float(np.median(target))
        if middle <= 0 or wanted <= 0:
            name, value = ("prediction", middle) if middle <= 0 else ("target", wanted)
            raise DataError(
                f"{self._source.where}, item {cut(self._source.names[item])}: the median of the "
                f"{name} is {value:g}; --median-scaling needs medians above 0. Leave it out, or "
                "give the value of targets without a measurement as --invalid."
            )
        return wanted / middle


def _is_converted(name: str) -> bool:
    """Return whether the conversion changes a map."""
    return name in ("mean", "target", "error", ERROR_KEY) or name.startswith(("sigma", "lambda"))


def _sigma_of_lambda(name: str) -> str:
    """Return the map of σ in λ = ε/σ: `sigma` of `lambda`, `sigma:NAME` of `lambda:NAME`."""
    return name.replace("lambda", "sigma", 1)
