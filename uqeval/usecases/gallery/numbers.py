"""Pictures of predicted numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.report.page.gallery import Picture
from uqeval.usecases.gallery.paint import HIDDEN, css, heat, photo

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report


class Numbers:
    """Pictures of predicted numbers: errors and standard deviations on one scale."""

    def __init__(self, report: Report, inputs: Inputs, images: dict[str, Path]) -> None:
        self._inputs, self._images = inputs, images
        measures = [
            settings["uncertainty"]
            for settings in report.settings.values()
            if settings.get("uncertainty")  # sets of classes have none
        ]
        self._sigmas = list(dict.fromkeys(measures)) or ["sigma"]
        inputs.source.want(["mean", "target", "error", *self._sigmas])

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the meaning of the grey areas."""
        return [(css(HIDDEN), "not evaluated")]

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item."""
        import numpy as np

        from uqeval.maps.names import void_of

        (maps,) = self._inputs.source.read(range(item, item + 1))
        name = self._inputs.source.names[item]
        void = maps["label"] == void_of(self._inputs.source.classes)
        images = [*photo(self._images, name)]
        target = maps["target"][~void]
        ends = (float(target.min()), float(target.max())) if target.size else (0.0, 1.0)
        images += [
            heat(map_name, maps[map_name], name, ends, void) for map_name in ("target", "mean")
        ]
        most = [np.percentile(maps[m][~void], 98) for m in ("error", *self._sigmas) if target.size]
        ends = (0.0, float(max(most, default=1.0)))
        return images + [heat(m, maps[m], name, ends, void) for m in ("error", *self._sigmas)]
