"""How calibration scores are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from uqeval.metrics._contract import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable

if TYPE_CHECKING:
    from uqeval.records.report import Report


def _scaled(record: Record) -> Iterator[tuple[str, Record]]:
    """Yield the scores at the fitted temperature, and after other recalibration."""
    after = record.get("temperature") or {}
    if (temperature := after.get("value")) is not None:
        yield f"  at T = {temperature:.4f}", after
    for name, heading in (("isotonic", "isotonic regression"), ("vector", "vector scaling")):
        if (own := record.get(name)) and own["ece"] is not None:
            yield f"  after {heading}", own


def _gap(row: Record, report: Report) -> float | None:
    if row["accuracy"] is None or row["confidence"] is None:
        return None
    return float(row["accuracy"] - row["confidence"])


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Calibration",
            (
                "bins", "ece", "mce", "adaptive_ece", "classwise_ece", "smooth_ece", "ace", "brier",
                "nll",
            ),
            "0 is best. T: the temperature with the least NLL; above 1 the model is "
            "over-confident.",
            below=_scaled,
        ),
        ScoreTable(
            "Calibration error, estimated",
            ("kumar_l2", "kumar_l1", "sweep_l1", "sweep_l2", "sweep_bins"),
            "These estimates have less bias than the ECE, which is the plug-in value.",
        ),
        ScoreTable(
            "Calibration of single images",
            (
                Column("per_image.mean", "mean ECE"), Column("per_image.median", "median"),
                Column("per_image.p90", "p90"), Column("per_image.worst", "worst"),
                Column("per_image.ace", "mean ACE"),
            ),
            "ECE within each image: a set can be calibrated while its images are not.",
        ),
        ScoreTable(
            "Brier score, decomposed",
            (
                "brier", "brier_decomposition.reliability", "brier_decomposition.resolution",
                "brier_decomposition.uncertainty",
                Column("brier_decomposition.remainder", "remainder"),
            ),
            "Brier = reliability - resolution + uncertainty + remainder.",
        ),
        RowTable(
            "Reliability", "reliability",
            (Column("count", "pixels"), Column("confidence", "mean confidence"),
             Column("accuracy", "accuracy"),
             Column("accuracy", "accuracy − confidence", value=_gap)),
            corner="confidence",
            row=lambda bin: f"{bin['lower']:.3f} – {bin['upper']:.3f}",
        ),
    ),
    bars=ClassBars("Class-wise calibration error", (Panel("ece", "ECE of the class"),)),
    figures=("reliability",),
)  # fmt: skip
