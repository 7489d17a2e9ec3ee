"""The uncertainty threshold that another report fitted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from uqeval.errors import UsageError, all_listed, quoted
from uqeval.keys import family_of
from uqeval.maps.names import IN_NATS, OF_SEVERAL_SAMPLES
from uqeval.settings import number_text

if TYPE_CHECKING:
    from uqeval.metrics._dataset_info import DatasetInfo

Settings = TypeVar("Settings", bound=Any)

#: The families that fit such a threshold.
_FAMILIES = ("pavpu", "failure")


def with_threshold_from(
    family: str, settings_by_key: dict[str, Settings], options: Mapping[str, Any], info: DatasetInfo
) -> dict[str, Settings]:
    """Return the settings of each variant with the threshold of the report that `threshold_from`
    of the options names.

    Raises `UsageError` for a report that does not have it, or has that of another scale.
    """
    path = options["threshold_from"]
    if "threshold" in options:
        raise UsageError("--threshold and --threshold-from exclude each other; give one.")
    from uqeval.records.report import Report

    report = Report.load(path).record()
    for settings in settings_by_key.values():
        _refuse_other_scale(report["inputs"], settings.uncertainty, info, path)
    return {
        key: dataclasses.replace(
            settings, threshold=number_text(_threshold_in(report, family, settings, str(path)))
        )
        for key, settings in settings_by_key.items()
    }


def _refuse_other_scale(inputs: Any, uncertainty: str, info: DatasetInfo, path: object) -> None:
    """Raise `UsageError` if the report is of other numbers of classes, or of samples where the
    uncertainty is their spread. Maps may not say how many samples they are of."""
    numbers = {"classes": info.classes}
    if uncertainty in OF_SEVERAL_SAMPLES:
        numbers["samples"] = info.samples or info.samples_of_maps
    for name, number in numbers.items():
        of_report = inputs.get(name) if isinstance(inputs, Mapping) else None
        if number and isinstance(of_report, int) and of_report not in (0, number):
            raise UsageError(
                f"--threshold-from {path}: the report is of {of_report} {name}, but {info.where} "
                f"has {number}, so {uncertainty} has another scale. Fit the threshold on "
                f"predictions with {number} {name}, and give that report."
            )


def _threshold_in(report: dict[str, Any], family: str, settings: Any, path: str) -> float:
    """Return the threshold for the same uncertainty, if possible of the same family, window and
    stride.

    Raises `UsageError` where there is none, or where it was fitted for each class or item apart.
    """
    try:
        results = report["results"]
        stored = {
            key: own
            for key, own in report["settings"].items()
            if family_of(key) in _FAMILIES and key in results
        }
        families = dict.fromkeys(family_of(key) for key in results)
        key = _best(stored, families, family, settings, path)
        value = results[key]["uncertainty_threshold"]
        if value is None:
            raise UsageError(
                f"--threshold-from {path}: {key} has no single threshold: "
                f"{results[key]['uncertainty_threshold_reason']}."
            )
        return float(value)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--threshold-from {path}: its thresholds are not as uqeval writes them "
            f"({quoted(error)})."
        ) from None


def _best(
    stored: Mapping[str, Any], families: Iterable[str], family: str, settings: Any, path: str
) -> str:
    fitting = [
        key for key, own in stored.items()
        if own["uncertainty"] == settings.uncertainty
        and ("log_base" in settings.unused() or own["log_base"] == settings.log_base)
    ]  # fmt: skip
    if not stored:
        raise UsageError(
            f"--threshold-from {path}: it has no threshold for {settings.uncertainty}; it is a "
            f"report of {all_listed(families) or 'nothing'}. Give a report of "
            f"{' or '.join(_FAMILIES)}."
        )
    if not fitting:
        available = {_in_words(own["uncertainty"], own["log_base"]) for own in stored.values()}
        raise UsageError(
            f"--threshold-from {path}: it has no threshold for "
            f"{_in_words(settings.uncertainty, settings.log_base)}; it has thresholds for "
            f"{all_listed(sorted(available))}. Give one of these with --uncertainty and "
            "--log-base, or another report."
        )

    def differs(key: str) -> tuple[bool, bool]:
        own = stored[key]
        size = [own.get(name) != getattr(settings, name, None) for name in ("window", "stride")]
        return family_of(key) != family, any(size)

    return min(fitting, key=differs)


def _in_words(uncertainty: Any, log_base: Any) -> str:
    """Return an uncertainty as text, an entropy with its base: "entropy with log base 2"."""
    if uncertainty not in IN_NATS:
        return str(uncertainty)
    base = "e" if log_base == math.e else log_base
    return f"{uncertainty} with log base {base if isinstance(base, str) else number_text(base)}"
