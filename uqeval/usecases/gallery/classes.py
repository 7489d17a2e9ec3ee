"""Pictures of predicted classes."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uqeval.errors import UqevalError
from uqeval.keys import Key, family_of
from uqeval.report.page.gallery import Picture
from uqeval.usecases.gallery.paint import RIGHT, VOID, WRONG, colours, css, heat, painted, photo

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.inputs import Inputs
    from uqeval.maps.reduction import Maps
    from uqeval.records.report import Report

#: Patches: accurate and certain, accurate and uncertain, inaccurate and certain, … and uncertain.
_PATCHES = ((205, 225, 240), (110, 165, 210), (200, 30, 40), (240, 165, 80))
_PATCH_WORDS = (
    "accurate, certain", "accurate, uncertain", "inaccurate, certain", "inaccurate, uncertain",
)  # fmt: skip


class Classes:
    """Pictures of predicted classes: prediction, label, errors, uncertainties, patches."""

    def __init__(self, report: Report, inputs: Inputs, images: dict[str, Path]) -> None:
        self._inputs, self._images, self._report = inputs, images, report
        self._colours = colours(inputs.source.classes)
        self._settings = {
            key: settings
            for key, settings in report.settings.items()
            if family_of(key) == "pavpu" and Key.parse(key).region is None
        }
        measures = [
            settings["uncertainty"]
            for settings in report.settings.values()
            if settings.get("uncertainty")  # sets of classes have none
        ]
        self._uncertainties = list(dict.fromkeys(measures))
        inputs.source.want(["label", "prediction", *self._uncertainties])
        if not measures:
            with suppress(UqevalError):  # predicted ids alone have no uncertainty to show
                inputs.source.want(["label", "prediction", "confidence"])
                self._uncertainties = ["confidence"]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the colours of the classes, of errors and of patches."""
        entries = list(zip(map(css, self._colours), self._inputs.class_names, strict=False))[:40]
        entries += [
            (css(VOID), "void"),
            (css(RIGHT), "right pixel"),
            (css(WRONG), "wrong pixel"),
        ]
        if self._settings:
            entries += [(css(c), f"patch {w}") for c, w in zip(_PATCHES, _PATCH_WORDS, strict=True)]
        return entries

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item."""
        import numpy as np

        from uqeval.maps.names import void_of

        (maps,) = self._inputs.source.read(range(item, item + 1))
        name = self._inputs.source.names[item]
        label, prediction = maps["label"], maps["prediction"]
        void = label == void_of(self._inputs.source.classes)
        wrong = (prediction != label) & ~void
        palette = np.array([*self._colours, VOID], np.uint8)
        share = wrong.sum() / max(1, (~void).sum())
        errors = np.where(wrong[..., None], WRONG, RIGHT).astype(np.uint8)
        errors[void] = VOID
        images = [*photo(self._images, name)]
        images.append(painted("prediction", palette[prediction], f"Predicted classes of {name}."))
        truth = palette[np.where(void, len(palette) - 1, label)]
        images.append(painted("label", truth, f"Labels of {name}."))
        images.append(painted("errors", errors, f"Errors of {name}: {share:.1%} are wrong."))
        for uncertainty in self._uncertainties:
            images.append(heat(uncertainty, maps[uncertainty], name))
        for key, settings in self._settings.items():
            if (picture := self._patches(key, settings, maps)) is not None:
                variant = Key.parse(key).variant
                title = "patches" if variant is None else f"patches, {variant}"
                images.append(painted(title, picture, f"Patches of {name}: {key}."))
        return images

    def _patches(self, key: str, settings: dict[str, Any], maps: Maps) -> NDArray[Any] | None:
        """Return each pixel in the colour of its patch; None if there is no single threshold."""
        import numpy as np

        from uqeval.metrics.pavpu_settings import PavpuSettings

        threshold = self._report.results[key]["uncertainty_threshold"]
        if threshold is None or settings["border"] == "pad" or settings["top_k"] != 1:
            return None
        patches = PavpuSettings.of(**settings).patches(self._inputs.source.classes)
        table = patches.table(maps)
        height, width = maps["label"].shape
        pads = [patches.padding(n)[1] for n in (height, width)]
        rows, columns = (
            max((n + pad - patches.window) // patches.stride + 1, 0)
            for n, pad in zip((height, width), pads, strict=True)
        )
        above = {">": np.greater, ">=": np.greater_equal}
        accuracy = table["hits"] / np.maximum(table["valid"], 1)
        accurate = above[settings["accuracy_op"]](accuracy, settings["accuracy_threshold"])
        uncertain = above[settings["uncertainty_op"]](table["mean"], np.float32(threshold))
        kind = np.where(table["category"] < 0, 4, 2 * ~accurate + uncertain)
        tiles = np.array([*_PATCHES, VOID], np.uint8)[kind].reshape(rows, columns, 3)
        picture = np.full((height, width, 3), VOID, np.uint8)
        big = tiles.repeat(patches.stride, 0).repeat(patches.stride, 1)[:height, :width]
        picture[: big.shape[0], : big.shape[1]] = big
        return picture
