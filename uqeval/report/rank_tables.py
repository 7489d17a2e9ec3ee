"""Tables of failure detection and sparsification."""

from __future__ import annotations

from typing import Any

from uqeval.keys import family_of
from uqeval.report.glossary import headings
from uqeval.report.table import Table, shown, text_table, values

_FAILURE = (
    "auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc",
    "undetected_error_rate",
)  # fmt: skip
#: Fractions removed at which the sparsification table reads the curves.
_REMOVED = (0.0, 0.1, 0.2, 0.5, 0.8, 0.9)


def failure_tables(results: dict[str, Any]) -> list[Table]:
    """Scores of every variant, risks and coverages, and the first variant by class."""
    keys = [key for key in results if family_of(key) == "failure"]
    if not keys:
        return []
    rows = [[key, results[key]["uncertainty"], *values(results[key], _FAILURE)] for key in keys]
    cuts = [
        (name, level, f"{heading} {level} %")
        for name, heading in (("risk_at_coverage", "risk at"), ("coverage_at_risk", "coverage at"))
        for level in results[keys[0]][name]
        if level.isdigit()
    ]
    classes = [
        [
            str(row["name"]),
            *values(row, ("pixels", "errors", *_FAILURE)),
        ]
        for row in results[keys[0]]["per_class"]
    ]
    return [
        text_table(
            "Failure detection",
            ["", "uncertainty", *headings("failure", _FAILURE)],
            rows,
            "AUROC 0.5: the uncertainty knows nothing of the errors. undetected: share of all "
            "pixels that are wrong and not above the threshold.",
            left=frozenset({0, 1}),
        ),
        text_table(
            "Risk and coverage",
            ["", "wrong", *(heading for _, _, heading in cuts)],
            [
                [
                    key,
                    shown(results[key]["errors"]),
                    *(shown(results[key][name][level]) for name, level, _ in cuts),
                ]
                for key in keys
            ],
            "risk: share of wrong pixels among the most certain ones.",
        ),
        text_table(
            f"By ground-truth class ({keys[0]})",
            ["class", "pixels", "wrong", *headings("failure", _FAILURE)],
            classes,
        ),
    ]


def sparsification_tables(results: dict[str, Any]) -> list[Table]:
    """AUSE and AURG of every variant, with some points of the curves."""
    keys = [key for key in results if family_of(key) == "sparsification"]
    names = ("ause", "aurg", "normalisation")
    rows, curves = [], []
    for key in keys:
        record = results[key]
        rows.append([key, record["uncertainty"], record["error"], *values(record, names)])
        if record["curve"] is None:
            continue
        fractions = record["fractions"]
        places = [min(range(len(fractions)), key=lambda i: abs(fractions[i] - f)) for f in _REMOVED]
        for name in ("curve", "oracle"):
            title = key if name == "curve" else "  oracle"
            curves.append([title, *(shown(record[name][i]) for i in places)])
    if not keys:
        return []
    found = [
        text_table(
            "Sparsification",
            ["", "uncertainty", "error", *headings("sparsification", names[:2]), "divided by"],
            rows,
            "AUSE: area between the curve and the oracle, 0 is best. AURG: gain over removing at "
            "random; < 0: worse than that. divided by: the error of all pixels, or 1.",
            left=frozenset({0, 1, 2}),
        )
    ]
    if curves:
        removed = [f"{f:.0%} removed" for f in _REMOVED]
        found.append(text_table("Error of what is left", ["", *removed], curves))
    return found
