"""How the divergence from a reference is shown."""

from __future__ import annotations

from uqeval.metrics._display import Display, ScoreTable

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Divergence from the reference",
            ("kl", "pixels", "infinite"),
            "Mean over the pixels where it is finite. infinite: the share of the other pixels.",
        ),
    )
)
