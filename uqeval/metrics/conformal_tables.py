"""How conformal sets and intervals are shown."""

from __future__ import annotations

from uqeval.metrics._contract import ClassBars, Column, Display, Panel, RowTable, ScoreTable

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Conformal prediction",
            (
                "method", "risk", Column("alpha", "α", form="g"),
                Column("calibration_items", "calibrated on"), Column("threshold", "threshold", 5),
                "mean_loss", "coverage", "size", "width", "singletons", "empty",
            ),
            "If the images are exchangeable, the mean loss of new images is at most α in "
            "expectation. Single images, classes and pixels have no guarantee.",
        ),
        ScoreTable(
            "Coverage of single images",
            (
                "items_above", Column("items.least", "lowest"), "items.p05",
                Column("items.p25", "25 %"), Column("items.median", "median"),
                Column("items.p95", "95 %"), Column("items.mean", "mean"),
                Column("items.std", "std"),
            ),
            "Of the pixels that the risk is about. above α: images whose own loss exceeds α.",
        ),
        RowTable("Sets by class", "per_class", ("coverage", "size", "pixels")),
        RowTable(
            "Coverage by size of the set", "by_size", ("pixels", "coverage"),
            corner="classes in the set", row=lambda row: str(row["size"]), most=20,
        ),
    ),
    bars=ClassBars(
        "Conformal sets", (Panel("coverage", "coverage"), Panel("size", "mean classes in a set"))
    ),
    figures=("conformal",),
)  # fmt: skip
