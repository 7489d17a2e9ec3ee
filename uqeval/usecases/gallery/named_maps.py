"""Maps that a user names for the figure of an item: `entropy`, `entropy:log`, `entropy:p95`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.arrays import Array, np
from uqeval.errors import UsageError, quoted
from uqeval.maps.names import UNCERTAINTIES
from uqeval.report.page.gallery import Picture
from uqeval.usecases.gallery.paint import photo

if TYPE_CHECKING:
    from uqeval.records.report import Report

_PIXELS = ("image", "label", "prediction", "errors")
_PATCHES = ("patches", "accurate", "uncertain")
#: Least uncertainty in a logarithm: float32 entropies below it are rounding.
_LEAST = 1e-6
_FORM = re.compile(
    r"(?P<base>[^:]+)(:(?P<log>log)|:(?P<class_>class-)?p(?P<p>\d+(\.\d+)?))?", re.ASCII
)


def uncertainties_of(report: Report) -> list[str]:
    """Return the uncertainties that a report evaluates, each once."""
    settings = report.settings.values()
    # Sets of classes have none.
    return list(
        dict.fromkeys(
            of_result["uncertainty"] for of_result in settings if of_result.get("uncertainty")
        )
    )


@dataclass(frozen=True)
class NamedMap:
    """A map of an item of predicted classes.

    `logarithm`: to base 10. `percentile`: values below this percentile of the item are black;
    `of_class`: the percentile is that of the pixels with the same predicted class.
    """

    base: str
    logarithm: bool = False
    percentile: float | None = None
    of_class: bool = False
    name: str = ""

    @property
    def is_of_patches(self) -> bool:
        """Whether it shows patches."""
        return self.base in _PATCHES

    @property
    def is_uncertainty(self) -> bool:
        """Whether it shows an uncertainty."""
        return self.base not in _PIXELS + _PATCHES

    @property
    def title(self) -> str:
        """Return the title of the map."""
        if self.logarithm:
            return f"log10 {self.base}"
        if self.percentile is None:
            return self.base
        return f"{self.base} ≥ p{self.percentile:g}{' of its class' if self.of_class else ''}"

    def values(
        self, uncertainty: Array, prediction: Array
    ) -> tuple[Array, tuple[float, float] | None]:
        """Return the values [y, x] to show, and the ends of their scale (None: 0 and the greatest).

        `uncertainty` and `prediction` [y, x] are of one item.
        """
        if self.logarithm:
            logs = np.log10(np.maximum(uncertainty, _LEAST))
            return logs, (float(logs.min()), float(logs.max()))
        if self.percentile is None:
            return uncertainty, None
        threshold = np.full(uncertainty.shape, np.percentile(uncertainty, self.percentile))
        for c in np.unique(prediction) if self.of_class else ():
            inside = prediction == c
            threshold[inside] = np.percentile(uncertainty[inside], self.percentile)
        return np.where(uncertainty >= threshold, uncertainty, 0.0), None


def map_named(name: str, has_patches: bool = True, uncertainties: Sequence[str] = ()) -> NamedMap:
    """Return the map of a name. Raises `UsageError`.

    `uncertainties`: those of the report, which may be maps of the store.
    """
    measures = tuple(dict.fromkeys((*UNCERTAINTIES, *uncertainties)))
    match = _FORM.fullmatch(name)
    base = match["base"] if match else ""
    known = _PIXELS + _PATCHES if has_patches else _PIXELS
    is_plain = match is not None and match.end() == match.end("base")
    percentile = float(match["p"]) if match and match["p"] else None
    if base in _PATCHES and not has_patches:
        raise UsageError(
            f"--maps {quoted(name)} shows patches; the report has none. Run uqeval pavpu, or "
            "leave it out."
        )
    if match is None or (base not in measures and not (is_plain and base in known)) or (
        percentile is not None and not 0 <= percentile <= 100
    ):  # fmt: skip
        raise UsageError(
            f"--maps {quoted(name)}: expected one of {', '.join(known + measures)}; after an "
            "uncertainty also :log, :p95 (from that percentile of the image on) or :class-p95 "
            "(of the pixels with the same predicted class)."
        )
    return NamedMap(base, bool(match["log"]), percentile, bool(match["class_"]), name)


def image_of(images: dict[str, Path], name: str) -> Picture:
    """Return the item's own image. Raises `UsageError` if no file has its name."""
    for picture in photo(images, name):
        return picture
    raise UsageError(
        f"--maps image: no image has the name of the item {quoted(name)}. Give --images DIR, a "
        "folder with such a file, or leave image out."
    )
