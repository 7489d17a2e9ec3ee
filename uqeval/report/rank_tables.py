"""Tables of failure detection and sparsification."""

from __future__ import annotations

from typing import Any

from uqeval.keys import family_of
from uqeval.report.table import Table, shown

_FAILURE = {
    "auroc": "AUROC",
    "aupr_error": "AUPR error",
    "aupr_success": "AUPR success",
    "fpr95": "FPR95",
    "aurc": "AURC",
    "e_aurc": "e-AURC",
    "augrc": "AUGRC",
    "undetected_error_rate": "undetected",
}
#: Fractions removed at which the sparsification table reads the curves.
_REMOVED = (0.0, 0.1, 0.2, 0.5, 0.8, 0.9)


def failure_tables(results: dict[str, Any]) -> list[Table]:
    """Scores of every variant, risks and coverages, and the first variant by class."""
    keys = [key for key in results if family_of(key) == "failure"]
    if not keys:
        return []
    rows = [
        [key, results[key]["uncertainty"], *(shown(results[key][name]) for name in _FAILURE)]
        for key in keys
    ]
    cuts = [
        (name, level, f"{heading} {level} %")
        for name, heading in (("risk_at_coverage", "risk at"), ("coverage_at_risk", "coverage at"))
        for level in results[keys[0]][name]
        if level.isdigit()
    ]
    classes = [
        [
            str(row["name"]),
            shown(row["pixels"]),
            shown(row["errors"]),
            *(shown(row[name]) for name in _FAILURE),
        ]
        for row in results[keys[0]]["per_class"]
    ]
    return [
        Table(
            "Failure detection",
            ["", "uncertainty", *_FAILURE.values()],
            rows,
            "AUROC 0.5: the uncertainty knows nothing of the errors. undetected: share of all "
            "pixels that are wrong and not above the threshold.",
            left=frozenset({0, 1}),
        ),
        Table(
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
        Table(
            f"By ground-truth class ({keys[0]})",
            ["class", "pixels", "wrong", *_FAILURE.values()],
            classes,
        ),
    ]


def sparsification_tables(results: dict[str, Any]) -> list[Table]:
    """AUSE and AURG of every variant, with some points of the curves."""
    keys = [key for key in results if family_of(key) == "sparsification"]
    rows, curves = [], []
    for key in keys:
        record = results[key]
        names = ("ause", "aurg", "normalisation")
        rows.append(
            [key, record["uncertainty"], record["error"], *(shown(record[name]) for name in names)]
        )
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
        Table(
            "Sparsification",
            ["", "uncertainty", "error", "AUSE", "AURG", "divided by"],
            rows,
            "AUSE: area between the curve and the oracle, 0 is best. AURG: gain over removing at "
            "random; < 0: worse than that. divided by: the error of all pixels, or 1.",
            left=frozenset({0, 1, 2}),
        )
    ]
    if curves:
        headings = [f"{f:.0%} removed" for f in _REMOVED]
        found.append(Table("Error of what is left", ["", *headings], curves))
    return found
