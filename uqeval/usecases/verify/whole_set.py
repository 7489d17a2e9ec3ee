"""What only the whole set of items has: curves, calibration of single images, temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uqeval.keys import family_of
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.families import Pixels
from uqeval.usecases.verify.patch_curves import accuracy_curve, accuracy_table, threshold_curve
from uqeval.usecases.verify.per_image import per_image
from uqeval.usecases.verify.risk_curve import risk_curve
from uqeval.usecases.verify.temperature import temperature


def of_set(
    key: str, parts: Sequence[Pixels], joined: Pixels, whole: tuple[str, Sequence[Pixels]],
    settings: Mapping[str, Any], results: Mapping[str, Any], class_names: Sequence[str],
) -> Iterator[Recomputed]:  # fmt: skip
    """Yield the fields of a key that items do not have.

    `parts`: the pixels of the items, in a region or not, and `joined` all of them; `whole`: the key
    and the pixels of the whole images, from which fitted values come.
    """
    family, (of_image, image_parts) = family_of(key), whole
    if family == "failure" and key in joined.maps:
        yield risk_curve(joined.maps[key], joined.wrong, results)
    if family == "pavpu" and results.get("uncertainty_threshold") is not None:
        values = np.concatenate([item.maps[of_image] for item in image_parts])
        yield from _curves(key, joined, values, settings, results, class_names)
    if family == "calibration" and "confidence" in joined.maps:
        yield per_image(parts, settings)
        if results.get("temperature") and all(item.probs is not None for item in image_parts):
            yield temperature(parts, image_parts, settings, results)


def _curves(
    key: str, joined: Pixels, of_image: Any, settings: Mapping[str, Any],
    results: Mapping[str, Any], class_names: Sequence[str],
) -> Iterator[Recomputed]:  # fmt: skip
    """Yield the curves of patches and the table over deciles; `of_image`: the uncertainties of the
    whole images."""
    patches = joined.patches[key]
    if settings["curve_range"]:
        low, high = map(float, settings["curve_range"].split(":"))
    else:
        low, high = float(of_image.min()), float(of_image.max())
    yield threshold_curve(patches, settings, (low, high), results)
    yield accuracy_curve(patches, settings, results["uncertainty_threshold"])
    if "accuracy_by_uncertainty" in results:
        yield accuracy_table(
            of_image, joined.maps[key], joined.label, joined.prediction, class_names
        )
