"""Regions of pixels, as views: the pixels near a boundary between classes, and the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError, quoted
from uqeval.maps.names import UNMASKED_LABEL
from uqeval.maps.views import View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.contract import MapSource
    from uqeval.maps.reduction import Maps


@dataclass(frozen=True)
class Boundary(View):
    """Valid pixels at most `radius` pixels from a valid pixel of another ground-truth class.

    The distance is Euclidean, between the centres of pixels. Void is no class and makes no
    boundary. `inside`: these pixels; else the other valid ones, the interior.
    """

    radius: float
    inside: bool = True

    @property
    def name(self) -> str:
        return f"{'boundary' if self.inside else 'interior'}:{self.radius:g}"

    def inputs(self, names: Collection[str]) -> set[str]:
        return {*names, "label"}

    def source(self, source: MapSource) -> MapSource:
        """Raise `UsageError` for data without class labels."""
        if source.kind != "classes":
            raise UsageError(
                f"--region {self.name}: {source.where} holds {source.kind} data; boundaries lie "
                "between the classes of labels. Leave --region out."
            )
        return source

    def maps(self, maps: Maps) -> Maps:
        """Return labels outside the region are void; `UNMASKED_LABEL` has all labels."""
        import numpy as np

        label = maps["label"]
        in_region = near_boundary(label, self.radius) == self.inside
        void = np.iinfo(label.dtype).max
        return maps | {"label": np.where(in_region, label, void), UNMASKED_LABEL: label}


def near_boundary(label: NDArray[Any], radius: float) -> NDArray[Any]:
    """Return a mask [y, x] of the pixels within `radius` of a valid pixel of another class.

    `label` [y, x]: class ids, void as the largest number of its dtype. One exact distance transform
    a class; squared distances are integers, and are rounded to them.
    """
    import cv2
    import numpy as np

    valid = label != np.iinfo(label.dtype).max
    is_near = np.zeros(label.shape, bool)
    classes = np.flatnonzero(np.bincount(label[valid]))
    for c in classes if len(classes) > 1 else ():
        is_class = label == c
        distance_input = (~(valid & ~is_class)).astype(
            np.uint8
        )  # 0 at valid pixels of other classes
        distance = cv2.distanceTransform(distance_input, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        is_near |= is_class & (np.rint(np.square(distance, dtype=np.float64)) <= radius * radius)
    return is_near


def region_of(text: str) -> View:
    """Read a region as users write it. Raises `UsageError`."""
    kind, _, value = text.strip().partition(":")
    try:
        return REGIONS[kind](value)
    except (KeyError, ValueError):
        kinds = " or ".join(f"{name}:R" for name in REGIONS)
        raise UsageError(
            f"--region {quoted(text[:100])}; expected {kinds}, with a distance R above 0 in "
            "pixels, such as boundary:8."
        ) from None


def _distance(value: str) -> float:
    """Return a finite number above 0. Raises `ValueError`."""
    distance = float(value)
    if not 0 < distance < math.inf:
        raise ValueError(value)
    return distance


#: For each kind of region, a function that makes it from the text after the colon. It raises
#: `ValueError` for an invalid text.
REGIONS: dict[str, Callable[[str], View]] = {
    "boundary": lambda value: Boundary(_distance(value)),
    "interior": lambda value: Boundary(_distance(value), inside=False),
}
