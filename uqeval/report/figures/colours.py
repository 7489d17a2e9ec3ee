"""Colours and dashes of the lines of figures."""

from __future__ import annotations

#: Okabe & Ito 2008, darkened for a white background; safe for colour-blind readers.
SERIES = ("#0067a5", "#c95100", "#008864", "#9c4f96", "#8a6d00", "#3b9ccb")
DASHES = ("-", "--", "-.", ":")


def colour(i: int) -> str:
    """Return the colour of the i-th line; colours repeat with other dashes."""
    return SERIES[i % len(SERIES)]


def dashes(i: int) -> str:
    """Return the dashes of the i-th line."""
    return DASHES[i // len(SERIES) % len(DASHES)]
