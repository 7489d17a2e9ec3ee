"""How n-MeRCI is shown."""

from __future__ import annotations

from uqeval.metrics._contract import Column, Display, RowTable, ScoreTable

DISPLAY = Display(
    tables=(
        ScoreTable(
            "n-MeRCI",
            (Column("alpha", form="g"), "nmerci", "merci", "lambda", "mae", "mae_trimmed",
             "max_alpha", "pixels"),
            "0: the uncertainty equals the error; 1: it is constant. Below 0 is "
            "possible for α < 100.",
        ),
        RowTable(
            "By interval of the target", "by_depth",
            ("pixels", "mae", "mae_trimmed", "nmerci"),
            corner="target",
            row=lambda row: f"{row['lower']:g} – {row['upper']:g}",
            every=True,
            last=("mean", "by_depth_mean"),
        ),
    ),
    figures=("nmerci",),
)  # fmt: skip
