"""Maps of predicted numbers: the error, its predicted standard deviation, and their ratio."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from uqeval.arrays import Array, Maps
from uqeval.errors import StoreError, UsageError, all_listed, cut, quoted
from uqeval.maps.checks import (
    as_stored,
    check_size,
    evaluated_by,
    refuse_negative_sigma,
    refuse_values,
)
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.members import Members, fits_float32
from uqeval.maps.names import (
    ERROR_KEY,
    TARGET_COUNTS,
    VOID,
    form_of,
    is_lambda,
    lambda_of,
    sigma_of,
)
from uqeval.maps.reduction import read_only
from uqeval.spelling import for_caller
from uqeval.stores.fill_values import invalid_of, is_outside, refuse_fill
from uqeval.stores.kinds import SPREADS

if TYPE_CHECKING:
    from uqeval.stores.planes import Planes
    from uqeval.stores.stack import Stack

#: Maps that are computed from members.
_OF_MEMBERS = frozenset({"mean", "error", "sigma", ERROR_KEY})
#: The name of λ for another map that is used as σ: `lambda:NAME`.
_LAMBDA = "lambda"


class RegressionSource(MapSource):
    """Maps [y, x] of predicted numbers, by name.

    `label` uint8: 0 where evaluated (`valid` is true and the target finite), 255 elsewhere; there
    the other maps are 0 and predictions are ignored. float64: `mean` μ, `target` y, `error` ε = |y
    - μ|, `sigma` σ, and maps of the store by their names; those in `float32` have the stored dtype.
    float32, as rank keys are: `error:rank` ε, `lambda` ε/σ (σ = 0: ∞ where ε > 0, 0 where ε = 0),
    and `lambda:NAME` of a map of the store. `sigma:NAME` is the map NAME, which must not be
    negative. `target_counts` float64 [10]: counts and ends of the targets (`count_targets`).

    `stacks`: `samples`, or `mean` and, if there is one, an array of `SPREADS`. `valid`: masks,
    which must all be true. `invalid`: target values that mean "no measurement", in addition to the
    attribute `invalid` of the target's array. Without a `target`, only maps that need none exist.
    """

    kind = "regression"
    classes = 1

    def __init__(
        self,
        names: Sequence[str],
        stacks: dict[str, Stack],
        *,
        target: Planes | None,
        valid: Sequence[Planes] = (),
        extra: dict[str, Planes],
        where: str,
        content: str = "predictions",
        and_others: str = "",
        skip_nan: bool = False,
        invalid: Sequence[float] = (),
    ) -> None:
        self.invalid = tuple(invalid)
        self.names = tuple(names)
        self.members = Members(stacks, self.names, skip_nan)
        self.target = target
        self.valid = tuple(valid)
        self.extra = extra
        self.where = where
        self.content, self.and_others = content, and_others
        self.wanted: frozenset[str] = frozenset()
        #: All maps that were ever wanted, also of subsets of the members.
        self.requested: set[str] = set()
        self._needed = self.wanted
        for array in (*self.members.arrays, *(a for p in self._planes(extra) for a in p.arrays)):
            array.anywhere = True

    @property
    def samples(self) -> int | None:
        return self.members.count

    def size(self, item: int) -> tuple[int, int]:
        return self.members.size(item)

    def want(self, names: Sequence[str]) -> None:
        """Set the maps that `read` returns.

        Raises `UsageError` without a target, `StoreError` for a map that cannot be read or
        computed.
        """
        needs_no_target = ("label", "mean", "sigma", *self.extra)
        if self.target is None and not set(names) <= set(needs_no_target):
            raise UsageError(
                f"{self.where} has no target: it holds {self.content}. "
                + for_caller(
                    "Give a store with `target`, a .npy, or a folder of 16-bit PNGs, .npy or .pfm "
                    "files after the predictions.",
                    "Pass labels=: numbers [N, H, W], a store with `target`, or a folder of 16-bit "
                    "PNGs, .npy or .pfm files; or store an array `target` in it.",
                    "Give the store the key `target:` with a store with `target`, a .npy, or a "
                    "folder of 16-bit PNGs, .npy or .pfm files.",
                )
            )
        for name in names:
            base_name = name.removeprefix(f"{_LAMBDA}:").removeprefix("sigma:")
            if base_name in ("label", "mean", "target", "error", ERROR_KEY, TARGET_COUNTS):
                continue
            if base_name in ("sigma", _LAMBDA):
                if not self.members.has_sigma:
                    raise StoreError(
                        f"{self.where} has one mean per pixel and no standard deviation. Store "
                        f"one of {', '.join(SPREADS)}; or members or samples; or name a map of "
                        "the store that is a standard deviation with --uncertainty "
                        f"({all_listed(sorted(self.extra)) or 'it holds none'})."
                    )
            elif base_name in self.members.kinds:
                raise StoreError(
                    f"--uncertainty {base_name}: {self.where} is read with σ = "
                    f"{SPREADS[base_name]} already. Leave --uncertainty out."
                )
            elif base_name not in self.extra:
                available = ", ".join(sorted({"sigma", *self.extra}))
                raise StoreError(
                    f"{self.where} has no map {quoted(base_name)}; it has "
                    f"{available}{self.and_others}."
                )
        self.wanted = self._needed = frozenset(names) | {"label"}
        self.requested |= self.wanted

    def need(self, names: Collection[str]) -> None:
        """Set the wanted maps that the next pass reads. Maps for a later pass are read whole."""
        if self.mapped:
            self._needed = frozenset(names) | {"label"}

    def maps_bytes(self) -> int:
        """Return bytes of the wanted maps of all items."""
        return self._all_pixels * self._pixel_bytes()

    @cached_property
    def _all_pixels(self) -> int:
        return sum(height * width for height, width in map(self.size, range(self.items)))

    def _pixel_bytes(self) -> int:
        """Return the bytes of a pixel of the wanted maps."""
        forms = (
            form_of(name, 1, (), self.kind, self.float32) for name in self.wanted - {TARGET_COUNTS}
        )
        return sum(np.dtype(dtype).itemsize for _, dtype in forms)

    @cached_property
    def float32(self) -> frozenset[str]:
        """Return the maps whose stored numbers are exact in float32."""
        stored = self.extra | ({"target": self.target} if self.target else {})
        exact = {
            n for n, planes in stored.items() if all(fits_float32(a.dtype) for a in planes.arrays)
        }
        return self.members.float32 | exact | {sigma_of(name) for name in exact & set(self.extra)}

    def batches(self) -> list[range]:
        return self.members.batches()

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes: a tile, accumulators and maps."""
        height, width = self.size(batch[0])
        pixels = len(batch) * height * width
        cached_bytes = sum(planes.kept_bytes() for planes in self._planes(self._used))
        pixel_bytes = 10 if self.members.single else 24  # the stored target, masks
        # Chunks may be larger than an item, and are decoded completely.
        chunk = max((planes.chunk_bytes for planes in self._planes(self._used)), default=0)
        return (
            self.members.tile_bytes(batch)
            + cached_bytes
            + max(chunk - 8 * pixels, 0)
            + pixels * (self.members.pixel_bytes + self._pixel_bytes() + 24 + pixel_bytes)
        )

    @cached_property
    def mapped(self) -> bool:
        """Return whether the maps are single numbers that are stored uncompressed on a disk."""
        arrays = [array for planes in self._planes(self._used) for array in planes.arrays]
        return self.members.single and all(
            not array.is_remote
            and array.stored_bytes() == math.prod(array.shape) * array.dtype.itemsize
            for array in (*arrays, *self.members.arrays)
        )

    def reads(self, name: str) -> bool:
        """Return whether a map of another name is read for any map that was wanted until now; true
        before maps are wanted."""
        return not self.requested or _uses(self.requested, name)

    @property
    def _used(self) -> list[str]:
        return [name for name in self.extra if _uses(self.wanted, name)]

    def _planes(self, extra: Iterable[str]) -> list[Planes]:
        planes = [self.extra[name] for name in extra]
        return [*planes, *([self.target] if self.target else []), *self.valid]

    # ---- what it gives

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> list[Maps]:
        """Return the wanted maps of the items of a batch, or only the needed ones.

        `heartbeat` is called with the bytes of each tile. Raises `DataError` or `StoreError` for
        values that cannot be evaluated, naming item and store.
        """
        read_items = [self._given(item, heartbeat) for item in batch]
        return self._joined(batch, read_items, self.members, heartbeat)

    def _given(self, item: int, heartbeat: Heartbeat) -> tuple[Maps, Array]:
        """Return maps that do not depend on the members, `label` among them, and the target."""
        label, target = self._truth(item)
        maps = {"label": label}
        if TARGET_COUNTS in self._needed:
            from uqeval.kernels.members import count_targets

            maps[TARGET_COUNTS] = np.zeros(10)
            count_targets(target, label, VOID, maps[TARGET_COUNTS])
        if "target" in self._needed:
            assert self.target is not None
            maps["target"] = self._copied("target", target, label, self.target, item, "targets")
        for name in self.extra:
            if _uses(self._needed, name):
                maps[name] = self._extra_map(name, item, label)
                if sigma_of(name) in self._needed:
                    self._refuse_negative(maps[name], name, item)
                    maps[sigma_of(name)] = maps[name]
                heartbeat(maps[name].nbytes)
        return maps, target

    def _joined(
        self,
        batch: range,
        read_items: Sequence[tuple[Maps, Array]],
        members: Members,
        heartbeat: Heartbeat,
    ) -> list[Maps]:
        """Return the requested maps: `read_items`, and those of some members."""
        needed = self._needed
        joined: list[Maps] = [{} for _ in batch]
        if needed & _OF_MEMBERS or any(map(is_lambda, needed)):
            labels, targets = (
                [maps["label"] for maps, _ in read_items],
                [target for _, target in read_items],
            )
            exact = "error" in needed or any(map(is_lambda, needed))
            joined = members.join(batch, labels, targets, heartbeat, "mean" in needed, exact)
        results = []
        for item, (maps, _), result in zip(batch, read_items, joined, strict=True):
            all_maps = maps | result
            if ERROR_KEY in needed:
                all_maps[ERROR_KEY] = self._key(all_maps["error"])
            for name in needed:
                if is_lambda(name):
                    sigma = name.removeprefix(_LAMBDA).removeprefix(":") or "sigma"
                    all_maps[name] = self.ratio_of(all_maps["error"], all_maps[sigma], sigma, item)
            results.append({name: all_maps[name] for name in sorted(needed)})
        return results

    def _truth(self, item: int) -> tuple[Array, Array]:
        """Return `label`, and the target: any value where it is not evaluated, 0 without a
        target.
        """
        from uqeval.kernels.members import set_label

        target: Array = np.broadcast_to(np.float64(0), self.size(item))
        label = self.members.spare.empty(target.shape, np.uint8)
        if self.target is None:
            label[...] = 0
        else:
            plane = self.target.read(item)
            check_size(
                plane.shape, self.size(item), self._place(self.target, item), "the target is"
            )
            target = _plain(plane)
            array = self.target.parts[item].array
            invalid = [*self.invalid, *invalid_of(array)]
            set_label(target, as_stored(invalid, array.dtype, target.dtype), VOID, label)
            if (outside := is_outside(plane, array)) is not None:
                label[outside] = VOID
        for mask in self.valid:
            values = mask.read(item)
            check_size(values.shape, self.size(item), self._place(mask, item), "valid is")
            array = mask.parts[item].array
            label[~evaluated_by(values, array, self._place(mask, item))] = VOID
        return label, target

    def _place(self, planes: Planes, item: int) -> str:
        return f"{planes.where_of(item)}, item {cut(self.names[item])}"

    def _extra_map(self, name: str, item: int, label: Array) -> Array:
        planes = self.extra[name]
        plane = planes.read(item)
        check_size(plane.shape, self.size(item), self._place(planes, item), "it is")
        array, where = planes.parts[item].array, self._place(planes, item)
        remedy = "Mask these pixels with `valid`"
        refuse_fill(plane, array, label, VOID, where, zero_is_usual=True, remedy=remedy)
        return self._copied(name, _plain(plane), label, planes, item, "values")

    def _copied(
        self, name: str, values: Array, label: Array, planes: Planes, item: int, what: str
    ) -> Array:
        """Return the stored numbers of a map, 0 where void. Raises `DataError` for NaN and ∞."""
        from uqeval.kernels.members import copy_values

        copied = self.members.spare.empty(label.shape, "f4" if name in self.float32 else "f8")
        if not copy_values(values, label, VOID, copied):
            refuse_values(values, copied, self._place(planes, item), what)
        return copied

    def _key(self, values: Array) -> Array:
        """Return numbers rounded to float32, the type of rank keys."""
        if values.dtype == np.float32:
            return values
        key = self.members.spare.empty(values.shape, np.float32)
        np.copyto(key, values, casting="same_kind")
        return key

    def ratio_of(self, error: Array, sigma: Array, name: str, item: int) -> Array:
        """Return λ = ε/σ rounded to float32."""
        from uqeval.kernels.members import set_ratios

        ratio = self.members.spare.empty(error.shape, np.float32)
        if not set_ratios(error, sigma, ratio):
            self._refuse_negative(sigma, name, item)
        return ratio

    def _refuse_negative(self, values: Array, name: str, item: int) -> None:
        """Raise `NegativeSigma` if a map that is used as σ is negative."""
        where = self._place(self.extra[name], item)
        refuse_negative_sigma(values, name, where, self.where)


def _uses(names: Set[str], name: str) -> bool:
    return bool(names & {name, lambda_of(name), sigma_of(name)})


def _plain(values: Array) -> Array:
    """Return stored numbers [y, x] in a dtype for the kernels, unchanged: float32 or float64."""
    exact = values.dtype.itemsize < 3 or values.dtype == np.float32
    return read_only(np.asarray(values, np.float32 if exact else np.float64))
