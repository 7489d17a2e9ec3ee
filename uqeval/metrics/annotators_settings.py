"""Settings of the comparison with several annotators, and the presets of published definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.metrics._family import variants
from uqeval.metrics.calibration_settings import MOST_BINS
from uqeval.metrics.pavpu_settings import check_uncertainty
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from uqeval.tallies._values import Uncertainty
    from uqeval.tallies.annotator_distances import Distance
    from uqeval.tallies.reliability import Bins

#: The defaults are those of Kohl et al. 2018 and of their code.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "values": {
        "distance": "dice", "distance_classes": "foreground", "absent": "disagree",
        "pairs": "pooled", "ncc_ddof": 1,
    },
}  # fmt: skip
_DISTANCE, _DISAGREEMENT, _CALIBRATION = "Energy distance", "Disagreement", "Calibration"
#: The fields that depend on the distance of two maps, and on the correlation with disagreement.
_DISTANCES = (
    "distance", "ged", "diversity", "annotator_diversity", "annotator_ged", "agreement",
)  # fmt: skip
_NCC = ("ncc", "uncertainty", "disagreement")


@documented
@dataclass(frozen=True)
class AnnotatorsSettings(Settings):
    """All settings of the comparison with several annotators."""

    definitions = DEFINITIONS

    # fmt: off
    uncertainty: str = option(
        "entropy", "Uncertainty map to correlate with the annotators' disagreement: entropy, "
        "mutual_information, expected_entropy, confidence, variation_ratio, std, or any map of the "
        "store. Repeat for variants.", metavar="NAME", common=True, changes_only=_NCC)
    distance: str = option(
        "iou", "Distance of two maps of classes: 1 - IoU or 1 - Dice. Repeat for variants.",
        choices=("iou", "dice"), panel=_DISTANCE, common=True, changes_only=_DISTANCES)
    distance_classes: str = option(
        "auto", "Classes of the distance: all; foreground (all but class 0); or auto: foreground "
        "if there are two classes, else all.", choices=("auto", "all", "foreground"),
        panel=_DISTANCE, common=True, changes_only=_DISTANCES)
    absent: str = option(
        "skip", "Treat a class that is in neither of two maps: leave it out of the mean over "
        "classes (skip; two maps without any class have distance 0), or count it with distance 0 "
        "(agree) or 1 (disagree).",
        choices=("skip", "agree", "disagree"), panel=_DISTANCE, changes_only=_DISTANCES)
    pairs: str = option(
        "mean", "Average the distances of all pairs (mean), or compute one distance from the "
        "overlaps summed over all pairs and classes (pooled).", choices=("mean", "pooled"),
        panel=_DISTANCE, changes_only=_DISTANCES)
    disagreement: str = option(
        "variance", "Disagreement of the annotators at a pixel: 1 - Σ q² of the shares q of their "
        "votes (variance), or their entropy.", choices=("variance", "entropy"),
        panel=_DISAGREEMENT, changes_only=_NCC)
    ncc_ddof: int = option(
        0, "Delta degrees of freedom of the standard deviations in the NCC: 0 gives Pearson's "
        "r, 1 the NCC of ValUES.", metavar="N", least=0, most=1,
        panel=_DISAGREEMENT, changes_only=_NCC)
    bins: int = option(
        15, "Number of confidence bins of equal width.", metavar="B", least=1, most=MOST_BINS,
        panel=_CALIBRATION, changes_only=("ece", "reliability", "bins", "accuracy"))
    clip: float = option(
        2.0**-24, "Clip probabilities below this value in the cross-entropy.", metavar="P",
        above=0, below=1, several=False, shown="2^-24", panel=_CALIBRATION,
        changes_only=("kl", "cross_entropy"))
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    @property
    def correlated(self) -> Uncertainty:
        """Return the uncertainty to correlate."""
        from uqeval.tallies._values import Uncertainty

        return Uncertainty(self.uncertainty)

    def distance_of(self, classes: int) -> Distance:
        """Return the distance of maps with this number of classes."""
        from uqeval.tallies.annotator_distances import Distance

        names = self.distance_classes
        foreground = names == "foreground" or (names == "auto" and classes == 2)
        return Distance(self.distance, foreground, self.absent, self.pairs == "pooled")

    def binning(self) -> Bins:
        """Return the binning of confidences."""
        from uqeval.tallies.reliability import Bins

        return Bins(self.bins)


def settings_of(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, AnnotatorsSettings]:
    """Return the settings of every variant. Raises `UsageError` for labels of one annotator."""
    if not info.annotators:
        raise UsageError(
            f"{info.labels or info.where} holds one label per pixel; `annotators` compares the "
            "labels of several annotators. Store `labels` [item, annotator, y, x], or give a "
            "folder with a folder of label PNGs for each annotator (--annotator-folders)."
        )
    settings: dict[str, AnnotatorsSettings] = variants(
        "annotators", AnnotatorsSettings, options, ("uncertainty", "distance")
    )
    for variant in settings.values():
        check_uncertainty(variant.uncertainty, info)
    return settings
