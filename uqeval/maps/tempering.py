"""Maps of samples, each tempered before they are averaged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval import kernels
from uqeval.arrays import Array, Maps
from uqeval.maps.contract import Heartbeat, MapSource
from uqeval.maps.names import Betas, void_of
from uqeval.maps.reduction import Form, read_only
from uqeval.maps.region_maps import WithRegions
from uqeval.maps.sources import Source, with_samples
from uqeval.maps.stack_maps import flat_label
from uqeval.stores.stack import Box, Tile

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

_TOLERANCE = 1e-4


class TemperedSamples(Source):
    """`Source` of p_t^β / Σ_c p_t^β. It equals dividing the logits of each sample by T = 1 / β.

    `tempered_nll` float32 [β, y, x] is -ln mean_t p_ty^β / Σ_c p_tc^β of the label y at all
    `betas`. It is infinite where p_ty = 0 in all samples, and no other map is read with it. Other
    maps are those of the smallest β. Probabilities are float32, and 0 remains 0 for any β. All
    classes of a chunk are read together, and the samples one after another, so memory does not grow
    with their number.
    """

    def __init__(self, source: Source, betas: Betas) -> None:
        super().__init__(
            source.names, source.classes, stack=copy.copy(source.stack), stored={},
            labels=source.labels, where=source.where, sum_tolerance=source.sum_tolerance,
        )  # fmt: skip
        self.requested = source.requested
        self._samples.joins_classes = True
        self.betas = betas

    @property
    def _likelihoods(self) -> bool:
        return "tempered_nll" in self.wanted

    def want(self, names: Any) -> None:
        """Set the maps that `read` returns; see `Source.want`."""
        super().want([name for name in names if name != "tempered_nll"])
        if "tempered_nll" in names:
            self.wanted = frozenset({"label", "tempered_nll"})

    def batch_bytes(self, batch: range) -> int:
        """Return peak bytes that reading a batch takes: tiles, accumulators and maps."""
        need, stack = super().batch_bytes(batch), self._samples
        if self._likelihoods:
            height, width = self.size(batch[0])
            box = max(b.pixels for b in stack.boxes(batch[0]))
            maps, sums = 4 * height * width, 16 * box
            return need + self.betas.count * (len(batch) * (maps + sums) + 4 * box)
        numbers = stack.tile_bytes(batch) // len(batch) // min(d.itemsize for d in stack.dtypes)
        return need + 4 * numbers * max(2 // stack.classes, 1)  # the tempered copy

    def read(self, batch: range, heartbeat: Heartbeat = lambda _: None) -> Sequence[Maps]:
        """Return the wanted maps [y, x] of the items of a batch."""
        if not self._likelihoods:
            return super().read(batch, heartbeat)
        results: list[Maps] = []
        for item in batch:
            label = self._label(item)
            assert label is not None
            nll = np.empty((self.betas.count, *label.shape), np.float32)
            results.append({"label": label, "tempered_nll": nll})
        for box in self._samples.boxes(batch[0]):
            self._add_box(batch, box, results, heartbeat)
        return results

    def _add_box(self, batch: range, box: Box, results: list[Maps], heartbeat: Heartbeat) -> None:
        stack, form, betas = self._samples, self._form(), self.betas
        region = (slice(box.y0, box.y1), slice(box.x0, box.x1))
        labels = [flat_label(maps["label"], region) for maps in results]
        top, sums = np.zeros((2, len(batch), betas.count, box.pixels))
        block = kernels.tempering.BLOCK
        logs, work = np.empty((form.classes, block)), np.empty((3, block))
        z = np.empty((betas.count, block))
        for tile in stack.tiles(batch, box):
            heartbeat(tile.values.nbytes)
            j = tile.item - batch[0]
            kernels.tempering.add_label_logs(
                self._prepare(tile, form), labels[j], void_of(self.classes), betas.lowest,
                betas.step, logs, work, z, top[j], sums[j],
            )  # fmt: skip
        nll = np.empty((betas.count, box.pixels), np.float32)
        for j, maps in enumerate(results):
            kernels.tempering.finish_label_logs(form.samples, top[j], sums[j], nll)
            self._write_region(maps, region, {"tempered_nll": nll})

    def _form(self) -> Form:
        return replace(super()._form(), dtype=np.dtype(np.float32), unit=1.0)

    def _tolerance_of(self, array: StoredArray) -> float:
        return _TOLERANCE

    def _prepare(self, tile: Tile, form: Form) -> Array:
        """Return a tile for the kernels, tempered unless its likelihoods are requested."""
        values = super()._prepare(tile, form)
        if not self._likelihoods:
            values = values.copy()
            block = kernels.tempering.BLOCK
            logs = np.empty((form.classes, block))
            kernels.tempering.temper_samples(values, self.betas.lowest, logs, np.empty(block))
        return read_only(values)


def tempered(source: MapSource, betas: Betas) -> MapSource:
    """Return the tempered samples of a source, with its regions. Raises `UsageError` if it has no
    samples.
    """
    samples = TemperedSamples(with_samples(source, "a temperature of the samples"), betas)
    return source.of(samples) if isinstance(source, WithRegions) else samples
