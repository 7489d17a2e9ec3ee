"""Pictures of predicted classes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.arrays import Array, Maps, np
from uqeval.errors import UqevalError, UsageError
from uqeval.keys import Key, family_of
from uqeval.maps.names import void_of
from uqeval.report.page.gallery import Meanings, Picture
from uqeval.usecases.gallery.named_maps import NamedMap, image_of, map_named, uncertainties_of
from uqeval.usecases.gallery.paint import (
    HIDDEN,
    RIGHT,
    VOID,
    WRONG,
    colours,
    css,
    heat,
    painted,
    photo,
)  # fmt: skip

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.records.report import Report

#: Patches: accurate and certain, accurate and uncertain, inaccurate and certain, … and uncertain.
_PATCHES = ((205, 225, 240), (110, 165, 210), (200, 30, 40), (240, 165, 80))
_PATCH_WORDS = (
    "accurate, certain", "accurate, uncertain", "inaccurate, certain", "inaccurate, uncertain",
)  # fmt: skip


_OF_ERRORS = ((css(VOID), "void"), (css(RIGHT), "right pixel"), (css(WRONG), "wrong pixel"))
_OF_PATCHES = (*zip(map(css, _PATCHES), _PATCH_WORDS, strict=True), (css(VOID), "not counted"))
#: Binary maps of patches, white where it is true, as in Mukhoti & Gal, Figure 6.
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)


class Classes:
    """Pictures of predicted classes: prediction, label, errors, uncertainties, patches.

    `maps`: only these, in this order, by the names of `uqeval.usecases.gallery.named_maps`. Raises
    `UsageError` for names that are of no map.
    """

    def __init__(
        self, report: Report, inputs: Inputs, images: dict[str, Path], maps: Sequence[str] = ()
    ) -> None:
        self._inputs, self._images, self._report = inputs, images, report
        self._colours = colours(inputs.source.classes)
        self._settings = {
            key: settings
            for key, settings in report.settings.items()
            if family_of(key) == "pavpu" and Key.parse(key).region is None
        }
        measures = uncertainties_of(report)
        self._named = [map_named(name, bool(self._settings), measures) for name in maps]
        if maps:
            measures = list(
                dict.fromkeys(
                    named_map.base for named_map in self._named if named_map.is_uncertainty
                )
            )
        self._uncertainties = measures
        needed_measures = [settings["uncertainty"] for settings in self._settings.values()]
        of_patches = (
            needed_measures if any(named_map.is_of_patches for named_map in self._named) else []
        )
        inputs.source.want(
            list(dict.fromkeys(["label", "prediction", *self._uncertainties, *of_patches]))
        )
        if not measures and not maps:
            with suppress(UqevalError):  # predicted ids alone have no uncertainty to show
                inputs.source.want(["label", "prediction", "confidence"])
                self._uncertainties = ["confidence"]

    @property
    def legend(self) -> list[tuple[str, str]]:
        """Return the colours of the classes, of errors and of patches."""
        entries = [*self._of_classes[:40], *_OF_ERRORS]
        if self._settings:
            entries += [(colour, f"patch {word}") for colour, word in _OF_PATCHES[:-1]]
        return entries

    @property
    def _of_classes(self) -> Meanings:
        """Return the colours of the classes."""
        return tuple(zip(map(css, self._colours), self._inputs.class_names, strict=False))

    def pictures(self, item: int) -> list[Picture]:
        """Return the pictures of one item."""
        (maps,) = self._inputs.source.read(range(item, item + 1))
        name = self._inputs.source.names[item]
        if self._named:
            return [self._picture(named_map, maps, name) for named_map in self._named]
        images = [*photo(self._images, name)]
        images += [
            self._picture(map_named(named_map), maps, name)
            for named_map in ("prediction", "label", "errors")
        ]
        images += [
            self._picture(NamedMap(named_map), maps, name) for named_map in self._uncertainties
        ]
        for key in self._settings:
            if (picture := self._of_patches(key, maps, name)) is not None:
                images.append(picture)
        return images

    def _picture(self, named: NamedMap, maps: Maps, name: str) -> Picture:
        """Return one picture of an item."""
        if named.base == "image":
            return image_of(self._images, name)
        if named.is_of_patches:
            return self._binary_or_patches(named, maps, name)
        label, prediction = maps["label"], maps["prediction"]
        void = label == void_of(self._inputs.source.classes)
        palette = np.array([*self._colours, VOID], np.uint8)
        if named.base == "prediction":
            alt = f"Predicted classes of {name}."
            return painted("prediction", palette[prediction], alt, self._of_classes)
        if named.base == "label":
            truth = palette[np.where(void, len(palette) - 1, label)]
            meanings = (*self._of_classes, (css(VOID), "void"))
            return painted("label", truth, f"Labels of {name}.", meanings)
        if named.base == "errors":
            wrong = (prediction != label) & ~void
            share = wrong.sum() / max(1, (~void).sum())
            errors = np.where(wrong[..., None], WRONG, RIGHT).astype(np.uint8)
            errors[void] = VOID
            alt = f"Errors of {name}: {share:.1%} are wrong."
            return painted("errors", errors, alt, _OF_ERRORS)
        values, ends = named.values(maps[named.base], prediction)
        return heat(named.title, values, name, ends)

    def _binary_or_patches(self, named: NamedMap, maps: Maps, name: str) -> Picture:
        """Return the patches of the first variant. Raises `UsageError` if there are none."""
        key = next(iter(self._settings))
        picture = self._of_patches(key, maps, name, named.base)
        if picture is None:
            raise UsageError(
                f"--maps {named.name}: {key} has one threshold for each class or item, padded "
                "borders, or --top-k above 1, for which no patches are drawn. Leave it out."
            )
        return picture

    def _of_patches(self, key: str, maps: Maps, name: str, base: str = "") -> Picture | None:
        """Return the patches of a variant; `base`: accurate or uncertain, white where true."""
        colours_of = {
            "accurate": (_WHITE, _WHITE, _BLACK, _BLACK),
            "uncertain": (_BLACK, _WHITE, _BLACK, _WHITE),
        }
        binary = colours_of.get(base)
        picture = self._patches(key, maps, binary)
        if picture is None:
            return None
        if binary:
            return painted(f"{base} patches", picture, f"{base} patches of {name}, white: {key}.")
        variant = Key.parse(key).variant
        title = "patches" if variant is None else f"patches, {variant}"
        return painted(title, picture, f"Patches of {name}: {key}.", _OF_PATCHES)

    def _patches(
        self, key: str, maps: Maps, binary: Sequence[tuple[int, int, int]] | None
    ) -> Array | None:
        """Return each pixel in the colour of its patch; None if there is no single threshold."""
        from uqeval.metrics.pavpu_settings import PavpuSettings

        settings = self._settings[key]
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
        void = HIDDEN if binary else VOID
        tiles = np.array([*(binary or _PATCHES), void], np.uint8)[kind].reshape(rows, columns, 3)
        picture = np.full((height, width, 3), void, np.uint8)
        big = tiles.repeat(patches.stride, 0).repeat(patches.stride, 1)[:height, :width]
        picture[: big.shape[0], : big.shape[1]] = big
        return picture
