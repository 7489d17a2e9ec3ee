"""How patch scores are shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.metrics._contract import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable

if TYPE_CHECKING:
    from uqeval.records.report import Report

_COUNTS = ("n_ac", "n_au", "n_ic", "n_iu")
_SCORES = ("p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus", "phi")


def _iou(row: Record, report: Report) -> float | None:
    """Return the IoU of the class of a row."""
    rows = report.results.get("segmentation", {}).get("per_class", ())
    return next((own["iou"] for own in rows if own["class"] == row["class"]), None)


def _patches(row: Record, report: Report) -> int | None:
    counts = [row[name] for name in _COUNTS]
    return None if None in counts else sum(counts)


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Patch accuracy vs patch uncertainty",
            (
                "uncertainty",
                Column("window", "window/stride",
                       value=lambda record, report: f"{record['window']}/{record['stride']}"),
                Column("uncertainty_threshold", "threshold"),
                "pavpu", "pavpu_chance", *_SCORES, "surplus_auc",
            ),
            "chance: the PAvPU of an uncertainty that is independent of the errors. Surplus: above "
            "0 the uncertainty finds errors; at 0 it is independent of them; below 0 it is worse "
            "than chance.",
        ),
        ScoreTable(
            "Patches",
            (*_COUNTS, "p_accurate", "p_certain", "surplus_peak.value",
             Column("surplus_peak.t", "at t", form=".2f")),
        ),
        RowTable(
            "By class of patch", "per_class",
            (Column("class", "IoU", value=_iou), Column("n_ac", "patches", value=_patches),
             "pavpu", *_SCORES),
            "mixed: patches with pixels of several classes.",
        ),
    ),
    bars=ClassBars(
        "Patch scores",
        (Panel("pavpu", "PAvPU"), Panel("surplus", "Surplus", (0.0, "chance"))),
    ),
    figures=("pavpu", "accuracy_by_uncertainty"),
)  # fmt: skip
