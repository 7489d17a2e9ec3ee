"""Pictures of predicted numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.arrays import np
from uqeval.errors import UsageError, quoted
from uqeval.maps.names import void_of
from uqeval.report.page.gallery import Picture
from uqeval.usecases.gallery.named_maps import image_of, uncertainties_of
from uqeval.usecases.gallery.paint import HIDDEN, css, heat, photo

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report


class Numbers:
    """Pictures of predicted numbers: errors and standard deviations on one scale.

    `maps`: only these, in this order; each standard deviation then has its own scale. Raises
    `UsageError` for names that are of no map.
    """

    def __init__(
        self, report: Report, inputs: Inputs, images: dict[str, Path], maps: Sequence[str] = ()
    ) -> None:
        self._inputs, self._images = inputs, images
        named = uncertainties_of(report) or ["sigma"]
        # The predicted σ has two names.
        self._sigmas = list(dict.fromkeys("sigma" if own == "std" else own for own in named))
        self._maps = list(maps)
        names = ["image", "target", "mean", "error", *self._sigmas]
        for name in maps:
            if name not in names:
                raise UsageError(
                    f"--maps {quoted(name)}: expected one of {', '.join(names)}, for a report of "
                    "predicted numbers."
                )
        inputs.source.want(["mean", "target", "error", *self._sigmas])

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the meaning of the grey areas."""
        return [(css(HIDDEN), "not evaluated")]

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item."""
        (maps,) = self._inputs.source.read(range(item, item + 1))
        name = self._inputs.source.names[item]
        void = maps["label"] == void_of(self._inputs.source.classes)
        target = maps["target"][~void]
        ends = (float(target.min()), float(target.max())) if target.size else (0.0, 1.0)
        most = {
            map_name: float(np.percentile(maps[map_name][~void], 98)) if target.size else 1.0
            for map_name in ("error", *self._sigmas)
        }

        def picture(map_name: str) -> Picture:
            if map_name == "image":
                return image_of(self._images, name)
            if map_name in ("target", "mean"):
                return heat(map_name, maps[map_name], name, ends, void)
            high = most[map_name] if self._maps else max(most.values())
            return heat(map_name, maps[map_name], name, (0.0, high), void)

        if self._maps:
            return [picture(map_name) for map_name in self._maps]
        names = ("target", "mean", "error", *self._sigmas)
        return [*photo(self._images, name), *map(picture, names)]
