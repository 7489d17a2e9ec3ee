"""Tables of the families over predicted numbers: regression and n-MeRCI."""

from __future__ import annotations

from typing import Any

from uqeval.keys import family_of
from uqeval.report.glossary import headings
from uqeval.report.table import Table, shown, text_table, values

_ERRORS = ("pixels", "rmse", "mae", "nmse", "crps", "nll", "sharpness")
_AREAS = ("auce", "auce_over", "auce_under")
_NMERCI = ("nmerci", "merci", "lambda", "mae", "mae_trimmed", "max_alpha", "pixels")


def _keys(results: dict[str, Any], family: str) -> list[str]:
    return [key for key in results if family_of(key) == family]


def regression_tables(results: dict[str, Any]) -> list[Table]:
    """Errors and scores, and calibration, of all variants."""
    keys = _keys(results, "regression")
    if not keys:
        return []
    levels = list(results[keys[0]]["coverage"])
    return [
        text_table(
            "Regression",
            ["", *headings("regression", _ERRORS)],
            [[key, *values(results[key], _ERRORS)] for key in keys],
            "nMSE: in units of the target's variance. sharpness: root of the mean σ².",
        ),
        text_table(
            "Calibration of intervals",
            ["", *headings("regression", _AREAS),
             *(f"coverage {p} %" for p in levels), *(f"interval score {p} %" for p in levels)],
            [
                [
                    key,
                    *values(results[key], _AREAS),
                    *(shown(results[key]["coverage"][p]) for p in levels),
                    *(shown(results[key]["interval_score"][p]) for p in levels),
                ]
                for key in keys
            ],
            "AUCE: area between nominal and observed coverage; 0 is best, 0.49 is σ = 0 or ∞.",
        ),
    ]  # fmt: skip


def nmerci_tables(results: dict[str, Any]) -> list[Table]:
    """n-MeRCI of all variants, and by interval of the target."""
    keys = _keys(results, "nmerci")
    if not keys:
        return []
    found = [
        text_table(
            "n-MeRCI",
            ["", *headings("nmerci", ("alpha", *_NMERCI))],
            [[key, f"{results[key]['alpha']:g}", *values(results[key], _NMERCI)] for key in keys],
            "0: an uncertainty equal to the error; 1: a constant one. Below 0 is possible for "
            "α < 100.",
        )
    ]
    for key in keys:
        rows = results[key].get("by_depth")
        if rows:
            mean = results[key]["by_depth_mean"]
            names = ("pixels", "mae", "mae_trimmed", "nmerci")
            lines = [[f"{row['lower']:g} – {row['upper']:g}", *values(row, names)] for row in rows]
            lines.append(["mean", "", "", *values(mean, names[2:])])
            found.append(
                text_table(
                    f"By interval of the target ({key})",
                    ["target", *headings("nmerci", names)],
                    lines,
                )
            )
    return found
