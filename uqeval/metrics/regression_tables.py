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
        ScoreTable(
            "Depth",
            ("abs_rel", "sq_rel", "rmse_log", "log10", "silog", "a1", "a2", "a3"),
            "a1, a2, a3: share of depths within a factor of 1.25, 1.25², 1.25³.",
        ),
        ScoreTable(
            "Scale of σ",
            (
                "ence", "uce", "cv", Column("sigma_scale.value", "best factor of σ"),
                Column("sigma_scale.nll_before", "NLL before"),
                Column("sigma_scale.nll", "NLL with the factor"),
                Column("held_out.nll_before", "held out, before"),
                Column("held_out.nll", "held out, with the factor"),
            ),
            "ENCE and UCE: 0 where errors are as large as σ in every bin of σ. Factor above 1: σ "
            "is too small.",
        ),
    ),
    figures=("regression",),
)  # fmt: skip
