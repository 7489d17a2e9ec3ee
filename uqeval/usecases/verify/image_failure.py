"""Failure detection of whole items: their risk and confidence, and how well one ranks the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from uqeval.arrays import Array
from uqeval.records.addresses import Address
from uqeval.records.scalars import described
from uqeval.usecases.verify import class_scores as cs
from uqeval.usecases.verify import ranks
from uqeval.usecases.verify.aggregation import aggregated
from uqeval.usecases.verify.classes import ClassMaps, uncertainty_of
from uqeval.usecases.verify.comparing import Recomputed
from uqeval.usecases.verify.numbers import Numbers

if TYPE_CHECKING:
    from uqeval.records.report import Report


class ImageFailure:
    """Risks and confidences of items that follow from their maps; others are taken as reported."""

    def __init__(self, key: str, report: Report, settings: Mapping[str, Any]) -> None:
        self._key, self._report, self._settings = key, report, settings

    def of_classes(self, maps: ClassMaps, classes: int) -> Recomputed | str:
        """Return the risk and the confidence of an item with labels."""
        settings, record = self._settings, {}
        risk = _risk(settings["risk"], maps, classes)
        if not isinstance(risk, str):
            record["risk"] = risk
        values = uncertainty_of(maps, settings, classes)
        if values is None and _is_aggregation(settings["confidence"]):
            return f"the store holds no map {settings['uncertainty']} to recompute it from"
        # Patches of a region count by the share of their pixels in it.
        is_patch_of_region = (
            settings["confidence"] == "patch-max" and maps.void_of_image is not None
        )
        if values is not None and not is_patch_of_region:
            record |= self._confidence(values, maps.void)
        if len(record) == 2:
            record["left_out"] = None in record.values()
        return Recomputed(record)

    def of_numbers(self, data: Numbers) -> Recomputed | str:
        """Return the confidence of an item with a target."""
        name = self._settings["uncertainty"] or "sigma"
        sigma = data.sigma_of(name)
        if sigma is None and _is_aggregation(self._settings["confidence"]):
            return f"the store holds no {name} to recompute it from"
        if sigma is None or self._settings["confidence"] == "patch-max":
            return Recomputed({})
        return Recomputed(self._confidence(sigma, np.zeros(sigma.shape, bool)))

    def _confidence(self, values: Array, void: Array) -> dict[str, Any]:
        """Return minus the aggregated uncertainty, if the confidence is one."""
        settings = self._settings
        if not _is_aggregation(settings["confidence"]):
            return {}
        found = aggregated(settings["confidence"], values, void, settings)
        return {} if isinstance(found, str) else {"confidence": None if found is None else -found}

    def of_set(self) -> Recomputed | str:
        """Return the scores of the recorded risks and confidences of all items."""
        from scipy import stats

        items = [own[self._key] for own in self._report.items]
        kept = [own for own in items if None not in (own["risk"], own["confidence"])]
        risk, confidence = (
            np.array([own[name] for own in kept], np.float64) for name in ("risk", "confidence")
        )
        record: dict[str, Any] = {"items": len(kept)}
        names = ("aurc", "e_aurc", "augrc", "auroc", "spearman", "kendall", "mean_risk")
        record |= dict.fromkeys(names)
        if not kept:
            return Recomputed(record)
        record["mean_risk"] = float(risk.mean())
        unit = self._unit
        limit = record["risk_limit"] = _limit(str(self._settings["risk_limit"]), risk)
        is_above = risk - limit > ranks.NOISE * max(abs(limit), unit)
        risk, confidence = ranks.without_noise(risk, unit), ranks.without_noise(confidence)
        record["aurc"], record["augrc"] = _areas(-confidence, risk)
        best = np.cumsum(np.sort(risk)) / np.arange(1, risk.size + 1)
        record["e_aurc"] = record["aurc"] - float(best.mean())
        above = int(is_above.sum())
        record |= {"failed_items": above, "other_items": len(kept) - above}
        record["auroc"] = ranks.failure(-confidence, is_above)["auroc"]
        if np.ptp(risk) > 0 and np.ptp(confidence) > 0:
            record["spearman"] = float(stats.spearmanr(-confidence, risk).statistic)
            record["kendall"] = float(stats.kendalltau(-confidence, risk).statistic)
        return Recomputed(record)

    @property
    def _unit(self) -> float:
        """Return 1 for a risk that is 1 minus a score in [0, 1], which has the rounding of 1."""
        name = self._settings["risk"].removeprefix("-")
        if name in ("miou", "dice", "accuracy"):
            return 1.0
        if name.startswith("column:"):
            return 0.0
        address = Address.parse(name)
        if address.metric == "temporal":  # the fields of pairs are no metrics
            return 1.0
        metric = described(self._report.metrics, address.metric, address.fields)
        is_score = list(metric.get("range") or ()) == [0.0, 1.0]
        return float(is_score and metric.get("direction") == "higher")


def _is_aggregation(name: str) -> bool:
    """Return whether a confidence is an aggregated uncertainty."""
    is_percentile = name[:1] == "p" and name[1:].replace(".", "", 1).isdigit()
    return name in ("mean", "sum", "max", "patch-max", "share", "mean-above") or is_percentile


def _risk(name: str, maps: ClassMaps, classes: int) -> float | str | None:
    """Return 1 - mIoU, Dice or accuracy of an item; another risk is not recomputed."""
    assert maps.label is not None
    matrix = cs.confusion(maps.valid(maps.label), maps.valid(maps.prediction), classes)
    if name == "dice":
        right, total = np.diag(matrix), matrix.sum(axis=1) + matrix.sum(axis=0)
        value = float(np.mean(2 * right[total > 0] / total[total > 0])) if total.any() else None
    elif name in ("miou", "accuracy"):
        scores = cs.segmentation(matrix)
        value = scores["miou" if name == "miou" else "pixel_accuracy"]
    else:
        return f"the risk {name} is not supported by uqeval verify"
    return None if value is None else 1 - value


def _areas(score: Array, risk: Array) -> tuple[float, float]:
    """Return AURC and AUGRC of items that are rejected by a score, the highest first."""
    number, risks = ranks.grouped(score, risk)
    up_number, up_risk = np.cumsum(number), np.cumsum(risks)
    n = risk.size
    aurc = float((number * up_risk / up_number).sum() / n)
    return aurc, float((number * (up_risk - risks / 2)).sum() / n**2)


def _limit(text: str, risk: Array) -> float:
    """Return the limit of risk: the median, a percentile or a number."""
    if text == "median":
        return float(np.percentile(risk, 50))
    return float(np.percentile(risk, float(text[1:]))) if text[:1] == "p" else float(text)
