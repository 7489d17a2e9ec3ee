"""Join the members of an ensemble, or samples, to one mean and one standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import DataError, cut, listed
from uqeval.maps.contract import Heartbeat
from uqeval.maps.names import VOID
from uqeval.maps.reduction import read_only
from uqeval.maps.spread_hints import of_large, of_negative
from uqeval.stores.array import StoredArray
from uqeval.stores.buffer_pool import BufferPool
from uqeval.stores.fill_values import fill_texts, with_nan
from uqeval.stores.kinds import SPREADS

if TYPE_CHECKING:
    from uqeval.stores.stack import Stack, Tile

_NOWHERE = np.iinfo(np.int64).max


#: σ = factor · exp(slope · x) of stored logarithms x: (factor, slope) by formula.
_LOGARITHMS = {"exp(x / 2)": (1.0, 0.5), "exp(x)": (1.0, 1.0), "sqrt(2) * exp(x)": (2**0.5, 1.0)}


def fits_float32(dtype: np.dtype[Any]) -> bool:
    """Return whether float32 holds all stored numbers of this dtype exactly."""
    return dtype.kind == "f" and dtype.itemsize <= 4


def _no_bad_values() -> Array:
    """Return the record of no bad values: their number, and the first index."""
    return np.array([0, _NOWHERE], np.int64)


@dataclass
class _Checks:
    """The invalid values of one item."""

    label: Array
    bad: dict[str, Array] = field(default_factory=dict)
    negative: Array = field(default_factory=_no_bad_values)
    empty: Array = field(default_factory=_no_bad_values)
    beyond: Array = field(default_factory=_no_bad_values)


@dataclass(kw_only=True)
class _Item(_Checks):
    """The accumulated maps [y, x] of one item, float64."""

    count: Array
    total: Array
    shift: Array
    first: Array
    second: Array
    spread: Array


class Members:
    """Means μ_m with standard deviations σ_m, or samples, of all items.

    μ = mean μ_m and σ² = mean (σ_m² + (μ_m - μ)²): the mean and variance of the mixture (Gustafsson
    et al. 2020, §2; Lakshminarayanan et al. 2017); of samples, the population standard deviation.
    Numbers are added member after member in float64, so the result does not depend on chunks.
    Squares are relative to the first member's number, which keeps all digits.
    """

    def __init__(self, stacks: dict[str, Stack], names: Sequence[str], skip_nan: bool) -> None:
        self.means = stacks["samples"] if "samples" in stacks else stacks["mean"]
        spread = next((name for name in SPREADS if name in stacks), "")
        self.squared = spread == "variance"
        self.log = _LOGARITHMS.get(SPREADS.get(spread, "").replace(spread, "x"))
        self.spreads = stacks.get(spread)
        self.names = names
        self.skip_nan = skip_nan
        self.spare = BufferPool()

    @property
    def count(self) -> int:
        """Return M."""
        return self.means.samples

    @property
    def _stacks(self) -> list[Stack]:
        # Not kept: copies have parts of the stacks.
        return [self.means] if self.spreads is None else [self.means, self.spreads]

    @property
    def arrays(self) -> list[StoredArray]:
        """Return the distinct arrays with the numbers."""
        return [array for stack in self._stacks for array in stack.arrays]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kind of the array that gives σ, if there is one."""
        return (self.spreads.kind,) if self.spreads is not None else ()

    @property
    def has_sigma(self) -> bool:
        """Return whether there is a standard deviation."""
        return self.spreads is not None or self.count > 1

    def size(self, item: int) -> tuple[int, int]:
        """Return height and width of an item."""
        return self.means.size(item)

    def batches(self) -> list[range]:
        """Return ranges of items that must be read together because they share chunks."""
        found = [stack.batches() for stack in self._stacks]
        return max(found, key=lambda batches: len(batches[0]))

    def tile_bytes(self, batch: range) -> int:
        """Return the bytes of the largest decoded tile, and of one of its members for the
        kernel.
        """
        return 2 * max(stack.tile_bytes(batch) for stack in self._stacks)

    @property
    def single(self) -> bool:
        """Return whether a single member gives the result without accumulation."""
        return self.count == 1 and not self.skip_nan

    @property
    def float32(self) -> frozenset[str]:
        """Return the maps that are stored as float32; the others are float64."""
        if not self.single:
            return frozenset()
        spreads = self.spreads
        exact = {"mean"} if all(map(fits_float32, self.means.dtypes)) else set()
        if spreads is None or (spreads.kind == "std" and all(map(fits_float32, spreads.dtypes))):
            exact.add("sigma")
        return frozenset(exact)

    @property
    def pixel_bytes(self) -> int:
        """Return the bytes of accumulators per pixel."""
        if self.single:
            return 0
        return 12 + 24 * (self.count > 1) + 8 * (self.spreads is not None)

    def join(
        self,
        batch: range,
        labels: Sequence[Array],
        targets: Sequence[Array],
        heartbeat: Heartbeat,
        mean: bool,
        exact: bool,
    ) -> list[Maps]:
        """Return `error`, `sigma` and, if requested, `mean` of the items of a batch.

        They are 0 where `labels` are void; targets are ignored there. `error` may be float32 unless
        `exact`. Raises `DataError` for evaluated values that are not finite, or negative.
        """
        if self.single:
            return self._read(batch, labels, targets, heartbeat, mean, exact)
        items = [self._empty(label) for label in labels]
        for stack in self._stacks:
            self._add(stack, batch, items, heartbeat)
        for item, state in zip(batch, items, strict=True):
            self._refuse(item, state)
        return [
            self._finish(item, state, target)
            for item, state, target in zip(batch, items, targets, strict=True)
        ]

    def _read(
        self,
        batch: range,
        labels: Sequence[Array],
        targets: Sequence[Array],
        heartbeat: Heartbeat,
        mean: bool,
        exact: bool,
    ) -> list[Maps]:
        """Return the maps of `join` for a single member."""
        from uqeval.kernels.members import set_errors, set_sigmas

        checks = [_Checks(label) for label in labels]
        float32 = self.float32 if exact else self.float32 | {"error"}
        maps: list[Maps] = [
            {
                name: self.spare.empty(
                    label.shape if is_needed else (0, 0), "f4" if name in float32 else "f8"
                )
                for name, is_needed in (("mean", mean), ("error", True), ("sigma", True))
            }
            for label in labels
        ]
        if self.spreads is None:
            for item_maps in maps:
                item_maps["sigma"][...] = 0.0
        for stack in self._stacks:
            for box in stack.boxes(batch[0]):
                for tile in stack.tiles(batch, box):
                    heartbeat(tile.values.nbytes)
                    i = tile.item - batch[0]
                    check, item_maps = checks[i], maps[i]
                    bad = check.bad.setdefault(stack.kind, _no_bad_values())
                    values = self._numbers(stack, tile, 0)
                    if stack is self.means:
                        set_errors(
                            values, targets[i], check.label, VOID, box.y0, box.x0,
                            item_maps["mean"],
                            item_maps["error"], bad, check.beyond,
                        )  # fmt: skip
                    else:
                        set_sigmas(
                            values, check.label, VOID, box.y0, box.x0, self.squared,
                            item_maps["error"],
                            item_maps["sigma"], bad, check.negative, check.beyond,
                        )  # fmt: skip
        for item, check in zip(batch, checks, strict=True):
            self._refuse(item, check)
            self._refuse_maps(item, check)
        return [
            item_maps if mean else {n: item_maps[n] for n in ("error", "sigma")}
            for item_maps in maps
        ]

    def _numbers(self, stack: Stack, tile: Tile, t: int) -> Array:
        """Return one member of a tile [y, x]; σ if logarithms are stored."""
        values = _plain(stack, tile, t)
        if stack is self.means or self.log is None:
            return values
        from uqeval.kernels.members import sigma_of_logarithms

        sigma = np.empty(values.shape)
        sigma_of_logarithms(values, *self.log, sigma)
        return read_only(sigma)

    def _empty(self, label: Array) -> _Item:
        def zeros(is_needed: bool = True, dtype: str = "f8") -> Array:
            return np.zeros(label.shape if is_needed else (1, 1), dtype)

        has_several = self.count > 1
        return _Item(
            label, count=zeros(dtype="i4"), total=zeros(), shift=zeros(has_several),
            first=zeros(has_several), second=zeros(has_several),
            spread=zeros(self.spreads is not None),
        )  # fmt: skip

    def _add(self, stack: Stack, batch: range, items: list[_Item], heartbeat: Heartbeat) -> None:
        from uqeval.kernels.members import add_means, add_spreads

        for box in stack.boxes(batch[0]):
            for tile in stack.tiles(batch, box):
                heartbeat(tile.values.nbytes)
                state = items[tile.item - batch[0]]
                bad = state.bad.setdefault(stack.kind, _no_bad_values())
                for t in range(tile.values.shape[0]):
                    values = self._numbers(stack, tile, t)
                    if stack is self.spreads:
                        add_spreads(
                            values, state.label, VOID, box.y0, box.x0, tile.t0 + t, self.squared,
                            state.spread, bad, state.negative,
                        )  # fmt: skip
                    else:
                        add_means(
                            values, state.label, VOID, box.y0, box.x0, tile.t0 + t, self.skip_nan,
                            self.count > 1, state.count, state.shift, state.total, state.first,
                            state.second, bad,
                        )  # fmt: skip

    def _refuse(self, item: int, check: _Checks) -> None:
        for stack in self._stacks:
            if check.bad.get(stack.kind, _no_bad_values())[0]:
                hint = "Mask these pixels with an array `valid`, false there, or write them again."
                problem = "NaN or infinite"
                if stack is self.spreads and self.log is not None:
                    hint, problem = of_large(stack.kind) + hint, "NaN, or their σ is infinite"
                if stack.kind == "samples":
                    hint = "Mask them with an array `valid`, or skip NaN with --nan-samples skip."
                if fills := _fills(stack):
                    problem += f", or a fill value of its attributes ({listed(fills)})"
                bad = check.bad[stack.kind]
                raise DataError(self._told(stack, item, check, bad, problem, hint))
        if check.negative[0]:
            assert self.spreads is not None
            hint = of_negative(self.spreads.kind)
            raise DataError(self._told(self.spreads, item, check, check.negative, "negative", hint))

    def _told(
        self, stack: Stack, item: int, check: _Checks, bad: Array, problem: str, hint: str
    ) -> str:
        height, width = check.label.shape
        member, place = divmod(int(bad[1]), height * width)
        count = int((check.label != VOID).sum()) * stack.samples
        before, where = 0, ""
        for array in (own.array_of(item) for own in stack.members):
            samples = array.length("sample")
            if before <= member < before + samples:
                where = array.where
            before += samples
        whose = f" of member {member}" if stack.samples > 1 else ""
        return (
            f"{where}, item {cut(self.names[item])}: {int(bad[0])} of {count} evaluated values are "
            f"{problem}, the first is {_value(stack, item, member, *divmod(place, width)):.6g} at "
            f"row {place // width}, column {place % width}{whose}. {hint}"
        )

    def _finish(self, item: int, state: _Item, target: Array) -> Maps:
        from uqeval.kernels.members import join_members

        shape = state.label.shape
        mean, error, sigma = (np.empty(shape) for _ in range(3))
        join_members(
            state.label, VOID, target, self.count > 1, self.spreads is not None, self.count,
            state.count, state.total, state.shift, state.first, state.second, state.spread,
            mean, error, sigma, state.empty, state.beyond,
        )  # fmt: skip
        self._refuse_maps(item, state)
        return {"mean": mean, "error": error, "sigma": sigma}

    def _refuse_maps(self, item: int, check: _Checks) -> None:
        problems = (
            (check.empty, "have no sample that is a number"), (check.beyond, "are beyond float32"),
        )  # fmt: skip
        for bad, problem in problems:
            if bad[0]:
                y, x = divmod(int(bad[1]), check.label.shape[1])
                stack, hint = self.means, ""
                if bad is check.beyond and self._has_large_spread(item, y, x):
                    assert self.spreads is not None
                    stack, hint = self.spreads, of_large(self.spreads.kind)
                raise DataError(
                    f"{stack.members[0].array_of(item).where}, item "
                    f"{cut(self.names[item])}: {int(bad[0])} evaluated pixels {problem}, first "
                    f"at row {y}, column {x}. {hint}Mask them with `valid`."
                )

    def _has_large_spread(self, item: int, y: int, x: int) -> bool:
        """Return whether a stored σ of a pixel is beyond float32."""
        if self.spreads is None:
            return False
        members = range(self.spreads.samples)
        values = np.array([_value(self.spreads, item, m, y, x) for m in members])
        factor, slope = self.log or (1.0, 0.5 if self.squared else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            sigma = np.log(factor) + slope * (values if self.log else np.log(values))
        return bool((sigma > np.log(np.finfo(np.float32).max)).any())


def _value(stack: Stack, item: int, member: int, y: int, x: int) -> float:
    """Read one stored number again, for a message."""
    for box in stack.boxes(item):
        if box.y0 <= y < box.y1 and box.x0 <= x < box.x1:
            for tile in stack.tiles(range(item, item + 1), box):
                if 0 <= member - tile.t0 < tile.values.shape[0]:
                    member_values = _plain(stack, tile, member - tile.t0)
                    return float(member_values[y - box.y0, x - box.x0])
    raise AssertionError(f"member {member} of item {item} has no row {y}, column {x}")


def _fills(stack: Stack) -> list[str]:
    """Return the values that attributes declare to be none, for messages."""
    is_spread = stack.kind in SPREADS
    return fill_texts(stack.arrays, zero_is_usual=is_spread)


def _plain(stack: Stack, tile: Tile, t: int) -> Array:
    """Return one member of a tile [y, x] as kernels take it: float32 or float64, C order; NaN for
    values that attributes of the array declare to be none."""
    values = tile.values[t]
    if values.ndim == 3:  # a class axis of one class
        values = values[0]
    if values.dtype.kind == "u":
        plain = np.ascontiguousarray(values * stack.scale(tile.array), np.float64)
    else:
        dtype = np.float64 if values.dtype == np.float64 else np.float32
        plain = np.ascontiguousarray(values, dtype)
    is_spread = stack.kind in SPREADS
    return read_only(with_nan(plain, values, tile.array, zero_is_usual=is_spread))
