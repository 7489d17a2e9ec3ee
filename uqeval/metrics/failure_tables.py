"""How scores of failure detection are shown."""

from __future__ import annotations

from uqeval.metrics._contract import ClassBars, Column, Display, Panel, RowTable, ScoreTable

_SCORES = (
    "auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc",
    "undetected_error_rate",
)  # fmt: skip
_ERRORS = Column("errors", "wrong")

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Failure detection",
            ("uncertainty", *_SCORES),
            "AUROC 0.5: the uncertainty is independent of the errors. undetected: share of all "
            "pixels that are wrong and not above the threshold.",
        ),
        ScoreTable(
            "Risk and coverage",
            (
                _ERRORS,
                Column("risk_at_coverage.*", "risk at {} %"),
                Column("coverage_at_risk.*", "coverage at {} %"),
            ),
            "risk: share of wrong pixels among the most certain pixels.",
        ),
        RowTable("By ground-truth class", "per_class", ("pixels", _ERRORS, *_SCORES)),
    ),
    bars=ClassBars(
        "Finding errors",
        (Panel("auroc", "AUROC", (0.5, "chance")), Panel("aurc", "AURC (less is better)")),
    ),
    figures=("failure",),
)
