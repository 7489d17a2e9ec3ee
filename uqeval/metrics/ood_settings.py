"""Settings of out-of-distribution detection."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics._aggregation import Aggregation, aggregation_text, check_patch
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._family import variants
from uqeval.metrics.pavpu_settings import (
    PavpuSettings,
    check_uncertainty,
    checked_log_base,
    refuse_unused_base,
    unused_base,
)
from uqeval.settings import Settings, definition_of, documented, option, same_option

if TYPE_CHECKING:
    from uqeval.tallies._values import Uncertainty

DEFINITIONS: Mapping[str, Mapping[str, Any]] = {"paper": {}, "bravo": {"uncertainty": "confidence"}}
#: Labels of more classes do not fit into the maps of a mask.
_MOST_CLASSES = 255
#: The fields that depend on the score of an image.
_OF_IMAGES = ("images", "score")
#: How items are scored.
_AGGREGATIONS = "mean, sum, max, pNN (p0 … p100) or patch-max"


@documented
@dataclass(frozen=True)
class OodSettings(Settings):
    """All settings of out-of-distribution detection."""

    # fmt: off
    uncertainty: str = same_option(PavpuSettings, "uncertainty", panel=None)
    aggregation: str = option(
        "mean", f"Score of an image from the uncertainties of its pixels: {_AGGREGATIONS}.",
        metavar="NAME", common=True, normal=aggregation_text, changes_only=_OF_IMAGES)
    patch: int = option(
        4, "Side of the patches of patch-max, in pixels.", metavar="N", least=1,
        changes_only=_OF_IMAGES)
    log_base: float | str = option(
        math.e, "Base of the entropies, and so the unit of the images' scores.",
        metavar="e|2", several=False, shown="e", changes_only=("score",))
    definition: str = definition_of(DEFINITIONS, changes_only=("bravo",))
    # fmt: on
    definitions = DEFINITIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "log_base", checked_log_base(self.log_base, "e, 2"))
        aggregation = Aggregation.parse(self.aggregation, "--aggregation")
        if aggregation.needs_threshold:
            raise UsageError(
                f"--aggregation {self.aggregation} is not valid; expected {_AGGREGATIONS}."
            )

    def unused(self, in_region: bool = True) -> set[str]:
        names = super().unused(in_region) | unused_base(self.uncertainty)
        names |= set() if self.aggregation == "patch-max" else {"patch"}
        return names - {"definition"} if self.is_bravo else names

    @property
    def is_bravo(self) -> bool:
        """Return whether the scores of BRAVO are added."""
        return self.definition == "bravo"

    @property
    def ranked(self) -> Uncertainty:
        """Return the uncertainty that ranks the pixels."""
        from uqeval.tallies._values import Uncertainty

        return Uncertainty(self.uncertainty, float(self.log_base))


def settings_of(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, OodSettings]:
    """Return the settings of every variant, checked against the data."""
    settings: dict[str, OodSettings] = variants("ood", OodSettings, options, ("uncertainty",))
    refuse_unused_base(options, [variant.uncertainty for variant in settings.values()])
    for variant in settings.values():
        check_uncertainty(variant.uncertainty, info)
        check_patch(Aggregation.parse(variant.aggregation), variant.patch, info)
        if variant.is_bravo and not 0 < info.inner_classes <= _MOST_CLASSES:
            raise UsageError(
                "--definition bravo ranks invalid regions inside labelled images of at most "
                f"{_MOST_CLASSES} classes: give PREDS LABELS, and to --ood-mask a folder of masks "
                "or a store."
            )
    if not info.sets and {"aggregation", "patch"} & options.keys():
        given = "aggregation" if "aggregation" in options else "patch"
        raise UsageError(
            f"--{given} has no effect with --ood-mask: it scores whole images, and a mask divides "
            "the pixels of an image. Leave it out."
        )
    if not info.sets and "log_base" in options:
        raise UsageError(
            "--log-base has no effect with --ood-mask: it is the unit of the scores of whole "
            "images, and a mask divides the pixels of an image. Leave it out."
        )
    if "patch" in options and all("patch" in variant.unused() for variant in settings.values()):
        raise UsageError("--patch has no effect: it is for --aggregation patch-max. Leave it out.")
    return settings
