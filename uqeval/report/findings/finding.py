"""A finding: a sentence about a report or a comparison."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One sentence, its heading, and the family of the score (empty: none) for a link."""

    title: str
    text: str
    family: str = ""
