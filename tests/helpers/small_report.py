"""A report with a few values, for tests of writers."""

from __future__ import annotations

from typing import Any

from uqeval.records.report import Report


def scores(**changes: Any) -> dict[str, Any]:
    """The scores of one set of patches."""
    record: dict[str, Any] = {
        "n_ac": 6000, "n_au": 2, "n_ic": 1, "n_iu": 3, "p_accurate": 0.75, "p_certain": 0.5,
        "pavpu": 0.7512345, "pavpu_chance": 0.5, "p_accurate_given_certain": 0.9999999,
        "p_uncertain_given_inaccurate": 1e-9, "surplus": -0.125, "phi": None,
        "phi_reason": "all patches are certain",
    }  # fmt: skip
    return record | changes


def interval(low: float, high: float) -> dict[str, Any]:
    """An interval of 40 items."""
    return {"level": 0.95, "low": low, "high": high, "units": {"name": "item", "drawn": 40}}


def report(**changes: Any) -> Report:
    """A report of one store, two items and two classes."""
    rows = [scores(**{"class": 0, "name": "road"}), scores(**{"class": "mixed", "name": "mixed"})]
    pavpu = scores(
        uncertainty="entropy", window=4, stride=4, uncertainty_threshold=0.25, surplus_auc=0.1,
        surplus_peak={"t": 0.5, "threshold": 0.3, "value": 0.4},
        per_class=rows,
    )  # fmt: skip
    segmentation = {
        "pixel_accuracy": 0.875, "mean_accuracy": None, "miou": 0.5, "pixels": 12345,
        "per_class": [{"class": 0, "name": "road", "iou": 0.5, "accuracy": None, "pixels": 12345}],
    }  # fmt: skip
    fields: dict[str, Any] = {
        "uqeval_version": "0.1.0",
        "inputs": {"predictions": [{"path": "preds.zarr"}], "labels": None},
        "settings": {},
        "results": {"segmentation": segmentation, "pavpu": pavpu},
        "items": [
            {"name": "a", "pavpu": {"pavpu": 0.1 + 0.2, "phi": None, "phi_reason": "why"}},
            {"name": "b", "pavpu": {"pavpu": 1.0, "phi": 0.5}, "segmentation": {"pixels": 7}},
        ],
    }
    return Report(**fields | changes)
