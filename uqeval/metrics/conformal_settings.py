"""Settings of conformal prediction: the risk, its level, and the scores that are calibrated."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import uqeval.metrics._numbers as numbers
from uqeval.errors import UsageError, cut, data_of_kind, number_of, quoted
from uqeval.maps.names import lambda_of
from uqeval.metrics._dataset_info import DatasetInfo, fit_items, read_fit_on
from uqeval.metrics._family import variants
from uqeval.settings import Settings, definition_of, documented, option

#: The methods for each kind of data; the first is the default.
METHODS = {"classes": ("lac", "aps", "aps-randomised"), "regression": ("scaled",)}
MISCOVERAGE, FNR = "miscoverage", "fnr:"


@documented
@dataclass(frozen=True)
class ConformalSettings(Settings):
    """All settings of conformal prediction."""

    # fmt: off
    fit_on: str | None = option(
        None, "Calibrate on the items that FILE names: a JSON list, or one name per line. The "
        "other items are evaluated.", metavar="FILE", several=False, common=True)
    alpha: float = option(
        0.1, "Level of the risk: the expected risk of a new image is at most this. Repeat for "
        "variants.", metavar="A", above=0, below=1, common=True)
    method: str = option(
        "", "Nonconformity score. For classes: lac (1 - probability of the class), aps "
        "(probability of all likelier classes) or aps-randomised (aps plus a random share of the "
        "class's own probability). For numbers: scaled (|error| / σ). Repeat for variants.",
        choices=tuple(name for names in METHODS.values() for name in names),
        shown="lac; scaled for numbers", common=True)
    risk: str = option(
        MISCOVERAGE, "Risk of an image: the share of its pixels whose set does not contain the "
        "label (miscoverage), or the same among its pixels of one class (fnr:CLASS). Repeat for "
        "variants.", metavar="RISK", common=True)
    uncertainty: str = option(
        "", "For numbers: σ, or another map of the store. Repeat for variants.", metavar="NAME",
        shown="sigma")
    definition: str = definition_of(Settings.definitions)
    # fmt: on

    @property
    def sigma(self) -> str:
        """Return the map of σ."""
        return numbers.sigma_map(self.uncertainty)

    @property
    def ratio(self) -> str:
        """Return the map of λ = ε/σ."""
        return lambda_of(self.sigma)

    @property
    def is_of_numbers(self) -> bool:
        """Return whether intervals are calibrated, not sets of classes."""
        return self.method in METHODS["regression"]

    @property
    def level(self) -> Fraction:
        """Return α as an exact fraction of its decimal text: 0.1 is 1/10."""
        return Fraction(str(self.alpha))

    @property
    def least_items(self) -> int:
        """Return ⌈1/α⌉ - 1, the smallest number of calibration items that can reach α."""
        return math.ceil(1 / self.level) - 1

    def few_items(self, count: int) -> str:
        """Return a warning if the allowed mean loss of the calibration items is below α/2.

        It is α - (1 - α)/`count` (Angelopoulos et al. 2024).
        """
        alpha = self.level
        allowed = alpha - (1 - alpha) / count
        if allowed >= alpha / 2:
            return ""
        return (
            f"with {number_of(count, 'calibration item')}, their mean loss may be at most "
            f"{float(allowed):.3g} to guarantee alpha {float(alpha):g}, so sets and intervals are "
            f"larger than needed. Name at least {math.ceil(2 * (1 - alpha) / alpha)} items in "
            f"--fit-on, better {math.ceil(10 / alpha)}."
        )

    def empty_sets(self, results: Mapping[str, Any]) -> str:
        """Return a warning if the sets have less than one class on average."""
        size, empty = results.get("size"), results.get("empty", 0.0)
        if size is None or size >= 1 or self.risk != MISCOVERAGE:
            return ""
        return (
            f"{100 * empty:.1f} % of the sets are empty, and the mean size is {size:.3f}: if the "
            f"pixel accuracy is at least 1 - alpha ({float(1 - self.level):g}), the most likely "
            "class alone has this coverage. Choose a smaller alpha, below 1 - pixel accuracy."
        )

    def of_class(self, info: DatasetInfo) -> int | None:
        """Return the class whose false negative rate is the risk; None for miscoverage.

        Raises `UsageError` for another risk.
        """
        if self.risk == MISCOVERAGE:
            return None
        name = self.risk.removeprefix(FNR)
        if self.risk.startswith(FNR) and info.kind == "classes":
            if name in info.class_names:
                return info.class_names.index(name)
            if name.isdecimal() and int(name) < info.classes:
                return int(name)
        choices = [MISCOVERAGE]
        if info.kind == "classes":
            choices += [f"{FNR}{class_name}" for class_name in info.class_names]
        raise UsageError(
            f"--risk {quoted(self.risk)} is not valid for {info.where}; expected "
            f"{cut(' or '.join(choices), 300)}."
        )

    def of_data(self, info: DatasetInfo) -> ConformalSettings:
        """Return these settings with the defaults for the data. Raises `UsageError`."""
        methods = METHODS[info.kind]
        method = self.method or methods[0]
        if method not in methods:
            raise UsageError(
                f"--method {method}: {info.where} holds {data_of_kind(info.kind)}; expected "
                f"{' or '.join(methods)}."
            )
        if info.kind == "classes" and self.uncertainty:
            raise UsageError(
                f"--uncertainty {self.uncertainty} has no effect on sets of classes. Leave it out."
            )
        uncertainty = self.uncertainty
        if info.kind == "regression":
            uncertainty = uncertainty or "sigma"
            numbers.check_sigma(uncertainty, info)
        settings = dataclasses.replace(self, method=method, uncertainty=uncertainty)
        settings.of_class(info)
        return settings


def settings_of(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, ConformalSettings]:
    """Return the settings of every variant, checked against the data and the calibration items."""
    settings = {
        key: variant.of_data(info)
        for key, variant in variants(
            "conformal", ConformalSettings, options, ("method", "risk", "uncertainty")
        ).items()
    }
    for variant in settings.values():
        read_fit_on(variant.fit_on, info)
        calibration_items(variant, info)
    return settings


def calibration_items(settings: ConformalSettings, info: DatasetInfo) -> list[int]:
    """Return the indices of the items to calibrate on, among those of all shards.

    Raises `UsageError` where there are too few, or all items are named.
    """
    if settings.fit_on is None:
        raise UsageError(
            "conformal sets are calibrated on some items and evaluated on the others; give "
            f"--fit-on FILE with the names of at least {settings.least_items} items of "
            f"{info.where}, one per line."
        )
    items = fit_items(settings.fit_on, info)
    assert items is not None
    refuse_few(items, settings)
    if len(items) == len(info.all_names or info.names):
        raise UsageError(
            f"--fit-on {cut(settings.fit_on)} names all {len(items)} items, so no item remains "
            "for the evaluation. Name only some of them."
        )
    return items


def refuse_few(items: Sequence[Any], settings: ConformalSettings, where: str = "") -> None:
    """Raise `UsageError` if so few calibration items cannot reach the level."""
    if len(items) >= settings.least_items:
        return
    reachable = Fraction(1, len(items) + 1)
    larger = f", or give --alpha {math.ceil(float(reachable) * 10000) / 10000:g} or more"
    raise UsageError(
        f"--fit-on {cut(settings.fit_on or '')}: {number_of(len(items), 'item')}{where}, and "
        f"--alpha {settings.alpha:g} needs at least {settings.least_items} (1/alpha - 1). Name "
        f"more items{larger if items else ''}."
    )
