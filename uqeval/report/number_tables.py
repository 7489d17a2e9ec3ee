"""Tables of the families over predicted numbers: regression and n-MeRCI."""

from __future__ import annotations

from typing import Any

from uqeval.keys import family_of
from uqeval.report.table import Table, shown

_ERRORS = {"rmse": "RMSE", "mae": "MAE", "nmse": "nMSE", "crps": "CRPS", "nll": "NLL",
           "sharpness": "sharpness"}  # fmt: skip
_NMERCI = {"nmerci": "n-MeRCI", "merci": "MeRCI", "lambda": "λ", "mae": "MAE",
           "mae_trimmed": "MAE trimmed", "max_alpha": "max error", "pixels": "pixels"}  # fmt: skip


def _keys(results: dict[str, Any], family: str) -> list[str]:
    return [key for key in results if family_of(key) == family]


def regression_tables(results: dict[str, Any]) -> list[Table]:
    """Errors and scores, and calibration, of all variants."""
    keys = _keys(results, "regression")
    if not keys:
        return []
    levels = list(results[keys[0]]["coverage"])
    return [
        Table(
            "Regression",
            ["", "pixels", *_ERRORS.values()],
            [[key, *(shown(results[key][n]) for n in ("pixels", *_ERRORS))] for key in keys],
            "nMSE: in units of the target's variance. sharpness: root of the mean σ².",
        ),
        Table(
            "Calibration of intervals",
            ["", "AUCE", "over-confident", "under-confident",
             *(f"coverage {p} %" for p in levels), *(f"interval score {p} %" for p in levels)],
            [
                [
                    key,
                    *(shown(results[key][n]) for n in ("auce", "auce_over", "auce_under")),
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
        Table(
            "n-MeRCI",
            ["", "α", *_NMERCI.values()],
            [
                [key, f"{results[key]['alpha']:g}", *(shown(results[key][n]) for n in _NMERCI)]
                for key in keys
            ],
            "0: an uncertainty equal to the error; 1: a constant one. Below 0 is possible for "
            "α < 100.",
        )
    ]
    for key in keys:
        rows = results[key].get("by_depth")
        if rows:
            mean = results[key]["by_depth_mean"]
            names = ("pixels", "mae", "mae_trimmed", "nmerci")
            lines = [
                [f"{row['lower']:g} – {row['upper']:g}", *(shown(row[n]) for n in names)]
                for row in rows
            ]
            lines.append(["mean", "", "", *(shown(mean[n]) for n in names[2:])])
            found.append(
                Table(
                    f"By interval of the target ({key})",
                    ["target", "pixels", "MAE", "MAE trimmed", "n-MeRCI"],
                    lines,
                )
            )
    return found
