"""Settings of calibration errors, and the presets of published definitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uqeval.metrics.calibration_estimators as estimators
import uqeval.metrics.calibration_scores as cs
from uqeval.errors import UsageError
from uqeval.settings import Settings, definition_of, documented, option

if TYPE_CHECKING:
    from uqeval.tallies.reliability import Bins

#: What each definition in use changes of the defaults, which are Guo et al. 2017's with 15 bins.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "gustafsson-code": {"bins": 10, "edge": "upper-float32", "at_one": "drop"},
    "torchmetrics": {"edge": "upper-float32", "at_one": "own"},
    "torch-uncertainty-0.13": {"bins": 10, "edge": "upper-float32", "at_one": "own"},
    "scikit-learn": {"bins": 5, "binary": "positive"},
    "mapie": {"bins": 49},
    "netcal": {"bins": 10, "edge": "upper", "binary": "positive"},
    "values": {"bins": 20},
    **{name: {"estimator": name} for name in estimators.PUBLISHED},
}

#: More bins than distinct confidences are useless, and each costs 64 kB per item.
MOST_BINS = 1000
_BINS, _TEMPERATURE = "Bins", "Temperature"
#: The fields of the estimates with less bias.
_ESTIMATED = (
    *(metric.field for name in estimators.PUBLISHED for metric in estimators.metrics_of(name)),
    "sweep_bins",
)

#: The fields that depend on the bins of the confidence.
_BINNED = (
    "bins", "reliability", "ece", "mce", "ace", "adaptive_ece", "classwise_ece", "per_image",
    "brier_decomposition.reliability", "brier_decomposition.resolution",
    "brier_decomposition.remainder", *_ESTIMATED,
)  # fmt: skip


@documented
@dataclass(frozen=True)
class CalibrationSettings(Settings):
    """All settings of a calibration error; the defaults are those of Guo et al. 2017."""

    definitions = DEFINITIONS

    # fmt: off
    bins: int = option(
        15, "Number of confidence bins: equal width, or equal mass for the adaptive ECE. "
        "Repeat for variants.",
        metavar="B", panel=_BINS, least=1, most=MOST_BINS, common=True, changes_only=_BINNED)
    edge: str = option(
        "lower", "Which bin a confidence on an edge belongs to: lower, upper, or upper with "
        "edges rounded to float32.",
        choices=("lower", "upper", "upper-float32"), panel=_BINS, changes_only=_BINNED)
    at_one: str = option(
        "last", "With --edge upper, where confidence 1 goes: the last bin, its own bin, or no "
        "bin (drop; it counts in N).",
        choices=cs.AT_ONE, panel=_BINS, changes_only=_BINNED)
    binary: str = option(
        "top", "With two classes, bin the probability of the top label, or of class 1 (positive).",
        choices=("top", "positive"), panel=_BINS)
    estimator: str = option(
        "plug-in", "Add an ECE estimate with less bias: Kumar et al. 2019 (l2, l1) or Roelofs "
        "et al. 2022. Repeat for variants.",
        choices=("plug-in", *estimators.PUBLISHED), panel=_BINS, changes_only=_ESTIMATED)
    clip: float = option(
        2.0**-24, "Clip probabilities below this value in the NLL.",
        metavar="P", above=0, below=1, several=False, shown="2^-24",
        changes_only=("nll", "temperature", "vector"))
    adaptive: bool = option(
        True, "Compute the adaptive ECE. Its bins need the whole set, so a set that grows is "
        "read again.", panel=_BINS, changes_only=("adaptive_ece",))
    temperature: bool = option(
        True, "Fit a temperature, and report the scores before and after "
        "scaling.", panel=_TEMPERATURE, common=True, changes_only=("temperature",))
    temperature_of: str = option(
        "mean", "Scale the mean of the samples, or each sample before averaging (samples; "
        "reads the stack again). Repeat for variants.",
        choices=("mean", "samples"), panel=_TEMPERATURE, changes_only=("temperature",))
    isotonic: bool = option(
        False, "Fit isotonic regression of the confidence, and report the scores before and after.",
        panel=_TEMPERATURE, changes_only=("isotonic",))
    vector: bool = option(
        False, "Fit vector scaling (a weight and a bias for each class), and report the scores "
        "before and after. Takes 10 to 20 passes over the maps.", panel=_TEMPERATURE,
        changes_only=("vector",))
    fit_on: str | None = option(
        None, "Fit temperature, isotonic regression and vector scaling on the items that FILE "
        "names: a JSON list, or one name per line.",
        metavar="FILE", panel=_TEMPERATURE, several=False, shown="all", common=True,
        changes_only=("temperature", "isotonic", "vector"))
    definition: str = definition_of(DEFINITIONS)
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit_on is not None and not (self.temperature or self.isotonic or self.vector):
            raise UsageError(
                "--fit-on needs the temperature, --isotonic or --vector; leave out "
                "--no-temperature."
            )
        if self.temperature_of != "mean" and not self.temperature:
            raise UsageError("--temperature-of needs the temperature; leave out --no-temperature.")
        if self.edge == "lower" and self.at_one != "last":
            raise UsageError(
                f"--at-one {self.at_one} has an effect only with --edge upper; otherwise "
                "confidence 1 is in the last bin. Leave it out."
            )

    def is_positive(self, classes: int) -> bool:
        """Return whether the bins are of class 1 of two, not of the top label."""
        return self.binary == "positive" and classes == 2

    def binning(self) -> Bins:
        """Return the binning of confidences."""
        from uqeval.tallies.reliability import Bins

        return Bins(self.bins, self.edge)
