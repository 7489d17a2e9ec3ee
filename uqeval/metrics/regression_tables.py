"""How regression scores are shown."""

from __future__ import annotations

from uqeval.metrics._contract import Column, Display, ScoreTable

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Regression",
            ("pixels", "rmse", "mae", "nmse", "crps", "nll", "sharpness"),
            "nMSE: in units of the target's variance. sharpness: root of the mean σ².",
        ),
        ScoreTable(
            "Calibration of intervals",
            (
                "auce", "auce_over", "auce_under",
                Column("coverage.*", "coverage {} %"),
                Column("interval_score.*", "interval score {} %"),
            ),
            "AUCE: area between nominal and observed coverage; 0 is best, 0.49 is σ = 0 or ∞.",
        ),
    ),
    figures=("regression",),
)  # fmt: skip
