"""How temporal consistency is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from uqeval.metrics._contract import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable

if TYPE_CHECKING:
    from uqeval.records.report import Report


def _seconds(record: Record, report: Report) -> float | None:
    """Return the seconds that the flow of a pair took."""
    seconds = report.timing.get("flow_seconds", {}).get(record["flow"]["id"])
    return None if seconds is None else float(seconds / record["pairs"])


DISPLAY = Display(
    tables=(
        ScoreTable(
            "Temporal consistency",
            (
                "model", Column("flow.id", "flow"), "pairs", "mtc", "mtc_no_warp", "mtc_pooled",
                "pixel_agreement", "coverage", "occluded.mtc", "tracks.consistency",
                "correlation.r", "miou_mean",
            ),
            "Mean over pairs of frames. A constant prediction scores 1, so read mTC with mIoU, "
            "and compare models on the same flow only.",
        ),
        ScoreTable(
            "How well the flow fits",
            (
                Column("mse_warp", "MSE warped", 5), Column("mse_identity", "MSE no warp", 5),
                Column("flow_median", "median px", 2), Column("flow_p99", "p99 px", 2),
                Column("out_of_frame", "out of frame"), Column("cuts", "cuts"),
                Column("flow", "s per pair", 3, value=_seconds),
            ),
            "MSE: squared difference of grey in [0, 1]; a flow whose warped MSE is above that of "
            "no warp does not fit.",
            corner="flow",
            row=lambda key, record: str(record["flow"]["id"]),
        ),
        RowTable(
            "By sequence", "sequences",
            (
                "frames", "pairs", "gaps", "mtc", "mtc_no_warp", "coverage",
                Column("mse_warp", "MSE warped", 5), Column("tracks.consistency", "tracks C26"),
                Column("correlation.r", "r(mIoU)"), "miou_mean",
            ),
            corner="sequence",
            variant=lambda record: f"{record['model']}, {record['flow']['id']}",
            row=lambda row: str(row["sequence"]),
            least=2,
            most=20,
        ),
        RowTable(
            "By class", "per_class", (Column("iou", "IoU over time"), "pixels"),
            "IoU from the summed counts of all pairs.",
        ),
    ),
    bars=ClassBars("Temporal consistency", (Panel("iou", "IoU with the previous frame"),)),
    figures=("temporal",),
)  # fmt: skip
